"""What can't be read inside a record that holds a whole conversation, so that it costs itself alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import errors, text
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.values import as_list, shape


class keep_unreadable:  # noqa: N801  # reads as a verb after `with`, and a generator would take thrice the time for each message
    """Reads a message of a conversation; where that raises BadInput, it becomes a custom event and is counted.

    The field `without` is no part of the message itself. What no event can hold is left out. The reading must have
    logged nothing when it raises. Where it is strict, what was raised goes on.
    """

    __slots__ = ("_builder", "_noun", "_time", "_value", "_warnings", "_without")

    def __init__(
        self,
        value: object,
        builder: LogBuilder,
        warnings: ImportWarnings,
        noun: str = "message",
        *,
        without: str | None = None,
        time: int | None = None,
    ) -> None:
        self._value = value
        self._builder = builder
        self._warnings = warnings
        self._noun = noun
        self._without = without
        self._time = time

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, errors.BadInput) or not self._warnings.lenient:
            return False
        data = self._json()
        if data is None:
            self._warnings.leave_out(error)
        else:
            self._warnings.add(self._noun, "that could not be read kept as custom", reason=error.message)
            self._builder.custom(self._noun, data, time=self._time)
        return True

    def _json(self) -> str | None:
        """The message as JSON, None for null and for what no event can hold."""
        value = self._value
        if isinstance(value, dict):
            value = {name: item for name, item in value.items() if name != self._without}
        try:
            return None if value is None else text.to_json(value, "value")
        except errors.BadInput:
            return None


@contextmanager
def skip_unreadable(warnings: ImportWarnings) -> Iterator[None]:
    """Reads a part of a record: where that raises BadInput, it is left out and counted, unless reading is strict."""
    try:
        yield
    except errors.BadInput as error:
        warnings.leave_out(error)


def objects_in(value: object, location: str, warnings: ImportWarnings) -> list[tuple[dict[str, Any], str]]:
    """The objects of a list, each with its place; what is none is left out and counted, unless reading is strict."""
    found = []
    with skip_unreadable(warnings):
        for index, item in enumerate(as_list(value, location)):
            where = f"{location}[{index}]"
            if isinstance(item, dict):
                found.append((item, where))
            else:
                warnings.leave_out(errors.BadInput(f"{where}: must be an object, is {shape(item)}"))
    return found
