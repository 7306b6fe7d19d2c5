"""A parsing process yields the same steps as parsing in this process, in order and within bounds."""

import asyncio
import io
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage import errors
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.parsing.document import Document
from storage.transfer.parsing.frames import ParseRequest, StepsFrame
from storage.transfer.parsing.parser import Parser, ParserLost, ParserSource
from storage.transfer.parsing.serving import AHEAD_WEIGHT, BATCH_WEIGHT
from tests import paths
from tests.storage.transfer.formats.logs import DATA
from tests.storage.transfer.logs import log, long_log

ROOT = paths.ROOT


LOGS = sorted(path for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".yaml"))


def request(path: Path, format: str | None = None) -> ParseRequest:
    return ParseRequest(path.name, str(path), format)


def plain(steps: Sequence[Step]) -> list[Any]:
    """The steps with lists for all sequences, so that they can be compared."""
    return [
        {**asdict(step), "events": list(step.events), "refs": list(step.refs)}
        if isinstance(step, ForeignSession)
        else step
        for step in steps
    ]


def parsed_here(path: Path) -> tuple[str, list[Any], ImportWarnings]:
    with path.open("rb") as stream:
        document = Document(path.name, stream)
        steps = [step for batch in document.batches() for step in batch.steps]
        return document.format, plain(steps), document.warnings


async def parsed(parser: Parser) -> tuple[str, list[Any], ImportWarnings]:
    document = ParserSource(parser, lambda _: None)
    format = await document.begin()
    steps = [step async for batch in document.batches() for step in batch.steps]
    return format, plain(steps), document.warnings


async def test_every_real_log_yields_the_same_steps(parser: Parser) -> None:
    parser.request(list(map(request, LOGS)))
    for path in LOGS:
        format, steps, losses = await parsed(parser)
        expected_format, expected, expected_losses = parsed_here(path)
        assert (format, losses.messages()) == (expected_format, expected_losses.messages()), path
        assert steps == expected, path


async def test_all_bytes_of_a_file_are_counted(parser: Parser, tmp_path: Path) -> None:
    path = long_log(tmp_path, "a", 3)
    read: list[int] = []
    parser.request([request(path)])
    document = ParserSource(parser, read.append)
    await document.begin()
    assert [batch async for batch in document.batches()]
    assert len(read) > 2
    assert sum(read) == path.stat().st_size


async def test_after_a_document_that_cannot_be_parsed_the_next_one_follows(parser: Parser, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.json"
    unknown.write_text('{"what": "is this"}')
    forced = log(tmp_path, "forced", "one")
    parser.request([request(unknown), request(tmp_path / "none.json"), request(tmp_path), request(forced, "inspect")])
    parser.request([request(log(tmp_path, "a", "one"))])
    with pytest.raises(errors.BadInput) as here:
        Document(unknown.name, io.BytesIO(unknown.read_bytes()))
    with pytest.raises(errors.BadInput) as apart:
        await parsed(parser)
    assert apart.value.message == here.value.message
    with pytest.raises(FileNotFoundError):
        await parsed(parser)
    with pytest.raises(IsADirectoryError):
        await parsed(parser)
    with pytest.raises(errors.BadInput, match=r"^forced\.jsonl line 1 eval: "):
        await parsed(parser)
    assert (await parsed(parser))[0] == "sapwood"


async def test_the_unconsumed_rest_of_a_document_is_skipped(parser: Parser, tmp_path: Path) -> None:
    first, second = long_log(tmp_path, "a", 100), log(tmp_path, "b", "one")
    parser.request([request(first), request(second)])
    document = ParserSource(parser, lambda _: None)
    await document.begin()
    batches = document.batches()
    assert await anext(batches)
    await batches.aclose()
    assert (await parsed(parser))[:2] == parsed_here(second)[:2]


async def test_it_reads_ahead_within_bounds(parser: Parser, tmp_path: Path) -> None:
    paths = [long_log(tmp_path, name, 40) for name in "abc"]
    ahead = most = 0
    on_frame, acknowledge = parser._on_frame, parser.acknowledge

    def count_sent(frame: Any) -> None:
        nonlocal ahead, most
        ahead += frame.weight if isinstance(frame, StepsFrame) else 0
        most = max(most, ahead)
        on_frame(frame)

    def count_consumed(weight: int) -> None:
        nonlocal ahead
        ahead -= weight
        acknowledge(weight)

    parser._on_frame, parser.acknowledge = count_sent, count_consumed  # type: ignore[method-assign]  # to watch them
    parser.request(list(map(request, paths)))
    for path in paths:
        assert (await parsed(parser))[1] == parsed_here(path)[1]
    assert AHEAD_WEIGHT < 3 * 40 * BATCH_WEIGHT
    assert 2 * BATCH_WEIGHT < most <= AHEAD_WEIGHT + 2 * BATCH_WEIGHT
    assert ahead == 0


async def test_an_inspection_can_defer_a_document(parser: Parser, tmp_path: Path) -> None:
    first, off, last = (long_log(tmp_path, name, 60) for name in ("first", "off", "last"))
    seen = asyncio.Event()

    async def inspect(steps: Sequence[Step]) -> Exception | None:
        if not isinstance(steps[0], ForeignSession) or steps[0].id != "off":
            return None
        seen.set()
        return KeyError("off")

    parser.request([request(path)._replace(may_defer=True) for path in (first, off, last)], inspect)
    document = ParserSource(parser, lambda _: None)
    await document.begin()
    steps = [step async for batch in document.batches() for step in batch.steps]
    assert plain(steps) == parsed_here(first)[1]
    await seen.wait()
    with pytest.raises(KeyError, match="off"):
        await parsed(parser)
    assert (await parsed(parser))[1] == parsed_here(last)[1]


async def test_a_killed_process_raises_parser_lost(parser: Parser, tmp_path: Path) -> None:
    parser.request([request(long_log(tmp_path, "a", 100)), request(log(tmp_path, "b", "one"))])
    document = ParserSource(parser, lambda _: None)
    await document.begin()
    os.kill(parser.pid, signal.SIGKILL)
    with pytest.raises(ParserLost):
        async for _ in document.batches():
            pass
    assert parser.is_lost
    with pytest.raises(ParserLost):
        await parsed(parser)


BLOCKED = """
import asyncio, sys
from storage.transfer.parsing.frames import ParseRequest
from storage.transfer.parsing.parser import Parser

async def run(parser):
    parser.request([ParseRequest("pipe", sys.argv[1])])
    print(parser.pid, flush=True)
    await parser.next()

with Parser() as parser:
    asyncio.run(run(parser))
"""


def test_it_ends_with_the_process_that_started_it_even_while_blocked(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    process = subprocess.Popen([sys.executable, "-c", BLOCKED, str(pipe)], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    parser = psutil.Process(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    assert psutil.wait_procs([parser])[1] == []
    os.close(held)


async def test_an_interrupt_does_not_end_it(parser: Parser, tmp_path: Path) -> None:
    path = log(tmp_path, "a", "one")
    parser.request([request(path)])
    await parsed(parser)  # the process is ready now
    os.kill(parser.pid, signal.SIGINT)
    parser.request([request(path)])
    assert (await parsed(parser))[1] == parsed_here(path)[1]


INTERRUPTED = """
import os, signal
from storage.transfer.parsing.parser import Parser
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    Parser("fork")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_during_the_fork_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
