"""Ask a draft for its action on every context of a held-out trace (Table 7).

The contexts are a benchmark's, or those of somebody's own agent. One call at a time, as a draft is
asked in the loop, and none of the contexts in the prefix cache beforehand; so the seconds of a call
are those a prediction may use. What comes back are ordinary predictions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from leapmodel.errors import UsageError
from leapmodel.execution.contexts import Context
from leapmodel.execution.protocol import reset_cache
from leapmodel.execution.refusals import Refusals, Tell
from leapmodel.execution.talking.endpoint import Endpoint, Generation
from leapmodel.execution.talking.tool_calls import as_text
from leapmodel.predictions import Predictions
from leapmodel.recorded_settings import first_difference, refuse_difference

_KEY = ("task", "run", "step", "repeat")


@dataclass
class Asking:
    """A draft, what it is asked, and what it has answered so far.

    Attributes
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
        without an action, and the time of the refusal: a loop would go on without the draft there.
        Without it the first of them is an error.
    name : str, optional
        What the predictions call the draft; default its name at the server.
    repeats : int, default 1
        Times that all contexts are gone through.
    reset_caches : bool, default True
        Whether the prefix cache is emptied before each time.
    rows : list of dict
        One for each answer; those that are there are not asked for again.
    """

    contexts: Sequence[Context]
    draft: Endpoint
    decided: Callable[[Generation], str | None]
    about: Mapping[str, Any]
    bear: Tell | None = None
    name: str | None = None
    repeats: int = 1
    reset_caches: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many answers there are in the end."""
        return len(self.contexts) * self.repeats

    @property
    def metadata(self) -> dict[str, Any]:
        """What the predictions say of themselves, as JSON gives it back."""
        said = {
            "made_by": "leapmodel agreement",
            **self.about,
            "draft": {
                "model": self.draft.model,
                "name": self.name or self.draft.model,
                "extra": self.draft.extra,
            },
            "reset_caches": self.reset_caches,
        }
        return dict(json.loads(json.dumps(said)))

    def go_on_with(self, earlier: Predictions, source: str) -> None:
        """Take over the answers of another time.

        Parameters
        ----------
        earlier : Predictions
        source : str
            What error messages call them, such as their file.

        Raises
        ------
        UsageError
            If another draft gave them, or to other contexts, or was asked otherwise.
        """
        ours = self.metadata
        theirs = {key: earlier.metadata.get(key) for key in ours}
        refuse_difference(f"{source}: was made", first_difference(theirs, ours))
        wanted = {(*one.key, n) for one in self.contexts for n in range(self.repeats)}
        for row in earlier.frame.astype(object).to_dict("records"):
            if tuple(row[name] for name in _KEY) not in wanted:
                key = " ".join(f"{name} {row[name]}" for name in _KEY)
                raise UsageError(f"{source}: has an answer to {key}, which is not asked now")
            kept = {str(name): None if pd.isna(value) else value for name, value in row.items()}
            self.rows.append(kept)

    def so_far(self) -> Predictions:
        """Return what has been answered; it says of itself if that is not all.

        Raises
        ------
        DataError
            If there is nothing.
        """
        metadata = self.metadata
        if len(self.rows) < self.total:
            few = f"it broke off with {len(self.rows)} of {self.total} answers"
            metadata["warnings"] = [f"{self.name or self.draft.model}: {few}"]
        return Predictions.from_frame(pd.DataFrame(self.rows), metadata)

    async def ask(
        self,
        *,
        tick: Callable[[], None] = lambda: None,
        answered: Callable[[Generation], None] = lambda answer: None,
    ) -> Predictions:
        """Ask for what is not answered yet, and return all of it.

        Parameters
        ----------
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
            If the server fails, or refuses every context; ``rows`` has what came before.
        """
        if not self.contexts:
            raise UsageError("no context to ask the draft about")
        refusals = Refusals(self.bear, "count as wrong")
        known = {tuple(row[name] for name in _KEY) for row in self.rows}
        left = [
            [one for one in self.contexts if (*one.key, repeat) not in known]
            for repeat in range(self.repeats)
        ]
        if any(left):
            with refusals.taken(self.contexts[0]):
                await self.draft.generate(self.contexts[0].draft)  # opens connections
        for repeat, contexts in enumerate(left):
            if contexts and self.reset_caches:
                await reset_cache(self.draft)
            for context in contexts:
                self.rows.append(await self._answer(context, repeat, refusals, answered))
                tick()
        refusals.tell(anything_left=any(row["output"] is not None for row in self.rows))
        return self.so_far()

    async def _answer(
        self,
        context: Context,
        repeat: int,
        refusals: Refusals,
        answered: Callable[[Generation], None],
    ) -> dict[str, Any]:
        row = {
            **dict(zip(_KEY, (*context.key, repeat), strict=True)),
            "draft": self.name or self.draft.model,
            "action": None,
            "latency_s": None,
            "output": None,
            "prompt_tokens": None,
            "completion_tokens": None,
        }
        began_s = time.perf_counter()
        with refusals.taken(context):
            answer = await self.draft.generate(context.draft)
            answered(answer)
            calls = answer.tool_calls
            return {
                **row,
                "action": self.decided(answer),
                "latency_s": answer.seconds,
                "output": as_text(calls) if calls else answer.text,
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": answer.completion_tokens,
            }
        return {**row, "latency_s": time.perf_counter() - began_s}
