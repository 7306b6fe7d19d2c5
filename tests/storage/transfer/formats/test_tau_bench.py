"""A task is a node and its trials are its children; trials with the same start are forks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import Event, SystemMessage, ToolCall, UserMessage
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, read_document
from storage.transfer.formats.shared.shared_prefixes import MAX_DEPTH, SharedPrefixes
from storage.views.surface import Surface
from tests.storage.transfer.formats.documents import check_broken, nested
from tests.storage.transfer.formats.logs import DATA, TAU_BENCH, messages, read_log, steps_of_values, visible_logs
from tests.storage.transfer.formats.mutations import odd

TRIALS: list[dict[str, Any]] = json.loads((DATA / TAU_BENCH).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def reading() -> ForeignDocument:
    return read_log(TAU_BENCH)


def whole(sessions: list[ForeignSession]) -> list[ForeignSession]:
    """The sessions as if none were a fork."""
    logs = visible_logs(sessions)
    return [ForeignSession(key=session.key, label=session.label, events=logs[session.key]) for session in sessions]


def trial(number: int, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"task_id": 1, "trial": number, "reward": 1.0, "info": {"task": {"a": 1}}, "traj": list(messages)} | fields


def say(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_the_real_trials_are_all_there(reading: ForeignDocument) -> None:
    """Counts the visible events of each trial, as a fork holds only what it does not share."""
    sessions = whole(reading.sessions)
    assert sum(session.counted for session in reading.sessions) == 100
    assert messages(sessions) == (860, 1381, 621, 100)
    found = [event.type for session in sessions for event in session.events]
    assert found.count("tool/call") == 621
    assert found.count("turn/start") == found.count("turn/end") == 860
    assert found.count("step/start") == found.count("step/end") == 1381


def test_the_surface_of_each_real_trial_is_its_messages(reading: ForeignDocument) -> None:
    """Before calls, empty text equals null; the name in a tool message is that of its call."""
    logs = visible_logs(reading.sessions)
    trials = [logs[session.key] for session in reading.sessions if session.counted]
    for log, source in zip(trials, TRIALS, strict=True):
        assert [shown(json.loads(message)) for message in Surface().add_all(log).openai()] == [
            shown(message) for message in source["traj"]
        ]


def shown(message: dict[str, Any]) -> tuple[Any, ...]:
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())
    ]
    return message["role"], message["content"] or "", calls, message.get("tool_call_id")


def test_each_task_is_the_parent_of_its_four_trials(reading: ForeignDocument) -> None:
    tasks = [session for session in reading.sessions if not session.counted]
    assert [task.label for task in tasks] == [f"Task {number}" for number in range(25)]
    for task in tasks:
        children = [session for session in reading.sessions if session.parent == task.key]
        assert [child.label for child in children] == [f"{task.label}, trial {trial}" for trial in range(4)]
        assert not task.events
        assert json.loads(task.metadata or "")["task"]["instruction"].startswith("You")


def test_trials_of_a_task_with_the_same_start_are_forks_of_the_longest_shared_prefix(reading: ForeignDocument) -> None:
    """All trials of a task begin with the same system message, so 75 of 100 are forks of an earlier one."""
    logs = visible_logs(reading.sessions)
    trials = [session for session in reading.sessions if session.counted]
    sources = {session.key: source["traj"] for session, source in zip(trials, TRIALS, strict=True)}
    assert sum(session.source is not None for session in trials) == 75
    for session in trials:
        earlier = [other for other in trials[: trials.index(session)] if other.parent == session.parent]
        lengths = [alike(sources[other.key], sources[session.key]) for other in earlier]
        kept = sum(
            event.type in ("system/message", "user/message", "assistant/message", "tool/result")
            for event in logs[session.key][: session.at_seq]
        )
        assert kept == max(lengths, default=0)


def alike(one: list[Any], other: list[Any]) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def test_a_fork_begins_after_the_last_shared_message_and_is_in_the_turn_that_is_open_there() -> None:
    start = [say("system", "s"), say("user", "u")]
    reading = read_document(
        "x", json.dumps([trial(0, *start, say("assistant", "a")), trial(1, *start, say("assistant", "b"))])
    )
    task, first, second = reading.sessions
    assert (second.source, second.at_seq, second.parent) == (first.key, 3, task.key)
    assert [event.type for event in second.events] == ["step/start", "assistant/message", "step/end", "turn/end"]
    assert {event.turn_id for event in second.events} == {"turn-1"}


def test_trials_of_different_tasks_share_nothing() -> None:
    reading = read_document("x", json.dumps([trial(0, say("user", "u")), trial(0, say("user", "u"), task_id=2)]))
    assert [session.source for session in reading.sessions] == [None] * 4


def test_a_trial_equal_to_another_is_a_fork_with_nothing_but_its_end() -> None:
    reading = read_document("x", json.dumps([trial(0, say("user", "u")), trial(1, say("user", "u"))]))
    assert [event.type for event in reading.sessions[2].events] == ["turn/end"]


def test_forks_of_forks_have_a_limit() -> None:
    prefixes = SharedPrefixes()
    log: list[tuple[object, int]] = []
    depths = []
    for number in range(MAX_DEPTH + 5):
        log.append((number, number + 1))
        shared = prefixes.add(str(number), "g", log)
        depths.append(None if shared is None else shared.depth)
    assert depths == [None, *range(MAX_DEPTH), None, 0, 1, 2]


def test_a_trial_keeps_its_reward_and_other_fields(reading: ForeignDocument) -> None:
    trial = next(session for session in reading.sessions if session.label == "Task 6, trial 0")
    facts = json.loads(trial.metadata or "")
    assert {name: facts[name] for name in ("taskId", "trial", "reward")} == {"taskId": 6, "trial": 0, "reward": 1.0}
    assert sorted(facts["info"]) == ["reward_info", "source", "user_cost"]


def test_a_task_that_differs_in_another_trial_is_kept_with_that_trial() -> None:
    reading = read_document("x", json.dumps([trial(0), trial(1, info={"task": {"a": 2}})]))
    assert [json.loads(session.metadata or "").get("info") for session in reading.sessions[1:]] == [
        None,
        {"task": {"a": 2}},
    ]


def test_reused_call_ids_are_kept(reading: ForeignDocument) -> None:
    reused = 0
    for session in whole(reading.sessions):
        ids = [event.call_id for event in session.events if isinstance(event, ToolCall)]
        reused += len(set(ids)) < len(ids)
    assert reused == 25


def test_losses_are_counted(reading: ForeignDocument) -> None:
    assert reading.warnings == ["621 tool messages lost name"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (trial(0, {}), r"x \[1\].traj messages\[0\].role: must be a string"),
        (trial(0, task_id=None), r"x \[1\].task_id: must be a number or a string, is null"),
        (trial(0, task_id=nested(600)), r"x \[1\].info.task: nested deeper"),
        (trial(0, traj=5), r"x \[1\].traj: must be a list, is a int"),
        (trial(0, info=[1]), r"x \[1\].info: must be an object"),
    ],
)
def test_a_broken_trial_is_refused_with_its_location(broken: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_document("x", json.dumps([trial(0), broken]), "tau-bench")


def test_fewer_records_give_the_first_of_the_steps() -> None:
    steps = steps_of_values("tau-bench", TRIALS[:40])
    for end in range(40):
        part = steps_of_values("tau-bench", TRIALS[:end])
        assert part == steps[: len(part)]


def test_a_trial_with_more_messages_has_more_events() -> None:
    """Except for the end of its last turn, as a trial is complete."""
    full = log_of(TRIALS[3]["traj"])
    for end in range(len(TRIALS[3]["traj"])):
        log = log_of(TRIALS[3]["traj"][:end])
        while log and log[-1].type in ("turn/end", "step/end"):
            log.pop()
        assert log == full[: len(log)]


def log_of(traj: list[Any]) -> list[Event]:
    return list(read_document("x", json.dumps([trial(0, *traj)])).sessions[1].events)


@given(st.integers(0, 2**32))
def test_a_broken_record_is_read_or_refused_without_a_trace(seed: int) -> None:
    good = {**TRIALS[seed % 100], "traj": TRIALS[seed % 100]["traj"][:8]}
    check_broken("tau-bench", good, odd(good, seed))


def test_lone_surrogates_and_nul_are_kept_as_far_as_text_can_hold_them() -> None:
    session = read_document("x", json.dumps([trial(0, say("system", "a\ud800\0"), say("user", "\0"))])).sessions[1]
    assert session.events[0] == SystemMessage(content="a\ufffd\0")
    assert isinstance(session.events[2], UserMessage)
