"""What a model is sent: the context, records and prompt of a stored session."""

import orjson
import pytest

from storage import errors
from storage.events import CardEvent, TurnEnd, TurnStart
from storage.session import SessionConfig, SlotName
from storage.store import Store
from storage.views.context import PromptContext
from storage.views.message import Message, Role
from tests.contract.shorthand import SPACE, append, create, fork, put, put_insight, session, slots
from tests.storage.views.surface_logs import assistant, call, chunk, hide, result, short, system, user
from tests.storage.views.validity import problems

TURN, TURN_END = TurnStart(turn_id="t"), TurnEnd(turn_id="t")
OUTSIDE = "seen from outside"


async def context(store: Store, id: str = "a") -> PromptContext:
    """The context, checked to be valid and without the memory."""
    found = await store.messages.context(SPACE, id)
    sent = orjson.loads(found.openai)
    assert problems(sent) == []
    assert OUTSIDE not in found.openai
    leading = [content for content in (found.system_prompt, found.insight and found.insight.content) if content]
    assert [message["content"] for message in sent[: len(leading)]] == leading
    assert all(message["role"] == "system" for message in sent[: len(leading)])
    assert len(sent) == len(leading) + len(found.messages)
    assert found.at_seq == (await session(store, id)).head
    return found


async def insight(store: Store, id: str = "a") -> tuple[str | None, int] | None:
    """Content and version of the insight in the context."""
    found = (await context(store, id)).insight
    return None if found is None else (found.content, found.version)


async def records(store: Store, **wanted: object) -> list[tuple[object, ...]]:
    return [short(message) for message in await store.messages.records(await session(store, "a"), **wanted)]  # type: ignore[arg-type]


async def test_an_empty_session_has_an_empty_context(store: Store) -> None:
    await create(store, "a")
    assert await context(store) == PromptContext(None, None, [], "[]", 0)


async def test_context_is_system_prompt_then_insight_then_messages(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="Be brief."))
    await put(store, "a", SlotName.MEMORY, OUTSIDE)
    await put_insight(store, "a", "Look left.")
    await append(store, "a", system("logged"), user("hello"))
    found = await context(store)
    assert found.system_prompt == "Be brief."
    assert found.insight == (await slots(store, "a")).insight
    assert [short(message) for message in found.messages] == [("system", "logged"), ("user", "hello")]
    assert orjson.loads(found.openai) == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Look left."},
        {"role": "system", "content": "logged"},
        {"role": "user", "content": "hello"},
    ]


async def test_the_system_prompt_comes_from_the_slot(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="fixed"))
    await put(store, "a", SlotName.SYSTEM_PROMPT, "newer")
    assert (await context(store)).system_prompt == "newer"
    await put(store, "a", SlotName.SYSTEM_PROMPT, "")
    assert (await context(store)).openai == "[]"


async def test_reading_the_context_never_consumes(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "x")
    for _ in range(3):
        assert await insight(store) == ("x", 1)
    assert (await session(store, "a")).head == 0


async def test_a_delivered_insight_leaves_the_context_when_its_turn_ends(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "first")
    await append(store, "a", TURN, user("q"))
    assert await insight(store) == ("first", 1)
    sent = (await context(store)).openai
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    assert (await slots(store, "a")).insight is not None
    assert await insight(store) == ("first", 1)
    assert (await context(store)).openai == sent
    await append(store, "a", call("x"), result("x"))
    assert await insight(store) == ("first", 1)
    await append(store, "a", TURN_END)
    assert await insight(store) is None
    await append(store, "a", TurnStart(turn_id="u"))
    assert await insight(store) is None


async def test_an_insight_put_during_a_turn_waits_for_its_end(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "first")
    await append(store, "a", TURN)
    await store.sessions.consume_insight(SPACE, "a", None, "t", None)
    await put_insight(store, "a", "second")
    assert await insight(store) == ("first", 1)
    await append(store, "a", TURN_END)
    assert await insight(store) == ("second", 2)


async def test_an_insight_consumed_outside_a_turn_leaves_the_context(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "first")
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    assert await insight(store) is None
    await append(store, "a", TURN)
    assert await insight(store) is None


async def test_a_runtime_that_crashed_after_consuming_gets_the_same_context(store: Store) -> None:
    """A retry with the same key gets the same insight, and nothing is written twice."""
    await create(store, "a", config=SessionConfig(system_prompt="Be brief."))
    await append(store, "a", TURN, user("q"))
    await put_insight(store, "a", "first")
    before = (await context(store)).openai
    taken = await store.sessions.consume_insight(SPACE, "a", None, None, "once")
    assert (await context(store)).openai == before
    await put_insight(store, "a", "second")
    again = await store.sessions.consume_insight(SPACE, "a", None, None, "once")
    assert (again.insight, again.commit) == (taken.insight, taken.commit)
    assert (await context(store)).openai == before
    assert (await session(store, "a")).head == 3


