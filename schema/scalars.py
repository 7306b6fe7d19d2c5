"""DateTime and JSON. In Python an instant is ms since 1970 and a JSON value is its text."""

from typing import Any, NewType

import orjson
import strawberry
from graphql import Undefined, ValueNode, value_from_ast_untyped
from strawberry.types.scalar import ScalarDefinition

from storage import errors, text
from storage.events import Instant, JsonText

DateTime = NewType("DateTime", int)
JSON = NewType("JSON", str)


def _parse_instant(value: object) -> Instant:
    if not isinstance(value, str):
        raise errors.BadInput(f"DateTime: {str(value)[:80]!r} is not an ISO 8601 instant")
    return text.instant(value, "DateTime")


class _Json(str):
    """The text of a JSON variable; the class distinguishes it from a plain string inside a literal."""

    __slots__ = ()


def _parse_json(value: object) -> JsonText:
    return _Json(text.to_json(value, "JSON"))


def _parse_json_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> JsonText:
    """The text of a literal. During validation variables have no values yet; null stands in for them."""
    return text.to_json(_known(value_from_ast_untyped(node, variables)), "JSON")


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_known(item) for item in value]
    if isinstance(value, _Json):
        return text.from_json(value)
    return None if value is Undefined else value


def _splice(value: JsonText) -> orjson.Fragment:
    """The text as a fragment, which the response encoder copies without decoding it."""
    return orjson.Fragment(str(value))  # the encoder accepts no subclass of str, such as _Json


SCALARS: dict[object, ScalarDefinition] = {
    DateTime: strawberry.scalar(
        name="DateTime",
        description="ISO 8601 instant in UTC with millisecond precision, e.g. 2026-11-29T19:21:07.250Z. "
        "Input needs a zone, and may be spelled as in RFC 3339.",
        serialize=text.format_instant,
        parse_value=_parse_instant,
    ),
    JSON: strawberry.scalar(
        name="JSON",
        description="Any JSON value, kept exactly: key order, integers of up to 64 bits, floats. "
        "NaN, infinities and nesting over 500 are refused.",
        serialize=_splice,
        parse_value=_parse_json,
        parse_literal=_parse_json_literal,
    ),
}
