"""A GraphQL request, read from the JSON that a client sent."""

from dataclasses import dataclass
from typing import Any, Self

from storage import errors


@dataclass(frozen=True, slots=True)
class Request:
    """The parameters of a GraphQL request. At least one of `query` and `document_id` is set."""

    query: str | None
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    document_id: str | None = None

    @classmethod
    def of(cls, given: Any) -> Self:
        """Reads the parameters of GraphQL over HTTP, which graphql-transport-ws shares. Raises BadInput."""
        if not isinstance(given, dict):
            raise errors.BadInput(f"a request must be a JSON object, not {_kind(given)}")
        query, variables, name = given.get("query"), given.get("variables"), given.get("operationName")
        extensions = given.get("extensions")
        if extensions is not None and not isinstance(extensions, dict):
            raise errors.BadInput(f"extensions: must be an object or null, not {_kind(extensions)}")
        id = _document_id(given.get("documentId"), extensions)
        if not isinstance(query, str) and (query is not None or id is None):
            raise errors.BadInput(f"query: must be a string, not {_kind(query)}")
        if variables is not None and not isinstance(variables, dict):
            raise errors.BadInput(f"variables: must be an object or null, not {_kind(variables)}")
        if name is not None and not isinstance(name, str):
            raise errors.BadInput(f"operationName: must be a string or null, not {_kind(name)}")
        return cls(query, variables, name, id)


def _document_id(id: Any, extensions: dict[str, Any] | None) -> str | None:
    """The document's id: `documentId`, else the hash that Apollo's clients send. Raises BadInput."""
    path = "documentId"
    if id is None and isinstance(query := (extensions or {}).get("persistedQuery"), dict):
        path, id = "extensions.persistedQuery.sha256Hash", query.get("sha256Hash")
    if id is not None and not isinstance(id, str):
        raise errors.BadInput(f"{path}: must be a string, not {_kind(id)}")
    return id


def _kind(value: Any) -> str:
    """JSON's name for the type of a value."""
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}.get(type(value), "a number")
