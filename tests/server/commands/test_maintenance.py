"""Maintenance, form definitions, export and import over HTTP."""

import json
from typing import Any

import pytest
import yaml

from tests.server.client import Client
from tests.server.operations import append, create, log, texts
from tests.server.views import SIXTEEN, short, surface

APPENDED = """
sessionId firstSeq head duplicate session { id head }
events { __typename id sessionId seq type timestamp turnId stepId
  ... on ToolResult { callId result error } ... on TurnEnd { status error } }
"""
IMPORTED = "sessions { id label head workflowMode node { parentId } } eventCount warnings"
FORM = "formId definition updatedAt"
ODD = "\ud800"

MUTATIONS = {
    "trimRecords": ("$id: ID!, $keep: Int!, $head: Int", "sessionId: $id, keepRecent: $keep, expectedHead: $head"),
    "removeLastEntry": ("$id: ID!, $head: Int", "sessionId: $id, expectedHead: $head"),
    "clearConversation": ("$id: ID!, $head: Int", "sessionId: $id, expectedHead: $head"),
    "repairSession": ("$id: ID!, $head: Int", "sessionId: $id, expectedHead: $head"),
    "putFormDefinition": ("$id: ID!, $definition: JSON!", "formId: $id, definition: $definition"),
    "importSession": (
        "$document: String!, $format: ExportFormat! = YAML, $id: ID, $label: String, $parent: ID",
        "document: $document, format: $format, id: $id, label: $label, parentId: $parent",
    ),
}
ANSWERS = {
    "trimRecords": "session { id head }",
    "removeLastEntry": "session { id head }",
    "clearConversation": "session { id head }",
    "repairSession": APPENDED,
    "putFormDefinition": f"formDefinition {{ {FORM} }}",
    "importSession": IMPORTED,
}


def mutation(field: str) -> str:
    declared, given = MUTATIONS[field]
    return f"mutation({declared}) {{ {field}({given}) {{ {ANSWERS[field]} }} }}"


async def mutate(client: Client, field: str, **variables: Any) -> Any:
    return (await client.run(mutation(field), **variables))[field]


async def refused(client: Client, field: str, code: str, match: str, **variables: Any) -> None:
    refusal = await client.refusal(mutation(field), **variables)
    assert refusal.code == code, refusal.errors
    assert match in refusal.message
    if code == "CONFLICT":
        assert isinstance(refusal.errors[0]["extensions"]["head"], int)


async def export(client: Client, id: str, format: str) -> str | None:
    query = "query($id: ID!, $format: ExportFormat!) { exportSession(id: $id, format: $format) }"
    found: str | None = (await client.run(query, id=id, format=format))["exportSession"]
    return found


async def test_maintenance_hides_events_and_the_log_keeps_them(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(5))
    assert await mutate(client, "trimRecords", id=name, keep=3) == {"session": {"id": name, "head": 6}}
    assert len((await surface(client, name))["messages"]) == 3
    assert await mutate(client, "trimRecords", id=name, keep=3, head=6) == {"session": {"id": name, "head": 6}}
    assert await mutate(client, "removeLastEntry", id=name, head=6) == {"session": {"id": name, "head": 7}}
    assert short((await surface(client, name))["messages"]) == [("USER", "message 2"), ("USER", "message 3")]
    assert await mutate(client, "clearConversation", id=name, head=7) == {"session": {"id": name, "head": 8}}
    assert (await surface(client, name))["messages"] == []
    assert [event["type"] for event in await log(client, name)] == ["USER_MESSAGE"] * 5 + ["SURFACE_HIDE"] * 3


