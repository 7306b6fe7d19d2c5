"""`sapwood import --follow`: looking at logs again and again while agents write them."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence

from server.commands.import_inputs import Input, inputs
from server.commands.import_report import Report
from storage import text
from storage.importing import NotYet, Target
from storage.importing.follow import Follower

POLL_SECONDS = 0.2
"""Between two looks at the files."""
LOOKS_PER_SEARCH = 10
"""Looks at the files between two searches for new ones."""


async def follow_all(target: Target, paths: Sequence[str], format: str | None, report: Report) -> None:
    """Brings in what the files say, and what they say more, until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    followed: dict[str, _Followed] = {}
    broken: dict[str, Input] = {}
    looks = 0
    defer = True
    while not stop.is_set():
        if looks % LOOKS_PER_SEARCH == 0:
            broken = await _search(followed, broken, target, paths, format)
        looks += 1
        defer = await _look(followed, stop, defer=defer)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), POLL_SECONDS)
    for each in followed.values():
        await each.end(report)
    for name, given in broken.items():
        report.leave(name, given.problem or "", expected=given.expected)


class _Followed:
    """A file, and what was said of it."""

    def __init__(self, follower: Follower, name: str, expected: bool) -> None:
        self.follower = follower
        self._name = name
        self._expected = expected
        self._told: str | None = None

    def tell(self) -> None:
        """Says what the file is, or what is wrong with it, when that is new."""
        news = self.follower.problem or self.follower.format
        if news is not None and news != self._told and (self._expected or self.follower.format is not None):
            print(text.clean(f"{self._name}: {news}"), file=sys.stderr, flush=True)
        self._told = news

    async def end(self, report: Report) -> None:
        await self.follower.finish()
        for done in self.follower.results:
            report.add(self.follower.format or "", self._name, done)
        if self.follower.problem is not None:
            expected = self._expected or self.follower.format is not None
            report.leave(self._name, self.follower.problem, expected=expected)


async def _search(
    followed: dict[str, _Followed], broken: dict[str, Input], target: Target, paths: Sequence[str], format: str | None
) -> dict[str, Input]:
    """Follows what is new; what can't be looked at, by name, which is told unless it was broken before."""
    found = await asyncio.to_thread(inputs, paths)
    for each in found:
        if each.path is not None and each.problem is None and str(each.path) not in followed:
            follower = Follower(target, each.name, each.path, format)
            followed[str(each.path)] = _Followed(follower, each.name, each.expected)
        elif each.problem is not None and each.expected and each.name not in broken:
            print(f"{each.name}: {each.problem}", file=sys.stderr, flush=True)
    return {each.name: each for each in found if each.problem is not None}


async def _look(followed: dict[str, _Followed], stop: asyncio.Event, *, defer: bool) -> bool:
    """Looks at each file once; whether those that need others may wait for them at the next look."""
    progressed = deferred = False
    for each in followed.values():
        if stop.is_set():
            break
        try:
            progressed |= await each.follower.advance(defer=defer)
        except NotYet:
            deferred = True
        each.tell()
    return progressed or not deferred
