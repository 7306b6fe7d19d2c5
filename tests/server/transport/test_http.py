"""Values and errors over HTTP: the paths of errors, exact JSON, instants, limits, health."""

import json
from typing import Any

import httpx
import pytest

from tests.server.client import Client
from tests.server.operations import APPEND, CREATE, append, create, fork, texts, user
from tests.server.process import Server

CUSTOM = """query($id: ID!) { session(id: $id) { events(first: 1000) { events {
  ... on CustomEvent { name data } } } } }"""


def custom(id: str, data: str) -> str:
    """The body of an append of one custom event with this JSON text as data."""
    return (
        f'{{"query": {json.dumps(APPEND)}, "variables": {{"input": {{"sessionId": "{id}", '
        f'"events": [{{"custom": {{"name": "n", "data": {data}}}}}]}}}}}}'
    )


async def stored(client: Client, id: str, data: str) -> Any:
    """The data that the server returns for a custom event with the JSON text `data`, sent verbatim."""
    answer = json.loads((await client.post(custom(id, data))).content)
    assert "errors" not in answer, answer
    found = await client.run(CUSTOM, id=id)
    return found["session"]["events"]["events"][-1]["data"]


async def refused(client: Client, id: str, data: str) -> dict[str, Any]:
    """The first error of an append of the JSON text `data`, which must leave the log unchanged."""
    answer = json.loads((await client.post(custom(id, data))).content)
    head = (await client.run("query($id: ID!) { session(id: $id) { head } }", id=id))["session"]["head"]
    assert head == 0
    error: dict[str, Any] = answer["errors"][0]
    return error


@pytest.mark.parametrize(
    "data",
    [
        '{"b": 1, "a": 2, "c": {"z": 1, "y": 2}}',
        "[9223372036854775807, -9223372036854775808, 18446744073709551615, 0]",
        "[1.0, 1, -0.0, 1e300, 5e-324, 0.1, 1.5]",
        '{"$set": {"a.b": 1}, "": 2, "$": 3, ".": 4, "a\\u0000b": 5}',
        '["a\\u0000b", "\\u0000", "\\\\u0000", "\\ud83d\\ude00", "\\u2028", "ü"]',
        '"text"',
        "true",
        "[]",
        "{}",
        "[null, [null], {}]",
        '{"__typename": "x", "type": "custom"}',
    ],
)
async def test_json_is_returned_exactly(client: Client, name: str, data: str) -> None:
    """Key order, integers of 64 bits, whole floats, keys with $ and dots, empty keys, NUL."""
    await create(client, name)
    assert json.dumps(await stored(client, name, data)) == json.dumps(json.loads(data))


async def test_lone_surrogates_become_replacement_characters(client: Client, name: str) -> None:
    """In JSON, in its keys, and in any text."""
    await create(client, name)
    assert await stored(client, name, '["a\\ud800b", {"k\\udfff": 1}]') == ["a\ufffdb", {"k\ufffd": 1}]
    body = json.dumps({"query": APPEND, "variables": {"input": {"sessionId": name, "events": [user("x\ud800y\0z")]}}})
    assert "errors" not in json.loads((await client.post(body)).content)
    update = "mutation($id: ID!, $label: String!) { renameSession(id: $id, label: $label) { session { label } } }"
    assert (await client.run(update, id=name, label="\udc00!"))["renameSession"]["session"]["label"] == "\ufffd!"
    slot = """mutation($id: ID!, $text: String!) {
      putSystemPrompt(sessionId: $id, content: $text) { slot { content } } }"""
    assert (await client.run(slot, id=name, text="a\ud800"))["putSystemPrompt"]["slot"]["content"] == "a\ufffd"
    found = await client.run(
        "query($id: ID!) { session(id: $id) { events { events { ... on UserMessage { content } } } } }", id=name
    )
    assert found["session"]["events"]["events"][1] == {"content": "x\ufffdy\0z"}


