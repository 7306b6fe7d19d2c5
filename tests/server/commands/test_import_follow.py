"""`sapwood import --follow`: logs that grow, are replaced or appear while it runs, seen by what is in the store."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from storage.events import SurfaceHide, UserMessage
from storage.sqlite.database import open_file
from storage.store import Store
from tests.server.client import IN_TIME, Socket
from tests.server.commands.runner import SECONDS, run, where
from tests.server.conftest import Serve
from tests.server.process import SAPWOOD
from tests.storage.spaces import nodes_of
from tests.storage.transfer.formats.logs import DATA

TRAJECTORY = DATA / "swe-agent" / "marshmallow-1867.function_calling.traj"
FOLLOW = 'subscription { sessionEvents(sessionId: "a", fromSeq: 0) { seq ... on UserMessage { content } } }'


def header(id: str) -> str:
    return json.dumps({"type": "session", "format": "sapwood", "version": 1, "id": id}) + "\n"


def message(seq: int, content: str) -> str:
    return json.dumps({"seq": seq, "type": "user/message", "content": content}) + "\n"


def add(path: Path, content: str) -> None:
    with path.open("a") as file:
        file.write(content)


class Following:
    """A `sapwood import --follow` process, to be ended by a test as a person ends it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, dict[str, Any], str]:
        """Its exit code, its summary for machines, and what it said on the way."""
        self.process.send_signal(how)
        said, told = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, json.loads(said), told


