"""Lists of sessions: ordered, filtered, each session once, with cursors bound to one list."""

import base64
import re

import pytest

from storage import errors
from storage.events import TurnStart
from storage.lifecycle import NewSession
from storage.run_filter import RunFilter
from storage.session import SessionFilter, SessionOrder, SessionStatus
from storage.store import Store, UnitOfWork
from tests.contract.shorthand import SPACE, append, create, ids, session, user

CREATED_ASC, CREATED_DESC, UPDATED_DESC = SessionOrder


async def make_some(store: Store) -> list[str]:
    """Nine sessions: three created separately, then six at the same instant in one transaction."""
    alone = [(await create(store, id)).id for id in ("c", "a", "b")]

    async def together(unit: UnitOfWork) -> None:
        for id in ("z", "x", "y", "w", "v", "u"):
            await unit.tree.create(SPACE, NewSession(id=id))

    await store.transaction(together)
    return [*alone, "u", "v", "w", "x", "y", "z"]


async def test_an_empty_page_says_whether_the_list_goes_on(store: Store) -> None:
    for made in (0, 1):
        for page in (
            await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 0, None),
            await store.sessions.digests(SPACE, SessionFilter(), 0, None),
            await store.runs.page(SPACE, RunFilter(), 0, None),
        ):
            assert page is not None
            assert page.more is (made > 0)
        if not made:
            await create(store, "a")
            await append(store, "a", TurnStart(turn_id="1"))


@pytest.mark.parametrize("first", [1, 2, 4, 9, 200])
@pytest.mark.parametrize("order", [CREATED_ASC, CREATED_DESC])
async def test_pages_hold_each_session_once_in_order(store: Store, order: SessionOrder, first: int) -> None:
    await make_some(store)
    rows = [await session(store, id) for id in await ids(store)]
    expected = [meta.id for meta in sorted(rows, key=lambda meta: (meta.created_at, meta.id))]
    if order is CREATED_DESC:
        expected.reverse()
    found: list[str] = []
    after = None
    while True:
        got = await store.sessions.page(SPACE, SessionFilter(), order, first, after)
        assert got is not None
        found += [meta.id for meta in got.sessions]
        assert got.more is (len(found) < 9)
        if not got.more:
            break
        assert len(got.sessions) == first
        after = got.cursor(got.sessions[-1])
    assert found == expected


async def test_each_cursor_continues_right_after_its_row(store: Store) -> None:
    await make_some(store)
    whole = await store.sessions.page(SPACE, SessionFilter(), CREATED_DESC, 9, None)
    assert whole is not None
    for index, row in enumerate(whole.sessions):
        behind = await store.sessions.page(SPACE, SessionFilter(), CREATED_DESC, 9, whole.cursor(row))
        assert behind is not None
        assert behind.sessions == whole.sessions[index + 1 :]


async def test_pages_hold_each_row_once_despite_deletions(store: Store) -> None:
    await make_some(store)
    first = await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 4, None)
    assert first is not None
    seen = [meta.id for meta in first.sessions]
    await store.tree.delete(SPACE, seen[3])
    await append(store, "z", user("x"))
    second = await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 9, first.cursor(first.sessions[3]))
    assert second is not None
    assert seen + [meta.id for meta in second.sessions] == ["c", "a", "b", "u", "v", "w", "x", "y", "z"]


async def test_the_last_changed_session_comes_first(store: Store) -> None:
    for id in ("a", "b", "c"):
        await create(store, id)
    clock = (await session(store, "c")).updated_at
    while (changed := await append(store, "a", user("x"))).session.updated_at == clock:
        pass
    rows = await store.sessions.page(SPACE, SessionFilter(), UPDATED_DESC, 1, None)
    assert rows is not None
    assert rows.sessions == [changed.session]
    behind = await store.sessions.page(SPACE, SessionFilter(), UPDATED_DESC, 9, rows.cursor(rows.sessions[0]))
    assert behind is not None
    expected = sorted([await session(store, "b"), await session(store, "c")], key=lambda m: (m.updated_at, m.id))
    assert behind.sessions == expected[::-1]


async def test_a_page_of_size_zero_is_empty(store: Store) -> None:
    await create(store, "a")
    found = await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 0, None)
    assert found is not None
    assert found.sessions == []


@pytest.mark.parametrize("first", [-1, 201])
async def test_a_page_has_at_most_200_rows(store: Store, first: int) -> None:
    with pytest.raises(errors.BadInput, match=r"first.*200"):
        await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, first, None)


