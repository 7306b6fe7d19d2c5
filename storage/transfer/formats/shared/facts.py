"""What a log tells beside its messages: a session's metadata, times and measures, as far as they can be stored."""

from collections.abc import Callable, Mapping

from storage import errors, text
from storage.events import JsonText
from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.shared.foreign import ImportWarnings
from storage.transfer.formats.shared.unreadable import skip_unreadable
from storage.transfer.formats.shared.values import measure


def metadata(given: Mapping[str, object], location: str, warnings: ImportWarnings) -> JsonText | None:
    """The fields that say something, in their order, as far as 1 MiB holds them; the others are counted."""
    kept: list[str] = []
    left = MAX_SLOT_BYTES - len("{")  # the closing brace stands where each field has its comma
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
    """The fields as JSON; one that cannot be stored is left out and counted. Strict reading raises BadInput for it."""
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
    """A time in ms since 1970, as it is read; one that cannot be is counted."""
    found = parse(value)
    if found is None and value is not None:
        warnings.add("time", "that cannot be read left out")
    return found


def amount(value: object, factor: int = 1) -> float | None:
    """A measure, times the factor, or None for what is none."""
    measured = measure(value)
    return None if measured is None else measured * factor


def total(*values: object) -> float | None:
    """The sum of the measures that are there, None if none is."""
    found = [measured for value in values if (measured := amount(value)) is not None]
    return sum(found) if found else None


def whole(value: float | None) -> float | None:
    """Milliseconds rounded to three digits, below which a sum of floats holds noise."""
    return None if value is None else round(value, 3)
