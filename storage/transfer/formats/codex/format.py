"""Rollouts of the Codex CLI: `{timestamp, type, payload}` per line; old ones have a header and then bare items.

Rollouts hold much twice: the items that the model sees are read, the copies for display are left out.
https://github.com/openai/codex
"""

from collections.abc import Mapping, Sequence
from typing import Any

from storage import errors, text
from storage.transfer.formats.codex import items as codex_items
from storage.transfer.formats.codex.items import Message
from storage.transfer.formats.codex.log import Rollout
from storage.transfer.formats.shared import times
from storage.transfer.formats.shared.facts import read_time
from storage.transfer.formats.shared.foreign import ForeignLabel, ForeignSession, ImportWarnings, Reader, Step, valid_id
from storage.transfer.formats.shared.log_builder import LogBuilder, label_of
from storage.transfer.formats.shared.naming import id_from_first_record
from storage.transfer.formats.shared.record import Record
from storage.transfer.formats.shared.values import as_list, as_object, as_text

FORMAT = "codex"
_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_COPIES = frozenset(
    {
        "user_message",
        "agent_message",
        "agent_message_delta",
        "agent_message_content_delta",
        "agent_reasoning",
        "agent_reasoning_delta",
        "agent_reasoning_raw_content",
        "agent_reasoning_raw_content_delta",
        "agent_reasoning_section_break",
        "exec_command_begin",
        "exec_command_output_delta",
        "mcp_tool_call_begin",
        "patch_apply_begin",
        "web_search_begin",
        "web_search_end",
        "raw_response_item",
        "context_compacted",
    }
)
_TURN_STARTS = frozenset({"task_started", "turn_started"})
_TURN_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})


def fits(values: Sequence[object]) -> bool:
    """Whether one of the first records is in an envelope, or the first is an old header."""
    return any(_is_enveloped(value) for value in values) or (bool(values) and _is_header(values[0]))


def _is_enveloped(value: object) -> bool:
    match value:
        case {"type": str(kind), "payload": dict()}:
            return kind in _TYPES
    return False


def _is_header(value: object) -> bool:
    match value:
        case {"id": str(), "timestamp": str(), "instructions": None | str(), **rest}:
            return not rest.keys() - {"git"}
    return False


def reader(name: str, warnings: ImportWarnings) -> Reader:
    """Return a reader for one rollout."""
    return _Reader(warnings)


