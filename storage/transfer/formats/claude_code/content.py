"""The content of records of a Claude Code log, independent of how the log encodes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.events import JsonText


class Role(StrEnum):
    """What a user's text does to the conversation."""

    PROMPT = "starts a turn"
    ADDED = "arrives while a turn runs"
    INTERRUPTION = "says that the turn was interrupted"
    SUMMARY = "replaces everything before it"


@dataclass(frozen=True, slots=True)
class UserText:
    """A user's text; `blocks` are its content parts if some are not text. `query` is what the user typed for it."""

    role: Role
    content: str
    blocks: JsonText | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """Reasoning in an answer."""

    content: str


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text of an answer; `blocks` are its content parts if some are not text."""

    content: str
    blocks: JsonText | None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A tool call in an answer."""

    call_id: object
    name: str
    args: JsonText


@dataclass(frozen=True, slots=True)
class Answer:
    """Parts of a model's message, and what is known of it so far. `error` is set if the model call failed."""

    id: str | None
    parts: Sequence[ThinkingPart | TextPart | ToolCallPart]
    tokens: int | None
    output: JsonText
    stop: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """The result or error of a tool call."""

    call_id: object
    result: JsonText | None
    error: str | None
    blocks: JsonText | None


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Tool results. `copy` is Claude Code's own, more detailed copy; `user_text` is what the user wrote beside them."""

    results: Sequence[ToolResultPart]
    copy: JsonText | None
    duration_ms: float | None
    truncated: bool
    user_text: UserText | None


@dataclass(frozen=True, slots=True)
class CustomRecord:
    """A record without an event type. `command` is one that the user typed; `expansion` is the prompt it stands for."""

    name: str
    data: JsonText
    command: str | None = None
    expansion: UserText | None = None
    user: bool = False
    ends_turn: bool = False


@dataclass(frozen=True, slots=True)
class Title:
    """A title; one of a higher rank overrides it. `leaf` is a record of the session that it names, if it says so."""

    title: str
    rank: int
    leaf: str | None
    record: CustomRecord


Content = UserText | Answer | ToolResults | CustomRecord | Title


@dataclass(frozen=True, slots=True)
class Entry:
    """A record. `rooted`: it says that it has no parent. `time` is in ms since 1970."""

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
        """Whether the user typed it when it was their turn, so that another one after the same parent is a branch."""
        match self.content:
            case UserText(role=Role.PROMPT):
                return True
            case CustomRecord(user=True, command=str()):
                return True
        return False
