"""Hides and feedback that the server writes on request; the log keeps everything."""

from collections.abc import Awaitable, Callable

import pytest

from storage import errors
from storage.events import CardEvent, Event, RunFeedback, SurfaceHide, TurnEnd, TurnStart
from storage.maintenance import INTERRUPTED, MaintenanceResult
from storage.session import SessionStatus
from storage.store import Store, UnitOfWork
from storage.views.records import records
from tests.contract.shorthand import SPACE, append, conversation, create, fork, session, surface, texts, whole_log
from tests.storage.views.surface_logs import assistant, call, chunk, hide, result, seqs, shown, user
from tests.storage.views.validity import check

TURN, TURN_END = TurnStart(turn_id="t"), TurnEnd(turn_id="t")
Operation = Callable[[Store, int | None], Awaitable[MaintenanceResult]]

OPERATIONS: dict[str, Operation] = {
    "trim": lambda store, head: store.maintenance.trim(SPACE, "a", 0, head),
    "remove_last": lambda store, head: store.maintenance.remove_last(SPACE, "a", head),
    "clear": lambda store, head: store.maintenance.clear(SPACE, "a", head),
    "repair": lambda store, head: store.maintenance.repair(SPACE, "a", head),
}


async def written(store: Store, kept: MaintenanceResult) -> list[Event]:
    """The events that an operation wrote: the newest of the log, in one commit."""
    log = await whole_log(store, "a")
    assert kept.session == await session(store, "a")
    if kept.appended is None:
        return []
    assert (kept.appended.head, kept.appended.duplicate) == (len(log), False)
    assert kept.appended.events == log[kept.appended.first_seq :]
    return kept.appended.events


async def trimmed(store: Store, keep: int) -> list[tuple[int, int]]:
    """The ranges that a trim hid."""
    ranges = []
    for event in await written(store, await store.maintenance.trim(SPACE, "a", keep)):
        assert isinstance(event, SurfaceHide)
        assert event.reason == "trimRecords"
        ranges.append((event.from_seq, event.to_seq))
    check(await surface(store, "a"))
    return ranges


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
async def test_a_refused_operation_writes_nothing(store: Store, operation: Operation) -> None:
    with pytest.raises(errors.NotFound, match="no session 'a'"):
        await operation(store, None)
    await create(store, "a")
    await append(store, "a", TURN, user("q"), call("x"))
    before, log = await session(store, "a"), await whole_log(store, "a")
    with pytest.raises(errors.Conflict, match=r"^expectedHead: the log's head is 3, not 2$") as stale:
        await operation(store, 2)
    assert stale.value.details == {"head": 3}
    assert (await session(store, "a"), await whole_log(store, "a")) == (before, log)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    before = await session(store, "a")
    with pytest.raises(errors.Archived):
        await operation(store, None)
    assert (await session(store, "a"), await whole_log(store, "a")) == (before, log)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
async def test_an_operation_with_nothing_to_do_writes_nothing(store: Store, operation: Operation) -> None:
    """Neither on an empty session nor when repeated."""
    await create(store, "a")
    empty = await session(store, "a")
    assert await operation(store, 0) == MaintenanceResult(empty)
    assert await session(store, "a") == empty
    await append(store, "a", TURN, user("q"), call("x"))
    kept = await operation(store, 3)
    assert kept.appended is not None
    done = await session(store, "a")
    again = await operation(store, done.head)
    assert again == MaintenanceResult(done)
    assert await session(store, "a") == done


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
async def test_the_log_keeps_everything(store: Store, operation: Operation) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(2), TURN, user("q"), call("x"))
    log = await whole_log(store, "a")
    events = await written(store, await operation(store, None))
    assert events
    assert (await whole_log(store, "a"))[: len(log)] == log
    check(await surface(store, "a"))


async def test_a_trim_keeps_the_newest_records(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(6))
    assert await trimmed(store, 7) == []
    assert await trimmed(store, 6) == []
    assert await trimmed(store, 4) == [(0, 2)]
    assert seqs(await surface(store, "a")) == [(2,), (3,), (4,), (5,)]
    assert await trimmed(store, 1) == [(0, 5)]
    assert seqs(await surface(store, "a")) == [(5,)]
    assert await trimmed(store, 0) == [(0, 6)]
    assert seqs(await surface(store, "a")) == []
    assert await trimmed(store, 0) == []


async def test_a_trim_to_a_negative_number_is_refused(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(1))
    before = await session(store, "a")
    with pytest.raises(errors.BadInput, match=r"^keepRecent: must not be negative, is -1$"):
        await store.maintenance.trim(SPACE, "a", -1)
    assert await session(store, "a") == before


async def test_a_trim_keeps_tool_groups_whole(store: Store) -> None:
    """There are four records, three of them one group; a supplied result is not a record."""
    await create(store, "a")
    await append(store, "a", user("q"), call("x"), call("y"), call("z"), result("x"), result("y"), user("next"))
    assert await trimmed(store, 2) == [(0, 1)]
    assert shown(await surface(store, "a")) == [
        ("assistant", None, "x", "y", "z"),
        ("x", "ok"),
        ("y", "ok"),
        ("?", "z"),
        ("user", "next"),
    ]
    assert await trimmed(store, 1) == [(0, 6)]
    assert shown(await surface(store, "a")) == [("user", "next")]


async def test_a_trim_does_not_restore_replaced_messages(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(3), user("sum", 0, 1), user("after"))
    assert await trimmed(store, 1) == [(0, 4)]
    assert shown(await surface(store, "a")) == [("user", "after")]


