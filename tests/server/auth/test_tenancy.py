"""A credential sees only its own space: what another space owns looks as if it did not exist, on every path."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from graphql import build_schema

from schema import build
from tests.server.auth import tenancy
from tests.server.client import Client, Refused, Socket
from tests.server.commands.runner import run
from tests.server.conftest import new_location
from tests.server.operations import append, create, slot_writes_until_sent, user
from tests.server.process import Server, at

BUILT = build_schema(build.build_schema().as_str())
MARK = "classified"
THEIRS, OURS = "their-space", "our-space"
FOREIGN, OWN, NOBODY = "their-session", "own-session", "no-session"
OWN_EFFECT = {"putFormDefinition"}
"""Fields that create something of that name in the caller's own space, as for an unused name."""


def roots(schema: Any) -> dict[str, set[str]]:
    return {
        "query": set(schema.query_type.fields),
        "mutation": set(schema.mutation_type.fields),
        "subscription": set(schema.subscription_type.fields),
    }


IS_BUILT = roots(BUILT)
CALLS = [
    pytest.param(operation, call, id=f"{field}-{number}")
    for operation, fields in tenancy.ALL.items()
    for field, calls in fields.items()
    for number, call in enumerate(calls)
]


def test_every_root_field_is_called() -> None:
    assert {operation: set(fields) for operation, fields in tenancy.ALL.items()} == IS_BUILT


class Tenants:
    """A server, and the keys of two spaces."""

    def __init__(self, server: Server, theirs: str, ours: str) -> None:
        self.server = server
        self.theirs = theirs
        self.ours = ours

    def client(self, key: str) -> Client:
        return Client(lambda: self.server.graphql, key)

    async def state(self) -> Any:
        """Everything in the other space, as its own key sees it."""
        slot = "{ content version }"
        parts = [
            f"""forest {{ nodeCount nodes {{ id label status parentId index refs updatedAt session {{ head updatedAt
              metadata config {{ systemPrompt }} systemPrompt {slot} insight {slot} memory {slot}
              events {{ events {{ id type seq ... on UserMessage {{ content }} }} }} }} }} }}"""
        ]
        if "formDefinitions" in IS_BUILT["query"]:
            parts.append("formDefinitions { formId definition }")
        async with self.client(self.theirs) as client:
            return await client.run(f"{{ {' '.join(parts)} }}")


@pytest.fixture(scope="module", params=["sqlite", "mongodb"])
def tenants(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """Two spaces on one server; one of them holds things that the other one must not learn of."""
    for location in new_location(request, tmp_path_factory):
        made = [
            json.loads(run("keys", "create", "--role", "admin", "--space", space, "--json", *at(location)).stdout)
            for space in (THEIRS, OURS)
        ]
        server = Server(location, tmp_path_factory.mktemp("tenants") / "log", "--max-cost", "1000000")
        server.start()
        tenants = Tenants(server, made[0]["key"], made[1]["key"])
        asyncio.run(fill(tenants))
        yield tenants
        server.end()
        print(server.output)


async def fill(tenants: Tenants) -> None:
    async with tenants.client(tenants.ours) as client:
        await create(client, OWN)
        await append(client, OWN, user("ours"))
    async with tenants.client(tenants.theirs) as client:
        await create(client, FOREIGN, label=MARK, metadata={MARK: 1}, config={"systemPrompt": MARK})
        await create(client, f"{FOREIGN}-child", FOREIGN)
        await create(client, f"{FOREIGN}-other")
        turn = {"turnStart": {"turnId": "turn", "query": MARK}}
        await append(client, FOREIGN, turn, user(MARK), idempotencyKey="key")
        for slot in ("putMemory", "putInsight"):
            query = f"mutation($input: {slot.removeprefix('put')}Input!) {{ {slot}(input: $input) {{ sessionId }} }}"
            await client.run(query, input={"sessionId": FOREIGN, "content": MARK})
        ref = "mutation($id: ID!, $to: ID!) { addRef(fromId: $id, toId: $to) { ref { toId } } }"
        await client.run(ref, id=FOREIGN, to=f"{FOREIGN}-other")
        if "putFormDefinition" in IS_BUILT["mutation"]:
            form = """mutation($id: ID!, $form: JSON!) {
              putFormDefinition(formId: $id, definition: $form) { formDefinition { formId } } }"""
            await client.run(form, id=FOREIGN, form={MARK: 1})


@pytest.fixture
async def ours(tenants: Tenants) -> AsyncIterator[Client]:
    """A client of the space that must not learn of the other one."""
    async with tenants.client(tenants.ours) as client:
        yield client


async def answer(tenants: Tenants, client: Client, operation: str, call: str, id: str) -> str:
    """The first answer to a call that names this id, with the id taken out."""
    document = tenancy.document(operation, call)
    variables = {name: value for name, value in (("foreign", id), ("own", OWN)) if f"${name}" in document}
    found: Any
    if operation == "subscription":
        async with Socket.open(tenants.server.socket, tenants.ours) as socket:
            found = dict(await (await socket.subscribe(document, **variables)).message())
            del found["id"]
    else:
        found = await client.answer(document, variables)
    return json.dumps(found).replace(id, "<id>")


@pytest.mark.parametrize(("operation", "call"), CALLS)
async def test_what_another_space_owns_is_as_if_nobody_had_it(
    tenants: Tenants, ours: Client, operation: str, call: str
) -> None:
    """The answer is that for an unused id, reveals nothing of the other space, and changes nothing there."""
    before = await tenants.state()
    assert MARK in json.dumps(before)
    found = await answer(tenants, ours, operation, call, FOREIGN)
    assert MARK not in found and THEIRS not in found
    assert found == await answer(tenants, ours, operation, call, NOBODY)
    assert await tenants.state() == before
    named = call.partition("(")[0]
    if operation != "query" and named not in OWN_EFFECT:
        assert '"code": "NOT_FOUND"' in found, found
    else:
        assert '"errors"' not in found, found


@pytest.mark.parametrize(("operation", "call"), [call for call in CALLS if call.values[0] == "query"])
async def test_the_same_query_shows_its_owner_more(tenants: Tenants, operation: str, call: str) -> None:
    """So that what is empty for others is not empty for want of anything to see."""
    document = tenancy.document(operation, call)
    variables = {name: FOREIGN for name in ("foreign", "own") if f"${name}" in document}
    async with tenants.client(tenants.theirs) as client:
        shown = json.dumps(await client.run(document, **variables))
    assert any(known in shown for known in (FOREIGN, MARK, THEIRS))


async def test_ids_and_keys_of_another_space_are_free(tenants: Tenants, ours: Client) -> None:
    name = f"s{uuid.uuid4().hex[:12]}"
    query = """mutation($input: CreateSessionInput!) { createSession(input: $input) {
      session { id label events { events { id } } } } }"""
    for key, label in ((tenants.theirs, MARK), (tenants.ours, "ours")):
        async with tenants.client(key) as client:
            made = await client.run(query, input={"id": name, "label": label, "idempotencyKey": name})
            assert made["createSession"]["session"] == {"id": name, "label": label, "events": {"events": []}}
    await append(ours, name, user("x"), idempotencyKey=name)
    await ours.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=name)
    async with tenants.client(tenants.theirs) as client:
        assert (await append(client, name, user("x"), idempotencyKey=name))["duplicate"] is False
        found = await client.run("query($id: ID!) { session(id: $id) { label head } }", id=name)
        assert found == {"session": {"label": MARK, "head": 1}}
        await client.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=name)


