"""Learning online, measured on this machine: ``make measure-online`` (Fig. 5 in miniature).

For each way to update the draft, the training tasks run in batches, each without speculation and
then with it (as the paper does on tau2-bench, App. L). The draft starts as the untrained tiny base;
in the end the last version, which has learned from all batches, runs the test tasks. What exists
already is not made again, so a run that broke off goes on.

    python -m leapmodel.execution.measuring.online_set -o measured/online
"""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from leapmodel.execution.measuring.beginning import (
    TARGET_TOKENS,
    Places,
    begun,
    keep,
    limit,
    say,
    servers_for,
    told_to_the_end,
)
from leapmodel.execution.measuring.commands import Commands
from leapmodel.execution.measuring.server_pair import Pair, Run, measure_pair
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.serving.servers import serving
from leapmodel.execution.training.weights import CPU_RECIPE, Weights, cache_folder
from leapmodel.measured_set import ROUNDS_ENDING
from leapmodel.versions import VERSIONS_ENDING, VERSIONS_NAME

DRAFT = "tiny-2m"
METHODS = ("retrain", "continual")
TRAINING = (*CPU_RECIPE, "--epochs", "5")
"""Of each of twenty versions; half of what one draft gets that is trained once."""


def measure_online(
    places: Places,
    *,
    tasks: int | None,
    heldout: int | None,
    batches: int,
    depth: int,
    methods: Sequence[str] = METHODS,
    quick: bool = False,
) -> None:
    """Make the streams, each with both arms, or what is missing of them.

    Parameters
    ----------
    places : Places
    tasks, heldout : int or None
        Training tasks in the stream, and test tasks each version is scored on; None for all.
    batches, depth : int
    methods : sequence of str, default both
        The last version of the first one is what is measured on the test tasks.
    quick : bool, default False
        With barely trained weights.

    Raises
    ------
    LeapModelError
        If a command fails; calling again goes on from there.
    """
    weights, commands = begun(places, [DRAFT], quick, None)  # it trains in between, on every core
    common = ["--target-tokens", str(TARGET_TOKENS)]
    heldout_tasks = [*common, *limit(heldout)]
    scored_on = places.kept / "test.parquet"
    models = (weights.target, weights.base(DRAFT))
    with serving(servers_for(places, *models, compiled=not quick), say) as servers:
        target = ["--target-url", servers.target_url]
        if not scored_on.exists():
            commands.run(
                "collect", *target, "--tasks", "test", *heldout_tasks, "--concurrency", "4",
                "--resume", "-o", str(places.work / "test"),
            )  # fmt: skip
            keep(places.work / "test" / TRACE_NAME, scored_on)
        for method in methods:
            rounds = places.kept / f"{method}{ROUNDS_ENDING}"
            if rounds.exists():
                continue
            # Both arms, batch by batch: a stream takes half an hour, in which the speed of a
            # machine that others share may change twofold.
            commands.run(
                "online", *target, "--draft-url", servers.draft_url, "--draft-model",
                servers.draft_model, "--base", str(weights.base(DRAFT)), "--k", str(depth),
                # merged: beside so small a model an adapter takes twice the model's own time
                "--swap", "merged",
                "--batches", str(batches), "--method", method, "--arm", "both",
                "--heldout", str(scored_on), *common, *limit(tasks),
                "--train-options", shlex.join(TRAINING), "--resume",
                "-o", str(places.work / method),
            )  # fmt: skip
            versions = places.work / method / VERSIONS_NAME
            shutil.copy(versions, places.kept / f"{method}{VERSIONS_ENDING}")
            keep(places.work / method / ROUNDS_NAME, rounds)
    learned = places.work / methods[0]
    _measure_offline(
        places, learned, weights, commands, heldout_tasks, depth, batches, compiled=not quick
    )
    records = [places.kept / f"{method}{ROUNDS_ENDING}" for method in methods]
    for record in records:
        commands.run("audit", str(record))
    commands.run("identity", "--require", *map(str, records))


def _measure_offline(
    places: Places,
    learned: Path,
    weights: Weights,
    commands: Commands,
    tasks: Sequence[str],
    depth: int,
    batches: int,
    *,
    compiled: bool,
) -> None:
    """Measure what the last version, which has learned from all batches, does on other tasks.

    It is what a draft would be that was trained before it was deployed.
    """
    draft = learned / f"version-{batches:02d}"
    pair = Pair("offline", DRAFT, (Run("trained", depth),))
    taught_on = learned / TRACE_NAME
    models = (weights.target, draft)
    measure_pair(places, pair, models, commands, tasks, taught_on, compiled=compiled)
    commands.run("validate", str(places.kept))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure online learning, in full or as a smoke test."""
    parser = argparse.ArgumentParser(
        prog="python -m leapmodel.execution.measuring.online_set", description=main.__doc__
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="what is kept")
    parser.add_argument("--work", type=Path, help="adapters and journals (default: the cache)")
    parser.add_argument("--smoke", action="store_true", help="4 tasks in 2 batches")
    parser.add_argument("--only", choices=METHODS, help="one stream alone")
    options = parser.parse_args(arguments)
    work = options.work or cache_folder() / ("online-smoke" if options.smoke else "online-set")
    smoke = options.smoke
    with told_to_the_end():
        measure_online(
            Places(options.output, work),
            tasks=4 if smoke else None,
            heldout=3 if smoke else None,
            batches=2 if smoke else 10,
            depth=2 if smoke else 3,
            methods=METHODS if options.only is None else (options.only,),
            quick=smoke,
        )


if __name__ == "__main__":
    main()
