"""Decodes JSON: numbers that events can't store (2**64, 1e999), or that JSON does not allow (NaN), as strings."""

import json
import math
from typing import NamedTuple

import orjson

from storage import errors, text

LEAN_BYTES = 4 * 1024 * 1024
"""Longer texts are decoded by the standard library: orjson needs thirteen times their size in memory."""
_DIGITS_OF_64_BITS = 20
_LONG_RUN = b"0" * 19
_HUGE = (b"0" * 20, b"-" + b"0" * 19)
"""How an integer of more than 64 bits looks with each digit replaced by 0."""
_DIGITS_AS_0 = b"".join(b"0" if byte in b"0123456789" else bytes([byte]) for byte in range(256))


class BadNumber(NamedTuple):
    """A number that became a string of its digits, and why. `is_json`: JSON allows it, but events can't store it."""

    reason: str
    is_json: bool


def worse(one: BadNumber | None, other: BadNumber | None) -> BadNumber | None:
    """Return the first of two bad numbers that JSON does not allow; the first if it allows both."""
    return other if one is None or (one.is_json and other is not None and not other.is_json) else one


class Decoded(NamedTuple):
    """A value, and the worst of the numbers in it that became strings, if any did."""

    value: object
    bad_number: BadNumber | None = None


def decode(source: bytes | str, location: str) -> object:
    """Decode JSON text. Raises BadInput, with the location, for anything else; NaN is not JSON.

    Numbers that events can't store become strings. Raises UnicodeDecodeError for bytes that are not UTF-8.
    """
    value, bad_number = decode_leniently(source, location)
    if bad_number is not None and not bad_number.is_json:
        raise errors.BadInput(f"{location}: {bad_number.reason}")
    return value


def decode_leniently(source: bytes | str, location: str) -> Decoded:
    """Decode JSON text like `decode`, but turn NaN and infinities into strings too."""
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(content) <= LEAN_BYTES and not _has_huge_integer(content):  # orjson would round it
        try:
            return Decoded(orjson.loads(content))
        except orjson.JSONDecodeError:  # json gives a better message, and accepts lone surrogates
            pass
    characters = source if isinstance(source, str) else source.decode("utf-8", "surrogatepass")
    numbers = _Numbers()
    try:
        value = json.loads(
            characters, parse_constant=numbers.constant, parse_float=numbers.real, parse_int=numbers.whole
        )
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
    """Parses numbers; those that can't be stored stay strings."""

    def __init__(self) -> None:
        self.bad_number: BadNumber | None = None

    def constant(self, name: str) -> str:
        self.bad_number = worse(self.bad_number, BadNumber(f"not JSON: {name} is not a JSON number", is_json=False))
        return name

    def real(self, digits: str) -> float | str:
        number = float(digits)
        return number if math.isfinite(number) else self._kept(digits, "beyond the range of numbers")

    def whole(self, digits: str) -> int | str:
        if len(digits) <= _DIGITS_OF_64_BITS and text.fits_64_bits(number := int(digits)):
            return number
        return self._kept(digits, "an integer of more than 64 bits")

    def _kept(self, digits: str, what: str) -> str:
        self.bad_number = worse(self.bad_number, BadNumber(f"{digits[:40]} is {what}", is_json=True))
        return digits
