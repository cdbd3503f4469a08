"""SWE-agent trajectories (``.traj``): recognised, and refused with the reason.

SWE-agent writes how long each command ran (``execution_time``) and what the model said, but
neither a duration nor a time of any model call. Nothing can be predicted from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leapmodel.importers.documents import iter_documents
from leapmodel.importers.fields import stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Importer, Sample, TaskRun


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Refuse each trajectory of the file, in one line.

    Parameters
    ----------
    path : Path
        One JSON object.
    ledger : Ledger
        Where the reason is noted in lenient use.

    Raises
    ------
    DataError
        Always (unless lenient).
    """
    for place, record in iter_documents(path, ledger):
        with ledger.guard(stem_of(path)):
            field = "trajectory" if record.get("trajectory") is not None else "history"
            place.items(record.get(field), field)
            raise place.error(
                field,
                "the time or duration of each model call",
                "none: SWE-agent logs how long commands ran, not how long the model took "
                "(serve the model behind a proxy that logs, such as LiteLLM, and import that log)",
            )
    yield from ()


def _recognises(sample: Sample) -> bool:
    if sample.has_keys("trajectory", "execution_time"):
        return True
    return sample.has_keys("history", "message_type", "agent")


SWE_AGENT = Importer(
    name="swe-agent",
    description="SWE-agent trajectories (.traj): refused, they hold no time of any model call",
    suffixes=(".traj",),
    read_file=read_file,
    recognises=_recognises,
)
