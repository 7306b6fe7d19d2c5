"""Sessions as dialogue units: their documents, slots and digests. Nothing here knows of the tree."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from storage.events import Instant, JsonText, Model, Text
from storage.log.state import LogState, OpenTurn, Totals

MAX_LABEL = 500
MAX_SLOT_BYTES = 1024 * 1024
MAX_SEGMENTS = 256


class SessionStatus(StrEnum):
    """Whether a session takes appends and slots."""

    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"


class SlotName(StrEnum):
    """The three context slots."""

    SYSTEM_PROMPT = "SYSTEM_PROMPT"
    INSIGHT = "INSIGHT"
    MEMORY = "MEMORY"


class SessionConfig(Model):
    """What was fixed at creation. Only fields that were given are stored and come back."""

    system_prompt: Text | None = None
    skills: list[Text] | None = None

    def given(self) -> dict[str, Any]:
        """The fields that hold a value, by their names in documents."""
        return self.model_dump(by_alias=True, exclude_none=True)

    def laid_over(self, base: "SessionConfig | None") -> "SessionConfig | None":
        """This config over another: what was not given here keeps the other's value, null takes it away."""
        if base is None:
            return self
        return SessionConfig(
            **{**base.model_dump(exclude_none=True), **{name: getattr(self, name) for name in self.model_fields_set}}
        )


class Slot(Model):
    """A slot's newest write. Once cleared it has no content; the version stays, so that it never restarts."""

    content: Text | None = None
    version: int
    updated_at: Instant
    at_seq: int
    cleared: bool = False


class Slots(Model):
    """The slots of one session. `created_at` is the session's, so that a page of sessions is a range of slots too.

    `log` tells sessions apart that were made one after the other under the same id.
    """

    space: str
    id: str
    log: str
    created_at: Instant
    system_prompt: Slot | None = None
    insight: Slot | None = None
    memory: Slot | None = None

    def named(self, name: SlotName) -> Slot | None:
        """The slot of that name, cleared or not; None if it was never written."""
        found: Slot | None = getattr(self, name.value.lower())
        return found


class Segment(Model):
    """A part of a visible log: the events with seq < `to` of `log` that no earlier segment holds.

    The last segment is the session's own log and has no end.
    """

    log: str
    start: int = 0
    to: int | None = None


class SessionMeta(Model):
    """A session and the state of its log. Times in ms since 1970, by the database's clock."""

    space: str
    id: str
    label: str
    status: SessionStatus = SessionStatus.ACTIVE
    workflow_mode: str | None = None
    metadata: JsonText | None = None
    created_at: Instant
    updated_at: Instant
    last_event_at: Instant | None = None
    creation_key: str | None = None
    creation_digest: str | None = None
    segments: tuple[Segment, ...]
    head: int = 0
    open: tuple[OpenTurn, ...] = ()
    totals: Totals = Totals()
    inherited: Totals = Totals()
    memory_at_seq: int = 0
    behind: bool = False

    @property
    def log(self) -> str:
        """Id of the session's own log: random, never reused."""
        return self.segments[-1].log

    @property
    def own_start(self) -> int:
        """seq of the first event that is the session's own."""
        return self.segments[-1].start

    @property
    def turn_count(self) -> int:
        """turn/end events in the visible log."""
        return self.totals.types.get("turn/end", 0)

    @property
    def state(self) -> LogState:
        """The state of the visible log at its head."""
        return LogState(head=self.head, open=self.open, totals=self.totals)


@dataclass(frozen=True, slots=True)
class Digest:
    """What an orchestrator reflects on: the outside of one session."""

    session: SessionMeta
    memory: Slot | None
    insight: Slot | None

    @classmethod
    def of(cls, meta: SessionMeta, slots: Slots | None) -> "Digest":
        """The digest of a session and its slots; None stands for slots never written."""
        return cls(meta, present(slots.memory) if slots else None, present(slots.insight) if slots else None)


class SessionOrder(StrEnum):
    """By creation, or by last change."""

    CREATED_ASC = "CREATED_ASC"
    CREATED_DESC = "CREATED_DESC"
    UPDATED_DESC = "UPDATED_DESC"


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions of a space: all conditions hold together. `under` includes the node itself."""

    ids: tuple[str, ...] | None = None
    under: str | None = None
    status: SessionStatus | None = None
    label_contains: str | None = None
    updated_since: Instant | None = None
    appended_since: Instant | None = None
    behind: bool | None = None


def present(slot: Slot | None) -> Slot | None:
    """The slot as readers see it: None when it was never written or was cleared."""
    return slot if slot is not None and not slot.cleared else None
