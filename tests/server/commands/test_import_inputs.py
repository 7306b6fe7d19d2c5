"""Which files `sapwood import` reads, in which order, and what it says of those that it can't read."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.commands.imports.inputs import inputs
from tests.server.commands.importing import contents, counts, imported, session
from tests.server.commands.runner import run
from tests.storage.transfer.formats.logs import DATA


def test_a_folder_yields_its_logs_without_hidden_and_other_files(tmp_path: Path) -> None:
    for name in ("logs/b/two.jsonl", "logs/one.jsonl", "logs/.hidden.jsonl", "logs/.git/three.jsonl", "logs/four"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(session(Path(name).stem.strip("."), "hello"))
    (tmp_path / "logs" / "README.md").write_text("# Logs\n")
    found = imported("logs", cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["logs/four"], ["logs/one.jsonl"], ["logs/b/two.jsonl"]]
    assert (found["failed"], found["skipped"]) == ([], ["logs/README.md"])
    printed = run("import", "logs", cwd=tmp_path).stdout
    assert printed.endswith("Skipped, as neither name nor content is that of a log: logs/README.md\n")


def test_links_are_followed_but_each_file_is_read_once(tmp_path: Path) -> None:
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


def test_dangling_links_and_pipes_in_a_folder_are_reported(tmp_path: Path) -> None:
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


def test_a_file_in_a_folder_that_is_a_log_only_by_name_fails(tmp_path: Path) -> None:
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


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    done = run("import", "none.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "sapwood: none.jsonl: can't be read: No such file or directory\n"


def test_a_path_that_is_too_long_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(session("a", "one"))
    found = imported("x" * 300, "good", f"{'y' * 300}*", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["good"]]
    assert [failed["message"] for failed in found["failed"]] == ["can't be read: File name too long"] * 2


def test_an_unreadable_path_in_a_folder_costs_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good").write_text(session("a", "one"))
    (tmp_path / "logs" / "link").symlink_to("x" * 300)
    found = imported("logs", code=1, cwd=tmp_path)
    assert [each["files"] for each in found["imported"]] == [["logs/good"]]
    assert found["failed"] == [{"files": ["logs/link"], "message": "can't be read: File name too long"}]


def test_folders_nested_beyond_the_longest_path_cost_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def refused(path: Path) -> Iterator[Path]:  # as root may list any folder
        if path == tmp_path / "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refused)
    found = {each.name: each.problem for each in inputs([str(tmp_path)])}
    assert found == {
        str(tmp_path / "good"): None,
        str(tmp_path / "closed"): "can't be read: Permission denied",
    }


def test_an_invalid_path_is_a_problem(tmp_path: Path) -> None:
    found = [each.problem for each in inputs(["a\0b", "a\0*", str(tmp_path / "none")])]
    assert found == ["can't be read: embedded null byte", "can't be read: embedded null byte", None]


def test_files_that_name_each_other_may_be_given_in_any_order(tmp_path: Path) -> None:
    folder = DATA / "deepseek-harness" / "subagent-fork-in-process"
    files = [folder / name for name in ("session.jsonl", "session.1.jsonl")]
    forward = imported(*files, "--data-dir", "forward", cwd=tmp_path)
    backward = imported(*reversed(files), "--data-dir", "backward", cwd=tmp_path)
    assert counts(forward) == counts(backward)
    assert counts(forward)[:2] == [2, 1]
    by_file = [{each["files"][0]: each for each in found["imported"]} for found in (forward, backward)]
    assert by_file[0] == by_file[1]


def test_a_pipe_is_read_once_after_the_files_that_it_may_need(tmp_path: Path) -> None:
    folder = DATA / "deepseek-harness" / "subagent-fork-in-process"
    parent, child = (folder / name for name in ("session.jsonl", "session.1.jsonl"))
    os.mkfifo(tmp_path / "pipe")
    with writing(child, tmp_path / "pipe"):
        piped = imported("pipe", parent, "--data-dir", "piped", cwd=tmp_path)
    files = imported(child, parent, "--data-dir", "files", cwd=tmp_path)
    assert counts(piped) == counts(files)
    assert [each["warnings"] for each in piped["imported"]] == [each["warnings"] for each in files["imported"]]


def test_a_pipe_is_not_deferred(tmp_path: Path) -> None:
    child = DATA / "deepseek-harness" / "subagent-fork-in-process" / "session.1.jsonl"
    os.mkfifo(tmp_path / "pipe")
    with writing(child, tmp_path / "pipe"):
        piped = imported("pipe", "--data-dir", "piped", cwd=tmp_path)
    assert counts(piped) == counts(imported(child, "--data-dir", "files", cwd=tmp_path))


@contextmanager
def writing(path: Path, pipe: Path) -> Iterator[None]:
    """A process that writes a file into a pipe once."""
    with path.open("rb") as file, subprocess.Popen(["sh", "-c", 'exec cat > "$0"', pipe], stdin=file) as process:
        try:
            yield
        finally:
            process.kill()
