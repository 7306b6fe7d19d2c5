"""YAML files of sessions: texts and cards round-trip; anything else is refused with its location."""

import io
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from storage import errors
from storage.events import AssistantMessage, CardEvent, Event, SystemMessage, UserMessage
from storage.transfer.formats.registry import HEAD_CHARACTERS, ForeignDocument, peek_records, read_document, reader_for
from storage.transfer.formats.session_yaml import FORMAT, SessionFile, Speaker, Special, Text, entries_of, parse, write
from storage.transfer.formats.shared import records
from storage.transfer.formats.shared.record import Record, UnparsedText
from storage.views.conversation import conversation
from tests.storage.transfer.formats.logs import TAU_BENCH, read_log
from tests.storage.transfer.formats.mutations import check, mutated, read_leniently

TEXTS = st.text(max_size=30) | st.text(alphabet=" \n\t:-#'\"|>&*!%@`{}[],?~\\\r\x85\u2028\ufeffab0.\x00😀", max_size=30)
FILES = st.builds(
    SessionFile,
    entries=st.lists(
        st.builds(Text, st.sampled_from(Speaker), TEXTS) | st.builds(Special, TEXTS, TEXTS), max_size=5
    ).map(tuple),
    session_id=st.none() | TEXTS,
    title=st.none() | TEXTS,
    created_at=st.none() | st.integers(0, 253_402_300_799_999),
    updated_at=st.none() | st.integers(0, 253_402_300_799_999),
    workflow_mode=st.none() | TEXTS,
)

EXAMPLE = """\
sessionId: bed-3
title: Watering bed 3
createdAt: '2026-10-05T08:11:00.000Z'
updatedAt: '2026-10-05T08:12:00.000Z'
workflowMode: garden
entries:
- kind: Text
  role: User
  content: How often?
- kind: Special
  type: Table
  payload: |
    type: Table
    title: Week 40
- kind: Text
  role: Assistant
  content: |-
    Twice:

    - on Monday
    - on Friday
"""
FILE = SessionFile(
    entries=(
        Text(Speaker.USER, "How often?"),
        Special("Table", "type: Table\ntitle: Week 40\n"),
        Text(Speaker.ASSISTANT, "Twice:\n\n- on Monday\n- on Friday"),
    ),
    session_id="bed-3",
    title="Watering bed 3",
    created_at=1_791_187_860_000,
    updated_at=1_791_187_920_000,
    workflow_mode="garden",
)


def read_yaml(name: str, source: str) -> ForeignDocument:
    return read_document(name, source, FORMAT)


def refusal(source: str) -> str:
    with pytest.raises(errors.BadInput) as refused:
        parse(source)
    return refused.value.message


def test_a_file_as_people_read_it() -> None:
    assert write(FILE) == EXAMPLE
    assert parse(EXAMPLE) == FILE


@given(FILES)
def test_any_texts_and_cards_round_trip(file: SessionFile) -> None:
    written = write(file)
    assert parse(written) == file
    assert parse(json.dumps(yaml.safe_load(written))) == file


@given(st.lists(FILES, min_size=1, max_size=4), st.sampled_from(["---\n", "--- # next\n", "...\n---\n", "\n---\r\n"]))
def test_a_stream_of_files_comes_back_as_that_many_sessions(files: list[SessionFile], marker: str) -> None:
    found = read_yaml("x", "".join(marker + write(file) for file in files)).sessions
    assert [(session.label, session.workflow_mode) for session in found] == [
        (file.title, file.workflow_mode) for file in files
    ]
    for session, file in zip(found, files, strict=True):
        assert list(session.events) == list(read_yaml("x", write(file)).sessions[0].events)


def test_a_repeated_id_in_a_stream_goes_to_the_first() -> None:
    reading = read_yaml("x", f"{EXAMPLE}---\nentries: []\n---\n{EXAMPLE}")
    assert [(session.key, session.id) for session in reading.sessions] == [
        ("bed-3", "bed-3"),
        ("#2", None),
        ("#3", None),
    ]
    assert reading.warnings == ["1 session lost its id, as an earlier one has the same"]


@pytest.mark.parametrize("stream", [f"---\n{EXAMPLE}---\n{EXAMPLE}", f"{EXAMPLE}...\n---\n{EXAMPLE}"])
def test_a_stream_is_recognised(stream: str) -> None:
    reading = read_document("x", stream)
    assert (reading.format, len(reading.sessions)) == (FORMAT, 2)


