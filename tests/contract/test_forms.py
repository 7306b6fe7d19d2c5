"""Form definitions of a space."""

import asyncio

import pytest

from storage import errors
from storage.store import Store
from tests.conftest import OpenStore
from tests.contract.shorthand import SPACE

MIB = 1024 * 1024
ODD = ["\x00", "\x00\x00", "a/b", "../a", "$set", "a.b", " ", "%", "ü", "🌳", "\u2028", "x" * 256, "🌳" * 256]


async def test_a_definition_comes_back_exactly(store: Store, open_store: OpenStore) -> None:
    definition = '{"b": 1.0, "a": {"$set": [null, "\\u0000"], "": 18446744073709551615}, "b.c": "\\ud83c\\udf33"}'
    put = await store.forms.put(SPACE, "wells", definition)
    assert (put.space, put.form_id, put.definition) == (SPACE, "wells", definition)
    for reader in (store, await open_store()):
        assert await reader.forms.get(SPACE, ["wells"]) == {"wells": put}
        assert await reader.forms.all(SPACE) == [put]


async def test_a_later_definition_replaces_an_earlier_one(store: Store) -> None:
    first = await store.forms.put(SPACE, "f", '{"n":1}')
    second = await store.forms.put(SPACE, "f", '{"n":2}')
    assert second.updated_at >= first.updated_at
    assert await store.forms.all(SPACE) == [second]


async def test_unknown_ids_are_left_out(store: Store) -> None:
    known = await store.forms.put(SPACE, "f", "{}")
    assert await store.forms.get(SPACE, ["f", "g", "", "x" * 1_000]) == {"f": known}
    assert await store.forms.get(SPACE, []) == {}
    assert await store.forms.all("other") == []


async def test_lists_are_in_the_order_of_the_ids(store: Store) -> None:
    ids = ["b", "a", "B", "ä", "🌳", "\uffff", "a\x00", "aa", "10", "9"]
    for id in ids:
        await store.forms.put(SPACE, id, "{}")
    assert [form.form_id for form in await store.forms.all(SPACE)] == sorted(ids)
    assert list(await store.forms.get(SPACE, ids)) == ids


async def test_spaces_do_not_see_each_others_definitions(store: Store) -> None:
    mine = await store.forms.put("one", "f", '"mine"')
    yours = await store.forms.put("two", "f", '"yours"')
    for space, form in (("one", mine), ("two", yours)):
        assert await store.forms.all(space) == [form]
        assert await store.forms.get(space, ["f"]) == {"f": form}
    assert await store.forms.get("three", ["f"]) == {}


@pytest.mark.parametrize("id", ODD, ids=ascii)
async def test_an_id_may_be_any_text(store: Store, id: str) -> None:
    put = await store.forms.put(SPACE, id, "[]")
    assert put.form_id == id
    assert await store.forms.get(SPACE, [id]) == {id: put}
    assert await store.forms.all(SPACE) == [put]


async def test_lone_surrogates_in_an_id_are_replaced(store: Store) -> None:
    put = await store.forms.put(SPACE, "a\ud800", "[]")
    assert put.form_id == "a\ufffd"
    for id in ("a\ud800", "a\ufffd", "a\udfff"):
        assert await store.forms.get(SPACE, [id, "\udfff"]) == {id: put}


@pytest.mark.parametrize("id", ["", "x" * 257])
async def test_an_id_has_1_to_256_characters(store: Store, id: str) -> None:
    with pytest.raises(errors.BadInput, match=f"^formId: must have 1 to 256 characters, has {len(id)}$"):
        await store.forms.put(SPACE, id, "{}")
    assert await store.forms.all(SPACE) == []


@pytest.mark.parametrize("definition", ["null", "0", '""', "[]", "false"])
async def test_any_json_value_is_a_definition(store: Store, definition: str) -> None:
    await store.forms.put(SPACE, "f", definition)
    assert (await store.forms.get(SPACE, ["f"]))["f"].definition == definition


async def test_a_definition_has_at_most_1_mib(store: Store) -> None:
    most = '"' + "ü" * ((MIB - 2) // 2) + '"'
    put = await store.forms.put(SPACE, "f", most)
    with pytest.raises(errors.PayloadTooLarge, match=f"^definition: takes {MIB} bytes as JSON, this has {MIB + 1}$"):
        await store.forms.put(SPACE, "f", most[:-1] + 'x"')
    assert await store.forms.all(SPACE) == [put]


async def test_one_of_several_concurrent_writes_wins(store: Store, open_store: OpenStore) -> None:
    stores = (store, await open_store())
    puts = await asyncio.gather(*(stores[n % 2].forms.put(SPACE, "f", f"{n}") for n in range(10)))
    [left] = await store.forms.all(SPACE)
    assert left in puts
