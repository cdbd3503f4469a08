"""Ask a draft for its action on every context of a held-out trace (Table 7).

The contexts are a benchmark's, or those of somebody's own agent. One call at a time, as a draft is
asked in the loop, and none of the contexts in the prefix cache beforehand; so the seconds of a call
are those a prediction may use. What comes back are ordinary predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from leapmodel.errors import UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.protocol import reset_cache
from leapmodel.execution.refusals import Refusals, Tell
from leapmodel.execution.talking.endpoint import Endpoint, Generation
from leapmodel.execution.talking.tool_calls import as_text
from leapmodel.predictions import Predictions


async def ask_draft(
    contexts: Sequence[Context],
    draft: Endpoint,
    decided: Callable[[Generation], str | None],
    *,
    about: Mapping[str, Any],
    bear: Tell | None = None,
    name: str | None = None,
    repeats: int = 1,
    reset_caches: bool = True,
    tick: Callable[[], None] = lambda: None,
    answered: Callable[[Generation], None] = lambda answer: None,
) -> Predictions:
    """Return what a draft proposes on given contexts.

    Parameters
    ----------
    contexts : sequence of Context
        As :func:`~leapmodel.execution.contexts.contexts_of` gives them, or
        :func:`~leapmodel.execution.own_contexts.own_contexts`.
    draft : Endpoint
        Open.
    decided : callable
        Returns the canonical action of an answer, or None if it has none.
    about : mapping
        What is known of the contexts, for the predictions' metadata.
    bear : callable, optional
        Told in a sentence which contexts the server refused, and that these have a prediction
        without an action: in the loop the draft would have none either. Without it the first of
        them is an error.
    name : str, optional
        What the predictions call the draft; default its name at the server.
    repeats : int, default 1
        Times that all contexts are gone through.
    reset_caches : bool, default True
        Whether the prefix cache is emptied before each time.
    tick : callable, optional
        Called after each call.
    answered : callable, optional
        Shown each answer.

    Returns
    -------
    Predictions
        With ``latency_s``, and further columns ``output`` (the raw text), ``prompt_tokens`` and
        ``completion_tokens``.

    Raises
    ------
    UsageError
        If there is no context.
    EngineError
        If the server fails, or refuses every context.
    """
    if not contexts:
        raise UsageError("no context to ask the draft about")
    refusals = Refusals(bear, "count as wrong")
    name = name or draft.model
    rows = []
    any_answer = False
    with refusals.taken(contexts[0]):
        await draft.generate(contexts[0].draft)  # the first call opens connections
    for repeat in range(repeats):
        if reset_caches:
            await reset_cache(draft)
        for context in contexts:
            place = {"task": context.task.name, "run": context.run, "step": context.step}
            row: dict[str, Any] = {**place, "draft": name, "repeat": repeat, "action": None}
            began_s = time.perf_counter()
            with refusals.taken(context):
                answer = await draft.generate(context.draft)
                any_answer = True
                answered(answer)
                calls = answer.tool_calls
                row |= {
                    "action": decided(answer),
                    "latency_s": answer.seconds,
                    "output": as_text(calls) if calls else answer.text,
                    "prompt_tokens": answer.prompt_tokens,
                    "completion_tokens": answer.completion_tokens,
                }
            row.setdefault("latency_s", time.perf_counter() - began_s)
            rows.append(row)
            tick()
    refusals.tell(anything_left=any_answer)
    said = {
        "made_by": "leapmodel agreement",
        **about,
        "draft": {"model": draft.model, "name": name},
        "reset_caches": reset_caches,
    }
    return Predictions.from_frame(pd.DataFrame(rows), said)
