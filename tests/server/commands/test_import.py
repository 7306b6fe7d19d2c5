"""`sapwood import` as people and scripts run it: what it takes, what it says and what is in the store afterwards."""

import errno
import json
import os
import pty
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from server.commands.imports.inputs import inputs
from storage.sqlite.database import open_file
from storage.store import Store
from storage.transfer.formats.registry import FORMATS
from tests.server.commands.runner import SECONDS, run, where
from tests.server.process import SAPWOOD
from tests.storage.spaces import contents as contents_of
from tests.storage.transfer.formats.logs import DATA

HELLO = '[{"role": "user", "content": "hello"}]'
LOGS = sorted(path for path in DATA.rglob("*") if path.suffix in (".json", ".jsonl", ".traj"))
STREAMED = [path for path in LOGS if path.suffix == ".jsonl"]
COUNTS = ("sessions", "forks", "otherNodes", "known", "events")


def session(id: str, *contents: str, **header: Any) -> str:
    """A log of ours with a message for each content."""
    first = {"type": "session", "format": "sapwood", "version": 1, "id": id, **header}
    messages = [{"seq": seq, "type": "user/message", "content": content} for seq, content in enumerate(contents)]
    return "".join(json.dumps(line) + "\n" for line in (first, *messages))


def imported(*arguments: str | Path, code: int = 0, **given: Any) -> dict[str, Any]:
    """What an import says to machines."""
    done = run("import", "--json", *arguments, **given)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counts(document: dict[str, Any]) -> list[int]:
    """Sessions, forks, other nodes, those known and events, over all files."""
    return [sum(each[name] for each in document["imported"]) for name in COUNTS]


def contents(id: str, folder: Path) -> list[str]:
    """The messages of a session."""
    lines = run("export", id, cwd=folder).stdout.splitlines()
    return [json.loads(line)["content"] for line in lines[1:]]


def test_all_real_logs_come_in_at_once_and_again_add_nothing(place: Path | str) -> None:
    first = imported(DATA, *where(place))
    assert {each["files"][0] for each in first["imported"]} == {str(path) for path in LOGS}
    assert {each["format"] for each in first["imported"]} == set(FORMATS) - {"sapwood", "openai", "session-yaml"}
    assert first["failed"] == []
    assert counts(first) == [186, 380, 26, 0, 15_906]
    again = imported(DATA, *where(place))
    assert counts(again) == [0, 0, 0, 516, 0]
    # Files that waited for others come last.
    ids = [{each["files"][0]: sorted(each["ids"]) for each in found["imported"]} for found in (first, again)]
    assert ids[0] == ids[1]
    checked = run("check", *where(place))
    assert (checked.returncode, checked.stdout[:15]) == (0, "516 sessions in")


def test_a_dry_run_writes_nothing_and_counts_as_the_real_one_does(tmp_path: Path) -> None:
    dry = imported(DATA, "--dry-run", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    real = imported(DATA, cwd=tmp_path)
    assert (dry.pop("dryRun"), real.pop("dryRun")) == (True, False)
    assert dry == real


def test_a_dry_run_takes_account_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one"))
    run("import", "log", cwd=tmp_path)
    (tmp_path / "log").write_text(session("a", "one", "two"))
    dry = run("import", "log", "--dry-run", cwd=tmp_path)
    assert dry.stdout.endswith("Nothing was written: this was a dry run.\n")
    assert contents("a", tmp_path) == ["one"]
    assert counts(imported("log", "--dry-run", cwd=tmp_path)) == [0, 0, 0, 1, 1]
    assert counts(imported("log", cwd=tmp_path)) == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: str(path.relative_to(DATA)))
def test_a_format_is_told_by_the_content_whatever_the_name(tmp_path: Path, path: Path) -> None:
    shutil.copy(path, tmp_path / "notes.txt")
    [told] = imported("notes.txt", cwd=tmp_path)["imported"]
    [named] = imported(path, "--dry-run", cwd=tmp_path)["imported"]
    assert told["format"] == named["format"]
    assert told["format"] in FORMATS
    assert told["sessions"] > 0


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(HELLO)
    [found] = imported("log", "--format", "openai", cwd=tmp_path)["imported"]
    assert (found["format"], found["sessions"]) == ("openai", 1)
    refused = imported("log", "--format", "codex", code=1, cwd=tmp_path)
    assert [failed["files"] for failed in refused["failed"]] == [["log"]]


