"""What a person may add to a request, and what not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from leapmodel.benchmarks import Prompt
from leapmodel.errors import UsageError
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.execution.talking.request import OWN_FIELDS

PROMPT = Prompt(({"role": "user", "content": "x"},), 8, {"choice": ["a"]})


def asked(**extra: Any) -> dict[str, Any]:
    return Endpoint("http://a", "m", role="draft", extra=extra).body(PROMPT)


def test_fields_are_added():
    extra = {"top_k": 1, "chat_template_kwargs": {"enable_thinking": False}}
    assert asked(**extra) == {**asked(), **extra}


def test_every_field_that_is_set_is_known_to_be():
    assert asked().keys() <= OWN_FIELDS


@pytest.mark.parametrize("field", sorted(OWN_FIELDS))
def test_what_is_set_is_not_overridden(field: str):
    said = f"draft: extra field {field!r}: expected one that is not set already, found 2"
    with pytest.raises(UsageError, match=f"^{re.escape(said)}$"):
        asked(**{field: 2})


@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], {"a": "\ud83d"}, {"\udcff": 1}, {1, 2}]
)
def test_what_no_record_holds_is_refused(value: Any):
    said = "draft: extra field 'x': expected JSON of finite numbers and whole characters, found "
    with pytest.raises(UsageError) as caught:
        asked(x=value)
    assert str(caught.value) == said + repr(value)


def test_a_field_that_is_nested_too_deeply():
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(UsageError, match="'x': expected JSON, found one nested too deeply"):
        asked(x=nested)
