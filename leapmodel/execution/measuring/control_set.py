"""The paper's control set in miniature, measured on this machine: ``make measure``.

Drafts that are trained, untrained, of three sizes, and the target itself without its thought, each
in the same loop on the same tasks (Table 10). Everything is made by the commands a person would
type, in this order: weights, the target alone over the training tasks; then for each pair of
servers training, the sequential arm, every speculative run, what is needed to predict them
beforehand, and the audit. What exists already is not made again, so a run that broke off goes on.

    python -m leapmodel.execution.measuring.control_set -o traces/measured/planning
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from leapmodel.errors import LeapModelError
from leapmodel.execution.about import about_machine, about_versions
from leapmodel.execution.measuring.commands import Commands, write_json
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.serving.config import ServingConfig
from leapmodel.execution.serving.presets import preset
from leapmodel.execution.serving.servers import Servers, serving
from leapmodel.execution.training.weights import (
    CPU_RECIPE,
    TARGET,
    Weights,
    cache_folder,
    cpu_weights,
)
from leapmodel.measured_set import PREDICTIONS_ENDING, PROBE_ENDING, ROUNDS_ENDING, TRACE_FILE
from leapmodel.rounds import read_rounds, write_rounds
from leapmodel.trace import read_trace, write_trace

TARGET_TOKENS = 128
"""The CPU target's thoughts are short; one that goes on is cut."""
CONTEXT = 1024
"""What the tiny models were made for; a prompt and an answer take a third of it."""


@dataclass(frozen=True)
class Run:
    """One speculative run.

    Attributes
    ----------
    draft : {"trained", "untrained", "target-direct"}
    depth : int
    """

    draft: str
    depth: int


@dataclass(frozen=True)
class Pair:
    """A target's and a draft's server, and the runs made with them.

    Attributes
    ----------
    name : str
        Of the folder.
    base : str
        The draft's base, of the CPU preset's weights.
    runs : tuple of Run
        With the trained draft or with its untrained base, not both: one server serves one.
    """

    name: str
    base: str
    runs: tuple[Run, ...]

    @property
    def is_trained(self) -> bool:
        """Whether the draft that is served was trained."""
        return any(run.draft == "trained" for run in self.runs)


FULL = (
    Pair(
        "tiny-2m",
        "tiny-2m",
        (Run("trained", 1), Run("trained", 3), Run("trained", 5), Run("target-direct", 3)),
    ),
    Pair("tiny-5m", "tiny-5m", (Run("trained", 3),)),
    Pair("tiny-2m-untrained", "tiny-2m", (Run("untrained", 3),)),
    Pair("smollm2-135m", "smollm2-135m", (Run("trained", 3),)),
)
SMOKE = (
    Pair("tiny-2m", "tiny-2m", (Run("trained", 2),)),
    Pair("tiny-2m-untrained", "tiny-2m", (Run("untrained", 2),)),
)
EXACT_ROUNDS = f"float32{ROUNDS_ENDING}"
"""Runs in a precision in which an answer does not depend on what else is decoded beside it."""


@dataclass(frozen=True)
class Places:
    """Where things go: what is kept, and what is too heavy for that."""

    kept: Path
    work: Path

    def trained(self, base: str) -> Path:
        """Return the folder of a base's trained weights."""
        return self.work / f"trained-{base}"


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
        with serving(servers_for(places, weights.target), say) as servers:
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
                "--merge", "-o", str(trained), unless=trained / "config.json", own_cores=False,
            )  # fmt: skip
        _measure_pair(places, pair, weights, commands, [*tasks, *limit(test_tasks)])
        if pair is pairs[0]:
            _measure_exact(places, pair, weights, commands, [*tasks, *limit(exact_tasks)])
    show(places.kept, pairs, commands)


def _draft_model(places: Places, pair: Pair, weights: Weights) -> Path:
    return places.trained(pair.base) if pair.is_trained else weights.base(pair.base)


def _measure_pair(
    places: Places, pair: Pair, weights: Weights, commands: Commands, tasks: Sequence[str]
) -> None:
    kept, work = places.kept / pair.name, places.work / pair.name
    kept.mkdir(exist_ok=True)
    wanted = ["sequential", *(f"{run.draft}-k{run.depth}" for run in pair.runs)]
    if all((kept / f"{name}{ROUNDS_ENDING}").exists() for name in wanted):
        return
    with serving(
        servers_for(places, weights.target, _draft_model(places, pair, weights)), say
    ) as servers:
        target = ["--target-url", servers.target_url]
        commands.run("run", *target, "--arm", "sequential", *tasks, "--resume",
                     "-o", str(work / "sequential"))  # fmt: skip
        trace = kept / TRACE_FILE
        keep(work / "sequential" / TRACE_NAME, trace)
        keep(work / "sequential" / ROUNDS_NAME, kept / f"sequential{ROUNDS_ENDING}")
        for run in pair.runs:
            name = f"{run.draft}-k{run.depth}"
            called = run.draft if run.draft == "target-direct" else f"{run.draft} {pair.base}"
            draft = [*_draft(run.draft, servers), "--draft-name", called]
            if not (kept / f"{name}{ROUNDS_ENDING}").exists():
                commands.run("run", *target, *draft, "--arm", "speculative",
                             "--k", str(run.depth), *tasks, "--resume",
                             "-o", str(work / name))  # fmt: skip
                keep(work / name / ROUNDS_NAME, kept / f"{name}{ROUNDS_ENDING}")
            predictions = kept / f"{run.draft}{PREDICTIONS_ENDING}"
            commands.run("agreement", str(trace), *draft, "--train-trace",
                         str(places.kept / "train.parquet"), "-o", str(predictions),
                         unless=predictions)  # fmt: skip
            probed = kept / f"{run.draft}{PROBE_ENDING}"
            deepest = max(one.depth for one in pair.runs)
            commands.run("probe", str(trace), *target, *draft, "--k", str(deepest),
                         "--batches", "4", "--target-tokens", str(TARGET_TOKENS),
                         "-o", str(probed), unless=probed)  # fmt: skip
    for name in wanted:
        commands.run("audit", str(kept / f"{name}{ROUNDS_ENDING}"))


