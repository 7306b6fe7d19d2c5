"""Documents parsed by a process of its own tell the same as ones that are parsed here, in order and within bounds."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from server.commands.imports.inputs import Input, inputs
from server.commands.imports.report import Report
from server.commands.imports.run import import_all
from server.stores import scratch_store
from storage import errors
from storage.log.append import now
from storage.store import Store
from storage.text import format_instant
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.importing import Target
from storage.transfer.importing.dry_run import DryRun
from storage.transfer.parsing.document import Document
from storage.transfer.parsing.frames import Told, Wanted
from storage.transfer.parsing.parser import Parsed, Parser, ParserLost
from storage.transfer.parsing.serving import AHEAD_WEIGHT, PART_WEIGHT
from tests import paths
from tests.server.commands.runner import SECONDS
from tests.storage.spaces import SPACE, contents
from tests.storage.transfer.formats.logs import DATA

ROOT = paths.ROOT
LOGS = sorted(path for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj", ".yaml"))


@pytest.fixture
def parser() -> Iterator[Parser]:
    """A process that is started anew, as this one has threads; the command forks it, where that is possible."""
    with Parser("spawn") as parser:
        yield parser


def wanted(path: Path, format: str | None = None) -> Wanted:
    return Wanted(path.name, str(path), format)


def log(folder: Path, id: str, *contents: str, **header: Any) -> Path:
    """A log of ours with a message for each content."""
    path = folder / f"{id}.jsonl"
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    lines = [
        {"seq": seq, "type": "user/message", "timestamp": format_instant(seq), "content": content}
        for seq, content in enumerate(contents)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return path


def long_log(folder: Path, id: str, parts: int, **header: Any) -> Path:
    """A log that is told in at least so many parts."""
    return log(folder, id, *["x" * PART_WEIGHT] * parts, **header)


def plain(steps: Sequence[Step]) -> list[Any]:
    """Steps with sequences of one kind, so that they can be compared."""
    return [
        {**asdict(step), "events": list(step.events), "refs": list(step.refs)}
        if isinstance(step, ForeignSession)
        else step
        for step in steps
    ]


def parsed_here(path: Path) -> tuple[str, list[Any], ImportWarnings]:
    with path.open("rb") as stream:
        document = Document(path.name, stream)
        steps = [step for part in document.parts() for step in part.steps]
        return document.format, plain(steps), document.losses


async def parsed(parser: Parser) -> tuple[str, list[Any], ImportWarnings]:
    document = Parsed(parser, lambda _: None)
    format = await document.begin()
    steps = [step async for part in document.parts() for step in part.steps]
    return format, plain(steps), document.losses


async def test_every_real_log_tells_the_same(parser: Parser) -> None:
    parser.want(list(map(wanted, LOGS)))
    for path in LOGS:
        format, steps, losses = await parsed(parser)
        expected_format, expected, expected_losses = parsed_here(path)
        assert (format, losses.messages()) == (expected_format, expected_losses.messages()), path
        assert steps == expected, path


async def test_all_bytes_of_a_file_are_counted(parser: Parser, tmp_path: Path) -> None:
    path = long_log(tmp_path, "a", 3)
    read: list[int] = []
    parser.want([wanted(path)])
    document = Parsed(parser, read.append)
    await document.begin()
    assert [part async for part in document.parts()]
    assert len(read) > 2
    assert sum(read) == path.stat().st_size


async def test_a_document_that_cannot_be_parsed_raises_and_the_next_one_comes(parser: Parser, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.json"
    unknown.write_text('{"what": "is this"}')
    forced = log(tmp_path, "forced", "one")
    parser.want([wanted(unknown), wanted(tmp_path / "none.json"), wanted(tmp_path), wanted(forced, "inspect")])
    parser.want([wanted(log(tmp_path, "a", "one"))])
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


async def test_what_is_not_taken_of_a_document_is_passed_over(parser: Parser, tmp_path: Path) -> None:
    first, second = long_log(tmp_path, "a", 100), log(tmp_path, "b", "one")
    parser.want([wanted(first), wanted(second)])
    document = Parsed(parser, lambda _: None)
    await document.begin()
    parts = document.parts()
    assert await anext(parts)
    await parts.aclose()
    assert (await parsed(parser))[:2] == parsed_here(second)[:2]


async def test_it_is_ahead_by_so_much_and_no_more(parser: Parser, tmp_path: Path) -> None:
    paths = [long_log(tmp_path, name, 40) for name in "abc"]
    ahead = most = 0
    hear, go_on = parser._hear, parser.go_on

    def heard(frame: Any) -> None:
        nonlocal ahead, most
        ahead += frame.weight if isinstance(frame, Told) else 0
        most = max(most, ahead)
        hear(frame)

    def gone_on(weight: int) -> None:
        nonlocal ahead
        ahead -= weight
        go_on(weight)

    parser._hear, parser.go_on = heard, gone_on  # type: ignore[method-assign]
    parser.want(list(map(wanted, paths)))
    for path in paths:
        assert (await parsed(parser))[1] == parsed_here(path)[1]
    assert AHEAD_WEIGHT < 3 * 40 * PART_WEIGHT
    assert 2 * PART_WEIGHT < most <= AHEAD_WEIGHT + 2 * PART_WEIGHT
    assert ahead == 0


async def test_a_look_ahead_can_put_a_document_off(parser: Parser, tmp_path: Path) -> None:
    first, off, last = (long_log(tmp_path, name, 60) for name in ("first", "off", "last"))
    seen = asyncio.Event()

    async def look(steps: Sequence[Step]) -> Exception | None:
        if not isinstance(steps[0], ForeignSession) or steps[0].id != "off":
            return None
        seen.set()
        return KeyError("off")

    parser.want([wanted(path)._replace(waits=True) for path in (first, off, last)], look)
    document = Parsed(parser, lambda _: None)
    await document.begin()
    steps = [step async for part in document.parts() for step in part.steps]
    assert plain(steps) == parsed_here(first)[1]
    await seen.wait()
    with pytest.raises(KeyError, match="off"):
        await parsed(parser)
    assert (await parsed(parser))[1] == parsed_here(last)[1]


async def test_a_process_that_is_killed_is_told_of(parser: Parser, tmp_path: Path) -> None:
    parser.want([wanted(long_log(tmp_path, "a", 100)), wanted(log(tmp_path, "b", "one"))])
    document = Parsed(parser, lambda _: None)
    await document.begin()
    os.kill(parser.pid, signal.SIGKILL)
    with pytest.raises(ParserLost):
        async for _ in document.parts():
            pass
    assert parser.is_lost
    with pytest.raises(ParserLost):
        await parsed(parser)


WAITS = """
import asyncio, sys
from storage.transfer.parsing.frames import Wanted
from storage.transfer.parsing.parser import Parser

