"""OpenHands evaluation outputs (``output.jsonl``): one task a line, with its history of events.

Two generations of the format are read: events with ``action`` / ``observation`` (before version 1)
and events with a ``kind`` (the software agent SDK). A step is one response of the model; calls
with the same response id are one action. ``gen_s`` is the response's entry in
``metrics.response_latencies``; where there is none, it runs from the event before to the action's
event. ``tool_s`` runs from the action's event to the last of its observations.

``finish`` ends the plan, whatever it says. Arguments that only comment on a call
(``security_risk``, ``summary``) are left out of the action. Recalls, condensations, changes of
state and events of the environment are not steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.documents import iter_documents
from leapmodel.importers.durations import required_moment
from leapmodel.importers.fields import Place
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    Call,
    action_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_or_none,
)
from leapmodel.importers.openhands_events import Event, read_event
from leapmodel.importers.records import Importer, Sample, Step, TaskRun


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the tasks of one output file; those without a history are listed as failed.

    Parameters
    ----------
    path : Path
        JSON Lines, one task a line.
    ledger : Ledger
        Where failed, dropped and remarkable tasks are noted.

    Yields
    ------
    TaskRun
    """
    for place, record in iter_documents(path, ledger):
        task = record.get("instance_id")
        where = f"line {place.line}" if place.line else f"entry {place.row or 1}"
        name = str(task) if isinstance(task, (str, int)) else f"({path.name} {where})"
        with ledger.guard(name):
            if not isinstance(task, int) or isinstance(task, bool):
                place.text(task, "instance_id")
            if record.get("error") and not record.get("history"):
                ledger.fail(name)
                continue
            steps = _Task(record, place, name, ledger).steps()
            if not steps:
                ledger.count("tasks without a step of the agent", name)
                continue
            if record.get("error"):
                ledger.count("runs that ended on an error", name)
            yield TaskRun(name, steps, line=place.line)


@dataclass
class _Response:
    """A response of the model while its events come in."""

    event: Event
    at: str
    calls: list[Call] = field(default_factory=list)
    is_whole: bool = False
    ended: int | None = None


class _Task:
    """Walk the history of one task."""

    def __init__(self, record: dict[str, Any], place: Place, task: str, ledger: Ledger) -> None:
        self.place = place
        self.task = task
        self.ledger = ledger
        self.talk = Conversation(task, ledger)
        self._history = place.items(record.get("history"), "history")
        metrics = place.mapping(record.get("metrics") or {}, "metrics")
        self._latencies = self._by_response(metrics, "response_latencies")
        self._usages = self._by_response(metrics, "token_usages")
        self._response: _Response | None = None
        self._last_id: str | None = None
        metadata = record.get("metadata")
        for key in ("llm_config", "llm"):
            config = metadata.get(key) if isinstance(metadata, dict) else None
            ledger.saw_model(config.get("model") if isinstance(config, dict) else None)

    def steps(self) -> list[Step]:
        """Return the steps of the task."""
        for number, item in enumerate(self._history):
            # The oldest files hold pairs of an action and its observation.
            pair = item if isinstance(item, list) else [item]
            for part, event in enumerate(pair):
                at = f"history[{number}]" + (f"[{part}]" if pair is item else "")
                given = self.place.mapping(event, at)
                self._read(read_event(given, self.place, at), given, at)
        self._close()
        return self.talk.steps

    def _by_response(self, metrics: dict[str, Any], name: str) -> dict[str, tuple[Any, str]]:
        found: dict[str, tuple[Any, str]] = {}
        for number, item in enumerate(self.place.items(metrics.get(name) or [], f"metrics.{name}")):
            at = f"metrics.{name}[{number}]"
            entry = self.place.mapping(item, at)
            if (identity := text_or_none(entry.get("response_id"))) is not None:
                found[identity] = (entry, at)
        return found

    def _read(self, event: Event, given: dict[str, Any], at: str) -> None:
        time = None
        if given.get("timestamp") is not None:
            time = required_moment(given["timestamp"], f"{at}.timestamp", self.place, self.ledger)
        if event.kind == "decision":
            self._decision(event, time, at)
            return
        if event.kind == "result":
            self._close()
            if time is not None:
                self.talk.tools_ended(time)
            if self.talk.keeps:
                self.talk.hear(said_by_tool(event.content, event.call_id))
            return
        if event.kind == "aside":
            # It may stand between the calls of one response, and starts no generation.
            return
        self._close()
        if event.kind == "user":
            self.talk.end_turn()
        role = "system" if event.kind == "system" else "user"
        self.talk.hear(said_by(role, event.content), time)

    def _decision(self, event: Event, time: int | None, at: str) -> None:
        identity = event.response_id
        if self._response is None and identity is not None and identity == self._last_id:
            # The calls of one response may run one by one, each logged as its turn comes.
            if not event.is_whole:
                self.ledger.count("calls logged after a result of their response", self.task)
            self.talk.hear(at=time)
            return
        response = self._response
        if response is None or identity is None or response.event.response_id != identity:
            self._close()
            response = self._response = _Response(event, at)
        if not response.is_whole:  # else its first event already told all the calls
            response.calls += event.calls
            response.is_whole = event.is_whole
        if time is not None:
            response.ended = time if response.ended is None else max(response.ended, time)

    def _close(self) -> None:
        """Turn the open response into a step."""
        response, self._response = self._response, None
        if response is None:
            return
        event = response.event
        self._last_id = event.response_id
        delegations = sum(call.name == "delegate" for call in response.calls)
        what = "delegations (a sub-agent's events can't be told apart)"
        self.ledger.count(what, self.task, delegations)
        said = said_by_assistant(event.content, response.calls) if self.talk.keeps else None
        gen_s = self._seconds(response)
        if gen_s is None:
            self.talk.pass_over(said, response.ended)
            return
        self.talk.decide(
            _action(response.calls),
            gen_s,
            ended=response.ended,
            usage=self._usage(event.response_id),
            said=said,
        )

    def _seconds(self, response: _Response) -> float | None:
        logged = self._latencies.get(response.event.response_id or "")
        if logged is not None:
            entry, at = logged
            return self.place.seconds(entry.get("latency"), f"{at}.latency")
        if response.ended is None:
            expected = "the response's latency in metrics, or the time of its event"
            raise self.place.error(f"{response.at}.timestamp", expected, "neither")
        self.ledger.count("generation times worked out from the times of events", self.task)
        return self.talk.gap(response.ended, self.place, f"{response.at}.timestamp")

    def _usage(self, response_id: str | None) -> Usage:
        logged = self._usages.get(response_id or "")
        if logged is None:
            return Usage()
        entry, at = logged

        def tokens(name: str) -> int | None:
            found = entry.get(name)
            return None if found is None else self.place.count(found, f"{at}.{name}")

        return Usage(
            tokens("prompt_tokens"), tokens("cache_read_tokens"), tokens("completion_tokens")
        )


def _action(calls: list[Call]) -> str | None:
    if not calls:
        return RESPOND
    if len(calls) == 1 and calls[0].name == "finish":
        return TERMINATE
    return action_of(calls)


def _recognises(sample: Sample) -> bool:
    if isinstance(sample.record, dict):
        return "history" in sample.record and "instance_id" in sample.record
    return sample.has_keys("instance_id", "test_result", "metadata", "history") or (
        sample.has_keys("instance_id", "test_result") and sample.has_keys("llm_config")
    )


OPENHANDS = Importer(
    name="openhands",
    description="OpenHands evaluation outputs (output.jsonl, one task a line)",
    suffixes=(".jsonl",),
    read_file=read_file,
    recognises=_recognises,
    has_messages=True,
)
