"""Import, export and check as people and scripts run them: output and exit codes."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.sqlite.database import FILE
from tests.server.commands.runner import SAMPLES, run
from tests.server.process import at
from tests.storage.transfer.formats.logs import DATA, DEEPSEEK, OASST, TAU_BENCH


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_import_counts_what_it_made(location: Path | str) -> None:
    logs = [DATA / name for name in (*DEEPSEEK, TAU_BENCH, OASST)]
    done = run("import", *logs, *at(location))
    assert done.returncode == 0, done.stderr
    cells = [line.split() for line in done.stdout.splitlines()]
    rows = [[row[0].removeprefix(f"{DATA}/"), *row[1:6]] for row in cells if row and row[0].startswith(str(DATA))]
    assert [TAU_BENCH, "tau-bench", "100", "75", "25", "7,972"] in rows
    assert [OASST, "open-assistant", "60", "300", "0", "684"] in rows
    harness = [row for row in rows if row[1] == "deepseek-harness"]
    assert [sum(int(row[at].replace(",", "")) for row in harness) for at in (2, 3, 4, 5)] == [9, 1, 0, 2_725]
    assert done.stderr == ""
    assert "tau-bench: 621 tool messages lost name" in done.stdout
    checked = run("check", *at(location))
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("494 sessions in ")
    assert checked.stdout.endswith(": no problems\n")


def test_importing_the_same_file_again_adds_nothing(tmp_path: Path) -> None:
    [sample] = [path for path in SAMPLES if path.name == "greenhouse.jsonl"]
    assert run("import", sample, cwd=tmp_path).returncode == 0
    again = json.loads(run("import", sample, "--json", cwd=tmp_path).stdout)["imported"][0]
    assert [again[name] for name in ("sessions", "forks", "events", "known")] == [0, 0, 0, 4]
    other = run("import", sample, "--space", "other", cwd=tmp_path)
    assert other.returncode == 0
    assert run("check", cwd=tmp_path).stdout.startswith("8 sessions in ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["import"],
        ["import", "x", "--format", "word"],
        ["import", "x", "--space", "a/b"],
        ["export"],
        ["export", "x", "--format", "word"],
        ["serve", "--port", "70000"],
        ["serve", "--port", "word"],
        ["serve", "--workers", "0"],
        ["check", "--nonsense"],
        ["nonsense"],
        [],
    ],
)
def test_wrong_usage_is_exit_code_2(tmp_path: Path, arguments: list[str]) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_export_is_the_same_after_an_import(location: Path | str, tmp_path: Path) -> None:
    assert run("import", *SAMPLES, *at(location)).returncode == 0
    file = tmp_path / "tree.jsonl"
    written = run("export", "greenhouse", "--tree", "--output", file, *at(location))
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    assert run("import", file, "--space", "again", *at(location)).returncode == 0
    printed = run("export", "greenhouse", "--tree", "--space", "again", *at(location))
    assert printed.returncode == 0
    first, second = ([json.loads(line) for line in text.splitlines()] for text in (file.read_text(), printed.stdout))
    for line in (*first, *second):
        line.pop("createdAt", None)
    assert first == second
    assert [line["id"] for line in first if line["type"] == "session"] == [
        "greenhouse",
        "greenhouse-climate",
        "greenhouse-irrigation",
        "greenhouse-irrigation-drip",
    ]


def test_export_of_an_unknown_session_leaves_no_file(tmp_path: Path) -> None:
    assert run("import", *SAMPLES, cwd=tmp_path).returncode == 0
    done = run("export", "none", "--output", "out.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("sapwood: no session 'none' in space 'default' of SQLite file ")
    assert not (tmp_path / "out.jsonl").exists()


def test_an_export_into_a_missing_folder_fails(tmp_path: Path) -> None:
    assert run("import", *SAMPLES, cwd=tmp_path).returncode == 0
    done = run("export", "clock", "--output", "none/out.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert "can't write none/out.jsonl (No such file or directory)" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_check_finds_and_repairs_damage(tmp_path: Path) -> None:
    assert run("import", *SAMPLES, cwd=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "sapwood-data" / FILE)) as connection:
        connection.execute("DELETE FROM slots WHERE id = 'clock'")
        connection.execute("DELETE FROM commits WHERE session = 'live'")
        connection.commit()
    found = run("check", cwd=tmp_path)
    assert found.returncode == 1
    assert "default/clock has no slots: --repair helps, it gets empty ones" in found.stdout
    assert "default/live has the head 32, but its log ends at 0: events are lost" in found.stdout
    repaired = run("check", "--repair", "--json", cwd=tmp_path)
    assert repaired.returncode == 1
    document = json.loads(repaired.stdout)
    assert (document["sessions"], document["left"]) == (11, 1)
    assert {problem["id"]: problem["repaired"] for problem in document["problems"]} == {"clock": True, "live": False}
    with closing(sqlite3.connect(tmp_path / "sapwood-data" / FILE)) as connection:
        connection.execute("DELETE FROM slots WHERE id = 'clock-review'")
        for table in ("sessions", "nodes", "slots"):
            connection.execute(f"DELETE FROM {table} WHERE id = 'live'")
        connection.commit()
    assert run("check", "--repair", cwd=tmp_path).returncode == 0
    assert run("check", cwd=tmp_path).stdout.endswith(": no problems\n")