@pytest.mark.parametrize("pair", ["[]", '{"k":}'])
async def test_json_may_be_nested_500_deep_and_no_deeper(client: Client, name: str, pair: str) -> None:
    opening, closing = (pair[:-1], pair[-1]) if pair == "[]" else (pair[:-1], "}")

    def nested(depth: int) -> str:
        return opening * (depth - 1) + ("[]" if pair == "[]" else "{}") + closing * (depth - 1)

    await create(client, name)
    error = await refused(client, name, nested(501))
    assert error["extensions"]["code"] == "BAD_INPUT" and "500" in error["message"]
    assert json.dumps(await stored(client, name, nested(500))) == json.dumps(json.loads(nested(500)))


@pytest.mark.parametrize("data", ["18446744073709551616", "-9223372036854775809", "1" + "0" * 300])
async def test_integers_beyond_64_bits_are_refused(client: Client, name: str, data: str) -> None:
    await create(client, name)
    error = await refused(client, name, f"[{data}]")
    assert error["extensions"]["code"] == "BAD_INPUT" and "64" in error["message"]


@pytest.mark.parametrize("data", ["NaN", "Infinity", "-Infinity", "[1, NaN]"])
async def test_a_body_that_is_not_json_is_refused_and_nothing_written(client: Client, name: str, data: str) -> None:
    await create(client, name)
    answer = await client.post(custom(name, data))
    assert answer.status_code == 400
    head = await client.run("query($id: ID!) { session(id: $id) { head } }", id=name)
    assert head["session"]["head"] == 0


async def test_a_number_too_large_for_a_float_is_refused(client: Client, name: str) -> None:
    """1e999 is valid JSON, but parses as infinity."""
    await create(client, name)
    answer = await client.post(custom(name, "1e999"))
    assert answer.status_code == 400 or json.loads(answer.content)["errors"][0]["extensions"]["code"] == "BAD_INPUT"
    head = await client.run("query($id: ID!) { session(id: $id) { head } }", id=name)
    assert head["session"]["head"] == 0


async def test_json_in_a_literal_is_returned_exactly(client: Client, name: str) -> None:
    await create(client, name)
    literal = '{b: 1, a: [1.0, 1, null, true, "x", {k: 9223372036854775807}]}'
    events = f'[{{custom: {{name: "n", data: {literal}}}}}]'
    await client.run(f'mutation {{ appendEvents(input: {{sessionId: "{name}", events: {events}}}) {{ head }} }}')
    found = await client.run(CUSTOM, id=name)
    wanted = {"b": 1, "a": [1.0, 1, None, True, "x", {"k": 9223372036854775807}]}
    assert json.dumps(found["session"]["events"]["events"][0]["data"]) == json.dumps(wanted)


