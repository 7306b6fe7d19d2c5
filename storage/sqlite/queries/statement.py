"""Parts of statements, and their parameters."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson

from storage import text
from storage.session import SessionFilter

IN_IDS = "IN (SELECT value FROM json_each(:ids))"
BATCH = 1_000
"""Parameters of one statement."""
SUBTREE = """
WITH RECURSIVE subtree (id) AS (
    SELECT id FROM nodes WHERE space = :space AND id = :root
    UNION SELECT nodes.id FROM nodes JOIN subtree ON nodes.space = :space AND nodes.parent = subtree.id
)
"""


def id_array(ids: Iterable[str]) -> str:
    """Ids of sessions or keys as the JSON array that `json_each` reads: one parameter however many there are.

    Texts that can't be ids are left out.
    """
    return orjson.dumps([id for id in ids if text.SESSION_ID.match(id)]).decode()


def batches(texts: Collection[str]) -> Iterator[Sequence[str]]:
    """Arbitrary texts in batches that fit into a statement, to pass each text as a parameter of its own.

    Turn ids may hold NUL, where `json_each` would end them.
    """
    listed = list(texts)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]


def placeholders(batch: Sequence[str]) -> str:
    """The placeholders of a batch, for a statement."""
    return ",".join("?" * len(batch))


def conditions(space: str, selection: SessionFilter) -> tuple[str, str, dict[str, Any]]:
    """A common table expression, the conditions of a filter, and their values."""
    prefix, where, values = "", ["space = :space"], {"space": space}
    possible: Sequence[tuple[str, str, Any]] = (
        ("status", "status = :status", selection.status),
        ("since", "updated_at >= :since", selection.updated_since),
        ("appended", "last_event_at >= :appended", selection.appended_since),
        ("behind", "behind = :behind", selection.behind),
        ("label", "instr(label, :label)", selection.label_contains and selection.label_contains.casefold()),
        ("ids", f"id {IN_IDS}", None if selection.ids is None else id_array(selection.ids)),
    )
    for name, condition, value in possible:
        if value is not None:
            where.append(condition)
            values[name] = value
    if selection.under is not None:
        prefix = SUBTREE
        where.append("id IN (SELECT id FROM subtree)")
        values["root"] = selection.under if text.possible_id(selection.under) else ""
    return prefix, " AND ".join(where), values
