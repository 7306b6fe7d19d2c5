"""JSON text into values: integers exactly, and numbers that are none as their texts."""

import json
import math
from typing import NamedTuple

import orjson

from storage import errors, text

LEAN_BYTES = 4 * 1024 * 1024
"""A longer text is decoded by what needs no more memory than its value: orjson takes thirteen times the text."""
_LONG_RUN = b"0" * 19
_HUGE = (b"0" * 20, b"-" + b"0" * 19)
"""How an integer of more than 64 bits looks, each digit made a 0."""
_DIGITS_AS_0 = b"".join(b"0" if byte in b"0123456789" else bytes([byte]) for byte in range(256))


class Decoded(NamedTuple):
    """A value; `unreal` says what is wrong with the first number in it that is none and became a text, if any did."""

    value: object
    bad_number: str = ""


def decode(source: bytes | str, location: str) -> object:
    """The value of JSON text. Raises BadInput, naming the place, for anything else; NaN is not JSON.

    Raises UnicodeDecodeError for bytes that are not UTF-8.
    """
    value, bad_number = decode_leniently(source, location)
    if bad_number:
        raise errors.BadInput(f"{location}: {bad_number}")
    return value


def decode_leniently(source: bytes | str, location: str) -> Decoded:
    """The same, but NaN, infinities and numbers beyond what a float holds become texts."""
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(content) <= LEAN_BYTES and not _has_huge_integer(content):  # which orjson would round
        try:
            return Decoded(orjson.loads(content))
        except orjson.JSONDecodeError:  # what follows says why, and takes lone surrogates
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
    # A pattern would take longer than all of decoding.
    zeros = content.translate(_DIGITS_AS_0)
    return _LONG_RUN in zeros and any(huge in zeros for huge in _HUGE)


class _Numbers:
    """Reads numbers, those that are none as their texts."""

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