async def test_metadata_is_returned_exactly(client: Client, name: str) -> None:
    metadata = {"$set": {"a.b": 1.0}, "": [18446744073709551615, "\0"], "b": 1, "a": 2}
    await create(client, name, metadata=metadata)
    found = await client.run("query($id: ID!) { session(id: $id) { metadata } }", id=name)
    assert json.dumps(found["session"]["metadata"]) == json.dumps(metadata)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2026-11-29T19:21:07.250Z", "2026-11-29T19:21:07.250Z"),
        ("2026-11-29T19:21:07Z", "2026-11-29T19:21:07.000Z"),
        ("2026-11-29T20:21:07.2509+01:00", "2026-11-29T19:21:07.250Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
async def test_instants_are_returned_in_utc_with_milliseconds(
    client: Client, name: str, given: str, stored: str
) -> None:
    await create(client, name)
    await append(client, name, user("x", timestamp=given))
    found = await client.run("query($id: ID!) { session(id: $id) { events { events { timestamp } } } }", id=name)
    assert found["session"]["events"]["events"] == [{"timestamp": stored}]


@pytest.mark.parametrize(
    "given", ["2026-11-29T19:21:07.250", "2026-11-29", "yesterday", "", 1796000000, "10000-01-01T00:00:00Z"]
)
async def test_instants_without_a_zone_and_other_texts_are_refused(client: Client, name: str, given: Any) -> None:
    await create(client, name)
    refusal = await client.refusal(APPEND, input={"sessionId": name, "events": [user("x", timestamp=given)]})
    assert refusal.code == "BAD_INPUT"
    assert ".events[0].userMessage.timestamp" in refusal.message
    refusal = await client.refusal("query($at: DateTime) { listSessions(updatedSince: $at) { totalCount } }", at=given)
    assert refusal.code == "BAD_INPUT"


async def test_order_is_by_seq_though_clocks_run_backwards(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, user("0", timestamp="2026-01-02T00:00:00Z"))
    await append(client, name, user("1", timestamp="2026-01-01T00:00:00Z"))
    events = "events { events { seq ... on UserMessage { content } } }"
    found = await client.run(f"query($id: ID!) {{ session(id: $id) {{ {events} }} }}", id=name)
    assert found["session"]["events"]["events"] == [{"seq": 0, "content": "0"}, {"seq": 1, "content": "1"}]


async def test_totals_saturate(client: Client, name: str) -> None:
    await create(client, name)
    for step in ("a", "b", "c"):
        end = {"stepEnd": {"stepId": step, "tokenCount": 1.7e308}}
        await append(client, name, {"stepStart": {"stepId": step}}, end)
    found = await client.run("query($id: ID!) { session(id: $id) { stats { totalTokenCount } } }", id=name)
    assert found["session"]["stats"]["totalTokenCount"] == 1.7976931348623157e308


@pytest.mark.parametrize(
    "event",
    [
        {"stepEnd": {"stepId": "s", "tokenCount": -1}},
        {"stepEnd": {"stepId": "s", "durationMs": -0.5}},
        {"toolResult": {"callId": "c", "outputLength": -1}},
        {"toolResult": {"callId": "c", "durationMs": -1}},
        {"toolResult": {"callId": "c", "retrieval": {"l0MatchCount": -1}}},
        {"toolResult": {"callId": "c", "outputLength": 2**31}},
        {"toolCall": {"callId": "", "name": "n", "args": {}}},
        {"toolCall": {"callId": "c" * 257, "name": "n", "args": {}}},
        {"turnEnd": {"turnId": "never"}},
        {"userMessage": {"content": "x", "turnId": "never"}},
        {"stepEnd": {"stepId": "never"}},
        {"stepStart": {"stepId": ""}},
        {"surfaceHide": {"fromSeq": 0, "toSeq": 99}},
        {"surfaceHide": {"fromSeq": 2, "toSeq": 1}},
        {"userMessage": {"content": "x", "surfaceOp": {"op": "REPLACE"}}},
        {"card": {"cardType": "Form"}},
        {"card": {"cardType": "Form", "payload": "a: 1", "card": {}}},
    ],
)
async def test_a_bad_event_is_named_by_its_path_and_nothing_is_written(
    client: Client, name: str, event: dict[str, Any]
) -> None:
    await create(client, name)
    await append(client, name, {"stepStart": {"stepId": "s"}})
    ((kind, fields),) = event.items()
    events = [*texts(3), event, *texts(1)]
    refusal = await client.refusal(APPEND, input={"sessionId": name, "events": events})
    assert refusal.code == "BAD_INPUT"
    assert f"events[3].{kind}" in refusal.message
    assert any(field in refusal.message for field in [*fields, "turnId", "stepId"]) or kind == "card"
    found = await client.run("query($id: ID!) { session(id: $id) { head } }", id=name)
    assert found["session"]["head"] == 1
    assert (await append(client, name, *texts(1)))["firstSeq"] == 1


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"userMessage": {"content": "x"}, "custom": {"name": "n", "data": 1}},
        {"userMessage": None},
        {"userMessage": {}},
        {"userMessage": {"content": 1}},
        {"nonsense": {}},
        None,
    ],
)
async def test_an_invalid_event_is_named_by_its_path_in_variables(client: Client, name: str, event: Any) -> None:
    await create(client, name)
    refusal = await client.refusal(APPEND, input={"sessionId": name, "events": [user("x"), event]})
    assert refusal.code == "BAD_INPUT"
    assert ".events[1]" in refusal.message


