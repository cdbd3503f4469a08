"""τ²-bench results: one JSON document with the simulations of its tasks, several trials of each.

A step is a message of the agent. Its ``gen_s`` is ``generation_time_seconds`` where τ²-bench wrote
it; older files hold only the time at which each message was made, and then it runs from the
message before, whoever sent that. ``tool_s`` runs from the agent's message to the last of its
tools' results. Messages of the user simulator end a segment; its own tool calls are invisible to
the agent. The greeting that opens a conversation is fixed text and no decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.durations import required_moment
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    action_of,
    calls_of,
    said_by,
    said_by_assistant,
    said_by_tool,
)
from leapmodel.importers.nested import Document
from leapmodel.importers.records import Importer, Sample, Step, TaskRun

_ROLES = ("assistant", "user", "tool", "system")


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the simulations of one result file; a trial is a run.

    Parameters
    ----------
    path : Path
        One JSON object, small or streamed.
    ledger : Ledger
        Where dropped and remarkable things are noted.

    Yields
    ------
    TaskRun
    """
    document = Document(path)
    ledger.saw_model(document.field("info", "agent_info", "llm"))
    trials = document.field("info", "num_trials")
    policy = None
    if ledger.keep_messages:
        policy = document.field("info", "environment_info", "policy")
    for place, simulation in document.records("simulations"):
        task = simulation.get("task_id")
        name = str(task) if isinstance(task, (str, int)) else f"({path.name} entry {place.row})"
        with ledger.guard(name):
            if not isinstance(task, int) or isinstance(task, bool):
                place.text(task, "task_id")
            # With one trial a file, the trials are the files.
            run = simulation.get("trial") if trials != 1 else None
            if run is not None:
                run = place.count(run, "trial")
            steps = _steps(simulation, place, Conversation(name, ledger), policy)
            if steps:
                yield TaskRun(name, steps, run=run)
            else:
                ledger.count("simulations without a step of the agent", name)


def _steps(
    simulation: dict[str, Any], place: Place, talk: Conversation, policy: object
) -> list[Step]:
    if isinstance(policy, str):
        talk.hear(said_by("system", policy))
    is_opening = True
    for number, item in enumerate(place.items(simulation.get("messages"), "messages")):
        at = f"messages[{number}]"
        message = place.mapping(item, at)
        role = message.get("role")
        if role not in _ROLES:
            raise place.wrong(role, f"{at}.role", "assistant, user, tool or system")
        time = None
        if message.get("timestamp") is not None:
            time = required_moment(message["timestamp"], f"{at}.timestamp", place, talk.ledger)
        if role == "assistant" and is_opening and message.get("generation_time_seconds") is None:
            talk.ledger.count("greetings that no model generated left out", talk.task)
            said = said_by_assistant(message.get("content")) if talk.keeps else None
            talk.pass_over(said, time)
        elif role == "assistant":
            _decide(message, time, place, at, talk)
        elif role == "user":
            talk.end_turn()
            heard = message.get("content") is not None
            talk.hear(said_by("user", message["content"]) if heard else None, time)
        elif role == "tool" and message.get("requestor") == "user":
            talk.hear(at=time)
        elif role == "tool":
            if time is not None:
                talk.tools_ended(time)
            talk.hear(said_by_tool(message.get("content"), message.get("id")))
        else:
            talk.hear(said_by("system", message.get("content")), time)
        is_opening = is_opening and role == "system"
    return talk.steps


def _decide(
    message: dict[str, Any], time: int | None, place: Place, at: str, talk: Conversation
) -> None:
    calls = calls_of(message.get("tool_calls"), place, f"{at}.tool_calls")
    said = said_by_assistant(message.get("content"), calls) if talk.keeps else None
    stated = message.get("generation_time_seconds")
    if stated is not None:
        gen_s = place.seconds(stated, f"{at}.generation_time_seconds")
    else:
        if time is None:
            raise place.error(f"{at}.timestamp", "the time of the message", "nothing")
        gap = talk.gap(time, place, f"{at}.timestamp")
        if gap is None:
            talk.pass_over(said, time)
            return
        gen_s = gap
        talk.ledger.count("generation times worked out from the times of messages", talk.task)
    usage = place.mapping(message.get("usage") or {}, f"{at}.usage")
    talk.decide(
        action_of(calls),
        gen_s,
        ended=time,
        usage=Usage(
            prompt=_tokens(usage, "prompt_tokens", place, at),
            completion=_tokens(usage, "completion_tokens", place, at),
        ),
        said=said,
    )


def _tokens(usage: dict[str, Any], name: str, place: Place, at: str) -> int | None:
    found = usage.get(name)
    return None if found is None else place.count(found, f"{at}.usage.{name}")


def _recognises(sample: Sample) -> bool:
    return sample.has_keys("info", "agent_info", "user_info", "environment_info")


TAU2 = Importer(
    name="tau2",
    description="τ²-bench results (JSON, all simulations of a run)",
    suffixes=(".json",),
    read_file=read_file,
    recognises=_recognises,
    has_messages=True,
)