def _measure_exact(
    places: Places, pair: Pair, weights: Weights, commands: Commands, tasks: Sequence[str]
) -> None:
    """Run a few tasks in float32, both arms twice, for their trajectories alone."""
    rounds = places.kept / EXACT_ROUNDS
    deepest = max(run.depth for run in pair.runs if run.draft == "trained")
    if not rounds.exists():
        config = servers_for(places, weights.target, _draft_model(places, pair, weights)).replacing(
            target={"dtype": "float32"}, draft={"dtype": "float32"}
        )
        with serving(config, say) as servers:
            commands.run("run", "--target-url", servers.target_url, *_draft("trained", servers),
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
    commands.run("identity", *map(str, served))
    commands.run("identity", str(kept / EXACT_ROUNDS))


def _draft(kind: str, servers: Servers) -> list[str]:
    """Return the options that name a draft: which server, which model or adapter there."""
    url, model = servers.draft_url, servers.draft_model
    if kind == "target-direct":
        url, model = servers.target_url, servers.target_model
    return ["--draft-url", url, "--draft-model", model]


def begun(
    places: Places, bases: Sequence[str], quick: bool, cores: set[int] | None
) -> tuple[Weights, Commands]:
    """Make the weights that are missing, write what is measured on what, and say who runs commands.

    Parameters
    ----------
    places : Places
    bases : sequence of str
        Of the drafts.
    quick : bool
        With barely trained weights.
    cores : set of int or None
        What the commands keep to; None for all.
    """
    for folder in (places.kept, places.work):
        folder.mkdir(parents=True, exist_ok=True)
    weights = cpu_weights([TARGET, *dict.fromkeys(bases)], quick=quick, say=say)
    write_json(
        places.kept / "about.json",
        {"machine": about_machine(), "versions": about_versions(), "weights": weights.to_dict()},
    )
    aliases = {str(cache_folder()): "$LEAPMODEL_CACHE", str(places.work): "$WORK"}
    return weights, Commands(places.kept / "commands.jsonl", say, cores, aliases)


def client_cores() -> set[int]:
    """Return the cores for whoever asks: the target has the first one for itself."""
    cores = os.sched_getaffinity(0)
    return cores - {min(cores)} or cores


def servers_for(
    places: Places, target: Path, draft: Path | None = None, *, adapters: bool = False
) -> ServingConfig:
    """Return the settings of a target's server, and of a draft's that may load adapters or not."""
    config = preset("cpu")
    assert config.draft is not None
    served = replace(
        config.target,
        model=str(target),
        max_model_len=CONTEXT,
        max_num_seqs=8,  # as on OpenAGI (Table 17); six requests at k = 5 must not queue
    )
    if draft is None:
        return replace(config, target=served, draft=None, logs=str(places.work / "logs"))
    beside = replace(
        config.draft,
        model=str(draft),
        max_model_len=CONTEXT,
        max_lora_rank=config.draft.max_lora_rank if adapters else None,
    )
    return replace(config, target=served, draft=beside, logs=str(places.work / "logs"))


def keep(source: Path, kept: Path) -> None:
    """Turn a journal into Parquet, all or nothing."""
    if kept.exists():
        return
    if source.name == TRACE_NAME:
        write_trace(read_trace(source), kept)
    else:
        write_rounds(read_rounds(source), kept)


def limit(tasks: int | None) -> list[str]:
    """Return the option that takes the first tasks alone."""
    return [] if tasks is None else ["--limit", str(tasks)]


def say(text: str) -> None:
    """Tell a person how far it is."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def told_to_the_end() -> Iterator[None]:
    """End this program as a measurement ends that failed or was stopped: with one line."""
    try:
        yield
    except LeapModelError as error:
        say(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here")
        sys.exit(130)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the control set, in full or as a smoke test."""
    parser = argparse.ArgumentParser(
        prog="python -m leapmodel.execution.measuring.control_set", description=main.__doc__
    )
    parser.add_argument("-o", "--output", required=True, type=Path, help="what is kept")
    parser.add_argument("--work", type=Path, help="adapters and journals (default: the cache)")
    parser.add_argument("--smoke", action="store_true", help="10 tasks, k = 2, one draft")
    options = parser.parse_args(arguments)
    work = options.work or cache_folder() / ("smoke" if options.smoke else "control-set")
    with told_to_the_end():
        measure(
            Places(options.output, work),
            SMOKE if options.smoke else FULL,
            train_tasks=16 if options.smoke else None,
            test_tasks=10 if options.smoke else None,
            exact_tasks=2 if options.smoke else 12,
            recipe=CPU_RECIPE,
            quick=options.smoke,
        )


if __name__ == "__main__":
    main()
