"""Message trees of Open Assistant (OASST): one tree a line, `{message_tree_id, prompt: {text, role, replies}}`.

The first path of a tree (prompt, first reply, its first reply, ...) is a session; each further reply is a fork that
leaves its session right after the message that it replies to. https://github.com/LAION-AI/Open-Assistant
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from storage import errors
from storage.events import AssistantMessage, UserMessage
from storage.formats.foreign import ForeignSession, Losses, Reading, legal_id
from storage.formats.records import Document, as_list, as_object, as_text

FORMAT = "open-assistant"
LABEL_LENGTH = 80


class _Branch(NamedTuple):
    """A message to start a session from; `at_seq` is its depth in the tree, as each message is one event."""

    message: Any
    place: str
    source: str | None
    at_seq: int


def fits(first: object) -> bool:
    """Whether the first record of a document is a tree."""
    match first:
        case {"prompt": {"replies": list(), "role": _}}:
            return True
    return False


def read(document: Document) -> Reading:
    """A session per tree and a fork, not counted, per further reply. Raises BadInput, naming the message."""
    losses = Losses()
    sessions: list[ForeignSession] = []
    for place, value in document.records:
        tree = as_object(value, place)
        losses.fields("tree", tree, {"message_tree_id", "prompt"})
        branches = deque([_Branch(tree.get("prompt"), f"{place} prompt", None, 0)])
        while branches:
            branch = branches.popleft()
            key = str(len(sessions))
            events = _path(branch, key, branches, losses)
            sessions.append(_session(branch, key, tree, events))
    return Reading(FORMAT, sessions, losses.warnings())


def _path(start: _Branch, key: str, branches: deque[_Branch], losses: Losses) -> list[UserMessage | AssistantMessage]:
    """The events from a message down its first replies; the further replies are added to `branches`."""
    events: list[UserMessage | AssistantMessage] = []
    message, place = start.message, start.place
    while True:
        fields = as_object(message, place)
        losses.fields("message", fields, {"text", "role", "replies"})
        events.append(_event(fields, place))
        replies = as_list(fields.get("replies") or [], f"{place}.replies")
        places = [f"{place}.replies[{index}]" for index in range(len(replies))]
        after = start.at_seq + len(events)
        branches.extend(_Branch(reply, where, key, after) for reply, where in zip(replies[1:], places[1:], strict=True))
        if not replies:
            return events
        message, place = replies[0], places[0]


def _event(message: dict[str, Any], place: str) -> UserMessage | AssistantMessage:
    content = as_text(message.get("text"), f"{place}.text")
    match message.get("role"):
        case "prompter":
            return UserMessage(content=content)
        case "assistant":
            return AssistantMessage(content=content)
    raise errors.BadInput(f"{place}.role: {message.get('role')!r} is neither 'prompter' nor 'assistant'")


def _session(
    start: _Branch, key: str, tree: dict[str, Any], events: Sequence[UserMessage | AssistantMessage]
) -> ForeignSession:
    own_id = tree.get("message_tree_id")
    is_tree = start.source is None
    return ForeignSession(
        key=key,
        label=" ".join(events[0].content.split())[:LABEL_LENGTH] or None,
        events=events,
        id=legal_id(own_id) if is_tree else None,
        parent=start.source,
        source=start.source,
        at_seq=start.at_seq,
        counted=is_tree,
    )
