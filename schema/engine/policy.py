"""The role that each root field needs. A field missing here is refused to everybody, and a test fails."""

from collections.abc import Iterator
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_operation_ast,
)

from storage.access_key import AccessRole
from storage.errors import Forbidden

ALLOWED: dict[str, dict[AccessRole, tuple[str, ...]]] = {
    "query": {
        AccessRole.VIEWER: (
            "session",
            "sessions",
            "listSessions",
            "topologyNode",
            "roots",
            "forest",
            "digest",
            "digests",
            "runs",
            "run",
            "exportSession",
            "formDefinition",
            "formDefinitions",
            "viewer",
            "__schema",
            "__type",
            "__typename",
        ),
    },
    "mutation": {
        AccessRole.VIEWER: ("__typename",),
        AccessRole.AGENT: (
            "createSession",
            "createSessions",
            "forkSession",
            "appendEvents",
            "appendBatch",
            "updateSession",
            "renameSession",
            "putConfig",
            "putSystemPrompt",
            "putMemory",
            "putInsight",
            "clearInsight",
            "consumeInsight",
            "trimRecords",
            "removeLastEntry",
            "clearConversation",
            "repairSession",
            "importSession",
        ),
        AccessRole.ORCHESTRATOR: (
            "archiveSession",
            "restoreSession",
            "moveNode",
            "addRef",
            "removeRef",
            "putMemories",
            "putInsights",
            "setRunFeedback",
        ),
        AccessRole.ADMIN: ("deleteSession", "putFormDefinition"),
    },
    "subscription": {
        AccessRole.VIEWER: ("sessionEvents", "spaceEvents", "forestChanges", "slotChanges", "__typename"),
    },
}
"""By kind of operation, the fields that each role may use in addition to those of the roles before it."""

ROLES = {
    (operation, field): role
    for operation, fields_of in ALLOWED.items()
    for role, fields in fields_of.items()
    for field in fields
}
"""The role that a root field needs, by kind of operation and field name."""


@dataclass(frozen=True, slots=True)
class Need:
    """The root field that needs the highest role, and that role; None if nobody may use the field."""

    field: FieldNode | None
    role: AccessRole | None


NOTHING = Need(None, AccessRole.VIEWER)


def need_of(document: DocumentNode, operation_name: str | None) -> Need:
    """The need of the named operation of a valid document, or of all its operations if none is named.

    Fields count even where @skip or @include leaves them out.
    """
    chosen = get_operation_ast(document, operation_name)
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    need = NOTHING
    for operation in operations if chosen is None else [chosen]:
        for field in _root_fields(document, operation.selection_set, set()):
            role = ROLES.get((operation.operation.value, field.name.value))
            if role is None:
                return Need(field, None)
            if need.field is None or need.role is None or not need.role.includes(role):
                need = Need(field, role)
    return need


def _root_fields(document: DocumentNode, selected: SelectionSetNode, seen: set[str]) -> Iterator[FieldNode]:
    for selection in selected.selections:
        if isinstance(selection, FieldNode):
            yield selection
        elif isinstance(selection, FragmentSpreadNode):
            name = selection.name.value
            if name not in seen:
                seen.add(name)
                for definition in document.definitions:
                    if isinstance(definition, FragmentDefinitionNode) and definition.name.value == name:
                        yield from _root_fields(document, definition.selection_set, seen)
        elif isinstance(selection, InlineFragmentNode):
            yield from _root_fields(document, selection.selection_set, seen)


def refusal(need: Need, role: AccessRole) -> GraphQLError | None:
    """The error for a caller whose role does not suffice; None if it does."""
    if need.field is None or (need.role is not None and role.includes(need.role)):
        return None
    name = need.field.name.value
    reason = "no role may use it" if need.role is None else f"it needs the role {need.role}, the caller has {role}"
    return GraphQLError(f"{name}: {reason}", need.field, extensions={"code": Forbidden.code})
