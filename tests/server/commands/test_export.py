"""`sapwood export` as people and scripts run it: what it writes and where, and its errors."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage.sqlite.database import FILE
from tests.server.commands.runner import SAMPLES, run
from tests.server.process import SAPWOOD, at

FORMATS = ("jsonl", "yaml", "openai")
GREENHOUSE = ["greenhouse", "greenhouse-climate", "greenhouse-irrigation", "greenhouse-irrigation-drip"]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A folder whose store holds the samples."""
    assert run("import", *SAMPLES, cwd=tmp_path).returncode == 0
    return tmp_path


def exported(folder: Path, *arguments: str | Path) -> str:
    done = run("export", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def texts(folder: Path, format: str, id: str, *options: str) -> Any:
    """The texts of a session as exported in this format."""
    written = exported(folder, id, "--format", format, *options)
    return yaml.safe_load(written)["entries"] if format == "yaml" else json.loads(written)


@pytest.mark.parametrize("format", ["yaml", "openai"])
def test_a_tree_is_imported_again_with_the_same_texts(filled: Path, format: str) -> None:
    assert exported(filled, "greenhouse", "--tree", "--format", format, "--output", "tree") == ""
    done = run("import", "tree", "--space", "again", "--json", cwd=filled)
    assert done.returncode == 0
    [imported] = json.loads(done.stdout)["imported"]
    assert (imported["sessions"], imported["warnings"]) == (len(GREENHOUSE), [])
    before = [texts(filled, format, id) for id in GREENHOUSE]
    assert all(before)
    assert sorted(map(str, before)) == sorted(
        str(texts(filled, format, id, "--space", "again")) for id in imported["ids"]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_session_is_imported_again_on_either_store(location: Path | str, tmp_path: Path, format: str) -> None:
    assert run("import", *SAMPLES, *at(location)).returncode == 0
    file = tmp_path / "clock"
    assert run("export", "clock", "--format", format, "--output", file, *at(location)).returncode == 0
    done = run("import", file, "--space", "again", "--json", *at(location))
    assert done.returncode == 0
    [imported] = json.loads(done.stdout)["imported"]
    assert (imported["sessions"], imported["known"]) == (1, 0)


def test_the_default_format_is_jsonl(filled: Path) -> None:
    assert exported(filled, "clock") == exported(filled, "clock", "--format", "jsonl")
    assert json.loads(exported(filled, "clock").split("\n")[0])["id"] == "clock"


def test_openai_of_a_session_is_one_list_and_a_newline(filled: Path) -> None:
    written = exported(filled, "clock", "--format", "openai")
    assert {message["role"] for message in json.loads(written)} >= {"user", "assistant"}
    assert written.endswith("]\n")


def test_a_tree_is_a_stream_of_documents_or_a_line_for_each_session(filled: Path) -> None:
    stream = exported(filled, "greenhouse", "--tree", "--format", "yaml")
    assert [read["sessionId"] for read in yaml.safe_load_all(stream)] == GREENHOUSE
    lines = exported(filled, "greenhouse", "--tree", "--format", "openai").split("\n")
    assert [json.loads(line)["sessionId"] for line in lines[:-1]] == GREENHOUSE
    assert lines[-1] == ""


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("options", [[], ["--tree"]], ids=["alone", "tree"])
def test_an_unknown_session_leaves_no_file(filled: Path, format: str, options: list[str]) -> None:
    done = run("export", "none", "--format", format, *options, "--output", "out", cwd=filled)
    assert done.returncode == 1
    assert done.stderr.startswith("sapwood: no session 'none' in space 'default' of SQLite file ")
    assert not (filled / "out").exists()


def test_an_unknown_format_is_wrong_usage_that_names_the_known_ones(filled: Path) -> None:
    done = run("export", "clock", "--format", "word", cwd=filled)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(format in done.stderr for format in FORMATS)


def test_a_failed_export_leaves_the_previous_file(filled: Path) -> None:
    (filled / "out").write_text("before")
    with closing(sqlite3.connect(filled / "sapwood-data" / FILE)) as connection:
        connection.execute("DELETE FROM commits WHERE session = 'greenhouse-irrigation-drip'")
        connection.commit()
    done = run("export", "greenhouse", "--tree", "--output", "out", cwd=filled)
    assert done.returncode == 1
    assert "the store is damaged, run `sapwood check`" in done.stderr
    assert (filled / "out").read_text() == "before"
    assert sorted(path.name for path in filled.iterdir()) == ["out", "sapwood-data"]


def test_an_existing_file_is_replaced(filled: Path) -> None:
    (filled / "out").write_text("before")
    exported(filled, "clock", "--output", "out")
    assert (filled / "out").read_text() == exported(filled, "clock")


@pytest.mark.parametrize("format", FORMATS)
def test_a_closed_pipe_ends_the_export_silently(filled: Path, format: str) -> None:
    command: list[str | Path] = [SAPWOOD, "export", "greenhouse", "--tree", "--format", format]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=filled)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait() == 1
    assert process.stderr.read() == ""
    process.stderr.close()
