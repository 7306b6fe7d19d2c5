"""Real logs, cut after every event and in every window, give valid surfaces."""

import json
from collections.abc import Iterator, Sequence

import orjson
import pytest

from storage.events import Event
from storage.views.message import Role
from storage.views.records import records
from storage.views.surface import Surface
from storage.views.trim import hides_for_trim
from tests.effort import LONG
from tests.storage.transfer.formats.logs import ALL, DATA, DEEPSEEK, OASST, TAU_BENCH
from tests.storage.views.real_logs import cuts, logs
from tests.storage.views.surface_logs import seqs, shown
from tests.storage.views.validity import check, problems


def folds(log: Sequence[Event]) -> Iterator[Surface]:
    """The surface after every event, folded on one state."""
    surface = Surface()
    for event in log:
        yield surface.add(event)


@pytest.mark.parametrize("name", ALL)
def test_every_cut_is_valid(name: str) -> None:
    for log in logs(name):
        for surface in folds(log):
            check(surface)


@pytest.mark.parametrize("name", ALL)
def test_folding_by_one_equals_folding_at_once(name: str) -> None:
    for log in logs(name):
        ends = set(cuts(log))
        for surface in folds(log):
            if surface.head in ends:
                fresh = Surface().add_all(log[: surface.head])
                assert (fresh.messages(), fresh.openai_text()) == (surface.messages(), surface.openai_text())


@pytest.mark.parametrize("name", ALL)
def test_every_window_is_valid(name: str) -> None:
    for log in list(logs(name))[:: 1 if LONG else 5]:
        ends = cuts(log)
        for start in ends:
            surface = Surface()
            for before, end in zip([start, *ends], ends, strict=False):
                if end > start:
                    surface.add_all(log[max(before, start) : end])
                    assert problems(orjson.loads(surface.openai_text())) == []


@pytest.mark.parametrize("name", ALL)
def test_trims_to_every_size_are_valid_and_keep_the_newest(name: str) -> None:
    for log in logs(name):
        whole = Surface().add_all(log)
        all_records = records(whole)
        for keep in range(len(all_records) + 1):
            trimmed = whole.copy().add_all(hides_for_trim(whole, keep))
            check(trimmed)
            left = records(trimmed)
            assert keep <= len(left)
            assert left == all_records[len(all_records) - len(left) :]


def test_tau_bench_surfaces_are_the_original_messages() -> None:
    trials = json.loads((DATA / TAU_BENCH).read_bytes())
    found = [Surface().add_all(log) for log in logs(TAU_BENCH) if log]
    assert len(found) == len(trials) == 100
    for surface, trial in zip(found, trials, strict=True):
        fields = ("role", "content", "tool_calls", "tool_call_id")
        original = [
            {name: message[name] for name in fields if message.get(name) or name == "content"}
            | {"role": message["role"]}
            for message in trial["traj"]
        ]
        assert json.loads(surface.openai_text()) == original
        assert not any(message.repaired for message in surface.messages())


def test_the_messages_of_trees_are_their_texts() -> None:
    for log in logs(OASST):
        surface = Surface().add_all(log)
        assert [(message.content, *message.source_event_seqs) for message in surface.messages()] == [
            (getattr(event, "content", None), event.seq) for event in log
        ]


def deepseek(name: str) -> Surface:
    [path] = [each for each in DEEPSEEK if name in each]
    return Surface().add_all(logs(path)[0])


def test_a_compaction_replaces_its_message() -> None:
    surface = deepseek("compaction-recovery")
    assert seqs(surface) == [(21,), (13, 14), (15,), (28,)]
    checkpoint, *rest = shown(surface)
    assert checkpoint[0] == "user"
    assert checkpoint[1].endswith("The request established a durable compaction premise.</compacted-summary>")
    assert rest == [
        ("assistant", None, "call_compaction_marker"),
        ("call_compaction_marker", "alpha\n"),
        ("assistant", "COMPACTION RECOVERED"),
    ]


def test_cancelled_calls_are_answered_by_their_errors() -> None:
    surface = deepseek("cancel-tool-calls")
    assert shown(surface)[2:] == [
        ("assistant", None, "call_wait", "call_skipped"),
        ("call_wait", "Error: tool call aborted"),
        ("call_skipped", "Error: tool call aborted before dispatch"),
    ]
    assert [message.role for message in surface.messages()[:2]] == [Role.USER, Role.USER]


def test_logs_that_end_well_need_no_repair() -> None:
    for name in DEEPSEEK:
        for log in logs(name):
            assert not any(message.repaired for message in Surface().add_all(log).messages()), name