async def run(parser):
    parser.want([Wanted("pipe", sys.argv[1])])
    print(parser.pid, flush=True)
    await parser.next()

with Parser() as parser:
    asyncio.run(run(parser))
"""


def test_it_ends_with_the_process_that_started_it_whatever_it_is_at(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    process = subprocess.Popen([sys.executable, "-c", WAITS, str(pipe)], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    parser = psutil.Process(int(process.stdout.readline()))
    process.kill()
    process.communicate()
    assert psutil.wait_procs([parser], SECONDS)[1] == []
    os.close(held)


async def test_an_interrupt_from_the_keyboard_does_not_end_it(parser: Parser, tmp_path: Path) -> None:
    path = log(tmp_path, "a", "one")
    parser.want([wanted(path)])
    await parsed(parser)  # it is ready by now
    os.kill(parser.pid, signal.SIGINT)
    parser.want([wanted(path)])
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


def test_an_interrupt_that_comes_while_it_is_forked_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


async def imported(
    store: Store, given: Sequence[Input], parser: Parser | None, space: str, *, dry: bool = False
) -> dict[str, Any]:
    """What an import of these files says: by format and file, and what failed."""
    report = Report(as_json=True, dry=dry)
    async with scratch_store() as scratch:
        target = DryRun(scratch, store, space) if dry else Target(store, space)
        await import_all(target, given, None, report, parser)
    said = [(each.format, each.name, each.done.events, each.done.warnings) for each in report.outcomes]
    return {"said": said, "failed": report.failed, "skipped": report.skipped}


def logged(found: dict[str, dict[str, Any]], began: int) -> dict[str, dict[str, Any]]:
    """What a space holds but for the times at which it was recorded."""
    for kept in found.values():
        del kept["totals"]
        for event in kept["events"]:
            event["timestamp"] = min(event["timestamp"], began)
    return found


def pi_log(folder: Path, name: str, id: str, origin: str, parts: int) -> Path:
    """A log of pi that says from which session it was branched."""
    path = folder / f"{name}.jsonl"
    first = {"type": "session", "id": id, "cwd": "/", "branchedFrom": f"/logs/1_{origin}.jsonl"}
    message = {"role": "user", "content": "x" * PART_WEIGHT}
    lines = [{"type": "message", "timestamp": format_instant(seq), "message": message} for seq in range(parts)]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return path


async def test_an_import_is_the_same_with_and_without_it(store: Store, parser: Parser, tmp_path: Path) -> None:
    child, orphan, grandchild, parent, nowhere = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "12345")
    pi_log(tmp_path, "a", child, parent, 3)
    pi_log(tmp_path, "b", orphan, nowhere, 60)
    log(tmp_path, "c").write_text("{")
    log(tmp_path, "d").write_text('{"what": "is this"}')
    pi_log(tmp_path, "e", grandchild, child, 2)
    pi_log(tmp_path, "z", parent, nowhere, 2)
    logs = [str(DATA / name) for name in ("claude-code", "codex", "pi-mono", "chat-trees", "deepseek-harness")]
    given = inputs([str(tmp_path), *logs, str(tmp_path / "none.json")])
    began = now()
    apart = await imported(store, given, parser, SPACE)
    assert len(apart["failed"]) == 3
    assert apart == await imported(store, given, None, "other")
    nodes = await contents(store)
    assert logged(nodes, began) == logged(await contents(store, "other"), began)
    assert [nodes[id]["node"][1] for id in (child, orphan, grandchild, parent)] == [parent, None, child, None]


def codex_log(folder: Path, name: str, id: str, texts: str, **origin: str) -> Path:
    """A log of codex with a message for each character."""
    path = folder / f"{name}.jsonl"
    lines = [{"timestamp": format_instant(0), "type": "session_meta", "payload": {"id": id, "cwd": "/", **origin}}]
    for seq, content in enumerate(texts, 1):
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": content}]}
        lines.append({"timestamp": format_instant(seq), "type": "response_item", "payload": said})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
async def test_a_log_without_its_parent_still_waits_for_the_one_that_it_repeats(
    store: Store, tmp_path: Path, order: Sequence[str]
) -> None:
    a, b, c, nowhere = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "1239")
    codex_log(tmp_path, "a", a, "onexy", parent_thread_id=nowhere, forked_from_id=b)
    codex_log(tmp_path, "b", b, "onex", forked_from_id=c)
    codex_log(tmp_path, "c", c, "one")
    said = await imported(store, inputs([str(tmp_path / f"{name}.jsonl") for name in order]), None, SPACE)
    assert said["failed"] == {}
    nodes = await contents(store)
    assert [nodes[id]["node"][1] for id in (a, b, c)] == [b, c, None]


async def test_a_dry_run_of_what_is_there_finds_nothing_new(store: Store, parser: Parser, tmp_path: Path) -> None:
    given = inputs([str(long_log(tmp_path, f"s{number}", 4)) for number in range(30)])
    await imported(store, given, None, SPACE)
    said = await imported(store, given, parser, SPACE, dry=True)
    assert said["failed"] == {}
    assert [events for _, _, events, _ in said["said"]] == [0] * 30


async def test_when_it_is_lost_one_file_fails_and_the_others_come_in(
    store: Store, parser: Parser, tmp_path: Path
) -> None:
    given = inputs([str(log(tmp_path, name, name)) for name in "abc"])
    os.kill(parser.pid, signal.SIGKILL)
    said = await imported(store, given, parser, SPACE)
    assert said["failed"] == {str(tmp_path / "a.jsonl"): "the process that parsed it has ended before it"}
    assert (await contents(store)).keys() == {"b", "c"}