def test_a_stream_is_recognised_by_as_much_of_it_as_fits_the_memory() -> None:
    def of(size: int) -> list[str]:
        text = "---\n" + write(SessionFile((Text(Speaker.USER, "x" * size),)))
        head, found = peek_records(iter([Record("x", UnparsedText(text, ""))] * 30))
        assert len(list(found)) == 30
        return [record.location for record in head]

    assert [len(of(size)) for size in (10, HEAD_CHARACTERS // 3, HEAD_CHARACTERS)] == [20, 3, 1]


def test_a_broken_document_of_a_stream_is_refused_with_its_line() -> None:
    with pytest.raises(errors.BadInput, match=r"^x document at line 4: entries\[0\]: must be an object"):
        read_yaml("x", "---\nentries: []\n\n---\nentries: [5]\n")


def test_a_broken_document_of_a_stream_affects_nothing_else() -> None:
    found = list(records.read_records("x", io.BytesIO(f"{EXAMPLE}---\nentries: [\n---\n{EXAMPLE}".encode())))
    source = reader_for("x", found, lenient=True)
    assert len([step for record in found for step in source.add(record)]) == 2
    assert source.warnings.kinds()["record left out"] == 1
    assert source.warnings.first_broken.startswith(
        "x document at line 22: not YAML or JSON that is allowed: line 3 column 1"
    )


CREATED, UPDATED = 1_791_187_860_000, 1_791_187_920_000
"""The times of the example, in ms."""


def plain(event: Event) -> tuple[str, str]:
    """Type and text of an event."""
    return event.type, getattr(event, "content", None) or getattr(event, "payload", None) or event.turn_id or ""


def test_a_file_becomes_a_turn_per_user_text_and_an_event_per_entry() -> None:
    reading = read_yaml("x.yaml", EXAMPLE)
    [session] = reading.sessions
    assert (session.id, session.label, session.workflow_mode, reading.warnings) == ("bed-3", FILE.title, "garden", [])
    assert [plain(event) for event in session.events] == [
        ("turn/start", "turn-1"),
        ("user/message", "How often?"),
        ("card", "type: Table\ntitle: Week 40\n"),
        ("assistant/message", "Twice:\n\n- on Monday\n- on Friday"),
        ("turn/end", "turn-1"),
    ]


def test_the_times_of_a_file_are_kept_as_metadata_and_as_those_of_its_events() -> None:
    [session] = read_yaml("x", EXAMPLE).sessions
    assert session.metadata == '{"createdAt":"2026-10-05T08:11:00.000Z","updatedAt":"2026-10-05T08:12:00.000Z"}'
    assert [event.timestamp for event in session.events] == [CREATED] * 4 + [UPDATED]
    more = "- {kind: Text, role: User, content: x}\n- {kind: Text, role: Assistant, content: y}\n"
    [session] = read_yaml("x", EXAMPLE + more).sessions
    assert [event.timestamp for event in session.events] == [CREATED] * 5 + [UPDATED] * 4
    [session] = read_yaml("x", EXAMPLE.replace("updatedAt: '2026-10-05T08:12:00.000Z'\n", "")).sessions
    assert {event.timestamp for event in session.events} == {CREATED}
    [session] = read_yaml("x", "entries: [{kind: Text, role: User, content: x}]").sessions
    assert (session.metadata, {event.timestamp for event in session.events}) == (None, {None})


def test_a_time_without_a_zone_is_utc_with_a_warning() -> None:
    reading = read_yaml("x", EXAMPLE.replace("08:11:00.000Z", "08:11:00"))
    assert reading.sessions[0].events[0].timestamp == CREATED
    assert reading.warnings == ["1 time without a zone taken as UTC"]


@pytest.mark.parametrize(("given", "kept"), [("true", "true"), ("5", "5"), ("1.50", "1.5"), ("no", "no"), ("~", None)])
def test_a_scalar_where_text_is_expected_is_text(given: str, kept: str | None) -> None:
    [session] = read_yaml("x", EXAMPLE.replace("workflowMode: garden", f"workflowMode: {given}")).sessions
    assert session.workflow_mode == kept


def test_a_real_session_goes_out_and_comes_back() -> None:
    for session in read_log(TAU_BENCH).sessions[:20]:
        events = [event.model_copy(update={"seq": seq}) for seq, event in enumerate(session.events)]
        file = SessionFile(entries=entries_of(conversation(events, include_system=True)))
        [again] = read_yaml("x", write(file)).sessions
        kinds = (UserMessage, AssistantMessage, SystemMessage)
        texts, found = ([e for e in each.events if isinstance(e, kinds) and e.content] for each in (session, again))
        assert [(event.type, event.content) for event in found] == [(event.type, event.content) for event in texts]


@pytest.mark.parametrize("content", [EXAMPLE, json.dumps(yaml.safe_load(EXAMPLE)), "entries: []", '{"entries": []}'])
def test_a_file_is_recognised(content: str) -> None:
    reading = read_document("x", content)
    assert (reading.format, len(reading.sessions)) == (FORMAT, 1)


def test_other_documents_are_not_session_files() -> None:
    for content in (
        '{"entries": [{"role": "user"}], "id": 5}',
        "title: x",
        '{"entries": 5, "more": 1}',
        "- entries: 5",
    ):
        with pytest.raises(errors.BadInput, match="known format"):
            read_document("x", content)


@pytest.mark.parametrize("indent", [None, 2])
def test_json_gives_the_same_session(indent: int | None) -> None:
    value = yaml.safe_load(EXAMPLE)
    [session] = read_yaml("x", json.dumps(value, indent=indent)).sessions
    assert session == read_yaml("x", EXAMPLE).sessions[0]


def test_surrogates_and_zero_characters_are_kept_as_far_as_text_can_hold_them() -> None:
    source = {
        "sessionId": "\ud800",
        "title": "\udfffa",
        "entries": [{"kind": "Text", "role": "User", "content": "\ud800\0"}],
    }
    [session] = read_yaml("x", json.dumps(source)).sessions
    assert (session.id, session.label, plain(session.events[1])) == (None, "\ufffda", ("user/message", "\ufffd\0"))


@given(mutated([yaml.safe_load(EXAMPLE)]))
def test_any_file_is_read_or_refused(file: tuple[list[Any], int]) -> None:
    steps, _ = read_leniently(FORMAT, file[0])
    check(steps)


def test_a_card_that_cant_be_read_goes_out_whole() -> None:
    events = [CardEvent(card_type="New", payload="rows: [", seq=0), CardEvent(card_type="Form", payload="a: 1", seq=1)]
    assert entries_of(conversation(events)) == (Special("New", "rows: ["), Special("Form", "a: 1"))


def test_losses_are_reported() -> None:
    source = "sessionId: not legal\nowner: me\nentries:\n- {kind: Text, role: User, content: x, at: 5}\n"
    reading = read_yaml("x", source)
    assert reading.sessions[0].id is None
    assert reading.warnings == [
        "1 session lost its id, which is not a valid session id",
        "1 session lost owner",
        "1 text lost at",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{{", "document: not YAML or JSON that is allowed: line 1 column 2: a key must be text"),
        ("a: b: c", "document: not YAML or JSON that is allowed: line 1 column 5: mapping values are not allowed"),
        ("Dear all, here is my session.", "document: must be a mapping with sessionId, title, createdAt, updatedAt,"),
        ("", "document: must be a mapping with sessionId, title, createdAt, updatedAt, workflowMode, entries, is null"),
        ("title: x", "entries: is required; found title"),
        ("entries: {}", "entries: must be a list, is an empty object"),
        ("entries: [x]", "entries[0]: must be an object, is a str"),
        ("entries: [{kind: text}]", "entries[0].kind: must be one of Text, Special, is 'text'"),
        (
            "entries:\n- {kind: Text, role: User, content: a}\n- {kind: Text, role: Bot}",
            "entries[1].role: must be one of",
        ),
        ("entries: [{kind: Text, role: User}]", "entries[0].content: is required"),
        ("entries: [{kind: Text, role: User, content: [5]}]", "entries[0].content: must be text, is a list"),
        ("entries: [{kind: Special, payload: x}]", "entries[0].type: is required"),
        ("entries: [{kind: Special, type: Form, payload: {a: 1}}]", "entries[0].payload: must be text, is an object"),
        ("title: [x]\nentries: []", "title: must be text, is a list"),
        ("createdAt: yesterday\nentries: []", "createdAt: 'yesterday' is not an ISO 8601 instant"),
        ("entries: []\nentries: []", "line 2 column 1: the key 'entries' is given twice"),
        ("entries: !!python/object:os.x {}", "the tag"),
    ],
)
def test_a_refusal_names_location_and_rule(source: str, message: str) -> None:
    assert message in refusal(source)
    with pytest.raises(errors.BadInput, match=r"^my-file\b"):
        read_yaml("my-file", source)


def test_a_bomb_of_aliases_is_refused_before_it_expands() -> None:
    bomb = ["a0: &a0 " + "x" * 1_000]
    bomb += [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 100) + "]" for level in range(1, 5)]
    assert "anchors are not allowed (&a0)" in refusal("\n".join([*bomb, "entries: *a4"]))