class _Reader(Reader):
    def __init__(self, warnings: ImportWarnings) -> None:
        self._warnings = warnings
        self._steps: list[Step] = []
        self._rollout: Rollout | None = None
        self._origins: set[str] = set()
        self._named = False

    def add(self, record: Record) -> Sequence[Step]:
        """Return the steps of a line."""
        value = as_object(record.value, record.location)
        before = self._rollout
        try:
            if before is None and not _is_meta(value):
                id = id_from_first_record(FORMAT, record.location, value, self._warnings)
                self._steps.append(ForeignSession(key=id, label=None, id=id))
                self._rollout = Rollout(LogBuilder(id, self._warnings), self._warnings)
            self._read(value, read_time(value.get("timestamp"), times.iso, self._warnings), record.location)
        except errors.BadInput:
            self._rollout, self._steps = before, []
            raise
        steps, self._steps = self._steps, []
        return steps

    def end(self) -> Sequence[Step]:
        """Return nothing, but count a turn that was marked and is still empty."""
        if self._rollout is not None and self._rollout.waits:
            self._warnings.add("turn", "at the end of the log held back until it has a message")
        return ()

    def _read(self, value: dict[str, Any], time: int | None, location: str) -> None:
        if _is_meta(value):
            meta = as_object(value.get("payload"), f"{location}: payload") if "type" in value else value
            self._meta(meta, time, location)
        elif "payload" in value or (isinstance(value.get("type"), str) and value["type"] in _TYPES):
            self._enveloped(value, time, location)
        elif "type" in value:
            self._log.counts = False
            self._log.add(codex_items.item(value, location, self._warnings, "timestamp"), time)
        elif "record_type" in value:
            self._warnings.add("record", "that marks a state left out")
        else:
            raise errors.BadInput(f"{location}: neither an envelope nor an item")
        self._log.time = time or self._log.time
        self._steps += self._log.builder.take_steps()
        if not self._named and self._log.label is not None:
            self._rename(self._log.label)

    @property
    def _log(self) -> Rollout:
        assert self._rollout is not None
        return self._rollout

    def _rename(self, label: str) -> None:
        self._named = True
        self._steps.append(ForeignLabel(self._log.builder.key, label))

    def _meta(self, meta: Mapping[str, Any], time: int | None, location: str) -> None:
        if self._rollout is None:
            self._begin(meta, location)
        elif isinstance(meta.get("id"), str) and meta["id"] in self._origins:
            self._warnings.add("record", "repeating a header of this session, or of one it was forked from, left out")
        else:
            self._warnings.add("record", "with the header of another session kept as custom")
            self._log.builder.custom("session_meta", text.to_json(meta, location), time=time)
            return
        self._origins |= {name for name in (meta.get("id"), meta.get("forked_from_id")) if isinstance(name, str)}

    def _begin(self, meta: Mapping[str, Any], location: str) -> None:
        prompt = meta.get("base_instructions")
        prompt = prompt.get("text") if isinstance(prompt, dict) else prompt
        own_fields = {"type", "id"} | ({"base_instructions"} if isinstance(prompt, str) else set())
        facts = {name: value for name, value in meta.items() if name not in own_fields}
        id = valid_id(meta.get("id")) or id_from_first_record(FORMAT, location, meta, self._warnings)
        spawn = _spawn(meta.get("source"))
        fork = valid_id(meta.get("forked_from_id"))
        parent = valid_id(meta.get("parent_thread_id")) or valid_id(spawn.get("parent_thread_id")) or fork
        agents = (meta.get("agent_nickname"), spawn.get("agent_nickname"), spawn.get("agent_role"))
        agent = next((name for name in agents if isinstance(name, str) and name), None)
        session = ForeignSession(
            key=id,
            label=None,
            id=id,
            parent_id=parent if parent != id else None,
            repeats=fork if fork != id else None,
            metadata=text.to_json(facts, location) if facts else None,
            system_prompt=text.clean(prompt) if isinstance(prompt, str) and prompt else None,
        )
        self._steps.append(session)
        self._rollout = Rollout(LogBuilder(id, self._warnings), self._warnings, agent=agent)

    def _enveloped(self, value: dict[str, Any], time: int | None, location: str) -> None:
        kind = as_text(value.get("type"), f"{location}: type")
        payload = as_object(value.get("payload"), f"{location}: payload")
        self._warnings.lost_fields("record", value, ("timestamp", "type", "payload", "ordinal"))
        match kind:
            case "response_item":
                self._log.add(codex_items.item(payload, f"{location}: payload", self._warnings), time)
            case "event_msg":
                self._event(payload, time, f"{location}: payload")
            case "compacted":
                self._compacted(payload, time, f"{location}: payload")
            case "turn_context":
                data = text.to_json(payload, location)
                model = {name: payload[name] for name in ("model", "effort") if isinstance(payload.get(name), str)}
                self._log.model = model
                self._log.builder.custom(kind, data, time=time)
            case _:
                self._warnings.add("record", "of another type kept as custom")
                self._log.builder.custom(kind, text.to_json(payload, location), time=time)

    def _event(self, payload: dict[str, Any], time: int | None, location: str) -> None:
        kind = as_text(payload.get("type"), f"{location}.type")
        data = text.to_json({name: value for name, value in payload.items() if name != "type"}, location)
        id = payload.get("turn_id")
        is_custom = False
        match kind:
            case _ if kind in _COPIES:
                self._warnings.add("record", "that repeats another one for display left out")
            case "token_count":
                self._tokens(payload, time, location)
            case _ if kind in _TURN_STARTS:
                self._warnings.lost_fields(kind, payload, ("type", "turn_id", "started_at"))
                self._log.mark_turn(id, time)
            case _ if kind in _TURN_ENDS:
                is_custom = not self._log.end_turn(id, time, _why(payload) if kind == "turn_aborted" else None)
                self._warnings.lost_fields(
                    kind, payload, ("type", "turn_id", "reason", "last_agent_message", "completed_at")
                )
            case "thread_name_updated" if _name(payload):
                self._rename(_name(payload))
            case "thread_rolled_back" if type(payload.get("num_turns")) is int:
                self._log.builder.custom(kind, data, time=time)
                self._log.roll_back(payload["num_turns"], time)
            case _:
                is_custom = True
        if is_custom:
            self._log.record_duration(payload.get("call_id"), codex_items.duration_ms(payload.get("duration")))
            self._log.builder.custom(kind, data, time=time)
            self._warnings.add("record", "of another type kept as custom")
        if kind == "error":
            self._log.error = _why(payload)

    def _tokens(self, payload: Mapping[str, Any], time: int | None, location: str) -> None:
        info = payload.get("info")
        if info is not None:
            last, total = codex_items.tokens(info)
            usage = info.get("last_token_usage") if isinstance(info, dict) else None
            self._log.count(last, total, text.to_json({**self._log.model, "usage": usage}, location), time)
        self._warnings.lost_fields("token_count", payload, ("type", "info"))

    def _compacted(self, payload: dict[str, Any], time: int | None, location: str) -> None:
        history = payload.get("replacement_history")
        if history is None:
            message = payload.get("message")
            messages = [Message("user", message, None)] if isinstance(message, str) and message else []
            others = []
        else:
            listed = enumerate(as_list(history, f"{location}.replacement_history"))
            items = [_replacement(item, f"{location}.replacement_history[{index}]") for index, item in listed]
            messages = [item for item in items if isinstance(item, Message)]
            others = [item for item in history if not (isinstance(item, dict) and item.get("type") == "message")]
        facts = {name: value for name, value in payload.items() if name != "replacement_history"}
        data = text.to_json(facts | ({"others": others} if others else {}), location)
        self._log.builder.custom("compacted", data, time=time)
        self._log.replace(messages, time)


def _is_meta(value: Mapping[str, Any]) -> bool:
    return value.get("type") == "session_meta" or (
        "id" in value and not value.keys() & {"type", "payload", "record_type"}
    )


def _replacement(item: object, location: str) -> Message | None:
    payload = as_object(item, location)
    found = codex_items.item(payload, location, ImportWarnings()) if payload.get("type") == "message" else None
    return found if isinstance(found, Message) else None


def _spawn(source: object) -> Mapping[str, Any]:
    match source:
        case {"subagent": {"thread_spawn": dict(spawn)}}:
            return spawn
    return {}


def _why(payload: Mapping[str, Any]) -> str:
    reason = payload.get("reason") or payload.get("message")
    return reason if isinstance(reason, str) and reason else "aborted"


def _name(payload: Mapping[str, Any]) -> str:
    name = payload.get("thread_name")
    return (label_of(name) or "") if isinstance(name, str) else ""
