"""Real logs in a store: surfaces are valid at every cut, and messages come back as imported."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from storage.events import ToolResult
from storage.store import Store
from storage.transfer.document import export_document, import_document
from storage.transfer.export import ExportFormat
from storage.transfer.formats.registry import ForeignDocument
from storage.transfer.importing import import_reading
from storage.views.records import records
from storage.views.surface_node import UNKNOWN_OUTCOME
from tests.contract.shorthand import SPACE, surface, whole_log
from tests.storage.transfer.formats.logs import DATA, DEEPSEEK, TAU_BENCH, read_log
from tests.storage.views.real_logs import cuts
from tests.storage.views.surface_logs import seqs, shown
from tests.storage.views.validity import check

PI_MONO = "pi-mono/before-compaction.orphan-calls.jsonl"
ORPHANS = (
    "toolu_0134E2F4jLV9HVUFhunmam8N",
    "toolu_01XfdvT2StjnLNw7MpkvVvJP",
    "toolu_01GBRsfbomRe6sBo32xf6hPK",
    "toolu_01G37VFJMMftUXQaqu3pHizc",
    "toolu_01571BXn2nSXvrR7sxVHAXXE",
    "toolu_01F2Xbizd52r1AuErXgFpR6W",
)
"""The calls of the whole log that never got a result."""


async def load(store: Store, reading: ForeignDocument) -> dict[str, str]:
    """Imports a parsed document and returns the ids of its sessions by their keys."""
    return (await import_reading(store, SPACE, reading)).ids


async def load_harness(store: Store, name: str) -> str:
    [path] = [path for path in DEEPSEEK if name in path]
    [id] = (await load(store, read_log(path))).values()
    return id


def as_sent(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages without the fields that the API ignores."""
    fields = ("role", "content", "tool_calls", "tool_call_id")
    return [
        {name: message.get(name) for name in fields if message.get(name) or name == "content"} for message in messages
    ]


def trials() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DATA / TAU_BENCH).read_bytes())
    return found


def pi_mono() -> list[dict[str, Any]]:
    """The messages of the log in chat completions form."""
    messages: list[dict[str, Any]] = []
    for line in (DATA / PI_MONO).read_text().splitlines():
        record = json.loads(line)
        if record["type"] == "message":
            messages.append(_message(record["message"]))
    return messages


def _message(message: dict[str, Any]) -> dict[str, Any]:
    content = "".join(block["text"] for block in message["content"] if block["type"] == "text")
    match message["role"]:
        case "toolResult":
            return {"role": "tool", "content": content, "tool_call_id": message["toolCallId"]}
        case "assistant":
            calls = [
                {
                    "id": block["id"],
                    "type": "function",
                    "function": {"name": block["name"], "arguments": json.dumps(block["arguments"])},
                }
                for block in message["content"]
                if block["type"] == "toolCall"
            ]
            return {"role": "assistant", "content": content or None} | ({"tool_calls": calls} if calls else {})
    return {"role": "user", "content": content}


@pytest.mark.parametrize("name", DEEPSEEK)
async def test_every_cut_of_a_harness_log_has_a_valid_surface(store: Store, name: str) -> None:
    for id in (await load(store, read_log(name))).values():
        log = await whole_log(store, id)
        for at_seq in cuts(log):
            found = await surface(store, id, at_seq)
            assert found.head == at_seq
            check(found)


async def test_a_compaction_replaces_its_message_in_the_store(store: Store) -> None:
    found = await surface(store, await load_harness(store, "compaction-recovery"))
    assert seqs(found) == [(21,), (13, 14), (15,), (28,)]
    assert shown(found)[1:] == [
        ("assistant", None, "call_compaction_marker"),
        ("call_compaction_marker", "alpha\n"),
        ("assistant", "COMPACTION RECOVERED"),
    ]
    assert not any(message.repaired for message in found.messages())


async def test_cancelled_calls_have_their_errors_as_results(store: Store) -> None:
    id = await load_harness(store, "cancel-tool-calls")
    assert shown(await surface(store, id))[2:] == [
        ("assistant", None, "call_wait", "call_skipped"),
        ("call_wait", "Error: tool call aborted"),
        ("call_skipped", "Error: tool call aborted before dispatch"),
    ]
    assert (await store.maintenance.repair(SPACE, id)).appended is None


async def test_all_trials_come_back_message_for_message(store: Store) -> None:
    ids = await load(store, read_log(TAU_BENCH))
    sessions = [id for key, id in ids.items() if key.startswith("trial")]
    assert len(sessions) == len(trials()) == 100
    for id, trial in zip(sessions, trials(), strict=True):
        found = await surface(store, id)
        check(found)
        expected = as_sent(trial["traj"])
        assert json.loads(found.openai_text()) == expected
        assert json.loads(await export_document(store, SPACE, id, ExportFormat.OPENAI) or "") == expected
        assert [(message.role.lower(), message.content or "") for message in found.messages()] == [
            (message["role"], message["content"] or "") for message in expected
        ]
        assert len(records(found)) == len(expected)
        assert not any(message.repaired for message in found.messages())


@pytest.mark.parametrize("trial", [0, 41, 99])
async def test_every_cut_of_a_trial_is_a_valid_prefix_of_it(store: Store, trial: int) -> None:
    """A result is supplied for each call that the cut leaves unanswered; the rest equals the whole."""
    traj = trials()[trial]["traj"]
    done = await import_document(store, SPACE, json.dumps(traj), ExportFormat.OPENAI)
    [id] = done.ids.values()
    expected = as_sent(traj)
    for at_seq in range(done.events + 1):
        found = await surface(store, id, at_seq)
        check(found)
        left = json.loads(found.openai_text())
        stored = [sent for sent, message in zip(left, found.messages(), strict=True) if not message.supplied]
        assert [message["role"] for message in stored] == [message["role"] for message in expected[: len(stored)]]
        assert stored[:-1] == expected[: len(stored)][:-1]
    assert json.loads((await surface(store, id)).openai_text()) == expected


async def test_unanswered_calls_get_a_supplied_result(store: Store) -> None:
    messages = pi_mono()
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert tuple(id for id in calls if id not in answered) == ORPHANS
    done = await import_document(store, SPACE, json.dumps(messages), ExportFormat.OPENAI)
    [id] = done.ids.values()
    assert done.warnings == []
    found = await surface(store, id)
    check(found)
    supplied = [message for message in found.messages() if message.supplied]
    assert tuple(message.tool_call_id for message in supplied) == ORPHANS
    assert {(message.content, message.repaired) for message in supplied} == {(UNKNOWN_OUTCOME, True)}
    sent = json.loads(found.openai_text())
    assert [message for message in sent if message.get("tool_call_id") not in ORPHANS] == as_sent(messages)
    for at_seq in range(done.events + 1):
        check(await surface(store, id, at_seq))
    # A repair turns them into real ones.
    kept = await store.maintenance.repair(SPACE, id)
    assert kept.appended is not None
    events = kept.appended.events
    assert tuple(event.call_id for event in events if isinstance(event, ToolResult)) == ORPHANS
    assert [event.type for event in events[len(ORPHANS) :]] == ["turn/end"]
    repaired = await surface(store, id)
    check(repaired)
    assert not any(message.repaired for message in repaired.messages())
    assert len(repaired.messages()) == len(found.messages())
