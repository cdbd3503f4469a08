"""A control set as ``make measure`` keeps it, read back: one folder for each pair of servers.

Each folder has the sequential trace, the rounds of every run, the drafts' predictions on the trace
and what was probed of them. The sequential arm is measured anew for each pair of servers, so runs
are compared within a folder and put side by side afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leapmodel.bootstrap import N_RESAMPLES
from leapmodel.errors import DataError
from leapmodel.predictions import Predictions, join_predictions, read_predictions
from leapmodel.probes import Probe, read_probe, what_was_probed
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.trace import Trace, read_trace
from leapmodel.validation import Validation, validate

TRACE_FILE = "trace.parquet"
ROUNDS_ENDING = ".rounds.parquet"
PREDICTIONS_ENDING = ".predictions.parquet"
PROBE_ENDING = ".probe.json"


@dataclass(frozen=True)
class ServerPair:
    """What was measured of one target and draft server.

    Attributes
    ----------
    trace : Trace
        The sequential arm, as a trace.
    rounds : Mapping of str to Rounds
        Every run by its file's name, the sequential arm among them.
    predictions : Predictions or None
        Of all drafts, on the contexts of the trace.
    probes : list of Probe
        What was probed, each of another draft.
    """

    trace: Trace
    rounds: Mapping[str, Rounds]
    predictions: Predictions | None
    probes: list[Probe]


def read_measured_set(folder: str | Path) -> dict[str, ServerPair]:
    """Read a folder that ``make measure`` wrote.

    Parameters
    ----------
    folder : str or Path
        With a folder for each pair of servers; others in it, and files, are left alone.

    Returns
    -------
    dict of str to ServerPair
        By the names of the folders, in order.

    Raises
    ------
    DataError
        If it holds no such folder, or a file in one is bad.
    """
    pairs = {
        file.parent.name: _read_pair(file.parent)
        for file in sorted(Path(folder).glob(f"*/{TRACE_FILE}"))
    }
    if not pairs:
        raise DataError(
            folder, expected=f"folders with {TRACE_FILE}, as make measure writes", found="none"
        )
    return pairs


def validate_set(
    folder: str | Path, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Validation:
    """Compare all runs of a control set with the latency model, as one table.

    Parameters
    ----------
    folder : str or Path
        As for :func:`read_measured_set`.
    n_resamples, seed : int
        The bootstrap over tasks.

    Raises
    ------
    DataError
        As :func:`read_measured_set` and :func:`~leapmodel.validation.validate` do.
    """
    found, said = [], []
    for name, pair in read_measured_set(folder).items():
        if not any(rounds.speculative.n_rounds for rounds in pair.rounds.values()):
            said.append(f"{name}: no speculative run yet, left out")
            continue
        if pair.predictions is None and pair.probes:
            said.append(f"{name}: a probe, but no predictions: nothing is said beforehand")
        found.append(
            validate(
                pair.rounds,
                pair.trace,
                predictions=pair.predictions,
                **({} if pair.predictions is None else what_was_probed(pair.probes)),
                n_resamples=n_resamples,
                seed=seed,
            )
        )
    if not found:
        raise DataError(folder, expected="a speculative run in one of its folders", found="none")
    said += [warning for one in found for warning in one.warnings]
    return Validation(
        tuple(row for one in found for row in one.rows),
        tuple(dict.fromkeys(said)),
        seed,
        n_resamples,
    )


def _read_pair(place: Path) -> ServerPair:
    predictions = [read_predictions(file) for file in sorted(place.glob(f"*{PREDICTIONS_ENDING}"))]
    probes = [read_probe(file) for file in sorted(place.glob(f"*{PROBE_ENDING}"))]
    return ServerPair(
        read_trace(place / TRACE_FILE),
        {
            file.name.removesuffix(ROUNDS_ENDING): read_rounds(file)
            for file in sorted(place.glob(f"*{ROUNDS_ENDING}"))
        },
        join_predictions(predictions) if predictions else None,
        probes,
    )
