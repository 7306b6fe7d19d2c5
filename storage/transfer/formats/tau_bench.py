"""Trajectories of tau-bench: a list of trials `{task_id, trial, reward, info, traj}`, traj being OpenAI messages.

Each task becomes a node without events, its trials the children. A trial that begins with the messages of an earlier
one of its task is a fork of it. https://github.com/sierra-research/tau-bench
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from storage import errors, text
from storage.transfer.formats import facts
from storage.transfer.formats.chat import add_message
from storage.transfer.formats.dialogue import Dialogue
from storage.transfer.formats.foreign import ForeignSession, ImportWarnings, Step
from storage.transfer.formats.prefixes import SharedPrefixes
from storage.transfer.formats.records import Record
from storage.transfer.formats.unreadable import kept
from storage.transfer.formats.values import as_list, as_object, most, shape

FORMAT = "tau-bench"
_FIELDS = ("task_id", "trial", "reward", "info", "traj")


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are trials."""
    return most(values, _is_trial)


def _is_trial(value: object) -> bool:
    match value:
        case {"task_id": _, "traj": list()}:
            return True
    return False


def reader(name: str, losses: ImportWarnings) -> "TauBench":
    """A reader of one document."""
    return TauBench(losses)


class TauBench:
    """A root per task, not counted, before its trials. A trial is complete, so that its last turn ends with it."""

    def __init__(self, losses: ImportWarnings) -> None:
        self._losses = losses
        self._trials = 0
        self._tasks: dict[str, bytes] = {}
        self._prefixes = SharedPrefixes()

    def add(self, record: Record) -> Sequence[Step]:
        """The session of a trial, after that of its task. Raises BadInput for what is none."""
        place = record.place
        trial = as_object(record.value, place)
        info = as_object(trial.get("info") or {}, f"{place}.info")
        task = text.to_json({"taskId": trial.get("task_id"), "task": info.get("task")}, f"{place}.info.task")
        task_id = _task_id(trial.get("task_id"), place)
        root = f"task-{task_id}"
        digest = hashlib.sha256(task.encode()).digest()
        losses = self._losses.apart()
        told = _facts(trial, info, same_task=self._tasks.get(root, digest) == digest)
        metadata = facts.told(told, place, losses)
        messages = as_list(trial.get("traj"), f"{place}.traj")
        dialogue = Dialogue(f"trial-{self._trials + 1}", losses)
        logged: list[tuple[object, int]] = []
        for index, message in enumerate(messages):
            before = dialogue.head
            with kept(message, dialogue, losses):
                add_message(dialogue, message, f"{place}.traj messages[{index}]", losses)
            if dialogue.head > before:
                logged.append((message, dialogue.head))
        dialogue.end_turn()

        self._losses.include(losses)
        self._losses.fields("trial", trial, _FIELDS)
        self._trials += 1
        steps: list[Step] = []
        if root not in self._tasks:
            self._tasks[root] = digest
            steps.append(ForeignSession(key=root, label=f"Task {task_id}", metadata=task, counted=False))
        shared = self._prefixes.add(dialogue.key, root, logged)
        at_seq = 0 if shared is None else shared.at_seq
        session = ForeignSession(
            key=dialogue.key,
            label=text.clean(f"Task {task_id}, trial {trial.get('trial')}"),
            events=dialogue.drafts()[at_seq:],
            parent=root,
            source=None if shared is None else shared.key,
            at_seq=at_seq,
            metadata=metadata,
        )
        return [*steps, session]

    def end(self) -> Sequence[Step]:
        """Nothing, as each trial stands for itself."""
        return ()


def _task_id(value: object, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise errors.BadInput(f"{place}.task_id: must be a number or a string, is {shape(value)}")
    return text.clean(str(value))


def _facts(trial: dict[str, Any], info: dict[str, Any], *, same_task: bool) -> dict[str, Any]:
    told = {"taskId": trial["task_id"], "trial": trial.get("trial"), "reward": trial.get("reward")}
    more = {name: value for name, value in info.items() if name != "task" or not same_task}
    return told | ({"info": more} if more else {})
