"""Pages of conversations as in tests/contract, of more and longer logs: in memory, in one transaction."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import example, given
from hypothesis import strategies as st

from storage import lifecycle
from storage.events import CardEvent, SurfaceHide, ToolCall, ToolResult, UserMessage
from storage.lifecycle import NewSession
from storage.log import append
from storage.readers.conversation import last_shown, read_conversation
from storage.readers.conversation_cards import read_hides
from storage.sqlite import schema
from storage.sqlite.connection import drive
from storage.sqlite.transaction import SqliteTransaction
from tests.contract.conversation_logs import Part, plans, write
from tests.contract.test_conversation import check

SPACE = "space"


@contextmanager
def transaction(statements: list[str] | None = None) -> Iterator[SqliteTransaction]:
    """A transaction in a temporary store. Collects the executed SQL in `statements`."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema.prepare(connection, "memory")
        if statements is not None:
            connection.set_trace_callback(statements.append)
        yield SqliteTransaction(connection, 0, {})
    finally:
        connection.close()


@given(plans(50), st.integers(1, 7), st.integers(0, 1_000), st.integers(0, 1_000))
# A hide takes the first chunks of an answer whose end is the newest entry, and cards share an id.
@example([Part(("card x",)), Part(("chunk",) * 4), Part(("hide", "card x"), 0, 600), Part(("chunk",) * 3)], 1, 0, 1_000)
@example([Part(("card x", "chunk", "chunk", "chunk", "card x")), Part(("hide near", "card x"), 0, 400)], 1, 0, 1_000)
def test_any_page_of_any_log_is_a_part_of_the_whole(plan: Sequence[Part], count: int, start: int, stop: int) -> None:
    with transaction() as tx:
        meta = drive(write(tx, SPACE, plan))
        drive(check(tx, meta, count, start, stop))


def test_hides_are_read_by_an_index() -> None:
    statements: list[str] = []
    with transaction(statements) as tx:
        meta = drive(lifecycle.create(tx, SPACE, NewSession()))
        for draft in (UserMessage(content="x"), SurfaceHide(from_seq=0, to_seq=1), UserMessage(content="y")):
            meta = drive(append.append(tx, SPACE, meta.id, [draft])).session
        statements.clear()
        [hide] = drive(read_hides(tx, meta, 0, meta.head))
        assert hide.seq == 1
        asked = [statement for statement in statements if "types &" in statement]
        assert asked
        for statement in asked:
            [(*_, plan)] = tx._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
            assert plan == "SEARCH commits USING INDEX commits_hides (log=? AND first>? AND first<?)"


def test_a_log_without_hides_is_not_searched_for_them() -> None:
    statements: list[str] = []
    with transaction(statements) as tx:
        meta = drive(lifecycle.create(tx, SPACE, NewSession()))
        meta = drive(append.append(tx, SPACE, meta.id, [UserMessage(content="x")])).session
        statements.clear()
        assert drive(read_hides(tx, meta, 0, meta.head)) == []
        assert statements == []


def test_versions_of_a_card_are_read_only_where_a_hide_can_separate_them() -> None:
    statements: list[str] = []
    cards = [CardEvent(card_type="Table", payload=f"id: {id}") for id in (1, 2, 2)]
    with transaction(statements) as tx:
        meta = drive(lifecycle.create(tx, SPACE, NewSession()))
        meta = drive(append.append(tx, SPACE, meta.id, [UserMessage(content="x"), *cards])).session
        hides = [SurfaceHide(from_seq=0, to_seq=1), SurfaceHide(from_seq=0, to_seq=0)]
        meta = drive(append.append(tx, SPACE, meta.id, [*hides, cards[1], *hides])).session
        statements.clear()
        page = drive(read_conversation(tx, meta))
        assert [entry.source_event_seqs for entry in page.entries] == [(1,), (2, 6)]
        assert len([statement for statement in statements if "kind = 'card'" in statement]) == 1


def test_the_last_text_before_many_tool_calls_is_found_without_reading_their_results() -> None:
    statements: list[str] = []
    calls = [ToolCall(call_id=f"{number}", name="search", args="{}") for number in range(400)]
    results = [ToolResult(call_id=call.call_id, result="1") for call in calls]
    with transaction(statements) as tx:
        meta = drive(lifecycle.create(tx, SPACE, NewSession()))
        for drafts in ([UserMessage(content="x")], calls, results):
            meta = drive(append.append(tx, SPACE, meta.id, drafts)).session
        statements.clear()
        last = drive(last_shown(tx, meta))
        assert last is not None
        assert last.source_event_seqs == (0,)
        assert len(statements) < 40
