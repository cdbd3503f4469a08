"""A whole control set compared with the latency model, as one table.

The sequential arm is measured anew for each pair of servers, so runs are compared within a pair and
put side by side afterwards.
"""

from __future__ import annotations

from pathlib import Path

from leapmodel.bootstrap import N_RESAMPLES
from leapmodel.errors import DataError
from leapmodel.measured_set import ROUNDS_ENDING, read_measured_set
from leapmodel.probes import what_was_probed
from leapmodel.validation import Validation, validate


def validate_set(
    folder: str | Path, *, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> Validation:
    """Compare all runs of a control set with the latency model, as one table.

    Parameters
    ----------
    folder : str or Path
        As for :func:`~leapmodel.measured_set.read_measured_set`.
    n_resamples, seed : int
        The bootstrap over tasks.

    Raises
    ------
    DataError
        As :func:`~leapmodel.measured_set.read_measured_set` and
        :func:`~leapmodel.validation.validate` do.
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
        raise DataError(folder, expected=f"a speculative run in a *{ROUNDS_ENDING}", found="none")
    said += [warning for one in found for warning in one.warnings]
    return Validation(
        tuple(row for one in found for row in one.rows),
        tuple(dict.fromkeys(said)),
        seed,
        n_resamples,
    )
