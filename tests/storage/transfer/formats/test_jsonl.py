"""Own files are lossless: what is written reads back equal, and what breaks the format names its line."""

import json
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import errors, events, text
from storage.events import CustomEvent, Event, Retrieval, SurfaceOp, ToolResult, TurnStart, UserMessage
from storage.session import SessionConfig, SessionStatus
from storage.transfer.formats.jsonl import FORMAT, Header, event_line, header_line
from storage.transfer.formats.registry import ForeignDocument, ForeignSession, read_document
from storage.transfer.formats.shared.foreign import ForeignEvent, Step
from tests.storage.transfer.formats.logs import ALL, OASST, read_log, records_of, steps_of
from tests.storage.transfer.formats.mutations import check_steps, mutated, read_leniently


def lines_of(header: Header, drafts: Sequence[Event]) -> list[str]:
    numbered = (draft.model_copy(update={"seq": seq}) for seq, draft in enumerate(drafts, header.first_seq))
    return [header_line(header), *map(event_line, numbered)]


def read_lines(*lines: str) -> ForeignDocument:
    return read_document("log", "\n".join(lines))


def rewritten(drafts: Sequence[Event]) -> list[Event]:
    [session] = read_lines(*lines_of(Header(id="s"), drafts)).sessions
    return list(session.events)


CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=20)
SEQS = st.integers(0, 2**31 - 1)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda items: st.lists(items, max_size=4) | st.dictionaries(TEXTS, items, max_size=4),
    max_leaves=10,
)
JSON_TEXTS = JSON_VALUES.map(lambda value: text.to_json(value, "value"))
BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "timestamp": st.none() | st.integers(-62_135_596_800_000, 253_402_300_799_999),
    "turn_id": st.none() | st.text(CHARACTERS, min_size=1, max_size=20),
    "step_id": st.none() | st.text(CHARACTERS, min_size=1, max_size=20),
    "call_id": st.text(CHARACTERS, min_size=1, max_size=20),
    "version": st.integers(1, 2**31 - 1),
    "from_seq": SEQS,
    "to_seq": SEQS,
    "source_event_seqs": st.none() | st.lists(SEQS, max_size=3),
    "output_length": st.none() | SEQS,
    "token_count": st.none() | st.floats(0, allow_infinity=False),
    "duration_ms": st.none() | st.floats(0, allow_infinity=False),
    "surface_op": st.fixed_dictionaries(
        {"op": st.sampled_from(events.SurfaceOpKind), "start": st.none() | SEQS, "end": st.none() | SEQS}
    ).map(SurfaceOp.model_validate),
    "retrieval": st.none()
    | st.fixed_dictionaries(
        {
            "layer": st.none() | TEXTS,
            "l0_match_count": st.none() | SEQS,
            "l1_match_count": st.none() | SEQS,
            "details": st.none() | JSON_TEXTS,
        }
    ).map(Retrieval.model_validate),
    "args": JSON_TEXTS.filter(lambda value: value != "null"),
    "data": JSON_TEXTS.filter(lambda value: value != "null"),
    "status": st.sampled_from(events.RunStatus),
    "kind": st.sampled_from(events.ChunkKind),
    "interrupted": st.booleans(),
    "truncated": st.booleans(),
}


def drafts_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    fields = {}
    for name, field in kind.model_fields.items():
        if field.exclude or name == "type":
            continue
        base = BY_NAME.get(name, JSON_TEXTS if field.alias in kind.json_fields else TEXTS)
        fields[name] = base if field.is_required() or name in BY_NAME else st.none() | base
    return st.fixed_dictionaries(fields).map(kind.model_validate)


KINDS = get_args(get_args(events.AnyEvent)[0])
DRAFTS = st.one_of([drafts_of(kind) for kind in KINDS])


def test_every_event_type_is_generated() -> None:
    assert {kind.model_fields["type"].default for kind in KINDS} == set(events.WIRE_TYPES)


@given(st.lists(DRAFTS, max_size=5))
def test_any_events_read_back_equal(drafts: list[Event]) -> None:
    assert rewritten(drafts) == drafts


@pytest.mark.parametrize("name", ALL)
def test_real_logs_read_back_equal(name: str) -> None:
    for session in read_log(name).sessions:
        assert rewritten(session.events) == list(session.events)


def test_a_forest_of_forks_reads_back_equal() -> None:
    reading = read_log(OASST)
    lines: list[str] = []
    for session in reading.sessions:
        fork: dict[str, Any] = (
            {"source_session_id": session.source, "fork_seq": session.at_seq} if session.source else {}
        )
        header = Header(id=session.key, label=session.label, parent_id=session.parent, first_seq=session.at_seq, **fork)
        lines += lines_of(header, session.events)
    written = {session.key: session for session in read_lines(*lines).sessions}
    for session in reading.sessions:
        copy = written[session.key]
        assert (copy.label, copy.parent, copy.source, copy.at_seq) == (
            session.label,
            session.parent,
            session.source,
            session.at_seq,
        )
        assert copy.events == session.events


