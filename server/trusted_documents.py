"""Trusted documents: operations that the server knows at start, and that clients name by id.

https://github.com/graphql/graphql-over-http/blob/main/spec/Appendix%20A%20--%20Persisted%20Documents.md
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    Visitor,
    parse,
    print_ast,
    visit,
)

from schema.build import Schema, build_schema
from schema.engine import limits
from server.settings import Settings
from storage import errors
from storage.errors import StartupError

MAX_CACHED = 512
"""Number of texts for which it is cached whether they are trusted but for their form."""
APOLLO = "apollo-persisted-query-manifest"


def hash_of(text: str) -> str:
    """The default id of a document: the SHA-256 of its text in UTF-8, in hex."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class TrustedDocuments:
    """Documents by id. With `only`, no others may run."""

    def __init__(self, texts: Mapping[str, str], only: bool) -> None:
        self._texts = texts
        self._trusted = frozenset(texts.values())
        self._normal = frozenset(_normal(parse(text)) for text in self._trusted) if only else frozenset[str]()
        self._known_as_normal = lru_cache(maxsize=MAX_CACHED)(self._is_normal)
        self._only = only

    def text(self, query: str | None, id: str | None) -> str:
        """The text of the document that a request names by text, by id, or by both.

        Raises BadInput if both are missing or they differ, NotFound for an unknown id, Forbidden for a text that is not
        trusted where only trusted documents run.
        """
        if id is not None:
            id = id.removeprefix("sha256:")
            found = self._texts.get(id)
            if found is None and query is None:
                raise errors.NotFound(f"documentId: no trusted document has the id {id[:100]!r}")
            if query is not None and query != found and hash_of(query) != id.lower():
                raise errors.BadInput("query: is not the document that documentId names")
            query = query if found is None else found
        if query is None:
            raise errors.BadInput("query: is missing; send query or documentId")
        if self._only and query not in self._trusted and not self._known_as_normal(query):
            raise errors.Forbidden("query: is not a trusted document, and this server runs no others")
        return query

    def _is_normal(self, query: str) -> bool:
        """Whether a text equals a trusted document, apart from white space, order and added `__typename`s."""
        if len(query) > limits.MAX_CHARACTERS:
            return False
        try:
            return _normal(parse(query, max_lexical_tokens=limits.MAX_TOKENS)) in self._normal
        except GraphQLError:
            return False


def _normal(document: DocumentNode) -> str:
    """The document's text without `__typename`s, its definitions sorted."""
    plain = visit(document, _WithoutTypeNames())
    return "\n".join(sorted(map(print_ast, plain.definitions)))


class _WithoutTypeNames(Visitor):
    def enter_field(self, node: FieldNode, *_: Any) -> Any:
        return self.REMOVE if node.name.value == "__typename" and node.alias is None else None


def build(settings: Settings) -> tuple[Schema, TrustedDocuments]:
    """The schema and the trusted documents that the settings ask for. Raises StartupError for a wrong document."""
    schema = build_schema(settings.max_cost, settings.introspection and not settings.documents_only)
    return schema, _trusted(settings, schema)


def _trusted(settings: Settings, schema: Schema) -> TrustedDocuments:
    if settings.documents is None:
        if settings.documents_only:
            raise StartupError("--documents-only needs --documents: name a folder or a manifest")
        return TrustedDocuments({}, only=False)
    texts: dict[str, str] = {}
    for id, text, location in _read(settings.documents):
        if texts.setdefault(id, text) != text:
            raise StartupError(f"{location}: the id {id!r} is used for two documents")
        try:
            faults = schema.documents.keep(text)
        except GraphQLError as error:
            faults = [error]
        if faults:
            raise StartupError(f"{location}: {faults[0].message}")
    return TrustedDocuments(texts, settings.documents_only)


def _read(source: Path) -> Iterator[tuple[str, str, str]]:
    """Yields each document's id, text and location."""
    if source.is_dir():
        yield from _of_folder(source)
    elif source.is_file():
        yield from _of_manifest(source)
    else:
        raise StartupError(f"{source}: is neither a folder of .graphql files nor a manifest")


def _of_folder(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields each file that contains all its fragments, verbatim, and each operation, printed with its fragments."""
    files = {path: _text(path) for path in sorted(folder.rglob("*.graphql"))}
    if not files:
        raise StartupError(f"{folder}: holds no .graphql files")
    documents: dict[Path, DocumentNode] = {}
    fragments: dict[str, FragmentDefinitionNode] = {}
    for path, text in files.items():
        try:
            documents[path] = parse(text)
        except GraphQLError as error:
            raise StartupError(f"{path}: {_with_line(error)}") from error
        for node in documents[path].definitions:
            if isinstance(node, FragmentDefinitionNode) and fragments.setdefault(node.name.value, node) is not node:
                raise StartupError(f"{path}: the fragment {node.name.value} is defined twice in the folder")
    for path, document in documents.items():
        operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
        used = [node for operation in operations for node in _with_fragments(operation, fragments)]
        if operations and all(node in document.definitions for node in used):
            for text in dict.fromkeys((files[path], files[path].strip())):
                yield hash_of(text), text, str(path)
        for operation in operations:
            nodes = _with_fragments(operation, fragments)
            text = print_ast(DocumentNode(definitions=tuple(nodes)))
            yield hash_of(text), text, str(path)


def _with_fragments(
    operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> list[OperationDefinitionNode | FragmentDefinitionNode]:
    """An operation and the fragments it uses, in order of first use. Unknown ones are left to validation."""
    found: dict[str, FragmentDefinitionNode] = {}

    class Spreads(Visitor):
        def enter_fragment_spread(self, node: FragmentSpreadNode, *_: Any) -> None:
            name = node.name.value
            if name in fragments and name not in found:
                found[name] = fragments[name]

    visit(operation, Spreads())
    visited = 0
    while visited < len(found):
        visit(list(found.values())[visited], Spreads())
        visited += 1
    return [operation, *found.values()]


def _of_manifest(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yields the documents of {id: text}, as Relay's compiler writes it, or of Apollo's manifest."""
    try:
        manifest = json.loads(_text(path))
    except ValueError as error:
        raise StartupError(f"{path}: is not JSON ({error})") from error
    if isinstance(manifest, dict) and manifest.get("format") == APOLLO:
        try:
            found = {operation["id"]: operation["body"] for operation in manifest["operations"]}
        except (KeyError, TypeError) as error:
            raise StartupError(f"{path}: an operation of the manifest needs id and body") from error
    else:
        found = manifest
    if not isinstance(found, dict) or not all(isinstance(item, str) for pair in found.items() for item in pair):
        raise StartupError(f"{path}: must be a JSON object of documents by id, or {APOLLO}")
    for id, text in found.items():
        yield id.removeprefix("sha256:"), text, f"{path}: {id}"


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"{path}: can't be read ({error})") from error


def _with_line(error: GraphQLError) -> str:
    location = error.locations[0] if error.locations else None
    return error.message if location is None else f"line {location.line}: {error.message}"
