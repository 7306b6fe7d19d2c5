"""Documents give the same records however they are written; broken values affect nothing else; memory is bounded."""

import io
import json
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.transfer.formats.registry import ForeignSession, read_document, reader_for
from storage.transfer.formats.shared import limits
from storage.transfer.formats.shared import records as module
from storage.transfer.formats.shared.record import BrokenRecord, Record, UnparsedText
from storage.transfer.formats.shared.records import read_records

MARK = b"\xef\xbb\xbf"
MIB = 1024 * 1024


def found(content: str | bytes) -> list[Record | BrokenRecord]:
    return list(read_records("x", io.BytesIO(content.encode() if isinstance(content, str) else content)))


def values(content: str | bytes) -> list[Any]:
    """The values of a document, None for a broken one."""
    return [record.value if isinstance(record, Record) else None for record in found(content)]


def broken(content: str | bytes) -> list[tuple[str, str]]:
    return [(record.location, record.reason) for record in found(content) if isinstance(record, BrokenRecord)]


class Generated(io.RawIOBase):
    """A document that is generated while it is read; counts the bytes read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._waiting = b""
        self.given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._waiting = self._waiting or next(self._pieces, b"")
        taken, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(taken)] = taken
        self.given += len(taken)
        return len(taken)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat documents of more than 64 bytes as large, and records of more than 512 as too long."""
    monkeypatch.setattr(module, "WHOLE_BYTES", 64)
    monkeypatch.setattr(limits, "MAX_RECORD_BYTES", 512)


# One document in all its forms


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(), items, max_size=4),
    max_leaves=12,
)
LISTS = st.lists(JSON, min_size=1, max_size=6)


def spellings(value: list[Any], ascii: bool) -> list[str]:
    return [json.dumps(value, ensure_ascii=ascii), *(json.dumps(value, ensure_ascii=ascii, indent=n) for n in (0, 2))]


