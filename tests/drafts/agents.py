"""Made-up agents whose predictability is known."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from leapmodel.drafts import Context, DraftModel, Episode, prequential
from leapmodel.trace import Trace


def call(tool: str, **arguments: object) -> str:
    from leapmodel.actions import canonical_call

    made = canonical_call(tool, arguments)
    assert made is not None
    return made


REPLY = "<respond/>"


def trace_of(tasks: Sequence[Sequence[str | None]], **columns: Sequence[Sequence[object]]) -> Trace:
    """One run a task; a new segment after each reply. Columns are given like the tasks."""
    rows = []
    for number, actions in enumerate(tasks):
        segment = 0
        for step, action in enumerate(actions):
            row = {
                "task": f"t{number}",
                "segment": segment,
                "step": step,
                "gen_s": 1.0,
                "action": action,
            }
            row |= {name: values[number][step] for name, values in columns.items()}
            rows.append(row)
            segment += action == REPLY
    return Trace.from_frame(pd.DataFrame(rows))


def proposals(trace: Trace, draft: DraftModel, seed: int | None = None) -> list[str | None]:
    """What a draft proposes, step by step; None where it proposes nothing."""
    column = prequential(trace, draft, seed=seed).frame["action"]
    return [None if pd.isna(action) else action for action in column]


def episode(
    *actions: str | None, went_well: bool = True, messages: Sequence[str] | None = None
) -> Episode:
    """A finished run; a new segment after each reply."""
    starts = [at == 0 or actions[at - 1] == REPLY for at in range(len(actions))]
    texts = messages or [None] * len(actions)
    contexts = tuple(Context(start, message) for start, message in zip(starts, texts, strict=True))
    return Episode(contexts, actions, went_well)


def proposals_on(draft: DraftModel, run: Episode) -> list[str | None]:
    """What a draft proposes along a run, without learning from it."""
    draft.start_task()
    proposed = []
    for context, action in zip(run.contexts, run.actions, strict=True):
        proposed.append(draft.propose(context))
        draft.observe(action)
    return proposed