async def test_a_repair_returns_the_events_that_it_appended(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *SIXTEEN[:10])
    repaired = await mutate(client, "repairSession", id=name, head=10)
    events = repaired.pop("events")
    assert repaired == {
        "sessionId": name,
        "firstSeq": 10,
        "head": 13,
        "duplicate": False,
        "session": {"id": name, "head": 13},
    }
    assert [(event["seq"], event["type"], event["turnId"], event["stepId"]) for event in events] == [
        (10, "TOOL_RESULT", "2", "1"),
        (11, "STEP_END", "2", "1"),
        (12, "TURN_END", "2", None),
    ]
    assert (events[0]["callId"], events[0]["result"]) == ("c", None)
    assert events[0]["error"] and events[2]["error"]
    assert events[2]["status"] == "FAILED"
    assert {event["sessionId"] for event in events} == {name}
    assert [event["id"] for event in events] == [event["id"] for event in (await log(client, name))[10:]]
    assert not any(message["repaired"] for message in (await surface(client, name))["messages"])
    again = await mutate(client, "repairSession", id=name)
    assert again == {**repaired, "firstSeq": 13, "events": []}


@pytest.mark.parametrize("field", ["trimRecords", "removeLastEntry", "clearConversation", "repairSession"])
async def test_maintenance_is_refused_with_its_code(client: Client, name: str, field: str) -> None:
    given: dict[str, Any] = {"keep": 0} if field == "trimRecords" else {}
    for unknown in (name, "", ODD, "x" * 500):
        await refused(client, field, "NOT_FOUND", "no session", id=unknown, **given)
    await create(client, name)
    await append(client, name, *SIXTEEN[:10])
    await refused(client, field, "CONFLICT", "expectedHead: the log's head is 10, not 9", id=name, head=9, **given)
    await client.run("mutation($id: ID!) { archiveSession(id: $id) { session { id } } }", id=name)
    await refused(client, field, "ARCHIVED", f"session {name} is archived", id=name, **given)
    assert len(await log(client, name)) == 10


async def test_a_trim_to_a_negative_number_is_refused(client: Client, name: str) -> None:
    await create(client, name)
    await refused(client, "trimRecords", "BAD_INPUT", "keepRecent: must not be negative, is -1", id=name, keep=-1)


async def test_form_definitions_are_put_and_read(client: Client, name: str) -> None:
    definition = {"b": [1.0, None], "a": {"": "$set"}}
    query = f"query($id: ID!) {{ formDefinition(formId: $id) {{ {FORM} }} formDefinitions {{ {FORM} }} }}"
    for unknown in (name, "", ODD, "x" * 500):
        assert (await client.run(query, id=unknown))["formDefinition"] is None
    put = (await mutate(client, "putFormDefinition", id=name, definition=definition))["formDefinition"]
    assert (put["formId"], put["definition"]) == (name, definition)
    assert list(put["definition"]) == ["b", "a"]
    assert put["updatedAt"].endswith("Z")
    found = await client.run(query, id=name)
    assert found["formDefinition"] == put
    assert put in found["formDefinitions"]
    again = (await mutate(client, "putFormDefinition", id=name, definition=[]))["formDefinition"]
    assert (await client.run(query, id=name))["formDefinition"] == again
    ids = [form["formId"] for form in found["formDefinitions"]]
    assert ids == sorted(ids)


async def test_a_form_definition_is_refused_with_its_code(client: Client, name: str) -> None:
    field = "putFormDefinition"
    await refused(client, field, "BAD_INPUT", "formId: must have 1 to 256 characters, has 0", id="", definition={})
    await refused(client, field, "BAD_INPUT", "has 257", id="x" * 257, definition={})
    await refused(client, field, "BAD_INPUT", "definition", id=name, definition=None)
    await refused(
        client, field, "PAYLOAD_TOO_LARGE", "definition: takes 1048576 bytes", id=name, definition="x" * 2**20
    )
    query = "query($id: ID!) { formDefinition(formId: $id) { formId } }"
    assert (await client.run(query, id=name))["formDefinition"] is None


