"""A slow model of the surface's rules: plain lists, searched from end to end at every event."""

import json
from dataclasses import dataclass, field
from typing import Any

from storage.events import (
    AssistantChunk,
    AssistantMessage,
    ChunkKind,
    Event,
    StepEnd,
    StepStart,
    SurfaceHide,
    SurfaceOpKind,
    Surfacing,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)


@dataclass(eq=False)
class Group:
    """A message of an event, of chunks or only of calls, and its results in order."""

    event: Any = None
    chunks: list[AssistantChunk] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def made(self) -> list[Event]:
        own = [] if self.event is None else [self.event]
        return [*own, *self.chunks, *self.calls]

    def result_of(self, call: ToolCall) -> ToolResult | None:
        return next((result for result in self.results if result.call_id == call.call_id), None)


class Model:
    """Folds numbered events; `shown()` is the expected surface, and its source events."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.open: Group | None = None
        self.chunks: list[AssistantChunk] = []
        self.turn_start = -1
        self.steps: list[tuple[str | None, str | None]] = []

    def all(self) -> list[Group]:
        streaming = [Group(chunks=self.chunks)] if any(chunk.delta for chunk in self.chunks) else []
        return self.groups + streaming

    def shown(self) -> list[tuple[Any, ...]]:
        lines: list[tuple[Any, ...]] = []
        for group in self.all():
            content = group.event.content if group.event is not None else "".join(c.delta for c in group.chunks)
            role = group.event.type.split("/")[0] if group.event is not None else "assistant"
            ids = [call.call_id for call in group.calls]
            lines.append((role, (content or None) if ids else content, *ids, [event.seq for event in group.made]))
            lines += [(r.call_id, "" if r.result is None else json.loads(r.result), [r.seq]) for r in group.results]
            lines += [("?", call.call_id, []) for call in group.calls if group.result_of(call) is None]
        return lines

    def nodes(self) -> list[tuple[int, Group, ToolResult | None]]:
        found: list[tuple[int, Group, ToolResult | None]] = []
        for group in self.all():
            found.append((group.made[0].seq, group, None))
            found += [(result.seq, group, result) for result in group.results]
        return found

    def bounds(self, event: Surfacing) -> tuple[int, int] | None:
        seqs = [seq for seq, _, _ in self.nodes()]
        start, end = event.surface_op.start, event.surface_op.end
        if start not in seqs or end not in seqs or seqs.index(start) > seqs.index(end):
            return None
        if isinstance(event, ToolResult):
            result = self.nodes()[seqs.index(start)][2]
            if start != end or result is None or result.call_id != event.call_id:
                return None
        return seqs.index(start), seqs.index(end)

    def add(self, event: Event) -> None:
        appended = not isinstance(event, Surfacing) or event.surface_op.op is SurfaceOpKind.APPEND
        if not appended and isinstance(event, Surfacing):
            self.replace(event)
            return
        if isinstance(event, TurnStart | TurnEnd | StepStart | StepEnd | UserMessage):
            if any(chunk.delta for chunk in self.chunks):
                self.groups.append(Group(chunks=self.chunks))
            self.chunks = []
        if isinstance(event, TurnStart | TurnEnd | StepStart) or event.type.endswith("/message"):
            self.open = None
        match event:
            case TurnStart():
                self.turn_start = event.seq
            case TurnEnd():
                self.steps = [step for step in self.steps if step[0] != event.turn_id]
            case StepStart():
                self.steps.append((event.turn_id, event.step_id))
            case StepEnd():
                self.steps = [step for step in self.steps if step != (event.turn_id, event.step_id)]
            case AssistantChunk(kind=ChunkKind.TEXT):
                self.chunks = [*self.chunks, event]
            case ToolCall():
                if self.open is None or any(call.call_id == event.call_id for call in self.open.calls):
                    self.open = Group()
                    self.groups.append(self.open)
                self.open.calls.append(event)
            case ToolResult():
                self.answer(event)
                if event.step_id is None and not self.steps:
                    self.open = None
            case SurfaceHide():
                self.hide(range(event.from_seq, event.to_seq))
            case Surfacing():
                self.groups.append(Group(event))
                if isinstance(event, AssistantMessage):
                    self.open = self.groups[-1]
                    self.chunks = []

    def answer(self, event: ToolResult) -> None:
        waiting = [
            (call.seq, group)
            for group in self.groups
            for call in group.calls
            if call.call_id == event.call_id and group.result_of(call) is None
        ]
        waiting.sort(key=lambda found: found[0])
        since = [found for found in waiting if found[0] > self.turn_start]
        for _, group in since[:1] or waiting[-1:]:
            group.results.append(event)

    def replace(self, event: Surfacing) -> None:
        bounds = self.bounds(event)
        if bounds is None:
            return
        nodes = self.nodes()
        _, first, result = nodes[bounds[0]]
        if isinstance(event, ToolResult) and result is not None:
            first.results[first.results.index(result)] = event
            return
        doomed = nodes[bounds[0] : bounds[1] + 1]
        if any(group.chunks is self.chunks for _, group, _ in doomed):
            self.chunks = []
        goes = [group for _, group, of_result in doomed if of_result is None]
        place = self.groups.index(first) if first in self.groups else len(self.groups)
        place += result is not None
        for _, group, of_result in doomed:
            if of_result is not None:
                group.results.remove(of_result)
        before = [group for group in self.groups[:place] if group not in goes]
        after = [group for group in self.groups[place:] if group not in goes]
        self.groups = [*before, Group(event), *after]
        if self.open in goes:
            self.open = None

    def hide(self, seqs: range) -> None:
        self.chunks = [chunk for chunk in self.chunks if chunk.seq not in seqs]
        for group in list(self.groups):
            touched = any(event.seq in seqs for event in [*group.made, *group.results])
            if group.event is not None and group.event.seq in seqs:
                group.event = None
            group.chunks = [chunk for chunk in group.chunks if chunk.seq not in seqs]
            gone = [call.call_id for call in group.calls if call.seq in seqs]
            group.calls = [call for call in group.calls if call.seq not in seqs]
            group.results = [r for r in group.results if r.seq not in seqs and r.call_id not in gone]
            content = group.event.content if group.event is not None else "".join(c.delta for c in group.chunks)
            bare = group.event is None or isinstance(group.event, AssistantMessage)
            if touched and not content and not group.calls and bare:
                self.groups.remove(group)
                if self.open is group:
                    self.open = None
