"""Every query and every mutation over HTTP."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from tests.server.client import Client
from tests.server.conftest import Serve
from tests.server.operations import append, create, fork, log, texts, user

NODE = """
id label status parentId rootId depth index childCount sourceSessionId forkSeq refs turnCount head
parent { id } children { id } ancestors { id } siblings { id } referencedBy session { id }
"""
SESSION = """
id label status workflowMode metadata createdAt updatedAt turnCount head node { id } config { systemPrompt skills }
systemPrompt { content version atSeq } insight { content version atSeq } memory { content version atSeq }
digest { id head }
"""


async def session(client: Client, id: str, selection: str = SESSION) -> Any:
    return (await client.run(f"query($id: ID!) {{ session(id: $id) {{ {selection} }} }}", id=id))["session"]


async def node(client: Client, id: str) -> Any:
    return (await client.run(f"query($id: ID!) {{ topologyNode(id: $id) {{ {NODE} }} }}", id=id))["topologyNode"]


async def mutate(client: Client, field: str, selection: str, **arguments: Any) -> Any:
    """Run a mutation with its arguments as literals."""
    given = ", ".join(f"{name}: {value}" for name, value in arguments.items())
    return (await client.run(f"mutation {{ {field}({given}) {{ {selection} }} }}"))[field]


async def test_viewer_describes_the_server(client: Client) -> None:
    viewer = (await client.run("{ viewer { space role serverVersion database limits } }"))["viewer"]
    assert (viewer["space"], viewer["role"]) == ("default", "ADMIN")
    assert viewer["serverVersion"] and viewer["database"]
    assert viewer["limits"]["eventsPerAppend"] == 1_000


async def test_a_new_session_has_all_its_fields(client: Client, name: str) -> None:
    """The config has no invented keys, and what was never written is null."""
    before = datetime.now(UTC).timestamp()
    await create(client, name, label="Mine", workflowMode="CHAT", metadata={"b": 1, "a": [None]}, config={"skills": []})
    made = await session(client, name)
    times = [datetime.fromisoformat(made.pop(field)).timestamp() for field in ("createdAt", "updatedAt")]
    assert all(before - 60 < at < before + 60 for at in times)
    assert made == {
        "id": name,
        "label": "Mine",
        "status": "ACTIVE",
        "workflowMode": "CHAT",
        "metadata": {"b": 1, "a": [None]},
        "turnCount": 0,
        "head": 0,
        "node": {"id": name},
        "config": {"systemPrompt": None, "skills": []},
        "systemPrompt": None,
        "insight": None,
        "memory": None,
        "digest": {"id": name, "head": 0},
    }


async def test_ids_are_generated_and_labels_have_their_defaults(client: Client) -> None:
    made = await mutate(client, "createSession", "session { id label node { parentId depth } }", input="{}")
    child = await mutate(
        client, "createSession", "session { id label }", input=f'{{parentId: "{made["session"]["id"]}"}}'
    )
    assert (made["session"]["label"], child["session"]["label"]) == ("Root", "Session")
    assert made["session"]["node"] == {"parentId": None, "depth": 0}
    assert made["session"]["id"] != child["session"]["id"]


async def test_many_sessions_are_created_each_on_its_own(client: Client, name: str) -> None:
    query = """mutation($inputs: [CreateSessionInput!]!) {
      createSessions(inputs: $inputs) { results { session { id label node { parentId } } code message } }
    }"""
    inputs = [
        {"id": name, "label": "first"},
        {"id": f"{name}-child", "parentId": name},
        {"id": name},
        {"parentId": f"{name}-unknown"},
    ]
    first, child, taken, orphan = (await client.run(query, inputs=inputs))["createSessions"]["results"]
    assert first["session"] == {"id": name, "label": "first", "node": {"parentId": None}}
    assert child["session"]["node"] == {"parentId": name}
    assert (first["code"], child["code"]) == (None, None)
    assert [(row["session"], row["code"]) for row in (taken, orphan)] == [(None, "DUPLICATE_ID"), (None, "NOT_FOUND")]
    assert f"{name}-unknown" in orphan["message"]
    refusal = await client.refusal(query, inputs=[{}] * 1001)
    assert refusal.code == "PAYLOAD_TOO_LARGE"


async def test_unknown_ids_are_null_in_queries(client: Client, name: str) -> None:
    query = """query($id: ID!) {
      session(id: $id) { id } topologyNode(id: $id) { id } forest(rootId: $id) { nodeCount } digest(id: $id) { id }
      listSessions(underId: $id) { totalCount } digests(underId: $id) { asOf }
      sessions(ids: [$id]) { id } byId: digests(ids: [$id]) { nodes { id } }
    }"""
    assert await client.run(query, id=name) == {
        "session": None,
        "topologyNode": None,
        "forest": None,
        "digest": None,
        "listSessions": None,
        "digests": None,
        "sessions": [None],
        "byId": {"nodes": []},
    }


async def test_an_empty_space_has_no_roots_and_an_empty_forest(serve: Serve) -> None:
    server = serve()
    async with Client(lambda: server.graphql) as client:
        query = "{ roots { id } forest { roots nodes { id } refs { fromId } nodeCount } listSessions { totalCount } }"
        assert await client.run(query) == {
            "roots": [],
            "forest": {"roots": [], "nodes": [], "refs": [], "nodeCount": 0},
            "listSessions": {"totalCount": 0},
        }
        await create(client, "first")
        await create(client, "second")
        assert (await client.run("{ roots { id index } forest { roots } }")) == {
            "roots": [{"id": "first", "index": 0}, {"id": "second", "index": 1}],
            "forest": {"roots": ["first", "second"]},
        }


async def test_sessions_are_in_the_order_of_their_ids_in_the_query(client: Client, name: str) -> None:
    for part in "abc":
        await create(client, f"{name}-{part}")
    ids = [f"{name}-c", f"{name}-unknown", f"{name}-a", f"{name}-c"]
    found = await client.run("query($ids: [ID!]!) { sessions(ids: $ids) { id } }", ids=ids)
    assert found["sessions"] == [{"id": ids[0]}, None, {"id": ids[2]}, {"id": ids[3]}]


async def test_lists_are_paged_without_a_gap_or_a_repeat(client: Client, name: str) -> None:
    """Even if a session is created between two pages."""
    await create(client, name)
    children = [await create(client, f"{name}-{index}", name, label=f"Kid {index % 2}") for index in range(7)]
    query = """query($under: ID!, $after: String, $label: String) {
      listSessions(underId: $under, first: 3, after: $after, labelContains: $label, orderBy: CREATED_ASC) {
        totalCount nodes { id } edges { cursor node { id } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }"""
    seen: list[str] = []
    after = None
    while True:
        page = (await client.run(query, under=name, after=after))["listSessions"]
        assert page["nodes"] == [edge["node"] for edge in page["edges"]]
        info = page["pageInfo"]
        assert (info["startCursor"], info["endCursor"]) == (page["edges"][0]["cursor"], page["edges"][-1]["cursor"])
        assert info["hasPreviousPage"] == (after is not None)
        seen += [found["id"] for found in page["nodes"]]
        if not info["hasNextPage"]:
            break
        if after is None:
            assert page["totalCount"] == 8
            children.append(await create(client, f"{name}-late", name))
        after = info["endCursor"]
    assert seen == [name, *children]
    matching = (await client.run(query, under=name, label="kID 1"))["listSessions"]
    assert matching["totalCount"] == 3


async def test_a_cursor_of_another_list_is_refused(client: Client, name: str) -> None:
    for part in "ab":
        await create(client, f"{name}-{part}")
        await create(client, f"{name}-{part}-child", f"{name}-{part}")
    query = "query($under: ID!, $after: String) { listSessions(underId: $under, first: 1, after: $after) %s }"
    cursor = (await client.run(query % "{ pageInfo { endCursor } }", under=f"{name}-a"))["listSessions"]["pageInfo"]
    for other in (cursor["endCursor"], "nonsense"):
        refusal = await client.refusal(query % "{ totalCount }", under=f"{name}-b", after=other)
        assert refusal.code == "BAD_INPUT"


async def test_the_forest_shows_nodes_depth_first(client: Client, name: str) -> None:
    for id, parent in (("", None), ("-a", ""), ("-b", ""), ("-a-1", "-a"), ("-a-2", "-a")):
        await create(client, f"{name}{id}", None if parent is None else f"{name}{parent}")
    await mutate(client, "addRef", "ref { fromId }", fromId=f'"{name}-a-1"', toId=f'"{name}-b"')
    await mutate(client, "archiveSession", "session { id }", id=f'"{name}-a-2"')
    query = """query($id: ID!, $depth: Int, $status: SessionStatus) {
      forest(rootId: $id, maxDepth: $depth, status: $status) { roots nodes { id depth } refs { fromId toId } nodeCount }
    }"""
    whole = (await client.run(query, id=name))["forest"]
    order = [name, f"{name}-a", f"{name}-a-1", f"{name}-a-2", f"{name}-b"]
    assert [found["id"] for found in whole["nodes"]] == order
    assert (whole["roots"], whole["nodeCount"]) == ([name], 5)
    assert whole["refs"] == [{"fromId": f"{name}-a-1", "toId": f"{name}-b"}]
    flat = (await client.run(query, id=f"{name}", depth=1))["forest"]
    assert [found["id"] for found in flat["nodes"]] == [name, f"{name}-a", f"{name}-b"]
    archived = (await client.run(query, id=name, status="ARCHIVED"))["forest"]
    assert [found["id"] for found in archived["nodes"]] == [name, f"{name}-a", f"{name}-a-2"]


async def test_a_node_knows_its_family(client: Client, name: str) -> None:
    for id, parent in (("", None), ("-a", ""), ("-b", ""), ("-a-1", "-a")):
        await create(client, f"{name}{id}", None if parent is None else f"{name}{parent}")
    await append(client, f"{name}-a", *texts(3))
    await fork(client, f"{name}-a", f"{name}-f", atSeq=2, parentId=name)
    await mutate(client, "addRef", "ref { fromId }", fromId=f'"{name}-b"', toId=f'"{name}-a-1"')
    assert await node(client, f"{name}-a-1") == {
        "id": f"{name}-a-1",
        "label": "Session",
        "status": "ACTIVE",
        "parentId": f"{name}-a",
        "rootId": name,
        "depth": 2,
        "index": 0,
        "childCount": 0,
        "sourceSessionId": None,
        "forkSeq": None,
        "refs": [],
        "turnCount": 0,
        "head": 0,
        "parent": {"id": f"{name}-a"},
        "children": [],
        "ancestors": [{"id": f"{name}-a"}, {"id": name}],
        "siblings": [],
        "referencedBy": [f"{name}-b"],
        "session": {"id": f"{name}-a-1"},
    }
    forked = await node(client, f"{name}-f")
    assert (forked["sourceSessionId"], forked["forkSeq"], forked["head"]) == (f"{name}-a", 2, 2)
    assert forked["siblings"] == [{"id": f"{name}-a"}, {"id": f"{name}-b"}]
    root = await node(client, name)
    assert (root["parent"], root["ancestors"], root["siblings"], root["childCount"]) == (None, [], [], 3)
    assert root["children"] == [{"id": f"{name}-a"}, {"id": f"{name}-b"}, {"id": f"{name}-f"}]


async def test_eight_children_at_once_get_the_indexes_0_to_7(client: Client, name: str) -> None:
    await create(client, name)
    made = await asyncio.gather(
        *(
            mutate(client, "createSession", "session { id node { index } }", input=f'{{parentId: "{name}"}}')
            for _ in range(8)
        )
    )
    assert sorted(one["session"]["node"]["index"] for one in made) == list(range(8))
    assert len((await node(client, name))["children"]) == 8


async def test_a_fork_shares_events_and_neither_sees_the_others_later_ones(client: Client, name: str) -> None:
    await create(client, name, config={"systemPrompt": "Be kind.", "skills": ["a"]}, metadata={"k": 1})
    await append(client, name, *texts(5))
    await fork(client, name, f"{name}-f", atSeq=3, prompt="Go on.", config={"skills": []}, label="Branch")
    await append(client, name, *texts(1, 5))
    await append(client, f"{name}-f", user("mine"))
    source, child = await log(client, name), await log(client, f"{name}-f")
    assert child[:3] == source[:3]
    assert [(event["seq"], event["content"]) for event in child[3:]] == [(3, "Go on."), (4, "mine")]
    assert {event["sessionId"] for event in child[3:]} == {f"{name}-f"}
    assert [event["content"] for event in source] == [f"message {seq}" for seq in range(6)]
    found = await session(client, f"{name}-f")
    assert (found["label"], found["metadata"]) == ("Branch", {"k": 1})
    assert found["config"] == {"systemPrompt": "Be kind.", "skills": []}
    assert found["systemPrompt"]["content"] == "Be kind."


async def test_a_fork_with_no_context_starts_empty_and_may_be_a_root(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(2))
    await fork(client, name, f"{name}-f", context="NONE", asRoot=True)
    found = await node(client, f"{name}-f")
    assert (found["parentId"], found["sourceSessionId"], found["forkSeq"], found["head"]) == (None, name, 0, 0)


@pytest.mark.parametrize("cut", [-1, 4])
async def test_a_fork_that_is_refused_leaves_nothing(client: Client, name: str, cut: int) -> None:
    await create(client, name)
    await append(client, name, *texts(3))
    query = "mutation($input: ForkSessionInput!) { forkSession(input: $input) { session { id } } }"
    refusal = await client.refusal(query, input={"sourceId": name, "id": f"{name}-f", "atSeq": cut})
    assert refusal.code == "BAD_INPUT" and "atSeq" in refusal.message
    assert await session(client, f"{name}-f") is None
    assert await node(client, f"{name}-f") is None
    assert (await node(client, name))["childCount"] == 0


async def test_stats_separate_own_from_inherited_events(client: Client, name: str) -> None:
    await create(client, name)
    step: list[dict[str, Any]] = [{"turnStart": {"turnId": "t"}}, {"stepStart": {"stepId": "s"}}]
    end: list[dict[str, Any]] = [{"stepEnd": {"stepId": "s", "tokenCount": 55}}, {"turnEnd": {"turnId": "t"}}]
    call: dict[str, Any] = {"toolCall": {"callId": "c", "name": "add", "args": {}}}
    await append(client, name, *step, user("Hi"), call, *end)
    await fork(client, name, f"{name}-f")
    more: list[dict[str, Any]] = [{"turnStart": {"turnId": "u"}}, {"stepStart": {"stepId": "s"}}]
    done: list[dict[str, Any]] = [{"stepEnd": {"stepId": "s", "tokenCount": 55}}, {"turnEnd": {"turnId": "u"}}]
    await append(client, f"{name}-f", *more, {"assistantMessage": {"content": "Yes"}}, *done)
    stats = """stats { eventCount ownEventCount inheritedEventCount turnCount stepCount userMessageCount
      assistantMessageCount toolCallCount totalTokenCount ownTokenCount byType { type count } }"""
    found = (await session(client, f"{name}-f", stats))["stats"]
    counts = {row["type"]: row["count"] for row in found.pop("byType")}
    assert found == {
        "eventCount": 11,
        "ownEventCount": 5,
        "inheritedEventCount": 6,
        "turnCount": 2,
        "stepCount": 2,
        "userMessageCount": 1,
        "assistantMessageCount": 1,
        "toolCallCount": 1,
        "totalTokenCount": 110.0,
        "ownTokenCount": 55.0,
    }
    assert counts == {
        "TURN_START": 2,
        "TURN_END": 2,
        "STEP_START": 2,
        "STEP_END": 2,
        "USER_MESSAGE": 1,
        "ASSISTANT_MESSAGE": 1,
        "TOOL_CALL": 1,
    }


async def test_the_log_is_read_in_both_directions(client: Client, name: str) -> None:
    await create(client, name)
    events = [user(f"{seq}") if seq % 2 else {"custom": {"name": "n", "data": seq}} for seq in range(10)]
    await append(client, name, *events[:6])
    await append(client, name, *events[6:])

    async def page(arguments: str) -> tuple[list[int], int, int | None]:
        selection = f"events({arguments}) {{ events {{ seq }} nextSeq prevSeq head }}"
        found = (await session(client, name, selection))["events"]
        assert found["head"] == 10
        return [event["seq"] for event in found["events"]], found["nextSeq"], found["prevSeq"]

    assert await page("first: 3") == ([0, 1, 2], 3, None)
    assert await page("fromSeq: 3, first: 100") == (list(range(3, 10)), 10, 3)
    assert await page("last: 3") == ([7, 8, 9], 10, 7)
    assert await page("beforeSeq: 7, last: 7") == (list(range(7)), 7, None)
    assert await page("fromSeq: 10, first: 5") == ([], 10, 10)
    assert await page("fromSeq: 99, first: 5") == ([], 10, 10)
    assert await page("first: 0") == ([], 0, None)
    found, next_seq, _ = await page("types: [CUSTOM], first: 3")
    assert found == [0, 2, 4]
    assert (await page(f"types: [CUSTOM], fromSeq: {next_seq}, first: 3"))[0] == [6, 8]


@pytest.mark.parametrize(
    "arguments", ["first: -1", "last: -1", "fromSeq: -1", "beforeSeq: -1", "first: 1001", "first: 1, last: 1"]
)
async def test_bad_pages_are_refused(client: Client, name: str, arguments: str) -> None:
    await create(client, name)
    query = f"query($id: ID!) {{ session(id: $id) {{ events({arguments}) {{ head }} }} }}"
    refusal = await client.refusal(query, id=name)
    assert refusal.code == "BAD_INPUT"
    assert refusal.errors[0]["path"] == ["session", "events"]


async def test_updates_leave_what_is_absent_and_clear_what_is_null(client: Client, name: str) -> None:
    await create(client, name, label="Mine", workflowMode="CHAT", metadata={"k": 1})
    update = "mutation($input: UpdateSessionInput!) { updateSession(input: $input) { session { id } } }"
    await client.run(update, input={"id": name, "label": "Yours"})
    found = await session(client, name, "label workflowMode metadata")
    assert found == {"label": "Yours", "workflowMode": "CHAT", "metadata": {"k": 1}}
    await client.run(update, input={"id": name, "workflowMode": None, "metadata": None})
    found = await session(client, name, "label workflowMode metadata")
    assert found == {"label": "Yours", "workflowMode": None, "metadata": None}
    refusal = await client.refusal(update, input={"id": name, "label": None})
    assert refusal.code == "BAD_INPUT" and "label" in refusal.message


async def test_null_arguments_count_as_left_out(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(2))
    query = """query($id: ID!, $none: Int, $after: String, $under: ID, $since: DateTime, $status: SessionStatus) {
      session(id: $id) { events(fromSeq: $none, beforeSeq: $none, first: $none, last: $none, types: null) { nextSeq } }
      listSessions(after: $after, underId: $under, updatedSince: $since, status: $status, labelContains: null) {
        totalCount }
      digests(ids: null, underId: $under, status: $status, updatedSince: $since, appendedSince: $since,
        memoryBehind: null, after: $after) { asOf }
      forest(rootId: $under, maxDepth: $none, status: $status) { nodeCount }
    }"""
    nulls = dict.fromkeys(["none", "after", "under", "since", "status"])
    with_nulls, without = await client.run(query, id=name, **nulls), await client.run(query, id=name)
    assert with_nulls["session"] == without["session"] == {"events": {"nextSeq": 2}}
    assert with_nulls["listSessions"]["totalCount"] >= 1
    assert with_nulls["digests"] is not None


async def test_null_in_a_forks_config_clears_and_absent_keeps(client: Client, name: str) -> None:
    await create(client, name, config={"systemPrompt": "Be kind.", "skills": ["a"]})
    await fork(client, name, f"{name}-kept", config={})
    await fork(client, name, f"{name}-gone", config={"systemPrompt": None})
    kept = await session(client, f"{name}-kept", "config { systemPrompt skills } systemPrompt { content }")
    assert kept == {
        "config": {"systemPrompt": "Be kind.", "skills": ["a"]},
        "systemPrompt": {"content": "Be kind."},
    }
    gone = await session(client, f"{name}-gone", "config { systemPrompt skills } systemPrompt { content }")
    assert gone == {"config": {"systemPrompt": None, "skills": ["a"]}, "systemPrompt": None}


async def test_config_and_label_leave_each_other_alone(client: Client, name: str) -> None:
    await create(client, name, config={"systemPrompt": "p", "skills": ["a"]})
    await mutate(client, "renameSession", "session { label }", id=f'"{name}"', label='"New"')
    found = await session(client, name)
    assert (found["label"], found["config"]) == ("New", {"systemPrompt": "p", "skills": ["a"]})
    await append(client, name, *texts(1))
    await mutate(client, "putConfig", "session { label }", sessionId=f'"{name}"', config="{}")
    found = await session(client, name)
    assert (found["label"], found["head"], found["config"]) == ("New", 1, {"systemPrompt": None, "skills": None})
    assert found["systemPrompt"]["content"] == "p"
    assert (await session(client, await create(client, f"{name}-bare"), "config { skills }"))["config"] is None


async def test_archived_sessions_refuse_writes_until_they_are_restored(client: Client, name: str) -> None:
    await create(client, name)
    await create(client, f"{name}-c", name)
    await append(client, name, *texts(1))
    archived = await mutate(client, "archiveSession", "session { status }", id=f'"{name}"')
    assert archived["session"]["status"] == "ARCHIVED"
    assert (await session(client, f"{name}-c"))["status"] == "ACTIVE"
    quoted = f'"{name}"'
    for field, arguments, selection in (
        ("appendEvents", f"input: {{sessionId: {quoted}, events: [{{userMessage: {{content: {quoted}}}}}]}}", "head"),
        ("putSystemPrompt", f"sessionId: {quoted}, content: {quoted}", "sessionId"),
        ("putMemory", f"input: {{sessionId: {quoted}, content: {quoted}}}", "sessionId"),
        ("putInsight", f"input: {{sessionId: {quoted}, content: {quoted}}}", "sessionId"),
        ("clearInsight", f"sessionId: {quoted}", "sessionId"),
        ("consumeInsight", f"sessionId: {quoted}", "insight { content }"),
    ):
        refusal = await client.refusal(f"mutation {{ {field}({arguments}) {{ {selection} }} }}")
        assert refusal.code == "ARCHIVED", field
    await fork(client, name, f"{name}-f")
    restored = await mutate(client, "restoreSession", "session { status }", id=quoted)
    assert restored["session"]["status"] == "ACTIVE"
    assert (await append(client, name, *texts(1, 1)))["head"] == 2


async def test_a_deletion_cascades_only_on_request_and_keeps_events_that_forks_share(client: Client, name: str) -> None:
    await create(client, name)
    await create(client, f"{name}-c", name)
    await append(client, name, *texts(4))
    await fork(client, name, f"{name}-f", atSeq=3, asRoot=True)
    refusal = await client.refusal("mutation($id: ID!) { deleteSession(id: $id) { deletedIds } }", id=name)
    assert refusal.code == "HAS_CHILDREN"
    gone = await mutate(client, "deleteSession", "deletedIds", id=f'"{name}"', cascade="true")
    assert gone["deletedIds"] == [name, f"{name}-c"]
    assert await session(client, name) is None and await node(client, f"{name}-c") is None
    shared = await log(client, f"{name}-f")
    assert [event["content"] for event in shared] == ["message 0", "message 1", "message 2"]
    await create(client, name)
    assert await log(client, name) == []
    assert (await mutate(client, "deleteSession", "deletedIds", id=f'"{name}-f"'))["deletedIds"] == [f"{name}-f"]


async def test_nodes_move_with_their_subtree(client: Client, name: str) -> None:
    for id, parent in (("", None), ("-a", ""), ("-b", ""), ("-a-1", "-a")):
        await create(client, f"{name}{id}", None if parent is None else f"{name}{parent}")
    await mutate(client, "moveNode", "session { id }", id=f'"{name}-a"', parentId=f'"{name}-b"')
    moved = await node(client, f"{name}-a-1")
    assert [found["id"] for found in moved["ancestors"]] == [f"{name}-a", f"{name}-b", name]
    for under in (f"{name}-a", f"{name}-a-1"):
        refusal = await client.refusal(
            f'mutation {{ moveNode(id: "{name}-a", parentId: "{under}") {{ session {{ id }} }} }}'
        )
        assert refusal.code == "CYCLE"
    await mutate(client, "moveNode", "session { id }", id=f'"{name}-a"', toRoot="true")
    assert (await node(client, f"{name}-a-1"))["rootId"] == f"{name}-a"
    for arguments in (f'id: "{name}-a"', f'id: "{name}-a", parentId: "{name}", toRoot: true'):
        refusal = await client.refusal(f"mutation {{ moveNode({arguments}) {{ session {{ id }} }} }}")
        assert refusal.code == "BAD_INPUT" and "parentId" in refusal.message and "toRoot" in refusal.message


async def test_refs_connect_unrelated_nodes(client: Client, name: str) -> None:
    for id, parent in (("", None), ("-a", ""), ("-b", ""), ("-a-1", "-a")):
        await create(client, f"{name}{id}", None if parent is None else f"{name}{parent}")
    selection = "ref { fromId toId } fromNode { refs } toNode { referencedBy }"
    for _ in range(2):
        added = await mutate(client, "addRef", selection, fromId=f'"{name}-a-1"', toId=f'"{name}-b"')
        assert added == {
            "ref": {"fromId": f"{name}-a-1", "toId": f"{name}-b"},
            "fromNode": {"refs": [f"{name}-b"]},
            "toNode": {"referencedBy": [f"{name}-a-1"]},
        }
    await mutate(client, "addRef", selection, fromId=f'"{name}-b"', toId=f'"{name}-a-1"')
    for target in (f"{name}-a-1", f"{name}-a", name):
        refusal = await client.refusal(
            f'mutation {{ addRef(fromId: "{name}-a-1", toId: "{target}") {{ ref {{ toId }} }} }}'
        )
        assert refusal.code == "INVALID_REF"
    refusal = await client.refusal(
        f'mutation {{ moveNode(id: "{name}-b", parentId: "{name}-a-1") {{ session {{ id }} }} }}'
    )
    assert refusal.code == "INVALID_REF"
    removed = await mutate(client, "removeRef", selection, fromId=f'"{name}-a-1"', toId=f'"{name}-b"')
    assert removed["fromNode"]["refs"] == []


async def test_slots_count_versions_and_record_the_head_they_reflect(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, *texts(3))
    quoted = f'"{name}"'
    slot = "sessionId slot { content version atSeq } session { id }"
    first = await mutate(client, "putSystemPrompt", slot, sessionId=quoted, content='"one"', ifVersion="0")
    assert first["slot"] == {"content": "one", "version": 1, "atSeq": 3}
    again = await mutate(client, "putSystemPrompt", slot, sessionId=quoted, content='"two"')
    assert again["slot"]["version"] == 2
    memory = await mutate(client, "putMemory", slot, input=f'{{sessionId: {quoted}, content: "m", atSeq: 2}}')
    assert memory["slot"] == {"content": "m", "version": 1, "atSeq": 2}
    for mode, content in (("REPLACE", "a"), ("APPEND", "a\n\na")):
        insight = await mutate(client, "putInsight", slot, input=f'{{sessionId: {quoted}, content: "a", mode: {mode}}}')
        assert insight["slot"]["content"] == content
    cleared = await mutate(client, "clearInsight", slot, sessionId=quoted, version="2")
    assert cleared["slot"] is None
    anew = await mutate(client, "putInsight", slot, input=f'{{sessionId: {quoted}, content: "b"}}')
    assert anew["slot"]["version"] == 3
    found = await session(client, name)
    assert [found[slot]["content"] for slot in ("systemPrompt", "insight", "memory")] == ["two", "b", "m"]


async def test_an_insight_is_delivered_once_and_a_retry_gets_the_same(client: Client, name: str) -> None:
    await create(client, name)
    await append(client, name, {"turnStart": {"turnId": "t"}})
    put = f'input: {{sessionId: "{name}", content: "Look left."}}'
    await client.run(f"mutation {{ putInsight({put}) {{ sessionId }} }}")
    consume = """mutation($id: ID!, $key: String, $version: Int) {
      consumeInsight(sessionId: $id, idempotencyKey: $key, version: $version) {
        insight { content version } event { seq type turnId content version } session { head insight { content } }
      }
    }"""
    first = (await client.run(consume, id=name, key="k"))["consumeInsight"]
    assert first["insight"] == {"content": "Look left.", "version": 1}
    assert first["event"] == {
        "seq": 1,
        "type": "INSIGHT_DELIVERED",
        "turnId": "t",
        "content": "Look left.",
        "version": 1,
    }
    assert first["session"] == {"head": 2, "insight": None}
    await client.run(f"mutation {{ putInsight({put}) {{ sessionId }} }}")
    again = (await client.run(consume, id=name, key="k"))["consumeInsight"]
    assert again["insight"] == first["insight"] and again["event"] == first["event"]
    assert again["session"] == {"head": 2, "insight": {"content": "Look left."}}
    refusal = await client.refusal(consume, id=name, version=1)
    assert (refusal.code, refusal.errors[0]["extensions"]["version"]) == ("CONFLICT", 2)
    second = (await client.run(consume, id=name, key="l"))["consumeInsight"]
    assert second["insight"]["version"] == 2
    empty = (await client.run(consume, id=name, key="m"))["consumeInsight"]
    assert (empty["insight"], empty["event"]) == (None, None)


@pytest.mark.parametrize("field", ["putMemories", "putInsights"])
async def test_many_slots_are_written_together_or_each_on_its_own(client: Client, name: str, field: str) -> None:
    slot, kind = ("memory", "MemoryInput") if field == "putMemories" else ("insight", "InsightInput")
    for part in "abc":
        await create(client, f"{name}-{part}")
    await mutate(client, "archiveSession", "session { id }", id=f'"{name}-c"')
    query = f"""mutation($inputs: [{kind}!]!, $atomic: Boolean!) {{
      {field}(inputs: $inputs, atomic: $atomic) {{ results {{ sessionId slot {{ content version }} code message }} }}
    }}"""

    def inputs(*parts: str) -> list[dict[str, str]]:
        return [{"sessionId": f"{name}-{part}", "content": f"of {part}"} for part in parts]

    refusal = await client.refusal(query, inputs=inputs("a", "no", "b", "c"), atomic=True)
    assert refusal.code == "NOT_FOUND"
    assert f"{name}-no" in refusal.message and f"{name}-c" in refusal.message
    assert f"{name}-a" not in refusal.message
    assert (await session(client, f"{name}-a"))[slot] is None
    each = (await client.run(query, inputs=inputs("a", "no", "b", "c"), atomic=False))[field]["results"]
    assert [(row["sessionId"], row["code"]) for row in each] == [
        (f"{name}-a", None),
        (f"{name}-no", "NOT_FOUND"),
        (f"{name}-b", None),
        (f"{name}-c", "ARCHIVED"),
    ]
    assert each[1]["slot"] is None and each[1]["message"]
    assert each[0]["slot"] == {"content": "of a", "version": 1}
    together = (await client.run(query, inputs=inputs("b", "a"), atomic=True))[field]["results"]
    assert [row["slot"]["version"] for row in together] == [2, 2]


async def test_digests_have_all_fields_and_fetching_them_writes_nothing(client: Client, name: str) -> None:
    await create(client, name)
    for part in "ab":
        await create(client, f"{name}-{part}", name)
        await append(client, f"{name}-{part}", *texts(2))
    for field, content in (("putMemory", "knows"), ("putInsight", "hint")):
        await mutate(client, field, "sessionId", input=f'{{sessionId: "{name}-a", content: "{content}"}}')
    await mutate(client, "archiveSession", "session { id }", id=f'"{name}"')
    query = """query($under: ID, $ids: [ID!], $status: SessionStatus, $behind: Boolean, $first: Int! = 100,
        $after: String, $since: DateTime) {
      digests(underId: $under, ids: $ids, status: $status, memoryBehind: $behind, first: $first, after: $after,
          appendedSince: $since) {
        asOf pageInfo { hasNextPage endCursor } edges { cursor node { id } }
        nodes { id label status memory { content atSeq } insight { content } turnCount head updatedAt lastEventAt
          node { depth } }
      }
    }"""

    async def ids(**arguments: Any) -> list[str]:
        found = (await client.run(query, **arguments))["digests"]
        assert [edge["node"]["id"] for edge in found["edges"]] == [row["id"] for row in found["nodes"]]
        return [row["id"] for row in found["nodes"]]

    before = (await client.run(query, under=name))["digests"]["nodes"]
    assert [row["id"] for row in before] == [name, f"{name}-a", f"{name}-b"]
    assert before[1]["memory"] == {"content": "knows", "atSeq": 2}
    assert (before[1]["insight"], before[1]["node"]) == ({"content": "hint"}, {"depth": 1})
    assert (before[0]["lastEventAt"], before[0]["head"]) == (None, 0)
    assert await ids(under=name, status="ARCHIVED") == [name]
    assert await ids(under=name, behind=True) == [f"{name}-b"]
    assert await ids(under=name, behind=False) == [name, f"{name}-a"]
    assert await ids(under=name, since=before[1]["lastEventAt"]) == [f"{name}-a", f"{name}-b"]
    assert set(await ids(ids=[f"{name}-b", f"{name}-none", name])) == {name, f"{name}-b"}
    first = (await client.run(query, under=name, first=1))["digests"]
    await append(client, f"{name}-b", *texts(1, 2))
    second = (await client.run(query, under=name, first=2, after=first["pageInfo"]["endCursor"]))["digests"]
    assert first["pageInfo"]["hasNextPage"] and not second["pageInfo"]["hasNextPage"]
    assert [row["id"] for row in second["nodes"]] == [f"{name}-a", f"{name}-b"]
    assert second["asOf"] == first["asOf"]
    after = (await client.run(query, under=name))["digests"]["nodes"]
    assert after[:2] == before[:2]
    one = await client.run("query($id: ID!) { digest(id: $id) { id memory { content } node { id } } }", id=f"{name}-a")
    assert one["digest"] == {"id": f"{name}-a", "memory": {"content": "knows"}, "node": {"id": f"{name}-a"}}


async def test_as_of_is_where_the_next_collection_starts(client: Client, name: str) -> None:
    """It misses no later change."""
    await create(client, name)
    query = """query($under: ID!, $since: DateTime) {
      digests(underId: $under, updatedSince: $since) { asOf nodes { id head } } }"""
    as_of = (await client.run(query, under=name))["digests"]["asOf"]
    await append(client, name, *texts(1))
    found = (await client.run(query, under=name, since=as_of))["digests"]
    assert found["nodes"] == [{"id": name, "head": 1}]
    later = (await client.run(query, under=name, since="9999-01-01T00:00:00Z"))["digests"]
    assert later["nodes"] == []


async def test_keys_of_create_and_fork_make_one_session(client: Client, name: str) -> None:
    await create(client, name)
    for field, kind, input in (
        ("createSession", "CreateSessionInput", {"parentId": name}),
        ("forkSession", "ForkSessionInput", {"sourceId": name}),
    ):
        query = f"mutation($input: {kind}!) {{ {field}(input: $input) {{ session {{ id }} }} }}"
        key = f"{name}-{field}"
        made = [await client.run(query, input={**input, "idempotencyKey": key}) for _ in range(2)]
        assert made[0] == made[1]
        refusal = await client.refusal(query, input={**input, "idempotencyKey": key, "label": "Other"})
        assert refusal.code == "IDEMPOTENCY_MISMATCH"
    assert (await node(client, name))["childCount"] == 2


async def test_a_repeated_key_gets_the_first_answer_however_late(client: Client, name: str) -> None:
    await create(client, name)
    first = await append(client, name, *texts(2), idempotencyKey="k")
    for seq in range(2, 22):
        await append(client, name, *texts(1, seq))
    await mutate(client, "archiveSession", "session { id }", id=f'"{name}"')
    assert await append(client, name, *texts(2), idempotencyKey="k") == {**first, "duplicate": True}
    query = "mutation($input: AppendEventsInput!) { appendEvents(input: $input) { head } }"
    refusal = await client.refusal(query, input={"sessionId": name, "events": texts(3), "idempotencyKey": "k"})
    assert refusal.code == "IDEMPOTENCY_MISMATCH"
    assert len(await log(client, name)) == 22


async def test_a_batch_keeps_its_order_and_refuses_each_append_separately(client: Client, name: str) -> None:
    for part in "ab":
        await create(client, f"{name}-{part}")

    def one(part: str, *contents: str, **given: Any) -> dict[str, Any]:
        return {"sessionId": f"{name}-{part}", "events": [user(content) for content in contents], **given}

    query = """mutation($inputs: [AppendEventsInput!]!) { appendBatch(inputs: $inputs) { results {
      sessionId code message head payload { firstSeq head duplicate events { seq } session { head } }
    } } }"""
    bad = {"sessionId": f"{name}-a", "events": [user("x"), {"turnEnd": {"turnId": "never"}}]}
    bad_card = {"sessionId": f"{name}-a", "events": [{"card": {"cardType": "Form"}}]}
    inputs = [
        one("a", "0", "1"),
        one("no", "x"),
        one("b", "0"),
        bad,
        one("a", "2", expectedHead=2),
        one("a", "x", expectedHead=2),
        bad_card,
        one("a", "3"),
        one("b", "1"),
    ]
    results = (await client.run(query, inputs=inputs))["appendBatch"]["results"]
    assert [row["sessionId"] for row in results] == [row["sessionId"] for row in inputs]
    codes = [row["code"] for row in results]
    assert codes == [None, "NOT_FOUND", None, "BAD_INPUT", None, "CONFLICT", "BAD_INPUT", None, None]
    assert [row["payload"] and row["payload"]["firstSeq"] for row in results] == [0, None, 0, None, 2, None, None, 3, 1]
    assert results[5]["head"] == 3
    assert "events[1].turnEnd.turnId" in results[3]["message"]
    assert "events[0].card" in results[6]["message"]
    assert [event["content"] for event in await log(client, f"{name}-a")] == ["0", "1", "2", "3"]
    assert [event["content"] for event in await log(client, f"{name}-b")] == ["0", "1"]


async def test_every_event_type_is_returned_with_all_its_fields(client: Client, name: str) -> None:
    await create(client, name)
    at = "2026-11-29T19:21:07.250Z"
    given: list[dict[str, Any]] = [
        {"turnStart": {"turnId": "t", "query": "How?", "agentFlow": "CHAT", "timestamp": at}},
        {"stepStart": {"stepId": "s", "agentName": "planner", "modelInput": [{"role": "user"}]}},
        {"userMessage": {"content": "How?", "blocks": [{"type": "image"}], "sourceEventSeqs": [0]}},
        {"systemMessage": {"content": "Rules."}},
        {"assistantChunk": {"delta": "So", "kind": "REASONING"}},
        {"assistantChunk": {"delta": "Th"}},
        {"assistantMessage": {"content": "Thus.", "reasoning": "Hm.", "blocks": {"a": 1}, "interrupted": True}},
        {"toolCall": {"callId": "c", "name": "add", "args": {"a": 1}}},
        {
            "toolResult": {
                "callId": "c",
                "result": 2,
                "error": "none",
                "blocks": [],
                "durationMs": 1.5,
                "truncated": True,
                "outputLength": 9,
                "retrieval": {"layer": "L0", "l0MatchCount": 1, "l1MatchCount": 2, "details": {"k": None}},
            }
        },
        {"card": {"cardType": "Form", "payload": "type: Form\n"}},
        {"surfaceHide": {"fromSeq": 2, "toSeq": 3, "reason": "old"}},
        {"custom": {"name": "n", "data": [None]}},
        {
            "stepEnd": {
                "stepId": "s",
                "modelOutput": "x",
                "thought": "t",
                "tokenCount": 3,
                "durationMs": 2,
                "error": "e",
            }
        },
        {"turnEnd": {"turnId": "t", "status": "FAILED", "error": "e", "selfEvaluation": {"score": 0.5}}},
        {"userMessage": {"content": "Short.", "surfaceOp": {"op": "REPLACE", "start": 3, "end": 3}}},
    ]
    await append(client, name, *given)
    op = "surfaceOp { op start end } sourceEventSeqs"
    query = f"""query($id: ID!) {{ session(id: $id) {{ events {{ events {{
      __typename seq type timestamp turnId stepId
      ... on TurnStart {{ query agentFlow }} ... on StepStart {{ agentName modelInput }}
      ... on UserMessage {{ content blocks {op} }} ... on SystemMessage {{ content {op} }}
      ... on AssistantMessage {{ content reasoning blocks interrupted {op} }}
      ... on AssistantChunk {{ delta kind }} ... on ToolCall {{ callId name args }}
      ... on ToolResult {{ callId result error blocks durationMs truncated outputLength
        retrieval {{ layer l0MatchCount l1MatchCount details }} {op} }}
      ... on CardEvent {{ cardType payload }} ... on SurfaceHide {{ fromSeq toSeq reason }}
      ... on CustomEvent {{ name data }}
      ... on StepEnd {{ modelOutput thought tokenCount durationMs error }}
      ... on TurnEnd {{ status error selfEvaluation }}
    }} }} }} }}"""
    found = (await client.run(query, id=name))["session"]["events"]["events"]
    kinds = {"Card": "CardEvent", "Custom": "CustomEvent"}
    defaults: dict[str, Any] = {
        "kind": "TEXT",
        "interrupted": False,
        "truncated": False,
        "surfaceOp": {"op": "APPEND", "start": None, "end": None},
        "turnId": "t",
        "stepId": "s",
    }
    outside = {0: (("stepId", None),), 13: (("stepId", None),), 14: (("turnId", None), ("stepId", None))}
    assert len(found) == len(given)
    for seq, (event, draft) in enumerate(zip(found, given, strict=True)):
        ((kind, fields),) = draft.items()
        title = kind[0].upper() + kind[1:]
        assert event.pop("__typename") == kinds.get(title, title)
        assert event.pop("seq") == seq
        assert event.pop("type").replace("_", "").lower() == kind.lower()
        moment = event.pop("timestamp")
        assert moment == at if seq == 0 else moment.endswith("Z")
        wanted = {**{name: value for name, value in defaults.items() if name in event}, **fields}
        wanted.update(outside.get(seq, ()))
        wanted.pop("timestamp", None)
        assert {name: value for name, value in event.items() if value is not None} == {
            name: value for name, value in wanted.items() if value is not None
        }, kind


async def test_a_card_may_be_given_as_json(client: Client, name: str) -> None:
    await create(client, name)
    card = {"type": "Table", "rows": [["a", None], [1.5, True]], "title": "Ü: x"}
    await append(client, name, {"card": {"cardType": "Table", "card": card}})
    events = "events { events { ... on CardEvent { payload } } }"
    found = (await session(client, name, events))["events"]["events"]
    assert yaml.safe_load(found[0]["payload"]) == card


async def test_an_append_answers_with_its_events_and_its_session(client: Client, name: str) -> None:
    await create(client, name)
    query = """mutation($input: AppendEventsInput!) { appendEvents(input: $input) {
      firstSeq head events { id seq ... on UserMessage { content } } session { id head memory { content } } } }"""
    found = (await client.run(query, input={"sessionId": name, "events": texts(2)}))["appendEvents"]
    assert [(event["seq"], event["content"]) for event in found["events"]] == [(0, "message 0"), (1, "message 1")]
    assert found["session"] == {"id": name, "head": 2, "memory": None}
    assert [event["id"] for event in found["events"]] == [event["id"] for event in await log(client, name)]
