"""Trusted documents: by id over HTTP and sockets, exclusive with --documents-only, checked at start."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.client import Client, Socket, Stream
from tests.server.commands.runner import run
from tests.server.documents import DOCUMENTS, EVENTS, PRINTED, TEXT, TWO, hash_of
from tests.server.operations import append, create, texts
from tests.server.process import Server

VIEWER = {"viewer": {"space": "default"}}
UNTRUSTED = "{ viewer { space } }"


@pytest.fixture(scope="module", params=["folder", "relay", "apollo"])
def form(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def served(form: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that runs only the documents, in one of their forms."""
    folder = tmp_path_factory.mktemp("documents")
    write = {"folder": DOCUMENTS.written, "relay": DOCUMENTS.relay, "apollo": DOCUMENTS.apollo}[form]
    server = Server(
        folder / "data", folder / "log", "--documents", str(write(folder / "documents")), "--documents-only"
    )
    server.start()
    yield server
    server.end()


def ids(form: str) -> tuple[str, str]:
    """The ids of the first operation and of the second, printed one."""
    return (hash_of(TEXT), hash_of(PRINTED)) if form == "folder" else ("v1", "two")


async def ask(client: Client, **body: Any) -> tuple[int, dict[str, Any]]:
    """Status and answer of a request with these parameters."""
    answer = await client.post(json.dumps(body))
    return answer.status_code, answer.json()


