from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.actions import canonical_group
from leapmodel.drafts.shapes import names_of, parse_action, render
from leapmodel.drafts.texts import mask, read_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
CALLS = st.tuples(
    st.text(min_size=1, max_size=8), st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
)


@given(st.lists(CALLS, min_size=1, max_size=3))
def test_a_parsed_action_renders_to_itself(calls: list[tuple[str, dict[str, object]]]):
    action = canonical_group(calls)
    if action is None:
        return
    parsed = parse_action(action)
    if parsed.calls:
        assert render(parsed.calls, [call.values for call in parsed.calls]) == action
    else:
        assert parsed.shape == action


@given(st.text())
def test_any_text_parses_and_names(text: str):
    parse_action(text)
    names_of(text)


@pytest.mark.parametrize(
    "text", ["click 3", "f({broken})", "<respond/>", 'f({"a":1}) and', 'f({ "a": 1})', "({})", ""]
)
def test_what_is_no_canonical_call_stays_whole(text: str):
    assert parse_action(text) == (text, ())


def test_same_tools_and_keys_have_one_shape():
    first, second = parse_action('cp({"a":"x","b":1})'), parse_action('cp({"a":"é","b":[2]})')
    assert first.shape == second.shape != parse_action('cp({"a":"x"})').shape


@given(st.text())
def test_any_text_can_be_read(text: str):
    read_text(text)
    mask(text)


def test_values_in_a_text():
    seen = read_text(
        """Move 'final report.pdf' to "temp", it's urgent: order #W2378156. Zone 42!"""
    )
    assert seen.quoted == ('"final report.pdf"', '"temp"')
    assert seen.alike['"#a9"'] == ['"#W2378156"']
    assert seen.alike["9"] == ["42"]
    assert seen.alike['"9"'] == ['"42"']
    assert {"move", "urgent", "zone"} <= seen.words


def test_fields_of_a_json_text():
    seen = read_text('{"user_id": "ann_7", "items": [{"item_id": 3}, {"item_id": 4}]}')
    assert seen.named == {"user_id": ['"ann_7"'], "item_id": ["3", "4"]}
