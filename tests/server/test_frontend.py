"""The page at /: served if it is built, under a strict content policy; the server runs without it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    NameNode,
    OperationDefinitionNode,
    SelectionSetNode,
    Visitor,
    parse,
    print_ast,
    visit,
)

from server import trusted_documents
from server.app import create_app
from server.settings import Settings
from tests import paths

OPERATIONS = paths.ROOT / "frontend-example" / "src"


def client(tmp_path: Path, page: Path) -> httpx.AsyncClient:
    """A client of an application with its page in this folder. Its store stays closed."""
    app = create_app(Settings(data_dir=tmp_path / "data", frontend_dir=page))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A folder as a build leaves it."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Sapwood</title>")
    (folder / "assets" / "index-1a2b.js").write_text("export {}")
    return folder


async def test_the_page_is_revalidated_and_its_assets_are_cached(tmp_path: Path, page: Path) -> None:
    async with client(tmp_path, page) as http:
        index = await http.get("/")
        asset = await http.get("/assets/index-1a2b.js")
        again = await http.get("/", headers={"if-none-match": index.headers["etag"]})
    assert (index.status_code, index.headers["cache-control"]) == (200, "no-cache")
    assert index.headers["content-type"].startswith("text/html")
    assert (asset.status_code, asset.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert again.status_code == 304


async def test_the_policy_allows_nothing_but_the_page_itself(tmp_path: Path, page: Path) -> None:
    async with client(tmp_path, page) as http:
        response = await http.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/assets/no.js", "/assets/..%2Findex.html", "/other", "/index.html"])
async def test_nothing_else_is_served(tmp_path: Path, page: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    async with client(tmp_path, page) as http:
        assert (await http.get(path)).status_code == 404


async def test_the_page_accepts_only_reading_methods(tmp_path: Path, page: Path) -> None:
    async with client(tmp_path, page) as http:
        assert (await http.post("/")).status_code == 405


async def test_without_a_page_the_server_runs(tmp_path: Path) -> None:
    async with client(tmp_path, tmp_path / "nowhere") as http:
        assert (await http.get("/")).status_code == 404
        assert (await http.get("/healthz")).status_code == 200


class _WithTypeNames(Visitor):
    """Adds `__typename` to each selection, as caching clients do."""

    def leave_field(self, node: FieldNode, *_: Any) -> Any:
        if node.selection_set is None:
            return None
        named = FieldNode(name=NameNode(value="__typename"))
        selections = SelectionSetNode(selections=(*node.selection_set.selections, named))
        return FieldNode(
            alias=node.alias,
            name=node.name,
            arguments=node.arguments,
            directives=node.directives,
            selection_set=selections,
        )


async def test_each_operation_of_the_page_is_a_trusted_document(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", documents=OPERATIONS, documents_only=True)
    schema, trusted = trusted_documents.build(settings)
    found = {path: parse(path.read_text()) for path in OPERATIONS.rglob("*.graphql")}
    names = set()
    for path, document in found.items():
        fragments = [node for node in document.definitions if isinstance(node, FragmentDefinitionNode)]
        for operation in document.definitions:
            if isinstance(operation, OperationDefinitionNode) and operation.name is not None:
                sent = DocumentNode(definitions=(operation, *_used(operation, fragments)))
                text = print_ast(visit(sent, _WithTypeNames()))
                assert trusted.text(text, None) == text, f"{path}: {operation.name.value}"
                assert schema.documents.faults(schema.documents.of(text)) == []
                names.add(operation.name.value)
    assert len(names) > 10


def _used(node: Any, fragments: Sequence[FragmentDefinitionNode]) -> list[FragmentDefinitionNode]:
    """The fragments that an operation uses, directly or through others."""
    text = print_ast(node)
    direct = [fragment for fragment in fragments if f"...{fragment.name.value}\n" in text]
    found = dict.fromkeys(fragment.name.value for fragment in direct)
    for fragment in direct:
        found |= dict.fromkeys(inner.name.value for inner in _used(fragment, fragments))
    return [fragment for fragment in fragments if fragment.name.value in found]
