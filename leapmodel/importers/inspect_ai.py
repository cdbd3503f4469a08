"""inspect_ai logs: ``.eval`` (a zip of JSON, one member a sample) and ``.json``.

A step is a ``model`` event of the evaluated model. ``gen_s`` is its ``working_time``, which leaves
out retries and waits for a connection; without it, the time in the model's output, else the span
from start to completion. ``tool_s`` is the time covered by the ``tool`` events that run its calls.

Not steps: events of graders (in a scorer's span, or a model with a role of its own), of models that
tools and handed-off agents call (their whole run is tool time), of other models, pending and failed
ones. A user message, or a reply without calls, ends a segment. A sample that ended on an error is
listed as failed; an answer read from inspect's cache took no generation time, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leapmodel.importers.conversation import Conversation, Usage
from leapmodel.importers.durations import required_moment, union_seconds, whole_microseconds
from leapmodel.importers.fields import stem_of
from leapmodel.importers.inspect_ai_file import Sampled, read_samples
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import (
    action_of,
    calls_of,
    said_by,
    said_by_assistant,
    said_by_tool,
    text_or_none,
)
from leapmodel.importers.records import Importer, Message, Sample, Step, TaskRun

_ATTACHMENT = "attachment://"
_NOT_OWN = {"tool": "of tools and sub-agents", "scorer": "of scorers", "scorers": "of scorers"}


def read_file(path: Path, ledger: Ledger, /, **_options: object) -> Iterator[TaskRun]:
    """Yield the samples of one log; an epoch is a run.

    Parameters
    ----------
    path : Path
        ``.eval`` or ``.json``; samples are in memory one at a time.
    ledger : Ledger
        Where failed, dropped and remarkable samples are noted.

    Yields
    ------
    TaskRun
        Named ``task/sample``.
    """
    for sampled in read_samples(path):
        place, sample = sampled.place, sampled.sample
        identity = sample.get("id")
        prefix = text_or_none(sampled.about.get("task")) or stem_of(path)
        name = f"{prefix}/{identity}" if isinstance(identity, (str, int)) else sampled.fallback
        with ledger.guard(name):
            place.text(name, "id")
            if not isinstance(identity, (str, int)):
                raise place.wrong(identity, "id", "text or a number")
            run = None
            if (sampled.epochs or 1) != 1 and sample.get("epoch") is not None:
                run = max(0, place.count(sample["epoch"], "epoch") - 1)
            if sample.get("error") is not None:
                ledger.fail(name)
                continue
            steps = _SampleReader(sampled, name, ledger).steps()
            if steps:
                yield TaskRun(name, steps, run=run)
            else:
                ledger.count("samples without a step of the evaluated model", name)


class _SampleReader:
    """Walk the events of one sample."""

    def __init__(self, sampled: Sampled, task: str, ledger: Ledger) -> None:
        self.place = sampled.place
        self.sample = sampled.sample
        self.model = text_or_none(sampled.about.get("model"))
        self.talk = Conversation(task, ledger)
        self.ledger = ledger
        self._spans: dict[str, tuple[str, str | None]] = {}
        self._steps_open: list[str] = []  # before spans existed: solvers and scorers as brackets
        self._tools: list[tuple[int, int]] = []
        self._last_calls: set[str] = set()
        self._known = 0  # messages of the context so far

    def steps(self) -> list[Step]:
        """Return the steps of the sample."""
        events = self.sample.get("events")
        if not events:
            raise self.place.error(
                "events",
                "the sample's events, for messages alone carry no times",
                "no events" if events == [] else "nothing",
            )
        for number, item in enumerate(self.place.items(events, "events")):
            at = f"events[{number}]"
            event = self.place.mapping(item, at)
            kind = event.get("event")
            if kind == "model":
                self._model(event, at)
            elif kind == "tool":
                self._tool(event, at)
            elif kind == "span_begin" and isinstance(event.get("id"), str):
                parent = text_or_none(event.get("parent_id"))
                self._spans[event["id"]] = (str(event.get("type")), parent)
            elif kind == "step" and event.get("action") == "begin":
                self._steps_open.append(str(event.get("type")))
            elif kind == "step" and event.get("action") == "end" and self._steps_open:
                self._steps_open.pop()
        self._end_tools()
        return self.talk.steps

    def _whose(self, event: dict[str, Any]) -> str | None:
        """Say whose event it is, in words; None for the evaluated model's own."""
        for kind in self._steps_open:
            if kind in _NOT_OWN:
                return _NOT_OWN[kind]
        span = event.get("span_id")
        seen: set[str] = set()
        while isinstance(span, str) and span in self._spans and span not in seen:
            seen.add(span)
            kind, span = self._spans[span]
            if kind in _NOT_OWN:
                return _NOT_OWN[kind]
        if event.get("role") is not None:
            return "of models with a role of their own"
        model = text_or_none(event.get("model"))
        if self.model in (None, "none", "none/none", "..."):
            self.model = model
        return None if model == self.model else "of other models"

    def _model(self, event: dict[str, Any], at: str) -> None:
        whose = self._whose(event)
        if whose is not None:
            self.ledger.count(f"model calls {whose} left out", self.talk.task)
            return
        if event.get("pending") is True or event.get("error") is not None:
            self.ledger.count("failed or unfinished model calls left out", self.talk.task)
            return
        if event.get("cache") == "read":
            raise self.place.error(
                f"{at}.cache", "an answer that was generated", "one read from inspect's cache"
            )
        self.ledger.saw_model(event.get("model"))
        output = self.place.mapping(event.get("output"), f"{at}.output")
        choices = self.place.items(output.get("choices"), f"{at}.output.choices")
        if not choices:
            self.ledger.count("failed or unfinished model calls left out", self.talk.task)
            return
        choice = self.place.mapping(choices[0], f"{at}.output.choices[0]")
        message = self.place.mapping(choice.get("message"), f"{at}.output.choices[0].message")
        field = f"{at}.output.choices[0].message.tool_calls"
        calls = calls_of(message.get("tool_calls"), self.place, field)
        if any(call.get("parse_error") for call in message.get("tool_calls") or ()):
            action = None
        else:
            action = action_of(calls)
        start = required_moment(event.get("timestamp"), f"{at}.timestamp", self.place, self.ledger)
        gen_s = self._seconds(event, output, start, at)
        self._end_tools()
        self._hear(event.get("input"), at)
        retries = event.get("retries")
        if isinstance(retries, int) and retries > 0:
            self.ledger.count("retries of model calls (their time is in no step)", self.talk.task)
        if self.talk.clock is not None and start < self.talk.clock - 1000:
            self.ledger.count("model calls that began before the last one ended", self.talk.task)
        self.talk.decide(
            action,
            gen_s,
            started=start,
            ended=start + whole_microseconds(gen_s),
            usage=self._usage(output, at),
            said=said_by_assistant(self._text(message), calls) if self.talk.keeps else None,
        )
        self._last_calls = {call.identity for call in calls if call.identity is not None}
        self._known += 1

    def _seconds(self, event: dict[str, Any], output: dict[str, Any], start: int, at: str) -> float:
        if event.get("working_time") is not None:
            return self.place.seconds(event["working_time"], f"{at}.working_time")
        if output.get("time") is not None:
            return self.place.seconds(output["time"], f"{at}.output.time")
        if event.get("completed") is None:
            expected = "working_time, output.time or completed, to tell how long the call took"
            raise self.place.error(at, expected, "none of them")
        end = required_moment(event["completed"], f"{at}.completed", self.place, self.ledger)
        if end <= start:
            raise self.place.error(
                f"{at}.completed", "a time after timestamp", f"{(start - end) / 1e6:g} s before it"
            )
        self.ledger.count("generation times that hold retries and waits", self.talk.task)
        return (end - start) / 1e6

    def _tool(self, event: dict[str, Any], at: str) -> None:
        if text_or_none(event.get("id")) not in self._last_calls or event.get("pending") is True:
            return
        if event.get("completed") is None:
            self.ledger.count("tool calls without an end (no tool time)", self.talk.task)
            return
        start = required_moment(event.get("timestamp"), f"{at}.timestamp", self.place, self.ledger)
        end = required_moment(event["completed"], f"{at}.completed", self.place, self.ledger)
        if end < start:
            self.ledger.count(
                "tool calls that end before they start (no tool time)", self.talk.task
            )
        if event.get("agent") is not None:
            what = "calls of a sub-agent, whose whole run is tool time"
            self.ledger.count(what, self.talk.task)
        self._tools.append((start, max(start, end)))

    def _end_tools(self) -> None:
        if self._tools:
            self.talk.tools_took(union_seconds(self._tools))
        self._tools = []

    def _hear(self, given: object, at: str) -> None:
        """Take in the messages that are new in an event's input."""
        messages = given if isinstance(given, list) else []
        new = messages[self._known :]
        if len(messages) < self._known:
            self.ledger.count("contexts that do not continue the one before", self.talk.task)
        for number, item in enumerate(new):
            message = self.place.mapping(item, f"{at}.input[{self._known + number}]")
            if message.get("role") == "user":
                self.talk.end_turn()
            if self.talk.keeps:
                self.talk.hear(self._chat(message))
        self._known = len(messages)

    def _chat(self, message: dict[str, Any]) -> Message:
        text = self._text(message)
        role = text_or_none(message.get("role")) or "user"
        if role == "tool":
            return said_by_tool(text, message.get("tool_call_id"))
        if role == "assistant":
            calls = calls_of(message.get("tool_calls"), self.place, "input.tool_calls")
            return said_by_assistant(text, calls)
        return said_by(role, text)

    def _text(self, message: dict[str, Any]) -> object:
        content = message.get("content")
        if isinstance(content, str) and content.startswith(_ATTACHMENT):
            stored = self.sample.get("attachments")
            if isinstance(stored, dict):
                return stored.get(content.removeprefix(_ATTACHMENT), content)
        return content

    def _usage(self, output: dict[str, Any], at: str) -> Usage:
        if output.get("usage") is None:
            return Usage()
        given = self.place.mapping(output["usage"], f"{at}.output.usage")

        def tokens(name: str) -> int | None:
            found = given.get(name)
            return None if found is None else self.place.count(found, f"{at}.output.usage.{name}")

        cached = tokens("input_tokens_cache_read")
        written = tokens("input_tokens_cache_write")
        prompt = tokens("input_tokens")
        # inspect counts the cached part beside input_tokens, not in it, where total_tokens says so.
        total, completion = tokens("total_tokens"), tokens("output_tokens")
        beside = (cached or 0) + (written or 0)
        if None not in (prompt, total, completion) and total == prompt + completion + beside:  # type: ignore[operator]
            prompt = (prompt or 0) + beside
        return Usage(prompt, cached, completion)


def _recognises(sample: Sample) -> bool:
    if sample.head.startswith(b"PK\x03\x04"):
        return b"_journal/" in sample.head or sample.path.suffix.lower() == ".eval"
    return sample.has_keys("version", "status", "eval", "task_id", "dataset")


INSPECT_AI = Importer(
    name="inspect-ai",
    description="inspect_ai logs (.eval or .json)",
    suffixes=(".eval", ".json"),
    read_file=read_file,
    recognises=_recognises,
    has_messages=True,
)
