"""What records of a Claude Code log can hold, apart from how it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.events import JsonText


class Role(StrEnum):
    """What a user's text does."""

    PROMPT = "starts a turn"
    ADDED = "comes while a turn runs"
    INTERRUPTION = "tells that the turn was interrupted"
    SUMMARY = "takes the place of what came before"


@dataclass(frozen=True, slots=True)
class UserText:
    """A user's text, with the source's content parts where some are no text. `query` is what was typed for it."""

    role: Role
    content: str
    blocks: JsonText | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A part of an answer that the user is not told."""

    content: str


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of an answer, with the source's content parts where some are no text."""

    content: str
    blocks: JsonText | None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A call of a tool."""

    call_id: object
    name: str
    args: JsonText


@dataclass(frozen=True, slots=True)
class Answer:
    """Parts of a model's message, and what is known of it so far. `error`: the call of the model failed."""

    id: str | None
    parts: Sequence[ThinkingPart | TextPart | ToolCallPart]
    tokens: int | None
    output: JsonText
    stop: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """What a tool gave back."""

    call_id: object
    result: JsonText | None
    error: str | None
    blocks: JsonText | None


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Results of tools, with a `copy` for the program that holds more, and what the user said beside them."""

    results: Sequence[ToolResultPart]
    copy: JsonText | None
    duration_ms: float | None
    truncated: bool
    said: UserText | None


@dataclass(frozen=True, slots=True)
class CustomRecord:
    """What has no event type of its own. `command`: a typed one; `expansion`: what it stands for, if it does."""

    name: str
    data: JsonText
    command: str | None = None
    expansion: UserText | None = None
    user: bool = False
    ends_turn: bool = False


@dataclass(frozen=True, slots=True)
class Title:
    """A title, which one of a higher rank outdoes; `leaf` is the record whose session it names, if it says so."""

    title: str
    rank: int
    leaf: str | None
    noted: CustomRecord


Content = UserText | Answer | ToolResults | CustomRecord | Title


@dataclass(frozen=True, slots=True)
class Entry:
    """A record. `rooted`: it says that it has no parent. `time` in ms since 1970."""

    location: str
    content: Content
    uuid: str | None
    parent: str | None
    rooted: bool
    session: str | None
    agent: str | None
    sidechain: bool
    time: int | None
    facts: Mapping[str, str]
    forked_from: str | None

    @property
    def opens(self) -> bool:
        """Whether a user typed it where it was their turn, so that another one in its place is a branch."""
        match self.content:
            case UserText(role=Role.PROMPT):
                return True
            case CustomRecord(user=True, command=str()):
                return True
        return False
