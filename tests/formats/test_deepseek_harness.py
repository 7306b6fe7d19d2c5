"""Real logs keep each record as one event at its own seq, and children hang on their parents."""

import json

import pytest

from storage import errors
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    ChunkKind,
    CustomEvent,
    RunStatus,
    SurfaceOp,
    SurfaceOpKind,
    Surfacing,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.formats import Reading, read

from .logs import DEEPSEEK, counts, document, messages, read_log
from .small_logs import HEADER, read_one, record, text_of

GOAL = "deepseek-harness/goal-multi-turn-actions/session.jsonl"
COMPACTION = "deepseek-harness/compaction-recovery/session.jsonl"
CANCEL = "deepseek-harness/cancel-tool-calls/session.jsonl"
RESUME = "deepseek-harness/workspace-context-resume/session.expected.jsonl"
FORK = "deepseek-harness/subagent-fork-in-process/session.1.jsonl"
FORKED = "deepseek-harness/subagent-fork-in-process/session.jsonl"
MULTI = tuple(f"deepseek-harness/subagent-multi/session{part}.jsonl" for part in ("", ".1", ".2"))

COUNTS = {
    CANCEL: ((2, 1, 2, 0), 2, 1, 1, 24),
    COMPACTION: ((2, 2, 1, 0), 1, 1, 2, 31),
    GOAL: ((4, 12, 11, 0), 11, 2, 12, 2098),
    FORK: ((4, 2, 0, 0), 0, 2, 2, 99),
    FORKED: ((3, 3, 1, 0), 1, 2, 3, 200),
    MULTI[1]: ((2, 1, 0, 0), 0, 1, 1, 42),
    MULTI[2]: ((2, 1, 0, 0), 0, 1, 1, 40),
    MULTI[0]: ((2, 3, 2, 0), 2, 1, 3, 212),
    RESUME: ((4, 1, 0, 0), 0, 2, 1, 21),
}
"""Messages, calls, turns, steps and events of each file; those of the fork include the 42 that it repeats."""


def test_all_the_logs_are_listed() -> None:
    assert sorted(COUNTS) == sorted(DEEPSEEK)


@pytest.mark.parametrize("name", DEEPSEEK)
def test_a_real_log_keeps_every_record_as_an_event(name: str) -> None:
    [session] = read_log(name).sessions
    found = counts([session])
    assert (
        messages([session]),
        found["tool/call"],
        found["turn/start"],
        found["step/start"],
        len(session.events),
    ) == COUNTS[name]


@pytest.mark.parametrize("name", DEEPSEEK)
def test_seqs_named_by_messages_still_point_at_their_chunks(name: str) -> None:
    [session] = read_log(name).sessions
    for seq, event in enumerate(session.events):
        if isinstance(event, AssistantMessage) and event.source_event_seqs:
            assert event.source_event_seqs[-1] == seq - 1
            pieces = [session.events[at] for at in event.source_event_seqs]
            streamed = [piece for piece in pieces if isinstance(piece, AssistantChunk)]
            for kind, whole in ((ChunkKind.TEXT, event.content), (ChunkKind.REASONING, event.reasoning or "")):
                # In one log its authors renamed a package in the whole texts, but not in their chunks.
                pieced = "".join(piece.delta for piece in streamed if piece.kind is kind)
                assert pieced.replace("skill-local", "skill-filesystem") == whole


@pytest.mark.parametrize("name", DEEPSEEK)
def test_turns_named_are_open(name: str) -> None:
    open_turns: set[str] = set()
    for event in read_log(name).sessions[0].events:
        match event:
            case TurnStart(turn_id=str(turn)):
                open_turns.add(turn)
            case _:
                assert event.turn_id is None or event.turn_id in open_turns
        if isinstance(event, TurnEnd):
            open_turns.remove(event.turn_id or "")


def test_a_seeded_child_is_a_fork_with_its_own_events_only() -> None:
    reading = read_log(FORK, FORKED)
    parent, child = reading.sessions
    assert (child.parent, child.source, child.at_seq) == (parent.key, parent.key, 42)
    assert len(child.events) == 99 - 42
    assert child.events[0] == CustomEvent(name="session/end-seed", data="{}")
    assert (parent.id, child.id) == ("96cf59c9-b347-48b9-b234-a5200913ad05", "ada8966c-9fa3-441b-8721-37ff1e795e6a")
    assert json.loads(child.metadata or "") == {
        "version": 0,
        "createdAt": 1783352137161,
        "cwd": "{{cwd}}",
        "origin": "subagent",
        "delegationDepth": 1,
    }
    # Counted without the repeated events: five user messages where the two files hold 3 + 4.
    assert messages(reading.sessions) == (5, 4, 1, 0)
    assert "5 user/message records lost id, source" in reading.warnings