@given(LISTS, st.booleans(), st.sampled_from(["", "\r\n \n"]), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_values_come_back_from_lines_and_lists(value: list[Any], ascii: bool, before: str, end: str) -> None:
    for content in spellings(value, ascii):
        assert values(before + content + end) == value
    lines = [json.dumps(item, ensure_ascii=ascii) for item in (value[0], {}, *value[1:])]
    assert values(MARK + (before + end.join(lines) + end).encode()) == [value[0], {}, *value[1:]]


@given(LISTS, st.booleans())
def test_values_come_back_from_lists_that_are_read_in_parts(value: list[Any], ascii: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        for size in (1, 7, 256):
            patch.setattr("storage.transfer.formats.shared.json_splitting.CHUNK", size)
            for content in spellings(value, ascii):
                assert values(content) == value


@given(st.dictionaries(st.text(), JSON, max_size=3), LISTS, st.dictionaries(st.text(), JSON, max_size=3))
def test_an_object_with_samples_gives_the_same_in_parts(
    before: dict[str, Any], samples: list[Any], after: dict[str, Any]
) -> None:
    value = {**before, "samples": samples, **after}
    whole = found(json.dumps(value, indent=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        patch.setattr("storage.transfer.formats.shared.json_splitting.CHUNK", 5)
        parts = found(json.dumps(value, indent=1))
    for given_records in (whole, parts):
        told = [record for record in given_records if isinstance(record, Record)]
        assert len(told) == len(given_records)
        assert [record.value for record in told if record.part == "samples"] == samples
        fields = [record.value for record in told if record.part in (None, "more")]
        assert {name: item for part in fields for name, item in part.items()} == {**value, "samples": []}


# The edges of a document


def test_a_mark_carriage_returns_and_blank_lines_are_fine() -> None:
    content = MARK + b'\r\n{"a":1}\r\n \r\n\r\n5\r\n'
    assert [(record.location, record.value) for record in found(content) if isinstance(record, Record)] == [
        ("x line 2", {"a": 1}),
        ("x line 5", 5),
    ]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", " \r\n\t"])
def test_an_empty_document_is_refused(content: str) -> None:
    with pytest.raises(errors.BadInput, match="x: the document is empty"):
        found(content)


@pytest.mark.parametrize("content", ["[]", " [\n] \n"])
def test_a_list_without_items_has_no_records(content: str) -> None:
    assert found(content) == []


@pytest.mark.parametrize("content", ['{"a": 1}', '{\n"a":\n{"b": 2}\n}', '{\n"a": [\n{"b": 2}\n]}', '"text"', "5"])
def test_one_value_may_span_lines(content: str) -> None:
    assert values(content) == [json.loads(content)]


def test_a_list_of_one_item_on_its_own_line_is_not_json_lines() -> None:
    assert values('[\n{"a": 1}\n]') == [{"a": 1}]


# Broken values affect nothing else


def test_a_last_line_that_is_cut_off_is_reported_as_such() -> None:
    assert values('{"a":1}\n{"b":"tex') == [{"a": 1}, None]
    [(location, reason)] = broken('{"a":1}\n{"b":"tex')
    assert location == "x line 2"
    assert reason.startswith("the last line is cut off: not JSON")


@pytest.mark.parametrize("line", ['{"a":nan}', '{"a":1e}', "{a}"])
def test_a_last_line_that_is_whole_but_wrong_is_not_reported_as_cut_off(line: str) -> None:
    [(_, reason)] = broken(f"5\n{line}")
    assert reason.startswith("not JSON")


@pytest.mark.parametrize("first", ["{torn", '{"a": "b', "[1, 2", "# a log", '{"a": [', "\x00\x01"])
def test_a_broken_first_line_does_not_hide_the_others(first: str) -> None:
    content = f'{first}\n\n{{"a":1}}\n5\n{{torn\n{{"b":2}}\n'
    assert values(content) == [None, {"a": 1}, 5, None, {"b": 2}]
    assert [location for location, _ in broken(content)] == ["x line 1", "x line 5"]


@pytest.mark.usefixtures("small_limits")
def test_a_broken_first_line_does_not_hide_the_others_of_a_large_document() -> None:
    lines = [json.dumps({"a": "b" * (number % 150)}) for number in range(40)]
    assert values("\n".join(["{torn", *lines])) == [None, *map(json.loads, lines)]


@pytest.mark.parametrize("indent", [None, 1])
def test_one_broken_item_affects_nothing_else(indent: int | None) -> None:
    content = json.dumps([{"a": 1}, {"b": "WRONG"}, {"c": [2]}], indent=indent).replace('"WRONG"', "wrong")
    assert values(content) == [{"a": 1}, None, {"c": [2]}]
    assert [location for location, _ in broken(content)] == ["x [1]"]


@pytest.mark.parametrize("indent", [None, 1])
def test_items_before_a_cut_are_kept(indent: int | None) -> None:
    items: list[Any] = [{"a": [1, 2]}, "b", 12345, {"c": "d"}]
    content = json.dumps(items, indent=indent)
    for end in range(1, len(content)):
        *whole, last = values(content[:end])
        assert last is None
        assert whole == items[: len(whole)]
    assert len(values(content[:-1])) == len(items)


def test_a_number_at_a_cut_is_not_taken_as_complete() -> None:
    assert values("[1, 23") == [1, None]


@pytest.mark.parametrize("indent", [None, 1])
def test_samples_before_a_cut_are_kept(indent: int | None) -> None:
    content = json.dumps({"a": 1, "samples": [{"b": 2}, {"c": 3}], "d": 4}, indent=indent)
    assert values(content[: content.index('"c"')]) == [{"a": 1, "samples": []}, {"b": 2}, None]
    assert broken(content[: content.index('"c"')]) == [("x samples[1]", "the document ends in the middle")]


@pytest.mark.usefixtures("small_limits")
def test_a_broken_field_of_a_large_object_affects_nothing_else() -> None:
    content = json.dumps({"a": 1, "b": "WRONG", "c": "d" * 100}, indent=1).replace('"WRONG"', "wrong")
    assert values(content) == [None, {"a": 1, "c": "d" * 100}]
    assert broken(content) == [("x b", "not JSON: Expecting value at column 1")]


@pytest.mark.parametrize("content", ["[1}", "[1:2]", "[] x", "[1] [2]", "[,", '{"samples": [1}', '{"samples" [1]}'])
def test_unbalanced_brackets_are_reported_and_end_the_document(content: str) -> None:
    assert broken(content)


# Values


def test_surrogates_and_zero_characters_are_kept_in_parts_and_whole() -> None:
    whole = values('["\\ud800", "a\\u0000b"]')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        parts = values('["\\ud800", "a\\u0000b"]')
    assert whole == parts == ["\ud800", "a\0b"]


def test_bytes_that_are_not_utf_8_are_repaired_in_their_record_alone() -> None:
    content = b'{"a":"\xff"}\n{"b":"\xc3\xa9"}\n'
    assert found(content) == [
        Record("x line 1", {"a": "\ufffd"}, repaired=True),
        Record("x line 2", {"b": "\xe9"}),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        assert found(b'["\xff", "a"]') == [Record("x [0]", "\ufffd", repaired=True), Record("x [1]", "a")]


@pytest.mark.parametrize("number", [2**64 - 1, 2**64, -(2**63) - 1, 10**300])
def test_integers_are_exact(number: int) -> None:
    """Those that events can't store are the exact digits, as a string."""
    kept = number if -(2**63) <= number < 2**64 else str(number)
    assert values(f'{{"a":{number}}}\n{{"a":{number}}}') == [{"a": kept}] * 2
    assert values(f"[{number},\n{number}]") == [kept] * 2
    assert bad_number(f"[1,{number}]") == [False, kept != number]


LARGE = [str(2**64), str(-(2**63) - 1), "9" * 5000, "1e999", "-1E+400", "1" * 400 + ".5"]
UNREAL = ["NaN", "Infinity", "-Infinity", *LARGE]
EACH_UNREAL = pytest.mark.parametrize("literal", UNREAL, ids=lambda literal: literal[:9])


def bad_number(content: str) -> list[bool]:
    """Whether each record had a number that JSON does not allow."""
    return [bool(record.bad_number) for record in found(content) if isinstance(record, Record)]


@EACH_UNREAL
def test_invalid_numbers_become_strings_and_are_reported(literal: str) -> None:
    content = f'{{}}\n{{"a":[{literal},1.5]}}\n5\n{literal}'
    assert values(content) == [{}, {"a": [literal, 1.5]}, 5, literal]
    assert bad_number(content) == [False, True, False, True]
    assert values(f'{{"a":\n{literal}}}') == [{"a": literal}]
    assert bad_number(f'{{"a":\n{literal}}}') == [True]


@EACH_UNREAL
@pytest.mark.parametrize("indent", ["", "\n"])
@pytest.mark.parametrize("whole", [module.WHOLE_BYTES, 1])
def test_only_the_list_items_with_invalid_numbers_are_marked(
    literal: str, indent: str, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHOLE_BYTES", whole)
    content = f'[1,{indent}{{"b":{literal}}}, 2]'
    assert values(content) == [1, {"b": literal}, 2]
    assert bad_number(content) == [False, True, False]


def test_only_the_samples_with_invalid_numbers_are_marked() -> None:
    content = '{"a": 1, "samples": [{"b": 2}, {"c": NaN}], "d": 4}'
    assert values(content) == [{"a": 1, "samples": [], "d": 4}, {"b": 2}, {"c": "NaN"}]
    assert bad_number(content) == [False, False, True]
    assert bad_number('{"samples": [1], "d": NaN}') == [True, False]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        assert values(content.replace(", ", ",\n")) == [{"a": 1, "samples": []}, {"b": 2}, {"c": "NaN"}, {"d": 4}]
        assert bad_number('{"e": NaN, "samples": [1],\n"d": NaN}') == [True, False, True]


def test_only_the_samples_that_are_not_utf_8_are_marked() -> None:
    content = b'{"a": 1, "samples": [{"b": 2}, {"c": "\xff"}], "d": 4}'
    assert [record.repaired for record in found(content) if isinstance(record, Record)] == [False, False, True]


@pytest.mark.parametrize("number", ["1e308", "-1.5e-300", "0.1", "12345678901234567890123.5"])
def test_valid_numbers_stay_numbers_beside_invalid_ones(number: str) -> None:
    assert values(f'{{"a":{number},"b":NaN}}') == [{"a": json.loads(number), "b": "NaN"}]


def test_an_invalid_number_is_not_a_field_name() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WHOLE_BYTES", 1)
        assert broken('{NaN: 1,\n"samples": []}')


def with_score(literal: str) -> str:
    return f'[[{{"role":"user","content":"a"}}],{{"messages":[],"score":{literal}}}]'


def test_a_record_with_an_invalid_number_is_read_leniently_and_refused_strictly() -> None:
    head = found(with_score("NaN"))
    source = reader_for("x", head, lenient=True)
    steps = [step for record in head for step in source.add(record)]
    assert [step.metadata for step in steps if isinstance(step, ForeignSession)] == [None, '{"score":"NaN"}']
    [warning] = source.warnings.messages()
    assert warning.startswith("1 record held numbers that JSON does not allow, now strings, x [1]: not JSON: NaN")
    with pytest.raises(errors.BadInput, match=r"^x \[1\]: .*NaN"):
        read_document("x", with_score("NaN"))


@pytest.mark.parametrize("literal", LARGE, ids=lambda literal: literal[:9])
def test_a_number_that_events_cannot_store_is_kept_as_text(literal: str) -> None:
    document = read_document("x", with_score(literal))
    assert [session.metadata for session in document.sessions] == [None, f'{{"score":"{literal}"}}']
    [warning] = document.warnings
    assert warning.startswith(f"1 record held numbers that events can't store, now strings, x [1]: {literal[:40]} is ")


def test_a_record_with_both_kinds_of_numbers_is_refused_strictly() -> None:
    for numbers in ("[1e999, NaN]", "[NaN, 1e999]"):
        with pytest.raises(errors.BadInput, match="NaN"):
            read_document("x", with_score(numbers))


@pytest.mark.parametrize("depth", [5_000, 200_000])
def test_deep_nesting_breaks_its_record(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    assert values(f"{{}}\n{deep}\n5") == [{}, None, 5]
    assert values(f"[1, {deep}, 2]") == [1, None, 2]
    assert broken(f"[1, {deep}]") == [("x [1]", "nested deeper than 500 levels")]


@pytest.mark.parametrize(
    "content", [b"hello\nworld", bytes(range(256)) * 10, b"entries:\n- a\n", b"\xff\xfe{\x00}\x00"]
)
def test_a_document_that_is_not_json_is_one_text(content: bytes) -> None:
    [record] = found(content)
    assert isinstance(record, Record)
    assert isinstance(record.value, UnparsedText)
    assert record.value.content == content.decode("utf-8", "replace")
    assert record.repaired == ("\ufffd" in record.value.content)


@given(
    st.binary(min_size=1, max_size=60) | st.text(alphabet='[]{}",:\\ \n1aé', min_size=1, max_size=60).map(str.encode)
)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for size in (module.WHOLE_BYTES, 8):
            patch.setattr(module, "WHOLE_BYTES", size)
            patch.setattr(limits, "MAX_RECORD_BYTES", min(4 * size, limits.MAX_RECORD_BYTES))
            try:
                assert found(content) or b"".join(content.split()) == b"[]"
            except errors.BadInput as error:
                assert error.message == "x: the document is empty"


def test_a_document_without_a_log_is_refused_by_its_reader() -> None:
    for content in ("[]", "hello", "[hello", "[" * 100_000):
        with pytest.raises(errors.BadInput, match=r"^x"):
            read_document("x", content)


# Sizes


def test_a_record_of_20_mb_is_read() -> None:
    large = {"a": "é" * 10 * MIB}
    assert values(json.dumps({}) + "\n" + json.dumps(large, ensure_ascii=False) + "\n5\n") == [{}, large, 5]
    assert values(json.dumps(large, ensure_ascii=False)) == [large]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_line_that_is_too_long_affects_nothing_else(position: int) -> None:
    lines = ['{"a":1}', '{"b":2}', '{"c":3}']
    lines[position] = json.dumps({"long": "x" * 2000})
    expected: list[Any] = [json.loads(line) for line in lines]
    expected[position] = None
    given = values("\n".join(lines))
    assert [value for value in given if value != {}] == expected
    assert all(reason == "longer than 512 bytes" for _, reason in broken("\n".join(lines)))


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("indent", [None, 1])
def test_an_item_that_is_too_long_affects_nothing_else(indent: int | None) -> None:
    content = json.dumps([{"a": 1}, {"long": ["x" * 100] * 20}, {"c": 3}], indent=indent)
    assert values(content) == [{"a": 1}, None, {"c": 3}]
    assert broken(content) == [("x [1]", "longer than 512 bytes")]


@pytest.mark.usefixtures("small_limits")
def test_a_field_that_makes_an_object_too_long_affects_nothing_else() -> None:
    content = json.dumps({"a": 1, "long": "x" * 2000, "samples": [{"b": 2}]})
    assert values(content) == [None, {"a": 1, "samples": []}, {"b": 2}]
    assert broken(content) == [("x long", "longer than 512 bytes")]


def _repeated(before: bytes, item: bytes, count: int, after: bytes) -> Iterator[bytes]:
    yield before
    for number in range(count):
        yield item if number == 0 else b"," + item
    yield after


ITEM = json.dumps({"text": 'a "b" {c} [d] \\' * 4000, "n": list(range(2000))}).encode()
COUNT = 40 * MIB // len(ITEM)


@pytest.mark.parametrize("space", [b"", b"\n  "], ids=["in one line", "pretty"])
@pytest.mark.parametrize(
    ("before", "after"), [(b"[", b"]"), (b'{"v":1,"samples":[', b'],"z":2}')], ids=["list", "samples"]
)
def test_a_large_document_takes_little_memory_and_is_read_as_it_is_taken(
    before: bytes, after: bytes, space: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHOLE_BYTES", MIB)
    monkeypatch.setattr(limits, "MAX_RECORD_BYTES", 2 * MIB)
    source = Generated(_repeated(space + before + space, space + ITEM, COUNT, space + after))
    taken = 0
    tracemalloc.start()
    try:
        for record in read_records("x", io.BufferedReader(source)):
            assert isinstance(record, Record)
            taken += "text" in record.value
            assert source.given < (taken + 1) * (len(ITEM) + 10) + 4 * MIB
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken == COUNT
    assert peak < 16 * MIB < source.given


@pytest.mark.parametrize("opening", [b'{"a":"', b'{"a":1,"b":[', b"[", b'["', b'"', b"x", b"\x00"])
def test_an_endless_value_is_skipped_in_little_memory(opening: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WHOLE_BYTES", 2 * MIB)
    monkeypatch.setattr(limits, "MAX_RECORD_BYTES", 8 * MIB)
    source = Generated(iter([opening, *[b"1" * MIB] * 40]))
    tracemalloc.start()
    try:
        assert all(isinstance(record, BrokenRecord) for record in read_records("x", io.BufferedReader(source)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * 8 * MIB


@pytest.mark.usefixtures("small_limits")
def test_brackets_in_a_row_are_skipped_together() -> None:
    depth = 4 * MIB
    began = time.monotonic()
    assert broken("[" * depth) == [("x [0]", "the document ends in the middle")]
    assert values("[" + "[" * 100 + "]" * 100 + ',{"a":[[{"b":[]}]]}]')[1] == {"a": [[{"b": []}]]}
    assert time.monotonic() - began < 2