@pytest.mark.parametrize("field", ["listSessions", "digests"])
async def test_a_cursor_of_another_space_is_refused(tenants: Tenants, ours: Client, field: str) -> None:
    query = (
        f"query($after: String) {{ {field}(first: 1, after: $after) {{ nodes {{ id }} pageInfo {{ endCursor }} }} }}"
    )
    async with tenants.client(tenants.theirs) as client:
        cursor = (await client.run(query))[field]["pageInfo"]["endCursor"]
    refusal = await ours.refusal(query, after=cursor)
    assert refusal.code == "BAD_INPUT"
    assert MARK not in refusal.message and THEIRS not in refusal.message


async def test_no_live_event_of_another_space_is_sent(tenants: Tenants, ours: Client) -> None:
    """Each is registered once it has sent something; then the other space writes, and then this one."""
    own = await create(ours, f"s{uuid.uuid4().hex[:12]}")
    await append(ours, own, user("first"))
    rename = "mutation($id: ID!, $label: String!) { renameSession(id: $id, label: $label) { session { id } } }"
    memory = "mutation($id: ID!) { putMemory(input: {sessionId: $id, content: \"x\"}) { sessionId } }"  # fmt: skip
    async with tenants.client(tenants.theirs) as theirs, Socket.open(tenants.server.socket, tenants.ours) as socket:
        other = await create(theirs, f"t{uuid.uuid4().hex[:12]}")
        events = await socket.subscribe(
            "subscription($id: ID!) { spaceEvents(positions: [{sessionId: $id, fromSeq: 0}]) { sessionId seq } }",
            id=own,
        )
        assert await events.next() == {"spaceEvents": {"sessionId": own, "seq": 0}}
        forest = await socket.subscribe("""subscription { forestChanges { ... on ForestSnapshot { forest { roots } }
            ... on ForestDelta { upserted { id } removedIds } } }""")
        assert other not in (await forest.next())["forestChanges"]["forest"]["roots"]
        slots = await socket.subscribe("subscription { slotChanges { sessionId name slot { version } } }")
        await slot_writes_until_sent(ours, slots, own)
        for client, id in ((theirs, other), (ours, own)):
            await append(client, id, user("x"))
            await client.run(rename, id=id, label="new")
            await client.run(memory, id=id)
        assert await events.next() == {"spaceEvents": {"sessionId": own, "seq": 1}}
        assert [node["id"] for node in (await forest.next())["forestChanges"]["upserted"]] == [own]
        change = (await slots.next())["slotChanges"]
        assert (change["sessionId"], change["name"]) == (own, "MEMORY")
        await theirs.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=other)
    await ours.run("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=own)
    with pytest.raises(Refused):
        await ours.run(memory, id=other)
