"""The cost of an operation: the number of nodes (objects) in its answer, estimated before execution.

A page counts as its requested size, a list without paging as the estimate in `LISTS`. Sizes given as variables are
filled in per request, so that each document is counted only once.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphql import IntValueNode, ListValueNode, NullValueNode, ValueNode, VariableNode

from storage import digests, session_storage, session_tree
from storage.log import reading

LARGEST = 2**53 - 1
"""The largest cost reported: the largest integer that every JSON parser reads exactly."""
DIGITS = 10
"""Integer literals with more digits exceed any page's limit."""


@dataclass(frozen=True, slots=True)
class Paging:
    """The page size of a field: the default, the maximum, and the arguments that set it (a number or a list's length).

    More than `maximum` counts as `maximum`; the field itself refuses it.
    """

    default: int
    maximum: int
    arguments: tuple[str, ...] = ("first",)


_LOG = ("first", "last")
PAGES: Mapping[str, Paging] = {
    "Query.sessions": Paging(session_storage.MAX_IDS, session_storage.MAX_IDS, ("ids",)),
    "Query.listSessions": Paging(50, session_storage.MAX_PAGE),
    "Query.digests": Paging(1_000, digests.MAX_DIGESTS, ("first", "ids")),
    "Query.runs": Paging(50, session_storage.MAX_PAGE),
    "Session.events": Paging(100, reading.MAX_PAGE_EVENTS, _LOG),
    "Session.conversation": Paging(200, reading.MAX_PAGE_EVENTS, _LOG),
    "Session.records": Paging(100, 1_000, ("limit",)),
    "Session.runs": Paging(50, session_storage.MAX_PAGE),
    "Mutation.appendBatch": Paging(session_storage.MAX_BATCH, session_storage.MAX_BATCH, ("inputs",)),
    "Mutation.createSessions": Paging(session_tree.MAX_CREATED, session_tree.MAX_CREATED, ("inputs",)),
    "Mutation.putMemories": Paging(session_storage.MAX_IDS, session_storage.MAX_IDS, ("inputs",)),
    "Mutation.putInsights": Paging(session_storage.MAX_IDS, session_storage.MAX_IDS, ("inputs",)),
}
"""Fields that return a page, or an object that holds one."""
PAGE_ITEMS = frozenset(
    f"{kind}.{name}"
    for kind, names in {
        "SessionConnection": ("nodes", "edges"),
        "DigestConnection": ("nodes", "edges"),
        "RunConnection": ("nodes", "edges"),
        "EventPage": ("events",),
        "ConversationPage": ("entries",),
        "AppendBatchPayload": ("results",),
        "SlotsPayload": ("results",),
        "CreateSessionsPayload": ("results",),
    }.items()
    for name in names
)
"""Lists with one entry per item of the page above."""
LISTS: Mapping[str, int] = {
    "Query.roots": 50,
    "Query.formDefinitions": 20,
    "Forest.nodes": 1_000,
    "Forest.refs": 100,
    "ForestDelta.upserted": 50,
    "TopologyNode.children": 10,
    "TopologyNode.ancestors": 5,
    "TopologyNode.siblings": 10,
    "Session.prompt": 100,
    "Surface.messages": 100,
    "PromptContext.messages": 100,
    "Message.toolCalls": 2,
    "SessionStats.byType": 15,
    "Run.steps": 5,
    "Run.toolInvocations": 5,
    "Step.toolInvocations": 2,
    "AppendEventsPayload.events": 10,
    "ImportPayload.sessions": 1,
}
"""Estimated lengths of lists without paging."""
UNKNOWN_LIST = 100
VALUES: Mapping[str, int] = {"Surface.openai": 100, "PromptContext.openai": 100, "Query.exportSession": 1_000}
"""Scalar fields that hold as much as this many nodes."""


@dataclass(frozen=True, slots=True)
class Size:
    """A page size that depends on variables; `given` holds literal counts and names of variables."""

    paging: Paging
    given: tuple[int | str, ...]

    def of(self, variables: Mapping[str, int | None]) -> int:
        """The size, given the counts of the variables."""
        counts = [
            count
            for item in self.given
            if (count := variables.get(item) if isinstance(item, str) else item) is not None
        ]
        return _within(self.paging, counts)


@dataclass(eq=False, slots=True)
class Sum:
    """A count that depends on variables: `constant` plus the products in `terms`."""

    constant: int
    terms: list[tuple["Size | int", "Amount"]] = field(default_factory=list)


Amount: TypeAlias = int | Sum


def add(one: Amount, other: Amount, times: Size | int = 1) -> Amount:
    """The sum of `one` and `times` times `other`."""
    if isinstance(other, int) and isinstance(times, int):
        if isinstance(one, int):
            return min(one + times * other, LARGEST)
        return Sum(min(one.constant + times * other, LARGEST), one.terms)
    if isinstance(one, int):
        return Sum(one, [(times, other)])
    return Sum(one.constant, [*one.terms, (times, other)])


def size(paging: Paging, arguments: Mapping[str, ValueNode]) -> Size | int:
    """The page size of a field with these arguments: a number, or a `Size` where variables decide."""
    given: list[int | str] = []
    for name in paging.arguments:
        match arguments.get(name):
            case VariableNode(name=variable):
                given.append(variable.value)
            case ValueNode() as literal if (count := literal_count(literal)) is not None:
                given.append(count)
    known = [item for item in given if isinstance(item, int)]
    return _within(paging, known) if len(known) == len(given) else Size(paging, tuple(given))


def literal_count(value: ValueNode) -> int | None:
    """The number of items that a literal asks for; None for null."""
    match value:
        case NullValueNode():
            return None
        case IntValueNode(value=digits):
            return int(digits) if len(digits) <= DIGITS else LARGEST
        case ListValueNode(values=values):
            return len(values)
    return 1


def _count(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, list):
        return len(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 1
    return value if isinstance(value, int) else 1


def _within(paging: Paging, counts: list[int]) -> int:
    return max(0, min(*counts, paging.maximum)) if counts else paging.default


class Cost:
    """The number of nodes that an operation asks for, as a function of its variables."""

    def __init__(self, amount: Amount, defaults: Mapping[str, int | None]) -> None:
        self._amount = amount
        self._defaults = defaults

    def of(self, variables: Mapping[str, Any] | None) -> int:
        """The cost with these raw variables. Invalid values get a count too; execution refuses them later."""
        if isinstance(self._amount, int):
            return self._amount
        counts = dict(self._defaults)
        for name, value in (variables or {}).items():
            counts[name] = _count(value)
        return _value(self._amount, counts, {})


def _value(amount: Amount, variables: Mapping[str, int | None], known: dict[Sum, int]) -> int:
    if isinstance(amount, int):
        return amount
    if amount not in known:  # fragments share their amounts: compute each once
        total = amount.constant
        for times, other in amount.terms:
            factor = times if isinstance(times, int) else times.of(variables)
            total += factor * _value(other, variables, known)
        known[amount] = min(total, LARGEST)
    return known[amount]
