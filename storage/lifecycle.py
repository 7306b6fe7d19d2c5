"""Making and deleting sessions: the only operations that touch log, slots and topology together."""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from storage import errors, text, topology
from storage.database import Transaction
from storage.events import AssistantMessage, Instant, JsonText
from storage.log import append, reading
from storage.log.admission import Admission
from storage.log.commit import Commit
from storage.log.state import LogState
from storage.session import Segment, SessionConfig, SessionMeta, Slot, Slots, present
from storage.session_storage import check_document, check_label
from storage.slots import check_size
from storage.topology import NodeDocument

DEFAULT_LABELS = ("Root", "Session")
"""Of a root that is given no label, and of any other session."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """What a caller says of a session to be made; the id is generated when absent."""

    id: str | None = None
    label: str | None = None
    parent_id: str | None = None
    source_session_id: str | None = None
    workflow_mode: str | None = None
    metadata: JsonText | None = None
    config: SessionConfig | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Fork:
    """What a caller says of a fork: shares the source's first `at_seq` events (default: all)."""

    source_id: str
    at_seq: int | None = None
    inherit: bool = True
    id: str | None = None
    label: str | None = None
    parent_id: str | None = None
    as_root: bool = False
    metadata: JsonText | None = None
    config: SessionConfig | None = None
    prompt: str | None = None
    key: str | None = None

    @property
    def under(self) -> str | None:
        """The parent: as given, else the source; None among the roots."""
        if self.as_root:
            return None
        return self.source_id if self.parent_id is None else self.parent_id


@dataclass(frozen=True, slots=True)
class Deleted:
    """Which sessions went, and the logs that they read."""

    ids: list[str]
    logs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    parent: NodeDocument | None
    index: int
    now: Instant

    @property
    def ancestors(self) -> tuple[str, ...]:
        return (self.parent.id, *self.parent.ancestors) if self.parent else ()


async def create(tx: Transaction, space: str, new: NewSession) -> SessionMeta:
    """Makes an empty session with its node and slots. Raises DuplicateId, NotFound, BadInput, IdempotencyMismatch."""
    new = replace(new, label=_clean(new.label), workflow_mode=_clean(new.workflow_mode), key=_key(new.key))
    digest = _digest("create", new)
    if (made := await _made_before(tx, space, new.key, digest)) is not None:
        return made
    await _check_id(tx, space, new.id)
    if new.source_session_id is not None and await tx.session(space, new.source_session_id) is None:
        raise errors.NotFound(f"sourceSessionId: no session {new.source_session_id!r}")
    default_label = DEFAULT_LABELS[new.parent_id is not None]
    label = check_label(new.label if new.label is not None else default_label)
    check_document(new.metadata, "metadata")
    check_config(new.config)
    place = await take_place(tx, space, new.parent_id)
    meta = SessionMeta(
        space=space,
        id=new.id or str(uuid.uuid4()),
        label=label,
        workflow_mode=new.workflow_mode,
        metadata=new.metadata,
        created_at=place.now,
        updated_at=place.now,
        creation_key=new.key,
        creation_digest=digest,
        segments=(Segment(log=uuid.uuid4().hex),),
    )
    config = new.config and SessionConfig(**new.config.model_dump(exclude_none=True))
    prompt = config.system_prompt if config else None
    await _insert(tx, meta, place, prompt, source=new.source_session_id, fork_seq=None, config=config)
    return meta


async def fork(tx: Transaction, space: str, wanted: Fork) -> SessionMeta:
    """Makes a session that shares the first events of another; nothing is copied.

    Raises NotFound, BadInput (a cut outside 0 to head), DuplicateId, IdempotencyMismatch; leaves nothing behind then.
    """
    wanted = replace(wanted, label=_clean(wanted.label), prompt=_clean(wanted.prompt), key=_key(wanted.key))
    digest = _digest("fork", wanted)
    if (made := await _made_before(tx, space, wanted.key, digest)) is not None:
        return made
    await _check_id(tx, space, wanted.id)
    source = await tx.session(space, wanted.source_id)
    node = await tx.node(space, wanted.source_id)
    if source is None or node is None:
        raise errors.NotFound(f"sourceId: no session {wanted.source_id!r}")
    cut = _cut(wanted, source)
    if wanted.as_root and wanted.parent_id is not None:
        raise errors.BadInput("asRoot and parentId: give one of them")
    label = check_label(wanted.label if wanted.label is not None else source.label)
    check_document(wanted.metadata, "metadata")
    check_config(wanted.config)
    await tx.rely_on(space, sessions=[source.id])
    place = await take_place(tx, space, wanted.under)
    state = await reading.state_at(tx, source, cut)
    meta = SessionMeta(
        space=space,
        id=wanted.id or str(uuid.uuid4()),
        label=label,
        workflow_mode=source.workflow_mode,
        metadata=source.metadata if wanted.metadata is None else wanted.metadata,
        created_at=place.now,
        updated_at=place.now,
        last_event_at=place.now if cut or wanted.prompt is not None else None,
        creation_key=wanted.key,
        creation_digest=digest,
        segments=append.cut(source, cut, uuid.uuid4().hex),
        inherited=state.totals,
        behind=cut > 0,
    ).model_copy(update=_at(state))
    commit = _first_commit(meta, wanted.prompt)
    if commit is not None:
        await append.record(tx, meta, commit)
        meta = meta.model_copy(update={**_at(commit.state), "behind": True})
    given = wanted.config or SessionConfig()
    laid = given.laid_over(node.config) if wanted.config or node.config else None
    if "system_prompt" in given.model_fields_set:
        prompt = given.system_prompt
    else:
        slots = (await tx.slots(space, [source.id])).get(source.id)
        inherited = present(slots.system_prompt) if slots else None
        prompt = inherited.content if inherited else None
    await _insert(tx, meta, place, prompt, source=source.id, fork_seq=cut, config=laid)
    return meta


