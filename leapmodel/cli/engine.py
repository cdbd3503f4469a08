"""What the commands that talk to model servers share: options, endpoints, progress."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from leapmodel.benchmarks import BENCHMARKS, Benchmark, Split, Task, load_benchmark
from leapmodel.cli.progress import progress
from leapmodel.errors import UsageError, shown
from leapmodel.execution.endpoint import API_KEY_VARIABLE, STALLED_S, Endpoint
from leapmodel.execution.protocol import require_models

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class ServedModel:
    """A model somebody named on the command line.

    Attributes
    ----------
    role : {"target", "draft"}
    url : str or None
        Its server; None is the target's.
    model : str or None
        Its name there; None is the first one served.
    extra : str or None
        More of the request's body, as the text of a JSON object.
    name : str or None
        What a record calls it.
    """

    role: str
    url: str | None
    model: str | None
    extra: str | None
    name: str | None = None

    async def open(
        self, stack: AsyncExitStack, stalled_s: float, beside: ServedModel | None = None
    ) -> Endpoint:
        """Open it, and make sure that the server knows the model.

        Parameters
        ----------
        stack : AsyncExitStack
            Closes it in the end.
        stalled_s : float
            Seconds of silence to bear.
        beside : ServedModel, optional
            Whose server it is on, if it has none of its own.
        """
        url = self.url or (beside.url if beside else None)
        if url is None:
            raise UsageError(f"--{self.role}-url: expected the address of the {self.role}'s server")
        extra = _json_object(f"--{self.role}-extra", self.extra)
        known = Endpoint(url, self.model or "", role=self.role, stalled_s=stalled_s, extra=extra)
        endpoint = await stack.enter_async_context(known)
        served = await endpoint.models()
        if self.model is None:
            if not served:
                raise UsageError(f"{endpoint.name}: serves no model")
            endpoint.model = served[0]
        require_models(served, endpoint.model, endpoint.name)
        return endpoint


@dataclass(frozen=True)
class ChosenBenchmark:
    """A benchmark somebody named on the command line, and how many of its tasks.

    Attributes
    ----------
    name : str
    seed : int
    tasks_file : str or None
    target_tokens : int or None
    limit : int or None
        Only the first so many tasks.
    """

    name: str
    seed: int
    tasks_file: str | None
    target_tokens: int | None
    limit: int | None

    def open(self) -> Benchmark:
        """Return the benchmark."""
        settings: dict[str, Any] = {"seed": self.seed}
        if self.tasks_file is not None:
            settings["tasks_file"] = self.tasks_file
        if self.target_tokens is not None:
            settings["target_tokens"] = self.target_tokens
        return load_benchmark(self.name, **settings)

    def tasks(self, benchmark: Benchmark, split: Split) -> list[Task]:
        """Return the tasks of a split, or the first of them."""
        tasks = benchmark.tasks(split)
        if not tasks:
            raise UsageError(f"the benchmark {benchmark.name} has no {split} tasks")
        return tasks[: self.limit]


def _gathered(
    parameter: str, gather: Callable[..., Any], fields: Mapping[str, str], *options: Decorator
) -> Decorator:
    """Return a decorator that adds options to a command, which gets them as one object.

    Parameters
    ----------
    parameter : str
        What the command calls the object.
    gather : callable
        Makes it.
    fields : mapping of str to str
        Its arguments, each with the name of the option's value.
    *options : decorators
        Click's.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathering(**given: Any) -> Any:
            made = gather(**{field: given.pop(value) for field, value in fields.items()})
            return command(**given, **{parameter: made})

        optioned: Callable[..., Any] = gathering
        for option in reversed(options):
            optioned = option(optioned)
        return optioned

    return decorate


stalled_option = click.option(
    "--stalled",
    "stalled_s",
    type=click.FloatRange(min=0, min_open=True),
    default=STALLED_S,
    show_default=True,
    metavar="SECONDS",
    help=f"Give up on a server that is silent for so long. API key: ${API_KEY_VARIABLE}.",
)
benchmark_options = _gathered(
    "chosen",
    ChosenBenchmark,
    {
        "name": "benchmark_name",
        "seed": "benchmark_seed",
        "tasks_file": "tasks_file",
        "target_tokens": "target_tokens",
        "limit": "limit",
    },
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
target_options = _gathered(
    "target",
    functools.partial(ServedModel, "target"),
    {"url": "target_url", "model": "target_model", "extra": "target_extra"},
    click.option("--target-url", required=True, metavar="URL", help="The target's server."),
    click.option(
        "--target-model", metavar="NAME", help="Its name there; default: the first one served."
    ),
    click.option(
        "--target-extra",
        metavar="JSON",
        help="More of the target's request body, as a JSON object.",
    ),
)
draft_options = _gathered(
    "draft",
    functools.partial(ServedModel, "draft"),
    {
        "url": "draft_url",
        "model": "draft_model",
        "extra": "draft_extra",
        "name": "draft_name",
    },
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


def run_to_end(work: Coroutine[Any, Any, Any], resumable: bool = True) -> Any:
    """Run a coroutine; Ctrl-C stops it between two rounds' records."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        if resumable:
            click.echo("leapmodel: stopped; --resume goes on from the last round", err=True)
        sys.exit(130)


def progress_bar() -> Progress:
    """Return a progress display of counted work; its tasks have a field ``said``."""
    return progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeElapsedColumn(),
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
