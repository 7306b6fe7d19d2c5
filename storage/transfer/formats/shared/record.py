"""A record of a document: a decoded JSON value, a broken one, or text that is not JSON."""

from typing import Any, NamedTuple

from storage import errors
from storage.transfer.formats.shared import limits
from storage.transfer.formats.shared.json_decoding import BadNumber, decode_leniently


class Record(NamedTuple):
    """A decoded JSON value; `location` names the document and the line or item.

    An item of a list in `PARTS` has the list's name as `part`. Fields after such a list come last, as a record whose
    part is `more`. `repaired`: bytes that are not UTF-8 were replaced by U+FFFD. `bad_number`: a number
    that became a string, as events can't store it or JSON does not allow it.
    """

    location: str
    value: Any
    part: str | None = None
    repaired: bool = False
    bad_number: BadNumber | None = None


class BrokenRecord(NamedTuple):
    """A record that could not be read, and the reason."""

    location: str
    reason: str

    def error(self) -> errors.BadInput:
        """Return the error that refuses it."""
        return errors.BadInput(f"{self.location}: {self.reason}")


class UnparsedText(NamedTuple):
    """The text of a document that is not JSON, or of one document of a YAML stream, and why it is not JSON."""

    content: str
    reason: str


def read_record(location: str, content: bytes) -> Record | BrokenRecord:
    """Decode a record."""
    try:
        try:
            value, bad_number = decode_leniently(content, location)
            return Record(location, value, bad_number=bad_number)
        except UnicodeDecodeError:
            value, bad_number = decode_leniently(content.decode("utf-8", "replace"), location)
            return Record(location, value, repaired=True, bad_number=bad_number)
    except errors.BadInput as error:
        return BrokenRecord(location, error.message.removeprefix(f"{location}: "))


def too_long() -> str:
    """Say that a record is too long."""
    return f"longer than {limits.MAX_RECORD_BYTES} bytes"
