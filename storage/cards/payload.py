"""Converts YAML and JSON text to JSON values and back, without loss.

Values are built one by one from the events of PyYAML's safe parser: nothing is composed, constructed or expanded, and
nesting uses no stack. Scalars follow YAML 1.2's JSON schema, with all spellings of null, true and false; what is no
JSON value (dates, `yes`, `0x1F`, `007`, `.5`, integers over 64 bits) stays text.
https://yaml.org/spec/1.2.2/#102-json-schema
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import yaml

from storage import errors, text

MAX_BYTES = 1024 * 1024
"""Size of a payload that is read: YAML of that size takes a third of a second. Larger ones are stored, not shown."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", *(_TAG + name for name in ("str", "timestamp", "binary"))})
_VALUE_TAGS = frozenset(_TAG + name for name in ("null", "bool", "int", "float"))
_LIST_TAGS = frozenset({None, "!", _TAG + "seq"})
_MAPPING_TAGS = frozenset({None, "!", _TAG + "map"})
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,19})\Z")
# An exponent without a fraction needs a sign: 1e+21 is a number, 1234e56 may as well be a hash.
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+][0-9]+)\Z")
# Quoted: text that some parser would read as a number or a date.
_NUMBER_LIKE = re.compile(r"[-+.]*[0-9]\S*\Z")
_RESOLVER: Any = yaml.resolver.Resolver()
_PLAIN_CHARACTERS = re.compile("[\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufdcf\ufdf0-\ufefe\uff00-\ufffd]*\\Z")
_BLOCK = re.compile(r"[^\s].*[^\s]\n?\Z", re.DOTALL)
_ENDS_IN_BLANK = re.compile(r"[ \t]\n")


