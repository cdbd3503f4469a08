"""Gather the steps of one run while its messages come by, in order of time.

Many logs hold no durations, only the time of each message. Then a generation lasted from the
latest thing the model could wait for (a user message, a tool's result, its own previous message)
to its message, and a tool from the message that called it to the last of its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.importers.durations import whole_microseconds
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Guess, Message, Step


class Usage(NamedTuple):
    """Tokens of one generation, None where the log does not count them."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None


_UNKNOWN = Usage()


class Conversation:
    """The messages of one run so far, and the steps among them.

    Parameters
    ----------
    task : str
        For the ledger.
    ledger : Ledger
        Where remarkable things are counted; its ``keep_messages`` says whether to keep texts.
    """

    def __init__(self, task: str, ledger: Ledger) -> None:
        self.task = task
        self.ledger = ledger
        self.steps: list[Step] = []
        self.clock: int | None = None
        """The latest moment at which a generation could begin, microseconds since 1970."""
        self._ended: int | None = None  # when the last step's message was complete
        self._before: list[Message] = []
        self._segment = 0
        self._turn_ended = False

    @property
    def keeps(self) -> bool:
        """Whether texts are wanted, so that building them pays."""
        return self.ledger.keep_messages

    def hear(self, message: Message | None = None, at: int | None = None) -> None:
        """Take in a message that is no decision of the target, or only that time went on."""
        if message is not None and self.keeps:
            self._before.append(message)
        if at is not None:
            self.clock = at if self.clock is None else max(self.clock, at)

    def end_turn(self) -> None:
        """Let the next step begin a new segment."""
        self._turn_ended = True

    def gap(self, ended: int, place: Place, field: str) -> float | None:
        """Return the seconds from what came before to a message complete at ``ended``.

        None, which is counted, if nothing came before.

        Raises
        ------
        DataError
            If the clock did not go forward.
        """
        if self.clock is None:
            self.ledger.count("messages with no time before them left out", self.task)
            return None
        if ended <= self.clock:
            back = (self.clock - ended) / 1e6
            raise place.error(
                field,
                "a time after that of the record before the message",
                f"{back:g} s before it" if back else "the same time",
            )
        return (ended - self.clock) / 1e6

    def decide(
        self,
        action: str | None,
        gen_s: float,
        *,
        ended: int | None = None,
        started: int | None = None,
        usage: Usage = _UNKNOWN,
        said: Message | None = None,
        guesses: Sequence[Guess] = (),
    ) -> None:
        """Take in a decision of the target; times in microseconds since 1970.

        ``started`` is worked out from ``ended`` where it is not known.
        """
        if self._turn_ended and self.steps and self.steps[-1].segment == self._segment:
            self._segment += 1  # only now: a segment without any step leaves no gap
        self._turn_ended = action in (RESPOND, TERMINATE)
        if action is None:
            self.ledger.count("outputs that do not parse (null actions)", self.task)
        if started is None and ended is not None:
            started = ended - whole_microseconds(gen_s)
        self.steps.append(
            Step(
                segment=self._segment,
                gen_s=gen_s,
                action=action,
                started_s=None if started is None else started / 1e6,
                prompt_tokens=usage.prompt,
                cached_tokens=usage.cached,
                completion_tokens=usage.completion,
                before=tuple(self._before),
                said=said if self.keeps else None,
                guesses=guesses,
            )
        )
        self._before = []
        self._ended = ended
        self.hear(at=ended)

    def pass_over(self, said: Message | None, at: int | None = None) -> None:
        """Take in an assistant message that is no decision: the harness wrote it."""
        self.hear(said, at)
        self._ended = None

    def tools_ended(self, at: int) -> None:
        """Note when a tool of the last step gave its result."""
        if self.steps and self._ended is not None:
            if at < self._ended:
                self.ledger.count("results timed before their call (no tool time)", self.task)
            self.tools_took(max(0, at - self._ended) / 1e6)
        self.hear(at=at)

    def tools_took(self, seconds: float) -> None:
        """Note how long the tools of the last step ran; the longest noted counts."""
        if self.steps and seconds > self.steps[-1].tool_s:
            self.steps[-1] = self.steps[-1]._replace(tool_s=seconds)
