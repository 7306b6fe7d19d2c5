"""Appends that replace nodes of the surface: one whose nodes are missing is refused and writes nothing."""

import asyncio

import pytest

from storage import errors
from storage.events import Event
from storage.log.append import Appended
from storage.session_storage import Append
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE, append, create, fork, refused, session, surface, texts, whole_log
from tests.storage.views.surface_logs import assistant, call, chunk, hide, result, seqs, shown, system, user
from tests.storage.views.validity import check

GROUP = (user("go"), call("x"), call("y"), result("x", "one"), result("y", "two"), assistant("done"))
"""Nodes: 0 is the user's, 1 the group, 3 and 4 its results, 5 the answer."""


async def replacing(store: Store, *drafts: Event) -> list[tuple[object, ...]]:
    """The surface of session a after an append."""
    await append(store, "a", *drafts)
    found = await surface(store, "a")
    check(found)
    return shown(found)


@pytest.mark.parametrize(
    ("drafts", "named", "rule"),
    [
        ([user("r", 2, 5)], "events[0].userMessage.surfaceOp.start", "2 is no node of the surface"),
        ([user("r", 0, 2)], "events[0].userMessage.surfaceOp.end", "2 is no node of the surface"),
        ([user("r", 0, 6)], "events[0].userMessage.surfaceOp.end", "6 is no node of the surface"),
        ([user("q"), user("r", 7, 7)], "events[1].userMessage.surfaceOp.start", "7 is no node of the surface"),
        ([assistant("r", 99, 5)], "events[0].assistantMessage.surfaceOp.start", "99 is no node of the surface"),
        ([user("r", 5, 0)], "events[0].userMessage.surfaceOp: start 5, end 0", "start stands after end"),
        ([system("r", 4, 3)], "events[0].systemMessage.surfaceOp: start 4, end 3", "start stands after end"),
        ([user("q"), result("x", "r", 4, 4)], "events[1].toolResult.surfaceOp", "exactly one result of callId 'x'"),
        ([result("x", "r", 3, 4)], "events[0].toolResult.surfaceOp", "exactly one result of callId 'x'"),
        ([result("x", "r", 1, 1)], "events[0].toolResult.surfaceOp", "exactly one result of callId 'x'"),
        ([result("z", "r", 3, 3)], "events[0].toolResult.surfaceOp", "exactly one result of callId 'z'"),
        ([user("q", 0, 0), user("r", 0, 0)], "events[1].userMessage.surfaceOp.start", "0 is no node of the surface"),
        ([hide(0, 1), user("r", 0, 0)], "events[1].userMessage.surfaceOp.start", "0 is no node of the surface"),
        ([user("q", 0, 5), result("x", "r", 3, 3)], "events[1].toolResult.surfaceOp.start", "3 is no node"),
    ],
)
async def test_a_replacement_of_missing_nodes_is_refused(
    store: Store, drafts: list[Event], named: str, rule: str
) -> None:
    await create(store, "a")
    await append(store, "a", *GROUP)
    before = shown(await surface(store, "a"))
    for given in (drafts, [*drafts, user("after")]):
        with pytest.raises(errors.BadInput) as found:
            await append(store, "a", *given)
        assert found.value.message.startswith(named)
        assert rule in found.value.message
        await refused(store, errors.BadInput, *given)
    assert shown(await surface(store, "a")) == before
    assert (await append(store, "a", user("next"))).first_seq == len(GROUP)


async def test_a_replacement_on_an_empty_log_is_refused(store: Store) -> None:
    await create(store, "a")
    await refused(store, errors.BadInput, user("r", 0, 0), match=r"^events\[0\]\.userMessage\.surfaceOp\.start: 0 is")


