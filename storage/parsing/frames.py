"""What a parsing process and the one that started it tell each other, pickled.

The process is started by this one and runs the same code, so that what it sends can be trusted.
"""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from storage import events
from storage.events import AnyEvent, Event
from storage.formats.foreign import ForeignSession, Logged, Losses, Step


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

    losses: Losses


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


# Most of what is told are events. As plain values, measured, they take a third of the time that pydantic's way takes.


def _packed(step: Step) -> Any:
    match step:
        case Logged(key=key, event=event, replaces=replaces):
            return key, _values(event), replaces
        case ForeignSession(events=[_, *_] as given):
            return replace(step, events=()), list(map(_values, given))
    return step


def _unpacked(packed: Any) -> Step:
    match packed:
        case (str(key), values, replaces):
            return Logged(key, _event(values), replaces)
        case (ForeignSession() as session, list(values)):
            return replace(session, events=list(map(_event, values)))
    step: Step = packed
    return step


def _values(event: Event) -> tuple[Any, ...]:
    return _NUMBERS[type(event)], event.__dict__, event.__pydantic_fields_set__


def _event(values: tuple[Any, ...]) -> Event:
    number, fields, given = values
    event: Event = events.restored(_TYPES[number], fields, given)
    return event


_TYPES = get_args(get_args(AnyEvent)[0])
_NUMBERS = {type: number for number, type in enumerate(_TYPES)}