async def delete(tx: Transaction, space: str, id: str, cascade: bool) -> Deleted:
    """Deletes a session, with `cascade` its subtree too. Raises NotFound, HasChildren, BadInput over 1,000 nodes."""
    node = await tx.node(space, id)
    if node is None:
        raise errors.NotFound(f"id: no session {id!r}")
    subtree = await tx.subtree(space, id, topology.MAX_CASCADE + 1)
    if len(subtree) > 1 and not cascade:
        raise errors.HasChildren(f"{id} has children; delete them first, or say cascade")
    if len(subtree) > topology.MAX_CASCADE:
        raise errors.BadInput(f"{id} has more than {topology.MAX_CASCADE - 1} descendants; delete parts of it first")
    ids = [member.id for member in topology.depth_first(subtree)]
    going = set(ids)
    for referrer in await tx.referrers(space, ids):
        if referrer.id not in going:
            kept = tuple(target for target in referrer.refs if target not in going)
            await tx.change_node(referrer, {"refs": kept})
    targets = {target for member in subtree for target in member.refs} - going
    for target in (await tx.nodes(space, targets)).values():
        await tx.change_node(target, {})
    if node.parent_id is not None and (parent := await tx.node(space, node.parent_id)) is not None:
        await tx.change_node(parent, {"child_count": parent.child_count - 1})
    metas = await tx.sessions(space, ids)
    await tx.delete(space, ids)
    logs = dict.fromkeys(segment.log for meta in metas.values() for segment in meta.segments)
    return Deleted(ids, list(logs))


async def take_place(tx: Transaction, space: str, parent_id: str | None) -> _Place:
    """The next place under a parent, or among the roots, which this transaction now relies on. Raises NotFound."""
    if parent_id is None:
        index, now = await tx.next_root(space)
        return _Place(None, index, now)
    parent = await tx.node(space, parent_id)
    if parent is None:
        raise errors.NotFound(f"parentId: no session {parent_id!r}")
    if len(parent.ancestors) + 1 > topology.MAX_DEPTH:
        message = f"parentId: {parent_id} is at depth {topology.MAX_DEPTH}, the deepest there is"
        raise errors.BadInput(message, depth=topology.MAX_DEPTH)
    counters = {"next_index": parent.next_index + 1, "child_count": parent.child_count + 1}
    changed = await tx.change_node(parent, counters)
    return _Place(changed, parent.next_index, changed.updated_at)


def check_config(config: SessionConfig | None) -> None:
    """Raises PayloadTooLarge for a config over 1 MiB."""
    if config is not None:
        check_document(text.to_json(config.given(), "config"), "config")


def _clean(value: str | None) -> str | None:
    return None if value is None else text.clean(value)


def _key(value: str | None) -> str | None:
    return None if value is None else text.identifier(value, "idempotencyKey")


def _digest(kind: str, given: NewSession | Fork) -> str | None:
    """Only an input with a key is ever compared. It may name ids that can't be, which are refused later."""
    if given.key is None:
        return None
    content: dict[str, Any] = {
        name: text.clean_any(getattr(given, name)) for name in given.__slots__ if name != "config"
    }
    content["config"] = given.config.model_dump(exclude_unset=True) if given.config else None
    return append.digest_of(kind, content)


async def _made_before(tx: Transaction, space: str, key: str | None, digest: str | None) -> SessionMeta | None:
    if key is None:
        return None
    made = await tx.session_by_key(space, key)
    if made is not None and made.creation_digest != digest:
        raise errors.IdempotencyMismatch(f"idempotencyKey: {key!r} was used before, with other input")
    return made


async def _check_id(tx: Transaction, space: str, id: str | None) -> None:
    if id is not None:
        text.session_id(id, "id")
        if await tx.session(space, id) is not None:
            raise errors.DuplicateId(f"id: {id!r} is taken")


def _cut(wanted: Fork, source: SessionMeta) -> int:
    if not wanted.inherit:
        if wanted.at_seq:
            raise errors.BadInput(f"atSeq: context NONE shares no event, so it can only be 0, is {wanted.at_seq}")
        return 0
    cut = source.head if wanted.at_seq is None else wanted.at_seq
    if not 0 <= cut <= source.head:
        raise errors.BadInput(f"atSeq: must be 0 to the head {source.head}, is {cut}")
    return cut


def _at(state: LogState) -> dict[str, Any]:
    return {"head": state.head, "open": state.open, "totals": state.totals}


def _first_commit(meta: SessionMeta, prompt: str | None) -> Commit | None:
    if prompt is None:
        return None
    admission = Admission(meta.state, (), append.now())
    return append.build_commit(meta, [admission.admit(AssistantMessage(content=prompt), "prompt")], admission)


async def _insert(
    tx: Transaction,
    meta: SessionMeta,
    place: _Place,
    system_prompt: str | None,
    *,
    source: str | None,
    fork_seq: int | None,
    config: SessionConfig | None,
) -> None:
    slot = None
    if system_prompt is not None:
        check_size(system_prompt, "config.systemPrompt")
        slot = Slot(content=system_prompt, version=1, updated_at=place.now, at_seq=meta.head)
    node = NodeDocument(
        space=meta.space,
        id=meta.id,
        parent_id=place.parent.id if place.parent else None,
        ancestors=place.ancestors,
        index=place.index,
        source_session_id=source,
        fork_seq=fork_seq,
        config=config,
        updated_at=place.now,
    )
    await tx.insert_session(meta)
    await tx.insert_node(node)
    await tx.insert_slots(
        Slots(space=meta.space, id=meta.id, log=meta.log, created_at=meta.created_at, system_prompt=slot)
    )
