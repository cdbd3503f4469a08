"""The paper's control set in miniature, measured on this machine: ``make measure``.

Drafts that are trained, untrained, of three sizes, and the target itself without its thought, each
in the same loop on the same tasks (Table 10). Everything is made by the commands a person would
type, in this order: weights, the target alone over the training tasks; then for each pair of
servers training, the sequential arm, every speculative run, what is needed to predict them
beforehand, and the audit. What exists already is not made again, so a run that broke off goes on.

    python -m leapmodel.execution.measuring.control_set -o measured/planning
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from leapmodel.errors import UsageError
from leapmodel.execution.measuring.beginning import (
    TARGET_TOKENS,
    Places,
    begun,
    client_cores,
    keep,
    limit,
    measured_with,
    say,
    servers_for,
    told_to_the_end,
)
from leapmodel.execution.measuring.commands import Commands
from leapmodel.execution.measuring.server_pair import Pair, Run, draft_options, measure_pair
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.serving.servers import serving
from leapmodel.execution.training.sft import TRAINING_FILE
from leapmodel.execution.training.weights import (
    CPU_RECIPE,
    PRUNED_TARGET,
    SMOLLM2,
    TARGET,
    Weights,
    cache_folder,
    suited_target,
)
from leapmodel.measured_set import ROUNDS_ENDING

LARGE = {TARGET: SMOLLM2, PRUNED_TARGET: "tiny-15m"}
"""The largest of the three drafts, by the target: not more than itself without its thoughts."""


def full_pairs(target: str) -> tuple[Pair, ...]:
    """Return what is measured in full with a target."""
    large = LARGE[target]
    return (
        Pair("tiny-2m", "tiny-2m", (Run("trained", 3), Run("trained", 1), Run("trained", 5))),
        Pair("tiny-5m", "tiny-5m", (Run("trained", 3),)),
        Pair("tiny-2m-untrained", "tiny-2m", (Run("untrained", 3),)),
        # On servers of its own although it needs none: its sequential arm is just before it.
        Pair("target-direct", "tiny-2m", (Run("target-direct", 3),)),
        Pair(large, large, (Run("trained", 3),)),
    )


SMOKE = (
    Pair("tiny-2m", "tiny-2m", (Run("trained", 2),)),
    Pair("tiny-2m-untrained", "tiny-2m", (Run("untrained", 2),)),
)
EXACT_PAIR = "tiny-2m"
EXACT_ROUNDS = f"float32{ROUNDS_ENDING}"
"""Runs in a precision in which an answer does not depend on what else is decoded beside it."""


def measure(
    places: Places,
    pairs: Sequence[Pair],
    *,
    train_tasks: int | None,
    test_tasks: int | None,
    exact_tasks: int,
    recipe: Sequence[str],
    quick: bool = False,
) -> None:
    """Make the whole control set, or what is missing of it.

    Parameters
    ----------
    places : Places
    pairs : sequence of Pair
        What is measured.
    train_tasks, test_tasks : int or None
        How many tasks of each split; None for all.
    exact_tasks : int
        How many test tasks are run in float32, twice in both arms.
    recipe : sequence of str
        More options of ``leapmodel train``.
    quick : bool, default False
        With barely trained weights: see :func:`~leapmodel.execution.training.weights.cpu_weights`.

    Raises
    ------
    LeapModelError
        If a command fails; calling again goes on from there.
    """
    weights, commands = begun(places, [pair.base for pair in pairs], quick, client_cores())
    tasks = ["--target-tokens", str(TARGET_TOKENS)]
    collected = places.work / "collected"
    if not (places.kept / "train.parquet").exists():
        with serving(servers_for(places, weights.target, compiled=not quick), say) as servers:
            commands.run(
                "collect", "--target-url", servers.target_url, "--concurrency", "4", *tasks,
                *limit(train_tasks), "--resume", "-o", str(collected),
            )  # fmt: skip
        keep(collected / TRACE_NAME, places.kept / "train.parquet")
    for pair in pairs:
        if pair.is_trained:
            base, trained = weights.base(pair.base), places.trained(pair.base)
            # merged: beside so small a model, serving an adapter takes twice the model's own time
            commands.run(
                "train", str(places.kept / "train.parquet"), "--base", str(base), *recipe,
                "--merge", "-o", str(trained), unless=trained / TRAINING_FILE, own_cores=False,
            )  # fmt: skip
            measured_with(places, f"{pair.base}, trained", trained)
        models = (weights.target, _draft_model(places, pair, weights))
        taught_on = places.kept / "train.parquet"
        asked = [*tasks, *limit(test_tasks)]
        measure_pair(places, pair, models, commands, asked, taught_on, compiled=not quick)
        if pair.name == EXACT_PAIR:
            asked = [*tasks, *limit(exact_tasks)]
            _measure_exact(places, pair, models, commands, asked, compiled=not quick)
    show(places.kept, pairs, commands)


def _draft_model(places: Places, pair: Pair, weights: Weights) -> Path:
    return places.trained(pair.base) if pair.is_trained else weights.base(pair.base)


def _measure_exact(
    places: Places,
    pair: Pair,
    models: tuple[Path, Path],
    commands: Commands,
    tasks: Sequence[str],
    *,
    compiled: bool,
) -> None:
    """Run a few tasks in float32, both arms twice, for their trajectories alone."""
    rounds = places.kept / EXACT_ROUNDS
    deepest = max(run.depth for run in pair.runs if run.draft == "trained")
    if not rounds.exists():
        config = servers_for(places, *models, compiled=compiled).replacing(
            target={"dtype": "float32"}, draft={"dtype": "float32"}
        )
        with serving(config, say) as servers:
            draft = draft_options("trained", servers)
            commands.run("run", "--target-url", servers.target_url, *draft,
                         "--draft-name", f"trained {pair.base}", "--k", str(deepest),
                         "--passes", "2", *tasks, "--resume",
                         "-o", str(places.work / "float32"))  # fmt: skip
        keep(places.work / "float32" / ROUNDS_NAME, rounds)
    commands.run("audit", str(rounds))


def show(kept: Path, pairs: Sequence[Pair], commands: Commands) -> None:
    """Print what was measured beside what the model says of it."""
    commands.run("validate", str(kept))
    served = [
        file for pair in pairs for file in sorted((kept / pair.name).glob(f"*{ROUNDS_ENDING}"))
    ]
    commands.run("identity", "--require", *map(str, served))
    if (kept / EXACT_ROUNDS).exists():
        commands.run("identity", "--require", str(kept / EXACT_ROUNDS))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the control set, in full or as a smoke test."""
    parser = argparse.ArgumentParser(
        prog="python -m leapmodel.execution.measuring.control_set", description=main.__doc__
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="what is kept")
    parser.add_argument("--work", type=Path, help="adapters and journals (default: the cache)")
    parser.add_argument("--smoke", action="store_true", help="10 tasks, k = 2, two drafts")
    parser.add_argument(
        "--only", metavar="NAMES", help="some of the pairs of servers, separated by commas"
    )
    options = parser.parse_args(arguments)
    work = options.work or cache_folder() / ("smoke" if options.smoke else "control-set")
    with told_to_the_end():
        measure(
            Places(options.output, work),
            chosen_pairs(SMOKE if options.smoke else full_pairs(suited_target()), options.only),
            train_tasks=16 if options.smoke else None,
            test_tasks=10 if options.smoke else None,
            exact_tasks=2 if options.smoke else 12,
            recipe=CPU_RECIPE,
            quick=options.smoke,
        )


def chosen_pairs(pairs: Sequence[Pair], only: str | None) -> Sequence[Pair]:
    """Return the pairs that a person named, or all.

    Raises
    ------
    UsageError
        If there is none of a name.
    """
    if only is None:
        return pairs
    known = {pair.name: pair for pair in pairs}
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in known:
            raise UsageError(f"--only: expected some of {', '.join(known)}, found {name!r}")
    return [known[name] for name in wanted]


if __name__ == "__main__":
    main()
