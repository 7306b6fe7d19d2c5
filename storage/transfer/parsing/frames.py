"""What a parsing process and the one that started it tell each other, pickled.

The process is started by this one and runs the same code, so that what it sends can be trusted.
"""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from storage import events
from storage.events import AnyEvent, Event
from storage.transfer.formats.shared.foreign import ForeignEvent, ForeignSession, ImportWarnings, Step


class Wanted(NamedTuple):
    """A document to parse after those that were wanted before; `name` is what messages call it.

    `waits`: it may be put off when its first steps are seen.
    """

    name: str
    path: str
    format: str | None = None
    waits: bool = False


class Taken(NamedTuple):
    """So many characters of what was told are taken."""

    weight: int


class Passed(NamedTuple):
    """No more is wanted of the document with this number, counted from 0 over all that were wanted."""

    number: int


class Begun(NamedTuple):
    """A document has this format. The first frame of each that is of a known one."""

    format: str


class Told(NamedTuple):
    """The next steps, and the bytes of the document that were read since the frame before."""

    steps: Sequence[Step]
    weight: int
    read: int


class Ended(NamedTuple):
    """A document has no more steps, or no more are wanted."""

    losses: ImportWarnings


class Failed(NamedTuple):
    """A document can't be parsed, or not any further."""

    error: Exception


Frame = Begun | Told | Ended | Failed


def dumps(message: Any) -> bytes:
    """The message as bytes."""
    if isinstance(message, Told):
        message = message._replace(steps=list(map(_packed, message.steps)))
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def loads(content: bytes) -> Any:
    """The message of these bytes."""
    message = pickle.loads(content)
    if isinstance(message, Told):
        message = message._replace(steps=list(map(_unpacked, message.steps)))
    return message


# Most of what is told are events. Told as the values that are not the default of their field they take, measured, two
# thirds of the time that pydantic's way takes.


def _packed(step: Step) -> Any:
    match step:
        case ForeignEvent(key=key, event=event, replaces=replaces):
            return key, replaces, *_values(event)
        case ForeignSession(events=[_, *_] as given):
            return replace(step, events=()), list(map(_values, given))
    return step


def _unpacked(packed: Any) -> Step:
    step: Step = packed
    if type(packed) is tuple and len(packed) == 2:
        session, values = packed
        step = replace(session, events=[_event(number, given) for number, given in values])
    elif type(packed) is tuple:
        key, replaces, number, given = packed
        step = ForeignEvent(key, _event(number, given), replaces)
    return step


def _values(event: Event) -> tuple[int, dict[str, Any]]:
    number = _NUMBERS[type(event)]
    fields = event.__dict__
    return number, {name: fields[name] for name, default in _DEFAULTS[number].items() if fields[name] is not default}


def _event(number: int, given: dict[str, Any]) -> Event:
    return events.restored(_TYPES[number], _DEFAULTS[number] | given, _NAMES[number])


_TYPES: Sequence[type[Event]] = get_args(get_args(AnyEvent)[0])
_NUMBERS = {type: number for number, type in enumerate(_TYPES)}
_DEFAULTS = [{name: field.default for name, field in type.model_fields.items()} for type in _TYPES]
_NAMES = list(map(set, _DEFAULTS))
