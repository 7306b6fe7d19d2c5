"""Every whole object on a line of a JSON lines document is read, and the rest of the line is one warning."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.transfer.formats.shared.record import BrokenRecord, Record
from storage.transfer.formats.shared.records import read_records
from storage.transfer.formats.shared.spliced_lines import FAILURES, splice

A, B, C = ('{"type":"a","in":{"x":[1,{"y":2}]}}', '{"type":"b","text":"{\\"type\\": 1}"}', '{"type":"c"}')
TORN = (
    '{"type":"t","text":"cut of',
    '{"type":"t","in":{"x":[{"y":1},{"z":',
    '{"type":"t","in":{"x":1},"uuid":"ab',
    '{"type":"t","text":"cut after an escape \\',
    '{"type"',
    '{"type":"t","list":[1,2',
)


def read(content: str) -> tuple[list[Any], list[str]]:
    """The values of the records, and the broken ones as `location: reason`."""
    found = list(read_records("x", io.BytesIO(content.encode())))
    broken = [f"{each.location}: {each.reason}" for each in found if isinstance(each, BrokenRecord)]
    return [each.value for each in found if isinstance(each, Record)], broken


def parsed(*objects: str) -> list[Any]:
    return [json.loads(each) for each in objects]


@pytest.mark.parametrize("between", ["", " ", "\t"])
@pytest.mark.parametrize("line", [0, 1, 2])
def test_whole_objects_on_one_line_are_all_read(between: str, line: int) -> None:
    lines = [C, C, C]
    lines[line] = between.join([A, B, C])
    expected = [*parsed(C) * line, *parsed(A, B, C), *parsed(C) * (2 - line)]
    assert read("\n".join(lines)) == (expected, [])
    assert read("\n".join(lines) + "\n") == (expected, [])


def test_a_document_of_one_line_with_two_objects_is_read() -> None:
    assert read(A + B) == (parsed(A, B), [])
    assert read(A + B + "\n") == (parsed(A, B), [])


@pytest.mark.parametrize("torn", TORN)
def test_a_whole_object_after_a_torn_one_is_read(torn: str) -> None:
    values, broken = read(f"{C}\n{torn}{A}\n{B}\n")
    assert values == parsed(C, A, B)
    assert broken == ["x line 2: broken from column 1 on, 1 whole object of the line kept"]


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_object_between_whole_ones_costs_only_itself(torn: str) -> None:
    values, broken = read(f"{C}\n{A}{torn}{B}{C}\n")
    assert values == parsed(C, A, B, C)
    assert broken == [f"x line 2: broken from column {len(A) + 1} on, 3 whole objects of the line kept"]


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_object_alone_is_one_broken_record(torn: str) -> None:
    values, broken = read(f"{C}\n{torn}\n{B}\n")
    assert values == parsed(C, B)
    assert len(broken) == 1
    assert broken[0].startswith("x line 2: not JSON: ")


@pytest.mark.parametrize("count", [1, 5_000])
@pytest.mark.parametrize("line", [0, 1])
def test_nul_bytes_before_an_object_are_skipped_and_reported(count: int, line: int) -> None:
    lines = [C, C]
    lines[line] = "\0" * count + A
    expected = parsed(A, C) if line == 0 else parsed(C, A)
    assert read("\n".join(lines) + "\n") == (
        expected,
        [f"x line {line + 1}: broken from column 1 on, 1 whole object of the line kept"],
    )


def test_a_cut_off_last_line_keeps_its_whole_objects() -> None:
    values, broken = read(f"{C}\n{A}{TORN[0]}")
    assert values == parsed(C, A)
    assert broken == [f"x line 2: broken from column {len(A) + 1} on, 1 whole object of the line kept"]


def test_objects_inside_an_indented_document_are_not_records() -> None:
    document = {"a": {"b": 1}, "c": [{"d": 2}, {"e": 3}]}
    assert read(json.dumps(document, indent=2)) == ([document], [])
    assert read('{"a": {"b": 1},\n"c": [{"d": 2}, {"e": 3}]}') == ([document], [])
    assert read('{"x": [{"a":1}\n, {"a":2}]}') == ([{"x": [{"a": 1}, {"a": 2}]}], [])


def test_a_line_of_many_torn_objects_is_given_up() -> None:
    objects, broken_at = splice('{"a":' * (2 * FAILURES) + C)
    assert objects == []
    assert broken_at == 0


def test_whole_objects_inside_a_torn_one_do_not_use_up_the_tries() -> None:
    line = '{"list":[' + '{"a":1},' * (2 * FAILURES) + '"cut' + C
    assert [line[start:end] for start, end in splice(line).objects] == [C]


@given(st.lists(st.sampled_from([A, B, C, *TORN]), min_size=1, max_size=6))
def test_all_whole_objects_of_any_mixture_are_found(pieces: list[str]) -> None:
    line = "".join(pieces)
    objects, broken_at = splice(line)
    texts = [line[start:end] for start, end in objects]
    assert texts == [piece for piece in pieces if piece not in TORN]
    torn = next((index for index, piece in enumerate(pieces) if piece in TORN), None)
    assert broken_at == (None if torn is None else len("".join(pieces[:torn])))