async def test_trimming_a_fork_leaves_its_source_alone(store: Store) -> None:
    await create(store, "b")
    await append(store, "b", *texts(4))
    await fork(store, "b", id="a", at_seq=3)
    assert await trimmed(store, 1) == [(0, 2)]
    assert seqs(await surface(store, "a")) == [(2,)]
    assert len(seqs(await surface(store, "b"))) == 4


async def test_trims_of_every_size_keep_the_newest_and_stay_valid(store: Store) -> None:
    await create(store, "source")
    await append(store, "source", *conversation(3), call("x"), call("y"), result("y"), chunk("part"))
    everything = records(await surface(store, "source"))
    for keep in range(len(everything) + 1):
        await fork(store, "source", id=f"a{keep}")
        await store.maintenance.trim(SPACE, f"a{keep}", keep)
        found = await surface(store, f"a{keep}")
        check(found)
        left = records(found)
        assert len(left) >= keep
        assert left == everything[len(everything) - len(left) :]


async def test_the_last_text_or_card_is_hidden(store: Store) -> None:
    await create(store, "a")
    await append(
        store,
        "a",
        user("q"),
        assistant("answer"),
        CardEvent(card_type="Table", payload="type: Table\ntitle: T\n"),
        call("x"),
        result("x"),
        chunk("par"),
        chunk("tial"),
    )

    async def removed() -> list[tuple[int, int]]:
        hides = await written(store, await store.maintenance.remove_last(SPACE, "a"))
        check(await surface(store, "a"))
        return [(event.from_seq, event.to_seq) for event in hides if isinstance(event, SurfaceHide)]

    assert await removed() == [(5, 7)]
    assert await removed() == [(2, 3)]
    assert await removed() == [(1, 2)]
    assert await removed() == [(0, 1)]
    assert await removed() == []
    assert shown(await surface(store, "a")) == [("assistant", None, "x"), ("x", "ok")]


async def test_maintenance_in_a_transaction_sees_its_appends(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))

    async def work(unit: UnitOfWork) -> MaintenanceResult:
        await unit.sessions.append(SPACE, "a", [user("x"), user("y"), call("z")])
        await unit.maintenance.trim(SPACE, "a", 2)
        return await unit.maintenance.repair(SPACE, "a")

    kept = await store.transaction(work)
    assert kept.appended is not None
    assert (kept.appended.first_seq, kept.session) == (6, await session(store, "a"))
    assert shown(await surface(store, "a")) == [
        ("user", "y"),
        ("assistant", None, "z"),
        ("z", INTERRUPTED),
    ]


async def test_clearing_hides_everything(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *conversation(2), chunk("part"))
    [event] = await written(store, await store.maintenance.clear(SPACE, "a"))
    assert isinstance(event, SurfaceHide)
    assert (event.from_seq, event.to_seq, event.seq) == (0, 17, 17)
    meta = await session(store, "a")
    assert (await surface(store, "a")).messages() == []
    assert await store.messages.prompt(meta) == []
    assert await store.messages.entries(meta) == []
    await append(store, "a", user("new"))
    assert shown(await surface(store, "a")) == [("user", "new")]
    [event] = await written(store, await store.maintenance.clear(SPACE, "a"))
    assert (await surface(store, "a")).messages() == []
    await fork(store, "a", id="b", at_seq=17)
    assert len((await surface(store, "b")).messages()) > 5


async def test_a_partial_hide_does_not_count_as_a_clear(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2), hide(0, 1))
    assert (await store.maintenance.clear(SPACE, "a")).appended is not None
    assert (await surface(store, "a")).messages() == []


async def test_feedback_is_recorded_in_its_turn_even_after_its_end(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", TURN, user("q"))
    [early] = await written(store, await store.maintenance.give_feedback(SPACE, "a", "t", "good", None))
    await append(store, "a", TURN_END)
    [late] = await written(store, await store.maintenance.give_feedback(SPACE, "a", "t", None, '{"score":0.5}'))
    [both] = await written(store, await store.maintenance.give_feedback(SPACE, "a", "t", "", "null"))
    assert [
        (event.turn_id, event.step_id, event.feedback, event.self_evaluation)
        for event in (early, late, both)
        if isinstance(event, RunFeedback)
    ] == [("t", None, "good", None), ("t", None, None, '{"score":0.5}'), ("t", None, "", "null")]
    await fork(store, "a", id="b", at_seq=1)
    assert (await store.maintenance.give_feedback(SPACE, "b", "t", "inherited", None)).session.head == 2


@pytest.mark.parametrize(
    ("turn", "feedback", "match"),
    [
        ("never", "x", "turnId: turn 'never' was never started in this session"),
        ("", "x", "turnId: must have 1 to 256 characters, has 0"),
        ("x" * 257, "x", "turnId: must have 1 to 256 characters, has 257"),
        ("t", None, "give feedback or selfEvaluation"),
    ],
)
async def test_empty_feedback_and_feedback_on_an_unknown_turn_are_refused(
    store: Store, turn: str, feedback: str | None, match: str
) -> None:
    await create(store, "a")
    await append(store, "a", TURN)
    before = await session(store, "a")
    with pytest.raises(errors.BadInput, match=match):
        await store.maintenance.give_feedback(SPACE, "a", turn, feedback, None)
    assert await session(store, "a") == before


async def test_feedback_on_an_unknown_session_is_refused(store: Store) -> None:
    with pytest.raises(errors.NotFound):
        await store.maintenance.give_feedback(SPACE, "a", "t", "x", None)
