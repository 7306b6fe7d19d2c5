"""The messages between a parsing process and the process that started it, pickled.

Both run the same code and one starts the other, so what they send can be trusted.
"""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from storage import events
from storage.events import AnyEvent, Event
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step


class ParseRequest(NamedTuple):
    """A document to parse after those requested before. `name` is what error messages call it.

    `may_defer`: it may be dropped, to be requested again later, once its first steps are known.
    """

    name: str
    path: str
    format: str | None = None
    may_defer: bool = False


class Acknowledgement(NamedTuple):
    """Steps with this many characters were consumed."""

    weight: int


class Cancellation(NamedTuple):
    """The rest of the document with this number is not needed. Documents are counted from 0 over all requests."""

    number: int


class StartFrame(NamedTuple):
    """The format of a document. The first frame of each document in a known format."""

    format: str


class StepsFrame(NamedTuple):
    """The next steps, and how many bytes of the document were read since the frame before."""

    steps: Sequence[Step]
    weight: int
    read: int


class EndFrame(NamedTuple):
    """A document has no more steps, or no more are needed."""

    warnings: ImportWarnings


class FailureFrame(NamedTuple):
    """A document can't be parsed, or not to its end."""

    error: Exception


Frame = StartFrame | StepsFrame | EndFrame | FailureFrame


def dumps(message: Any) -> bytes:
    """Encodes a message."""
    if isinstance(message, StepsFrame):
        message = message._replace(steps=list(map(_packed, message.steps)))
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def loads(content: bytes) -> Any:
    """Decodes a message."""
    message = pickle.loads(content)
    if isinstance(message, StepsFrame):
        message = message._replace(steps=list(map(_unpacked, message.steps)))
    return message


# Most of what is sent are events. Sending only the values that differ from their field's default takes two thirds of
# the time that pickling the pydantic models takes (measured).


def _packed(step: Step) -> Any:
    match step:
        case ForeignEvent(key=key, event=event, replaces=replaces):
            return key, replaces, *_values(event)
        case ForeignSession(events=[_, *_] as drafts):
            return replace(step, events=()), list(map(_values, drafts))
    return step


def _unpacked(packed: Any) -> Step:
    step: Step = packed
    if type(packed) is tuple and len(packed) == 2:
        session, values = packed
        step = replace(session, events=[_event(number, fields) for number, fields in values])
    elif type(packed) is tuple:
        key, replaces, number, fields = packed
        step = ForeignEvent(key, _event(number, fields), replaces)
    return step


def _values(event: Event) -> tuple[int, dict[str, Any]]:
    number = _NUMBERS[type(event)]
    fields = event.__dict__
    return number, {name: fields[name] for name, default in _DEFAULTS[number].items() if fields[name] is not default}


def _event(number: int, fields: dict[str, Any]) -> Event:
    return events.restored(_TYPES[number], _DEFAULTS[number] | fields, _NAMES[number])


_TYPES: Sequence[type[Event]] = get_args(get_args(AnyEvent)[0])
_NUMBERS = {type: number for number, type in enumerate(_TYPES)}
_DEFAULTS = [{name: field.default for name, field in type.model_fields.items()} for type in _TYPES]
_NAMES = list(map(set, _DEFAULTS))
