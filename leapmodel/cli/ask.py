"""The question that ``choose`` and ``report`` share: which drafts, which depths, at what prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from leapmodel.choice import Choice, choose
from leapmodel.cli.drafts import parse_draft, uses_evidence_trace
from leapmodel.cli.options import open_trace, parse_depths, parse_numbers, question_options
from leapmodel.cli.progress import progress
from leapmodel.compared_draft import Pool, draft_from_predictions
from leapmodel.draft import Draft
from leapmodel.errors import UsageError
from leapmodel.money import Prices
from leapmodel.probes import read_probe
from leapmodel.replay import Terminal
from leapmodel.trace import Trace

F = TypeVar("F", bound=Callable[..., Any])


def choice_options(function: F) -> F:
    """Add the drafts, the depths, prices and the bootstrap."""
    for decorator in (
        click.option(
            "--half-width",
            type=click.FloatRange(0.001, 1),
            default=0.05,
            show_default=True,
            help="How many tasks does a 95% interval of this half-width need?",
        ),
        click.option(
            "--prices",
            metavar="PROMPT,CACHED,COMPLETION",
            help="Prices of the target's tokens per million, such as 0.15,0.075,0.6.",
        ),
        click.option(
            "--evidence-trace",
            type=click.Path(),
            help="The target's trace that the drafts' files belong to, if not TRACE.",
        ),
        click.option(
            "--pool",
            type=click.Choice(["auto", "all", "position", "task"]),
            default="auto",
            show_default=True,
            help="For drafts known by a run: how to pool their hits.",
        ),
        question_options,
        click.option(
            "--probe",
            type=click.Path(),
            help="Take the target's slowdown with requests at once, which every draft meets, from a"
            " file of leapmodel probe. Default: the first such file named as a COST, or what the"
            " first rounds named as a draft have measured, if any.",
        ),
        click.option(
            "--draft",
            "specs",
            multiple=True,
            metavar="[NAME=]WHAT",
            help="A candidate; repeat it. WHAT is a trace of the draft's own run, a predictions"
            " file, the rounds of a measured run, or ACCEPTANCE@COST such as 0.8@0.2 (seconds a"
            " call) or 0.8@0.07x (target steps). @COST may follow a file too, to state what a call"
            " costs on your own hardware, and COST may be a file of leapmodel probe."
            " Default: drafts that need no GPU, learned from TRACE.",
        ),
    ):
        function = decorator(function)
    return function


def ask_choice(
    trace: str,
    *,
    lenient: bool,
    boundary_tools: str | None,
    winsorize: float | None,
    specs: tuple[str, ...],
    depths: str,
    terminal: Terminal,
    resamples: int,
    seed: int,
    pool: Pool,
    evidence_trace: str | None,
    probe: str | None,
    prices: str | None,
    half_width: float,
) -> tuple[Trace, Choice]:
    """Read what the options name and answer; progress goes to standard error."""
    if not half_width > 0:
        raise UsageError(f"--half-width: expected a number above 0, found {half_width}")
    ks = parse_depths(depths)
    price_list = None if prices is None else _parse_prices(prices)
    if evidence_trace is not None and not uses_evidence_trace(specs):
        what = "the drafts that are learned from TRACE" if not specs else "the drafts named"
        raise UsageError(f"--evidence-trace says nothing about {what}")
    slowdown = None if probe is None else read_probe(probe).slowdown
    workload = open_trace(trace, lenient, boundary_tools, winsorize)
    of = None if evidence_trace is None else open_trace(evidence_trace, lenient, boundary_tools)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress(*columns) as bar:
        task = bar.add_task("reading drafts")
        drafts = [
            draft
            for spec in specs
            for draft in parse_draft(
                spec,
                workload,
                pool=pool,
                depth=int(ks[-1]),
                lenient=lenient,
                evidence_trace=of,
            )
        ]
        if not specs:
            bar.update(task, description="learning drafts from the trace")
            drafts = learned_drafts(workload)
        bar.update(task, description=f"replaying {len(drafts)} drafts", total=len(drafts))
        answer = choose(
            workload,
            drafts,
            ks,
            terminal=terminal,
            slowdown=slowdown,
            prices=price_list,
            half_width=half_width,
            n_resamples=resamples,
            seed=seed,
            progress=lambda name: bar.update(task, advance=1, description=f"replayed {name}"),
        )
    return workload, answer


def learned_drafts(workload: Trace) -> list[Draft]:
    """Return the drafts that need no GPU, each learned from the tasks before the one predicted."""
    from leapmodel.drafts import DRAFTS, prequential

    return [
        draft_from_predictions(workload, prequential(workload, make()), name=name)
        for name, make in DRAFTS.items()
    ]


def _parse_prices(text: str) -> Prices:
    numbers = parse_numbers(text, "--prices")
    if len(numbers) != 3:
        raise UsageError(f"--prices: expected PROMPT,CACHED,COMPLETION, found {text!r}")
    return Prices(*numbers)