def test_a_format_that_is_not_known_is_wrong_usage(tmp_path: Path) -> None:
    done = run("import", "log", "--format", "word", cwd=tmp_path, variables={"COLUMNS": "500"})
    assert done.returncode == 2
    assert f"'word' is none of {', '.join(FORMATS)}" in done.stderr
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


def test_a_folder_gives_its_logs_without_hidden_ones_and_other_files(tmp_path: Path) -> None:
    for name in ("logs/b/two.jsonl", "logs/one.jsonl", "logs/.hidden.jsonl", "logs/.git/three.jsonl", "logs/four"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(session(Path(name).stem.strip("."), "hello"))
    (tmp_path / "logs" / "README.md").write_text("# Logs\n")
    found = imported("logs", cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["logs/four"], ["logs/one.jsonl"], ["logs/b/two.jsonl"]]
    assert (found["failed"], found["skipped"]) == ([], ["logs/README.md"])
    said = run("import", "logs", cwd=tmp_path).stdout
    assert said.endswith("Passed over, as no logs by name and content: logs/README.md\n")


def test_links_in_a_folder_lead_to_files_and_folders_each_once(tmp_path: Path) -> None:
    for name in ("real/a.jsonl", "real/deep/b.jsonl", "logs/z/c.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(session(Path(name).stem, "hello"))
    (tmp_path / "logs" / "p").symlink_to("../real")
    (tmp_path / "logs" / "q").symlink_to("../real")
    (tmp_path / "real" / "deep" / "up").symlink_to("..")
    (tmp_path / "logs" / "z" / "d.jsonl").symlink_to("c.jsonl")
    (tmp_path / "logs" / "z" / "round").symlink_to(tmp_path / "logs")
    found = imported("logs", cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [
        ["logs/p/a.jsonl"],
        ["logs/p/deep/b.jsonl"],
        ["logs/z/c.jsonl"],
    ]
    assert (found["failed"], found["skipped"]) == ([], [])


def test_what_a_folder_has_no_file_for_is_named(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("link", "link.jsonl"):
        (tmp_path / "logs" / name).symlink_to("nowhere")
    for name in ("pipe", "pipe.jsonl"):
        os.mkfifo(tmp_path / "logs" / name)
    found = imported("logs", code=1, cwd=tmp_path)
    assert found["failed"] == [
        {"files": ["logs/link.jsonl"], "message": "can't be read: No such file or directory"},
        {"files": ["logs/pipe.jsonl"], "message": "can't be read: neither a file nor a folder"},
    ]
    assert found["skipped"] == ["logs/link", "logs/pipe"]


def test_an_empty_path_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one"))
    done = run("import", "log", "", cwd=tmp_path)
    assert done.returncode == 2
    assert "a path is empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_file_of_a_folder_that_is_a_log_by_its_name_alone_fails(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "one.jsonl").write_text("nothing\n")
    found = imported("logs", code=1, cwd=tmp_path)
    assert [failed["files"] for failed in found["failed"]] == [["logs/one.jsonl"]]
    assert found["skipped"] == []


def test_globs_are_expanded_and_each_file_is_read_once(tmp_path: Path) -> None:
    for name in ("a1.jsonl", "a2.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(session(name, "hello"))
    found = imported("a*.jsonl", "a1.jsonl", tmp_path / "a2.jsonl", "none*", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["a1.jsonl"], ["a2.jsonl"]]
    assert found["failed"] == [{"files": ["none*"], "message": "can't be read: No such file or directory"}]


def test_standard_input_is_read(tmp_path: Path) -> None:
    [found] = imported("-", cwd=tmp_path, input=session("a", "one"))["imported"]
    assert (found["files"], found["format"], found["ids"]) == (["standard input"], "sapwood", ["a"])
    assert contents("a", tmp_path) == ["one"]


def test_a_broken_record_costs_one_warning(tmp_path: Path) -> None:
    first, second = session("a", "one", "two").splitlines()[1:]
    header = session("a")
    (tmp_path / "log").write_text(f"{header}{first}\n{{broken\n[]\n{second}\n")
    done = run("import", "log", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sapwood: 2 records left out, the first: log line 3: not JSON" in done.stdout
    assert contents("a", tmp_path) == ["one", "two"]


def test_a_message_that_cannot_be_read_and_a_number_that_is_none_cost_one_warning_each(tmp_path: Path) -> None:
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
    said = [line.split(": ")[1] for line in done.stderr.splitlines()]
    assert sorted(said) == ["binary", "empty", "none"]
    assert contents("a", tmp_path) == ["one"]
    assert run("check", cwd=tmp_path).stdout.startswith("2 sessions in ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("import", "none.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "sapwood: none.jsonl: can't be read: No such file or directory\n"


def test_a_path_that_is_too_long_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(session("a", "one"))
    found = imported("x" * 300, "good", f"{'y' * 300}*", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["good"]]
    assert [failed["message"] for failed in found["failed"]] == ["can't be read: File name too long"] * 2


def test_a_path_of_a_folder_that_cannot_be_looked_at_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good").write_text(session("a", "one"))
    (tmp_path / "logs" / "link").symlink_to("x" * 300)
    found = imported("logs", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["logs/good"]]
    assert found["failed"] == [{"files": ["logs/link"], "message": "can't be read: File name too long"}]


def test_folders_deeper_than_a_path_may_be_long_cost_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good").write_text(session("a", "one"))
    monkeypatch.chdir(tmp_path / "logs")
    for _ in range(20):
        Path("d" * 250).mkdir()
        os.chdir("d" * 250)
    found = imported("logs", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["logs/good"]]
    assert [failed["message"] for failed in found["failed"]] == ["can't be read: File name too long"]


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "good").write_text(session("a", "one"))
    listed = Path.iterdir

    def refused(path: Path) -> Iterator[Path]:  # root may list all folders
        if path == tmp_path / "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = {each.name: each.problem for each in inputs([str(tmp_path)])}
    assert found == {
        str(tmp_path / "good"): None,
        str(tmp_path / "closed"): "can't be read: Permission denied",
    }


def test_what_can_be_no_path_is_a_problem(tmp_path: Path) -> None:
    found = [each.problem for each in inputs(["a\0b", "a\0*", str(tmp_path / "none")])]
    assert found == ["can't be read: embedded null byte", "can't be read: embedded null byte", None]


def test_a_last_line_that_was_cut_comes_with_the_whole_file(tmp_path: Path) -> None:
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
    """Each session and each event of a store, without times of import and ids that tell how long a log was at first."""
    store = Store(await open_file(data))
    try:
        found = []
        for kept in (await contents_of(store, "default")).values():
            found.append({"session": kept["session"]})
            found += [{**event, "timestamp": None} for event in kept["events"]]
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
    assert "sapwood: 1 session differed from the one here and became a fork of it" in done.stdout
    assert contents("a", tmp_path) == ["one", "two"]
    assert contents("a.2", tmp_path) == ["one", "other", "more"]
    assert counts(imported("log", cwd=tmp_path)) == [0, 0, 0, 1, 0]


def test_files_that_name_each_other_may_come_in_any_order(tmp_path: Path) -> None:
    folder = DATA / "deepseek-harness" / "subagent-fork-in-process"
    files = [folder / name for name in ("session.jsonl", "session.1.jsonl")]
    forward = imported(*files, "--data-dir", "forward", cwd=tmp_path)
    backward = imported(*reversed(files), "--data-dir", "backward", cwd=tmp_path)
    assert counts(forward) == counts(backward)
    assert counts(forward)[:2] == [2, 1]
    by_file = [{each["files"][0]: each for each in found["imported"]} for found in (forward, backward)]
    assert by_file[0] == by_file[1]


def test_a_pipe_is_read_once_and_after_the_files_that_it_may_need(tmp_path: Path) -> None:
    folder = DATA / "deepseek-harness" / "subagent-fork-in-process"
    parent, child = (folder / name for name in ("session.jsonl", "session.1.jsonl"))
    os.mkfifo(tmp_path / "pipe")
    with writing(child, tmp_path / "pipe"):
        piped = imported("pipe", parent, "--data-dir", "piped", cwd=tmp_path)
    files = imported(child, parent, "--data-dir", "files", cwd=tmp_path)
    assert counts(piped) == counts(files)
    assert [each["warnings"] for each in piped["imported"]] == [each["warnings"] for each in files["imported"]]


def test_a_pipe_does_without_what_it_needs(tmp_path: Path) -> None:
    child = DATA / "deepseek-harness" / "subagent-fork-in-process" / "session.1.jsonl"
    os.mkfifo(tmp_path / "pipe")
    with writing(child, tmp_path / "pipe"):
        piped = imported("pipe", "--data-dir", "piped", cwd=tmp_path)
    assert counts(piped) == counts(imported(child, "--data-dir", "files", cwd=tmp_path))


@contextmanager
def writing(path: Path, pipe: Path) -> Iterator[None]:
    """A process that writes a file into a pipe, once."""
    with path.open("rb") as file, subprocess.Popen(["sh", "-c", 'exec cat > "$0"', pipe], stdin=file) as process:
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_import_that_is_ended_leaves_no_process_and_the_next_completes_it(
    tmp_path: Path, how: signal.Signals
) -> None:
    count = 20_000
    log = tmp_path / "long.jsonl"
    log.write_text(session("a", *["x" * 1_000] * count))
    process = subprocess.Popen(
        [SAPWOOD, "import", log, *where(tmp_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (parsers := psutil.Process(process.pid).children()):
        assert process.poll() is None
    process.send_signal(how)
    assert process.wait(SECONDS) != 0
    assert psutil.wait_procs(parsers, SECONDS)[1] == []
    imported(log, *where(tmp_path))
    assert len(run("export", "a", *where(tmp_path)).stdout.splitlines()) == 1 + count


def test_machines_get_one_document(tmp_path: Path) -> None:
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


def test_roots_come_under_the_parent_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "top").write_text(session("top", "hello"))
    (tmp_path / "log").write_text(session("a", "one"))
    run("import", "top", cwd=tmp_path)
    assert imported("log", "--parent", "top", cwd=tmp_path)["imported"][0]["ids"] == ["a"]
    lines = [json.loads(line) for line in run("export", "top", "--tree", cwd=tmp_path).stdout.splitlines()]
    assert [line["id"] for line in lines if line["type"] == "session"] == ["top", "a"]
    refused = run("import", "log", "--parent", "none", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("sapwood: --parent: no session 'none' in space 'default' of SQLite file ")


def test_people_get_a_row_for_each_file_and_a_line_for_each_kind_of_loss(tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_text(f'[{{"role": "user", "content": "{name}", "mood": "good"}}]')
    (tmp_path / "log").write_text(session("a", "one"))
    said = run("import", "one.json", "two.json", "log", cwd=tmp_path).stdout.splitlines()
    rows = [" ".join(line.split()) for line in said if line.strip() and "──" not in line]
    assert rows == [
        "File Format Sessions Forks Other nodes Events Here before Warnings",
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
    said = run("import", "logs", cwd=tmp_path).stdout.splitlines()
    assert "25 sapwood 25 0 0 25 0 0" in [" ".join(line.split()) for line in said]


def test_a_bar_shows_progress_on_a_terminal_alone(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        command = [SAPWOOD, "import", DATA / "tau-bench", "--json"]
        variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path, env=variables, close_fds=True
        )
        os.close(terminal)
        shown = b""
        try:
            while part := os.read(controller, 65_536):
                shown += part
        except OSError:  # how Linux says that the other side was closed
            pass
        assert process.communicate(timeout=SECONDS)[0].startswith(b"{")
    finally:
        os.close(controller)
    assert b"Importing" in shown
    assert b"1.9/1.9 MB" in shown
    assert "Importing" not in run("import", DATA / "tau-bench", cwd=tmp_path).stderr


def test_other_spaces_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(session("a", "one"))
    for space in ("one", "other"):
        assert counts(imported("log", "--space", space, cwd=tmp_path)) == [1, 0, 0, 0, 1]
