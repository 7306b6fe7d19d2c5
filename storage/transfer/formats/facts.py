"""What a log tells beside its messages: a session's metadata, times and measures, as far as they can be stored."""

from collections.abc import Callable, Mapping

from storage import errors, text
from storage.events import JsonText
from storage.session import MAX_SLOT_BYTES
from storage.transfer.formats.foreign import ImportWarnings
from storage.transfer.formats.unreadable import left_out
from storage.transfer.formats.values import measure


def metadata(given: Mapping[str, object], place: str, losses: ImportWarnings) -> JsonText | None:
    """The fields that say something, in their order, as far as 1 MiB holds them; the others are counted."""
    kept: list[str] = []
    left = MAX_SLOT_BYTES - len("{")  # the closing brace stands where each field has its comma
    for name, value in given.items():
        if value in (None, "", [], {}):
            continue
        try:
            field = f"{text.to_json(name, place)}:{text.to_json(value, place)}"
        except errors.BadInput:
            losses.add("session", f"lost metadata that cannot be stored: {text.clean(name)[:80]}")
            continue
        size = len(field.encode()) + len(",")
        if size > left:
            losses.add("session", f"lost metadata beyond 1 MiB: {text.clean(name)[:80]}")
            continue
        left -= size
        kept.append(field)
    return f"{{{','.join(kept)}}}" if kept else None


def told(given: Mapping[str, object], place: str, losses: ImportWarnings) -> JsonText:
    """The fields as JSON; one that cannot be stored is left out and counted. Strict reading raises BadInput for it."""
    try:
        return text.to_json(given, place)
    except errors.BadInput:
        kept = {}
        for name, value in given.items():
            with left_out(losses):
                text.to_json({name: value}, place)
                kept[name] = value
        return text.to_json(kept, place)


def instant(value: object, read: Callable[[object], int | None], losses: ImportWarnings) -> int | None:
    """A time in ms since 1970, as it is read; one that cannot be is counted."""
    found = read(value)
    if found is None and value is not None:
        losses.add("time", "that cannot be read left out")
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
