"""Metadata, times and measures of a log, as far as they can be stored."""

from collections.abc import Callable, Mapping

from storage import errors, text
from storage.events import JsonText
from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.unreadable import skip_unreadable
from storage.transfer.formats.shared.values import measure


def metadata(given: Mapping[str, object], location: str, warnings: ImportWarnings) -> JsonText | None:
    """Encode the fields that are not empty, in their order, up to 1 MiB; count the others."""
    kept: list[str] = []
    left = MAX_SLOT_BYTES - len("{")  # the closing brace takes the room of the last comma
    for name, value in given.items():
        if value in (None, "", [], {}):
            continue
        try:
            field = f"{text.to_json(name, location)}:{text.to_json(value, location)}"
        except errors.BadInput:
            warnings.add("session", f"lost metadata that cannot be stored: {text.clean(name)[:80]}")
            continue
        size = len(field.encode()) + len(",")
        if size > left:
            warnings.add("session", f"lost metadata beyond 1 MiB: {text.clean(name)[:80]}")
            continue
        left -= size
        kept.append(field)
    return f"{{{','.join(kept)}}}" if kept else None


def storable_json(given: Mapping[str, object], location: str, warnings: ImportWarnings) -> JsonText:
    """Encode the fields as JSON. One that cannot be stored is left out and counted; in strict reading it raises."""
    try:
        return text.to_json(given, location)
    except errors.BadInput:
        kept = {}
        for name, value in given.items():
            with skip_unreadable(warnings):
                text.to_json({name: value}, location)
                kept[name] = value
        return text.to_json(kept, location)


def read_time(value: object, parse: Callable[[object], int | None], warnings: ImportWarnings) -> int | None:
    """Parse a time to ms since 1970, and count one that cannot be parsed."""
    found = parse(value)
    if found is None and value is not None:
        warnings.add("time", "that cannot be read left out")
    return found


def amount(value: object, factor: int = 1) -> float | None:
    """Return a measure times the factor, None if the value is not a measure."""
    measured = measure(value)
    return None if measured is None else measured * factor


def total(*values: object) -> float | None:
    """Return the sum of those values that are measures, None if there are none."""
    found = [measured for value in values if (measured := amount(value)) is not None]
    return sum(found) if found else None


def whole(value: float | None) -> float | None:
    """Round milliseconds to three digits; further digits of a sum of floats are noise."""
    return None if value is None else round(value, 3)