async def test_a_hide_does_not_remove_the_insight_of_an_open_turn(store: Store) -> None:
    await create(store, "a")
    await put_insight(store, "a", "first")
    await append(store, "a", TURN, user("q"))
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    await append(store, "a", hide(0, 3))
    found = await context(store)
    assert (found.messages, found.insight and found.insight.content) == ([], "first")


async def test_a_fork_inherits_a_delivered_insight_but_no_pending_one(store: Store) -> None:
    await create(store, "a")
    await put(store, "a", SlotName.MEMORY, OUTSIDE)
    await put_insight(store, "a", "first")
    await append(store, "a", TURN, user("q"))
    await store.sessions.consume_insight(SPACE, "a", None, None, None)
    await put_insight(store, "a", "second")
    await fork(store, "a", id="b")
    await fork(store, "a", id="c", at_seq=2)
    assert await insight(store, "b") == ("first", 1)
    assert await insight(store, "c") is None
    await append(store, "b", TURN_END)
    assert await insight(store, "b") is None
    assert await insight(store, "a") == ("first", 1)


async def test_the_context_of_an_unknown_session_is_refused(store: Store) -> None:
    with pytest.raises(errors.NotFound):
        await store.messages.context(SPACE, "nobody")


async def test_records_are_filtered_then_skipped_then_limited(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("0"), assistant("1"), user("2"), call("x"), call("y"), result("x"), user("6"))
    everything = [
        ("user", "0"),
        ("assistant", "1"),
        ("user", "2"),
        ("assistant", None, "x", "y"),
        ("x", "ok"),
        ("user", "6"),
    ]
    assert await records(store) == everything
    assert await records(store, role=Role.USER) == [("user", "0"), ("user", "2"), ("user", "6")]
    assert await records(store, role=Role.USER, offset=1) == [("user", "2"), ("user", "6")]
    assert await records(store, role=Role.USER, offset=1, limit=1) == [("user", "2")]
    assert await records(store, role=Role.TOOL) == [("x", "ok")]
    assert await records(store, role=Role.SYSTEM) == []
    assert await records(store, from_seq=2) == everything[2:]
    assert await records(store, from_seq=4) == everything[3:]
    assert await records(store, from_seq=7) == await records(store, limit=0) == await records(store, offset=9) == []
    assert await records(store, role=Role.USER, from_seq=1, offset=1, limit=5) == [("user", "6")]
    for name in ("from_seq", "offset", "limit"):
        with pytest.raises(errors.BadInput, match="must not be negative, is -1"):
            await records(store, **{name: -1})


async def test_records_since_the_memory(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("0"), user("1"), user("2"))
    assert len(await records(store, since_memory=True)) == 3
    await put(store, "a", SlotName.MEMORY, OUTSIDE, at_seq=1)
    assert await records(store, since_memory=True) == [("user", "1"), ("user", "2")]
    assert await records(store, since_memory=True, from_seq=2) == [("user", "2")]
    await put(store, "a", SlotName.MEMORY, OUTSIDE)
    assert await records(store, since_memory=True) == []
    await append(store, "a", user("3"))
    assert await records(store, since_memory=True) == [("user", "3")]
    await fork(store, "a", id="b")
    assert len(await store.messages.records(await session(store, "b"), since_memory=True)) == 4


async def test_records_follow_replacements_and_hides(store: Store) -> None:
    await create(store, "a")
    await append(store, "a", user("0"), user("1"), user("2"), user("sum", 0, 1), hide(2, 3), chunk("part"))
    assert await records(store) == [("user", "sum"), ("assistant", "part")]


async def test_the_prompt_has_texts_and_one_line_per_card(store: Store) -> None:
    await create(store, "a", config=SessionConfig(system_prompt="slot"))
    await put(store, "a", SlotName.MEMORY, OUTSIDE)
    await append(
        store,
        "a",
        system("rules"),
        user("q"),
        call("x"),
        result("x"),
        CardEvent(card_type="Form", payload="type: Form\nformId: f\ntitle: Well parameters\n"),
        CardEvent(card_type="Form", payload="{{{"),
        chunk("part"),
    )
    meta = await session(store, "a")

    def lines(found: list[Message]) -> list[tuple[object, ...]]:
        assert not any(OUTSIDE in (message.content or "") or "type:" in (message.content or "") for message in found)
        return [(message.role.lower(), message.content) for message in found]

    plain = lines(await store.messages.prompt(meta))
    assert plain[:3] == [("system", "rules"), ("user", "q"), ("assistant", "[Form shown: Well parameters]")]
    assert len(plain) == 5
    assert plain[4] == ("assistant", "part")
    guided = lines(await store.messages.prompt(meta, "Guide."))
    assert guided == [("system", "Guide."), *plain[1:]]
    await append(store, "a", user("short", 1, 1), hide(4, 7))
    meta = await session(store, "a")
    assert lines(await store.messages.prompt(meta)) == [("system", "rules"), ("user", "short")]
    await fork(store, "a", id="b", at_seq=2)
    assert lines(await store.messages.prompt(await session(store, "b"))) == [("system", "rules"), ("user", "q")]
