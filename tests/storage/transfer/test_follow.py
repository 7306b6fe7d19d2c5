"""A follower reads on in bounded memory, survives renames, and waits for sessions of other files."""

import asyncio
import json
from pathlib import Path

import psutil
import pytest

from storage.store import Store
from storage.transfer.formats.shared import limits
from storage.transfer.importing import MissingSessions, Target
from storage.transfer.importing.follow import Follower
from storage.transfer.importing.held import HeldFiles
from tests.storage.spaces import SPACE, assert_whole, nodes_of
from tests.storage.transfer.formats.logs import DATA
from tests.storage.transfer.imports import lines_of, texts

FORK = DATA / "deepseek-harness" / "subagent-fork-in-process"


async def test_a_line_that_is_too_long_costs_only_itself_even_while_incomplete(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_RECORD_BYTES", 200)
    path = tmp_path / "log"
    path.write_bytes(lines_of("a", "one"))
    follower = Follower(Target(store, SPACE), "log", path)
    assert await follower.advance(defer=False)
    for part in (b'{"seq": 1, "content": "', b"x" * 500, b"x" * 500, b'"}\n'):
        with path.open("ab") as file:
            file.write(part)
        assert await follower.advance(defer=False)
    with path.open("ab") as file:
        file.write(json.dumps({"seq": 1, "type": "user/message", "content": "two"}).encode() + b"\n")
    assert await follower.advance(defer=False)
    await follower.finish()
    assert await texts(store, "a") == ["one", "two"]
    assert [done.warnings for done in follower.results] == [
        ["1 record left out, log line 3: longer than 200 bytes"],
    ]
    await assert_whole(store)


def many(id: str) -> tuple[bytes, list[str]]:
    """A log with more lines than are read in one turn, and their contents."""
    contents = [f"{number} {'x' * 1_000}" for number in range(200)]
    return lines_of(id, *contents), contents


async def stopped_midway(store: Store, path: Path) -> Follower:
    """A follower that was stopped right after it began to read a file."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_soon(stop.set)
    follower = Follower(Target(store, SPACE), "log", path, stopped=stop.is_set)
    assert await follower.advance(defer=False)
    await follower.finish()
    assert follower.is_behind
    return follower


async def test_it_stops_between_lines_and_another_follower_continues_there(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    content, contents = many("a")
    path.write_bytes(content)
    first = await stopped_midway(store, path)
    imported = await texts(store, "a")
    assert 0 < len(imported) < len(contents)
    assert imported == contents[: len(imported)]
    second = Follower(Target(store, SPACE), "log", path)
    assert await second.advance(defer=False)
    await second.finish()
    assert not second.is_behind
    assert await texts(store, "a") == contents
    results = [done for each in (first, second) for done in each.results]
    assert [(done.events, done.warnings) for done in results] == [
        (len(imported), []),
        (len(contents) - len(imported), []),
    ]
    await assert_whole(store)


async def test_it_stops_between_records_of_a_document_and_another_follower_continues_there(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text(json.dumps([[{"role": "user", "content": content}] for content in many("a")[1]]))
    first = await stopped_midway(store, path)
    imported = first.results[0].sessions
    assert 0 < imported < 200
    second = Follower(Target(store, SPACE), "log", path)
    assert await second.advance(defer=False)
    await second.finish()
    assert (second.results[0].sessions, second.results[0].known) == (200 - imported, imported)
    await assert_whole(store)


async def test_lines_written_since_the_last_poll_are_imported_at_the_end(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    whole = lines_of("a", "one", "two", "three", "four")
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    follower = Follower(Target(store, SPACE), "log", path)
    assert await follower.advance(defer=False)
    path.write_bytes(whole.rstrip())
    await follower.finish()
    assert await texts(store, "a") == ["one", "two", "three", "four"]
    assert [done.warnings for done in follower.results] == [[]]


def add(path: Path, id: str, *contents: str, end: bytes = b"\n") -> None:
    """Appends the last of these lines to a log that has the others."""
    with path.open("ab") as file:
        file.write(lines_of(id, *contents).splitlines()[-1] + end)


async def test_a_renamed_file_is_read_to_its_end_before_its_replacement(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(lines_of("a", "one"))
    follower = Follower(Target(store, SPACE), "log", path)
    assert await follower.advance(defer=False)
    add(path, "a", "one", "two")
    add(path, "a", "one", "two", "three", end=b"")
    path.rename(tmp_path / "log.1")
    path.write_bytes(lines_of("b", "four"))
    assert await follower.advance(defer=False)
    assert await texts(store, "a") == ["one", "two", "three"]
    assert await texts(store, "b") == ["four"]
    await follower.finish()
    assert [(done.events, done.warnings) for done in follower.results] == [(3, []), (1, [])]
    assert follower.problem is None
    await assert_whole(store)


async def test_a_renamed_file_without_a_replacement_is_read_on(store: Store, tmp_path: Path) -> None:
    path, renamed = tmp_path / "log", tmp_path / "log.1"
    path.write_bytes(lines_of("a", "one"))
    follower = Follower(Target(store, SPACE), "log", path)
    assert await follower.advance(defer=False)
    add(path, "a", "one", "two")
    path.rename(renamed)
    assert not await follower.advance(defer=False)
    assert follower.problem == "can't be read: No such file or directory"
    assert await texts(store, "a") == ["one", "two"]
    add(renamed, "a", "one", "two", "three")
    await follower.finish()
    assert await texts(store, "a") == ["one", "two", "three"]
    assert follower.problem == "can't be read: No such file or directory"


async def test_only_a_limited_number_of_files_is_held_open_the_last_to_grow(store: Store, tmp_path: Path) -> None:
    held = HeldFiles(limit=2)
    paths = [tmp_path / str(number) for number in range(5)]
    followers = [Follower(Target(store, SPACE), path.name, path, held=held) for path in paths]
    for path, follower in zip(paths, followers, strict=True):
        path.write_bytes(lines_of(path.name, "one"))
        assert await follower.advance(defer=False)
    add(paths[0], "0", "one", "two")
    assert await followers[0].advance(defer=False)
    assert open_in(tmp_path) == {"0", "4"}
    for path, follower in zip(paths, followers, strict=True):
        add(path, path.name, *texts_of(path), "last")
        path.rename(path.with_name(f"{path.name}.old"))
        assert not await follower.advance(defer=False)
    assert [(await texts(store, path.name))[-1] for path in paths] == ["last", "one", "one", "one", "last"]
    for follower in followers:
        await follower.finish()
    assert open_in(tmp_path) == set()


async def test_a_deleted_file_is_read_to_its_end_and_released(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(lines_of("a", "one"))
    held = HeldFiles()
    follower = Follower(Target(store, SPACE), "log", path, held=held)
    assert await follower.advance(defer=False)
    add(path, "a", "one", "two")
    path.unlink()
    assert not await follower.advance(defer=False)
    assert await texts(store, "a") == ["one", "two"]
    assert held.open(follower) is None
    await follower.finish()


def texts_of(path: Path) -> list[str]:
    return [json.loads(line)["content"] for line in path.read_bytes().splitlines()[1:]]


def open_in(folder: Path) -> set[str]:
    """The names of the files in a folder that this process has open."""
    return {Path(file.path).name for file in psutil.Process().open_files() if Path(file.path).parent == folder}


async def test_a_file_that_needs_another_is_deferred_until_that_is_imported(store: Store) -> None:
    target = Target(store, SPACE)
    child, parent = (Follower(target, name, FORK / name) for name in ("session.1.jsonl", "session.jsonl"))
    for _ in range(2):
        with pytest.raises(MissingSessions):
            await child.advance(defer=True)
        assert await nodes_of(store) == []
    assert await parent.advance(defer=True)
    assert await child.advance(defer=True)
    for follower in (parent, child):
        await follower.finish()
    assert [(done.sessions, done.forks) for each in (parent, child) for done in each.results] == [(1, 0), (1, 1)]
    await assert_whole(store)
