"""Canonical actions: equal strings exactly where two decisions agree."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leapmodel.actions import (
    RESPOND,
    TERMINATE,
    action_kind,
    calls_any,
    canonical_action,
    canonical_call,
    canonical_calls,
    canonical_group,
    same_action,
    tool_names,
)

any_text = st.text(st.characters(exclude_categories=()), max_size=12)  # half surrogate pairs too
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(any_text, v, max_size=3)
)
arguments = st.dictionaries(any_text, values, max_size=4)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=6), v, max_size=3),
)
plain_arguments = st.dictionaries(st.text(max_size=6), plain_values, max_size=4)
names = st.text(min_size=1, max_size=8).filter(lambda name: name.strip())
tool_like_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,9}", fullmatch=True)


def same_value(first, second):
    """Compare two JSON values as the design says, without making strings of them."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same_value(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same_value, first, second))
    if type(first) in (int, float) and type(second) in (int, float):
        return first == second
    return type(first) is type(second) and first == second


def shuffled(value, random):
    """Return the value with keys reordered and whole numbers changed between int and float."""
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key], random) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, random) for item in value]
    if type(value) is int and abs(value) < 2**53 and random.random() < 0.5:
        return float(value)
    return value


@given(plain_arguments, st.randoms(use_true_random=False))
def test_key_order_and_number_type_do_not_matter(given_arguments, random):
    other = shuffled(given_arguments, random)
    assert canonical_call("f", given_arguments) == canonical_call("f", other)
    spaced = json.dumps(other, indent=3, ensure_ascii=random.random() < 0.5)
    assert canonical_call("f", given_arguments) == canonical_call("f", spaced)
    assert canonical_call("f", given_arguments) == canonical_action(f"f ( {spaced} ) ")


@given(plain_arguments, plain_arguments)
@example({"a": 1}, {"a": 1.0})
@example({"a": 1}, {"a": True})
@example({"a": 0}, {"a": False})
@example({"a": 0}, {"a": -0.0})
@example({"a": 1e22}, {"a": 10**22})
@example({"a": 2**53}, {"a": 2**53 + 1})
@example({"a": 2.0**53}, {"a": 2**53 + 1})
@example({"a": None}, {})
@example({"a": "1"}, {"a": 1})
@example({"é": "e\u0301"}, {"é": "é"})
def test_strings_are_equal_exactly_where_values_are(first, second):
    equal = canonical_call("f", first) == canonical_call("f", second)
    assert equal == same_value(first, second)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ('{"a": 1.0}', '{"a":1}'),
        ('{"a": true}', '{"a":true}'),
        ('{"a": 1e22}', '{"a":10000000000000000000000}'),
        ('{"a": 123456789012345678901234567890}', '{"a":123456789012345678901234567890}'),
        ('{"a": -0.0}', '{"a":0}'),
        ('{"a": 0.10}', '{"a":0.1}'),
        ('{"a": NaN, "b": -Infinity}', '{"a":NaN,"b":-Infinity}'),
        ('{"a": 1e999}', '{"a":Infinity}'),
        ('{"a": "\\u00e9"}', '{"a":"é"}'),
        ('{"a": "\\ud83d\\ude00"}', '{"a":"😀"}'),
        ('{"a": "\\ud800é"}', '{"a":"\\ud800\\u00e9"}'),
        ('{"a": "x\\ny"}', '{"a":"x\\ny"}'),
        ('{"a": "\u2028"}', '{"a":"\u2028"}'),
        ('{"b": {"d": 1, "c": [2.0]}}', '{"b":{"c":[2],"d":1}}'),
        ('{"a": 1, "a": 2}', '{"a":2}'),
    ],
)
def test_spelling_of_arguments(written, canonical):
    assert canonical_call("f", written) == f"f({canonical})"
    assert canonical_action(f"f({written})") == f"f({canonical})"


def test_two_halves_of_a_character_are_that_character():
    assert canonical_call("f", {"a": "\ud83d\ude00"}) == canonical_call("f", {"a": "😀"})


@pytest.mark.parametrize(
    "not_arguments", ["[1]", "1", "null", "{", "{'a': 1}", [1], 3, {"a": {1}}, {"a": object()}]
)
def test_what_is_not_a_json_object_is_unparsable(not_arguments):
    assert canonical_call("f", not_arguments) is None
    assert canonical_group([("g", {}), ("f", not_arguments)]) is None


@pytest.mark.parametrize("name", ["", "  ", "\n", None, 3])
def test_a_call_needs_a_name(name):
    assert canonical_call(name, {}) is None


