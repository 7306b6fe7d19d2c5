"""Arbitrary conversation logs, written in small commits and forked at arbitrary cuts."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from storage import errors, lifecycle
from storage.database import Queries, Transaction
from storage.events import (
    AssistantChunk,
    AssistantMessage,
    CardEvent,
    ChunkKind,
    CustomEvent,
    Event,
    StepEnd,
    StepStart,
    SurfaceHide,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.lifecycle import Fork, NewSession
from storage.log import append, reading
from storage.session import SessionMeta
from storage.views.conversation import conversation
from storage.views.conversation_entry import Entry


@dataclass(frozen=True, slots=True)
class Part:
    """One commit, followed by a fork if `forks`. `low` and `high` bound what a hide covers, in thousandths."""

    kinds: tuple[str, ...]
    low: int = 0
    high: int = 0
    forks: bool = False


KINDS = (
    *("chunk", "chunk", "chunk", "no text", "reasoning", "user", "said", "said nothing", "system"),
    *("call x", "call y", "call x", "result x", "result y", "failure x"),
    *("card x", "card y", "card x", "map x", "card", "broken card"),
    *("hide", "hide near", "hide near", "turn", "step", "custom"),
)
PLACES = st.integers(0, 1_000)
PARTS = st.builds(
    Part,
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=4).map(tuple),
    PLACES,
    PLACES,
    st.sampled_from([*[False] * 9, True]),
)


def plans(parts: int) -> st.SearchStrategy[list[Part]]:
    """Plans of up to this many commits, with occasional forks."""
    return st.integers(0, parts).flatmap(lambda count: st.lists(PARTS, min_size=count, max_size=count))


async def write(tx: Transaction, space: str, plan: Sequence[Part]) -> SessionMeta:
    """Carries out a plan, except for refused appends, and returns the last session."""
    meta = await lifecycle.create(tx, space, NewSession())
    for part in plan:
        drafts: list[Event] = []
        for kind in part.kinds:
            drafts += _drafts(kind, meta, meta.head + len(drafts), part)
        # Refused appends are left out.
        with contextlib.suppress(errors.BadInput, errors.TurnEnded):
            meta = (await append.append(tx, space, meta.id, drafts)).session
        if part.forks:
            meta = await lifecycle.fork(tx, space, Fork(meta.id, at_seq=meta.head - meta.head * part.low // 4_000))
    return meta


def _drafts(kind: str, meta: SessionMeta, seq: int, part: Part) -> list[Event]:
    kind, _, id = kind.partition(" ")
    low, high = sorted((seq * part.low // 1_000, seq * part.high // 1_000))
    match kind:
        case "chunk":
            return [AssistantChunk(delta=f"{seq},")]
        case "no":
            return [AssistantChunk(delta="")]
        case "reasoning":
            return [AssistantChunk(delta="r", kind=ChunkKind.REASONING)]
        case "user":
            return [UserMessage(content=f"{seq}")]
        case "said":
            return [AssistantMessage(content="" if id else f"{seq}")]
        case "system":
            return [SystemMessage(content=f"{seq}")]
        case "call":
            return [ToolCall(call_id=id, name="search", args="{}")]
        case "result":
            return [ToolResult(call_id=id, result=f"{seq}")]
        case "failure":
            return [ToolResult(call_id=id, error=f"{seq}")]
        case "card" | "map":
            name = "Table" if kind == "card" else "Map"
            return [CardEvent(card_type=name, payload=f"title: {seq}\n" + (f"id: {id}\n" if id else ""))]
        case "broken":
            return [CardEvent(card_type="Table", payload="[")]
        case "hide" if id:
            return [SurfaceHide(from_seq=max(0, high - 1), to_seq=high)]
        case "hide":
            return [SurfaceHide(from_seq=low, to_seq=high)]
        case "turn":
            ends: list[Event] = [TurnEnd(turn_id=turn.turn) for turn in meta.open if turn.turn]
            return ends or [TurnStart(turn_id=f"t{seq}")]
        case "step":
            steps: list[Event] = [
                StepEnd(turn_id=turn.turn or None, step_id=turn.steps[0]) for turn in meta.open if turn.steps
            ]
            return steps or [StepStart(step_id=f"s{seq}")]
    return [CustomEvent(name="n", data="{}")]


async def whole(queries: Queries, meta: SessionMeta, *, include_system: bool = False) -> list[Entry]:
    """The conversation computed from the whole log."""
    found = await reading.read(queries, meta.segments, 0, meta.head, meta.head + 1)
    assert len(found.events) == meta.head
    return conversation(found.events, include_system=include_system)