async def test_a_session_is_exported_and_imported_in_each_format(client: Client, name: str) -> None:
    await create(client, name, label="Mine", workflowMode="plan")
    await append(client, name, *SIXTEEN, {"card": {"cardType": "Table", "payload": "type: Table\ntitle: T\n"}})
    as_yaml, lines, openai = [await export(client, name, format) for format in ("YAML", "JSONL", "OPENAI")]
    assert as_yaml and lines and openai
    read = yaml.safe_load(as_yaml)
    assert (read["sessionId"], read["title"], read["workflowMode"], len(read["entries"])) == (name, "Mine", "plan", 5)
    assert [json.loads(line)["type"] for line in lines.splitlines()][:3] == ["session", "turn/start", "step/start"]
    assert json.loads(openai) == (await surface(client, name))["openai"]

    made = await mutate(client, "importSession", document=as_yaml, id=f"{name}-y", parent=name)
    assert made == {
        "sessions": [
            {"id": f"{name}-y", "label": "Mine", "head": 9, "workflowMode": "plan", "node": {"parentId": name}}
        ],
        "eventCount": 9,
        "warnings": [],
    }
    made = await mutate(client, "importSession", document=lines, format="JSONL", id=f"{name}-l", label="Copy")
    assert (made["eventCount"], made["sessions"][0]["label"], made["sessions"][0]["head"]) == (17, "Copy", 17)
    copied, original = await log(client, f"{name}-l"), await log(client, name)
    strip = ("id", "sessionId")
    assert [{key: value for key, value in event.items() if key not in strip} for event in copied] == [
        {key: value for key, value in event.items() if key not in strip} for event in original
    ]
    made = await mutate(client, "importSession", document=openai, format="OPENAI")
    assert (await surface(client, made["sessions"][0]["id"]))["openai"] == json.loads(openai)
    assert await export(client, f"{name}-nobody", "YAML") is None
    assert (await client.run("query($id: ID!) { exportSession(id: $id) }", id=name))["exportSession"] == as_yaml


async def test_several_sessions_are_imported_with_warnings(client: Client, name: str) -> None:
    header = {"type": "session", "format": "sapwood", "version": 1}
    sections = [
        {**header, "id": f"{name}-p", "parentId": "gone"},
        {**header, "id": f"{name}-c", "parentId": f"{name}-p"},
    ]
    document = "\n".join(map(json.dumps, sections))
    found = await mutate(client, "importSession", document=document, format="JSONL")
    assert [(made["id"], made["node"]["parentId"]) for made in found["sessions"]] == [
        (f"{name}-p", None),
        (f"{name}-c", f"{name}-p"),
    ]
    assert (found["eventCount"], found["warnings"]) == (0, ["1 session lost its parent, which is not in the file"])


async def test_an_import_is_refused_with_its_code(client: Client, name: str) -> None:
    field, empty = "importSession", "entries: []"
    await create(client, name)
    await refused(client, field, "DUPLICATE_ID", f"id: '{name}' is taken", document=empty, id=name)
    await refused(client, field, "DUPLICATE_ID", "is taken", document=f"sessionId: {name}\nentries: []")
    await refused(client, field, "NOT_FOUND", "parentId: no session", document=empty, parent=f"{name}-nobody")
    await refused(client, field, "BAD_INPUT", "not 1 to 128 characters", document=empty, id="not legal")
    await refused(client, field, "BAD_INPUT", "label: takes 500 characters", document=empty, label="x" * 501)
    await refused(client, field, "BAD_INPUT", "document: must be a mapping", document=ODD)
    await refused(client, field, "BAD_INPUT", "not YAML or JSON", document="{{{")
    bad = "entries:\n- {kind: Text, role: User, content: a}\n- {kind: Text, role: Bot, content: b}"
    await refused(client, field, "BAD_INPUT", "document: entries[1].role: must be one of", document=bad, id=f"{name}-n")
    await refused(client, field, "BAD_INPUT", "line 1: must be an object", document="5", format="JSONL")
    await refused(client, field, "BAD_INPUT", "messages: must be a list", document="{}", format="OPENAI")
    bomb = "a: &a [x]\nb: &b [*a, *a]\nentries: *b"
    await refused(client, field, "BAD_INPUT", "anchors are not allowed", document=bomb)
    found = await client.run("query($id: ID!) { session(id: $id) { id } }", id=f"{name}-n")
    assert found == {"session": None}
