"""`sapwood import --follow`: looking at logs again and again while agents write them."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Collection, Sequence

from server.commands.imports.inputs import Input, inputs
from server.commands.imports.report import Report
from storage import text
from storage.transfer.importing import NotYet, Target
from storage.transfer.importing.follow import Follower
from storage.transfer.importing.held import Kept

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
    kept = Kept()
    looks = 0
    defer = True
    while not stop.is_set():
        if looks % LOOKS_PER_SEARCH == 0:
            found = await asyncio.to_thread(inputs, paths)
            broken = _told(found, broken)
            for each in found:
                if each.path is not None and each.problem is None and str(each.path) not in followed:
                    follower = Follower(target, each.name, each.path, format, kept=kept, stopped=stop.is_set)
                    followed[str(each.path)] = _Followed(follower, each.name, each.expected)
        looks += 1
        defer = await _look(followed, stop, defer=defer)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), POLL_SECONDS)
    await _end(list(followed.values()), list(broken.values()), report)


class _Followed:
    """A file, and what was said of it."""

    def __init__(self, follower: Follower, name: str, expected: bool) -> None:
        self.follower = follower
        self.name = name
        self._expected = expected
        self._told: str | None = None

    def tell(self) -> None:
        """Says what the file is, or what is wrong with it, when that is new."""
        news = self.follower.problem or self.follower.format
        if news is not None and news != self._told and (self._expected or self.follower.format is not None):
            _say(f"{self.name}: {news}")
        self._told = news

    async def end(self, report: Report) -> None:
        await self.follower.finish()
        for done in self.follower.results:
            report.add(self.follower.format or "", self.name, done)
        if self.follower.problem is not None:
            expected = self._expected or self.follower.format is not None
            report.leave(self.name, self.follower.problem, expected=expected)


def _told(found: Sequence[Input], before: Collection[str]) -> dict[str, Input]:
    """Those that can't be looked at, by name; says so of the ones that could before."""
    broken = {each.name: each for each in found if each.problem is not None}
    for name, given in broken.items():
        if given.expected and name not in before:
            _say(f"{name}: {given.problem}")
    return broken


async def _end(followed: Sequence[_Followed], broken: Sequence[Input], report: Report) -> None:
    for each in followed:
        await each.end(report)
    behind = [each.name for each in followed if each.follower.is_behind and each.follower.problem is None]
    if behind:
        others = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
        _say(f"{behind[0]}{others}: not read to its end, where another import goes on")
    for given in broken:
        report.leave(given.name, given.problem or "", expected=given.expected)


def _say(news: str) -> None:
    print(text.clean(news), file=sys.stderr, flush=True)


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
