"""A control set as ``make measure`` keeps it, read back: one folder for each pair of servers.

The folder of a pair, read by itself, is a set of one.

Each folder has the sequential trace, the rounds of every run, the drafts' predictions on the trace
and what was probed of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leapmodel.errors import DataError
from leapmodel.predictions import Predictions, join_predictions, read_predictions
from leapmodel.probes import Probe, read_probe
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.trace import Trace, read_trace

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
        With a folder for each pair of servers; others in it, and files, are left alone. Or that of
        one pair.

    Returns
    -------
    dict of str to ServerPair
        By the names of the folders, in order.

    Raises
    ------
    DataError
        If it is and holds no such folder, or a file in one is bad.
    """
    place = Path(folder)
    alone = [place / TRACE_FILE] if (place / TRACE_FILE).exists() else []
    traces = alone or sorted(place.glob(f"*/{TRACE_FILE}"))
    if not traces:
        raise DataError(
            folder,
            expected=f"{TRACE_FILE} in it or in its folders, as make measure writes",
            found="none",
        )
    return {file.parent.resolve().name: _read_pair(file.parent) for file in traces}


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
