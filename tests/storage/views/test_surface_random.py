"""Any log gives a valid surface, the one that the rules define, however it is folded."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    ChunkKind,
    CustomEvent,
    Event,
    InsightDelivered,
    RunFeedback,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOp,
    SurfaceOpKind,
    Surfacing,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.views.records import records
from storage.views.surface import Surface
from storage.views.surface_chunks import chunks_needed
from storage.views.trim import hides_for_trim
from tests.storage.views.surface_logs import short
from tests.storage.views.surface_model import Model
from tests.storage.views.validity import check


def made(event: type[Event], /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    """Events with these fields; st.builds would also draw fields by their aliases."""
    return st.fixed_dictionaries(fields).map(lambda drawn: event(**drawn))


TURNS, STEPS, IDS = st.sampled_from("tu"), st.sampled_from(["s", "r", None]), st.sampled_from("AAB")
TEXTS = st.sampled_from(["", "x", "yy"])
PLACES = st.integers(0, 40)
REPLACE = st.builds(
    lambda start, end: SurfaceOp(op=SurfaceOpKind.REPLACE, start=start, end=end),
    PLACES,
    st.sampled_from([0, 0, 0, 1, 1, 2, 3, 6]),
)
"""The index of a node, and how many further nodes: see `placed`."""
OPS = st.one_of(st.just(SurfaceOp()), st.just(SurfaceOp()), REPLACE)
NAMED = {"turn_id": TURNS, "step_id": STEPS}
CALLS = made(ToolCall, call_id=IDS, name=st.just("f"), args=st.just("{}"))
RESULTS = made(ToolResult, call_id=IDS, result=st.sampled_from([None, '"r"']), surface_op=OPS, step_id=STEPS)
CHUNKS = made(AssistantChunk, delta=TEXTS, kind=st.sampled_from([ChunkKind.TEXT, ChunkKind.TEXT, *ChunkKind]))
ANSWERS = made(AssistantMessage, content=TEXTS, surface_op=OPS)
CALLS_AND_ANSWERS = st.sampled_from([CALLS, CALLS, CALLS, RESULTS, RESULTS, RESULTS, CHUNKS, ANSWERS]).flatmap(
    lambda chosen: chosen
)
OTHERS = st.one_of(
    made(UserMessage, content=TEXTS, surface_op=OPS),
    made(SystemMessage, content=TEXTS, surface_op=OPS),
    made(TurnStart, turn_id=TURNS),
    made(TurnEnd, turn_id=TURNS),
    made(StepStart, **NAMED),
    made(StepEnd, **NAMED),
    st.builds(lambda first, more: SurfaceHide(from_seq=first, to_seq=more), PLACES, st.integers(0, 4)),
    st.sampled_from(
        [
            CardEvent(card_type="Table", payload="a: 1"),
            InsightDelivered(content="i", version=1, turn_id="t"),
            RunFeedback(feedback="f", turn_id="t"),
            CustomEvent(name="n", data="0"),
        ]
    ),
)


def placed(drawn: Sequence[Event]) -> list[Event]:
    """The events with seqs, and with replacements and hides that name existing nodes; some of them wrongly."""
    model, log = Model(), []
    for seq, event in enumerate(drawn):
        changes: dict[str, object] = {"seq": seq}
        if isinstance(event, SurfaceHide):
            first = event.from_seq % (seq + 1)
            changes |= {"from_seq": first, "to_seq": min(first + event.to_seq, seq)}
        elif isinstance(event, Surfacing) and event.surface_op.op is SurfaceOpKind.REPLACE:
            nodes = model.nodes()
            if isinstance(event, ToolResult):
                nodes = [node for node in nodes if node[2] is not None and node[2].call_id == event.call_id] or nodes
            first, more = event.surface_op.start or 0, event.surface_op.end or 0
            if nodes and more < 6:
                start = first % len(nodes)
                end = min(start + more, len(nodes) - 1)
                op = event.surface_op.model_copy(update={"start": nodes[start][0], "end": nodes[end][0]})
                changes["surface_op"] = op
        log.append(event.model_copy(update=changes))
        model.add(log[-1])
    return log


DRAWN = st.lists(st.booleans().flatmap(lambda usual: CALLS_AND_ANSWERS if usual else OTHERS), min_size=15, max_size=40)
LOGS = DRAWN.map(placed)


def lines(surface: Surface) -> list[tuple[object, ...]]:
    return [(*short(message), list(message.source_event_seqs)) for message in surface.messages()]


@given(LOGS)
def test_every_cut_is_valid_and_follows_the_rules(log: Sequence[Event]) -> None:
    surface, model = Surface(), Model()
    check(surface)
    for event in log:
        if isinstance(event, Surfacing) and event.surface_op.op is SurfaceOpKind.REPLACE:
            assert refused(surface, event) == (model.bounds(event) is None)
        surface.add(event)
        model.add(event)
        check(surface)
        assert lines(surface) == model.shown()


def refused(surface: Surface, event: Event) -> bool:
    try:
        surface.check_replace(event)
    except errors.BadInput:
        return True
    return False


@given(LOGS, st.integers(0, 40), st.integers(0, 40))
def test_one_more_event_equals_all_at_once(log: Sequence[Event], at: int, then: int) -> None:
    """Also on copies: folding onto a copy does not change the original."""
    kept = Surface().add_all(log[:at])
    grown = kept.copy().add_all(log[at:then])
    before = kept.openai_text()
    other = grown.copy()
    hidden = grown.copy().add_all(hides_for_trim(grown, 0))
    assert (kept.openai_text(), hidden.messages()) == (before, [])
    grown.add_all(log[max(at, then) :])
    for surface, end in ((kept, at), (other, max(at, then)), (grown, len(log))):
        fresh = Surface().add_all(log[:end])
        assert (surface.messages(), surface.openai_text()) == (fresh.messages(), fresh.openai_text())
        assert surface.delivered() == fresh.delivered()


@given(LOGS, st.integers(0, 40))
def test_every_window_is_valid(log: Sequence[Event], start: int) -> None:
    surface = Surface()
    for event in log[start:]:
        check(surface.add(event))


@given(LOGS, st.integers(0, 12))
def test_a_trim_leaves_the_newest_records(log: Sequence[Event], keep: int) -> None:
    surface = Surface().add_all(log)
    before, first_group = records(surface), surface.nodes()
    hides = hides_for_trim(surface, keep)
    surface.add_all(hides)
    check(surface)
    left = records(surface)
    assert left == before[len(before) - len(left) :]
    most = max((1 + len(node.results) for node in first_group), default=0)
    assert min(keep, len(before)) <= len(left) < keep + max(most, 1)
    assert (hides == []) == (left == before)


@given(LOGS, st.integers(0, 40))
def test_the_chunks_that_matter_suffice(log: Sequence[Event], start: int) -> None:
    start = min(start, len(log))
    others = [event for event in log[start:] if not isinstance(event, AssistantChunk)]
    ranges = chunks_needed(others, start, len(log))
    part = [event for event in log[start:] if event in others or any(event.seq in needed for needed in ranges)]
    surface = Surface().add_all(log[:start]).add_all(part)
    whole = Surface().add_all(log)
    assert (surface.messages(), surface.head) == (whole.messages(), whole.head)
