"""JSON in and out of requests, without losing integers, surrogates or exactness on the way."""

import json
from typing import Any

import orjson
from pydantic_core import from_json

from storage import text


def decode(source: str | bytes) -> Any:
    """The value of a JSON text. Raises JSONDecodeError.

    Integers of up to 4,300 digits stay integers, lone surrogates become U+FFFD, and nesting is bounded by the
    interpreter alone; the scalars' own rules refuse what is too much.
    """
    try:
        return from_json(source, allow_inf_nan=False)
    except ValueError:
        return _decode_slowly(source)


def _decode_slowly(source: str | bytes) -> Any:
    try:
        # From bytes, json would take UTF-16 and UTF-32 too.
        plain = source if isinstance(source, str) else source.decode("utf-8-sig")
        return _clean(json.loads(plain, parse_constant=_refuse))
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:  # too deep, no UTF-8, or an integer that is too long
        raise json.JSONDecodeError(f"not readable as JSON: {error}", "", 0) from error


def _clean(value: Any) -> Any:
    """The value with its lone surrogates replaced: no answer that names one could be encoded."""
    if isinstance(value, str):
        return text.clean(value)
    if isinstance(value, dict):
        fields = {}
        for name, item in value.items():
            fields[text.clean(name)] = _clean(item)
        return fields
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_clean(item))  # noqa: PERF401  # a comprehension takes a second stack frame a level
        return items
    return value


def _refuse(constant: str) -> Any:
    raise json.JSONDecodeError(f"{constant} is not JSON", constant, 0)


def encode(value: Any) -> bytes:
    """A response as JSON; fragments of JSON text in it are spliced in as they are."""
    return orjson.dumps(value)
