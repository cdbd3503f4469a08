"""What the commands that talk to model servers share: options, endpoints, progress."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from leapmodel.benchmarks import BENCHMARKS, Benchmark, Split, Task, load_benchmark
from leapmodel.errors import UsageError, shown
from leapmodel.execution.endpoint import API_KEY_VARIABLE, STALLED_S, Endpoint
from leapmodel.execution.protocol import require_models

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _together(*options: Decorator) -> Decorator:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


benchmark_options = _together(
    click.option(
        "--benchmark",
        "benchmark_name",
        default="planning",
        show_default=True,
        metavar="NAME",
        help=f"Which benchmark: {', '.join(BENCHMARKS)}.",
    ),
    click.option("--benchmark-seed", type=int, default=42, show_default=True, help="Of its tasks."),
    click.option(
        "--tasks-file",
        type=click.Path(),
        metavar="FILE",
        help="Task descriptions to use instead of the benchmark's own, one a line.",
    ),
    click.option(
        "--target-tokens",
        type=click.IntRange(min=1),
        help="The target's completion budget, if not the benchmark's own.",
    ),
    click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks."
    ),
)
target_options = _together(
    click.option("--target-url", required=True, metavar="URL", help="The target's server."),
    click.option(
        "--target-model", metavar="NAME", help="Its name there; default: the first one served."
    ),
    click.option(
        "--target-extra",
        metavar="JSON",
        help="More of the target's request body, as a JSON object.",
    ),
    click.option(
        "--stalled",
        "stalled_s",
        type=click.FloatRange(min=0, min_open=True),
        default=STALLED_S,
        show_default=True,
        metavar="SECONDS",
        help=f"Give up on a server that is silent for so long. API key: ${API_KEY_VARIABLE}.",
    ),
)
draft_options = _together(
    click.option("--draft-url", metavar="URL", help="The draft's server; default: the target's."),
    click.option(
        "--draft-model",
        metavar="NAME",
        help="The model or adapter that drafts; default: the first one served there.",
    ),
    click.option("--draft-name", metavar="NAME", help="What the record calls the draft."),
    click.option(
        "--draft-extra",
        metavar="JSON",
        help="More of the draft's request body, such as"
        ' \'{"chat_template_kwargs": {"enable_thinking": false}}\'.',
    ),
)


@dataclass(frozen=True)
class Address:
    """A model somebody named on the command line."""

    role: str
    url: str
    model: str | None
    extra: str | None
    stalled_s: float

    async def open(self, stack: AsyncExitStack) -> Endpoint:
        """Open it, and make sure that the server knows the model."""
        extra = _json_object(f"--{self.role}-extra", self.extra)
        known = Endpoint(
            self.url, self.model or "", role=self.role, stalled_s=self.stalled_s, extra=extra
        )
        endpoint = await stack.enter_async_context(known)
        served = await endpoint.models()
        if self.model is None:
            if not served:
                raise UsageError(f"{endpoint.name}: serves no model")
            endpoint.model = served[0]
        require_models(served, endpoint.model, endpoint.name)
        return endpoint


def open_benchmark(
    name: str, seed: int, tasks_file: str | None, target_tokens: int | None
) -> Benchmark:
    """Return the benchmark the options name."""
    settings: dict[str, Any] = {"seed": seed}
    if tasks_file is not None:
        settings["tasks_file"] = tasks_file
    if target_tokens is not None:
        settings["target_tokens"] = target_tokens
    return load_benchmark(name, **settings)


def chosen_tasks(benchmark: Benchmark, split: Split, limit: int | None) -> list[Task]:
    """Return the tasks of a split, or the first of them."""
    tasks = benchmark.tasks(split)
    if not tasks:
        raise UsageError(f"the benchmark {benchmark.name} has no {split} tasks")
    return tasks[:limit]


def run_to_end(work: Coroutine[Any, Any, Any], resumable: bool = True) -> Any:
    """Run a coroutine; Ctrl-C stops it between two rounds' records."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        if resumable:
            click.echo("leapmodel: stopped; --resume goes on from the last round", err=True)
        sys.exit(130)


def progress_bar() -> Progress:
    """Return a progress bar for standard error that vanishes when it is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def _json_object(option: str, text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{option}: expected a JSON object, found {shown(text)}")
    return value
