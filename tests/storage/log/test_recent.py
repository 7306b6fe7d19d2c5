"""The cache of recent commits: without gaps, in order, and within its memory."""

import itertools

from storage.events import Event, UserMessage
from storage.log.admission import Admission
from storage.log.append import build_commit
from storage.log.commit import Commit, read_commit
from storage.log.recent import COMMIT_BYTES, EVENT_BYTES, RecentCommits
from storage.log.state import LogState
from storage.session import Segment, SessionMeta


def committed(log: str, first: int, count: int) -> tuple[Commit, list[Event]]:
    meta = SessionMeta(
        space="s", id=log, label="", created_at=0, updated_at=0, head=first, segments=(Segment(log=log, start=0),)
    )
    admission = Admission(LogState(head=first), (), 0)
    events = [admission.admit(UserMessage(content=f"{log} {seq}"), "") for seq in range(first, first + count)]
    return build_commit(meta, events, admission), events


def commit(log: str, first: int, count: int) -> Commit:
    return committed(log, first, count)[0]


def memory(commit: Commit, count: int) -> int:
    return commit.size + COMMIT_BYTES + EVENT_BYTES * count


def cached(recent: RecentCommits, log: str, start: int = 0, stop: int = 1_000) -> list[int]:
    parts = recent.between(log, start, stop)
    for before, after in itertools.pairwise(parts):
        assert before.stop == after.events[0].seq
    return [event.seq for part in parts for event in part.events]


def test_commits_of_a_log_are_returned_in_order_and_cut_at_both_ends() -> None:
    recent = RecentCommits()
    for first in (5, 8, 11):
        added = commit("a", first, 3)
        recent.add(added)
        assert [event for part in recent.between("a", first, first + 3) for event in part.events] == read_commit(added)
    assert cached(recent, "a") == list(range(5, 14))
    assert cached(recent, "a", 6, 12) == list(range(6, 12))
    assert cached(recent, "a", 8, 11) == [8, 9, 10]
    assert cached(recent, "a", 0, 5) == cached(recent, "a", 14) == cached(recent, "b") == []


def test_a_reader_gets_the_rest_of_the_commit_that_holds_its_next_seq() -> None:
    recent = RecentCommits()
    for first in (5, 8):
        recent.add(commit("a", first, 3))
    rests = {seq: [event.seq for event in recent.after("a", seq)] for seq in range(4, 12)}
    assert rests == {4: [], 5: [5, 6, 7], 6: [6, 7], 7: [7], 8: [8, 9, 10], 9: [9, 10], 10: [10], 11: []}
    assert recent.after("b", 5) == ()


def test_a_commit_after_a_gap_replaces_the_earlier_ones() -> None:
    recent = RecentCommits()
    for first in (0, 2, 6):
        recent.add(commit("a", first, 2))
    assert cached(recent, "a") == [6, 7]
    assert recent.memory == memory(commit("a", 6, 2), 2)


def test_a_commit_that_arrives_late_is_ignored() -> None:
    recent = RecentCommits()
    for first in (2, 0, 4):
        recent.add(commit("a", first, 2))
    assert cached(recent, "a") == [2, 3, 4, 5]


def test_the_log_written_longest_ago_is_evicted_first_and_a_commit_over_the_limit_is_not_cached() -> None:
    limit = 3 * memory(commit("a", 0, 2), 2)
    recent = RecentCommits(limit)
    for log, first in (("a", 0), ("b", 0), ("a", 2), ("b", 2)):
        recent.add(commit(log, first, 2))
    assert (cached(recent, "a"), cached(recent, "b")) == ([2, 3], [0, 1, 2, 3])
    assert recent.memory == limit
    recent.add(commit("c", 0, 50))
    assert [cached(recent, log) for log in "abc"] == [[], [], []]
    assert recent.memory == 0
    recent.add(commit("b", 4, 2))
    assert cached(recent, "b") == [4, 5]


def test_reading_changes_neither_events_nor_memory() -> None:
    recent = RecentCommits()
    added = commit("a", 0, 3)
    recent.add(added)
    before = recent.memory
    assert list(recent.after("a", 0)) == list(recent.after("a", 0)) == read_commit(added)
    assert recent.memory == before


def test_events_that_a_commit_was_made_of_give_the_same() -> None:
    recent = RecentCommits()
    added, admitted = committed("a", 0, 3)
    recent.supply(added, admitted)
    assert recent.after("a", 0) == ()
    recent.add(added)
    recent.supply(added, admitted)
    assert list(recent.after("a", 0)) == read_commit(added)
    recent.supply(added, admitted)
    assert list(recent.after("a", 0)) == read_commit(added)