async def test_one_node_several_nodes_and_a_result_can_be_replaced(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *GROUP)
    assert await replacing(store, result("x", "uno", 3, 3)) == [
        ("user", "go"),
        ("assistant", None, "x", "y"),
        ("x", "uno"),
        ("y", "two"),
        ("assistant", "done"),
    ]
    assert await replacing(store, assistant("finished", 5, 5)) == [
        ("user", "go"),
        ("assistant", None, "x", "y"),
        ("x", "uno"),
        ("y", "two"),
        ("assistant", "finished"),
    ]
    assert await replacing(store, user("all of it", 0, 7)) == [("user", "all of it")]
    assert [event.seq for event in await whole_log(store, "a")] == list(range(9))


async def test_replacements_nest_and_chain(store: Store) -> None:
    """Also within one append: a message, its replacement, and the replacement of that."""
    await create(store, "a")
    assert await replacing(store, user("0"), user("1", 0, 0), user("2", 1, 1)) == [("user", "2")]
    assert await replacing(store, user("3"), user("4"), user("5", 3, 4)) == [("user", "2"), ("user", "5")]
    assert await replacing(store, user("6", 2, 5)) == [("user", "6")]
    assert await replacing(store, user("7", 6, 6)) == [("user", "7")]
    await refused(store, errors.BadInput, user("8", 6, 6), match=r"surfaceOp\.start: 6 is no node")
    assert seqs(await surface(store, "a")) == [(7,)]


async def test_compactions_that_split_groups_leave_valid_lists(store: Store) -> None:
    """Between a call and its result, inside a parallel batch, and one after the other."""
    await create(store, "a")
    await append(store, "a", *GROUP, user("more"), call("z"), user("next"), result("z"))
    # Group z is node 7, its result node 9.
    assert await replacing(store, user("inside", 4, 6)) == [
        ("user", "go"),
        ("assistant", None, "x", "y"),
        ("x", "one"),
        ("?", "y"),
        ("user", "inside"),
        ("assistant", None, "z"),
        ("z", "ok"),
        ("user", "next"),
    ]
    assert (await replacing(store, user("between", 10, 7)))[4:] == [("user", "between"), ("user", "next")]
    assert await replacing(store, user("onto", 3, 11)) == [
        ("user", "go"),
        ("assistant", None, "x", "y"),
        ("?", "x"),
        ("?", "y"),
        ("user", "onto"),
        ("user", "next"),
    ]
    assert await replacing(store, user("all", 1, 8)) == [("user", "go"), ("user", "all")]


async def test_a_streaming_answer_can_be_replaced(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("q"), chunk("par"), chunk("tial"))
    assert await replacing(store, assistant("whole", 1, 1)) == [("user", "q"), ("assistant", "whole")]


async def test_replacements_in_a_fork_can_name_inherited_nodes(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(4))
    await append(store, "a", user("source's", 0, 1))
    await fork(store, "a", id="before", at_seq=4)
    await fork(store, "a", id="after", at_seq=5)
    await append(store, "before", user("child's", 1, 3))
    assert seqs(await surface(store, "before")) == [(0,), (4,)]
    with pytest.raises(errors.BadInput, match=r"surfaceOp\.start: 0 is no node"):
        await append(store, "after", user("child's", 0, 2))
    await append(store, "after", user("child's", 4, 2), user("more"))
    assert seqs(await surface(store, "after")) == [(5,), (3,), (6,)]
    assert seqs(await surface(store, "a")) == [(4,), (2,), (3,)]
    await fork(store, "after", id="grandchild", at_seq=6)
    await append(store, "grandchild", user("grandchild's", 5, 3))
    assert seqs(await surface(store, "grandchild")) == [(6,)]


async def test_a_fork_cut_inside_a_commit_knows_only_its_own_nodes(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("0"), user("1"), user("2", 0, 1), user("3"))
    await fork(store, "a", id="b", at_seq=2)
    with pytest.raises(errors.BadInput, match=r"surfaceOp\.start: 2 is no node"):
        await append(store, "b", user("r", 2, 2))
    await append(store, "b", user("r", 0, 1))
    assert seqs(await surface(store, "b")) == [(2,)]