async def test_documents_run_by_id_and_by_text(served: Server, form: str) -> None:
    viewer, two = ids(form)
    async with Client(lambda: served.graphql) as client:
        for given in (
            {"documentId": viewer},
            {"documentId": f"sha256:{viewer}"},
            {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": viewer}}},
            {"query": TEXT},
            {"query": TEXT, "documentId": viewer},
        ):
            status, answer = await ask(client, **given)
            assert (status, answer["data"]) == (200, VIEWER), given
        for given in ({"documentId": two}, {"query": PRINTED}):
            status, answer = await ask(client, **given, variables={"n": 5}, operationName="Two")
            assert answer["data"] == {"listSessions": {"nodes": []}}


async def test_white_space_and_type_names_do_not_change_a_document(served: Server, form: str) -> None:
    async with Client(lambda: served.graphql) as client:
        for text in (f" {TEXT}\n", TEXT.replace("space", "space __typename")):
            status, answer = await ask(client, query=text)
            assert (status, answer["data"]["viewer"]["space"]) == (200, "default"), text


def test_documents_run_by_get(served: Server, form: str) -> None:
    parameters = {"documentId": ids(form)[1], "variables": '{"n": 1}'}
    answer = httpx.get(served.graphql, params=parameters, verify=False)
    assert answer.json()["data"] == {"listSessions": {"nodes": []}}


async def test_nothing_else_runs(served: Server, form: str) -> None:
    viewer, two = ids(form)
    async with Client(lambda: served.graphql) as client:
        for given, code in (
            ({"query": UNTRUSTED}, "FORBIDDEN"),
            ({"query": TEXT.replace("space", "space role")}, "FORBIDDEN"),
            ({"query": "{" * 3_000}, "FORBIDDEN"),
            ({"query": TEXT, "documentId": two}, "BAD_INPUT"),
            ({"query": UNTRUSTED, "documentId": viewer}, "BAD_INPUT"),
            ({"query": UNTRUSTED, "documentId": hash_of(UNTRUSTED)}, "FORBIDDEN"),
            ({"documentId": "nonsense"}, "NOT_FOUND"),
            ({"documentId": ""}, "NOT_FOUND"),
            ({"documentId": 5}, "BAD_INPUT"),
            ({"extensions": {"persistedQuery": {"sha256Hash": hash_of(UNTRUSTED)}}}, "NOT_FOUND"),
            ({"extensions": {"persistedQuery": {"sha256Hash": [1]}}}, "BAD_INPUT"),
            ({"extensions": {"persistedQuery": "x"}}, "BAD_INPUT"),
            ({}, "BAD_INPUT"),
        ):
            status, answer = await ask(client, **given)
            assert answer["errors"][0]["extensions"]["code"] == code, given
            assert "data" not in answer and (status == 403) is (code == "FORBIDDEN"), given


async def begin(socket: Socket, **payload: Any) -> Stream:
    """Starts an operation with this payload."""
    stream = Stream(socket, uuid.uuid4().hex)
    socket._streams[stream.id] = stream
    await socket.send({"id": stream.id, "type": "subscribe", "payload": payload})
    return stream


async def test_sockets_take_ids_and_refuse_what_is_not_trusted(served: Server, form: str) -> None:
    async with Socket.open(served.socket) as socket:
        assert await (await begin(socket, documentId=ids(form)[0])).take(1) == [VIEWER]
        for payload, code in (({"query": UNTRUSTED}, "FORBIDDEN"), ({"documentId": "nonsense"}, "NOT_FOUND")):
            assert (await (await begin(socket, **payload)).refusal()).code == code
        assert await (await begin(socket, query=TEXT)).take(1) == [VIEWER]


async def test_files_of_a_folder_run_verbatim_and_each_operation_by_itself(tmp_path: Path) -> None:
    """In a file of several operations the named one runs; so do a subscription, and untrusted documents."""
    folder = DOCUMENTS.written(tmp_path / "documents")
    (folder / "both.graphql").write_text("query A { viewer { space } } query B { viewer { role } }")
    server = Server(tmp_path / "data", tmp_path / "log", "--documents", str(folder))
    server.start()
    try:
        async with Client(lambda: server.graphql) as client, Socket.open(server.socket) as socket:
            id = hash_of((folder / "both.graphql").read_text())
            assert (await ask(client, documentId=id, operationName="B"))[1]["data"] == {"viewer": {"role": "ADMIN"}}
            assert (await ask(client, documentId=hash_of("query A {\n  viewer {\n    space\n  }\n}")))[1][
                "data"
            ] == VIEWER
            assert "errors" in (await ask(client, documentId=hash_of(TWO)))[1], "it lacks fragments"
            assert (await ask(client, query=UNTRUSTED))[1]["data"] == VIEWER
            hashed = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": hash_of(UNTRUSTED)}}}
            assert (await ask(client, query=UNTRUSTED, **hashed))[1]["data"] == VIEWER
            assert (await ask(client, query=TWO, **hashed))[1]["errors"][0]["extensions"]["code"] == "BAD_INPUT"
            await create(client, "x")
            live = await begin(socket, documentId=hash_of(EVENTS))
            for index in range(1_000):
                await append(client, "x", *texts(1, index))
                if not live.messages.empty():
                    break
            assert "spaceEvents" in await live.next()
    finally:
        assert server.end() == 0


@pytest.mark.parametrize(
    ("files", "location", "fault"),
    [
        ({"a.graphql": "{ viewer { nonsense } }"}, "a.graphql", "Cannot query field 'nonsense'"),
        ({"a.graphql": "{ viewer { space }"}, "a.graphql", "line 1: Syntax Error"),
        ({"a.graphql": TEXT, "b/c.graphql": "{ ...F }"}, "b/c.graphql", "Unknown fragment 'F'"),
        (
            {"a.graphql": "fragment F on Query { a }", "b.graphql": "fragment F on Query { b }"},
            "b.graphql",
            "F is defined",
        ),
        ({"a.graphql": "{ " + "viewer { space } " * 31 + "}"}, "a.graphql", "root fields: 31"),
        ({"a.graphql": "{ __schema { queryType { name } } }"}, "a.graphql", "introspection"),
        ({"a.txt": TEXT}, "", "holds no .graphql files"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_folder_with_a_fault_is_refused_at_start(
    tmp_path: Path, files: dict[str, str], location: str, fault: str, workers: str
) -> None:
    """One line names the file and the fault."""
    for name, content in files.items():
        (tmp_path / "documents" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "documents" / name).write_text(content)
    options = ("--documents", "documents", "--documents-only", "--workers", workers, "--port", "0")
    done = run("serve", *options, "--data-dir", tmp_path / "data", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"sapwood: documents{f'/{location}' if location else ''}: ") and fault in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"a": 5}', "must be a JSON object"),
        ('{"format": "apollo-persisted-query-manifest"}', "needs id and body"),
        ('{"a": "{ viewer { nonsense } }"}', "manifest.json: a: Cannot query field"),
    ],
)
def test_a_manifest_with_a_fault_is_refused_at_start(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    done = run("serve", "--documents", "manifest.json", "--port", "0", "--data-dir", tmp_path / "data", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("sapwood: manifest.json") and fault in done.stderr


def test_documents_only_needs_documents(tmp_path: Path) -> None:
    for options, fault in ((("--documents-only",), "--documents"), (("--documents", "none"), "neither a folder")):
        done = run("serve", *options, "--port", "0", "--data-dir", tmp_path / "data", cwd=tmp_path)
        assert done.returncode == 1 and fault in done.stderr
