"""Sessions as documents: exported and imported without loss, or refused with nothing written."""

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import errors, text
from storage.events import (
    AssistantMessage,
    CardEvent,
    CustomEvent,
    Event,
    RunFeedback,
    SystemMessage,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from storage.session import SessionConfig, SessionStatus, SlotName
from storage.store import Store
from storage.transfer.document import export_document, import_document
from storage.transfer.export import ExportFormat
from storage.transfer.importing import ImportResult
from tests.conftest import OpenStore
from tests.contract.shorthand import (
    SPACE,
    append,
    create,
    forest,
    fork,
    node,
    put,
    put_insight,
    session,
    slots,
    surface,
    whole_log,
)
from tests.storage.views.admitted_logs import ADMITTED
from tests.storage.views.surface_logs import assistant, call, chunk, hide, result, shown, system, user
from tests.storage.views.validity import check, problems

YAML, JSONL, OPENAI = ExportFormat.YAML, ExportFormat.JSONL, ExportFormat.OPENAI
SPEAKERS = {"User": UserMessage, "Assistant": AssistantMessage, "System": SystemMessage}

ODD = st.text(max_size=40) | st.text(
    " \n\t:-#'\"|>&*!%@`{}[],?~\\\r\x85\u2028\ufeffab0.\x00😀\ud800\udfff", max_size=40
)
TEXTS = st.sampled_from(list(SPEAKERS.values())).flatmap(lambda kind: ODD.map(lambda content: kind(content=content)))
PAYLOADS = ODD | st.dictionaries(ODD, st.none() | st.integers() | ODD, max_size=3).map(json.dumps)
CARDS = st.tuples(st.sampled_from(["Form", "Table", "Other"]) | ODD, PAYLOADS).map(
    lambda drawn: CardEvent(card_type=drawn[0], payload=drawn[1])
)
ENTRIES = st.lists(TEXTS | CARDS, max_size=6)


async def exported(store: Store, id: str, format: ExportFormat = YAML) -> str:
    found = await export_document(store, SPACE, id, format)
    assert found is not None
    return found


async def imported(store: Store, document: str, format: ExportFormat = YAML, **given: Any) -> ImportResult:
    return await import_document(store, SPACE, document, format, **given)


async def imported_id(store: Store, document: str, format: ExportFormat = YAML, **given: Any) -> str:
    """The id of the only session that an import created."""
    done = await imported(store, document, format, **given)
    [id] = done.ids.values()
    assert done.events == (await session(store, id)).head
    return id


async def refusal(
    store: Store,
    document: str,
    format: ExportFormat = YAML,
    error: type[errors.SapwoodError] = errors.BadInput,
    **wanted: Any,
) -> str:
    """The message of a refused import, checked to have written nothing."""
    before = await forest(store)
    with pytest.raises(error) as found:
        await imported(store, document, format, **wanted)
    assert await forest(store) == before
    return found.value.message


def bare(events: Sequence[Event]) -> list[Event]:
    """The content of an event, without its position."""
    return [event.model_copy(update={"id": "", "session_id": ""}) for event in events]


def contents(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Types and contents of the texts and cards that are not empty."""
    found: list[tuple[object, ...]] = []
    for event in events:
        match event:
            case CardEvent():
                found.append((event.type, event.card_type, event.payload))
            case UserMessage() | AssistantMessage() | SystemMessage():
                found.append((event.type, event.content))
    return [entry for entry in found if entry != ("assistant/message", "")]


def play_all(opening: OpenStore, strategy: st.SearchStrategy[Any], play: Callable[[Store, str, Any], Any]) -> None:
    """Runs examples on one store, each in a session of its own."""
    with asyncio.Runner() as runner:
        store = runner.run(opening())
        names = (f"s{n}" for n in itertools.count())

        @settings(database=None)
        @given(strategy)
        def one(drawn: Any) -> None:
            runner.run(play(store, next(names), drawn))

        try:
            one()
        finally:
            runner.run(store.close())


def test_texts_and_cards_round_trip_through_yaml(opening: OpenStore) -> None:
    """With any characters; lone surrogates are U+FFFD from the start."""

    async def play(store: Store, name: str, entries: list[Event]) -> None:
        await create(store, name, label="L: #1", workflow_mode="plan")
        if entries:
            await append(store, name, *entries)
        document = await exported(store, name)
        read = yaml.safe_load(document)
        assert [entry.get("content", entry.get("payload")) for entry in read["entries"]] == [
            entry[-1] for entry in contents(await whole_log(store, name))
        ]
        again = await imported_id(store, document, id=f"{name}-2")
        meta = await session(store, again)
        assert (meta.label, meta.workflow_mode) == ("L: #1", "plan")
        assert contents(await whole_log(store, again)) == contents(await whole_log(store, name))
        assert yaml.safe_load(await exported(store, again))["entries"] == read["entries"]
        as_json = await imported_id(store, json.dumps(read), id=f"{name}-3")
        assert contents(await whole_log(store, as_json)) == contents(await whole_log(store, again))

    play_all(opening, ENTRIES, play)


def test_any_log_round_trips_through_jsonl(opening: OpenStore) -> None:
    async def play(store: Store, name: str, log: list[Event]) -> None:
        await create(store, name)
        if log:
            await append(store, name, *log)
        again = await imported_id(store, await exported(store, name, JSONL), JSONL, id=f"{name}-2")
        assert bare(await whole_log(store, again)) == bare(await whole_log(store, name))
        one, other = await session(store, name), await session(store, again)
        assert (one.head, one.open, one.totals) == (other.head, other.open, other.totals)
        found, original = await surface(store, again), await surface(store, name)
        assert found.messages() == original.messages()
        delivered, expected = found.delivered(), original.delivered()
        assert bare([delivered] if delivered else []) == bare([expected] if expected else [])

    play_all(opening, ADMITTED, play)


def test_the_messages_of_any_log_round_trip_through_openai(opening: OpenStore) -> None:
    async def play(store: Store, name: str, log: list[Event]) -> None:
        await create(store, name)
        if log:
            await append(store, name, *log)
        document = await exported(store, name, OPENAI)
        assert problems(json.loads(document)) == []
        assert document == (await surface(store, name)).openai_text()
        again = await imported_id(store, document, OPENAI, id=f"{name}-2")
        assert await exported(store, again, OPENAI) == document
        check(await surface(store, again))

    play_all(opening, ADMITTED, play)


async def full(store: Store) -> None:
    """A session with a bit of everything."""
    await create(
        store,
        "a",
        label="Full",
        workflow_mode="plan",
        metadata='{"b":1,"a":[null]}',
        config=SessionConfig(system_prompt="fixed", skills=["x"]),
    )
    await put(store, "a", SlotName.SYSTEM_PROMPT, "slot")
    await put_insight(store, "a", "first")
    await append(store, "a", TurnStart(turn_id="t", query="q"), system("rules"), user("q"), call("x"), result("x"))
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    await append(
        store,
        "a",
        assistant("answer"),
        CardEvent(card_type="Table", payload="type: Table\ntitle: T\n"),
        CardEvent(card_type="New", payload="rows: ["),
        CustomEvent(name="n", data='{"$set":1.0}'),
        user("short", 2, 2),
        hide(1, 2),
        chunk("par"),
        chunk("tial"),
        TurnEnd(turn_id="t"),
        RunFeedback(turn_id="t", feedback="good", self_evaluation="null"),
        TurnStart(turn_id="u"),
        call("open"),
    )
    await put_insight(store, "a", "second")
    await put(store, "a", SlotName.MEMORY, "outside", at_seq=7)


async def test_jsonl_holds_the_whole_session(store: Store) -> None:
    await full(store)
    before, slots_before = await session(store, "a"), await slots(store, "a")
    document = await exported(store, "a", JSONL)
    lines = [json.loads(line) for line in document.splitlines()]
    assert [line["seq"] for line in lines[1:]] == list(range(before.head))
    assert {line["type"] for line in lines} >= {"surface/hide", "run/feedback", "insight/delivered", "custom", "card"}
    again = await imported_id(store, document, JSONL, id="b")
    meta, found = await session(store, again), await slots(store, again)
    assert bare(await whole_log(store, "b")) == bare(await whole_log(store, "a"))
    fields = ("label", "status", "workflow_mode", "metadata", "head", "open", "totals", "memory_at_seq", "behind")
    assert [getattr(meta, name) for name in fields] == [getattr(before, name) for name in fields]
    for name in SlotName:
        one, other = slots_before.named(name), found.named(name)
        assert one is not None and other is not None
        assert one.content == other.content
    assert (await node(store, "b")).document.config == (await node(store, "a")).document.config
    assert shown(await surface(store, "b")) == shown(await surface(store, "a"))
    lines_again = [json.loads(line) for line in (await exported(store, "b", JSONL)).splitlines()]
    assert lines_again[1:] == lines[1:]
    assert {**lines_again[0], "id": "a", "createdAt": lines[0]["createdAt"]} == lines[0]


async def test_yaml_holds_the_texts_and_cards_of_a_session(store: Store) -> None:
    await full(store)
    read = yaml.safe_load(await exported(store, "a"))
    assert list(read) == ["sessionId", "title", "createdAt", "updatedAt", "workflowMode", "entries"]
    meta = await session(store, "a")
    assert [read[name] for name in ("sessionId", "title", "workflowMode")] == ["a", "Full", "plan"]
    assert read["createdAt"] == text.format_instant(meta.created_at)
    assert read["updatedAt"] == text.format_instant(meta.updated_at)
    # As people saw it: replaced messages stay, hidden ones do not, a cut-off answer is there.
    assert read["entries"] == [
        {"kind": "Text", "role": "User", "content": "q"},
        {"kind": "Text", "role": "Assistant", "content": "answer"},
        {"kind": "Special", "type": "Table", "payload": "type: Table\ntitle: T\n"},
        {"kind": "Special", "type": "New", "payload": "rows: ["},
        {"kind": "Text", "role": "Assistant", "content": "partial"},
    ]


async def test_exported_messages_are_the_surface(store: Store) -> None:
    await full(store)
    sent = json.loads(await exported(store, "a", OPENAI))
    assert problems(sent) == []
    assert [message["role"] for message in sent] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
        "assistant",
        "tool",
    ]
    assert not {"slot", "first", "second", "outside"} & {message["content"] for message in sent}


async def test_a_fork_is_exported_whole(store: Store) -> None:
    await full(store)
    await fork(store, "a", id="f", at_seq=5)
    await append(store, "f", user("own"))
    again = await imported_id(store, await exported(store, "f", JSONL), JSONL, id="g")
    assert bare(await whole_log(store, again)) == bare(await whole_log(store, "f"))
    assert (await session(store, again)).own_start == 0


@pytest.mark.parametrize("format", ExportFormat)
async def test_an_unknown_session_is_not_exported(store: Store, format: ExportFormat) -> None:
    await create(store, "a")
    for id in ("nobody", "", "\ud800", "x" * 1_000):
        assert await export_document(store, SPACE, id, format) is None
    assert await export_document(store, "other", "a", format) is None


@pytest.mark.parametrize("format", ExportFormat)
async def test_an_empty_session_round_trips(store: Store, format: ExportFormat) -> None:
    await create(store, "a")
    again = await imported_id(store, await exported(store, "a", format), format, id="b")
    assert await whole_log(store, again) == []


async def test_given_id_label_and_parent_override_the_document(store: Store) -> None:
    await create(store, "top")
    document = "sessionId: mine\ntitle: Mine\nentries:\n- {kind: Text, role: User, content: hello}\n"
    assert await imported_id(store, document) == "mine"
    assert ((await session(store, "mine")).label, (await node(store, "mine")).parent_id) == ("Mine", None)
    assert await imported_id(store, document, id="other", label="Other", parent_id="top") == "other"
    assert ((await session(store, "other")).label, (await node(store, "other")).parent_id) == ("Other", "top")
    made = await imported_id(store, "entries: []")
    assert len(made) == 36
    assert (await session(store, made)).label == "Root"
    below = await imported_id(store, "entries: []", parent_id="top")
    assert (await session(store, below)).label == "Session"


async def test_an_import_under_a_taken_id_is_refused(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("mine"))
    before = await session(store, "a")
    cases: list[tuple[str, dict[str, Any]]] = [
        ("sessionId: a\nentries: []", {}),
        ("sessionId: b\nentries: []", {"id": "a"}),
    ]
    for document, wanted in cases:
        assert "'a' is taken" in await refusal(store, document, error=errors.DuplicateId, **wanted)
    lines = await exported(store, "a", JSONL)
    assert "'a' is taken" in await refusal(store, lines, JSONL, errors.DuplicateId)
    assert await session(store, "a") == before
    assert (await session(store, await imported_id(store, lines, JSONL, id="b"))).head == 1


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"id": "not legal"}, errors.BadInput, "'not legal' is not 1 to 128 characters of A-Z a-z 0-9"),
        ({"id": ""}, errors.BadInput, "'' is not 1 to 128 characters"),
        ({"label": "x" * 501}, errors.BadInput, "label: takes 500 characters, this has 501"),
        ({"parent_id": "nobody"}, errors.NotFound, "parentId: no session 'nobody'"),
        ({"parent_id": "\ud800"}, errors.NotFound, "parentId: no session"),
    ],
)
async def test_a_bad_argument_is_refused(
    store: Store, given: dict[str, Any], error: type[errors.SapwoodError], match: str
) -> None:
    assert match in await refusal(store, "entries: []", error=error, **given)


async def test_an_archived_session_is_imported_archived(store: Store) -> None:
    await full(store)
    await store.sessions.set_status(SPACE, "a", SessionStatus.ARCHIVED)
    await imported_id(store, await exported(store, "a", JSONL), JSONL, id="b")
    assert (await session(store, "b")).status is SessionStatus.ARCHIVED


def lines_of(*sections: tuple[dict[str, Any], list[dict[str, Any]]]) -> str:
    """A JSONL document of the headers with their events."""
    lines: list[dict[str, Any]] = []
    for header, events in sections:
        lines.append({"type": "session", "format": "sapwood", "version": 1, **header})
        lines += [{"seq": seq, **event} for seq, event in enumerate(events)]
    return "\n".join(map(json.dumps, lines))


async def test_several_sessions_are_imported_together(store: Store) -> None:
    says = {"type": "user/message", "content": "hello"}
    document = lines_of(({"id": "p"}, [says]), ({"id": "c", "parentId": "p"}, [says, says]))
    assert await refusal(store, document, JSONL, id="x") == "id: the document holds 2 sessions, so leave it out"
    assert await refusal(store, document, JSONL, label="x") == "label: the document holds 2 sessions, so leave it out"
    await create(store, "top")
    done = await imported(store, document, JSONL, parent_id="top")
    assert (done.ids, done.events) == ({"p": "p", "c": "c"}, 3)
    assert [(await node(store, id)).parent_id for id in ("p", "c")] == ["top", "p"]
    two = json.dumps([{"role": "user", "content": "a"}]) + "\n" + json.dumps([{"role": "user", "content": "b"}])
    assert "2 sessions" in await refusal(store, two, OPENAI, id="x")
    assert len((await imported(store, two, OPENAI)).ids) == 2


async def test_a_late_error_in_a_document_rolls_back_the_import(store: Store) -> None:
    says = {"type": "user/message", "content": "hello"}
    replaces = {**says, "surfaceOp": {"op": "REPLACE", "start": 0, "end": 1}}
    for bad, match in (
        ({"type": "turn/end", "turnId": "never"}, r"turn 'never' was never started"),
        (replaces, "surfaceOp.end: 1 is no node of the surface"),
        ({"type": "surface/hide", "fromSeq": 0, "toSeq": 9}, "beyond the event's own seq"),
    ):
        document = lines_of(({"id": "p"}, [says]), ({"id": "c", "parentId": "p"}, [says, bad]))
        message = await refusal(store, document, JSONL)
        assert message.startswith("session c: events[1].")
        assert match in message


BOMB = "\n".join(
    ["a0: &a0 " + "x" * 1_000]
    + [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 100) + "]" for level in range(1, 9)]
    + ["entries: *a8"]
)
TEXT = "entries: [{kind: Text, role: User, content: a}, "


BROKEN = [
    (YAML, "", "the document is empty"),
    (YAML, "{{{", "not YAML or JSON that is allowed: line 1 column 2"),
    (YAML, "a: b: c", "not YAML or JSON that is allowed: line 1 column 5"),
    (YAML, "\ud800", "must be a mapping"),
    (YAML, "\x00", "not YAML or JSON that is allowed"),
    (YAML, "[" * 2_000, "[0]: the document ends in the middle"),
    (YAML, "[]", "document: holds no session"),
    (YAML, "title: x", "entries: is required"),
    (YAML, "entries: 5", "entries: must be a list"),
    (YAML, TEXT + "5]", "entries[1]: must be an object"),
    (YAML, TEXT + "{kind: Video}]", "entries[1].kind: must be one of Text, Special, is 'Video'"),
    (YAML, TEXT + "{role: User}]", "entries[1].kind: must be one of Text, Special"),
    (
        YAML,
        TEXT + "{kind: Text, role: Bot, content: x}]",
        "entries[1].role: must be one of User, Assistant",
    ),
    (YAML, TEXT + "{kind: Text, role: User}]", "entries[1].content: is required"),
    (YAML, TEXT + "{kind: Text, role: User, content: [x]}]", "entries[1].content: must be text"),
    (YAML, TEXT + "{kind: Special, type: Form}]", "entries[1].payload: is required"),
    (YAML, TEXT + "{kind: Special, type: Form, payload: {a: 1}}]", "entries[1].payload: must be text"),
    (YAML, "createdAt: today\nentries: []", "createdAt: 'today' is not an ISO 8601 instant"),
    (YAML, "entries: []\nentries: []", "line 2 column 1: the key 'entries' is given twice"),
    (YAML, "entries: !!python/object:os.x {}", "the tag"),
    (YAML, BOMB, "anchors are not allowed (&a0)"),
    (JSONL, "", "the document is empty"),
    (JSONL, "{{{", "not JSON"),
    (JSONL, "5", "line 1: must be an object"),
    (JSONL, "entries: []", "not JSON"),
    (JSONL, '{"seq": 0, "type": "user/message", "content": "x"}', "line 1: an event before the header line"),
    (
        JSONL,
        '{"type": "session", "format": "other", "version": 1, "id": "a"}',
        "line 1: a header of format",
    ),
    (JSONL, lines_of(({"id": "not legal"}, [])), "line 1: id: String should match"),
    (JSONL, lines_of(({"id": "a"}, []), ({"id": "a"}, [])), "line 2: the file holds the session a twice"),
    (JSONL, lines_of(({"id": "a"}, [{"type": "video"}])), "line 2: 'video' is not a type of event"),
    (JSONL, lines_of(({"id": "a"}, [{"seq": 1, "type": "card"}])), "line 2: seq is 1 where 0 comes next"),
    (JSONL, lines_of(({"id": "a"}, [{"type": "user/message", "content": 5}])), "line 2: content: Input should be"),
    (JSONL, lines_of(({"id": "a"}, [])) + "\n{NaN}", "line 2: not JSON"),
    (OPENAI, "", "the document is empty"),
    (OPENAI, "{{{", "not JSON"),
    (OPENAI, "{}", "messages: must be a list, is null"),
    (OPENAI, '{"messages": [5]}', "messages[0]: must be an object"),
    (OPENAI, '[{"role": "user", "content": "a"}, {"content": "x"}]', "document [1].role: must be a string, is null"),
    (OPENAI, '[{"role": "user", "content": 5}]', "document [0].content: must be a string, a list of parts or null"),
    (OPENAI, '[{"role": "assistant", "tool_calls": 5}]', "document [0].tool_calls: must be a list"),
    (OPENAI, '[{"role": "assistant", "tool_calls": [{"id": "x"}]}]', "document [0].tool_calls[0].function"),
    (OPENAI, "[" * 2_000 + "]" * 2_000, "nested deeper than 500 levels"),
]


@pytest.mark.parametrize(
    ("format", "document", "match"), BROKEN, ids=[f"{format} {match}" for format, _, match in BROKEN]
)
async def test_a_broken_document_is_refused_with_location_and_rule(
    store: Store, format: ExportFormat, document: str, match: str
) -> None:
    message = await refusal(store, document, format)
    assert message.startswith("document")
    assert match in message
    assert (await forest(store)).nodes == []


async def test_losses_are_reported(store: Store) -> None:
    done = await imported(
        store, "sessionId: not legal\nowner: me\nentries:\n- {kind: Text, role: User, content: x, at: 5}"
    )
    assert done.warnings == [
        "1 session lost its id, which is not a valid session id",
        "1 session lost owner",
        "1 text lost at",
    ]