def test_a_header_reads_back() -> None:
    header = Header(
        id="s",
        label="A\nb",
        status=SessionStatus.ARCHIVED,
        workflow_mode="plan",
        metadata='{"b":1,"a":18446744073709551615}',
        created_at=1_800_000_000_123,
        config=SessionConfig(system_prompt="c", skills=[]),
        system_prompt="p",
        memory="m",
        insight="i",
    )
    line = header_line(header)
    assert list(json.loads(line))[:4] == ["type", "format", "version", "id"]
    assert json.loads(line)["createdAt"] == "2027-01-15T08:00:00.123Z"
    [session] = read_lines(line).sessions
    assert session == ForeignSession(
        key="s",
        label="A\nb",
        events=[],
        id="s",
        workflow_mode="plan",
        metadata='{"b":1,"a":18446744073709551615}',
        system_prompt="p",
        memory="m",
        insight="i",
        config=SessionConfig(system_prompt="c", skills=[]),
        archived=True,
    )


def test_a_header_leaves_out_what_is_null() -> None:
    assert json.loads(header_line(Header(id="s"))) == {
        "type": "session",
        "format": "sapwood",
        "version": 1,
        "id": "s",
        "status": "ACTIVE",
        "firstSeq": 0,
    }


def test_an_event_line_embeds_json_as_it_is() -> None:
    event = CustomEvent(name="n", data='{"z":1.50,\n"a":[1e2,{"$b":"\\u00e9"}]}', timestamp=1).model_copy(
        update={"seq": 7}
    )
    assert event_line(event) == (
        '{"seq":7,"type":"custom","timestamp":"1970-01-01T00:00:00.001Z","name":"n",'
        '"data":{"z":1.50, "a":[1e2,{"$b":"\\u00e9"}]}}'
    )


def test_a_null_result_is_a_result_and_other_nulls_are_absence() -> None:
    line = '{"seq":0,"type":"tool/result","callId":"c","result":null,"error":null,"timestamp":null,"surfaceOp":null}'
    [session] = read_lines(header_line(Header(id="s")), line).sessions
    assert session.events == [ToolResult(call_id="c", result="null")]


def test_surrogates_deep_nesting_and_long_integers_in_a_line() -> None:
    deep = "[" * 300 + "]" * 300
    line = f'{{"seq":0,"type":"custom","name":"\\ud800","data":[{deep},18446744073709551615,"\\ud800"]}}'
    [session] = read_lines(header_line(Header(id="s")), line).sessions
    assert session.events == [CustomEvent(name="\ufffd", data=f'[{deep},18446744073709551615,"\ufffd"]')]


HEAD = header_line(Header(id="s"))
FIRST = event_line(UserMessage(content="a").model_copy(update={"seq": 0}))
DELIVERED = '{"seq":0,"type":"insight/delivered","content":"a","version":1}'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD, FIRST, FIRST], "log line 3: seq is 0 where 1 comes next"),
        ([HEAD, FIRST.replace('"seq":0', '"seq":1')], "log line 2: seq is 1 where 0 comes next"),
        ([HEAD, FIRST.replace('"seq":0', '"seq":true')], "log line 2: seq is True where 0 comes next"),
        ([HEAD, FIRST.replace("user/message", "user/shout")], "log line 2: 'user/shout' is not a type of event"),
        ([HEAD, '{"seq":0,"type":"user/message"}'], "log line 2: content: Field required"),
        ([HEAD, '{"seq":0,"type":"step/end","durationMs":-1}'], "log line 2: durationMs: .*greater than or equal to 0"),
        ([HEAD, '{"seq":0,"type":"turn/start","timestamp":5}'], "log line 2: timestamp: must be a string"),
        ([HEAD, '{"seq":0,"type":"turn/start","timestamp":"2026-01-01"}'], "log line 2: timestamp: .* names no zone"),
        ([HEAD, '{"seq":0,"type":"custom","name":"n","data":NaN}'], "log line 2: not JSON: NaN"),
        (
            [HEAD, DELIVERED.replace('"version":1', '"version":2147483648')],
            "log line 2: version: .*less than 2147483648",
        ),
        ([HEAD, "5"], "log line 2: must be an object"),
        ([HEAD, HEAD], "log line 2: the file holds the session s twice"),
        ([HEAD.replace('"version":1', '"version":2')], "log line 1: a header of format 'sapwood', version 2; known"),
        ([HEAD.replace('"id":"s"', '"id":"s s"')], "log line 1: id: "),
        ([HEAD, '{"type":"session","format":"other","version":1}'], "log line 2: a header of format 'other'"),
        ([header_line(Header(id="s", first_seq=1, fork_seq=1))], "log line 1: .* needs the section of its source None"),
        (
            [header_line(Header(id="s", first_seq=1, fork_seq=1, source_session_id="t"))],
            "log line 1: .* needs the section of its source 't', which is not in the file before it",
        ),
        (
            [HEAD, FIRST, header_line(Header(id="t", first_seq=1, fork_seq=0, source_session_id="s"))],
            "log line 3: firstSeq is 1, which must equal forkSeq",
        ),
        (
            [HEAD, header_line(Header(id="t", parent_id="u")), header_line(Header(id="u", parent_id="t"))],
            "in a circle: t, u",
        ),
        (
            [HEAD, header_line(Header(id="t", first_seq=1, fork_seq=1, source_session_id="s"))],
            r"log line 2: .* at most the length of the source's log \(0\)",
        ),
    ],
)
def test_a_line_that_breaks_the_format_is_refused_with_its_number(lines: list[str], message: str) -> None:
    with pytest.raises(errors.BadInput, match=message):
        read_lines(*lines)


