"""Common attacks over HTTP and sockets: bombs, and the twelve checks of graphql-cop."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import get_introspection_query

from tests import paths
from tests.schema.engine import bombs
from tests.server.client import IN_TIME, Client, Refused, Socket
from tests.server.documents import DOCUMENTS, TEXT
from tests.server.process import Server

VIEWER = "{ viewer { space } }"
CHECKS: dict[str, dict[str, Any]] = {
    "alias overloading": {"query": f"query cop {{ {' '.join(f'alias{n}:__typename' for n in range(101))} }}"},
    "directive overloading": {"query": "query cop { __typename @aa@aa@aa@aa@aa@aa@aa@aa@aa@aa }"},
    "circular introspection": {"query": bombs.circular(4)},
    "field duplication": {"query": f"query cop {{ {'__typename ' * 500} }}"},
    "circular fragments": {
        "query": "{ __schema { ...A } } fragment A on __Schema { __typename ...B } fragment B on __Schema { ...A }"
    },
}
"""Checks whose documents must be refused whole, whatever the settings."""


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A server, which must end with 0 and without a traceback."""
    server = Server(folder / "data", folder / "log", *options)
    server.start()
    yield server
    assert server.end() == 0
    assert "Traceback" not in server.output


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that runs trusted documents only."""
    folder = tmp_path_factory.mktemp("closed")
    documents = DOCUMENTS.written(folder / "documents")
    with serving(folder, "--documents", str(documents), "--documents-only") as server:
        yield server


@pytest.fixture(scope="module")
def as_it_is(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with default settings."""
    with serving(tmp_path_factory.mktemp("open")) as server:
        yield server


@pytest.fixture(params=["as_it_is", "closed"])
def either(request: pytest.FixtureRequest) -> Server:
    """A server with default settings, and one that runs trusted documents only."""
    found: Server = request.getfixturevalue(request.param)
    return found


def post(server: Server, content: Any, **headers: str) -> httpx.Response:
    """The answer to a body."""
    given = {"content-type": "application/json", **headers}
    return httpx.post(server.graphql, content=json.dumps(content), headers=given, timeout=IN_TIME, verify=False)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_of_graphql_cop_finds_nothing(either: Server, name: str) -> None:
    answer = post(either, CHECKS[name]).json()
    assert "data" not in answer or answer["data"] is None
    assert len(answer["errors"]) < 10


def test_batches_are_refused(either: Server) -> None:
    answer = post(either, [{"query": "query cop { __typename }"}] * 10)
    assert answer.status_code == 400 and "data" not in answer.text


def test_nothing_is_traced(either: Server) -> None:
    for query in ("query cop { __typename }", "qwerty cop { abc }"):
        answer = post(either, {"query": query})
        assert not {"tracing", "exception", "stacktrace"} & set(re.findall(r"\w+", answer.text.lower()))


def test_mutations_by_get_are_refused(either: Server) -> None:
    answer = httpx.get(either.graphql, params={"query": "mutation { __typename }"}, verify=False)
    assert answer.status_code in (403, 405) and "data" not in answer.json()


def test_forms_are_refused(either: Server) -> None:
    """Both url-encoded bodies and parameters of a POST without a body."""
    for answer in (
        httpx.post(either.graphql, data={"query": VIEWER}, verify=False),
        httpx.post(either.graphql, params={"query": "query {__typename}"}, verify=False),
    ):
        assert answer.status_code == 415 and "data" not in answer.json()


def test_there_is_no_ide_with_documents_only(closed: Server) -> None:
    answer = httpx.get(closed.graphql, headers={"accept": "text/html"}, verify=False)
    assert not re.search("graphiql|playground", answer.text.lower())


def test_only_trusted_documents_run_with_documents_only(closed: Server) -> None:
    """Introspection is refused too, names are not suggested, and untrusted queries are refused by GET."""
    for query in ("{ __typename }", "query { __schema { directive } }", get_introspection_query(), "{ viewr }"):
        answer = post(closed, {"query": query})
        assert answer.status_code == 403
        [error] = answer.json()["errors"]
        assert error["extensions"]["code"] == "FORBIDDEN" and "Did you mean" not in error["message"]
    assert "data" not in httpx.get(closed.graphql, params={"query": "{__typename}"}, verify=False).json()
    assert post(closed, {"query": TEXT}).json()["data"] == {"viewer": {"space": "default"}}


def test_defaults_are_as_open_as_documented(as_it_is: Server) -> None:
    assert "__schema" in post(as_it_is, {"query": get_introspection_query()}).json()["data"]
    assert "Did you mean" in post(as_it_is, {"query": "query { __schema { directive } }"}).text
    assert httpx.get(as_it_is.graphql, params={"query": "{__typename}"}, verify=False).json()["data"]
    page = " ".join((paths.DOCS / "security.md").read_text().split())
    assert "Open to everybody by default, for use on loopback: introspection, suggestions of names" in page


async def test_bombs_are_refused_over_http_and_sockets(client: Client, socket: Socket) -> None:
    """Each is refused soon, and the server keeps running."""
    for text, counted in bombs.TOO_COMPLEX.values():
        over_http = await client.refusal(text)
        over_socket = await (await socket.subscribe(text)).refusal()
        for refusal in (over_http, over_socket):
            assert refusal.code == "QUERY_TOO_COMPLEX" and counted in refusal.message
    for text in bombs.INVALID.values():
        assert (await client.refusal(text)).code == "BAD_INPUT"
    assert await client.run(VIEWER) == {"viewer": {"space": "default"}}


async def test_each_answer_has_its_cost(client: Client, socket: Socket, name: str) -> None:
    query = "query($n: Int!) { listSessions(first: $n) { nodes { id } } }"
    for count in (0, 3):
        answer = await client.answer(query, {"n": count})
        assert answer["extensions"] == {"cost": {"requested": 1 + count, "maximum": 100_000}}
    stream = await socket.subscribe(query, n=2)
    assert (await stream.message())["payload"]["extensions"]["cost"]["requested"] == 3
    failed = await client.answer('{ session(id: "no such id") { id } }')
    assert failed["extensions"]["cost"]["requested"] == 1


async def test_nested_pages_are_refused_for_their_cost(client: Client, socket: Socket) -> None:
    """A page of the largest size is not refused."""
    query = """query($n: Int!, $m: Int!) { listSessions(first: $n) { nodes {
      id events(first: $m) { events { seq } } } } }"""
    await client.run(query, n=90, m=1000)
    with pytest.raises(Refused) as refused:
        await client.run(query, n=200, m=1000)
    assert refused.value.errors[0]["extensions"] == {
        "code": "QUERY_TOO_COMPLEX",
        "counted": "cost in nodes",
        "value": 1 + 200 * 1002,
        "limit": 100_000,
    }
    assert (await (await socket.subscribe(query, n=200, m=1000)).refusal()).code == "QUERY_TOO_COMPLEX"
    fields = "id label status turnCount head lastEventAt updatedAt memory { content version } insight { content }"
    await client.run(f"{{ digests(first: 10000) {{ asOf nodes {{ {fields} node {{ depth }} }} }} }}")
    ids = [f"x{index}" for index in range(1_000)]
    await client.run("query($ids: [ID!]!) { sessions(ids: $ids) { id label status head } }", ids=ids)
    refusal = await client.refusal("query($n: Int!) { listSessions(first: $n) { nodes { id } } }", n=100_000)
    assert refusal.code == "BAD_INPUT"
