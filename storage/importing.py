"""Importing what a reader of logs hands over: a reading comes into a space whole, or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from storage import errors, events
from storage.database import MAX_EVENTS
from storage.events import Event
from storage.formats.foreign import ForeignSession, Reading
from storage.lifecycle import Fork, NewSession
from storage.session import MAX_LABEL, SessionConfig, SessionMeta, SessionStatus, SlotName
from storage.slots import SlotWrite
from storage.store import Store

COMMIT_BYTES = 4 * 1024 * 1024
"""Bytes of events from which on a commit takes no more; half of what one may have."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a reading.

    `ids` are the sessions made, by the key that each has in the reading. `sessions` of them are sessions in the
    source's own count; `forks` share events of another, whether counted or not; `nodes` are neither.
    """

    ids: dict[str, str]
    sessions: int
    forks: int
    nodes: int
    events: int
    warnings: list[str]


def _silent(_: int) -> None:
    pass


async def import_reading(
    store: Store,
    space: str,
    reading: Reading,
    *,
    parent_id: str | None = None,
    progress: Callable[[int], None] = _silent,
) -> Imported:
    """Makes the sessions of a reading, its roots under `parent_id` if one is given, else as roots.

    `progress` hears how many events were written since it last did. When something is refused (an id that is taken,
    an event that breaks a rule) or the import is cancelled, what it has made is deleted again; the error that is
    raised is the refusal's, with the session's key in its message. An import that is killed leaves what it has made.
    """
    run = _Import(store, space, parent_id, progress)
    try:
        for session in reading.sessions:
            await run.named(session, run.make)
        for session in reading.sessions:
            await run.named(session, run.finish)
    except BaseException as error:
        left = await run.undo()
        if left and isinstance(error, errors.SapwoodError):
            error.message += f"; could not be deleted again, so delete them by hand: {', '.join(left)}"
            error.args = (error.message,)
        raise
    return Imported(
        ids=run.ids,
        sessions=sum(session.counted for session in reading.sessions),
        forks=sum(_is_fork(session) for session in reading.sessions),
        nodes=sum(not session.counted and not _is_fork(session) for session in reading.sessions),
        events=sum(len(session.events) for session in reading.sessions),
        warnings=[*reading.warnings, *run.warnings()],
    )


def _is_fork(session: ForeignSession) -> bool:
    return session.source is not None and session.at_seq is not None


class _Import:
    def __init__(self, store: Store, space: str, parent_id: str | None, progress: Callable[[int], None]) -> None:
        self.ids: dict[str, str] = {}
        self._store = store
        self._space = space
        self._parent_id = parent_id
        self._progress = progress
        self._made: dict[str, ForeignSession] = {}
        self._cut_labels = 0

    async def named(self, session: ForeignSession, step: Callable[[ForeignSession], Any]) -> None:
        """Takes a step; a refusal gets the session's key into its message."""
        try:
            await step(session)
        except errors.SapwoodError as error:
            raise type(error)(f"session {session.key}: {error.message}", **error.details) from error

    async def make(self, session: ForeignSession) -> None:
        """The session with its log and slots."""
        source = None if session.source is None else self._made[session.source]
        forks = source is not None and session.at_seq is not None
        meta = await (self._fork(session) if forks else self._create(session))
        # From here on it can be undone, so whatever may be refused comes later.
        self._made[session.key] = session
        self.ids[session.key] = meta.id
        if not forks:
            await self._put(session, meta.id, SlotName.SYSTEM_PROMPT, session.system_prompt)
        await self._adjust(meta, session)
        head = meta.head
        for part in _commits(session.events):
            appended = await self._store.sessions.append(self._space, meta.id, part, expected_head=head)
            head = appended.head
            self._progress(len(part))
        await self._put(session, meta.id, SlotName.INSIGHT, session.insight)
        await self._put(session, meta.id, SlotName.MEMORY, session.memory, session.memory_at_seq)

    async def finish(self, session: ForeignSession) -> None:
        """What can only come when all sessions are there and complete: references, then archiving."""
        for target in session.refs:
            await self._store.tree.add_ref(self._space, self.ids[session.key], self.ids[target])
        if session.archived:
            await self._store.sessions.set_status(self._space, self.ids[session.key], SessionStatus.ARCHIVED)

    async def undo(self) -> list[str]:
        """Deletes what was made, the newest first; which of it could not be deleted."""
        left = []
        for id in reversed(self.ids.values()):
            try:
                await self._store.tree.delete(self._space, id)
            except errors.NotFound:
                continue
            except errors.SapwoodError:
                left.append(id)
        return left

    def warnings(self) -> list[str]:
        """What the store could not take as it was."""
        if not self._cut_labels:
            return []
        return [f"{self._cut_labels} label{'s' if self._cut_labels > 1 else ''} cut to {MAX_LABEL} characters"]

    def _label(self, session: ForeignSession) -> str | None:
        label = session.label
        if label is not None and len(label) > MAX_LABEL:
            self._cut_labels += 1
            label = label[:MAX_LABEL]
        return label

    def _parent(self, session: ForeignSession) -> str | None:
        return self._parent_id if session.parent is None else self.ids[session.parent]

    async def _create(self, session: ForeignSession) -> SessionMeta:
        new = NewSession(
            id=session.id,
            label=self._label(session),
            parent_id=self._parent(session),
            source_session_id=None if session.source is None else self.ids[session.source],
            workflow_mode=session.workflow_mode,
            metadata=session.metadata,
        )
        return await self._store.tree.create(self._space, new)

    async def _fork(self, session: ForeignSession) -> SessionMeta:
        source = self._made[session.source or ""]
        config = None if self._inherits(session) else SessionConfig(system_prompt=session.system_prompt)
        wanted = Fork(
            source_id=self.ids[source.key],
            at_seq=session.at_seq,
            id=session.id,
            label=self._label(session),
            parent_id=self._parent(session),
            as_root=self._parent(session) is None,
            metadata=session.metadata,
            config=config,
        )
        return await self._store.tree.fork(self._space, wanted)

    async def _adjust(self, meta: SessionMeta, session: ForeignSession) -> None:
        """Sets what a fork has inherited, or creation could not name, to what the session has."""
        wanted = {"workflow_mode": session.workflow_mode, "metadata": session.metadata}
        changes = {name: value for name, value in wanted.items() if getattr(meta, name) != value}
        if changes:
            await self._store.sessions.update(self._space, meta.id, changes)
        if session.config is not None or not self._inherits(session):
            await self._store.tree.put_config(self._space, meta.id, session.config or SessionConfig())

    def _inherits(self, session: ForeignSession) -> bool:
        """Whether what a fork takes over of prompt and config is what it has; else it must be named."""
        if session.source is None or session.at_seq is None:
            return True
        source = self._made[session.source]
        return session.system_prompt == source.system_prompt and source.config is None

    async def _put(
        self, session: ForeignSession, id: str, name: SlotName, content: str | None, at_seq: int | None = None
    ) -> None:
        if content is not None:
            await self._store.sessions.put_slot(self._space, SlotWrite(id, name, content, at_seq=at_seq))


def _commits(drafts: Sequence[Event]) -> Iterator[list[Event]]:
    """The events in parts that each fit into a commit, however large a single one is."""
    part: list[Event] = []
    size = 0
    for draft in drafts:
        needed = len(orjson.dumps(events.dump(draft)))
        if part and (len(part) == MAX_EVENTS or size + needed > COMMIT_BYTES):
            yield part
            part, size = [], 0
        part.append(draft)
        size += needed
    if part:
        yield part
