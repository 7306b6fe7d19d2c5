"""The conversation: what people see of a log, the same whether folded event by event or at once."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    ChunkKind,
    CustomEvent,
    Event,
    Retrieval,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.views.conversation import conversation, form_ids, with_forms
from storage.views.conversation_entry import CardEntry, Entry, PlaceholderEntry, TextEntry, ToolEntry
from storage.views.message import Role
from storage.views.run_tools import ToolInvocation
from tests.storage.transfer.formats.logs import DEEPSEEK, OASST, TAU_BENCH, counts, read_log

TURN, TURN_END = TurnStart(turn_id="t"), TurnEnd(turn_id="t")
STEP, STEP_END = StepStart(turn_id="t", step_id="s"), StepEnd(turn_id="t", step_id="s")
COMPACTION, CANCELLED = (
    f"deepseek-harness/{name}/session.jsonl" for name in ("compaction-recovery", "cancel-tool-calls")
)


def log(*drafts: Event) -> list[Event]:
    """Drafts as read from a log, a second apart unless they have a timestamp."""
    return [
        draft.model_copy(
            update={"seq": seq, "timestamp": draft.timestamp if draft.timestamp is not None else seq * 1000}
        )
        for seq, draft in enumerate(drafts)
    ]


def user(content: str) -> UserMessage:
    return UserMessage(content=content)


def said(content: str, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=content, **fields)


def chunk(delta: str, kind: ChunkKind = ChunkKind.TEXT) -> AssistantChunk:
    return AssistantChunk(delta=delta, kind=kind)


def instead(content: str, start: int, end: int) -> UserMessage:
    return UserMessage(content=content, surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=start, end=end))


def call(id: str, args: str = "{}") -> ToolCall:
    return ToolCall(call_id=id, name="search", args=args)


def result(id: str, value: object = None, **fields: Any) -> ToolResult:
    return ToolResult(call_id=id, result=json.dumps(value), **fields)


def table(title: str, id: str | None = None, kind: str = "Table") -> CardEvent:
    return CardEvent(card_type=kind, payload=f"type: {kind}\ntitle: {title}\n" + (f"id: {id}\n" if id else ""))


def hide(start: int, stop: int) -> SurfaceHide:
    return SurfaceHide(from_seq=start, to_seq=stop)


def short(entry: Entry) -> tuple[object, ...]:
    match entry:
        case TextEntry():
            return (entry.seq, entry.role.value, entry.content, *(["partial"] if entry.partial else []))
        case CardEntry():
            return (entry.seq, entry.card_type, entry.title)
        case ToolEntry(invocation=made):
            return (entry.seq, made.call_id, made.output_preview if made.success is not None else "unanswered")
        case PlaceholderEntry():
            return (entry.seq, "placeholder", entry.text)
    raise AssertionError(entry)


def shown(*drafts: Event, include_system: bool = False) -> list[tuple[object, ...]]:
    return [short(entry) for entry in conversation(log(*drafts), include_system=include_system)]


def test_texts_cards_and_tools_are_in_order() -> None:
    drafts = (TURN, STEP, user("q"), call("a"), result("a", "found"), table("T"), said("answer"), STEP_END, TURN_END)
    assert shown(*drafts) == [(2, "USER", "q"), (3, "a", "found"), (5, "Table", "T"), (6, "ASSISTANT", "answer")]


def test_an_entry_names_its_turn_step_and_events() -> None:
    draft = UserMessage(content="x", blocks="[1]", turn_id="t", step_id="s", timestamp=5)
    assert conversation(log(draft)) == [
        TextEntry(
            seq=0,
            timestamp=5,
            turn_id="t",
            step_id="s",
            source_event_seqs=(0,),
            role=Role.USER,
            content="x",
            blocks="[1]",
        )
    ]


def test_system_messages_are_included_on_request() -> None:
    drafts = (SystemMessage(content="rules"), user("q"))
    assert shown(*drafts) == [(1, "USER", "q")]
    assert shown(*drafts, include_system=True) == [(0, "SYSTEM", "rules"), (1, "USER", "q")]


def test_a_message_that_replaces_is_left_out_and_what_it_replaces_stays() -> None:
    replacing = result("a", "short", surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=2, end=2))
    drafts = (user("q"), call("a"), result("a", "long"), replacing, instead("summary", 0, 0))
    assert shown(*drafts) == [(0, "USER", "q"), (1, "a", "long")]


def test_an_assistant_message_that_only_carries_calls_is_no_text() -> None:
    assert shown(said(""), call("a"), said("", blocks="[{}]")) == [(1, "a", "unanswered"), (2, "ASSISTANT", "")]


def test_an_answer_that_was_cut_off_is_partial() -> None:
    assert shown(said("so f", interrupted=True)) == [(0, "ASSISTANT", "so f", "partial")]


@pytest.mark.parametrize("bound", [user("u"), TURN, TURN_END, STEP, STEP_END])
def test_chunks_are_a_partial_answer_until_a_bound(bound: Event) -> None:
    texts = [entry for entry in shown(chunk("a"), table("T"), chunk("b"), bound, chunk("c")) if "partial" in entry]
    assert texts == [(0, "ASSISTANT", "ab", "partial"), (4, "ASSISTANT", "c", "partial")]


def test_a_streamed_answer_is_never_doubled() -> None:
    drafts = [user("q"), chunk("think", ChunkKind.REASONING), chunk("an"), call("a"), chunk("swer"), said("answer")]
    assert shown(*drafts[:3]) == [(0, "USER", "q"), (2, "ASSISTANT", "an", "partial")]
    assert shown(*drafts[:5])[1:] == [(2, "ASSISTANT", "answer", "partial"), (3, "a", "unanswered")]
    assert shown(*drafts)[1:] == [(3, "a", "unanswered"), (5, "ASSISTANT", "answer")]
    assert shown(*drafts, hide(5, 6))[1:] == [(3, "a", "unanswered")]


def test_other_events_do_not_end_an_answer() -> None:
    other = (
        SystemMessage(content="s"),
        instead("r", 0, 0),
        CustomEvent(name="n", data="{}"),
        chunk("{", ChunkKind.TOOL_ARGS),
    )
    assert shown(user("q"), chunk("a"), *other, chunk("b"))[1:] == [(1, "ASSISTANT", "ab", "partial")]


def test_hidden_texts_calls_results_and_chunks_are_left_out() -> None:
    drafts = (user("q"), call("a"), result("a", 1), chunk("x"), chunk("y"), said("z"), chunk("v"), chunk("w"))
    assert shown(*drafts, hide(0, 1))[0] == (1, "a", "1")
    assert shown(*drafts, hide(1, 2))[1] == (5, "ASSISTANT", "z")
    assert shown(*drafts, hide(2, 3))[1] == (1, "a", "unanswered")
    assert shown(*drafts, hide(6, 7))[-1] == (7, "ASSISTANT", "w", "partial")
    assert shown(*drafts, hide(0, 8), chunk("!")) == [(9, "ASSISTANT", "!", "partial")]
    assert shown(*drafts, hide(0, 0)) == shown(*drafts)


def test_hiding_the_events_of_an_entry_removes_it() -> None:
    drafts = [user("q"), chunk("x"), call("a"), chunk("y"), TURN, result("a"), table("1", "i"), table("2", "i")]
    for entry in conversation(log(*drafts)):
        hides = [hide(seq, seq + 1) for seq in entry.source_event_seqs]
        assert short(entry) not in shown(*drafts, *hides)
        assert len(shown(*drafts, *hides)) == 3


def test_a_result_logged_again_after_its_hide_answers() -> None:
    assert shown(call("a"), result("a", 1), result("a", 2)) == [(0, "a", "1")]
    assert shown(call("a"), result("a", 1), hide(1, 2), result("a", 2)) == [(0, "a", "2")]
    assert shown(call("a"), result("a", 1), result("a", 2), hide(1, 2)) == [(0, "a", "unanswered")]
    assert shown(call("a"), hide(0, 1), result("a", 1), result("b", 1)) == []


def test_a_result_answers_the_nearest_calls_first() -> None:
    both = (said(""), call("a"), call("a"))
    assert shown(*both, result("a", 1)) == [(1, "a", "1"), (2, "a", "unanswered")]
    assert shown(call("a"), *both, result("a", 1)) == [(0, "a", "unanswered"), (2, "a", "1"), (3, "a", "unanswered")]
    assert shown(call("a"), call("a"), user("q"), result("a", 1))[:2] == [(0, "a", "unanswered"), (1, "a", "1")]
    assert shown(call("a"), call("b"), result("b", 2), user("q"), result("a", 1), result("a", 3)) == [
        (0, "a", "1"),
        (1, "b", "2"),
        (3, "USER", "q"),
    ]


def test_an_invocation_has_the_values_of_its_result() -> None:
    found = Retrieval(layer="L0", l0_match_count=3, details="[1]")
    made = conversation(
        log(
            ToolCall(call_id="a", name="search", args='{"q":1}', step_id="s", timestamp=100),
            result("a", "é" * 600, retrieval=found, truncated=True, output_length=9_000, timestamp=350),
        )
    )
    assert isinstance(made[0], ToolEntry)
    assert made[0].invocation == ToolInvocation(
        call_id="a",
        step_id="s",
        tool_name="search",
        input_params='{"q":1}',
        started_at=100,
        seq=0,
        result_seq=1,
        output_preview="é" * 500,
        output_length=9_000,
        truncated=True,
        retrieval_layer="L0",
        l0_match_count=3,
        retrieval_details="[1]",
        duration_ms=250.0,
        success=True,
        ended_at=350,
    )


def test_a_duration_comes_from_the_event_else_from_ordered_timestamps() -> None:
    def duration(**fields: Any) -> float | None:
        [entry] = conversation(log(call("a").model_copy(update={"timestamp": 100}), result("a", 1, **fields)))
        assert isinstance(entry, ToolEntry)
        return entry.invocation.duration_ms

    assert duration(timestamp=350, duration_ms=7.5) == 7.5
    assert duration(timestamp=350) == 250.0
    assert duration(timestamp=99) is None


def test_a_card_takes_the_position_of_an_earlier_one_of_its_type_and_id() -> None:
    drafts = (table("old", "1"), user("q"), table("new", "1"), table("x", "1", "KnowledgeBase"), table("x"), table("x"))
    assert shown(*drafts) == [
        (0, "Table", "new"),
        (1, "USER", "q"),
        (3, "KnowledgeBase", "x"),
        (4, "Table", "x"),
        (5, "Table", "x"),
    ]
    [first, *_] = conversation(log(*drafts))
    assert isinstance(first, CardEntry)
    assert (first.timestamp, first.payload) == (0, "type: Table\ntitle: new\nid: 1\n")
    assert (first.card, first.card_id) == ('{"type":"Table","title":"new","id":1}', "1")


@pytest.mark.parametrize("hidden", [0, 2])
def test_a_card_whose_position_or_version_is_hidden_is_removed(hidden: int) -> None:
    drafts = (table("old", "1"), user("q"), table("new", "1"), hide(hidden, hidden + 1))
    assert shown(*drafts) == [(1, "USER", "q")]
    assert shown(*drafts, table("next", "1")) == [(1, "USER", "q"), (4, "Table", "next")]


def test_a_bad_card_is_a_placeholder_among_the_rest() -> None:
    bad = CardEvent(card_type="Table", payload="rows: [1")
    entries = conversation(log(user("q"), bad, table("m", "1", "Map"), table("Some map", "1", "Map"), table("T")))
    assert [short(entry) for entry in entries] == [
        (0, "USER", "q"),
        (1, "placeholder", "[Table shown]"),
        (2, "placeholder", "[Map shown: Some map]"),
        (4, "Table", "T"),
    ]
    assert [entry.reason for entry in entries if isinstance(entry, PlaceholderEntry)] == [
        "the payload can't be read: line 2 column 1: did not find expected ',' or ']'",
        "cards of type 'Map' are unknown here",
    ]


def test_a_form_is_degraded_unless_its_definition_exists() -> None:
    entries = conversation(log(*[CardEvent(card_type="Form", payload=f"formId: {id}") for id in "ab"], table("T")))
    assert form_ids(entries) == {"a", "b"}
    reasons = [entry.degraded for entry in with_forms(entries, {"b"}) if isinstance(entry, CardEntry)]
    assert reasons == ["The form is read-only: there is no form definition 'a'.", None, None]


@pytest.mark.parametrize("name", [*DEEPSEEK, TAU_BENCH, OASST])
def test_real_logs_show_every_text_and_call(name: str) -> None:
    for session in read_log(name).sessions:
        entries = conversation(log(*session.events), include_system=True)
        assert [entry.seq for entry in entries] == [seq for seq, event in enumerate(session.events) if _shows(event)]
        answered = [entry for entry in entries if isinstance(entry, ToolEntry) and entry.invocation.success is not None]
        appended = [event for event in session.events if isinstance(event, ToolResult)]
        assert len(answered) == len(appended) <= counts([session])["tool/call"]
        assert not any(isinstance(entry, TextEntry) and entry.partial for entry in entries)


def _shows(event: Event) -> bool:
    match event:
        case UserMessage() | AssistantMessage() | SystemMessage():
            empty = isinstance(event, AssistantMessage) and not event.content and event.blocks is None
            return event.surface_op.op is SurfaceOpKind.APPEND and not empty
        case ToolCall():
            return True
    return False


def test_a_compaction_leaves_the_conversation_alone() -> None:
    [session] = read_log(COMPACTION).sessions
    entries = conversation(log(*session.events))
    assert [entry.seq for entry in entries] == [4, 14, 28]
    assert short(entries[1]) == (14, "call_compaction_marker", "alpha\n")
    assert short(entries[2]) == (28, "ASSISTANT", "COMPACTION RECOVERED")


def test_cancelled_calls_show_their_errors() -> None:
    [session] = read_log(CANCELLED).sessions
    made = [entry.invocation for entry in conversation(log(*session.events)) if isinstance(entry, ToolEntry)]
    assert [(call.success, call.error, call.output_preview) for call in made] == [
        (False, "Error: tool call aborted", None),
        (False, "Error: tool call aborted before dispatch", None),
    ]


def test_a_real_log_cut_while_it_streams_shows_the_answer_so_far() -> None:
    [session] = read_log(COMPACTION).sessions
    cut: Iterable[Event] = session.events[:25]
    assert short(conversation(log(*cut))[-1]) == (24, "ASSISTANT", "COMPACTION RECOVERED", "partial")
