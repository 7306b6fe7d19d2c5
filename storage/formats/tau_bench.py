"""Trajectories of tau-bench: a list of trials `{task_id, trial, reward, info, traj}`, traj being OpenAI messages.

Each task becomes a node without events, its trials the children. https://github.com/sierra-research/tau-bench
"""

from storage import text
from storage.formats import openai
from storage.formats.foreign import ForeignSession, Losses, Reading
from storage.formats.records import Document, as_list, as_object

FORMAT = "tau-bench"


def fits(first: object) -> bool:
    """Whether the first record of a document is a list of trials."""
    match first:
        case [{"task_id": _, "traj": list()}, *_]:
            return True
    return False


def read(document: Document) -> Reading:
    """A root per task, not counted, before its trials. Raises BadInput, naming the trial, for what is none."""
    losses = Losses()
    sessions: dict[str, ForeignSession] = {}
    for place, value in document.records:
        for index, item in enumerate(as_list(value, place)):
            where = f"{place} [{index}]"
            trial = as_object(item, where)
            info = as_object(trial.get("info") or {}, f"{where}.info")
            inner = {f"info.{name}": value for name, value in info.items()}
            losses.fields("trial", trial | inner, {"task_id", "trial", "reward", "info", "info.task", "traj"})
            root = _task(trial.get("task_id"), info.get("task"), where)
            sessions.setdefault(root.key, root)
            session = _trial(trial, root.key, f"trial-{len(sessions)}", where, losses)
            sessions[session.key] = session
    return Reading(FORMAT, list(sessions.values()), losses.warnings())


def _task(task_id: object, task: object, place: str) -> ForeignSession:
    return ForeignSession(
        key=f"task-{task_id}",
        label=f"Task {task_id}",
        events=(),
        metadata=text.to_json({"taskId": task_id, "task": task}, f"{place}.info.task"),
        counted=False,
    )


def _trial(trial: dict[str, object], parent: str, key: str, place: str, losses: Losses) -> ForeignSession:
    facts = {"taskId": trial.get("task_id"), "trial": trial.get("trial"), "reward": trial.get("reward")}
    return ForeignSession(
        key=key,
        label=f"Task {facts['taskId']}, trial {facts['trial']}",
        events=openai.conversation(trial.get("traj"), f"{place}.traj", losses),
        parent=parent,
        metadata=text.to_json(facts, place),
    )
