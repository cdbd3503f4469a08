"""Runs of a speculating agent that logged its target's steps and a second model's guesses.

One task a file: a ``trajectory`` of nodes. An ``llm`` node is a step: the target's seconds
(``llm_time``), its calls or final answer, and the calls that the second model predicted meanwhile
(``spec_predictions``, each with its seconds). A ``tools`` node is the tools' run after it. So one
log gives both a trace and predictions made on its own contexts.

An answer that is neither call nor final answer sent the agent round again: it is no reply. A step
without a logged prediction is unknown, for the log does not say whether the second model was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.conversation import Conversation
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.durations import seconds_of
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    Call,
    action_of,
    calls_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_or_none,
)
from leapmodel.importers.records import Guess, Importer, Sample, Step, TaskRun


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the task of each document in the file.

    Parameters
    ----------
    path : Path
        One JSON object a task, usually one a file.
    ledger : Ledger
        Where failed, dropped and remarkable tasks are noted.

    Yields
    ------
    TaskRun
    """
    for place, record in iter_documents(path, ledger):
        task = record.get("task_id")
        name = task if isinstance(task, str) and task.strip() else stem_of(path)
        with ledger.guard(name):
            place.text(task, "task_id")
            nodes = place.items(record.get("trajectory"), "trajectory")
            ledger.saw_model(record.get("actor_model"))
            steps = _steps(nodes, record, place, Conversation(name, ledger))
            if steps:
                if record.get("error") is not None:
                    ledger.count("runs that ended on an error", name)
                yield TaskRun(name, steps, line=place.line)
            else:
                ledger.fail(name)


def _steps(
    nodes: list[Any], record: dict[str, Any], place: Place, talk: Conversation
) -> list[Step]:
    last_calls: list[Call] = []
    speculates = record.get("speculation_enabled") is True
    if speculates:
        talk.ledger.count(
            "runs with a second model at work (both models' times hold what that cost)", talk.task
        )
    draft = text_or_none(record.get("spec_model")) or "draft"
    for number, item in enumerate(nodes):
        at = f"trajectory[{number}]"
        node = place.mapping(item, at)
        kind = place.text(node.get("node"), f"{at}.node")
        if kind == "start":
            talk.hear(said_by("user", node.get("question")))
        elif kind == "llm":
            last_calls = calls_of(node.get("actor_tool_calls"), place, f"{at}.actor_tool_calls")
            reply = node.get("final_answer")
            action = action_of(last_calls) if last_calls or reply is not None else None
            said = None
            if talk.keeps:
                content = node.get("actor_reasoning") if reply is None else reply
                said = said_by_assistant(content, last_calls)
            if speculates and not node.get("spec_predictions"):
                talk.ledger.count("steps without a logged guess (unknown, not missed)", talk.task)
            talk.decide(
                action,
                place.seconds(node.get("llm_time"), f"{at}.llm_time"),
                said=said,
                guesses=_guesses(node, draft, place, at, talk),
            )
        elif kind == "tools":
            if node.get("tool_time") is not None:
                talk.tools_took(seconds_of(node["tool_time"], f"{at}.tool_time", place))
            if talk.keeps:
                ran = node.get("tool_executed")
                result = ran.get("result") if isinstance(ran, dict) else ran
                called = last_calls[0].identity if last_calls else None
                talk.hear(said_by_tool(result, called))
    return talk.steps


def _guesses(
    node: dict[str, Any], draft: str, place: Place, at: str, talk: Conversation
) -> tuple[Guess, ...]:
    """Return the second model's guess: calls predicted together are one action."""
    found = node.get("spec_predictions")
    if not found:
        return ()
    field = f"{at}.spec_predictions"
    calls = calls_of(found, place, field)
    seconds = []
    for number, item in enumerate(found):
        name = f"{field}[{number}].spec_inference_time"
        if item.get("spec_inference_time") is not None:
            seconds.append(place.seconds(item["spec_inference_time"], name))
        if item.get("pre_executed") is True:
            talk.ledger.count("guessed calls run ahead (a hit's tool time was saved)", talk.task)
    if not talk.ledger.keep_guesses:
        return ()
    model = text_or_none(node.get("spec_model")) or draft
    return (Guess(action_of(calls), max(seconds, default=None), model),)


def _recognises(sample: Sample) -> bool:
    return sample.has_keys("task_id", "trajectory", "actor_model", "speculation_enabled")


SPECULATIVE_TOOL_CALLS = Importer(
    name="speculative-tool-calls",
    description="runs of a speculating agent: target steps with a second model's guesses (JSON)",
    suffixes=(".json", ".jsonl"),
    read_file=read_file,
    recognises=_recognises,
    has_messages=True,
    has_guesses=True,
)
