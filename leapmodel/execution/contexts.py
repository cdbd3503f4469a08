"""The contexts of a trace again: its committed actions, run through the benchmark's environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leapmodel.benchmarks import Benchmark, Prompt, Task
from leapmodel.benchmarks.interface import all_tasks
from leapmodel.errors import DataError
from leapmodel.trace import Trace


@dataclass(frozen=True)
class Context:
    """What stood before one step of a trace.

    Attributes
    ----------
    task : Task
    run, step : int
        The step's key.
    target, draft : Prompt
        The two requests in that context.
    action : str or None
        What the target decided.
    """

    task: Task
    run: int
    step: int
    target: Prompt
    draft: Prompt
    action: str | None

    @property
    def key(self) -> tuple[str, int, int]:
        """Task, run and step."""
        return self.task.name, self.run, self.step


def contexts_of(
    benchmark: Benchmark,
    trace: Trace,
    *,
    first_tasks: int | None = None,
    source: str | Path = "the trace",
) -> Iterator[Context]:
    """Rebuild the context of every step, in the trace's order.

    Parameters
    ----------
    benchmark : Benchmark
        The one the trace was recorded on, with the same settings.
    trace : Trace
    first_tasks : int, optional
        Only of so many tasks, the first.
    source : str or Path, default "the trace"
        What error messages call the trace, such as its file.

    Raises
    ------
    DataError
        If the trace has a task that the benchmark lacks, or goes on where the benchmark ends.

    Examples
    --------
    >>> import pandas as pd
    >>> from leapmodel.benchmarks import load_benchmark
    >>> trace = Trace.from_frame(pd.DataFrame({
    ...     "task": "plan-0251", "step": [0, 1], "gen_s": 1.0,
    ...     "action": ["Fill Mask", "<terminate/>"]}))
    >>> [context.draft.messages[-1]["content"].splitlines()[-1]
    ...  for context in contexts_of(load_benchmark("planning"), trace)]
    ['Done: nothing yet', 'Done: Fill Mask']
    """
    known = all_tasks(benchmark)
    frame = trace.frame
    wanted = set(trace.task_names[:first_tasks])
    environment = None
    for name, run, step, action in zip(
        frame["task"], frame["run"], frame["step"], trace.actions, strict=True
    ):
        if name not in wanted:
            continue
        if name not in known:
            raise DataError(
                source,
                column="task",
                expected=f"a task of the benchmark {benchmark.name} (other settings?)",
                found=repr(name),
            )
        task = known[name]
        if step == 0 or environment is None:
            environment = benchmark.start(task)
        if environment.over:
            raise DataError(
                source,
                column="step",
                expected=f"{name} to end after {step} steps, as the benchmark does",
                found="another step",
            )
        yield Context(
            task,
            int(run),
            int(step),
            environment.prompt("target"),
            environment.prompt("draft"),
            action,
        )
        environment.step(action)
