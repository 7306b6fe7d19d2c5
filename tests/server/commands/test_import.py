"""`sapwood import` as people and scripts run it: what it imports, prints and leaves in the store."""

import json
import os
import pty
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from storage.sqlite.database import open_file
from storage.store import Store
from storage.transfer.formats.registry import FORMATS
from tests.server.commands.importing import contents, counts, imported, session
from tests.server.commands.runner import run
from tests.server.process import SAPWOOD, at
from tests.storage.spaces import contents as contents_of
from tests.storage.transfer.formats.logs import DATA

HELLO = '[{"role": "user", "content": "hello"}]'


LOGS = sorted(path for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj"))


STREAMED = [path for path in LOGS if path.suffix == ".jsonl"]


def test_all_real_logs_come_in_at_once_and_again_add_nothing(location: Path | str) -> None:
    first = imported(DATA, *at(location))
    assert {each["files"][0] for each in first["imported"]} == {str(path) for path in LOGS}
    assert {each["format"] for each in first["imported"]} == set(FORMATS) - {"sapwood", "openai", "session-yaml"}
    assert first["failed"] == []
    assert counts(first) == [186, 381, 26, 0, 15_905]
    again = imported(DATA, *at(location))
    assert counts(again) == [0, 0, 0, 516, 0]
    # The first time, files that waited for others are imported last.
    ids = [{each["files"][0]: sorted(each["ids"]) for each in found["imported"]} for found in (first, again)]
    assert ids[0] == ids[1]
    checked = run("check", *at(location))
    assert (checked.returncode, checked.stdout[:15]) == (0, "516 sessions in")


def test_a_dry_run_writes_nothing_and_counts_as_the_real_one_does(tmp_path: Path) -> None:
    dry = imported(DATA, "--dry-run", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    real = imported(DATA, cwd=tmp_path)
    assert (dry.pop("dryRun"), real.pop("dryRun")) == (True, False)
    assert dry == real


def test_a_dry_run_takes_account_of_stored_sessions(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one"))
    run("import", "log", cwd=tmp_path)
    (tmp_path / "log").write_text(session("a", "one", "two"))
    dry = run("import", "log", "--dry-run", cwd=tmp_path)
    assert dry.stdout.endswith("Nothing was written: this was a dry run.\n")
    assert contents("a", tmp_path) == ["one"]
    assert counts(imported("log", "--dry-run", cwd=tmp_path)) == [0, 0, 0, 1, 1]
    assert counts(imported("log", cwd=tmp_path)) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: str(path.relative_to(DATA)))
def test_a_format_is_detected_by_the_content_whatever_the_name(tmp_path: Path, path: Path) -> None:
    shutil.copy(path, tmp_path / "notes.txt")
    [detected] = imported("notes.txt", cwd=tmp_path)["imported"]
    [named] = imported(path, "--dry-run", cwd=tmp_path)["imported"]
    assert detected["format"] == named["format"]
    assert detected["format"] in FORMATS
    assert detected["sessions"] > 0


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(HELLO)
    [found] = imported("log", "--format", "openai", cwd=tmp_path)["imported"]
    assert (found["format"], found["sessions"]) == ("openai", 1)
    refused = imported("log", "--format", "codex", code=1, cwd=tmp_path)
    assert [failed["files"] for failed in refused["failed"]] == [["log"]]


def test_an_unknown_format_is_wrong_usage(tmp_path: Path) -> None:
    done = run("import", "log", "--format", "word", cwd=tmp_path, variables={"COLUMNS": "500"})
    assert done.returncode == 2
    assert f"'word' is not one of {', '.join(FORMATS)}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_document_of_no_known_format_says_what_did_not_fit(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text('{"colour": "red", "size": 3}')
    done = run("import", "log.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    known = ", ".join(FORMATS)
    assert done.stderr == (
        f"sapwood: log.json: not in a known format ({known}): log.json line 1 holds an object "
        "with the fields colour, size\n"
    )


def test_a_broken_record_costs_one_warning(tmp_path: Path) -> None:
    first, second = session("a", "one", "two").splitlines()[1:]
    header = session("a")
    (tmp_path / "log").write_text(f"{header}{first}\n{{broken\n[]\n{second}\n")
    done = run("import", "log", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sapwood: 2 records left out, the first: log line 3: not JSON" in done.stdout
    assert contents("a", tmp_path) == ["one", "two"]


def test_an_unreadable_message_and_an_invalid_number_cost_one_warning_each(tmp_path: Path) -> None:
    messages = '{"role":"user","content":"one"},{"role":"user","content":5},{"role":"assistant","content":"two"}'
    (tmp_path / "log").write_text(f'{{"messages":[{messages}],"score":NaN}}')
    [done] = imported("log", cwd=tmp_path)["imported"]
    assert done["warningKinds"] == {
        "record held numbers that JSON does not allow, now strings": 1,
        "message that could not be read kept as custom": 1,
    }
    [id] = done["ids"]
    lines = [json.loads(line) for line in run("export", id, cwd=tmp_path).stdout.splitlines()]
    assert [line["content"] for line in lines if line["type"].endswith("/message")] == ["one", "two"]
    assert [line["data"] for line in lines if line["type"] == "custom"] == [{"role": "user", "content": 5}]


def test_a_broken_file_costs_one_line_and_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "good").write_text(session("a", "one"))
    (tmp_path / "closed").write_text(session("b", "one"))
    done = run("import", "binary", "empty", "none", ".", "good", cwd=tmp_path)
    assert done.returncode == 1
    printed = [line.split(": ")[1] for line in done.stderr.splitlines()]
    assert sorted(printed) == ["binary", "empty", "none"]
    assert contents("a", tmp_path) == ["one"]
    assert run("check", cwd=tmp_path).stdout.startswith("2 sessions in ")


def test_a_last_line_that_was_cut_off_is_imported_with_the_whole_file(tmp_path: Path) -> None:
    whole = session("a", "one", "two")
    (tmp_path / "log").write_text(whole[:-20])
    cut = imported("log", cwd=tmp_path)["imported"][0]
    assert (cut["events"], cut["warningKinds"]) == (1, {"record left out": 1})
    assert "the last line is cut off" in cut["warnings"][0]
    (tmp_path / "log").write_text(whole)
    assert counts(imported("log", cwd=tmp_path)) == [0, 0, 0, 1, 1]
    assert contents("a", tmp_path) == ["one", "two"]


@pytest.mark.parametrize("path", STREAMED, ids=lambda path: str(path.relative_to(DATA)))
async def test_a_longer_version_of_a_log_adds_the_rest(tmp_path: Path, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    (tmp_path / "log").write_bytes(b"".join(lines[: len(lines) // 2 + 1]))
    first = imported("log", cwd=tmp_path)
    shutil.copy(path, tmp_path / "log")
    second = imported("log", cwd=tmp_path)
    once = imported("log", "--data-dir", "once", cwd=tmp_path)
    assert counts(once)[4] == counts(first)[4] + counts(second)[4]
    whole, grown = [await logs_in(tmp_path / data) for data in ("once", "sapwood-data")]
    for one, other in zip(whole, grown, strict=True):
        assert one == other


async def logs_in(data: Path) -> list[dict[str, Any]]:
    """All sessions and events of a store, without times of import and without ids, which vary with the first import."""
    store = Store(await open_file(data))
    try:
        found = []
        for session in (await contents_of(store, "default")).values():
            found.append({"session": session["session"]})
            found += [{**event, "timestamp": None} for event in session["events"]]
        assert len(found) > 1
        return found
    finally:
        await store.close()


def test_a_version_that_differs_becomes_a_fork(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one", "two"))
    run("import", "log", cwd=tmp_path)
    (tmp_path / "log").write_text(session("a", "one", "other", "more"))
    done = run("import", "log", cwd=tmp_path)
    assert done.returncode == 0
    assert "sapwood: 1 session differed from the stored one and became a fork of it" in done.stdout
    assert contents("a", tmp_path) == ["one", "two"]
    assert contents("a.2", tmp_path) == ["one", "other", "more"]
    assert counts(imported("log", cwd=tmp_path)) == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_import_leaves_no_process_and_the_next_completes_it(tmp_path: Path, how: signal.Signals) -> None:
    count = 20_000
    log = tmp_path / "long.jsonl"
    log.write_text(session("a", *["x" * 1_000] * count))
    process = subprocess.Popen(
        [SAPWOOD, "import", log, *at(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (parsers := psutil.Process(process.pid).children()):
        assert process.poll() is None
    process.send_signal(how)
    assert process.wait() != 0
    assert psutil.wait_procs(parsers)[1] == []
    imported(log, *at(tmp_path))
    assert len(run("export", "a", *at(tmp_path)).stdout.splitlines()) == 1 + count


def test_json_output_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "hello", "mood": "good"}]')
    found = imported("chat.json", "none.json", code=1, cwd=tmp_path)
    [one] = found["imported"]
    assert len(one.pop("ids")) == 1
    assert one == {
        "format": "openai",
        "files": ["chat.json"],
        "sessions": 1,
        "forks": 0,
        "otherNodes": 0,
        "known": 0,
        "events": 2,
        "warnings": ["1 user message lost mood"],
        "warningKinds": {"user message lost fields": 1},
    }
    assert found["failed"] == [{"files": ["none.json"], "message": "can't be read: No such file or directory"}]
    assert (found["dryRun"], found["skipped"]) == (False, [])


def test_roots_are_imported_under_the_given_parent(tmp_path: Path) -> None:
    (tmp_path / "top").write_text(session("top", "hello"))
    (tmp_path / "log").write_text(session("a", "one"))
    run("import", "top", cwd=tmp_path)
    assert imported("log", "--parent", "top", cwd=tmp_path)["imported"][0]["ids"] == ["a"]
    lines = [json.loads(line) for line in run("export", "top", "--tree", cwd=tmp_path).stdout.splitlines()]
    assert [line["id"] for line in lines if line["type"] == "session"] == ["top", "a"]
    refused = run("import", "log", "--parent", "none", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("sapwood: --parent: no session 'none' in space 'default' of SQLite file ")


def test_the_report_has_a_row_for_each_file_and_a_line_for_each_kind_of_warning(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(f'[{{"role": "user", "content": "{name}", "mood": "good"}}]')
    (tmp_path / "log").write_text(session("a", "one"))
    printed = run("import", "one.json", "two.json", "log", cwd=tmp_path).stdout.splitlines()
    rows = [" ".join(line.split()) for line in printed if line.strip() and "──" not in line]
    assert rows == [
        "File Format Sessions Forks Other nodes Events Already stored Warnings",
        "one.json openai 1 0 0 2 0 1",
        "two.json openai 1 0 0 2 0 1",
        "log sapwood 1 0 0 1 0 0",
        "all 3 0 0 5 0 2",
        "openai: 2 user messages lost mood",
    ]


def test_many_files_are_summed_by_format(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for number in range(25):
        (tmp_path / "logs" / f"{number}.jsonl").write_text(session(f"s{number}", "one"))
    printed = run("import", "logs", cwd=tmp_path).stdout.splitlines()
    assert "25 sapwood 25 0 0 25 0 0" in [" ".join(line.split()) for line in printed]


def test_a_progress_bar_is_shown_only_on_a_terminal(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        command: list[str | Path] = [SAPWOOD, "import", DATA / "tau-bench", "--json"]
        variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path, env=variables, close_fds=True
        )
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(controller, 65_536):
                shown += part
        except OSError:  # Linux reports the closed terminal so
            pass
        assert process.communicate()[0].startswith(b"{")
    finally:
        os.close(controller)
    assert b"Importing" in shown
    assert b"1.9/1.9 MB" in shown
    assert "Importing" not in run("import", DATA / "tau-bench", cwd=tmp_path).stderr


def test_other_spaces_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one"))
    for space in ("one", "other"):
        assert counts(imported("log", "--space", space, cwd=tmp_path)) == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("lenient", [True, False])
def test_a_run_that_leaves_out_a_conversation_exits_with_1(tmp_path: Path, lenient: bool) -> None:
    """A message that is left out does not count: the rest of its conversation is there."""
    whole = '{"messages":[{"role":"user","content":"one"}]}'
    broken = '{"messages":[{"role":"user","content":"two"},5]}' if lenient else '{"messages":5}'
    (tmp_path / "log").write_text(f"{whole}\n{broken}\n{whole.replace('one', 'three')}\n")
    done = run("import", "log", cwd=tmp_path)
    assert done.returncode == (0 if lenient else 1)
    assert ("log: 1 conversation left out: log line 2" in done.stderr) is not lenient
    document = json.loads(run("import", "log", "--json", "--dry-run", cwd=tmp_path).stdout)
    assert document["imported"][0]["known"] == (3 if lenient else 2)
    assert len(document["failed"]) == (0 if lenient else 1)
