"""Ask a draft for its action on every context of a held-out trace (Table 7).

One call at a time, as a draft is asked in the loop, and none of the contexts in the prefix cache
beforehand; so the seconds of a call are those a prediction may use. What comes back are ordinary
predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from leapmodel.benchmarks import Benchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.errors import UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.protocol import reset_cache
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.predictions import Predictions


async def ask_draft(
    benchmark: Benchmark,
    contexts: Sequence[Context],
    draft: Endpoint,
    *,
    name: str | None = None,
    repeats: int = 1,
    reset_caches: bool = True,
    tick: Callable[[], None] = lambda: None,
) -> Predictions:
    """Return what a draft proposes on given contexts.

    Parameters
    ----------
    benchmark : Benchmark
        Parses the draft's outputs.
    contexts : sequence of Context
        As :func:`~leapmodel.execution.contexts.contexts_of` gives them.
    draft : Endpoint
        Open.
    name : str, optional
        What the predictions call the draft; default its name at the server.
    repeats : int, default 1
        Times that all contexts are gone through.
    reset_caches : bool, default True
        Whether the prefix cache is emptied before each time.
    tick : callable, optional
        Called after each call.

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
        If the server fails.
    """
    if not contexts:
        raise UsageError("no context to ask the draft about")
    name = name or draft.model
    rows = []
    await draft.generate(contexts[0].draft)  # the first call opens connections
    for repeat in range(repeats):
        if reset_caches:
            await reset_cache(draft)
        for context in contexts:
            answer = await draft.generate(context.draft)
            rows.append(
                {
                    "task": context.task.name,
                    "run": context.run,
                    "step": context.step,
                    "draft": name,
                    "repeat": repeat,
                    "action": benchmark.parse("draft", answer.text),
                    "latency_s": answer.end_s - answer.start_s,
                    "output": answer.text,
                    "prompt_tokens": answer.prompt_tokens,
                    "completion_tokens": answer.completion_tokens,
                }
            )
            tick()
    about = {
        "made_by": "leapmodel agreement",
        "benchmark": about_benchmark(benchmark),
        "draft": {"model": draft.model, "name": name},
        "reset_caches": reset_caches,
    }
    return Predictions.from_frame(pd.DataFrame(rows), about)
