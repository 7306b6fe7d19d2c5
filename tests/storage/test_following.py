"""A follower reads a file on in bounded memory, and waits for what other files hold."""

import json
from pathlib import Path

import pytest

from storage.formats import records
from storage.importing import NotYet, Target, follow
from storage.importing.follow import Follower
from storage.store import Store
from tests.formats.logs import DATA
from tests.storage.spaces import SPACE, assert_whole, nodes_of
from tests.storage.test_import_again import lines_of, texts

FORK = DATA / "deepseek-harness" / "subagent-fork-in-process"


async def test_a_line_that_is_too_long_costs_itself_even_before_it_has_its_end(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (records, follow):
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", 200)
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


async def test_a_file_that_needs_another_one_waits_for_it(store: Store) -> None:
    target = Target(store, SPACE)
    child, parent = (Follower(target, name, FORK / name) for name in ("session.1.jsonl", "session.jsonl"))
    for _ in range(2):
        with pytest.raises(NotYet):
            await child.advance(defer=True)
        assert await nodes_of(store) == []
    assert await parent.advance(defer=True)
    assert await child.advance(defer=True)
    for follower in (parent, child):
        await follower.finish()
    assert [(done.sessions, done.forks) for each in (parent, child) for done in each.results] == [(1, 0), (1, 1)]
    await assert_whole(store)
