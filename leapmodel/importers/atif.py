"""Harbor's Agent Trajectory Interchange Format (ATIF): one JSON trajectory a file.

A step of ATIF with ``source`` "agent" is a step here. ATIF has one time a step and no durations:
some agents write it when the model answered, others when the tools were done, so the time between
two steps holds a generation and the tools of one of the two. It is taken as ``gen_s``, ``tool_s``
stays 0, and a warning says so.

Not steps: context copied from an earlier trajectory, dispatch without a model call
(``llm_call_count`` 0), and sub-agents, whose whole run is part of the gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.durations import required_moment
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    action_of,
    calls_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_or_none,
)
from leapmodel.importers.records import Importer, Sample, Step, TaskRun

_GENERIC_NAMES = {"trajectory", "agent", "logs"}


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the trajectory of a file, or of each line.

    Parameters
    ----------
    path : Path
        One JSON object, or one a line. Harbor names every file ``trajectory.json``: then the task
        is the trial's folder without what stands after ``__``.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun
    """
    for place, record in iter_documents(path, ledger):
        name = _task_name(path, record, place)
        with ledger.guard(name):
            version = place.text(record.get("schema_version"), "schema_version")
            if not version.startswith("ATIF-"):
                raise place.wrong(version, "schema_version", "ATIF-v1.x")
            agent = place.mapping(record.get("agent"), "agent")
            ledger.saw_model(agent.get("model_name"))
            steps = _steps(record, place, Conversation(name, ledger))
            if steps:
                yield TaskRun(name, steps, line=place.line)
            else:
                ledger.count("trajectories without a timed step of the agent", name)


def _task_name(path: Path, record: dict[str, Any], place: Place) -> str:
    if place.line not in (None, 1):
        stated = record.get("trajectory_id", record.get("session_id"))
        return text_or_none(stated) or f"{stem_of(path)}:{place.line}"
    folders = (path.absolute().parent.name, path.absolute().parent.parent.name)
    for candidate in (path.name.split(".")[0], *folders):
        name = candidate.split("__")[0] if candidate in folders else candidate
        if name and name not in _GENERIC_NAMES:
            return name
    return text_or_none(record.get("session_id")) or stem_of(path)


def _steps(record: dict[str, Any], place: Place, talk: Conversation) -> list[Step]:
    for number, item in enumerate(place.items(record.get("steps"), "steps")):
        at = f"steps[{number}]"
        given = place.mapping(item, at)
        source = given.get("source")
        if source not in ("agent", "user", "system"):
            raise place.wrong(source, f"{at}.source", "agent, user or system")
        time = None
        if given.get("timestamp") is not None:
            time = required_moment(given["timestamp"], f"{at}.timestamp", place, talk.ledger)
        if source == "agent":
            _decide(given, time, place, at, talk)
        else:
            if source == "user":
                talk.end_turn()
            talk.hear(said_by(source, given.get("message")), time)
        _hear_results(given, place, at, talk)
    return talk.steps


def _decide(
    given: dict[str, Any], time: int | None, place: Place, at: str, talk: Conversation
) -> None:
    calls = calls_of(given.get("tool_calls"), place, f"{at}.tool_calls")
    said = said_by_assistant(given.get("message"), calls) if talk.keeps else None
    n_model_calls = given.get("llm_call_count")
    if given.get("is_copied_context") is True:
        talk.ledger.count("steps copied from an earlier trajectory left out", talk.task)
        talk.pass_over(said)
        return
    if n_model_calls == 0:
        talk.ledger.count("steps without a model call left out", talk.task)
        talk.pass_over(said, time)
        return
    if isinstance(n_model_calls, int) and n_model_calls > 1:
        talk.ledger.count("steps of several model calls, taken as one", talk.task)
    if time is None:
        raise place.error(
            f"{at}.timestamp",
            "the time of each step (ATIF may leave it out, but nothing else tells how long a "
            "generation took)",
            "nothing",
        )
    gen_s = talk.gap(time, place, f"{at}.timestamp")
    if gen_s is None:
        talk.pass_over(said, time)
        return
    talk.decide(action_of(calls), gen_s, ended=time, usage=_usage(given, place, at), said=said)


def _hear_results(given: dict[str, Any], place: Place, at: str, talk: Conversation) -> None:
    observation = given.get("observation")
    if observation is None:
        return
    results = place.mapping(observation, f"{at}.observation").get("results") or []
    for number, item in enumerate(place.items(results, f"{at}.observation.results")):
        result = place.mapping(item, f"{at}.observation.results[{number}]")
        if result.get("subagent_trajectory_ref"):
            talk.ledger.count("calls of a sub-agent, whose run counts as generation", talk.task)
        if talk.keeps:
            talk.hear(said_by_tool(result.get("content"), result.get("source_call_id")))


def _usage(given: dict[str, Any], place: Place, at: str) -> Usage:
    metrics = place.mapping(given.get("metrics") or {}, f"{at}.metrics")

    def tokens(name: str) -> int | None:
        found = metrics.get(name)
        return None if found is None else place.count(found, f"{at}.metrics.{name}")

    return Usage(tokens("prompt_tokens"), tokens("cached_tokens"), tokens("completion_tokens"))


def _recognises(sample: Sample) -> bool:
    return sample.has_keys("schema_version") and b'"ATIF-' in sample.head


ATIF = Importer(
    name="atif",
    description="Harbor ATIF trajectories (JSON)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    remarks=(
        "generation times are the times between two steps and hold the tool time of one of them, "
        "which ATIF does not tell apart (tool_s is 0): where tools are slow, the speedup comes out "
        "too high",
    ),
    recognises=_recognises,
    has_messages=True,
)
