"""A task is a node, its trials are its children."""

import json

import pytest

from storage import errors
from storage.events import ToolCall
from storage.formats import read

from .logs import TAU_BENCH, counts, messages, read_log


def test_the_real_trials_are_all_there() -> None:
    sessions = read_log(TAU_BENCH).sessions
    trials = [session for session in sessions if session.counted]
    assert len(trials) == 100
    assert messages(sessions) == (860, 1381, 621, 100)
    assert counts(sessions)["tool/call"] == 621
    assert counts(sessions)["turn/start"] == counts(sessions)["turn/end"] == 860


def test_each_task_is_the_parent_of_its_four_trials() -> None:
    sessions = read_log(TAU_BENCH).sessions
    tasks = [session for session in sessions if not session.counted]
    assert [task.label for task in tasks] == [f"Task {number}" for number in range(25)]
    for task in tasks:
        children = [session for session in sessions if session.parent == task.key]
        assert [child.label for child in children] == [f"{task.label}, trial {trial}" for trial in range(4)]
        assert not task.events
        assert json.loads(task.metadata or "")["task"]["instruction"].startswith("You")


def test_a_trial_keeps_its_reward() -> None:
    trial = next(session for session in read_log(TAU_BENCH).sessions if session.label == "Task 6, trial 0")
    assert json.loads(trial.metadata or "") == {"taskId": 6, "trial": 0, "reward": 1.0}


def test_reused_call_ids_are_kept() -> None:
    reused = 0
    for session in read_log(TAU_BENCH).sessions:
        ids = [event.call_id for event in session.events if isinstance(event, ToolCall)]
        reused += len(set(ids)) < len(ids)
    assert reused == 25


def test_what_is_lost_is_counted() -> None:
    assert read_log(TAU_BENCH).warnings == [
        "100 trials lost info.reward_info, info.source, info.user_cost",
        "621 tool messages lost name",
    ]


def test_a_broken_trial_is_refused_with_its_place() -> None:
    with pytest.raises(errors.BadInput, match=r"x line 1 \[1\].traj messages\[0\].role: must be a string"):
        read([("x", '[{"task_id": 1, "traj": []}, {"task_id": 1, "traj": [{}]}]')])
