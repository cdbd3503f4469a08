"""What is read of somebody else's JSON and texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapmodel.errors import EngineError
from leapmodel.execution.talking.received import (
    MOST_TOKENS,
    decoded,
    is_whole,
    token_count,
    whole_text,
)


@given(st.text(st.characters(), max_size=20))
def test_a_text_comes_out_whole_and_what_was_whole_as_it_is(text: str):
    found = whole_text(text)
    found.encode()
    assert is_whole(found)
    assert found == text or not is_whole(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 40))
def test_a_text_may_be_cut_between_halves(text: str, at: int):
    escapes = text.encode("utf-16-le")
    units = [
        escapes[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(escapes), 2)
    ]
    assert whole_text("".join(units[:at]) + "".join(units[at:])) == text


@pytest.mark.parametrize("depth", [101, 900, 100_000])
def test_nesting_has_a_bound_that_does_not_depend_on_the_caller(depth: int):
    with pytest.raises(ValueError, match="nested too deeply"):
        decoded("[" * depth + "]" * depth)


def test_what_is_nested_less_is_read():
    text = json.dumps({"a": [[1, None], {"b": {}}]})
    assert decoded(text) == decoded(text.encode()) == json.loads(text)
    assert decoded("[" * 100 + "]" * 100)
    assert decoded("[" + "[], {}, " * 200 + "1]")[-1] == 1


def test_counts():
    assert [token_count(n, "x") for n in (None, 0, MOST_TOKENS)] == [None, 0, MOST_TOKENS]
    for wrong in (-1, MOST_TOKENS + 1, 10**400, True, 2.0, float("nan"), "3", [1]):
        with pytest.raises(EngineError, match=r"^x: expected a count of tokens, found "):
            token_count(wrong, "x")
