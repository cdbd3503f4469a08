"""Which benchmark a command is about: its options, and what a file that was recorded states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from leapmodel.benchmarks import BENCHMARKS, Benchmark, Split, Task, load_benchmark
from leapmodel.benchmarks.interface import about_benchmark
from leapmodel.benchmarks.recorded import benchmark_of
from leapmodel.cli.gathering import Decorator, gathered
from leapmodel.errors import UsageError
from leapmodel.recorded_settings import refuse_other_benchmark

DEFAULT_BENCHMARK = "planning"


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
        benchmark = benchmark_of(metadata, source, settings=self.settings)
        ours = {**about_benchmark(benchmark), "name": self.name or benchmark.name}
        refuse_other_benchmark(ours, metadata, source)
        return benchmark

    def refuse_beside(self, option: str) -> None:
        """Refuse a benchmark where an option takes its place.

        Raises
        ------
        UsageError
            If one was said.
        """
        said = {
            "--benchmark": self.name,
            "--benchmark-seed": self.seed,
            "--tasks-file": self.tasks_file,
        }
        for one, value in said.items():
            if value is not None:
                raise UsageError(f"{one}: expected no {option} beside it, which needs none")

    def tasks(self, benchmark: Benchmark, split: Split) -> list[Task]:
        """Return the tasks of a split, or the first of them."""
        tasks = benchmark.tasks(split)
        if not tasks:
            raise UsageError(f"the benchmark {benchmark.name} has no {split} tasks")
        return tasks[: self.limit]


def _benchmark_options(name: str, seed: str, budget: str) -> Decorator:
    """Return the options of a benchmark, given what each of three is if it is not said."""
    return gathered(
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
