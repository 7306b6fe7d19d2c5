"""YAML streams are split into their documents, and nothing else is."""

import io

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from storage.cards import payload
from storage.transfer.formats.shared.record import BrokenRecord, Record, UnparsedText
from storage.transfer.formats.shared.records import read_records
from storage.transfer.formats.shared.yaml_stream import YamlDocument, documents

LINES = st.sampled_from(
    [
        "---",
        "--- ",
        "--- x",
        "---x",
        " ---",
        "...",
        "... # end",
        "....",
        "# note",
        "%YAML 1.1",
        "",
        "a: |",
        "  ---",
        "b: 1",
        "- 'q",
        "r'",
        '- "s',
        't"',
    ]
)


def split(content: str, limit: int = 1_000_000) -> list[YamlDocument]:
    return list(documents(io.BytesIO(content.encode()), limit))


@given(st.lists(LINES, min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_each_document_reads_as_it_does_in_the_stream(lines: list[str], end: str) -> None:
    content = end.join(lines) + end
    try:
        whole = list(yaml.safe_load_all(content))
    except yaml.YAMLError:
        return
    parts = [next(iter(yaml.safe_load_all(each.content or b"")), None) for each in split(content)]
    assert parts == (whole or [None])


@given(st.lists(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()), min_size=1, max_size=4))
def test_any_stream_is_split_into_the_documents_that_were_written(values: list[object]) -> None:
    content = "".join(f"---\n{payload.dump(value)}" for value in values)
    assert [payload.load((each.content or b"").decode()) for each in split(content)] == values


def test_documents_name_their_first_lines() -> None:
    assert [each.line for each in split("# note\n---\na: 1\n...\n\n%YAML 1.2\n---\nb: 2\n---\nc: 3\n# end\n")] == [
        1,
        5,
        9,
    ]


def test_a_text_without_documents_is_one() -> None:
    assert split("# note\n\n") == [YamlDocument(1, b"# note\n\n")]


@pytest.mark.parametrize("long", ["a: 123456789\n", "a: 1\nb: 2\nc: 3\n", "123456789 ---\n"])
def test_a_document_that_is_too_long_affects_nothing_else(long: str) -> None:
    assert split(f"x: 1\n---\n{long}---\ny: 2\n", 9) == [
        YamlDocument(1, b"x: 1\n"),
        YamlDocument(2, None),
        YamlDocument(3 + long.count("\n"), b"---\ny: 2\n"),
    ]


def test_records_of_a_stream_are_its_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.transfer.formats.shared.limits.MAX_RECORD_BYTES", 64)
    monkeypatch.setattr("storage.transfer.formats.shared.records.WHOLE_BYTES", 32)
    content = f"\na: 1\n---\nb: {'2' * 70}\n---\nc: \xff\n".encode("latin-1")
    first, long, last = read_records("x", io.BytesIO(content))
    assert isinstance(first, Record) and isinstance(first.value, UnparsedText)
    assert (first.location, first.value.content) == ("x", "a: 1\n")
    assert isinstance(long, BrokenRecord)
    assert (long.location, long.reason.endswith("; as YAML it is longer than 64 bytes")) == (
        "x document at line 3",
        True,
    )
    assert isinstance(last, Record) and isinstance(last.value, UnparsedText)
    assert (last.location, last.value.content, last.repaired) == ("x document at line 5", "---\nc: \ufffd\n", True)
