"""Events kept from being appended until a surface is folded of them."""

import itertools

from storage.events import Event, UserMessage
from storage.log.admission import Admission
from storage.log.append import build_commit
from storage.log.buffer import EVENT_BYTES
from storage.log.commit import Commit, read_commit
from storage.log.recent import Recent
from storage.log.state import LogState
from storage.session import Segment, SessionMeta


def committed(log: str, first: int, count: int) -> tuple[Commit, list[Event]]:
    meta = SessionMeta(
        space="s", id=log, label="", created_at=0, updated_at=0, head=first, segments=(Segment(log=log, start=0),)
    )
    admission = Admission(LogState(head=first), (), 0)
    events = [admission.admit(UserMessage(content=f"{log} {seq}"), "") for seq in range(first, first + count)]
    return build_commit(meta, events, admission), events


def kept(recent: Recent, log: str, start: int = 0, stop: int = 1_000) -> list[int]:
    parts = recent.of(log, start, stop)
    for before, after in itertools.pairwise(parts):
        assert before.stop == after.events[0].seq
    return [event.seq for part in parts for event in part.events]


def test_the_commits_of_a_log_are_given_in_order_and_cut_where_asked() -> None:
    recent = Recent()
    for first in (5, 8, 11):
        commit, events = committed("a", first, 3)
        recent.add(commit, events)
        assert [event for part in recent.of("a", first, first + 3) for event in part.events] == read_commit(commit)
    assert kept(recent, "a") == list(range(5, 14))
    assert kept(recent, "a", 6, 12) == list(range(6, 12))
    assert kept(recent, "a", 8, 11) == [8, 9, 10]
    assert kept(recent, "a", 0, 5) == kept(recent, "a", 14) == kept(recent, "b") == []


def test_a_commit_behind_a_gap_stands_alone() -> None:
    recent = Recent()
    for first in (0, 2, 6):
        recent.add(*committed("a", first, 2))
    assert kept(recent, "a") == [6, 7]


def test_a_commit_that_is_told_late_changes_nothing() -> None:
    recent = Recent()
    for first in (2, 0, 4):
        recent.add(*committed("a", first, 2))
    assert kept(recent, "a") == [2, 3, 4, 5]


def test_what_was_kept_longest_goes_first_and_what_is_larger_than_all_is_not_kept() -> None:
    commit, events = committed("a", 0, 2)
    recent = Recent(3 * (commit.size + EVENT_BYTES * len(events)))
    for log, first in (("a", 0), ("b", 0), ("a", 2), ("b", 2)):
        recent.add(*committed(log, first, 2))
    assert (kept(recent, "a"), kept(recent, "b")) == ([2, 3], [0, 1, 2, 3])
    recent.add(*committed("c", 0, 50))
    assert [kept(recent, log) for log in "abc"] == [[], [], []]
    recent.add(*committed("b", 4, 2))
    assert kept(recent, "b") == [4, 5]


def test_what_is_folded_is_forgotten() -> None:
    recent = Recent()
    for first in (0, 2, 4):
        recent.add(*committed("a", first, 2))
    recent.forget("a", 3)
    assert kept(recent, "a") == [2, 3, 4, 5]
    recent.forget("a", 6)
    recent.forget("b", 6)
    assert kept(recent, "a") == []
