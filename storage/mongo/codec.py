"""Models as BSON documents and back.

A document is its model with camelCase names and dates for its instants, and a few more fields to look it up by. Ids
that are looked up are stored as keys `<space>/<id>`, so that one field is enough for an index or a `$lookup`.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS

from storage import text
from storage.access_key import AccessKey
from storage.cards.definition import FormDefinition
from storage.events import Instant, Model
from storage.log.commit import Commit
from storage.session import SessionMeta, Slots
from storage.topology import NodeDocument
from storage.views.run_rows import RunRow

Document = dict[str, Any]

OPTIONS: CodecOptions[Document] = CodecOptions(dict, datetime_conversion=DatetimeConversion.DATETIME_MS)
MAX_EVENT_BYTES = 2 * 1024 * 1024
"""Up to this size, a commit's events are an array; above, one JSON text. Short numbers take six times as much in BSON,
and a document may have 16 MiB."""

SESSION_DATES = ("createdAt", "updatedAt", "lastEventAt")
RUN_DATES = ("startedAt", "since", "endedAt", "updatedAt")
KEY_DATES = ("createdAt", "expiresAt", "lastUsedAt", "revokedAt")
SLOT_NAMES = ("systemPrompt", "insight", "memory")
SPARSE = ("turns", "turnSeqs", "steps", "stepSeqs", "cards", "cardSeqs")
DERIVED = {"label": "labelFold", "parent_id": "parentKey", "ancestors": "lineage", "refs": "refKeys"}


def key(space: str, id: str) -> str:
    """`<space>/<id>`. No space's name holds a slash. No id is empty, so the key of "" finds nothing.

    Every text that can't be an id gets that key.
    """
    return f"{space}/{possible(id)}"


def possible(id: str) -> str:
    """The id, or "" for a text that can't be one, and perhaps can't even be encoded."""
    return id if text.possible_id(id) else ""


def split(key: str) -> tuple[str, str]:
    """Space and id of a key."""
    space, _, id = key.partition("/")
    return space, id


def date(instant: Instant) -> DatetimeMS:
    """An instant as stored."""
    return DatetimeMS(instant)


def encode_session(meta: SessionMeta) -> Document:
    """The document of a new session."""
    document = _dump(meta)
    _to_dates(document, SESSION_DATES)
    document["_id"] = key(meta.space, meta.id)
    document["log"] = meta.log
    document["ownStart"] = meta.own_start
    document["labelFold"] = meta.label.casefold()
    if meta.creation_key is not None:
        document["creationKey"] = f"{meta.space}/{meta.creation_key}"
    return document


def decode_session(document: Document) -> SessionMeta:
    """The session of a document. Consumes it."""
    _to_instants(document, SESSION_DATES)
    if "creationKey" in document:
        document["creationKey"] = split(document["creationKey"])[1]
    return SessionMeta.model_validate(document)


def encode_node(node: NodeDocument) -> Document:
    """The document of a node."""
    document = _dump(node)
    _to_dates(document, ("updatedAt",))
    document["_id"] = key(node.space, node.id)
    document["parentKey"] = key(node.space, node.parent_id or "")
    document["lineage"] = [node.id, *node.ancestors]
    if node.refs:
        document["refKeys"] = [key(node.space, target) for target in node.refs]
    return document


def decode_node(document: Document) -> NodeDocument:
    """The node of a document. Consumes it."""
    _to_instants(document, ("updatedAt",))
    return NodeDocument.model_validate(document)


def encode_slots(slots: Slots) -> Document:
    """The document of a session's slots."""
    document = _dump(slots)
    _to_dates(document, ("createdAt",))
    for name in SLOT_NAMES:
        if name in document:
            _to_dates(document[name], ("updatedAt",))
    document["_id"] = key(slots.space, slots.id)
    return document