@pytest.mark.parametrize(
    "event",
    [
        "{}",
        '{userMessage: {content: "x"}, custom: {name: "n", data: 1}}',
        "{userMessage: null}",
        "{userMessage: {}}",
        "{userMessage: {content: 1}}",
        "{nonsense: {}}",
        "null",
        '{userMessage: {content: "x", timestamp: "2026-01-01"}}',
    ],
)
async def test_an_invalid_event_is_named_by_its_path_in_literals(client: Client, name: str, event: str) -> None:
    await create(client, name)
    events = f'[{{userMessage: {{content: "x"}}}}, {event}]'
    query = f'mutation {{ appendEvents(input: {{sessionId: "{name}", events: {events}}}) {{ head }} }}'
    refusal = await client.refusal(query)
    assert refusal.code == "BAD_INPUT"
    assert "input.events[1]" in refusal.message


async def test_a_literal_event_may_hold_variables(client: Client, name: str) -> None:
    await create(client, name)
    query = """mutation($id: ID!, $data: JSON!, $text: String!) { appendEvents(input: {sessionId: $id, events: [
      {custom: {name: "n", data: $data}}, {userMessage: {content: $text}}]}) { events {
      ... on CustomEvent { data } ... on UserMessage { content } } } }"""
    found = await client.run(query, id=name, data={"k": [1]}, text="x")
    assert found["appendEvents"]["events"] == [{"data": {"k": [1]}}, {"content": "x"}]


async def test_every_refusal_has_its_code(client: Client, name: str) -> None:
    await create(client, name)
    await create(client, f"{name}-c", name)
    await append(client, name, {"turnStart": {"turnId": "t"}}, {"turnEnd": {"turnId": "t"}}, idempotencyKey="k")
    await create(client, f"{name}-x")
    await client.run("mutation($id: ID!) { archiveSession(id: $id) { session { id } } }", id=f"{name}-x")

    def appending(id: str, *events: dict[str, Any], **given: Any) -> dict[str, Any]:
        return {"input": {"sessionId": id, "events": events, **given}}

    move = "mutation($id: ID!, $to: ID!) { moveNode(id: $id, parentId: $to) { session { id } } }"
    ref = "mutation($id: ID!, $to: ID!) { addRef(fromId: $id, toId: $to) { ref { toId } } }"
    delete = "mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }"
    prompt = """mutation($id: ID!, $version: Int) {
      putSystemPrompt(sessionId: $id, content: "x", ifVersion: $version) { sessionId } }"""
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("BAD_INPUT", APPEND, appending(name)),
        ("NOT_FOUND", APPEND, appending(f"{name}-no", user("x"))),
        ("CONFLICT", APPEND, appending(name, user("x"), expectedHead=1)),
        ("CONFLICT", prompt, {"id": name, "version": 3}),
        ("DUPLICATE_ID", CREATE, {"input": {"id": name}}),
        ("IDEMPOTENCY_MISMATCH", APPEND, appending(name, user("x"), idempotencyKey="k")),
        ("ARCHIVED", APPEND, appending(f"{name}-x", user("x"))),
        ("TURN_ENDED", APPEND, appending(name, user("x", turnId="t"))),
        ("HAS_CHILDREN", delete, {"id": name}),
        ("INVALID_REF", ref, {"id": name, "to": f"{name}-c"}),
        ("CYCLE", move, {"id": name, "to": f"{name}-c"}),
        ("PAYLOAD_TOO_LARGE", APPEND, appending(name, *texts(1001))),
    ]
    for code, query, variables in cases:
        refusal = await client.refusal(query, **variables)
        assert refusal.code == code, refusal.message
        assert len(refusal.errors) == 1 and refusal.errors[0]["path"]
    conflict = await client.refusal(APPEND, **appending(name, user("x"), expectedHead=1))
    assert conflict.errors[0]["extensions"] == {"code": "CONFLICT", "head": 2}
    conflict = await client.refusal(prompt, id=name, version=3)
    assert conflict.errors[0]["extensions"] == {"code": "CONFLICT", "version": 0}


