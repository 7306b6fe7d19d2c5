"""Appending events to a session's log."""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from storage import errors, events
from storage.database import Queries, Transaction
from storage.events import APPEND, Event, Surfacing
from storage.log import run_index
from storage.log.admission import Admission, check_steps, path_of, visible_turns
from storage.log.commit import MAX_COMMIT_BYTES, MAX_EVENTS, Commit, read_commit, recorded
from storage.log.marks import marked_cards, step_mark, turn_mark
from storage.readers.surfaces import Surfaces
from storage.session import MAX_SEGMENTS, Segment, SessionMeta, SessionStatus
from storage.views.surface import Surface


@dataclass(frozen=True, slots=True)
class Appended:
    """The answer to an append. `commit` is the one written, or the original one if the key was repeated."""

    commit: Commit
    session: SessionMeta
    duplicate: bool
    admitted: Sequence[Event] | None = None
    """The events that the commit was built from, if it was built in this process."""

    @property
    def first_seq(self) -> int:
        """seq of the first event."""
        return self.commit.first

    @property
    def head(self) -> int:
        """The head right after the append."""
        return self.commit.last + 1

    @property
    def events(self) -> list[Event]:
        """The events as stored."""
        return read_commit(self.commit) if self.admitted is None else recorded(self.commit, self.admitted)


def now() -> int:
    """The server's clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


def digest_of(kind: str, content: Any) -> str:
    """Digest of an input, compared when its idempotency key is used again."""
    return hashlib.sha256(kind.encode() + b"\n" + orjson.dumps(content)).hexdigest()


async def append(
    tx: Transaction,
    space: str,
    id: str,
    drafts: Sequence[Event],
    *,
    surfaces: Surfaces | None = None,
    expected_head: int | None = None,
    key: str | None = None,
    digest: str | None = None,
    archived_too: bool = False,
) -> Appended:
    """Writes events at the head of a session's log, all or none; with `archived_too`, even if it is archived.

    `surfaces` may hold the session's surface, which events that replace parts of it are checked against. A `key` used
    before gets the first answer again. Raises NotFound, Archived, Conflict (another head), TurnEnded, BadInput,
    PayloadTooLarge or IdempotencyMismatch; nothing is written then.
    """
    meta = await tx.session(space, id)
    if meta is None:
        raise errors.no_session("sessionId", id)
    if key is not None:
        digest = digest or digest_of("append", [events.dump(draft) for draft in drafts])
        if (repeated := await repeat_of(tx, meta, key, digest)) is not None:
            return Appended(repeated, meta, duplicate=True)
    if not archived_too:
        check_writable(meta)
    check_head(meta, expected_head)
    surface = await (surfaces or Surfaces()).within(tx, meta) if replaces(drafts) else None
    admission, admitted = await _admit(tx, meta, drafts, surface)
    encoded = encode(admitted)
    commit = build_commit(meta, admitted, admission, encoded, key, digest)
    await record(tx, meta, commit, admitted)
    changes = {"head": commit.last + 1, "open": commit.open, "totals": commit.totals, "behind": True}
    return Appended(commit, await tx.change_session(meta, changes, appended=True), duplicate=False, admitted=admitted)


def check_writable(meta: SessionMeta) -> None:
    """Raises Archived unless the session takes writes."""
    if meta.status is not SessionStatus.ACTIVE:
        raise errors.Archived(f"session {meta.id} is archived; restore it first")


def check_head(meta: SessionMeta, expected_head: int | None) -> None:
    """Raises Conflict, with the actual head, if another one was expected."""
    if expected_head is not None and expected_head != meta.head:
        raise errors.Conflict(f"expectedHead: the log's head is {meta.head}, not {expected_head}", head=meta.head)


def replaces(drafts: Sequence[Event]) -> bool:
    """Whether any of the events replaces nodes of the surface."""
    # Nearly all messages share the default APPEND; the identity check is faster than reading `replaces`.
    return any(isinstance(draft, Surfacing) and draft.surface_op is not APPEND and draft.replaces for draft in drafts)


async def repeat_of(tx: Queries, meta: SessionMeta, key: str, digest: str) -> Commit | None:
    """The commit made with this key in the session's own log. Raises IdempotencyMismatch if its input differed."""
    found = await tx.commit_by_key(meta.log, key)
    if found is not None and found.digest != digest:
        raise errors.key_reused(key)
    return found


