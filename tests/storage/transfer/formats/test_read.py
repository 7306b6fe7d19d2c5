"""Documents are recognised by their content, or refused with the first record that fits no format."""

import json
from collections.abc import Iterator

import pytest

from storage import errors
from storage.transfer.formats.registry import FORMATS, HEAD_CHARACTERS, peek_records, read_document
from storage.transfer.formats.shared.record import BrokenRecord, Record
from tests.storage.transfer.formats.logs import ALL, OASST, TAU_BENCH, document

CHAT = '[{"role": "user", "content": "hi"}]'


def test_the_formats_are_named() -> None:
    assert set(FORMATS) >= {"sapwood", "deepseek-harness", "openai", "tau-bench", "open-assistant", "session-yaml"}


@pytest.mark.parametrize("name", ALL)
def test_a_real_log_is_recognised_whatever_its_name(name: str) -> None:
    reading = read_document("renamed.txt", document(name)[1])
    assert reading.format == {TAU_BENCH: "tau-bench", OASST: "open-assistant"}.get(name, "deepseek-harness")


@pytest.mark.parametrize("name", ALL)
def test_every_session_follows_those_that_it_refers_to(name: str) -> None:
    seen: set[str] = set()
    for session in read_document(*document(name)).sessions:
        assert session.key not in seen
        assert {session.parent, session.source} - {None} <= seen
        seen.add(session.key)


def test_a_format_can_be_required() -> None:
    assert read_document("chat", CHAT, "openai").format == "openai"
    with pytest.raises(errors.BadInput, match=r"chat \[0\]: a record before the header"):
        read_document("chat", CHAT, "deepseek-harness")
    with pytest.raises(errors.BadInput, match="'word' is none of sapwood, deepseek-harness"):
        read_document("chat", CHAT, "word")


def test_mark_crlf_blank_lines_and_line_separators_inside_strings_are_fine() -> None:
    line = json.dumps([{"role": "user", "content": "a\u2028b"}], ensure_ascii=False)
    reading = read_document("chat", f"\ufeff\r\n{line}\r\n\r\n{line}\r\n")
    assert len(reading.sessions) == 2
    assert getattr(reading.sessions[1].events[1], "content", None) == "a\u2028b"


def test_one_value_may_span_lines() -> None:
    reading = read_document("chat", json.dumps(json.loads(CHAT), indent=2))
    assert len(reading.sessions) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "x: the document is empty"),
        ("hello", "x: not JSON: Expecting value at column 1 .*known formats: sapwood"),
        ('{"a": 1}', r"x: not in a known format \(sapwood, .*\): x line 1 holds an object with the fields a"),
        ('{"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00Z"}', "x: not in a known format"),
        ("[[1]]", "x: not in a known format .* holds a list"),
        (f"{CHAT}\n\n{{bad", "x line 3: the last line is cut off: not JSON: .* at column 2"),
        (f"{CHAT}\n[NaN]", "x line 2: not JSON: NaN is not a JSON number"),
        ("[" * 100_000, r"x \[0\]: the document ends in the middle"),
        ("[" * 100_000 + "]" * 100_000, r"x \[0\]: nested deeper than 500 levels"),
    ],
)
def test_unreadable_input_is_refused_with_its_location(content: str, message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_document("x", content)


def test_few_long_records_are_read_to_recognise_a_format() -> None:
    numbers = iter(range(5))
    long = {"role": "user", "content": [{"type": "text", "text": "x" * (HEAD_CHARACTERS // 2)}]}
    records: Iterator[Record | BrokenRecord] = (Record(f"x line {number}", long) for number in numbers)
    head, found = peek_records(records)
    assert len(head) == 2
    assert next(numbers) == 2
    assert len(list(found)) == 4
