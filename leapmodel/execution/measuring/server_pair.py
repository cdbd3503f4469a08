"""What is measured with one pair of servers: both arms, and what predicts them beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leapmodel.execution.measuring.beginning import (
    TARGET_TOKENS,
    Places,
    keep,
    say,
    servers_for,
)
from leapmodel.execution.measuring.commands import Commands
from leapmodel.execution.records.recording import ROUNDS_NAME, TRACE_NAME
from leapmodel.execution.serving.servers import Servers, serving
from leapmodel.measured_set import PREDICTIONS_ENDING, PROBE_ENDING, ROUNDS_ENDING, TRACE_FILE

TURN = 9
"""Tasks after which the other arm has its turn, a minute or two: how fast a machine is that others
share changes within ten."""


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


def measure_pair(
    places: Places,
    pair: Pair,
    models: tuple[Path, Path],
    commands: Commands,
    tasks: Sequence[str],
    taught_on: Path,
    *,
    compiled: bool,
) -> None:
    """Measure what is needed to predict every run beforehand, and the runs.

    The target alone goes first, for its trace: that and the probes are what a prediction may know.
    Each run then has both arms, a few tasks at a time.

    Parameters
    ----------
    places : Places
        What is kept goes into a folder of the pair's name.
    pair : Pair
    models : tuple of Path
        The target's weights and the draft's.
    commands : Commands
    tasks : sequence of str
        Options that say which tasks, and how they are run.
    taught_on : Path
        The trace that the draft learned from, to tell seen sequences of actions from unseen ones.
    compiled : bool
        Whether vLLM compiles the models.

    Raises
    ------
    LeapModelError
        If a command fails; calling again goes on from there.
    """
    kept, work = places.kept / pair.name, places.work / pair.name
    kept.mkdir(exist_ok=True)
    names = [f"{run.draft}-k{run.depth}" for run in pair.runs]
    records = [kept / f"{name}{ROUNDS_ENDING}" for name in ("sequential", *names)]
    known = [
        kept / f"{run.draft}{ending}"
        for run in pair.runs
        for ending in (PREDICTIONS_ENDING, PROBE_ENDING)
    ]
    if not all(file.exists() for file in (*records, *known)):
        with serving(servers_for(places, *models, compiled=compiled), say) as servers:
            _measure_served(kept, work, pair, servers, commands, tasks, taught_on)
    # Also of what an earlier call has measured: it may have ended before this, or because of it.
    for record in records:
        commands.run("audit", str(record))


def _measure_served(
    kept: Path,
    work: Path,
    pair: Pair,
    servers: Servers,
    commands: Commands,
    tasks: Sequence[str],
    taught_on: Path,
) -> None:
    target = ["--target-url", servers.target_url]
    commands.run("run", *target, "--arm", "sequential", *tasks, "--resume",
                 "-o", str(work / "sequential"))  # fmt: skip
    trace = kept / TRACE_FILE
    keep(work / "sequential" / TRACE_NAME, trace)
    keep(work / "sequential" / ROUNDS_NAME, kept / f"sequential{ROUNDS_ENDING}")
    deepest = max(run.depth for run in pair.runs)
    for run in pair.runs:
        name = f"{run.draft}-k{run.depth}"
        called = run.draft if run.draft == "target-direct" else f"{run.draft} {pair.base}"
        draft = [*draft_options(run.draft, servers), "--draft-name", called]
        # What predicts a run is there before it.
        predictions = kept / f"{run.draft}{PREDICTIONS_ENDING}"
        commands.run("agreement", str(trace), *draft, "--train-trace",
                     str(taught_on), "-o", str(predictions),
                     unless=predictions)  # fmt: skip
        probed = kept / f"{run.draft}{PROBE_ENDING}"
        commands.run("probe", str(trace), *target, *draft, "--k", str(deepest),
                     "--batches", "4", "--target-tokens", str(TARGET_TOKENS),
                     "-o", str(probed), unless=probed)  # fmt: skip
        if not (kept / f"{name}{ROUNDS_ENDING}").exists():
            commands.run("run", *target, *draft, "--turn", str(TURN),
                         "--k", str(run.depth), *tasks, "--resume",
                         "-o", str(work / name))  # fmt: skip
            keep(work / name / ROUNDS_NAME, kept / f"{name}{ROUNDS_ENDING}")


def draft_options(kind: str, servers: Servers) -> list[str]:
    """Return the options that name a draft: which server, which model or adapter there."""
    url, model = servers.draft_url, servers.draft_model
    if kind == "target-direct":
        url, model = servers.target_url, servers.target_model
    return ["--draft-url", url, "--draft-model", model]
