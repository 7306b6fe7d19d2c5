"""Contains errors inside a record that holds a whole conversation, so that one bad message does not cost the rest."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import errors, text
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.log_builder import LogBuilder
from storage.transfer.formats.shared.values import as_list, shape


class keep_unreadable:  # noqa: N801  # used like contextlib.suppress; a generator takes three times as long
    """If reading a message raises BadInput, keep it as a custom event, and count it.

    The body must not have logged anything when it raises. The field `without` is not part of the message itself. A
    message that no event can store is left out. In strict reading the error is raised.
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
        """The message as JSON, None for null and for what no event can store."""
        value = self._value
        if isinstance(value, dict):
            value = {name: item for name, item in value.items() if name != self._without}
        try:
            return None if value is None else text.to_json(value, "value")
        except errors.BadInput:
            return None


@contextmanager
def skip_unreadable(warnings: ImportWarnings) -> Iterator[None]:
    """If reading a part of a record raises BadInput, leave it out and count it; raise in strict reading."""
    try:
        yield
    except errors.BadInput as error:
        warnings.leave_out(error)


def objects_in(value: object, location: str, warnings: ImportWarnings) -> list[tuple[dict[str, Any], str]]:
    """Return the objects of a list, each with its location. Other items are left out and counted as above."""
    found = []
    with skip_unreadable(warnings):
        for index, item in enumerate(as_list(value, location)):
            where = f"{location}[{index}]"
            if isinstance(item, dict):
                found.append((item, where))
            else:
                warnings.leave_out(errors.BadInput(f"{where}: must be an object, is {shape(item)}"))
    return found
