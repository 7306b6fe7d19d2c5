"""JSON decoding of requests and encoding of responses."""

import json
from typing import Any

import orjson
from pydantic_core import from_json

from storage import text


def decode(source: str | bytes) -> Any:
    """The value of a JSON text. Raises JSONDecodeError.

    Integers of up to 4,300 digits stay exact and lone surrogates become U+FFFD. Nesting is bounded only by the
    interpreter; the scalars have limits of their own.
    """
    try:
        return from_json(source, allow_inf_nan=False)
    except ValueError:
        return _decode_slowly(source)


def _decode_slowly(source: str | bytes) -> Any:
    try:
        # json.loads would accept bytes in UTF-16 and UTF-32.
        plain = source if isinstance(source, str) else source.decode("utf-8-sig")
        return _clean(json.loads(plain, parse_constant=_refuse))
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:  # too deep, not UTF-8, or an integer that is too long
        raise json.JSONDecodeError(f"not readable as JSON: {error}", "", 0) from error


def _clean(value: Any) -> Any:
    """Replaces lone surrogates, since an answer that quotes one could not be encoded."""
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
            items.append(_clean(item))  # noqa: PERF401  # a comprehension needs a second stack frame per level
        return items
    return value


def _refuse(constant: str) -> Any:
    raise json.JSONDecodeError(f"{constant} is not JSON", constant, 0)


def encode(value: Any) -> bytes:
    """Encodes a response as JSON, with `orjson.Fragment`s spliced in verbatim."""
    return orjson.dumps(value)
