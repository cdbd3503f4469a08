"""What models are asked about: a benchmark's contexts, or those of somebody's own agent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from leapmodel.actions import tool_names
from leapmodel.benchmarks import Benchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.cli.answers_seen import AnswersSeen
from leapmodel.cli.gathering import gathered
from leapmodel.cli.options import note
from leapmodel.errors import UsageError
from leapmodel.execution.contexts import Context, contexts_of
from leapmodel.execution.own_contexts import MOST_TOKENS, decision, own_contexts
from leapmodel.execution.refusals import Tell
from leapmodel.execution.talking.endpoint import Generation
from leapmodel.trace import Trace


@dataclass(frozen=True)
class AskedAbout:
    """Contexts, and what to make of the answers.

    Attributes
    ----------
    contexts : list of Context
    decided : callable
        Returns the canonical action of a draft's answer, or None.
    about : dict
        What the predictions say of the contexts.
    bear : callable or None
        Who is told of contexts that a server refuses; None if that is an error.
    calls_tools : bool or None
        Whether the agent calls tools, where its own contexts are asked about.
    """

    contexts: list[Context]
    decided: Callable[[Generation], str | None]
    about: dict[str, Any]
    bear: Tell | None = None
    calls_tools: bool | None = None

    def note_amiss(self, *seen: AnswersSeen) -> None:
        """Say what may be amiss with answers; a benchmark's own parser knows its models'."""
        if self.calls_tools is not None:
            for answers in seen:
                for said in answers.amiss(calls_tools=self.calls_tools):
                    note(said)


@dataclass(frozen=True)
class OwnContexts:
    """A file of contexts that somebody named on the command line, if anybody did."""

    file: str | None
    draft_tokens: int | None

    def asked(
        self,
        trace: Trace,
        source: str,
        first_tasks: int | None,
        *,
        target_tokens: int | None = None,
        names_a_benchmark: bool,
    ) -> AskedAbout | None:
        """Return what stands in the file, or None if none was named: a benchmark is asked about.

        Raises
        ------
        DataError
            If it holds no contexts of the trace.
        UsageError
            If something was said of answers to contexts that are not asked about, or no benchmark
            is known.
        """
        if self.file is None:
            if self.draft_tokens is not None:
                raise UsageError("--draft-tokens: expected --contexts too: a benchmark has its own")
            if trace.metadata.get("benchmark") is None and not names_a_benchmark:
                raise UsageError(
                    f"{source}: states no benchmark; if it is the log of your own agent, name its"
                    " contexts too (--contexts FILE, as import --export-contexts writes them)"
                )
            return None
        contexts = own_contexts(
            self.file,
            trace,
            first_tasks=first_tasks,
            target_tokens=target_tokens,
            draft_tokens=self.draft_tokens,
            source=source,
        )
        _note_missing(trace, contexts, first_tasks)
        calls_tools = any(map(tool_names, trace.actions))
        about = {"contexts": "the log's own messages"}
        return AskedAbout(contexts, decision, about, note, calls_tools)


def _note_missing(trace: Trace, contexts: list[Context], first_tasks: int | None) -> None:
    """Say how many steps are not asked about, for want of a context."""
    frame = trace.frame[trace.frame["task"].isin(trace.task_names[:first_tasks])]
    have = {one.key for one in contexts}
    steps = zip(frame["task"], frame["run"], frame["step"], strict=True)
    lack = [key for key in steps if key not in have]
    if lack:
        task, run, step = lack[0]
        note(
            f"{len(lack)} of {len(frame)} steps have no context and are not asked about (the first:"
            f" task {task!r}, run {run}, step {step})"
        )


def of_benchmark(
    benchmark: Benchmark, trace: Trace, source: str, first_tasks: int | None
) -> AskedAbout:
    """Return the contexts of a trace that a benchmark's environment builds anew."""
    return AskedAbout(
        list(contexts_of(benchmark, trace, first_tasks=first_tasks, source=source)),
        lambda answer: benchmark.parse("draft", answer.text),
        {"benchmark": about_benchmark(benchmark)},
    )


own_contexts_options = gathered(
    "own",
    OwnContexts,
    {"file": "contexts_file", "draft_tokens": "draft_tokens"},
    click.option(
        "--contexts",
        "contexts_file",
        metavar="FILE",
        type=click.Path(),
        help="Ask about the messages of your own agent, as import --export-contexts wrote"
        " them for TRACE, instead of a benchmark's prompts. --draft-extra names its tools.",
    ),
    click.option(
        "--draft-tokens",
        type=click.IntRange(min=1),
        help=f"The draft's completion budget, with --contexts. Default: {MOST_TOKENS}.",
    ),
)
