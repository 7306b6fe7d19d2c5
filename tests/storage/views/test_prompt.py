"""The prompt: the texts of a log for a model without cards. A card is one line, never YAML."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.events import CardEvent, Event, SurfaceOp, SurfaceOpKind, SystemMessage
from storage.views.message import Message, Role
from storage.views.prompt import Prompt, prompt
from tests.storage.transfer.formats.logs import DEEPSEEK, TAU_BENCH, read_log
from tests.storage.views.test_cards import FORM
from tests.storage.views.test_conversation import (
    COMPACTION,
    TURN,
    TURN_END,
    call,
    chunk,
    hide,
    instead,
    log,
    result,
    said,
    table,
    user,
)
from tests.storage.views.test_conversation_folding import logs


def lines(*drafts: Event, guide: str | None = None) -> list[str]:
    marks = {Role.SYSTEM: "S", Role.USER: "U", Role.ASSISTANT: "A"}
    return [f"{marks[message.role]} {message.content}" for message in prompt(log(*drafts), guide)]


RULES = SystemMessage(content="rules")


def test_texts_are_unchanged_and_cards_are_one_line() -> None:
    form = CardEvent(card_type="Form", payload=FORM)
    drafts = (RULES, TURN, user("q"), said(""), call("a"), result("a", "found"), form, said("done"), TURN_END)
    assert lines(*drafts) == ["S rules", "U q", "A [Form shown: Watering plan for bed 3]", "A done"]


def test_a_guide_prompt_replaces_the_system_messages() -> None:
    drafts = (RULES, user("q"), said("a"), SystemMessage(content="more"))
    assert lines(*drafts, guide="Sum it up.") == ["S Sum it up.", "U q", "A a"]
    assert lines(guide="") == ["S "]
    assert lines() == []


def test_a_message_names_its_events() -> None:
    assert prompt(log(user("q"), chunk("a"), chunk("b"))) == [
        Message(Role.USER, "q", source_event_seqs=(0,), timestamp=0),
        Message(Role.ASSISTANT, "ab", source_event_seqs=(1, 2), timestamp=1000, repaired=True),
    ]


def test_an_unfinished_answer_is_text_until_its_message_is_logged() -> None:
    assert lines(user("q"), chunk("an")) == ["U q", "A an"]
    assert lines(user("q"), chunk("an"), said("answer")) == ["U q", "A answer"]
    assert lines(user("q"), chunk("an"), TURN_END, said("answer")) == ["U q", "A an", "A answer"]


def test_hidden_texts_are_left_out() -> None:
    drafts = (user("q"), said("a"), table("T", "1"), user("r"))
    assert lines(*drafts, hide(1, 3)) == ["U q", "U r"]
    assert lines(*drafts, hide(0, 4), said("b")) == ["A b"]


def test_a_card_keeps_the_position_of_its_first_version() -> None:
    assert lines(table("old", "1"), user("q"), table("new", "1")) == ["A [Table shown: new]", "U q"]


def test_an_unreadable_card_is_a_line_without_its_payload() -> None:
    broken = CardEvent(card_type="Table", payload="rows:\n- secret: [")
    assert lines(broken, table("Where", kind="Map")) == ["A [Table shown]", "A [Map shown: Where]"]


def test_a_replacement_replaces_everything_between_its_bounds() -> None:
    drafts = (RULES, user("q"), said(""), call("a"), table("T"), result("a"), said("b"), user("r"))
    assert lines(*drafts, instead("summary", 1, 6)) == ["S rules", "U summary", "U r"]
    assert lines(*drafts, instead("summary", 2, 2)) == [
        "S rules",
        "U q",
        "U summary",
        "A [Table shown: T]",
        "A b",
        "U r",
    ]
    assert lines(*drafts, instead("s", 1, 2), instead("t", 8, 6)) == ["S rules", "U t", "U r"]
    assert lines(*drafts, instead("s", 1, 6), hide(8, 9)) == ["S rules", "U r"]
    system = SystemMessage(content="s", surface_op=SurfaceOp(op=SurfaceOpKind.REPLACE, start=1, end=6))
    assert lines(*drafts, system) == ["S rules", "S s", "U r"]


def test_a_replacement_leaves_an_answer_that_is_streaming() -> None:
    assert lines(user("q"), said("a"), chunk("b"), instead("s", 0, 1), chunk("c")) == ["U s", "A bc"]
    assert lines(user("q"), chunk("b"), said("a"), instead("s", 0, 2)) == ["U s"]


def test_a_replacement_that_ends_with_a_streaming_answer_replaces_it() -> None:
    log = [user("q"), chunk(""), chunk("half"), instead("s", 0, 1)]
    assert lines(*log) == ["U s"]
    assert lines(*log, chunk("more")) == ["U s", "A more"]
    assert lines(*log, chunk("more"), said("whole")) == ["U s", "A whole"]


def test_a_real_compaction_is_applied() -> None:
    [session] = read_log(COMPACTION).sessions
    first, last = prompt(log(*session.events))
    assert (first.role, first.source_event_seqs) == (Role.USER, (21,))
    assert first.content is not None and first.content.startswith("This is an automatically generated checkpoint")
    assert (last.role, last.content) == (Role.ASSISTANT, "COMPACTION RECOVERED")


@pytest.mark.parametrize("name", [*DEEPSEEK, TAU_BENCH])
def test_the_prompts_of_real_logs_are_their_texts(name: str) -> None:
    for session in read_log(name).sessions:
        if any("REPLACE" in str(event) for event in session.events):
            continue
        texts = [text for event in session.events if (text := getattr(event, "content", None))]
        assert [message.content for message in prompt(log(*session.events))] == texts


@given(logs(), st.none() | st.just("guide"))
def test_folding_event_by_event_equals_folding_at_once(events: Sequence[Event], guide: str | None) -> None:
    state = Prompt()
    for length, event in enumerate(events, 1):
        assert state.add(event).messages(guide) == prompt(events[:length], guide)
    assert all("\n" not in (message.content or "") for message in state.messages(guide))
