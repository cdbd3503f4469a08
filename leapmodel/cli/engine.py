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
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.cli.progress import progress
from leapmodel.errors import UsageError, shown
from leapmodel.execution.endpoint import API_KEY_VARIABLE, STALLED_S, Endpoint
from leapmodel.execution.protocol import require_models
from leapmodel.execution.records.settings import first_difference, shown_apart

DEFAULT_BENCHMARK = "planning"
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
    name : str or None
    seed : int or None
    tasks_file : str or None
    target_tokens : int or None
        What was not said is None.
    limit : int or None
        Only the first so many tasks.
    """

    name: str | None
    seed: int | None
    tasks_file: str | None
    target_tokens: int | None
    limit: int | None

    @property
    def settings(self) -> dict[str, Any]:
        """The benchmark's settings that were said."""
        said = {
            "seed": self.seed,
            "tasks_file": self.tasks_file,
            "target_tokens": self.target_tokens,
        }
        return {name: value for name, value in said.items() if value is not None}

    def open(self) -> Benchmark:
        """Return the benchmark."""
        return load_benchmark(self.name or DEFAULT_BENCHMARK, **self.settings)

    def open_as(self, metadata: Mapping[str, Any], source: str) -> Benchmark:
        """Return the benchmark that a file was recorded on, if it states one.

        Raises
        ------
        UsageError
            If something else was said on the command line, or the file of tasks has changed.
        """
        if not isinstance(metadata.get("benchmark"), Mapping):
            return self.open()
        known = benchmark_of(metadata, source)
        benchmark = load_benchmark(known.name, **{**known.settings, **self.settings})
        ours = {**about_benchmark(benchmark), "name": self.name or known.name}
        refuse_other_benchmark(ours, metadata, source)
        return benchmark

    def tasks(self, benchmark: Benchmark, split: Split) -> list[Task]:
        """Return the tasks of a split, or the first of them."""
        tasks = benchmark.tasks(split)
        if not tasks:
            raise UsageError(f"the benchmark {benchmark.name} has no {split} tasks")
        return tasks[: self.limit]


def refuse_other_benchmark(
    ours: Mapping[str, Any], metadata: Mapping[str, Any], source: str
) -> None:
    """Refuse a file that states another benchmark, or other settings of it.

    Parameters
    ----------
    ours : mapping
        What :func:`~leapmodel.benchmarks.interface.about_benchmark` says of the benchmark in use.
    metadata : mapping
        What the file says about itself; what it leaves out contradicts nothing.
    source : str
        The file.

    Raises
    ------
    UsageError
        Naming the setting that differs and both its values.
    """
    said = metadata.get("benchmark")
    if not isinstance(said, Mapping):
        return
    theirs = {name: value for name, value in said.items() if name in ours and value is not None}
    stated = theirs.get("settings")
    if isinstance(stated, Mapping):
        settings = {name: ours["settings"].get(name) for name in stated}
        if "tasks_sha256" in theirs:  # says more of the tasks than the place of their file
            stated = {**stated, "tasks_file": settings.get("tasks_file")}
            settings["tasks_file"] = stated["tasks_file"]
        theirs["settings"], ours = stated, {**ours, "settings": settings}
    differs = first_difference(theirs, {name: ours[name] for name in theirs}, "benchmark")
    if differs is not None:
        before, now = shown_apart(differs.theirs, differs.ours)
        raise UsageError(f"{source}: was recorded with {differs.name} {before}, now it is {now}")


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


def _benchmark_options(name: str, seed: str, budget: str) -> Decorator:
    """Return the options of a benchmark, given what each of three is if it is not said."""
    return _gathered(
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
            metavar="NAME",
            help=f"Which benchmark: {', '.join(BENCHMARKS)}. Default: {name}.",
        ),
        click.option("--benchmark-seed", type=int, help=f"Of its tasks. Default: {seed}."),
        click.option(
            "--tasks-file",
            type=click.Path(),
            metavar="FILE",
            help="Task descriptions to use instead of the benchmark's own, one a line.",
        ),
        click.option(
            "--target-tokens",
            type=click.IntRange(min=1),
            help=f"The target's completion budget. Default: {budget}.",
        ),
        click.option(
            "--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks."
        ),
    )


benchmark_options = _benchmark_options(DEFAULT_BENCHMARK, "42", "the benchmark's own")
recorded_benchmark_options = _benchmark_options(*["what TRACE states"] * 3)
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