def test_an_event_without_a_header_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="log line 1: an event before the header line"):
        read_document("log", FIRST, "sapwood")


def test_sources_outside_the_file_and_unknown_fields_are_counted() -> None:
    header = Header(id="t", parent_id="x", source_session_id="x", fork_seq=3)
    reading = read_lines(header_line(header), FIRST.replace('"seq"', '"id":"log/0","seq"'))
    [session] = reading.sessions
    assert (session.parent, session.source, session.events) == ("x", None, [UserMessage(content="a")])
    assert reading.warnings == [
        "1 fork became a session of its own that holds the inherited events too",
        "1 line lost id",
    ]


def test_a_fork_at_zero_keeps_its_source() -> None:
    fork = Header(id="t", source_session_id="s", fork_seq=0, parent_id="s")
    source, child = read_lines(HEAD, header_line(fork), FIRST).sessions
    assert (source.key, child.key, child.parent, child.source, child.at_seq) == ("s", "t", "s", "s", 0)


def test_a_parent_may_follow_but_a_source_may_not() -> None:
    headers = [Header(id="t", parent_id="u", source_session_id="u", fork_seq=0), Header(id="u")]
    reading = read_lines(*map(header_line, headers))
    assert [(session.key, session.parent, session.source) for session in reading.sessions] == [
        ("u", None, None),
        ("t", "u", None),
    ]
    assert reading.warnings == ["1 session lost its source, which is not in the file before it"]


def test_references_are_kept_whichever_end_comes_first() -> None:
    reading = read_lines(header_line(Header(id="a", refs=["b"])), header_line(Header(id="b", refs=["a"])))
    assert {session.key: session.refs for session in reading.sessions} == {"a": ("b",), "b": ("a",)}


def lenient(*lines: str) -> tuple[list[Step], list[str]]:
    steps, warnings = steps_of(records_of("log", "\n".join(lines)), FORMAT, lenient=True)
    return steps, warnings.messages()


def event(seq: int, content: str = "x") -> str:
    return event_line(UserMessage(content=content).model_copy(update={"seq": seq}))


def test_a_broken_event_leaves_a_placeholder_so_that_later_seqs_stay_right() -> None:
    steps, warnings = lenient(HEAD, event(0), "{torn", '{"seq":2,"type":"user/message"}', event(3, "c"), event(4, "d"))
    left_out = CustomEvent(name="record/left-out", data="{}")
    assert [step.event for step in steps if isinstance(step, ForeignEvent)] == [
        UserMessage(content="x"),
        left_out,
        left_out,
        UserMessage(content="c"),
        UserMessage(content="d"),
    ]
    assert len(warnings) == 1
    assert warnings[0].startswith("2 records left out, the first: log line 3: not JSON")


def test_a_hole_wider_than_what_was_left_out_is_refused() -> None:
    steps, warnings = lenient(HEAD, event(0), "{torn", event(3), event(1))
    assert [step.event for step in steps if isinstance(step, ForeignEvent)] == [UserMessage(content="x")] * 2
    assert warnings[0].startswith("2 records left out")


def test_events_under_a_broken_header_go_to_no_other_session() -> None:
    steps, warnings = lenient(HEAD, event(0), HEAD.replace('"id":"s"', '"id":"s s"'), event(1), HEAD, event(1))
    assert len(steps) == 2
    assert warnings[0].startswith("4 records left out, the first: log line 3: id: ")


MANY = [
    header_line(Header(id="a", label="A", refs=["c"], metadata='{"a":1}', config=SessionConfig(skills=[]))),
    event_line(TurnStart(turn_id="t", timestamp=5).model_copy(update={"seq": 0})),
    event(1),
    header_line(Header(id="b", parent_id="a", source_session_id="a", fork_seq=1, first_seq=1)),
    event(1),
    event_line(ToolResult(call_id="c", result="[1]", retrieval=Retrieval(layer="L0")).model_copy(update={"seq": 2})),
    header_line(Header(id="c", source_session_id="a", fork_seq=0)),
    event(0),
]


def test_a_part_of_a_file_gives_the_first_steps_of_the_whole() -> None:
    found = records_of("log", "\n".join(MANY))
    whole, _ = steps_of(found)
    for count in range(1, len(found)):
        steps, _ = steps_of(found[:count])
        assert steps == whole[: len(steps)]
    assert len(whole) == len(MANY)


@given(mutated([json.loads(line) for line in MANY]))
def test_any_record_is_read_or_refused(log: tuple[list[Any], int]) -> None:
    steps, _ = read_leniently(FORMAT, log[0])
    check_steps(steps)