def load(source: str, *, max_bytes: int | None = MAX_BYTES) -> object:
    """The JSON value of YAML or JSON text. Keys are text, as written.

    Raises BadInput, with line and column, for broken text, aliases and anchors, a key given twice, tags of other
    types, nesting over 500 and more than `max_bytes`.
    """
    if max_bytes is not None and (size := len(source.encode(errors="replace"))) > max_bytes:
        raise errors.BadInput(f"at most {max_bytes} bytes, is {size}")
    if source.lstrip()[:1] in ("{", "["):
        try:
            return _load_json(source)
        except (json.JSONDecodeError, _NotJsonError, RecursionError):
            pass
    try:
        return _build(yaml.parse(source, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        what = error.problem or error.context or "broken"
        raise errors.BadInput(f"{_location(error.problem_mark or error.context_mark)}{what}") from error
    except yaml.YAMLError as error:
        raise errors.BadInput(" ".join(str(error).split())) from error


def dump(value: object) -> str:
    """YAML text of a JSON value, keys in order. Loading it, here or in any YAML 1.1 or 1.2 parser, gives the value."""
    # Values are checked first, so that `load` can read the text again.
    checked = text.from_json(text.to_json(value, "payload"))
    emitted: str = yaml.emit(_events(checked), Dumper=_DUMPER, allow_unicode=True, width=2**30)
    return emitted


class _NotJsonError(ValueError):
    """NaN or infinity, which some writers of JSON produce and no standard allows."""


def _load_json(source: str) -> object:
    value = json.loads(
        source,
        object_pairs_hook=_unique,
        parse_int=_integer,
        parse_float=_float,
        parse_constant=_refuse_constant,
    )
    # Checked again: escapes can produce lone surrogates, and nesting has a limit.
    return text.from_json(text.to_json(value, "JSON"))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise errors.BadInput(f"the key {text.clean(twice)[:80]!r} is given twice")
    return fields


def _integer(digits: str) -> int | str:
    value = int(digits) if len(digits) <= 21 else None
    return value if value is not None and -(2**63) <= value < 2**64 else digits


def _float(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else digits


def _refuse_constant(name: str) -> NoReturn:
    raise _NotJsonError(name)


def _location(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1} column {mark.column + 1}: "


def _refuse(event: Any, what: str) -> NoReturn:
    raise errors.BadInput(f"{_location(event.start_mark)}{what}")


class _Open:
    """A list or mapping that has not ended; `key` is the one whose value is next."""

    __slots__ = ("fields", "items", "key")

    def __init__(self, fields: dict[str, object] | None = None) -> None:
        self.fields = fields
        self.items: list[object] = []
        self.key: str | None = None

    def add(self, value: object, event: Any) -> None:
        """Adds an item, a key, or the value of the last key."""
        if self.fields is None:
            self.items.append(value)
        elif self.key is not None:
            self.fields[self.key] = value
            self.key = None
        elif type(event) is not yaml.ScalarEvent:
            _refuse(event, "a key must be text")
        elif (key := text.clean(event.value)) in self.fields:
            _refuse(event, f"the key {key[:80]!r} is given twice")
        else:
            self.key = key


def _build(parsed: Iterable[Any]) -> object:
    root = _Open()
    stack = [root]
    documents = 0
    for event in parsed:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            _check_anchor(event)
            stack[-1].add(_scalar(event), event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            _check_anchor(event)
            opened = _opened(event)
            stack[-1].add(opened.items if opened.fields is None else opened.fields, event)
            stack.append(opened)
            if len(stack) - 1 > text.MAX_NESTING:
                _refuse(event, f"nested deeper than {text.MAX_NESTING} levels")
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            stack.pop()
        elif kind is yaml.AliasEvent:
            _refuse(event, f"aliases are not allowed (*{event.anchor[:80]})")
        elif kind is yaml.DocumentStartEvent:
            documents += 1
            if documents > 1:
                _refuse(event, "a second document")
    return root.items[0] if root.items else None


def _check_anchor(event: Any) -> None:
    if event.anchor is not None:
        _refuse(event, f"anchors are not allowed (&{event.anchor[:80]})")


def _opened(event: Any) -> _Open:
    mapping = type(event) is yaml.MappingStartEvent
    if event.tag not in (_MAPPING_TAGS if mapping else _LIST_TAGS):
        _refuse(event, f"the tag {event.tag[:80]!r} is not allowed")
    return _Open({} if mapping else None)


def _scalar(event: Any) -> object:
    if event.tag is None:
        return _plain(event.value) if event.implicit[0] else text.clean(event.value)
    if event.tag in _TEXT_TAGS:
        return text.clean(event.value)
    if event.tag in _VALUE_TAGS:
        return _plain(event.value)
    return _refuse(event, f"the tag {event.tag[:80]!r} is not allowed")


def _plain(value: str) -> object:
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    if _INTEGER.match(value):
        return _integer(value)
    if _FLOAT.match(value):
        return _float(value)
    return text.clean(value)


def _events(value: object) -> Iterator[Any]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    pending: list[Iterator[Any]] = [iter((value,))]
    ends: list[Any] = [yaml.DocumentEndEvent(explicit=False)]
    while pending:
        item = next(pending[-1], pending)
        if item is pending:
            pending.pop()
            yield ends.pop()
        elif isinstance(item, dict):
            yield yaml.MappingStartEvent(None, None, True, flow_style=not item)
            pending.append(_flat(item))
            ends.append(yaml.MappingEndEvent())
        elif isinstance(item, list):
            yield yaml.SequenceStartEvent(None, None, True, flow_style=not item)
            pending.append(iter(item))
            ends.append(yaml.SequenceEndEvent())
        else:
            yield _written(item)
    yield yaml.StreamEndEvent()


class _Key(str):
    """Text used as a key, which is written on one line."""

    __slots__ = ()


def _flat(fields: dict[str, object]) -> Iterator[object]:
    for key, value in fields.items():
        yield _Key(key)
        yield value


def _written(value: object) -> Any:
    if isinstance(value, str):
        return yaml.ScalarEvent(None, None, (_reads_as_text(value), True), str(value), style=_style(value))
    if isinstance(value, float):
        digits = repr(value)
        # YAML 1.1 reads 1e+20 as text.
        digits = digits if "." in digits or "e" not in digits else digits.replace("e", ".0e", 1)
        return yaml.ScalarEvent(None, None, (True, False), digits)
    return yaml.ScalarEvent(None, None, (True, False), json.dumps(value))


def _reads_as_text(value: str) -> bool:
    if isinstance(_plain(value), str) and not _NUMBER_LIKE.match(value):
        tag: str = _RESOLVER.resolve(yaml.ScalarNode, value, (True, False))
        return tag == _TAG + "str"
    return False


def _style(value: str) -> str | None:
    """A block for several lines; double quotes where another style could change the text."""
    if not _PLAIN_CHARACTERS.match(value):
        return '"'
    if "\n" not in value:
        return None
    if isinstance(value, _Key) or not _BLOCK.match(value) or _ENDS_IN_BLANK.search(value) or "\t" in value:
        return '"'
    return "|"
