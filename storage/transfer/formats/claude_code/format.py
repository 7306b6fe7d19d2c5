"""Logs of Claude Code, one JSON record per line, linked into a tree by `uuid` and `parentUuid`.

A second prompt after the same record begins a branch. A sub-agent's log names the session that it ran in; if it is a
file of its own, its session becomes a child of that one. A forked session's log begins with copies of the original's
records.
https://github.com/anthropics/claude-code
"""

import hashlib
from collections.abc import Sequence

from storage import errors, text
from storage.transfer.formats.claude_code.content import Answer, Entry, Title, ToolResults, UserText
from storage.transfer.formats.claude_code.records import read_entry
from storage.transfer.formats.claude_code.thread import Thread
from storage.transfer.formats.shared.foreign import ForeignSession, ImportWarnings, Reader, Step, valid_id
from storage.transfer.formats.shared.record import Record

FORMAT = "claude-code"
MAX_EARLY = 1000
"""Number of records before the first one of a session that are kept for it."""


def fits(values: Sequence[object]) -> bool:
    """Whether a record that only Claude Code writes is among a document's first."""
    return any(_is_own(value) for value in values)


def _is_own(value: object) -> bool:
    match value:
        case {"type": str(), "uuid": str(), "parentUuid": str() | None, "sessionId": str()}:
            return True
        case {"type": "summary", "summary": str(), "leafUuid": str()}:
            return True
        case {"type": "file-history-snapshot", "messageId": str(), "snapshot": dict()}:
            return True
        case {"type": "queue-operation", "operation": str(), "sessionId": str()}:
            return True
        case {"type": "custom-title", "customTitle": str(), "sessionId": str()}:
            return True
    return False


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one log."""
    return _Reader(warnings)


class _Reader(Reader):
    """Assigns each record to the thread that it belongs to.

    Keeps a hash of each record's uuid, and the state before each prompt, where a branch may begin.
    """

    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._threads: dict[str, Thread] = {}
        self._current: Thread | None = None
        self._thread_by_uuid: dict[int, Thread] = {}
        self._prompt_states: dict[int, Thread] = {}
        self._early: list[Entry] = []
        self._titles: dict[int, Title] = {}

    def add(self, record: Record) -> Sequence[Step]:
        """Return the steps of the next record. Raises BadInput, with its location, if it breaks the format."""
        found = ImportWarnings()
        entry = read_entry(record, found)
        if entry.uuid is not None and hash(entry.uuid) in self._thread_by_uuid:
            self._warnings.add("record", "given twice, left out the second time")
            return ()
        steps: list[Step] = []
        thread = self._thread(entry, steps)
        if thread is None and _is_message(entry):
            raise errors.BadInput(f"{entry.location}: sessionId: is required, as no record before names one")
        self._warnings.include(found)
        if thread is None:
            self._keep(entry)
            return steps
        return steps + self._apply(thread, entry)

    def end(self) -> Sequence[Step]:
        """Return nothing, but count what is held back."""
        for thread in self._threads.values():
            thread.end()
        if self._early:
            self._warnings.add("record", "at the end of the log held back until its session begins", len(self._early))
        return ()

    def _keep(self, entry: Entry) -> None:
        if len(self._early) < MAX_EARLY:
            self._early.append(entry)
        else:
            self._warnings.add("record", f"after {MAX_EARLY} others without a session left out")

    def _apply(self, thread: Thread, entry: Entry) -> list[Step]:
        steps: list[Step] = []
        entry = thread.expand(entry)
        if entry.opens and (entry.parent is not None or entry.rooted):
            thread = self._branch_if_taken(thread, entry, steps)
        steps += thread.add(entry)
        if isinstance(entry.content, Title) and entry.content.leaf is not None:
            steps += self._name_leaf(entry.content, hash(entry.content.leaf))
        if entry.uuid is not None:
            uuid_hash = hash(entry.uuid)
            self._thread_by_uuid[uuid_hash] = thread
            thread.tip = uuid_hash
            if (title := self._titles.pop(uuid_hash, None)) is not None:
                steps += thread.rename(title)
        return steps

    def _name_leaf(self, title: Title, leaf: int) -> list[Step]:
        """Rename the session of a summary's leaf, which may come later or be in another file."""
        if (thread := self._thread_by_uuid.get(leaf)) is not None:
            return thread.rename(title)
        self._titles[leaf] = title
        return []

    def _branch_if_taken(self, thread: Thread, entry: Entry, steps: list[Step]) -> Thread:
        """The thread itself, or a branch if something was already typed after the same parent."""
        point = hash((thread.root, entry.parent))
        before = self._prompt_states.get(point)
        if before is None:
            if isinstance(entry.content, UserText):
                thread.end_open_turn()
            self._prompt_states[point] = thread.fork(thread.key)
            return thread
        branch = before.fork(self._new_key(_id(before.root, entry.uuid or f"at-{before.builder.head}")))
        self._begin(branch, entry, steps, parent=before, source=before, at_seq=before.builder.head, counted=False)
        return branch

    def _thread(self, entry: Entry, steps: list[Step]) -> Thread | None:
        """The thread that a record belongs to; a new one for the first record of a thread."""
        parent = self._thread_by_uuid.get(hash(entry.parent)) if entry.parent is not None else None
        if entry.session is None:
            return parent or self._current
        if parent is not None and _continues(parent, entry):
            return parent
        key = _id(entry.session)
        if entry.sidechain:
            own = entry.agent or (entry.uuid if entry.uuid is not None else "sidechain")
            key = _id(entry.session, own)
        if (thread := self._threads.get(key)) is not None:
            return thread
        if entry.uuid is None and not _is_message(entry):
            return None
        if parent is not None and not entry.sidechain:
            return self._continued(parent, key, entry, steps)
        thread = Thread(key, entry, self._warnings)
        above = self._threads.get(_id(entry.session)) if entry.sidechain else None
        self._begin(thread, entry, steps, parent=above)
        return thread

    def _continued(self, parent: Thread, key: str, entry: Entry, steps: list[Step]) -> Thread:
        """A new session that continues another one of the same log."""
        tip = parent.tip == hash(entry.parent)
        before = parent if tip else self._prompt_states.get(hash((parent.root, entry.parent)))
        if before is None:
            thread = Thread(key, entry, self._warnings)
            self._begin(thread, entry, steps, parent=parent, source=parent, at_seq=None)
        else:
            thread = before.fork(key)
            thread.switch_session(entry)
            self._begin(thread, entry, steps, parent=parent, source=before, at_seq=before.builder.head)
        return thread

    def _begin(
        self,
        thread: Thread,
        entry: Entry,
        steps: list[Step],
        *,
        parent: Thread | None = None,
        source: Thread | None = None,
        at_seq: int | None = 0,
        counted: bool = True,
    ) -> None:
        """Begin a session with the records that waited for it."""
        facts = {**thread.facts, **entry.facts}
        named = {"sessionId": entry.session, "agentId": entry.agent} if entry.sidechain else {}
        metadata = named | facts | {"forkedFrom": entry.forked_from}
        fields = {name: value for name, value in metadata.items() if value is not None}
        if entry.session is not None and valid_id(entry.session) is None:
            self._warnings.add("session", "got another id, as its own is not a valid session id")
        thread.facts = facts
        steps.append(
            ForeignSession(
                key=thread.key,
                label=thread.label_by(entry),
                id=thread.key,
                parent=parent.key if parent is not None else None,
                parent_id=_id(entry.session or "") if entry.sidechain and parent is None else None,
                source=source.key if source is not None else None,
                at_seq=at_seq,
                repeats=valid_id(entry.forked_from) if source is None and entry.forked_from != entry.session else None,
                metadata=text.to_json(fields, entry.location) if fields else None,
                counted=counted,
            )
        )
        self._threads[thread.key] = thread
        if not thread.sidechain:
            self._current = thread
        waiting, self._early = self._early, []
        for early in waiting:
            if early.session in (None, thread.session):
                steps += self._apply(thread, early)
            else:
                self._early.append(early)

    def _new_key(self, key: str) -> str:
        return key if key not in self._threads else _id(key, str(len(self._threads)))


def _is_message(entry: Entry) -> bool:
    return isinstance(entry.content, UserText | Answer | ToolResults)


def _continues(thread: Thread, entry: Entry) -> bool:
    """Whether a record continues the thread of its parent."""
    named = thread.session == entry.session and thread.sidechain == entry.sidechain
    return named and (not entry.sidechain or thread.agent == entry.agent)


def _id(*parts: str) -> str:
    """Join ids of the log to a session id, the same at each reading; use a digest if that is not a valid id."""
    made = ":".join(parts)
    if valid_id(made) is not None:
        return made
    return f"claude-code:{hashlib.sha256(made.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