async def test_a_hidden_message_is_not_a_node(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *GROUP)
    await append(store, "a", hide(3, 4))
    await refused(store, errors.BadInput, result("x", "r", 3, 3), match=r"toolResult\.surfaceOp\.start: 3 is no node")
    await append(store, "a", hide(0, 2))
    await refused(store, errors.BadInput, user("r", 0, 5), match=r"surfaceOp\.start: 0 is no node")
    # Call x is gone; call y is now the first event of its message.
    assert await replacing(store, user("r", 2, 5)) == [("user", "r")]


async def test_head_and_key_are_checked_before_the_bounds(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", *texts(2))
    with pytest.raises(errors.Conflict) as stale:
        await append(store, "a", user("r", 0, 1), expected_head=1)
    assert stale.value.details == {"head": 2}
    first = await append(store, "a", user("r", 0, 1), expected_head=2, key="k")
    again = await append(store, "a", user("r", 0, 1), expected_head=2, key="k")
    assert (again.duplicate, again.commit) == (True, first.commit)
    with pytest.raises(errors.IdempotencyMismatch):
        await append(store, "a", user("r", 0, 0), key="k")
    await refused(store, errors.BadInput, user("r", 0, 1))
    assert (await session(store, "a")).head == 3


async def test_a_refused_replacement_leaves_its_key_free(store: Store) -> None:
    await create(store, "a")
    with pytest.raises(errors.BadInput):
        await append(store, "a", user("r", 0, 0), key="k")
    await append(store, "a", *texts(1))
    assert not (await append(store, "a", user("r", 0, 0), key="k")).duplicate


async def test_a_batch_folds_each_append_onto_those_before_it(store: Store) -> None:
    await create(store, "a")
    wanted = [user("0"), user("1", 0, 0), user("2", 0, 0), user("3", 1, 1)]
    results = await store.sessions.append_batch(SPACE, [Append("a", [draft]) for draft in wanted])
    assert [isinstance(found, errors.BadInput) for found in results] == [False, False, True, False]
    assert seqs(await surface(store, "a")) == [(2,)]


async def test_a_batch_keeps_its_order_around_a_slow_replacement(store: Store, open_store: OpenStore) -> None:
    await create(store, "a")
    await append(store, "a", *texts(1_000))
    # Another store has no cached surface, so the replacement has to read all of it.
    fresh = await open_store()
    wanted = [user("instead", 0, 999), user("second"), user("third")]
    results = await fresh.sessions.append_batch(SPACE, [Append("a", [draft]) for draft in wanted])
    assert [found.commit.first for found in results if isinstance(found, Appended)] == [1_000, 1_001, 1_002]


async def test_two_servers_never_replace_a_node_twice(store: Store, open_store: OpenStore) -> None:
    """Each of twenty nodes is replaced through both servers; one of the two wins."""
    other = await open_store()
    await create(store, "a")
    await append(store, "a", *texts(20))

    async def attempt(through: Store, seq: int) -> bool:
        try:
            await append(through, "a", user(f"instead of {seq}", seq, seq))
        except errors.BadInput:
            return False
        return True

    won = await asyncio.gather(*(attempt(through, seq) for seq in range(20) for through in (store, other)))
    assert [sum(won[index : index + 2]) for index in range(0, 40, 2)] == [1] * 20
    for reader in (store, other, await open_store()):
        found = await surface(reader, "a")
        check(found)
        assert [message.content for message in found.messages()] == [f"instead of {seq}" for seq in range(20)]
    assert (await session(store, "a")).head == 40


async def test_two_servers_chain_replacements(store: Store, open_store: OpenStore) -> None:
    """A surface cached by one server never lags behind the other's appends."""
    stores = (store, await open_store())
    await create(store, "a")
    await append(store, "a", user("0"))
    for seq in range(1, 12):
        await append(stores[seq % 2], "a", user(str(seq), seq - 1, seq - 1))
        with pytest.raises(errors.BadInput):
            await append(stores[(seq + 1) % 2], "a", user("stale", seq - 1, seq - 1))
    assert [shown(await surface(each, "a")) for each in stores] == [[("user", "11")]] * 2