def test_deep_nesting_and_huge_numbers_are_unparsable_not_a_crash():
    nested: dict = {}
    for _ in range(100_000):
        nested = {"a": nested}
    assert canonical_call("f", nested) is None
    assert canonical_call("f", '{"a":' * 100_000 + "1" + "}" * 100_000) is None
    assert canonical_call("f", '{"a":' + "9" * 5000 + "}") is None
    circular: dict = {}
    circular["a"] = circular
    assert canonical_call("f", circular) is None
    for text in ["f(" + '{"a":' * 100_000 + "1" + "}" * 100_000 + ")", "f({" * 100_000]:
        assert canonical_action(text) == text
    # leave what was built without the recursion of a nested deallocation surprise
    while nested:
        nested = nested["a"]


@given(names, arguments)
def test_a_call_is_one_line_of_utf_8_and_its_own_canonical_form(name, given_arguments):
    call = canonical_call(name, given_arguments)
    assert call is not None
    assert "\n" not in call
    call.encode("utf-8")
    assert canonical_action(call) == call


@given(st.lists(st.tuples(tool_like_names, arguments), min_size=1, max_size=3))
def test_a_group_is_its_own_canonical_form_and_gives_its_names_back(calls):
    action = canonical_group(calls)
    assert canonical_action(action) == action
    assert tool_names(action) == tuple(name for name, _ in calls)


@given(any_text | st.text('f(){}[]":,1. \n\\u', max_size=20))
@example("<respond />")
@example("[ ]")
@example("f()\n\ng( )")
@example("f({})(")
@example("({})")
def test_canonical_action_is_idempotent_and_storable(text):
    once = canonical_action(text)
    once.encode("utf-8")
    assert canonical_action(once) == once


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('move( {"to": "temp", "count": 1.0} )', 'move({"count":1,"to":"temp"})'),
        ('  ls({})\n\n cd({"b":1,\n"a":2})  \n', 'ls({})\ncd({"a":2,"b":1})'),
        ("ls()", "ls({})"),
        ("ls()\r\ncd( )", "ls({})\ncd({})"),
        ('my  tool({"a":1})', 'my tool({"a":1})'),
        ('f(x({"a": 1})', 'f(x({"a":1})'),
        ("", RESPOND),
        (" \n", RESPOND),
        ("[]", RESPOND),
        ("<respond/>", RESPOND),
        (" <respond />\n", RESPOND),
        ("< terminate / >", TERMINATE),
    ],
)
def test_what_people_write(text, canonical):
    assert canonical_action(text) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "click 3",
        " kept  as it is\n",
        "ls({}) cd({})",
        "ls({}) # why",
        "ls({}),",
        "ls({'a': 1})",
        "f(a=1)",
        "f([1])",
        "f({})\nthen I stop",
        '({"a":  1})',
        '{"name":  "f"}',
        "<respond/> hello",
    ],
)
def test_other_text_is_left_as_it_is(text):
    assert canonical_action(text) == text


def test_null_never_matches():
    assert not same_action(None, None)
    assert not same_action(None, "")
    assert not same_action("ls({})", None)
    assert same_action("ls({})", "ls({})")
    assert not same_action("ls({})\ncd({})", "cd({})\nls({})")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (None, ()),
        (RESPOND, ()),
        (TERMINATE, ()),
        ("ls({})", ("ls",)),
        ('ls({"a":"b(c)"})\ncd({})', ("ls", "cd")),
        ('f({"a":"x({y"})', ("f",)),
        ("a(b({})", ("a(b",)),
        ("click 3", ("click 3",)),
        ("f(x, 1)", ("f",)),
        ("f(g({}))", ("f",)),
        ("", ("",)),
    ],
)
def test_tool_names(action, expected):
    assert tool_names(action) == expected


def test_names_with_line_breaks_and_parentheses():
    assert canonical_call("a\nb", {}) == "a b({})"
    assert tool_names(canonical_call("a (old)\u2028b", {"x": "("})) == ("a (old) b",)
    assert canonical_call("\ud800", {}) == "\\ud800({})"


def test_patterns_and_kinds():
    assert calls_any('ls({})\nsend_mail({"to":"x"})', ["send_*"])
    assert not calls_any("send_mail", ["Send_*"])
    assert not calls_any(RESPOND, ["*"])
    assert not calls_any(None, ["*"])
    assert not calls_any("ls({})", [])
    kinds = [action_kind(a) for a in (None, RESPOND, TERMINATE, "ls({})", "")]
    assert kinds == [None, "respond", "terminate", "tool", "tool"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ls", "a b", "", "\ud800", None]),
            st.one_of(
                arguments.map(json.dumps),
                st.sampled_from(["{", " {} ", "{}}", "[]", '{"é": "\\ud800"}', "", None, 3, {}]),
            ),
        )
    )
)
def test_calls_by_the_column_are_those_one_by_one(calls):
    names, given_arguments = [name for name, _ in calls], [given for _, given in calls]
    expected = [canonical_call(name, given) for name, given in calls]
    assert canonical_calls(names, given_arguments) == expected


def test_blanks_around_the_arguments_do_not_matter():
    assert canonical_call("f", ' {"a": 1.0}\n') == 'f({"a":1})'
    assert canonical_call("f", "{} x") is None
