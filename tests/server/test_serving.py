"""`serve` and `demo` from the command line: output, exit codes, and errors at start."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from server.settings import Settings
from storage.sqlite.database import FILE
from tests.server.client import IN_TIME, begin
from tests.server.commands.runner import SECONDS, ask, end, run, running, url
from tests.server.process import at


def test_every_setting_is_a_flag_and_a_variable() -> None:
    text = run("serve", "--help").stdout
    for name in Settings.model_fields:
        assert f"--{name.replace('_', '-')} " in text
        assert f"SAPWOOD_{name.upper()}" in text


def test_serve_prints_where_the_data_are_and_ends_with_0(location: Path | str) -> None:
    with running("serve", "--port", "0", *at(location)) as (process, line):
        name = f"SQLite file {location}/{FILE}" if isinstance(location, Path) else "MongoDB 127.0.0.1:"
        assert line.startswith(f"Sapwood 0.1.0 keeps its data in {name}")
        assert re.search(r" and listens on http://127\.0\.0\.1:\d+/graphql\n$", line)
        assert ask(line, "{viewer{space}}") == {"viewer": {"space": "default"}}
        assert end(process) == 0
        assert process.communicate() == ("", "")


@pytest.mark.parametrize("slashes", [3, 4])
def test_the_url_of_an_sqlite_file_names_it(tmp_path: Path, slashes: int) -> None:
    """Three slashes are followed by a path from the working folder, four begin an absolute one."""
    path = tmp_path / "a folder" / "file.db"
    url = "sqlite:///" + ("a%20folder/file.db" if slashes == 3 else str(path).replace(" ", "%20"))
    with running("serve", "--port", "0", "--database-url", url, cwd=tmp_path) as (process, line):
        assert "file.db" in line
        assert ask(line, 'mutation{createSession(input:{id:"x"}){session{id}}}') is not None
        assert end(process) == 0
    assert path.exists()
    exported = run("export", "x", "--database-url", url, cwd=tmp_path)
    assert (exported.returncode, '"id":"x"' in exported.stdout) == (0, True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite://", "starts with 'sqlite'"),
        ("sqlite:///", "comes the path of a file"),
        ("sqlite:///:memory:", "comes the path of a file"),
        ("sqlite:///a.db?mode=ro", "comes the path of a file"),
        ("sqlite:///folder/", "comes the path of a file"),
        ("postgresql://a/b", "use mongodb://… or sqlite:///path/file.db"),
    ],
)
@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["check"]])
def test_a_url_of_no_store_is_an_error(tmp_path: Path, command: list[str], url: str, reason: str) -> None:
    done = run(*command, "--database-url", url, cwd=tmp_path)
    assert done.returncode == 1
    assert reason in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_reads_makes_no_file_of_a_url(tmp_path: Path) -> None:
    done = run("check", "--database-url", "sqlite:///file.db", cwd=tmp_path)
    assert (done.returncode, "there is no file.db" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_flags_win_over_variables(tmp_path: Path) -> None:
    variables = {**os.environ, "SAPWOOD_DATA_DIR": str(tmp_path / "variable"), "SAPWOOD_PORT": "0"}
    with running("serve", env=variables) as (_, line):
        assert str(tmp_path / "variable") in line
    with running("serve", "--data-dir", tmp_path / "flag", env=variables) as (_, line):
        assert str(tmp_path / "flag") in line


def test_interrupting_serve_is_not_a_failure(tmp_path: Path) -> None:
    with running("serve", "--port", "0", "--data-dir", tmp_path) as (process, _):
        assert end(process, signal.SIGINT) == 0
        assert process.communicate() == ("", "")


@pytest.mark.parametrize("workers", [1, 2])
async def test_sockets_are_closed_with_1012(tmp_path: Path, workers: int) -> None:
    with running("serve", "--port", "0", "--data-dir", tmp_path, "--workers", str(workers)) as (process, line):
        socket = await begin(f"{url(line)}/graphql".replace("http", "ws", 1))
        query = "subscription{spaceEvents{seq}}"
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}}))
        process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionClosed):
            while True:
                assert "complete" not in str(await socket.recv())
        assert socket.close_code == 1012
        assert process.wait(SECONDS) == 0


def test_workers_share_the_port(location: Path | str) -> None:
    with running("serve", "--port", "0", "--workers", "2", *at(location)) as (process, line):
        created = ask(line, 'mutation{createSession(input:{id:"x"}){session{id}}}')
        assert created == {"createSession": {"session": {"id": "x"}}}
        for _ in range(20):
            assert ask(line, '{session(id:"x"){head}}') == {"session": {"head": 0}}
        children = psutil.Process(process.pid).children()
        assert sum("spawn_main" in " ".join(child.cmdline()) for child in children) == 2
        assert end(process) == 0


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        done = run("serve", "--port", str(port), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"sapwood: can't listen on 127.0.0.1 port {port} (Address already in use): "
        "stop the program that uses the port, or use another --port (0 picks a free one)\n"
    )


def test_an_address_of_another_machine_is_an_error(tmp_path: Path) -> None:
    for host in ("192.0.2.1", "no.such.host.invalid"):
        done = run("serve", "--port", "0", "--host", host, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.search(r"as --host$|another --host$", done.stderr.strip()), done.stderr


WRITING = [
    ["serve", "--port", "0"],
    ["import", "chat.json"],
    ["demo", "--port", "0"],
    ["keys", "create", "--role", "admin"],
]
READING = [["export", "x"], ["check"], ["keys", "list"], ["keys", "revoke", "0" * 16]]
COMMANDS = [*WRITING, *READING]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_only_reads_makes_no_store(tmp_path: Path, command: list[str]) -> None:
    done = run(*command, "--data-dir", "mistyped", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sapwood: there is no sapwood.db in mistyped: name the data folder with --data-dir\n"
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_that_is_not_a_database_is_an_error(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE).write_text("in the way" * 1000)
    done = run(*command, "--data-dir", "data", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not an SQLite file: move it away" in done.stderr


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_a_data_folder_that_cannot_be_written_is_an_error(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run(*command, "--data-dir", "file/data", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sapwood: can't write the data folder file/data (")
    assert "name another one with SAPWOOD_DATA_DIR" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("version", "told"), [(99, "a newer Sapwood (schema version 99"), (1, "an earlier pre-release of Sapwood")]
)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_file_of_another_version_is_an_error(tmp_path: Path, command: list[str], version: int, told: str) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / FILE)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    done = run(*command, "--data-dir", "data", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"was written by {told}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("url", ["mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=200", "mongodb://%", "mysql://x"])
def test_a_database_that_cannot_be_opened_is_an_error(tmp_path: Path, url: str) -> None:
    done = run("serve", "--port", "0", "--database-url", url, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "SAPWOOD_DATABASE_URL" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def read_until(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    text = ""
    while word not in text:
        line = process.stdout.readline()
        assert line, text
        text += line
    return text


def test_the_demo_shows_a_forest_and_something_live(location: Path | str, tmp_path: Path) -> None:
    no_page = ("--frontend-dir", tmp_path / "no-page")
    with running("demo", "--port", "0", *at(location), *no_page) as (process, line):
        told = read_until(process, "/graphql?query=")
        query = told[told.index("curl ") : told.index("\n\n2. ")]
        answer = subprocess.run(["sh", "-c", query], capture_output=True, text=True, timeout=SECONDS, check=True)
        nodes = json.loads(answer.stdout)["data"]["forest"]["nodes"]
        assert {"greenhouse", "journey", "clock", "greenhouse-irrigation-drip"} <= {node["id"] for node in nodes}
        assert "ARCHIVED" in {node["status"] for node in nodes}
        subscription = told[told.index(sys.executable.rsplit("/", 1)[0]) : told.index("\n\n3. ")]
        watching = subprocess.Popen(
            ["sh", "-c", subscription.replace("print(message)", "print(message, flush=True)")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert watching.stdout is not None
        seen = [watching.stdout.readline() for _ in range(5)]
        assert "connection_ack" in seen[0]
        assert all("spaceEvents" in message for message in seen[1:]), seen
        page = httpx.get(
            told[told.rindex("http") :].strip(), headers={"accept": "text/html,*/*;q=0.8"}, timeout=IN_TIME
        )
        assert len(page.json()["data"]["forest"]["nodes"]) >= 11
        assert end(process) == 0
        watching.communicate(timeout=SECONDS)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    with running("demo", "--port", "0", *at(location)) as (process, line):
        labels = [node["label"] for node in ask(line, "{roots{label}}")["roots"]]
        assert labels.count("Greenhouse: the week") == 1
        assert labels.count("Live replays") <= 1
        assert end(process) == 0
    assert run("check", *at(location)).returncode == 0


def test_the_demo_prints_the_address_of_the_page_if_it_is_built(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>A page</title>")
    arguments = ("--port", "0", "--data-dir", tmp_path / "data", "--frontend-dir", tmp_path)
    with running("demo", *arguments) as (process, _):
        read_until(process, "3. Open in a browser:")
        told = read_until(process, "http")
        assert "A page" in httpx.get(told.strip(), timeout=IN_TIME).text
        assert end(process) == 0
