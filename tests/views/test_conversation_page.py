"""A page of a conversation equals that part of the whole, whatever the log, and reads only what is near it."""

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import errors
from storage.events import CardEvent, ChunkKind, CustomEvent, Event, SystemMessage
from storage.views.conversation import Conversation, conversation
from storage.views.conversation_entry import Entry, TextEntry
from storage.views.conversation_page import ConversationPage, Found, Need, page
from tests.views.test_conversation import (
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
    short,
    table,
    user,
)


@dataclass
class Answer:
    events: Sequence[Event]
    reached: int


class Reader:
    """Answers from a list, with at most so many events a time, and counts what it read."""

    def __init__(self, events: Sequence[Event], most: int = 1_000_000) -> None:
        self.events = events
        self.most = most
        self.read = 0

    def __call__(self, need: Need) -> Answer:
        assert 0 <= need.start < need.stop <= len(self.events)
        asked = self.events[need.start : need.stop]
        found = [event for event in asked if need.types is None or event.type in need.types]
        taken = found[-self.most :] if need.newest_first else found[: self.most]
        self.read += len(taken)
        if len(taken) == len(found):
            return Answer(taken, need.start if need.newest_first else need.stop)
        return Answer(taken, taken[0].seq if need.newest_first else taken[-1].seq + 1)


def drive(needs: Generator[Need, Found, ConversationPage], answer: Callable[[Need], Found]) -> ConversationPage:
    try:
        need = next(needs)
        while True:
            need = needs.send(answer(need))
    except StopIteration as done:
        made: ConversationPage = done.value
        return made


def read_page(events: Sequence[Event], read: Reader | None = None, **wanted: int) -> ConversationPage:
    counts = Counter(event.type for event in events)
    return drive(page(len(events), counts, **wanted), read or Reader(events))  # type: ignore[arg-type]


@st.composite
def logs(draw: st.DrawFn, size: int = 30) -> list[Event]:
    """Any log: ids reused, replacements, hides of anything, cards good and bad."""
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


@given(logs())
def test_entries_are_ordered_by_seqs_that_are_all_different(events: Sequence[Event]) -> None:
    seqs = [entry.seq for entry in conversation(events, include_system=True)]
    assert seqs == sorted(set(seqs))


@settings(max_examples=200)
@given(logs(50), st.integers(1, 6), st.integers(0, 50), st.integers(0, 50), st.booleans(), st.integers(1, 9))
def test_a_page_is_that_part_of_the_whole(
    events: Sequence[Event], count: int, start: int, stop: int, newest_first: bool, most: int
) -> None:
    whole = [entry for entry in conversation(events, include_system=newest_first) if start <= entry.seq < stop]
    expected = whole[-count:] if newest_first else whole[:count]
    found = read_page(
        events,
        Reader(events, most),
        start=start,
        stop=stop,
        count=count,
        newest_first=newest_first,
        include_system=newest_first,
    )
    assert found.entries == expected
    assert found.head == len(events)


@given(logs(40), st.integers(1, 5), st.booleans())
def test_pages_in_either_direction_add_up_to_the_whole(events: Sequence[Event], count: int, newest_first: bool) -> None:
    collected: list[Entry] = []
    at: int | None = len(events) if newest_first else 0
    for _ in range(len(events) + 1):
        if newest_first:
            found = read_page(events, stop=at or 0, count=count, newest_first=True)
            collected = found.entries + collected
            at = found.prev_seq
        else:
            found = read_page(events, start=at or 0, count=count)
            collected += found.entries
            at = found.next_seq if found.next_seq < len(events) else None
        if at is None:
            break
    assert at is None
    assert collected == conversation(events)


def test_the_ends_of_pages_are_told_as_events_tell_them() -> None:
    events = log(*[user(str(seq)) for seq in range(10)])

    def ends(**wanted: int) -> tuple[int, int, int | None]:
        found = read_page(events, **wanted)
        return len(found.entries), found.next_seq, found.prev_seq

    assert ends() == (10, 10, None)
    assert ends(start=3, count=4) == (4, 7, 3)
    assert ends(start=3, stop=5) == (2, 5, 3)
    assert ends(count=4, newest_first=True) == (4, 10, 6)
    assert ends(stop=4, count=4, newest_first=True) == (4, 4, None)
    assert ends(start=2, stop=4, count=4, newest_first=True) == (2, 4, 2)
    assert ends(start=99) == ends(start=10) == (0, 10, 10)
    assert ends(count=0) == (0, 0, None)
    assert ends(count=0, newest_first=True) == (0, 10, 10)
    assert read_page([]) == ConversationPage([], 0, None, 0)


def test_a_page_ends_before_its_bytes_but_holds_an_entry() -> None:
    events = log(*[user("é" * 50) for _ in range(10)])
    assert len(read_page(events, max_bytes=350).entries) == 3
    assert len(read_page(events, max_bytes=1).entries) == 1
    newest = read_page(events, max_bytes=350, newest_first=True)
    assert ([entry.seq for entry in newest.entries], newest.prev_seq) == ([7, 8, 9], 7)


def conversing(turns: int) -> list[Event]:
    """Turns of ten events, five of them entries, chunks as they are streamed."""
    drafts: list[Event] = []
    for turn in range(turns):
        id = str(turn)
        drafts += [
            TURN,
            user("q"),
            STEP,
            call(id),
            result(id, 1),
            chunk("a"),
            table("t"),
            said("b"),
            STEP_END,
            TURN_END,
        ]
    return log(*drafts)


@pytest.mark.parametrize(
    "last", [lambda: user("q"), lambda: call("open"), lambda: hide(0, 5), lambda: table("t", "id")]
)
def test_the_last_page_reads_as_much_of_a_long_log_as_of_a_short_one(last: Callable[[], Event]) -> None:
    read = []
    for turns in (100, 2_000):
        events = log(*conversing(turns), last())
        reader = Reader(events)
        found = read_page(events, reader, count=200, newest_first=True)
        assert len(found.entries) == 200
        read.append(reader.read)
    # The cards of the whole log are looked through for one with an id; no more than that.
    assert read[1] <= read[0] + (2_001 if last().type == "card" else 0)


def test_a_long_streamed_answer_is_one_entry_of_the_last_page() -> None:
    events = log(user("q"), TURN, *[chunk("x") for _ in range(18_000)])
    found = read_page(events, count=2, newest_first=True)
    assert [entry.seq for entry in found.entries] == [0, 2]
    assert isinstance(found.entries[1], TextEntry) and len(found.entries[1].content) == 18_000
    middle = read_page(events, start=1, stop=9_000, count=5)
    assert middle.entries == found.entries[1:]


def test_a_result_that_comes_much_later_is_found() -> None:
    events = log(call("a"), *[user("x") for _ in range(3_000)], result("a", "late"))
    [first] = read_page(events, count=1).entries
    assert short(first) == (0, "a", "late")


def test_a_reader_that_stands_still_is_told_so() -> None:
    with pytest.raises(errors.SapwoodError, match="no progress at 5"):
        drive(page(5, {}, newest_first=True), lambda need: Answer([], need.stop))
