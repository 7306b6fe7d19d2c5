"""ChatGPT's exports (conversations.json): conversations whose messages are a tree, `mapping`, of nodes by id.

The path of first children is the session; each further child of a node begins a fork. Children are in the order of
their creation, so a conversation that continued in any branch is read as the earlier one and more. The metadata field
`currentSession` names the branch that ChatGPT shows, unless it is the session itself.
https://help.openai.com/en/articles/7260999-how-do-i-export-my-chatgpt-history-and-data
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from storage.transfer.formats.chatgpt.messages import MessageWriter, Node
from storage.transfer.formats.shared import facts
from storage.transfer.formats.shared.branches import Branch, fork_sessions, split_branches
from storage.transfer.formats.shared.conversations import ConversationReader, Models, metadata_of
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.naming import SessionIds, label_of_events
from storage.transfer.formats.shared.unreadable import skip_unreadable
from storage.transfer.formats.shared.values import as_object, most

FORMAT = "chatgpt"


def fits(values: Sequence[object]) -> bool:
    """Whether the first records of a document are conversations."""
    return most(values, _is_conversation)


def _is_conversation(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(nodes := value.get("mapping"), dict):
        return False
    if not nodes:
        return "current_node" in value
    return most(list(nodes.values()), _is_node)


def _is_node(value: object) -> bool:
    return isinstance(value, dict) and not {"message", "parent", "children"}.isdisjoint(value)


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one document."""
    return ConversationReader(warnings, _sessions)


def _sessions(
    conversation: dict[str, Any], key: str, location: str, ids: SessionIds, warnings: ImportWarnings
) -> list[ForeignSession]:
    nodes, children, roots = _tree(as_object(conversation.get("mapping"), f"{location}.mapping"), location, warnings)
    models: Models = {}
    found: list[Branch[Node]] = []
    for root in roots:
        writer = MessageWriter(LogBuilder(f"{key} {root.id}" if found else key, warnings), warnings, models, location)
        found += split_branches(root, lambda node: children[node.id], lambda node: f"{key} {node.id}", writer)
    fields = metadata_of(conversation, ("mapping", "title"), models)
    metadata = facts.storable_json(fields, location, warnings)
    own_id = ids.claim(conversation.get("conversation_id") or conversation.get("id"), warnings)
    further = fork_sessions(found, own_id, lambda node: node.id, ids, warnings)
    shown = _leaf(conversation.get("current_node"), nodes, children)
    forks_by_leaf = {branch.last.id: fork.id for branch, fork in zip(found[1:], further, strict=True)}
    if current := forks_by_leaf.get(shown):
        metadata = facts.storable_json(
            fields | {"currentSession": current}, location, warnings.for_record()
        )  # counted already
    events = found[0].events if found else []
    label = _label(conversation) or label_of_events(events)
    return [ForeignSession(key=key, label=label, events=events, id=own_id, metadata=metadata), *further]


def _label(conversation: dict[str, Any]) -> str | None:
    title = conversation.get("title")
    return label_of(title) if isinstance(title, str) else None


def _tree(
    mapping: dict[str, Any], location: str, warnings: ImportWarnings
) -> tuple[dict[str, Node], dict[str, list[Node]], list[Node]]:
    """The nodes by id, their children, and the roots. Each node has one parent; circles are unreachable and counted."""
    nodes = _nodes(mapping, location, warnings)
    children: dict[str, list[Node]] = {id: [] for id in nodes}
    placed: set[str] = set()
    for parent, child in _edges(nodes):
        if child not in placed and child != parent:
            placed.add(child)
            children[parent].append(nodes[child])
    roots = [node for id, node in nodes.items() if id not in placed]
    reached = sum(1 for _ in _reached(roots, children))
    if reached < len(nodes):
        warnings.add("node", "that no root leads to left out", len(nodes) - reached)
    return nodes, children, roots


def _nodes(mapping: dict[str, Any], location: str, warnings: ImportWarnings) -> dict[str, Node]:
    """The nodes that are objects; others stay as empty nodes if they have children."""
    parents = {
        parent for node in mapping.values() if isinstance(node, dict) and isinstance(parent := node.get("parent"), str)
    }
    nodes: dict[str, Node] = {}
    for id, node in mapping.items():
        with skip_unreadable(warnings):
            if id in parents:
                nodes[id] = Node(id, {})
            nodes[id] = Node(id, as_object(node, f"{location} {id}"))
    return nodes


def _edges(nodes: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """Pairs of parent and child: first in the order that parents list, then those that only the child names."""
    for id, node in nodes.items():
        listed = node.fields.get("children")
        for child in listed if isinstance(listed, list) else ():
            if isinstance(child, str) and child in nodes:
                parent = nodes[child].fields.get("parent")
                if parent == id or not isinstance(parent, str) or parent not in nodes:
                    yield id, child
    for id, node in nodes.items():
        parent = node.fields.get("parent")
        if isinstance(parent, str) and parent in nodes:
            yield parent, id


def _reached(roots: list[Node], children: Mapping[str, list[Node]]) -> Iterator[Node]:
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        yield node
        waiting += children[node.id]


def _leaf(id: object, nodes: Mapping[str, Node], children: Mapping[str, list[Node]]) -> str:
    """The last node of the path of first children below a node."""
    if not isinstance(id, str) or id not in nodes:
        return ""
    passed = {id}
    while children[id] and children[id][0].id not in passed:
        id = children[id][0].id
        passed.add(id)
    return id