def test_a_child_without_its_parent_is_a_root_with_all_its_events() -> None:
    reading = read_log(FORK)
    [child] = reading.sessions
    assert (child.parent, child.source, child.at_seq, len(child.events)) == (None, None, 0, 99)
    assert json.loads(child.metadata or "")["parentSession"] == "96cf59c9-b347-48b9-b234-a5200913ad05"
    assert "1 session became a root, as its parent is not among the documents" in reading.warnings


def test_a_child_that_does_not_begin_like_its_parent_is_kept_whole() -> None:
    name, content = document(FORK)
    [reading] = read([document(FORKED), (name, content.replace("MARMALADE", "JAM"))])
    parent, child = reading.sessions
    assert (child.parent, child.source, child.at_seq, len(child.events)) == (parent.key, None, 0, 99)
    assert json.loads(child.metadata or "")["seedLength"] == 42
    assert "1 fork is kept whole, as it does not begin with its parent's events" in reading.warnings


def test_a_seed_longer_than_the_child_is_no_fork() -> None:
    parent = text_of(HEADER | {"id": "p"}, record("turn/start", turn=1))
    child = text_of(HEADER | {"id": "c", "parentSession": "p", "seedLength": 9}, record("turn/start", turn=1))
    [reading] = read([("p", parent), ("c", child)])
    assert [(session.source, len(session.events)) for session in reading.sessions] == [(None, 1), (None, 1)]


def test_a_fork_of_a_fork_shares_what_its_source_shows() -> None:
    first, second, third = record("a"), record("b"), record("c")
    [reading] = read(
        [
            ("3", text_of(HEADER | {"id": "3", "parentSession": "2", "seedLength": 2}, first, second, third)),
            ("2", text_of(HEADER | {"id": "2", "parentSession": "1", "seedLength": 1}, first, second)),
            ("1", text_of(HEADER | {"id": "1"}, first)),
        ]
    )
    assert [(session.id, session.at_seq, len(session.events)) for session in reading.sessions] == [
        ("1", 0, 1),
        ("2", 1, 1),
        ("3", 2, 1),
    ]


def test_spawned_children_hang_on_their_parent_and_share_nothing() -> None:
    parent, *children = read_log(*reversed(MULTI)).sessions
    assert [(child.parent, child.source) for child in children] == [(parent.key, None)] * 2
    assert len({child.id for child in children}) == 2


def test_placeholder_ids_are_no_ids_and_join_nothing() -> None:
    readings = read([document(CANCEL), document(RESUME), document(CANCEL)])
    assert [reading.sessions[0].id for reading in readings] == [None] * 3
    assert len({reading.sessions[0].key for reading in readings}) == 3


def test_a_repeated_id_goes_to_the_first() -> None:
    readings = read([("a", text_of(HEADER | {"id": "s"})), ("b", text_of(HEADER | {"id": "s"}))])
    assert [reading.sessions[0].id for reading in readings] == ["s", None]
    assert readings[1].warnings == ["1 session got a new id, as an earlier one has the same"]


def test_circular_parents_are_refused() -> None:
    logs = [("a", text_of(HEADER | {"id": a, "parentSession": b})) for a, b in (("x", "y"), ("y", "x"))]
    with pytest.raises(errors.BadInput, match="in a circle"):
        read(logs)


def test_a_cancelled_turn_failed_and_its_calls_have_errors() -> None:
    [session] = read_log(CANCEL).sessions
    results = [event for event in session.events if isinstance(event, ToolResult)]
    assert [(result.call_id, result.result, result.error) for result in results] == [
        ("call_wait", None, "Error: tool call aborted"),
        ("call_skipped", None, "Error: tool call aborted before dispatch"),
    ]
    end = session.events[-1]
    assert end == TurnEnd(turn_id="1", status=RunStatus.FAILED, error="aborted: user")


def test_a_compaction_replaces_what_it_replaced() -> None:
    [session] = read_log(COMPACTION).sessions
    [(seq, event)] = [
        (seq, event)
        for seq, event in enumerate(session.events)
        if isinstance(event, Surfacing) and event.surface_op.op is SurfaceOpKind.REPLACE
    ]
    assert event.surface_op == SurfaceOp(op=SurfaceOpKind.REPLACE, start=4, end=4)
    assert event.source_event_seqs == [19, 20, 4]
    assert isinstance(session.events[4], UserMessage)
    assert seq == 21


def test_headers_inside_a_document_start_further_sessions() -> None:
    readings: list[Reading] = read([("log", f"{text_of(HEADER, record('a'))}\n{text_of(HEADER, record('b'))}")])
    assert [len(reading.sessions[0].events) for reading in readings] == [1, 1]


def test_a_broken_header_is_refused_with_its_line() -> None:
    with pytest.raises(errors.BadInput, match="log line 1: seedLength: -1 is not a count"):
        read_one(seedLength=-1)
    with pytest.raises(errors.BadInput, match="log line 1: a record before the header"):
        read([("log", json.dumps(record("turn/start", turn=1)))], "deepseek-harness")
