"""Sessions as dialogue units: their documents, slots and digests. Nothing here knows the tree."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from storage import errors, text
from storage.events import Instant, JsonText, Model, Text
from storage.log.state import LogState, OpenTurn, Totals

MAX_LABEL = 500
MAX_SLOT_BYTES = 1024 * 1024
MAX_SEGMENTS = 256


class SessionStatus(StrEnum):
    """Whether a session accepts appends and slot writes."""

    ACTIVE = "ACTIVE"
    ARCHIVED = "ARCHIVED"


class SlotName(StrEnum):
    """The three context slots."""

    SYSTEM_PROMPT = "SYSTEM_PROMPT"
    INSIGHT = "INSIGHT"
    MEMORY = "MEMORY"


class SessionConfig(Model):
    """Settings fixed at creation. Only fields that were given are stored and returned."""

    system_prompt: Text | None = None
    skills: list[Text] | None = None

    def given(self) -> dict[str, Any]:
        """The fields that have a value, by their names in documents."""
        return self.model_dump(by_alias=True, exclude_none=True)

    def laid_over(self, base: "SessionConfig | None") -> "SessionConfig | None":
        """This config laid over another: fields not given here keep the other's value, null removes it."""
        if base is None:
            return self
        return SessionConfig(
            **{**base.model_dump(exclude_none=True), **{name: getattr(self, name) for name in self.model_fields_set}}
        )


class Slot(Model):
    """The newest write to a slot. A cleared slot has no content but keeps its version, so versions never restart."""

    content: Text | None = None
    version: int
    updated_at: Instant
    at_seq: int
    cleared: bool = False


class Slots(Model):
    """The slots of one session. `created_at` is the session's, so a page of sessions is a range of slots too.

    `log` distinguishes sessions created one after the other under the same id.
    """

    space: str
    id: str
    log: str
    created_at: Instant
    system_prompt: Slot | None = None
    insight: Slot | None = None
    memory: Slot | None = None

    def named(self, name: SlotName) -> Slot | None:
        """The slot with this name, cleared or not; None if it was never written."""
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
        """Id of the session's own log: random and never reused."""
        return self.segments[-1].log

    @property
    def own_start(self) -> int:
        """seq of the session's first own event."""
        return self.segments[-1].start

    @property
    def turn_count(self) -> int:
        """Number of turn/end events in the visible log."""
        return self.totals.types.get("turn/end", 0)

    @property
    def state(self) -> LogState:
        """The state of the visible log at its head."""
        return LogState(head=self.head, open=self.open, totals=self.totals)


@dataclass(frozen=True, slots=True)
class Digest:
    """What an orchestrator sees of a session without reading its log."""

    session: SessionMeta
    memory: Slot | None
    insight: Slot | None

    @classmethod
    def of(cls, meta: SessionMeta, slots: Slots | None) -> "Digest":
        """The digest of a session and its slots; None stands for slots never written."""
        return cls(meta, present(slots.memory) if slots else None, present(slots.insight) if slots else None)


class SessionOrder(StrEnum):
    """Order of a list of sessions: by creation or by last change."""

    CREATED_ASC = "CREATED_ASC"
    CREATED_DESC = "CREATED_DESC"
    UPDATED_DESC = "UPDATED_DESC"


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Selects sessions of a space that meet all conditions. `under` includes the node itself."""

    ids: tuple[str, ...] | None = None
    under: str | None = None
    status: SessionStatus | None = None
    label_contains: str | None = None
    updated_since: Instant | None = None
    appended_since: Instant | None = None
    behind: bool | None = None


def present(slot: Slot | None) -> Slot | None:
    """The slot as readers see it: None if it was never written or is cleared."""
    return slot if slot is not None and not slot.cleared else None


def check_label(label: str) -> str:
    """Returns the label without lone surrogates. Raises BadInput over 500 characters."""
    if len(label) > MAX_LABEL:
        raise errors.BadInput(f"label: takes {MAX_LABEL} characters, this has {len(label)}")
    return text.clean(label)


def check_document(value: JsonText | None, path: str) -> JsonText | None:
    """Returns JSON text of at most 1 MiB. Raises PayloadTooLarge."""
    if value is not None and len(value.encode()) > MAX_SLOT_BYTES:
        raise errors.PayloadTooLarge(f"{path}: takes {MAX_SLOT_BYTES} bytes as JSON, this has {len(value.encode())}")
    return value