@pytest.mark.parametrize("query", ["{", "{ nonsense }", "query($a: Int!) { viewer { space } }", "{ viewer }"])
async def test_requests_that_can_not_run_have_a_code_too(client: Client, query: str) -> None:
    answer = await client.answer(query)
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["BAD_INPUT"]


async def test_unknown_ids_are_not_found_on_every_mutation(client: Client, name: str) -> None:
    await create(client, name)
    no = f'"{name}-no"'
    for mutation in (
        f"createSession(input: {{parentId: {no}}}) {{ session {{ id }} }}",
        f"createSession(input: {{sourceSessionId: {no}}}) {{ session {{ id }} }}",
        f"forkSession(input: {{sourceId: {no}}}) {{ session {{ id }} }}",
        f'forkSession(input: {{sourceId: "{name}", parentId: {no}}}) {{ session {{ id }} }}',
        f'appendEvents(input: {{sessionId: {no}, events: [{{userMessage: {{content: "x"}}}}]}}) {{ head }}',
        f'updateSession(input: {{id: {no}, label: "x"}}) {{ session {{ id }} }}',
        f'renameSession(id: {no}, label: "x") {{ session {{ id }} }}',
        f"archiveSession(id: {no}) {{ session {{ id }} }}",
        f"restoreSession(id: {no}) {{ session {{ id }} }}",
        f"deleteSession(id: {no}) {{ deletedIds }}",
        f"moveNode(id: {no}, toRoot: true) {{ session {{ id }} }}",
        f'moveNode(id: "{name}", parentId: {no}) {{ session {{ id }} }}',
        f'addRef(fromId: {no}, toId: "{name}") {{ ref {{ toId }} }}',
        f'addRef(fromId: "{name}", toId: {no}) {{ ref {{ toId }} }}',
        f'removeRef(fromId: {no}, toId: "{name}") {{ ref {{ toId }} }}',
        f"putConfig(sessionId: {no}, config: {{}}) {{ session {{ id }} }}",
        f'putSystemPrompt(sessionId: {no}, content: "x") {{ sessionId }}',
        f'putMemory(input: {{sessionId: {no}, content: "x"}}) {{ sessionId }}',
        f'putInsight(input: {{sessionId: {no}, content: "x"}}) {{ sessionId }}',
        f"clearInsight(sessionId: {no}) {{ sessionId }}",
        f"consumeInsight(sessionId: {no}) {{ insight {{ content }} }}",
    ):
        refusal = await client.refusal(f"mutation {{ {mutation} }}")
        assert refusal.code == "NOT_FOUND" and f"{name}-no" in refusal.message, mutation
    found = await client.run("query($id: ID!) { topologyNode(id: $id) { childCount refs } }", id=name)
    assert found["topologyNode"] == {"childCount": 0, "refs": []}