@contextmanager
def following(place: Path | str, *paths: str | Path) -> Iterator[Following]:
    command = [SAPWOOD, "import", "--follow", "--json", *where(place), *paths]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield Following(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "log.jsonl"


@pytest.fixture
async def seen(data: Path) -> AsyncIterator[Store]:
    """The store, opened by another process than the one that follows."""
    store = Store(await open_file(data))
    yield store
    await store.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + IN_TIME
    while not await condition():
        assert time.monotonic() < deadline, "it never came"
        await asyncio.sleep(0.02)


async def texts(store: Store, id: str) -> list[str]:
    meta = await store.sessions.get("default", id)
    if meta is None:
        return []
    page = await store.sessions.events(meta, first=1_000)
    return [event.content if isinstance(event, UserMessage) else event.type for event in page.events]


async def come(store: Store, id: str, *expected: str) -> None:
    """Waits until a session has these messages."""

    async def has() -> bool:
        return await texts(store, id) == list(expected)

    await until(has)


async def test_a_log_that_is_written_is_seen_through_a_subscription(place: Path | str, log: Path, serve: Serve) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(place, log) as followed:
        async with Socket.open(serve().socket) as socket:
            query = '{ session(id: "a") { head } }'

            async def is_there() -> bool:
                found = await (await socket.subscribe(query)).next()
                return found["session"] is not None

            await until(is_there)
            events = await socket.subscribe(FOLLOW)
            for seq, content in enumerate(("one", "two", "three")):
                if seq:
                    add(log, message(seq, content))
                assert (await events.next())["sessionEvents"] == {"seq": seq, "content": content}
        code, summary, said = followed.end()
    assert (code, said) == (0, f"{log}: sapwood\n")
    [done] = summary["imported"]
    assert [done[name] for name in ("format", "sessions", "events", "known")] == ["sapwood", 1, 3, 0]


async def test_half_a_line_waits_for_its_other_half(data: Path, log: Path, seen: Store) -> None:
    line = message(1, "two")
    log.write_text(header("a") + message(0, "one") + line[:20])
    with following(data, log.parent) as followed:
        await come(seen, "a", "one")
        other = log.with_name("other.jsonl")
        add(log, line[20:-1])
        other.write_text(header("b") + message(0, "looked at later"))
        await come(seen, "b", "looked at later")
        assert await texts(seen, "a") == ["one"]
        add(log, "\n")
        await come(seen, "a", "one", "two")
        code, summary, _ = followed.end()
    assert (code, summary["imported"][0]["warnings"]) == (0, [])


async def test_a_last_line_without_its_end_is_taken_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one") + message(1, "two").rstrip())
    with following(data, log) as followed:
        await come(seen, "a", "one")
        assert followed.end()[0] == 0
    assert await texts(seen, "a") == ["one", "two"]


async def test_a_file_that_is_replaced_by_a_shorter_one_is_read_anew(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one") + message(1, "two"))
    with following(data, log) as followed:
        await come(seen, "a", "one", "two")
        new = log.with_name("new")
        new.write_text(header("b"))
        new.replace(log)
        add(log, message(0, "three"))
        await come(seen, "b", "three")
        code, summary, _ = followed.end()
    assert code == 0
    assert [done["ids"] for done in summary["imported"]] == [["a"], ["b"]]


async def test_a_file_that_is_renamed_and_replaced_between_two_looks_loses_nothing(
    data: Path, log: Path, seen: Store
) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        followed.process.send_signal(signal.SIGSTOP)
        add(log, message(1, "two") + message(2, "three"))
        log.rename(log.with_name("log.1"))
        log.write_text(header("b") + message(0, "four"))
        followed.process.send_signal(signal.SIGCONT)
        await come(seen, "b", "four")
        code, summary, _ = followed.end()
    assert code == 0
    assert await texts(seen, "a") == ["one", "two", "three"]
    assert [done["events"] for done in summary["imported"]] == [3, 1]


async def test_a_file_that_is_written_anew_in_its_place_is_read_anew(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        log.write_text(header("b") + message(0, "another that is longer") + message(1, "two"))
        await come(seen, "b", "another that is longer", "two")
        code, summary, _ = followed.end()
    assert code == 0
    assert [done["warnings"] for done in summary["imported"]] == [[], []]


async def test_a_file_that_appears_in_a_followed_folder_is_followed(data: Path, log: Path, seen: Store) -> None:
    folder = log.parent
    (folder / "a.jsonl").write_text(header("a") + message(0, "one"))
    with following(data, folder) as followed:
        await come(seen, "a", "one")
        (folder / "deep").mkdir()
        (folder / "deep" / "b.jsonl").write_text(header("b"))
        add(folder / "deep" / "b.jsonl", message(0, "two"))
        await come(seen, "b", "two")
        add(folder / "deep" / "b.jsonl", message(1, "three"))
        await come(seen, "b", "two", "three")
        assert followed.end()[0] == 0


async def test_a_document_that_is_written_again_longer_adds_the_rest(data: Path, tmp_path: Path, seen: Store) -> None:
    whole = json.loads(TRAJECTORY.read_text())
    half = {"trajectory": whole["trajectory"][:4], "history": whole["history"][:11], "info": {}}
    path = tmp_path / "run.traj"
    heads = []

    async def has_grown() -> bool:
        heads.append(max((node.session.head for node in await nodes_of(seen, "default")), default=0))
        return heads[-1] > heads[0]

    with following(data, path) as followed:
        for version in (half, whole):
            heads[:] = heads[-1:] or [0]
            path.with_name("new").write_text(json.dumps(version))
            path.with_name("new").replace(path)
            await until(has_grown)
        code, summary, _ = followed.end()
    assert code == 0
    [done] = summary["imported"]
    once = json.loads(run("import", TRAJECTORY, "--json", "--data-dir", tmp_path / "once").stdout)["imported"][0]
    assert [done[name] for name in ("sessions", "forks", "events")] == [1, 0, once["events"]]


async def test_what_is_hidden_by_others_meanwhile_stays_hidden(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        await seen.sessions.append("default", "a", [SurfaceHide(from_seq=0, to_seq=0)])
        add(log, message(1, "two") + message(2, "three"))
        await come(seen, "a", "one", "surface/hide", "two", "three")
        code, summary, _ = followed.end()
    assert code == 0
    assert (summary["imported"][0]["forks"], summary["imported"][0]["warnings"]) == (0, [])
    again = json.loads(run("import", log, "--json", *where(data)).stdout)["imported"][0]
    assert [again[name] for name in ("forks", "known", "events")] == [0, 1, 0]


async def test_an_import_of_the_same_log_meanwhile_adds_nothing_twice(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        followed.process.send_signal(signal.SIGSTOP)
        add(log, message(1, "two"))
        assert run("import", log, *where(data)).returncode == 0
        assert await texts(seen, "a") == ["one", "two"]
        followed.process.send_signal(signal.SIGCONT)
        add(log, message(2, "three"))
        await come(seen, "a", "one", "two", "three")
        assert followed.end()[0] == 0
    assert await texts(seen, "a") == ["one", "two", "three"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_it_ends_with_its_summary(data: Path, log: Path, seen: Store, how: signal.Signals) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        code, summary, said = followed.end(how)
    assert (code, said) == (0, f"{log}: sapwood\n")
    assert summary["failed"] == []
    assert [each["events"] for each in summary["imported"]] == [1]


async def test_it_ends_in_the_middle_of_a_long_log_and_says_so(data: Path, log: Path, seen: Store) -> None:
    count = 20_000
    log.write_text(header("a") + "".join(message(seq, "x" * 100) for seq in range(count)))

    async def has_begun() -> bool:
        return bool(await texts(seen, "a"))

    with following(data, log) as followed:
        await until(has_begun)
        code, summary, said = followed.end(signal.SIGTERM)
    assert code == 0
    [done] = summary["imported"]
    assert 0 < done["events"] < count
    assert said.endswith(f"{log}: not read to the end; import again to continue\n")
    again = json.loads(run("import", log, "--json", *where(data)).stdout)["imported"][0]
    assert [again[name] for name in ("known", "forks", "events")] == [1, 0, count - done["events"]]


async def test_a_file_that_vanishes_fails_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await come(seen, "a", "one")
        log.unlink()
        code, summary, said = followed.end()
    assert code == 1
    assert summary["failed"] == [{"files": [str(log)], "message": "can't be read: No such file or directory"}]
    assert "Traceback" not in said
    assert await texts(seen, "a") == ["one"]


async def test_what_cannot_be_looked_at_is_told_once_and_fails_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    log.with_name("link").symlink_to("x" * 300)
    with following(data, log.parent) as followed:
        await come(seen, "a", "one")
        log.with_name("other").write_text(header("b") + message(0, "found at the next search"))
        await come(seen, "b", "found at the next search")
        code, summary, said = followed.end()
    assert code == 1
    assert summary["failed"] == [{"files": [f"{log.parent}/link"], "message": "can't be read: File name too long"}]
    assert said.count("too long") == 2  # when it was met, and at the end


async def test_a_pipe_cannot_be_followed_and_keeps_nobody_waiting(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    os.mkfifo(log.with_name("pipe"))
    with following(data, log.with_name("pipe"), log) as followed:
        await come(seen, "a", "one")
        code, summary, _ = followed.end()
    assert code == 1
    pipe = f"{log.parent}/pipe"
    assert summary["failed"] == [{"files": [pipe], "message": f"{pipe}: only regular files can be followed"}]


async def test_what_is_no_log_is_told_once_and_fails_at_the_end(data: Path, log: Path, seen: Store) -> None:
    other = log.with_name("other.jsonl")
    log.write_text("hello\n")
    with following(data, log, other) as followed:
        other.write_text(header("a") + message(0, "one"))
        await come(seen, "a", "one")
        add(other, message(1, "two"))
        await come(seen, "a", "one", "two")
        code, summary, said = followed.end()
    assert code == 1
    assert [failed["files"] for failed in summary["failed"]] == [[str(log)]]
    assert said.count("not JSON") == 2  # when it was met, and at the end


@pytest.mark.parametrize("arguments", [["-"], ["log", "--dry-run"]])
def test_what_cannot_be_followed_is_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    done = run("import", "--follow", *arguments, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
