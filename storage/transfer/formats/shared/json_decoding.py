"""Decodes JSON: integers exactly, and numbers that JSON does not allow (NaN, 1e999) as strings."""

import json
import math
from typing import NamedTuple

import orjson

from storage import errors, text

LEAN_BYTES = 4 * 1024 * 1024
"""Longer texts are decoded by the standard library: orjson needs thirteen times their size in memory."""
_LONG_RUN = b"0" * 19
_HUGE = (b"0" * 20, b"-" + b"0" * 19)
"""How an integer of more than 64 bits looks with each digit replaced by 0."""
_DIGITS_AS_0 = b"".join(b"0" if byte in b"0123456789" else bytes([byte]) for byte in range(256))


class Decoded(NamedTuple):
    """A value; `bad_number` says what is wrong with the first number that became a string, if any did."""

    value: object
    bad_number: str = ""


def decode(source: bytes | str, location: str) -> object:
    """Decode JSON text. Raises BadInput, with the location, for anything else; NaN is not JSON.

    Raises UnicodeDecodeError for bytes that are not UTF-8.
    """
    value, bad_number = decode_leniently(source, location)
    if bad_number:
        raise errors.BadInput(f"{location}: {bad_number}")
    return value


def decode_leniently(source: bytes | str, location: str) -> Decoded:
    """Decode JSON text like `decode`, but turn NaN, infinities and numbers too large for a float into strings."""
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(content) <= LEAN_BYTES and not _has_huge_integer(content):  # orjson would round it
        try:
            return Decoded(orjson.loads(content))
        except orjson.JSONDecodeError:  # json gives a better message, and accepts lone surrogates
            pass
    characters = source if isinstance(source, str) else source.decode("utf-8", "surrogatepass")
    numbers = _Numbers()
    try:
        value = json.loads(characters, parse_constant=numbers.constant, parse_float=numbers.real)
        return Decoded(value, numbers.bad_number)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise errors.BadInput(f"{location}: not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise errors.BadInput(f"{location}: nested deeper than {text.MAX_NESTING} levels") from error
    except ValueError as error:
        raise errors.BadInput(f"{location}: not JSON: {error}") from error


def _has_huge_integer(content: bytes) -> bool:
    # A regular expression would take longer than decoding itself.
    zeros = content.translate(_DIGITS_AS_0)
    return _LONG_RUN in zeros and any(huge in zeros for huge in _HUGE)


class _Numbers:
    """Parses numbers; those that JSON does not allow stay strings."""

    def __init__(self) -> None:
        self.bad_number = ""

    def constant(self, name: str) -> str:
        self.bad_number = self.bad_number or f"not JSON: {name} is not a JSON number"
        return name

    def real(self, digits: str) -> float | str:
        number = float(digits)
        if math.isfinite(number):
            return number
        self.bad_number = self.bad_number or f"{digits[:40]} is beyond the range of numbers"
        return digits
