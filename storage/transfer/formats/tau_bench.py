"""Trajectories of tau-bench: a list of trials `{task_id, trial, reward, info, traj}`; `traj` holds OpenAI messages.

Each task becomes a node without events, and its trials its children. A trial that begins with the same messages as an
earlier one of its task is a fork of it. https://github.com/sierra-research/tau-bench
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from storage import errors, text
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.chat import add_message
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.shared_prefixes import SharedPrefixes
from storage.transfer.formats.shared.unreadable import keep_unreadable
from storage.transfer.formats.shared.values import as_list, as_object, most, shape

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


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return TauBenchReader(warnings)


class TauBenchReader(Reader):
    """Yields a root per task, which does not count as a session, and its trials. The end of a trial ends its turn."""

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._trials = 0
        self._tasks: dict[str, bytes] = {}
        self._prefixes = SharedPrefixes()

    @property
    @override
    def reads_conversations(self) -> bool:
        return True

    def add(self, record: Record) -> Sequence[Step]:
        """Return the session of a trial, after that of its task if it is new. Raises BadInput if it is not a trial."""
        location = record.location
        trial = as_object(record.value, location)
        info = as_object(trial.get("info") or {}, f"{location}.info")
        task = text.to_json({"taskId": trial.get("task_id"), "task": info.get("task")}, f"{location}.info.task")
        task_id = _task_id(trial.get("task_id"), location)
        root = f"task-{task_id}"
        digest = hashlib.sha256(task.encode()).digest()
        warnings = self._warnings.for_record()
        fields = _facts(trial, info, same_task=self._tasks.get(root, digest) == digest)
        metadata = facts.storable_json(fields, location, warnings)
        messages = as_list(trial.get("traj"), f"{location}.traj")
        builder = LogBuilder(f"trial-{self._trials + 1}", warnings)
        logged: list[tuple[object, int]] = []
        for index, message in enumerate(messages):
            before = builder.head
            with keep_unreadable(message, builder, warnings):
                add_message(builder, message, f"{location}.traj messages[{index}]", warnings)
            if builder.head > before:
                logged.append((message, builder.head))
        builder.end_turn()

        self._warnings.include(warnings)
        self._warnings.lost_fields("trial", trial, _FIELDS)
        self._trials += 1
        steps: list[Step] = []
        if root not in self._tasks:
            self._tasks[root] = digest
            steps.append(ForeignSession(key=root, label=f"Task {task_id}", metadata=task, counted=False))
        shared = self._prefixes.add(builder.key, root, logged)
        at_seq = 0 if shared is None else shared.at_seq
        session = ForeignSession(
            key=builder.key,
            label=text.clean(f"Task {task_id}, trial {trial.get('trial')}"),
            events=builder.take_events()[at_seq:],
            parent=root,
            source=None if shared is None else shared.key,
            at_seq=at_seq,
            metadata=metadata,
        )
        return [*steps, session]

    def end(self) -> Sequence[Step]:
        """Return nothing: each record is a whole trial."""
        return ()


def _task_id(value: object, location: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise errors.BadInput(f"{location}.task_id: must be a number or a string, is {shape(value)}")
    return text.clean(str(value))


def _facts(trial: dict[str, Any], info: dict[str, Any], *, same_task: bool) -> dict[str, Any]:
    fields = {"taskId": trial["task_id"], "trial": trial.get("trial"), "reward": trial.get("reward")}
    more = {name: value for name, value in info.items() if name != "task" or not same_task}
    return fields | ({"info": more} if more else {})
