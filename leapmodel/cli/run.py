"""``leapmodel run``: both arms over a benchmark's tasks, measured round by round."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import click

from leapmodel.benchmarks import Split
from leapmodel.cli.chosen_benchmark import ChosenBenchmark, benchmark_options
from leapmodel.cli.engine import (
    ServedModel,
    draft_options,
    run_to_end,
    stalled_option,
    target_options,
)
from leapmodel.cli.options import depth_option, folder_option
from leapmodel.cli.progress import progress_bar
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import ARMS, Plan
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.record import Arm, Round
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME, record
from leapmodel.rounds import Rounds

_PARTS = {
    "wait_s": "waiting",
    "idle_s": "idle",
    "draft_model_s": "draft",
    "proposal_tool_s": "proposals' tools",
    "target_tool_s": "tools",
    "residual_s": "harness",
}
"""What a round's seconds go into, by column."""


@click.command("run", short_help="Measure both arms of the loop on a benchmark.")
@target_options
@stalled_option
@draft_options
@benchmark_options
@depth_option("Proposals a round, at most.")
@click.option(
    "--tasks",
    "split",
    type=click.Choice(["test", "train"]),
    default="test",
    show_default=True,
    help="Which tasks.",
)
@click.option(
    "--arm",
    "arm",
    type=click.Choice(["both", *ARMS]),
    default="both",
    show_default=True,
    help="Sequential runs first.",
)
@click.option(
    "--turn",
    type=click.IntRange(min=1),
    metavar="N",
    help="The arms take turns, N tasks each: if the machine's speed drifts, it does for both."
    " Default: all tasks, then all again.",
)
@click.option(
    "--passes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often the tasks are run.",
)
@click.option(
    "--gather",
    is_flag=True,
    help="Wait for every verification instead of cancelling needless ones.",
)
@click.option(
    "--no-reset",
    is_flag=True,
    help="Leave the servers' prefix caches as they are (the record says so).",
)
@click.option("--resume", is_flag=True, help="Go on with what the folder holds.")
@folder_option(f"For {ROUNDS_NAME} and {TRACE_NAME}.")
def command(
    target: ServedModel,
    stalled_s: float,
    draft: ServedModel,
    chosen: ChosenBenchmark,
    depth: int,
    split: Split,
    arm: str,
    turn: int | None,
    passes: int,
    gather: bool,
    no_reset: bool,
    resume: bool,
    output: str,
) -> None:
    """Run tasks with the target alone and then with speculation, and record every round.

    Servers run already (leapmodel serve, or anybody's). Tasks run one at a time; prefix caches are
    emptied before each arm.
    """
    benchmark = chosen.open()
    tasks = chosen.tasks(benchmark, split)
    arms: tuple[Arm, ...] = ARMS if arm == "both" else (arm,)  # type: ignore[assignment]

    async def work() -> Journal:
        async with AsyncExitStack() as stack:
            target_endpoint = await target.open(stack, stalled_s)
            draft_endpoint = None
            if "speculative" in arms:
                draft_endpoint = await draft.open(stack, stalled_s, beside=target)
            name = draft.name or (None if draft_endpoint is None else draft_endpoint.model)
            journal: Journal | None = None
            for number in range(passes):
                plan = Plan(
                    benchmark,
                    tasks,
                    Models(target_endpoint, draft_endpoint, name),
                    depth,
                    arms,
                    run=number,
                    mode="gather" if gather else "prefix",
                    reset_caches=not no_reset,
                    split=split,
                    turn=turn,
                )
                with Shown(plan) as shown:
                    journal = await record(
                        plan,
                        output,
                        resume=resume or number > 0,
                        observe=shown.round,
                        opened=shown.opened,
                    )
            assert journal is not None
            return journal

    report(run_to_end(work()), output)


class Shown:
    """A progress bar: tasks that have ended, of both arms."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._bar = progress_bar()
        self._task = self._bar.add_task("", total=len(plan.tasks) * len(plan.arms), said="")
        self._seen: set[tuple[str, str]] = set()
        self._steps: dict[str, int] = {arm: 0 for arm in plan.arms}
        self._wall_s: dict[str, float] = {arm: 0.0 for arm in plan.arms}

    def __enter__(self) -> Shown:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def opened(self, journal: Journal) -> None:
        """Count what the journal holds already."""
        for (task, run, arm), rows in journal.rows.items():
            if run == self._plan.run and arm in self._steps:
                self._seen.add((task, arm))
                for row in rows:
                    self._count(arm, row["committed"], row["wall_s"])
        self._bar.update(self._task, completed=len(self._seen))

    def round(self, finished: Round) -> None:
        """Count a round."""
        self._seen.add((finished.task, finished.arm))
        self._count(finished.arm, finished.committed, finished.wall_s)
        steps, wall_s = self._steps[finished.arm], self._wall_s[finished.arm]
        self._bar.update(
            self._task,
            description=finished.arm,
            completed=len(self._seen),
            said=f"{steps} steps, {wall_s / steps:.2f} s a step",
        )

    def _count(self, arm: str, committed: int, wall_s: float) -> None:
        self._steps[arm] += committed
        self._wall_s[arm] += wall_s


def report(journal: Journal, output: str) -> None:
    """Say what was recorded, arm by arm, and where the time went (App. H)."""
    if not journal.rows:
        return
    measured = journal.rounds()
    for arm in ARMS:
        of_arm = {key: rows for key, rows in journal.rows.items() if key[2] == arm}
        if not of_arm:
            continue
        tasks, passes = ({key[part] for key in of_arm} for part in (0, 1))
        runs = of_arm.values()
        steps = sum(row["committed"] for rows in runs for row in rows)
        rounds = sum(map(len, runs))
        clock_s = sum(rows[-1]["clock_s"] for rows in runs)
        said = f"{arm}: {len(tasks)} task{'s' * (len(tasks) != 1)}"
        if len(passes) > 1:
            said += f" in {len(passes)} runs"
        said += f", {steps} steps"
        if arm == "speculative":
            said += f" in {rounds} rounds"
        click.echo(f"{said}, {clock_s:.1f} s")
        click.echo(_spent(measured, arm))
    click.echo(f"recorded in {Path(output) / ROUNDS_NAME}")


def _spent(rounds: Rounds, arm: Arm) -> str:
    """Return what an arm's time and tokens went into."""
    parts = rounds.decomposition().loc[arm]
    shares = [f"{name} {parts[column] / parts['wall_s']:.1%}" for column, name in _PARTS.items()]
    lines = ["  " + ", ".join(share for share in shares if not share.endswith(" 0.0%"))]
    if (rate := rounds.ms_per_token().get(arm)) is not None:
        tokens = rounds.completion_tokens().loc[arm]
        asked = tokens["used"] + tokens["cancelled"]
        line = f"  {rate:.1f} ms a token; {asked:,.0f} tokens of the target"
        if arm == "speculative":
            line += f", {tokens['cancelled'] / asked:.1%} of them cancelled"
            line += f"; {tokens['draft']:,.0f} of the draft"
        lines.append(line)
    return "\n".join(lines)
