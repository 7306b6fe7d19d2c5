"""`sapwood import --follow`: polling files while agents write them."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Collection, Sequence

from server.commands.imports.inputs import Input, inputs
from server.commands.imports.report import Report
from storage import text
from storage.transfer.importing import MissingSessions, Target
from storage.transfer.importing.follow import Follower
from storage.transfer.importing.held import HeldFiles

POLL_SECONDS = 0.2
"""The pause between two polls of the files."""
POLLS_PER_SEARCH = 10
"""How many polls come between two searches for new files."""


async def follow_all(target: Target, paths: Sequence[str], format: str | None, report: Report) -> None:
    """Imports the files and whatever is added to them, until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    followed: dict[str, _FollowedFile] = {}
    broken: dict[str, Input] = {}
    held = HeldFiles()
    polls = 0
    defer = True
    while not stop.is_set():
        if polls % POLLS_PER_SEARCH == 0:
            found = await asyncio.to_thread(inputs, paths)
            broken = _broken(found, broken)
            for each in found:
                if each.path is not None and each.problem is None and str(each.path) not in followed:
                    follower = Follower(target, each.name, each.path, format, held=held, stopped=stop.is_set)
                    followed[str(each.path)] = _FollowedFile(follower, each.name, each.expected)
        polls += 1
        defer = await _poll(followed, stop, defer=defer)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), POLL_SECONDS)
    await _finish(list(followed.values()), list(broken.values()), report)


class _FollowedFile:
    """A file, its follower and what was last announced of it."""

    def __init__(self, follower: Follower, name: str, expected: bool) -> None:
        self.follower = follower
        self.name = name
        self._expected = expected
        self._announced: str | None = None

    def announce(self) -> None:
        """Prints the format of the file, or its problem, when that has changed."""
        news = self.follower.problem or self.follower.format
        if news is not None and news != self._announced and (self._expected or self.follower.format is not None):
            _print(f"{self.name}: {news}")
        self._announced = news

    async def finish(self, report: Report) -> None:
        """Ends following and reports the results."""
        await self.follower.finish()
        for result in self.follower.results:
            report.add(self.follower.format or "", self.name, result)
        if self.follower.problem is not None:
            expected = self._expected or self.follower.format is not None
            report.reject(self.name, self.follower.problem, expected=expected)


def _broken(found: Sequence[Input], before: Collection[str]) -> dict[str, Input]:
    """The inputs that can't be read, by name. Announces those that are not among the ones `before`."""
    broken = {each.name: each for each in found if each.problem is not None}
    for name, file in broken.items():
        if file.expected and name not in before:
            _print(f"{name}: {file.problem}")
    return broken


async def _finish(followed: Sequence[_FollowedFile], broken: Sequence[Input], report: Report) -> None:
    for each in followed:
        await each.finish(report)
    behind = [each.name for each in followed if each.follower.is_behind and each.follower.problem is None]
    if behind:
        others = f" and {len(behind) - 1} more" if len(behind) > 1 else ""
        _print(f"{behind[0]}{others}: not read to the end; import again to continue")
    for file in broken:
        report.reject(file.name, file.problem or "", expected=file.expected)


def _print(news: str) -> None:
    print(text.clean(news), file=sys.stderr, flush=True)


async def _poll(followed: dict[str, _FollowedFile], stop: asyncio.Event, *, defer: bool) -> bool:
    """Polls each file once. Returns whether files may still be deferred at the next poll."""
    progressed = deferred = False
    for each in followed.values():
        if stop.is_set():
            break
        try:
            progressed |= await each.follower.advance(defer=defer)
        except MissingSessions:
            deferred = True
        each.announce()
    return progressed or not deferred
