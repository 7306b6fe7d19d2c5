"""LibreChat's exports: `{conversationId, title, options, messages}`, the messages a tree, recursive or flat.

In a recursive export a message holds its replies as `children`, in a flat one it names its `parentMessageId`. The path
of first replies is the session; each further reply begins a fork. https://github.com/danny-avila/LibreChat
"""

from collections.abc import Sequence
from typing import Any

from storage.transfer.formats.librechat.messages import Message, MessageWriter
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.branches import Branch, fork_sessions, split_branches
from storage.transfer.formats.shared.conversations import ConversationReader, Models, metadata_of
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.naming import SessionIds, label_of_events
from storage.transfer.formats.shared.unreadable import objects_in
from storage.transfer.formats.shared.values import as_list, most

FORMAT = "librechat"
_LISTS = ("messagesTree", "messages")


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are conversations."""
    return most(values, _is_conversation)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or "conversationId" not in value:
        return False
    messages = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    return messages is not None and (not messages or most(messages, _is_message))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" not in value and {"messageId", "isCreatedByUser"} <= value.keys()


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return ConversationReader(warnings, _sessions)


def _sessions(
    conversation: dict[str, Any], key: str, location: str, ids: SessionIds, warnings: ImportWarnings
) -> list[ForeignSession]:
    field = next((name for name in _LISTS if conversation.get(name) is not None), "messages")
    messages = _nested(as_list(conversation.get(field), f"{location}.{field}"), f"{location}.{field}", warnings)
    children, roots = _tree(messages, warnings)
    models: Models = {}
    found: list[Branch[Message]] = []
    for root in roots:
        writer = MessageWriter(LogBuilder(_key(key, root) if found else key, warnings), warnings, models)
        found += split_branches(root, lambda message: children[message.number], lambda child: _key(key, child), writer)
    metadata = facts.storable_json(metadata_of(conversation, (field, "title"), models), location, warnings)
    own_id = ids.claim(conversation.get("conversationId"), warnings)
    events = found[0].events if found else []
    title = conversation.get("title")
    session = ForeignSession(
        key=key,
        label=(label_of(title) if isinstance(title, str) else None) or label_of_events(events),
        events=events,
        id=own_id,
        system_prompt=_prompt(conversation.get("options")),
        metadata=metadata,
    )
    return [session, *fork_sessions(found, own_id, lambda message: message.fields.get("messageId"), ids, warnings)]


def _key(conversation: str, message: Message) -> str:
    return f"{conversation} {message.number}"


def _prompt(options: object) -> str | None:
    prompt = options.get("promptPrefix") if isinstance(options, dict) else None
    return prompt if isinstance(prompt, str) and prompt else None


def _nested(given: list[Any], location: str, warnings: ImportWarnings) -> list[Message]:
    """All messages, each after its `container`."""
    found: list[Message] = []
    waiting = [(*each, -1) for each in objects_in(given, location, warnings)][::-1]
    while waiting:
        message = Message(len(found), *waiting.pop())
        found.append(message)
        held = objects_in(message.fields.get("children") or [], f"{message.location}.children", warnings)
        waiting += [(*each, message.number) for each in held][::-1]
    return found


def _tree(messages: list[Message], warnings: ImportWarnings) -> tuple[list[list[Message]], list[Message]]:
    """The replies to each message, and the roots. Messages that reply to each other in a circle are left out."""
    by_id: dict[str, int] = {}
    for message in messages:
        if isinstance(id := message.fields.get("messageId"), str):
            by_id.setdefault(id, message.number)
    children: list[list[Message]] = [[] for _ in messages]
    roots: list[Message] = []
    for message in messages:
        named = message.fields.get("parentMessageId")
        parent = message.container if message.container >= 0 else by_id.get(named, -1) if isinstance(named, str) else -1
        (children[parent] if parent >= 0 else roots).append(message)
    reached, waiting = 0, list(roots)
    while waiting:
        reached += 1
        waiting += children[waiting.pop().number]
    if reached < len(messages):
        warnings.add("message", "that replies to itself in a circle left out", len(messages) - reached)
    return children, roots