def decode_slots(document: Document) -> Slots:
    """The slots of a document. Consumes it."""
    _to_instants(document, ("createdAt",))
    for name in SLOT_NAMES:
        if name in document:
            _to_instants(document[name], ("updatedAt",))
    return Slots.model_validate(document)


def encode_form(form: FormDefinition) -> Document:
    """The document of a form definition, without its time, which the database sets."""
    return _dump(form, exclude={"updated_at"})


def decode_form(document: Document) -> FormDefinition:
    """The form definition of a document. Consumes it."""
    _to_instants(document, ("updatedAt",))
    return FormDefinition.model_validate(document)


def size_of(slots: Slots) -> int:
    """Bytes of all contents."""
    found = (slots.system_prompt, slots.insight, slots.memory)
    return sum(len(slot.content.encode()) for slot in found if slot is not None and slot.content is not None)


def encode_commit(commit: Commit) -> Document:
    """The document of a commit. Without empty marks, so that sparse indexes skip it."""
    document = _dump(commit, exclude={"id", "events"})
    _to_dates(document, ("at",))
    if "insight" in document:
        _to_dates(document["insight"], ("updatedAt",))
    for name in SPARSE:
        if not document[name]:
            del document[name]
    document["_id"] = commit.id
    document["events"] = commit.events if commit.size <= MAX_EVENT_BYTES else orjson.dumps(commit.events).decode()
    return document


def decode_commit(document: Document) -> Commit:
    """The commit of a document. Consumes it."""
    _to_instants(document, ("at",))
    if "insight" in document:
        _to_instants(document["insight"], ("updatedAt",))
    if isinstance(document["events"], str):
        document["events"] = orjson.loads(document["events"])
    document["id"] = document.pop("_id")
    return Commit.model_validate(document)


def run_key(space: str, session: str, turn: str) -> str:
    """`<space>/<session>/<turn>`. No session's id holds a slash."""
    return f"{key(space, session)}/{turn}"


def encode_run(row: RunRow) -> Document:
    """The document of a row of runs."""
    document = _dump(row)
    _to_dates(document, RUN_DATES)
    document["_id"] = run_key(row.space, row.session_id, row.turn_id)
    document["place"] = row.place
    return document


def decode_run(document: Document) -> RunRow:
    """The row of a document. Consumes it."""
    _to_instants(document, RUN_DATES)
    return RunRow.model_validate(document)


def encode_access_key(key: AccessKey) -> Document:
    """The document of an API key."""
    document = _dump(key, exclude={"id"})
    _to_dates(document, KEY_DATES)
    document["_id"] = key.id
    return document


def decode_access_key(document: Document) -> AccessKey:
    """The API key of a document. Consumes it."""
    _to_instants(document, KEY_DATES)
    document["id"] = document.pop("_id")
    return AccessKey.model_validate(document)


def changed_fields(document: Document, model: Model, names: Mapping[str, Any]) -> tuple[Document, Document]:
    """The fields to set and to unset so that the attributes `names` of a model become as in the document."""
    fields = type(model).model_fields
    stored = [fields[name].alias or name for name in names] + [DERIVED[name] for name in names if name in DERIVED]
    sets = {name: document[name] for name in stored if name in document}
    return sets, {name: "" for name in stored if name not in document}


def encode_session_part(meta: SessionMeta, names: Mapping[str, Any]) -> Document:
    """The fields of a session's document for the attributes `names`."""
    document = _dump(meta, include=set(names))
    if "label" in names:
        document["labelFold"] = meta.label.casefold()
    return document


def _dump(model: Model, **which: set[str]) -> Document:
    return model.model_dump(
        mode="json", by_alias=True, exclude_none=True, include=which.get("include"), exclude=which.get("exclude")
    )


def _to_dates(document: Document, names: tuple[str, ...]) -> None:
    for name in names:
        if name in document:
            document[name] = DatetimeMS(document[name])


def _to_instants(document: Document, names: tuple[str, ...]) -> None:
    for name in names:
        if name in document:
            document[name] = int(document[name])
