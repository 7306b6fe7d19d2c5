"""Cards: any payload comes back as written; an unreadable one says why."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from storage import cards, errors
from storage.cards import Card, Unreadable, models, payload, read_card

ODD = " \n\t:-#'\"|>&*!%@`{}[],?~\\\r\x85\u2028\ufeffab0.eE+_xo\x00😀"
TEXTS = st.text(max_size=12) | st.text(alphabet=ODD, max_size=12)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
SCALARS = TEXTS | NUMBERS | st.booleans() | st.none()
PART_NAMES = st.sampled_from(["id", "name", "label", "current_value", "model_config", "_order", "copy", "é"])
PARTS = st.dictionaries(PART_NAMES | TEXTS, SCALARS, max_size=5)
LISTS = {
    "Form": "fields",
    "ParameterSet": "items",
    "ColumnMatch": "mappings",
    "WorkflowStatus": "steps",
}

FORM = """\
type: Form
id: plan-bed-3
formId: watering-plan
title: Watering plan for bed 3
status: open
fields:
  - {id: minutes, label: Minutes each morning, type: number, currentValue: 12, unit: min}
  - {id: until, label: Until, type: date, currentValue: 2026-10-31}
submitLabel: Start
"""


def card(card_type: str, text: str) -> Card:
    found = read_card(card_type, text)
    assert isinstance(found, Card), found
    return found


def reason(card_type: str, text: str) -> str:
    found = read_card(card_type, text)
    assert isinstance(found, Unreadable), found
    return found.reason


@given(VALUES)
def test_any_json_value_comes_back_from_yaml(value: object) -> None:
    assert repr(payload.load(payload.dump(value))) == repr(value)


@given(VALUES)
def test_any_yaml_parser_reads_the_output(value: object) -> None:
    assert yaml.safe_load(payload.dump(value)) == value


@given(st.sampled_from(list(cards.TYPES)), st.data())
def test_a_card_is_its_payload_in_order_with_unknown_fields(kind: str, data: st.DataObject) -> None:
    known = [field.alias for field in cards.TYPES[kind].model_fields.values()]
    unknown = st.dictionaries(PART_NAMES | TEXTS, VALUES, max_size=4).map(
        lambda fields: {name: value for name, value in fields.items() if name not in known}
    )
    fields = {"type": kind, "id": data.draw(SCALARS), "title": data.draw(SCALARS), **data.draw(unknown)}
    if kind in LISTS:
        fields[LISTS[kind]] = [{k: v for k, v in part.items() if k != "order"} for part in data.draw(st.lists(PARTS))]
    order = data.draw(st.permutations(list(fields)))
    given_fields = {name: fields[name] for name in order}
    found = card(kind, payload.dump(given_fields))
    assert repr(found.payload()) == repr(given_fields)
    assert read_card(kind, cards.write_card(found)) == found


def test_the_parts_of_a_form() -> None:
    form = card("Form", FORM)
    assert isinstance(form, models.Form) and form.fields is not None
    assert [field.current_value for field in form.fields] == [12, "2026-10-31"]
    assert (form.fields[0].model_extra, form.submit_label) == ({"unit": "min"}, "Start")
    assert (cards.card_id(form), cards.title(form)) == ("plan-bed-3", "Watering plan for bed 3")


def test_each_type_has_a_model_and_one_short_line() -> None:
    assert [cards.describe(card(kind, f"type: {kind}\ntitle: Some title")) for kind in cards.TYPES] == [
        "[Form shown: Some title]",
        "[ParameterSet shown: Some title]",
        "[Table shown: Some title]",
        "[ColumnMatch shown: Some title]",
        "[WorkflowStatus shown: Some title]",
        "[KnowledgeBase shown: Some title]",
        "[XyzLoadCard shown: Some title]",
        "[GriddingParamCard shown: Some title]",
    ]


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("Table", "id: week-40", "[Table shown: week-40]"),
        ("Table", "rows: []", "[Table shown]"),
        ("Table", 'title: "two\\nlines:  - a"', "[Table shown: two lines: - a]"),
        ("Table", f"title: {'x' * 300}", f"[Table shown: {'x' * 199}…]"),
        ("Map", "title: Where it is", "[Map shown: Where it is]"),
        ("a: 1\nb: 2", ": [", "[a: 1 b: 2 shown]"),
        ("", "", "[Card shown]"),
    ],
)
def test_the_line_of_a_card_stays_one_short_line(kind: str, text: str, line: str) -> None:
    assert cards.describe(read_card(kind, text)) == line


def test_json_is_read_like_yaml() -> None:
    as_json = cards.to_json(FORM)
    assert read_card("Form", as_json) == read_card("Form", FORM) == read_card("Form", cards.to_yaml(as_json, "Form"))
    for card in ('{"type":"Form","b":1.0,"a":[null,{"x":"1"}]}', '{"b":1.0,"type":"Other"}', "[1]"):
        assert cards.to_json(cards.to_yaml(card, "Form")) == card
    assert cards.to_json(cards.to_yaml('{"b":1.0}', "Form")) == '{"type":"Form","b":1.0}'


def test_scalars_that_are_no_json_values_stay_text() -> None:
    texts = ["2026-10-31", "yes", "007", "12:30", ".inf", "+5", "0x1F", "1_000", "1234e56", "18446744073709551616"]
    assert payload.load("\n".join(f"- {text}" for text in texts)) == texts
    assert payload.load('{"a": 1e999, "b": 18446744073709551616}') == {"a": "1e999", "b": "18446744073709551616"}
    assert payload.load("<<: {a: ~}\n1: !!str 2") == {"<<": {"a": None}, "1": "2"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", "the payload can't be read: line 2 column 1: did not find expected node content"),
        ("{a: [1", "line 2 column 1: did not find expected ',' or ']'"),
        ("a: &x [1]\nb: *x", "line 1 column 4: anchors are not allowed (&x)"),
        ("b: *x", "line 1 column 4: aliases are not allowed (*x)"),
        ("a: 1\nb: {c: 1, c: 2}", "line 2 column 11: the key 'c' is given twice"),
        ('{"a": {"c": 1, "c": 2}}', "the key 'c' is given twice"),
        ("a: !!python/object/apply:os.system [ls]", "the tag 'tag:yaml.org,2002:python/object/apply:os.system'"),
        ("a: 1\n---\nb: 2", "line 2 column 1: a second document"),
        ("? [a]\n: b", "line 1 column 3: a key must be text"),
        ("a: \x00", "control characters are not allowed"),
        ("just words", "the payload is not a mapping of fields"),
        ("", "the payload is not a mapping of fields"),
        ("type: Form", "type: the payload is a 'Form', not a Table"),
        ("rows: many", "rows: Input should be a valid list"),
        ("columnNames: [a, {b: c}]", "columnNames[1]: must be text or a number, is a mapping"),
        ("totalRowCount: many", "totalRowCount: must be a number, is a text"),
        ("id: [1]", "id: must be text or a number, is a list"),
    ],
)
def test_a_broken_payload_says_why(text: str, why: str) -> None:
    assert why in reason("Table", text)


def test_a_key_given_twice_is_found_among_very_many() -> None:
    """Comparing each key with all others would take hours."""
    fields = ", ".join(f'"k{number}": 0' for number in [*range(70_000), 69_999])
    assert reason("Table", f"{{{fields}}}") == "the payload can't be read: the key 'k69999' is given twice"


def test_a_card_of_unknown_type_keeps_its_id_and_title() -> None:
    assert read_card("Map", "id: 7\ntitle: Where") == Unreadable(
        "Map", "cards of type 'Map' are unknown here", id="7", title="Where"
    )


@pytest.mark.parametrize("source", ["[" * 600 + "]" * 600, "{a: " * 600 + "}" * 600, "- " * 600, "[" * 100_000])
def test_nesting_over_500_is_refused(source: str) -> None:
    with pytest.raises(errors.BadInput, match=r"nest"):
        payload.load(source)


def test_500_levels_are_read_and_written() -> None:
    value: object = "deep"
    for _ in range(500):
        value = [value]
    assert payload.load("[" * 500 + "deep" + "]" * 500) == value
    assert payload.load(payload.dump(value)) == value


def test_a_bomb_of_aliases_is_refused_before_it_expands() -> None:
    lines = ["a0: &a0 [" + ", ".join(["lol"] * 10) + "]"]
    lines += [f"a{level}: &a{level} [" + ", ".join([f"*a{level - 1}"] * 10) + "]" for level in range(1, 10)]
    assert "anchors are not allowed" in reason("KnowledgeBase", "\n".join(lines))


def test_a_payload_that_is_read_has_at_most_a_mebibyte() -> None:
    assert "at most 1048576 bytes, is 1048577" in reason("Table", "é" + "x" * (payload.MAX_BYTES - 1))


def test_a_form_is_degraded_without_its_definition() -> None:
    form = card("Form", FORM)
    assert cards.form_id(form) == "watering-plan"
    assert cards.degraded(form, {"watering-plan"}) is None
    assert cards.degraded(form, {"other"}) == "The form is read-only: there is no form definition 'watering-plan'."
    assert cards.degraded(card("Form", "title: x"), {"x"}) == "The form is read-only: it names no formId."
    assert cards.degraded(card("Table", "title: x"), ()) is None


@given(SCALARS.filter(lambda id: id not in (None, "")), st.booleans())
def test_the_quick_check_for_a_key_has_no_false_negatives(id: object, as_json: bool) -> None:
    fields = {"type": "Table", "id": id}
    text = cards.to_json(payload.dump(fields)) if as_json else payload.dump(fields)
    assert cards.key("Table", read_card("Table", text)) is not None
    assert cards.may_have_key(text)


@pytest.mark.parametrize("text", ['{"\\u0069d": "x"}', '"\\x69d": x', "? id\n: x", "{id: x}", "'id': x", "!!str id: x"])
def test_an_id_is_found_however_it_is_spelled(text: str) -> None:
    assert cards.key("Table", read_card("Table", text)) == ("Table", "x")
    assert cards.may_have_key(text)


def test_a_word_that_contains_id_is_no_id() -> None:
    assert not cards.may_have_key("title: a wide grid\n_id: x\nwell_id: 5")
