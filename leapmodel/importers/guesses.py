"""Read what drafts proposed, where a log of speculative runs holds it, as predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leapmodel.errors import DataError
from leapmodel.importers.assembly import Progress, name_of, read_runs
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Importer
from leapmodel.predictions import Predictions


def gather_predictions(
    importer: Importer,
    files: Sequence[Path],
    *,
    lenient: bool = False,
    progress: Progress | None = None,
    **options: object,
) -> Predictions:
    """Read the guesses in the files as checked predictions.

    Their ``task``, ``run`` and ``step`` are those of the trace that
    :func:`~leapmodel.importers.assembly.assemble` makes of the same files.

    Parameters
    ----------
    importer : Importer
        A format with ``has_guesses``.
    files, lenient, progress, **options
        As for :func:`~leapmodel.importers.assembly.assemble`.

    Raises
    ------
    DataError
        For the first bad task, or if no step has a guess.
    """
    ledger = Ledger(lenient=lenient, keep_guesses=True)
    rows: list[dict[str, Any]] = []
    for task_run, run in read_runs(importer, files, ledger, progress, options):
        for index, step in enumerate(task_run.steps):
            repeats: Counter[str] = Counter()
            for guess in step.guesses:
                rows.append(
                    {
                        "task": task_run.task,
                        "run": run,
                        "step": index,
                        "draft": guess.draft,
                        "repeat": repeats[guess.draft],
                        "action": guess.action,
                        "latency_s": guess.latency_s,
                    }
                )
                repeats[guess.draft] += 1
    source = name_of(files)
    if not rows:
        raise DataError(source, expected="guesses of a draft in at least one step", found="none")
    metadata = {
        "format": importer.name,
        "source": [path.name for path in files],
        "warnings": ledger.warnings(),
    }
    frame = pd.DataFrame(rows)
    frame["latency_s"] = frame["latency_s"].astype("Float64")
    frame["action"] = frame["action"].astype(object).where(frame["action"].notna(), None)
    predictions = Predictions.from_frame(frame, metadata, source=source, lenient=lenient)
    return Predictions(
        predictions.frame,
        predictions.metadata,
        (*ledger.dropped, *predictions.dropped),
        predictions.origin,
    )
