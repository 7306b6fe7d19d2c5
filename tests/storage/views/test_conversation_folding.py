"""A conversation folded event by event equals one folded at once, whatever the log."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from storage.events import CardEvent, ChunkKind, CustomEvent, Event, SystemMessage
from storage.views.conversation import Conversation, conversation
from tests.storage.views.test_conversation import (
    STEP,
    STEP_END,
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


@st.composite
def logs(draw: st.DrawFn, size: int = 30) -> list[Event]:
    """Any log: reused ids, replacements, hides of anything, valid and invalid cards."""
    drafts: list[Event] = []
    for seq in range(draw(st.integers(0, size))):
        id = draw(st.sampled_from("xy"))
        low, high = sorted((draw(st.integers(0, seq)), draw(st.integers(0, seq))))
        kinds = [
            *(chunk("a"), chunk("b"), chunk("", ChunkKind.TEXT), chunk("r", ChunkKind.REASONING)),
            *(user(id), said(id), said(""), SystemMessage(content=id), instead(id, low, high)),
            *(
                call(id),
                call(id),
                result(id, seq),
                result(id, error="e"),
                hide(low, high),
                hide(max(0, high - 1), high),
            ),
            *(
                table(id, id),
                table("n", id),
                table("u", id, "Map"),
                table("t"),
                CardEvent(card_type="Table", payload="["),
            ),
            *(TURN, TURN_END, STEP, STEP_END, CustomEvent(name="n", data="{}")),
        ]
        drafts.append(draw(st.sampled_from(kinds)))
    return log(*drafts)


@given(logs())
def test_folding_event_by_event_equals_folding_at_once(events: Sequence[Event]) -> None:
    state = Conversation()
    for length, event in enumerate(events, 1):
        state.add(event)
        assert state.entries(include_system=True) == conversation(events[:length], include_system=True)
