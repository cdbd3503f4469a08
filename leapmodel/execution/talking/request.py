"""The body of a request: the fields that every one has, and those that a person adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leapmodel.benchmarks import Prompt
from leapmodel.errors import UsageError, shown
from leapmodel.execution.talking.received import decoded

OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "seed",
        "stream",
        "stream_options",
        "structured_outputs",
        "n",
    }
)
"""What is set by the program, and stated in a record as it sets it; or, as ``n``, must not be."""


def request_body(
    prompt: Prompt, model: str, temperature: float, seed: int, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the JSON body of a streamed chat completion."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [dict(message) for message in prompt.messages],
        "max_tokens": prompt.max_tokens,
        "temperature": temperature,
        "seed": seed,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        **extra,
    }
    if prompt.structured is not None:
        body["structured_outputs"] = dict(prompt.structured)
    return body


def checked_extra(extra: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return the fields that a person adds to each request.

    They are part of a record too, which has to be read again as it was written.

    Parameters
    ----------
    extra : mapping
    role : str
        Whose requests they are, for messages.

    Raises
    ------
    UsageError
        If the program sets one of them itself, or one is no JSON that a record can hold.
    """
    for field, value in extra.items():
        where = f"{role}: extra field {shown(field)}"
        if field in OWN_FIELDS:
            raise UsageError(f"{where}: expected one that is not set already, found {shown(value)}")
        try:
            decoded(json.dumps({field: value}, allow_nan=False, ensure_ascii=False).encode())
        except RecursionError:
            raise UsageError(f"{where}: expected JSON, found one nested too deeply") from None
        except (ValueError, TypeError):
            raise UsageError(
                f"{where}: expected JSON of finite numbers and whole characters, found"
                f" {shown(value)}"
            ) from None
    return dict(extra)
