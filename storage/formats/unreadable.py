"""What can't be read inside a record that holds a whole conversation, so that it costs itself alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import errors, text
from storage.formats.dialogue import Dialogue
from storage.formats.foreign import Losses
from storage.formats.values import as_list, as_object


@contextmanager
def kept(
    value: object, dialogue: Dialogue, losses: Losses, noun: str = "message", time: int | None = None
) -> Iterator[None]:
    """Reads a message of a conversation; where that raises BadInput, it becomes a custom event and is counted.

    What no event can hold is left out. The reading must have logged nothing when it raises. Where it is strict, what
    was raised goes on.
    """
    try:
        yield
    except errors.BadInput as error:
        data = _json(value) if losses.lenient else None
        if data is None:
            losses.leave_out(error)
            return
        losses.add(noun, "that could not be read kept as custom", why=error.message)
        dialogue.custom(noun, data, time=time)


@contextmanager
def left_out(losses: Losses) -> Iterator[None]:
    """Reads a part of a record: where that raises BadInput, it is left out and counted, unless reading is strict."""
    try:
        yield
    except errors.BadInput as error:
        losses.leave_out(error)


def objects(value: object, place: str, losses: Losses) -> list[tuple[dict[str, Any], str]]:
    """The objects of a list, each with its place; what is none is left out and counted, unless reading is strict."""
    found = []
    with left_out(losses):
        for index, item in enumerate(as_list(value, place)):
            with left_out(losses):
                found.append((as_object(item, f"{place}[{index}]"), f"{place}[{index}]"))
    return found


def _json(value: object) -> str | None:
    """The value as JSON, None for null and for what no event can hold."""
    try:
        return None if value is None else text.to_json(value, "value")
    except errors.BadInput:
        return None