async def _admit(
    tx: Transaction,
    meta: SessionMeta,
    drafts: Sequence[Event],
    surface: Surface | None,
) -> tuple[Admission, list[Event]]:
    if not 1 <= len(drafts) <= MAX_EVENTS:
        refusal = errors.PayloadTooLarge if drafts else errors.BadInput
        raise refusal(f"events: one append takes 1 to {MAX_EVENTS} events, got {len(drafts)}")
    at = now()
    started = await visible_turns(tx, meta, drafts)
    admission = Admission(meta.state, started, at)
    admitted = [admission.admit(draft, f"events[{index}]") for index, draft in enumerate(drafts)]
    if surface is not None:
        _check_replacements(surface.copy(), admitted)
    await check_steps(tx, meta, admission)
    return admission, admitted


def _check_replacements(surface: Surface, admitted: Sequence[Event]) -> None:
    """Folds the events onto the surface at the head. Raises BadInput for a replacement whose nodes are not there."""
    for index, event in enumerate(admitted):
        surface.check_replace(event, path_of(event, f"events[{index}]"))
        surface.add(event)


async def record(
    tx: Transaction,
    meta: SessionMeta,
    commit: Commit,
    admitted: Sequence[Event] | None = None,
) -> None:
    """Writes a commit and the rows of runs that its events change. `meta` is the session before the commit.

    `admitted` are the events that it was built from, if the caller has them.
    """
    await tx.insert_commit(commit)
    await run_index.update(tx, meta, commit, admitted)


class Encoded(NamedTuple):
    """Events as stored in a commit, and their JSON."""

    events: list[dict[str, Any]]
    content: bytes


def encode(admitted: Sequence[Event]) -> Encoded:
    """Converts events to their stored form. Raises PayloadTooLarge over 8 MiB."""
    stored = [events.dump(event) for event in admitted]
    content = orjson.dumps(stored)
    if len(content) > MAX_COMMIT_BYTES:
        message = f"events: one append takes {MAX_COMMIT_BYTES} bytes as stored, these are {len(content)}"
        raise errors.PayloadTooLarge(message)
    return Encoded(stored, content)


def build_commit(
    meta: SessionMeta,
    admitted: Sequence[Event],
    admission: Admission,
    encoded: Encoded | None = None,
    key: str | None = None,
    digest: str | None = None,
) -> Commit:
    """Builds the commit of these events at the session's head. Raises PayloadTooLarge over 8 MiB as stored."""
    stored, content = encoded or encode(admitted)
    state = admission.state()
    cards = marked_cards(meta.log, meta.head, admitted)
    return Commit.model_construct(  # no validation: the events were checked, and it would double the time
        id=secrets.token_hex(16),
        space=meta.space,
        session=meta.id,
        log=meta.log,
        first=meta.head,
        last=meta.head + len(admitted) - 1,
        at=admission.at,
        types=tuple(sorted({event.type for event in admitted})),
        turns=tuple(turn_mark(meta.log, turn) for turn in admission.started_turns),
        turn_seqs=tuple(admission.started_turns.values()),
        steps=tuple(step_mark(meta.log, turn, step) for turn, step in admission.started_steps),
        step_seqs=tuple(admission.step_seqs),
        cards=tuple(mark for mark, _ in cards),
        card_seqs=tuple(seq for _, seq in cards),
        open=state.open,
        totals=state.totals,
        key=None if key is None else f"{meta.log}/{key}",
        digest=digest if key is not None else None,
        size=len(content),
        events=stored,
    )


def cut(meta: SessionMeta, seq: int, own_log: str) -> tuple[Segment, ...]:
    """The segments of a fork: the source's list cut at `seq` without empty ones, then the fork's own log."""
    shared = [
        segment.model_copy(update={"to": seq if segment.to is None else min(segment.to, seq)})
        for segment in meta.segments
        if segment.start < seq
    ]
    shared = [segment for segment in shared if segment.to is not None and segment.start < segment.to]
    if len(shared) >= MAX_SEGMENTS:
        raise errors.BadInput(f"sourceId: {meta.id} is a fork of forks {MAX_SEGMENTS} deep; no more can be stacked")
    return (*shared, Segment(log=own_log, start=seq))
