"""Real logs keep each record as one event at its own seq, and children are under their parents."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from storage.transfer.formats.registry import read_document
from storage.transfer.formats.shared.foreign import ForeignEvent
from storage.transfer.formats.shared.record import Record
from storage.views.surface import Surface
from tests.storage.transfer.formats.deepseek_logs import HEADER, read_one, record, text_of
from tests.storage.transfer.formats.logs import (
    DEEPSEEK,
    counts,
    document,
    messages,
    read_log,
    records_of,
    steps_of,
    visible_logs,
)
from tests.storage.transfer.formats.mutations import check_steps, mutated, read_leniently
from tests.storage.views import validity

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
                # In one log the authors renamed a package in the whole texts, but not in their chunks.
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
    [parent], [child] = read_log(FORKED).sessions, read_log(FORK).sessions
    assert (parent.id, child.id) == ("96cf59c9-b347-48b9-b234-a5200913ad05", "ada8966c-9fa3-441b-8721-37ff1e795e6a")
    assert (child.parent_id, child.repeats, child.repeats_at_most) == (parent.id, parent.id, 42)
    assert child.events[:42] == parent.events[:42]
    assert child.events[42] == CustomEvent(name="session/end-seed", data="{}")
    assert json.loads(child.metadata or "") == {
        "version": 0,
        "createdAt": 1783352137161,
        "cwd": "{{cwd}}",
        "parentSession": parent.id,
        "seedLength": 42,
        "origin": "subagent",
        "delegationDepth": 1,
    }
    assert "4 user/message records lost id, source" in read_log(FORK).warnings


@pytest.mark.parametrize("seed", [9, 1, 0])
def test_a_seed_bounds_what_is_repeated(seed: int) -> None:
    session, _ = read_one(record("turn/start", turn=1), id="c", parentSession="p", seedLength=seed)
    assert (session.parent_id, session.repeats, session.repeats_at_most) == (
        "p",
        "p" if seed else None,
        seed if seed else None,
    )
    assert len(session.events) == 1


def test_spawned_children_have_their_parent_and_share_nothing() -> None:
    [parent], *children = [read_log(name).sessions for name in MULTI]
    assert [(child.parent_id, child.repeats) for [child] in children] == [(parent.id, None)] * 2
    assert len({child.id for [child] in children}) == 2


def test_a_parent_that_is_not_a_valid_session_id_is_lost() -> None:
    session, warnings = read_one(id="c", parentSession="{{sessionId}}", seedLength=3)
    assert (session.parent_id, session.repeats, session.repeats_at_most) == (None, None, None)
    assert json.loads(session.metadata or "")["parentSession"] == "{{sessionId}}"
    assert "1 session lost its parent, whose id is not a valid session id" in warnings


@pytest.mark.parametrize("name", [CANCEL, RESUME])
def test_a_placeholder_is_not_an_id(name: str) -> None:
    reading = read_log(name)
    [session] = reading.sessions
    assert session.id is None
    assert json.loads(session.metadata or "")["id"] == "{{sessionId}}"
    assert "1 session lost its id, which is not a valid session id" in reading.warnings


def test_a_repeated_id_goes_to_the_first() -> None:
    log = text_of(HEADER | {"id": "s"})
    reading = read_document("log", f"{log}\n{log}")
    assert [session.id for session in reading.sessions] == ["s", None]
    assert len({session.key for session in reading.sessions}) == 2
    assert reading.warnings == ["1 session got a new id, as an earlier one has the same"]


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
    reading = read_document("log", f"{text_of(HEADER, record('a'))}\n{text_of(HEADER, record('b'))}")
    assert [[event.type for event in session.events] for session in reading.sessions] == [["custom"]] * 2


def test_a_broken_header_is_refused_with_its_line() -> None:
    with pytest.raises(errors.BadInput, match="log line 1: seedLength: -1 is not a count"):
        read_one(seedLength=-1)
    with pytest.raises(errors.BadInput, match="log line 1: a record before the header"):
        read_document("log", json.dumps(record("turn/start", turn=1)), "deepseek-harness")


def test_records_under_a_broken_header_go_to_no_other_session() -> None:
    log = f"{text_of(HEADER, record('a'))}\n{text_of(HEADER | {'seedLength': -1}, record('b'))}"
    steps, warnings = steps_of(records_of("log", log), lenient=True)
    assert len(steps) == 2
    assert warnings.messages()[-1].startswith("2 records left out, the first: log line 3: seedLength")


def test_a_compaction_yields_the_seqs_that_it_replaces() -> None:
    steps, _ = steps_of(records_of(*document(COMPACTION)))
    assert [step.replaces for step in steps if isinstance(step, ForeignEvent) and step.replaces] == [(4, 4)]


@pytest.mark.parametrize("name", DEEPSEEK)
def test_a_part_of_a_log_gives_the_first_steps_of_the_whole(name: str) -> None:
    found = records_of(*document(name))
    whole, _ = steps_of(found)
    for count in range(1, len(found)):
        steps, _ = steps_of(found[:count])
        assert steps == whole[: len(steps)]
        assert len(steps) >= count


@pytest.mark.parametrize("name", DEEPSEEK)
def test_the_surface_is_valid_at_every_cut(name: str) -> None:
    steps, _ = steps_of(records_of(*document(name)))
    [log] = visible_logs(steps).values()
    surface = Surface()
    for event in log:
        validity.check(surface.add(event))


@pytest.mark.parametrize("name", [CANCEL, COMPACTION, FORK, RESUME])
@given(st.data())
def test_any_record_is_read_or_refused(name: str, data: st.DataObject) -> None:
    values = [record.value for record in records_of(*document(name)) if isinstance(record, Record)]
    changed, _ = data.draw(mutated(values))
    steps, _ = read_leniently("deepseek-harness", changed)
    check_steps(steps)
