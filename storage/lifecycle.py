"""Creating and forking sessions: each writes log, slots and topology in one transaction."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

from storage import errors, text, topology
from storage.database import Transaction
from storage.events import AssistantMessage, Instant, JsonText
from storage.log import append, reading
from storage.log.admission import Admission
from storage.log.commit import Commit
from storage.log.state import LogState
from storage.session import (
    Segment,
    SessionConfig,
    SessionMeta,
    Slot,
    Slots,
    check_document,
    check_label,
    present,
)
from storage.slots import check_size
from storage.topology import NodeDocument

DEFAULT_LABELS = ("Root", "Session")
"""The labels of a root and of any other session that is given none."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to create. The id is generated if absent."""

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
    """A fork to create. It shares the source's first `at_seq` events (default: all)."""

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
        """The parent as given, else the source; None for a root."""
        if self.as_root:
            return None
        return self.source_id if self.parent_id is None else self.parent_id


@dataclass(frozen=True, slots=True)
class _Position:
    """A claimed position in the forest: under `parent` at `index`; `now` is the database's time."""

    parent: NodeDocument | None
    index: int
    now: Instant

    @property
    def ancestors(self) -> tuple[str, ...]:
        return (self.parent.id, *self.parent.ancestors) if self.parent else ()


async def create(tx: Transaction, space: str, new: NewSession) -> SessionMeta:
    """Creates an empty session with its node and slots.

    Raises DuplicateId, NotFound, BadInput, PayloadTooLarge or IdempotencyMismatch.
    """
    new = replace(new, label=_clean(new.label), workflow_mode=_clean(new.workflow_mode), key=_key(new.key))
    digest = _digest("create", new)
    if (made := await _made_before(tx, space, new.key, digest)) is not None:
        return made
    await _check_id(tx, space, new.id)
    if new.source_session_id is not None and await tx.session(space, new.source_session_id) is None:
        raise errors.no_session("sourceSessionId", new.source_session_id)
    default_label = DEFAULT_LABELS[new.parent_id is not None]
    label = check_label(new.label if new.label is not None else default_label)
    check_document(new.metadata, "metadata")
    check_config(new.config)
    position = await claim_position(tx, space, new.parent_id)
    meta = SessionMeta(
        space=space,
        id=new.id or str(uuid.uuid4()),
        label=label,
        workflow_mode=new.workflow_mode,
        metadata=new.metadata,
        created_at=position.now,
        updated_at=position.now,
        creation_key=new.key,
        creation_digest=digest,
        segments=(Segment(log=uuid.uuid4().hex),),
    )
    config = new.config and SessionConfig(**new.config.model_dump(exclude_none=True))
    prompt = config.system_prompt if config else None
    await _insert(tx, meta, position, prompt, source=new.source_session_id, fork_seq=None, config=config)
    return meta


async def fork(tx: Transaction, space: str, wanted: Fork) -> SessionMeta:
    """Creates a session that shares the first events of another; nothing is copied.

    Raises NotFound, BadInput (a cut outside 0 to head), DuplicateId, PayloadTooLarge or IdempotencyMismatch; nothing is
    written then.
    """
    wanted = replace(wanted, label=_clean(wanted.label), prompt=_clean(wanted.prompt), key=_key(wanted.key))
    digest = _digest("fork", wanted)
    if (made := await _made_before(tx, space, wanted.key, digest)) is not None:
        return made
    await _check_id(tx, space, wanted.id)
    source = await tx.session(space, wanted.source_id)
    node = await tx.node(space, wanted.source_id)
    if source is None or node is None:
        raise errors.no_session("sourceId", wanted.source_id)
    cut = _cut(wanted, source)
    if wanted.as_root and wanted.parent_id is not None:
        raise errors.BadInput("asRoot and parentId: give one of them")
    label = check_label(wanted.label if wanted.label is not None else source.label)
    check_document(wanted.metadata, "metadata")
    check_config(wanted.config)
    await tx.rely_on(space, sessions=[source.id])
    position = await claim_position(tx, space, wanted.under)
    state = await reading.state_at(tx, source, cut)
    meta = SessionMeta(
        space=space,
        id=wanted.id or str(uuid.uuid4()),
        label=label,
        workflow_mode=source.workflow_mode,
        metadata=source.metadata if wanted.metadata is None else wanted.metadata,
        created_at=position.now,
        updated_at=position.now,
        last_event_at=position.now if cut or wanted.prompt is not None else None,
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
    laid_config = given.laid_over(node.config) if wanted.config or node.config else None
    if "system_prompt" in given.model_fields_set:
        prompt = given.system_prompt
    else:
        slots = (await tx.slots(space, [source.id])).get(source.id)
        inherited = present(slots.system_prompt) if slots else None
        prompt = inherited.content if inherited else None
    await _insert(tx, meta, position, prompt, source=source.id, fork_seq=cut, config=laid_config)
    return meta


async def claim_position(tx: Transaction, space: str, parent_id: str | None) -> _Position:
    """Claims the next position under a parent, or among the roots. Writes the parent. Raises NotFound, BadInput."""
    if parent_id is None:
        index, now = await tx.next_root(space)
        return _Position(None, index, now)
    parent = await tx.node(space, parent_id)
    if parent is None:
        raise errors.no_session("parentId", parent_id)
    if len(parent.ancestors) + 1 > topology.MAX_DEPTH:
        message = f"parentId: {parent_id} is at depth {topology.MAX_DEPTH}, the deepest there is"
        raise errors.BadInput(message, depth=topology.MAX_DEPTH)
    counters = {"next_index": parent.next_index + 1, "child_count": parent.child_count + 1}
    changed = await tx.change_node(parent, counters)
    return _Position(changed, parent.next_index, changed.updated_at)


def check_config(config: SessionConfig | None) -> None:
    """Raises PayloadTooLarge for a config over 1 MiB."""
    if config is not None:
        check_document(text.to_json(config.given(), "config"), "config")


def _clean(value: str | None) -> str | None:
    return None if value is None else text.clean(value)


def _key(value: str | None) -> str | None:
    return None if value is None else text.identifier(value, "idempotencyKey")


def _digest(kind: str, given: NewSession | Fork) -> str | None:
    """Digest of an input with a key; None without one. Ids in it may be invalid; they are refused later."""
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
        raise errors.key_reused(key)
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
    position: _Position,
    system_prompt: str | None,
    *,
    source: str | None,
    fork_seq: int | None,
    config: SessionConfig | None,
) -> None:
    slot = None
    if system_prompt is not None:
        check_size(system_prompt, "config.systemPrompt")
        slot = Slot(content=system_prompt, version=1, updated_at=position.now, at_seq=meta.head)
    node = NodeDocument(
        space=meta.space,
        id=meta.id,
        parent_id=position.parent.id if position.parent else None,
        ancestors=position.ancestors,
        index=position.index,
        source_session_id=source,
        fork_seq=fork_seq,
        config=config,
        updated_at=position.now,
    )
    await tx.insert_session(meta)
    await tx.insert_node(node)
    await tx.insert_slots(
        Slots(space=meta.space, id=meta.id, log=meta.log, created_at=meta.created_at, system_prompt=slot)
    )