async def test_too_large_inputs_are_refused_before_anything_is_written(client: Client, name: str) -> None:
    """The message names the limit; a value just below it is accepted."""
    await create(client, name)
    mebibyte = 1024 * 1024
    parts = [user("x" * mebibyte) for _ in range(8)]
    refusal = await client.refusal(APPEND, input={"sessionId": name, "events": parts})
    assert (refusal.code, str(8 * mebibyte) in refusal.message) == ("PAYLOAD_TOO_LARGE", True)
    assert (await append(client, name, *parts[:7], user("x" * (mebibyte - 4096))))["firstSeq"] == 0
    prompt = "mutation($id: ID!, $text: String!) { putSystemPrompt(sessionId: $id, content: $text) { sessionId } }"
    refusal = await client.refusal(prompt, id=name, text="ü" * (mebibyte // 2) + "x")
    assert (refusal.code, str(mebibyte) in refusal.message) == ("PAYLOAD_TOO_LARGE", True)
    await client.run(prompt, id=name, text="ü" * (mebibyte // 2))
    refusal = await client.refusal(CREATE, input={"id": f"{name}-m", "metadata": "x" * mebibyte})
    assert refusal.code == "PAYLOAD_TOO_LARGE"
    refusal = await client.refusal(CREATE, input={"id": f"{name}-m", "label": "x" * 501})
    assert (refusal.code, "500" in refusal.message) == ("BAD_INPUT", True)
    await create(client, f"{name}-m", label="x" * 500)


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query($ids: [ID!]!) { sessions(ids: $ids) { id } }", {"ids": ["x"] * 1001}),
        (
            "mutation($inputs: [MemoryInput!]!) { putMemories(inputs: $inputs) { results { code } } }",
            {"inputs": [{"sessionId": "x", "content": ""}] * 1001},
        ),
        (
            "mutation($inputs: [AppendEventsInput!]!) { appendBatch(inputs: $inputs) { results { code } } }",
            {"inputs": [{"sessionId": "x", "events": []}] * 101},
        ),
    ],
)
async def test_too_many_are_refused(client: Client, query: str, variables: dict[str, Any]) -> None:
    refusal = await client.refusal(query, **variables)
    assert refusal.code == "PAYLOAD_TOO_LARGE"


@pytest.mark.parametrize("first", [-1, 201])
async def test_a_page_beyond_its_limits_is_refused(client: Client, first: int) -> None:
    refusal = await client.refusal("query($n: Int!) { listSessions(first: $n) { totalCount } }", n=first)
    assert (refusal.code, "200" in refusal.message) == ("BAD_INPUT", True)


@pytest.mark.parametrize("id", ["", "a" * 129, "a b", "a/b", "ä", "a\n"])
async def test_invalid_ids_are_refused(client: Client, id: str) -> None:
    refusal = await client.refusal(CREATE, input={"id": id})
    assert refusal.code == "BAD_INPUT" and "id" in refusal.message


async def test_a_page_of_events_ends_before_4_mib_but_holds_one(client: Client, name: str) -> None:
    await create(client, name)
    big = "x" * (3 * 1024 * 1024)
    for _ in range(2):
        await append(client, name, user(big))
    await append(client, name, user("small"))
    query = "query($id: ID!, $from: Int) { session(id: $id) { events(fromSeq: $from) { nextSeq events { seq } } } }"
    ends = []
    next_seq = 0
    while next_seq < 3:
        page = (await client.run(query, id=name, **{"from": next_seq}))["session"]["events"]
        assert [event["seq"] for event in page["events"]] == list(range(next_seq, page["nextSeq"]))
        next_seq = page["nextSeq"]
        ends.append(next_seq)
    assert ends == [1, 3]


async def test_nested_lookups_of_many_rows_are_right_for_each(client: Client, name: str) -> None:
    """Rows are looked up in one batch; each gets its own value."""
    await create(client, name)
    for index in range(12):
        await create(client, f"{name}-{index}", name)
        await append(client, f"{name}-{index}", *texts(index + 1))
        await fork(client, f"{name}-{index}", f"{name}-f{index}", atSeq=index)
    query = """query($id: ID!) { topologyNode(id: $id) { children {
      id session { id head events(last: 1) { events { seq } } } parent { id } siblings { id }
      children { id forkSeq parent { id } ancestors { id } session { stats { inheritedEventCount } } }
    } } }"""
    children = (await client.run(query, id=name))["topologyNode"]["children"]
    for index, child in enumerate(children):
        assert child["id"] == f"{name}-{index}" and len(child["siblings"]) == 11
        assert child["session"] == {"id": child["id"], "head": index + 1, "events": {"events": [{"seq": index}]}}
        assert child["children"] == [
            {
                "id": f"{name}-f{index}",
                "forkSeq": index,
                "parent": {"id": child["id"]},
                "ancestors": [{"id": child["id"]}, {"id": name}],
                "session": {"stats": {"inheritedEventCount": index}},
            }
        ]


async def test_health_and_readiness(shared: Server) -> None:
    async with httpx.AsyncClient(verify=False) as http:
        health = await http.get(f"{shared.url}/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok"})
        ready = await http.get(f"{shared.url}/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")


@pytest.mark.parametrize("body", ["null", "5", "true", '"x"', "[]", "[{}]", "{", ""])
async def test_a_body_that_is_not_a_json_object_is_refused_in_json(client: Client, body: str) -> None:
    answer = await client.post(body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["extensions"]["code"] == "BAD_INPUT"


async def test_a_subscription_by_post_is_refused(client: Client) -> None:
    answer = await client.post(json.dumps({"query": "subscription { spaceEvents { seq } }"}))
    assert answer.status_code == 400
    assert "subscriptions" in answer.json()["errors"][0]["message"]


async def test_lone_surrogates_in_ids_are_answered(client: Client, name: str) -> None:
    """An impossible id is unknown, and does not affect the other inputs of a batch."""
    await create(client, name)
    body = json.dumps(
        {
            "query": "mutation($i: [MemoryInput!]!) { putMemories(inputs: $i, atomic: false) {"
            " results { sessionId code slot { content } } } }",
            "variables": {"i": [{"sessionId": "\ud800", "content": "x"}, {"sessionId": name, "content": "kept"}]},
        }
    )
    results = (await client.post(body)).json()["data"]["putMemories"]["results"]
    assert [(row["code"], row["slot"]) for row in results] == [("NOT_FOUND", None), (None, {"content": "kept"})]
    assert results[0]["sessionId"] == "\ufffd"
    named = await client.post(json.dumps({"query": "{ viewer { space } }", "operationName": "\ud800"}))
    assert named.json()["errors"][0]["extensions"]["code"] == "BAD_INPUT"


async def test_a_json_literal_may_hold_variables(client: Client) -> None:
    made = await client.run(
        'mutation($x: JSON!, $y: JSON) { createSession(input: {metadata: {a: $x, b: [$y, 2], c: "t"}}) {'
        " session { metadata } } }",
        x={"deep": [1.0]},
    )
    assert made["createSession"]["session"]["metadata"] == {"a": {"deep": [1.0]}, "b": [None, 2], "c": "t"}


async def test_metadata_given_by_a_variable_is_in_the_answer_to_the_update(client: Client, name: str) -> None:
    """And in those to later mutations."""
    await create(client, name)
    update = "mutation($i: UpdateSessionInput!) { updateSession(input: $i) { session { metadata } } }"
    expected = {"session": {"metadata": {"a": [1]}}}
    assert await client.run(update, i={"id": name, "metadata": {"a": [1]}}) == {"updateSession": expected}
    removal = "mutation($id: ID!) { removeLastEntry(sessionId: $id) { session { metadata } } }"
    assert await client.run(removal, id=name) == {"removeLastEntry": expected}


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00:00+14:00"])
async def test_an_instant_outside_of_utc_is_refused(client: Client, instant: str) -> None:
    refusal = await client.refusal(
        "query($since: DateTime) { listSessions(updatedSince: $since) { totalCount } }", since=instant
    )
    assert refusal.code == "BAD_INPUT"
