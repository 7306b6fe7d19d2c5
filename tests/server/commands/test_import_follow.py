"""`sapwood import --follow`: files that grow, are replaced or appear while it runs."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.events import SurfaceHide
from storage.sqlite.database import open_file
from storage.store import Store
from tests.server.client import Socket
from tests.server.commands.following import add, following, header, message, texts, until, wait_for
from tests.server.commands.runner import run
from tests.server.conftest import Serve
from tests.server.process import at
from tests.storage.spaces import nodes_of
from tests.storage.transfer.formats.logs import DATA

TRAJECTORY = DATA / "swe-agent" / "marshmallow-1867.function_calling.traj"


FOLLOW = 'subscription { sessionEvents(sessionId: "a", fromSeq: 0) { seq ... on UserMessage { content } } }'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "log.jsonl"


@pytest.fixture
async def seen(data: Path) -> AsyncIterator[Store]:
    """The store, opened by a process other than the one that follows."""
    store = Store(await open_file(data))
    yield store
    await store.close()


async def test_a_growing_log_is_seen_through_a_subscription(location: Path | str, log: Path, serve: Serve) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(location, log) as followed:
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
        code, summary, news = followed.end()
    assert (code, news) == (0, f"{log}: sapwood\n")
    [done] = summary["imported"]
    assert [done[name] for name in ("format", "sessions", "events", "known")] == ["sapwood", 1, 3, 0]


async def test_half_a_line_waits_for_its_other_half(data: Path, log: Path, seen: Store) -> None:
    line = message(1, "two")
    log.write_text(header("a") + message(0, "one") + line[:20])
    with following(data, log.parent) as followed:
        await wait_for(seen, "a", "one")
        other = log.with_name("other.jsonl")
        add(log, line[20:-1])
        other.write_text(header("b") + message(0, "looked at later"))
        await wait_for(seen, "b", "looked at later")
        assert await texts(seen, "a") == ["one"]
        add(log, "\n")
        await wait_for(seen, "a", "one", "two")
        code, summary, _ = followed.end()
    assert (code, summary["imported"][0]["warnings"]) == (0, [])


async def test_a_last_line_without_a_newline_is_imported_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one") + message(1, "two").rstrip())
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        assert followed.end()[0] == 0
    assert await texts(seen, "a") == ["one", "two"]


async def test_a_file_replaced_by_a_shorter_one_is_read_from_the_start(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one") + message(1, "two"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one", "two")
        new = log.with_name("new")
        new.write_text(header("b"))
        new.replace(log)
        add(log, message(0, "three"))
        await wait_for(seen, "b", "three")
        code, summary, _ = followed.end()
    assert code == 0
    assert [done["ids"] for done in summary["imported"]] == [["a"], ["b"]]


async def test_a_file_renamed_and_replaced_between_two_polls_loses_nothing(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        followed.process.send_signal(signal.SIGSTOP)
        add(log, message(1, "two") + message(2, "three"))
        log.rename(log.with_name("log.1"))
        log.write_text(header("b") + message(0, "four"))
        followed.process.send_signal(signal.SIGCONT)
        await wait_for(seen, "b", "four")
        code, summary, _ = followed.end()
    assert code == 0
    assert await texts(seen, "a") == ["one", "two", "three"]
    assert [done["events"] for done in summary["imported"]] == [3, 1]


async def test_a_rewritten_file_is_read_from_the_start(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        log.write_text(header("b") + message(0, "another that is longer") + message(1, "two"))
        await wait_for(seen, "b", "another that is longer", "two")
        code, summary, _ = followed.end()
    assert code == 0
    assert [done["warnings"] for done in summary["imported"]] == [[], []]


async def test_a_file_that_appears_in_a_followed_folder_is_followed(data: Path, log: Path, seen: Store) -> None:
    folder = log.parent
    (folder / "a.jsonl").write_text(header("a") + message(0, "one"))
    with following(data, folder) as followed:
        await wait_for(seen, "a", "one")
        (folder / "deep").mkdir()
        (folder / "deep" / "b.jsonl").write_text(header("b"))
        add(folder / "deep" / "b.jsonl", message(0, "two"))
        await wait_for(seen, "b", "two")
        add(folder / "deep" / "b.jsonl", message(1, "three"))
        await wait_for(seen, "b", "two", "three")
        assert followed.end()[0] == 0


async def test_a_document_that_has_grown_adds_the_rest(data: Path, tmp_path: Path, seen: Store) -> None:
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


async def test_a_hide_by_someone_else_stays(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        await seen.sessions.append("default", "a", [SurfaceHide(from_seq=0, to_seq=0)])
        add(log, message(1, "two") + message(2, "three"))
        await wait_for(seen, "a", "one", "surface/hide", "two", "three")
        code, summary, _ = followed.end()
    assert code == 0
    assert (summary["imported"][0]["forks"], summary["imported"][0]["warnings"]) == (0, [])
    again = json.loads(run("import", log, "--json", *at(data)).stdout)["imported"][0]
    assert [again[name] for name in ("forks", "known", "events")] == [0, 1, 0]


async def test_another_import_of_the_same_log_adds_nothing_twice(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        followed.process.send_signal(signal.SIGSTOP)
        add(log, message(1, "two"))
        assert run("import", log, *at(data)).returncode == 0
        assert await texts(seen, "a") == ["one", "two"]
        followed.process.send_signal(signal.SIGCONT)
        add(log, message(2, "three"))
        await wait_for(seen, "a", "one", "two", "three")
        assert followed.end()[0] == 0
    assert await texts(seen, "a") == ["one", "two", "three"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_it_ends_with_a_summary(data: Path, log: Path, seen: Store, how: signal.Signals) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        code, summary, news = followed.end(how)
    assert (code, news) == (0, f"{log}: sapwood\n")
    assert summary["failed"] == []
    assert [each["events"] for each in summary["imported"]] == [1]


async def test_it_ends_in_the_middle_of_a_long_log_and_says_so(data: Path, log: Path, seen: Store) -> None:
    count = 20_000
    log.write_text(header("a") + "".join(message(seq, "x" * 100) for seq in range(count)))

    async def has_begun() -> bool:
        return bool(await texts(seen, "a"))

    with following(data, log) as followed:
        await until(has_begun)
        code, summary, news = followed.end(signal.SIGTERM)
    assert code == 0
    [done] = summary["imported"]
    assert 0 < done["events"] < count
    assert news.endswith(f"{log}: not read to the end; import again to continue\n")
    again = json.loads(run("import", log, "--json", *at(data)).stdout)["imported"][0]
    assert [again[name] for name in ("known", "forks", "events")] == [1, 0, count - done["events"]]


async def test_a_file_that_vanishes_fails_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    with following(data, log) as followed:
        await wait_for(seen, "a", "one")
        log.unlink()
        code, summary, news = followed.end()
    assert code == 1
    assert summary["failed"] == [{"files": [str(log)], "message": "can't be read: No such file or directory"}]
    assert "Traceback" not in news
    assert await texts(seen, "a") == ["one"]


async def test_an_unreadable_path_is_reported_once_and_fails_at_the_end(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    log.with_name("link").symlink_to("x" * 300)
    with following(data, log.parent) as followed:
        await wait_for(seen, "a", "one")
        log.with_name("other").write_text(header("b") + message(0, "found at the next search"))
        await wait_for(seen, "b", "found at the next search")
        code, summary, news = followed.end()
    assert code == 1
    assert summary["failed"] == [{"files": [f"{log.parent}/link"], "message": "can't be read: File name too long"}]
    assert news.count("too long") == 2  # when it was found, and at the end


async def test_a_pipe_cannot_be_followed_and_delays_no_other_file(data: Path, log: Path, seen: Store) -> None:
    log.write_text(header("a") + message(0, "one"))
    os.mkfifo(log.with_name("pipe"))
    with following(data, log.with_name("pipe"), log) as followed:
        await wait_for(seen, "a", "one")
        code, summary, _ = followed.end()
    assert code == 1
    pipe = f"{log.parent}/pipe"
    assert summary["failed"] == [{"files": [pipe], "message": f"{pipe}: only regular files can be followed"}]


async def test_a_file_that_is_not_a_log_is_reported_once_and_fails_at_the_end(
    data: Path, log: Path, seen: Store
) -> None:
    other = log.with_name("other.jsonl")
    log.write_text("hello\n")
    with following(data, log, other) as followed:
        other.write_text(header("a") + message(0, "one"))
        await wait_for(seen, "a", "one")
        add(other, message(1, "two"))
        await wait_for(seen, "a", "one", "two")
        code, summary, news = followed.end()
    assert code == 1
    assert [failed["files"] for failed in summary["failed"]] == [[str(log)]]
    assert news.count("not JSON") == 2  # when it was found, and at the end


@pytest.mark.parametrize("arguments", [["-"], ["log", "--dry-run"]])
def test_following_standard_input_or_a_dry_run_is_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    done = run("import", "--follow", *arguments, cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []
