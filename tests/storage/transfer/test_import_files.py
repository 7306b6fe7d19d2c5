"""Importing many files, with and without a parsing process."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from server.commands.imports.inputs import Input, inputs
from server.commands.imports.report import Report
from server.commands.imports.run import import_all
from server.stores import scratch_store
from storage.log.append import now
from storage.store import Store
from storage.text import format_instant
from storage.transfer.importing import Target
from storage.transfer.importing.dry_run import DryRun
from storage.transfer.parsing.parser import Parser
from storage.transfer.parsing.serving import BATCH_WEIGHT
from tests.storage.spaces import SPACE, contents
from tests.storage.transfer.formats.logs import DATA
from tests.storage.transfer.logs import log, long_log


async def imported(
    store: Store, given: Sequence[Input], parser: Parser | None, space: str, *, dry: bool = False
) -> dict[str, Any]:
    """The report of an import of these files."""
    report = Report(as_json=True, dry=dry)
    async with scratch_store() as scratch:
        target = DryRun(scratch, store, space) if dry else Target(store, space)
        await import_all(target, given, None, report, parser)
    # The order may differ: whether a file that names others is deferred depends on how far ahead it was parsed.
    outcomes = sorted((each.format, each.name, each.result.events, each.result.warnings) for each in report.outcomes)
    return {"outcomes": outcomes, "failed": report.failed, "skipped": report.skipped}


def without_times(found: dict[str, dict[str, Any]], began: int) -> dict[str, dict[str, Any]]:
    """The contents of a space without the times of recording."""
    for session in found.values():
        del session["totals"]
        for event in session["events"]:
            event["timestamp"] = min(event["timestamp"], began)
    return found


def pi_log(folder: Path, name: str, id: str, origin: str, parts: int) -> Path:
    """Writes a log of pi that names the session from which it was branched."""
    path = folder / f"{name}.jsonl"
    first = {"type": "session", "id": id, "cwd": "/", "branchedFrom": f"/logs/1_{origin}.jsonl"}
    message = {"role": "user", "content": "x" * BATCH_WEIGHT}
    lines = [{"type": "message", "timestamp": format_instant(seq), "message": message} for seq in range(parts)]
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return path


async def test_the_result_is_the_same_with_and_without_a_parser(store: Store, parser: Parser, tmp_path: Path) -> None:
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
    with_parser = await imported(store, given, parser, SPACE)
    assert len(with_parser["failed"]) == 3
    assert with_parser == await imported(store, given, None, "other")
    nodes = await contents(store)
    assert without_times(nodes, began) == without_times(await contents(store, "other"), began)
    assert [nodes[id]["node"][1] for id in (child, orphan, grandchild, parent)] == [parent, None, child, None]


def codex_log(folder: Path, name: str, id: str, texts: str, **origin: str) -> Path:
    """Writes a log of Codex with a message for each character."""
    path = folder / f"{name}.jsonl"
    lines = [{"timestamp": format_instant(0), "type": "session_meta", "payload": {"id": id, "cwd": "/", **origin}}]
    for seq, content in enumerate(texts, 1):
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": content}]}
        lines.append({"timestamp": format_instant(seq), "type": "response_item", "payload": said})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
async def test_a_log_without_its_parent_still_waits_for_the_log_that_it_repeats(
    store: Store, tmp_path: Path, order: Sequence[str]
) -> None:
    a, b, c, nowhere = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "1239")
    codex_log(tmp_path, "a", a, "onexy", parent_thread_id=nowhere, forked_from_id=b)
    codex_log(tmp_path, "b", b, "onex", forked_from_id=c)
    codex_log(tmp_path, "c", c, "one")
    report = await imported(store, inputs([str(tmp_path / f"{name}.jsonl") for name in order]), None, SPACE)
    assert report["failed"] == {}
    nodes = await contents(store)
    assert [nodes[id]["node"][1] for id in (a, b, c)] == [b, c, None]


async def test_a_dry_run_of_stored_sessions_finds_nothing_new(store: Store, parser: Parser, tmp_path: Path) -> None:
    given = inputs([str(long_log(tmp_path, f"s{number}", 4)) for number in range(30)])
    await imported(store, given, None, SPACE)
    report = await imported(store, given, parser, SPACE, dry=True)
    assert report["failed"] == {}
    assert [events for _, _, events, _ in report["outcomes"]] == [0] * 30


async def test_when_the_parser_is_lost_one_file_fails_and_the_others_are_imported(
    store: Store, parser: Parser, tmp_path: Path
) -> None:
    given = inputs([str(log(tmp_path, name, name)) for name in "abc"])
    os.kill(parser.pid, signal.SIGKILL)
    report = await imported(store, given, parser, SPACE)
    assert report["failed"] == {str(tmp_path / "a.jsonl"): "the parsing process ended before it had read the file"}
    assert (await contents(store)).keys() == {"b", "c"}