async def test_a_cursor_of_another_list_is_refused(store: Store) -> None:
    await create(store, "a")
    await store.tree.create("other", NewSession(id="a"))
    found = await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 1, None)
    read = await store.sessions.digests(SPACE, SessionFilter(), 1, None)
    assert found is not None
    assert read is not None
    cursor, foreign = found.cursor(found.sessions[0]), read.cursor(read.digests[0])
    active = SessionFilter(status=SessionStatus.ACTIVE)
    for space, selection, order, after in (
        ("other", SessionFilter(), CREATED_ASC, cursor),
        (SPACE, active, CREATED_ASC, cursor),
        (SPACE, SessionFilter(), CREATED_DESC, cursor),
        (SPACE, SessionFilter(), CREATED_ASC, foreign),
    ):
        with pytest.raises(errors.BadInput, match=r"after.*another list"):
            await store.sessions.page(space, selection, order, 1, after)


@pytest.mark.parametrize("after", ["", "x", "ü", "\ud800", "AAAA", "bnVsbA", "W10", "WzEsMiwzLDRd", "[" * 5_000])
async def test_text_that_is_not_a_cursor_is_refused(store: Store, after: str) -> None:
    with pytest.raises(errors.BadInput, match="after"):
        await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 1, after)


@pytest.mark.parametrize("time", ["1e999", "-1e999", "NaN", "9" * 40, "[" * 4_000 + "]" * 4_000])
async def test_a_forged_cursor_is_refused(store: Store, time: str) -> None:
    await create(store, "a")
    found = await store.sessions.page(SPACE, SessionFilter(), CREATED_ASC, 1, None)
    assert found is not None
    decoded = base64.urlsafe_b64decode(found.cursor(found.sessions[0]) + "==").decode()
    forged = re.sub(r"\d{13}", lambda _: time, decoded)
    assert forged != decoded
    with pytest.raises(errors.BadInput, match="after"):
        await store.sessions.page(
            SPACE, SessionFilter(), CREATED_ASC, 1, base64.urlsafe_b64encode(forged.encode()).decode()
        )


async def test_a_filter_matches_only_rows_that_meet_all_conditions(store: Store) -> None:
    await create(store, "root", label="Plan")
    await create(store, "child", "root", label="Planning")
    await create(store, "grandchild", "child", label="Other")
    await create(store, "stranger", label="Plan B")
    await store.sessions.set_status(SPACE, "child", SessionStatus.ARCHIVED)
    assert await ids(store, under="child") == {"child", "grandchild"}
    assert await ids(store, status=SessionStatus.ARCHIVED) == {"child"}
    assert await ids(store, label_contains="Plan") == {"root", "child", "stranger"}
    assert await ids(store, ids=("stranger", "root", "unknown")) == {"root", "stranger"}
    assert await ids(store, ids=()) == set()
    assert await ids(store, under="root", label_contains="Plan", status=SessionStatus.ACTIVE) == {"root"}
    assert await store.sessions.page(SPACE, SessionFilter(under="unknown"), CREATED_ASC, 9, None) is None
    for selection, count in (
        (SessionFilter(), 4),
        (SessionFilter(under="root"), 3),
        (SessionFilter(under="root", status=SessionStatus.ACTIVE), 2),
        (SessionFilter(label_contains="Plan"), 3),
        (SessionFilter(ids=("root",), under="child"), 0),
        (SessionFilter(under="unknown"), 0),
    ):
        assert await store.sessions.count(SPACE, selection) == count


@pytest.mark.parametrize(
    ("part", "found"),
    [("50%", {"a"}), ("_", {"b"}), (".*", {"c"}), ("\\", {"d"}), ("'", {"e"}), ("ÉCOLE", {"f"}), ("école", {"f"})],
)
async def test_label_filters_match_literally_and_ignore_case(store: Store, part: str, found: set[str]) -> None:
    for id, label in zip("abcdef", ("up 50%", "a_b", "x.*y", "back\\slash", "it's", "École"), strict=True):
        await create(store, id, label=label)
    assert await ids(store, label_contains=part) == found
    assert len(await ids(store, label_contains="")) == 6


async def test_any_text_can_be_searched_for_in_labels(store: Store) -> None:
    await create(store, "a", label="a\x00b")
    await create(store, "b", label="\ud800")
    assert await ids(store, label_contains="\x00b") == {"a"}
    assert await ids(store, label_contains="a\x00c") == set()
    assert await ids(store, label_contains="\udfff") == {"b"}


async def test_sessions_changed_since_an_instant_are_found(store: Store) -> None:
    for id in ("a", "b"):
        await create(store, id)
    clock = (await session(store, "b")).updated_at
    while (changed := await append(store, "a", user("x"))).session.updated_at == clock:
        pass
    assert await ids(store, updated_since=changed.session.updated_at) == {"a"}
    assert await ids(store, updated_since=changed.session.updated_at + 1) == set()
    assert await ids(store, updated_since=0) == {"a", "b"}
    assert await ids(store, appended_since=0) == {"a"}
