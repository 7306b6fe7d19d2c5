"""The state of one session during an import."""

from dataclasses import replace
from typing import NamedTuple

from storage.lifecycle import DEFAULT_LABELS
from storage.session import MAX_LABEL, SessionMeta
from storage.transfer.formats.shared.foreign import ForeignSession
from storage.transfer.importing.log import ImportedLog, Shift
from storage.transfer.importing.target import ForkPoint


class Placement(NamedTuple):
    """Where to create a session: under a parent or as a root, and what it was forked from."""

    parent_id: str | None
    source: ForkPoint | None


class ImportedSession:
    """A session of the source and its log.

    Until it is `resolved`, it may still have to be created, at `placement`. `stored` is the log to compare with, up to
    `limit`: the session's own log, or the one whose beginning it `copies`.
    """

    def __init__(self, foreign: ForeignSession, log: ImportedLog) -> None:
        self.foreign = replace(foreign, events=())
        self.log = log
        self.id = foreign.id
        self.label = foreign.label
        self.labels: tuple[str, ...] = DEFAULT_LABELS if foreign.label is None else (foreign.label[:MAX_LABEL],)
        self.renamed = False
        self.resolved = False
        self.placement: Placement | None = None
        self.stored: SessionMeta | None = None
        self.limit = 0
        self.copies = False

    def rename(self, label: str) -> None:
        """Changes the label. `labels` collects every label from the source: any other one was set by a user here."""
        self.label, self.renamed = label, True
        if label[:MAX_LABEL] not in self.labels:
            self.labels = (*self.labels, label[:MAX_LABEL])

    @property
    def parent_ref(self) -> str | None:
        """The key or id of the parent that the source names. Siblings have the same one."""
        return self.foreign.parent if self.foreign.parent is not None else self.foreign.parent_id

    @property
    def is_declared_fork(self) -> bool:
        """Whether the source says what the session shares with another of its sessions."""
        return self.foreign.source is not None and self.foreign.at_seq is not None

    def compare_with(self, stored: SessionMeta, limit: int | None = None, *, copies: bool = False) -> None:
        """Compares further events with this log, up to the limit or its head."""
        self.stored = stored
        self.limit = stored.head if limit is None else min(limit, stored.head)
        self.copies = copies


class SuspendedLog(NamedTuple):
    """A log that is not open now: its id and how far it was imported.

    `foreign` is set where events of the stored log are left to compare.
    """

    id: str
    position: int
    shifts: tuple[Shift, ...]
    labels: tuple[str, ...]
    foreign: ForeignSession | None


class ExistingSession(NamedTuple):
    """A session that was already stored, and its head when it was found."""

    foreign: ForeignSession
    head: int
