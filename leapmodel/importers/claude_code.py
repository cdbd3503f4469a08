"""Claude Code session files: one session a file, one record a line.

A step is one assistant message. Claude Code writes a record for each of its content blocks as the
block is complete, all under one ``message.id``, and starts a tool as soon as the call's block is
there, so that results of the message's first calls may stand before its last records. Hence

- ``gen_s`` runs from the last user or tool_result record before the message's *first* record to
  the message's *last* record;
- ``tool_s`` runs from the message's last record to the last of its results: what the agent
  waits for after it has decided. A tool that ended while the message was still being generated
  costs nothing.

Records of sub-agents (``isSidechain``) are not the agent's own steps; neither are records of other
types. What is left out or can't be known is counted in the trace's warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from leapmodel.actions import RESPOND, canonical_group
from leapmodel.errors import UsageError, shown
from leapmodel.importers.fields import Place, stem_of
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.messages import Call, said_by, said_by_assistant, said_by_tool
from leapmodel.importers.records import Importer, Message, Sample, Step, TaskRun
from leapmodel.jsonlines import iter_json_lines

_SUB_AGENT_TOOLS = {"Agent", "Task"}
_INTERRUPTED = "[Request interrupted by user"
_REJECTED = "The user doesn't want to"  # how a result says that a person refused the call
_PROMPT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read_file(path: Path, ledger: Ledger, /, **options: object) -> Iterator[TaskRun]:
    """Yield the one task of a session file, or none if the agent took no step in it.

    Parameters
    ----------
    path : Path
        JSON Lines; the task's name is the file's, without its suffix.
    ledger : Ledger
        Where dropped and remarkable things are noted.
    **options
        ``drop_tools``: names or shell-style patterns of tools whose calls are left out.

    Yields
    ------
    TaskRun

    Raises
    ------
    UsageError
        If ``drop_tools`` is not one or more texts.
    """
    session = _Session(stem_of(path), ledger, _patterns(options.get("drop_tools")))
    with ledger.guard(stem_of(path)):
        Place(path).text(stem_of(path), "file name")
        for line, record in iter_json_lines(path):
            session.read(record, Place(path, line))
        steps = session.finish()
        if steps:
            yield TaskRun(stem_of(path), steps)
        else:
            ledger.count("files without a step of the agent", path.name)


@dataclass
class _Call:
    """A tool call; ``ended`` is its result's time, None until there is one."""

    name: str
    arguments: object
    ended: int | None = None
    rejected: bool = False


@dataclass
class _Message:
    """An assistant message while its records come in; times in microseconds since 1970."""

    identity: str
    place: Place
    segment: int
    started: int | None
    ended: int
    has_text: bool = False
    is_final: bool = False
    is_interrupted: bool = False
    calls: dict[str, _Call] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    before: list[Message] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def said(self) -> Message:
        """Return it as a chat message, the calls that are left out included."""
        calls = [Call(c.name, c.arguments, identity) for identity, c in self.calls.items()]
        return said_by_assistant("\n".join(self.texts), calls)


class _Session:
    """Walk the records of one session and gather the agent's steps."""

    def __init__(self, task: str, ledger: Ledger, drop_tools: Sequence[str]) -> None:
        self.task = task
        self.ledger = ledger
        self.drop_tools = drop_tools
        self.steps: list[Step] = []
        self._message: _Message | None = None
        self._seen_messages: set[str] = set()
        self._seen_records: set[str] = set()
        self._clock: int | None = None  # the latest moment at which a generation could begin
        self._segment = 0
        self._turn_ended = False
        self._before: list[Message] = []

    def read(self, record: dict[str, Any], place: Place) -> None:
        """Take in one record."""
        kind = place.text(record.get("type"), "type")
        if kind not in {"assistant", "user", "system"}:
            return
        if record.get("isSidechain") is True:
            self.ledger.count("records of sub-agents left out", self.task)
            return
        if isinstance(uuid := record.get("uuid"), str):
            if uuid in self._seen_records:  # a resumed session repeats what it took over
                self.ledger.count("repeated records left out", self.task)
                return
            self._seen_records.add(uuid)
        if kind == "system":
            if record.get("subtype") == "api_error":
                self.ledger.count("failed requests whose retries count in gen_s", self.task)
        elif kind == "user":
            self._read_user(record, place)
        else:
            self._read_assistant(record, place)

    def finish(self) -> list[Step]:
        """Close the last message and return the steps."""
        self._close()
        if self.ledger.keep_messages:
            what = "contexts without the system prompt, which Claude Code does not log"
            self.ledger.count(what, self.task, len(self.steps))
        return self.steps

    def _read_user(self, record: dict[str, Any], place: Place) -> None:
        time = place.microseconds(record.get("timestamp"), "timestamp")
        content = place.mapping(record.get("message"), "message").get("content")
        blocks = (
            [{"type": "text", "text": content}]
            if isinstance(content, str)
            else [
                place.mapping(block, f"message.content[{number}]")
                for number, block in enumerate(place.items(content, "message.content"))
            ]
        )
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            self._take_result(block, time)
        if self.ledger.keep_messages:
            self._before += [_chat(block) for block in blocks]
        # Results of parallel calls are not always logged in order of time, and the next request
        # leaves only when the slowest is in.
        self._clock = time if self._clock is None else max(self._clock, time)
        if any(_text_of(block).startswith(_INTERRUPTED) for block in blocks):
            self._interrupt()
        elif not (results or record.get("isMeta") is True or record.get("isCompactSummary")):
            self._turn_ended = True

    def _take_result(self, block: dict[str, Any], time: int) -> None:
        identity = block.get("tool_use_id")
        if self._message is None or not isinstance(identity, str):
            return
        call = self._message.calls.get(identity)
        if call is not None:
            call.ended = time
            call.rejected = block.get("is_error") is True and _text_of(block).startswith(_REJECTED)

    def _interrupt(self) -> None:
        if self._message is not None:
            self._message.is_interrupted = True
        self._turn_ended = True

    def _read_assistant(self, record: dict[str, Any], place: Place) -> None:
        body = place.mapping(record.get("message"), "message")
        model = body.get("model")
        if record.get("isApiErrorMessage") is True or model == "<synthetic>":
            self.ledger.count("messages made up by Claude Code left out", self.task)
            return
        identity = place.text(body.get("id"), "message.id")
        time = place.microseconds(record.get("timestamp"), "timestamp")
        if self._message is None or self._message.identity != identity:
            self._close()
            if identity in self._seen_messages:
                expected = "the records of a message together"
                raise place.error(
                    "message.id", expected, f"{shown(identity)} again after another message"
                )
            self._open(identity, time, place)
        message = self._message
        assert message is not None
        message.ended = max(message.ended, time)
        message.is_final |= body.get("stop_reason") is not None
        self.ledger.saw_model(model)
        for number, block in enumerate(place.items(body.get("content"), "message.content")):
            name = f"message.content[{number}]"
            self._take_block(message, place.mapping(block, name), place, name)
        if body.get("usage") is not None:
            usage = place.mapping(body["usage"], "message.usage")
            for key in (*_PROMPT_TOKENS, "output_tokens"):
                if usage.get(key) is not None:
                    tokens = place.count(usage[key], f"message.usage.{key}")
                    message.usage[key] = max(tokens, message.usage.get(key, 0))

    def _open(self, identity: str, time: int, place: Place) -> _Message:
        if identity in self._seen_messages:
            raise place.error(
                "message.id",
                "the records of a message together",
                f"{shown(identity)} again after another message",
            )
        self._seen_messages.add(identity)
        if self._turn_ended and self.steps and self.steps[-1].segment == self._segment:
            self._segment += 1  # only now: a segment without any step leaves no gap
        self._turn_ended = False
        self._message = _Message(identity, place, self._segment, self._clock, time)
        # Results of its first calls may come before its last record: they belong to what follows.
        self._message.before, self._before = self._before, []
        return self._message

    def _take_block(
        self, message: _Message, block: dict[str, Any], place: Place, name: str
    ) -> None:
        kind = block.get("type")
        if kind == "text":
            message.has_text = True
            if self.ledger.keep_messages:
                message.texts.append(_text_of(block))
        elif kind == "tool_use":
            identity = place.text(block.get("id"), f"{name}.id")
            tool = place.text(block.get("name"), f"{name}.name")
            message.calls[identity] = _Call(tool, block.get("input"))

    def _close(self) -> None:
        """Turn the open message into a step."""
        message, self._message = self._message, None
        if message is None:
            return
        self._clock = message.ended if self._clock is None else max(self._clock, message.ended)
        calls = [call for call in message.calls.values() if not self._is_dropped(call)]
        self.ledger.count(
            f"calls of {', '.join(self.drop_tools)} left out",
            self.task,
            len(message.calls) - len(calls),
        )
        if message.calls and not calls:
            self._pass_over(message)
            return
        if message.is_interrupted and not calls:
            # Neither its time nor its decision is complete.
            self.ledger.count("messages interrupted by the user left out", self.task)
            self._pass_over(message)
            return
        if message.started is None:
            self.ledger.count("messages with nothing before them left out", self.task)
            self._pass_over(message)
            return
        if message.ended <= message.started:
            raise message.place.error(
                "timestamp",
                "a time after that of the record before the message",
                f"{(message.started - message.ended) / 1e6:g} s before it",
            )
        action = self._action(message, calls)
        # Usage is written as it stands while the message streams in; only the record that has a
        # stop reason carries the final count of output tokens, and some messages lack it.
        if not message.is_final:
            self.ledger.count("messages without a final count of completion tokens", self.task)
        self.steps.append(
            Step(
                segment=message.segment,
                gen_s=(message.ended - message.started) / 1e6,
                action=action,
                tool_s=self._tool_seconds(message, calls),
                started_s=message.started / 1e6,
                prompt_tokens=_sum_of(message.usage),
                cached_tokens=message.usage.get("cache_read_input_tokens"),
                completion_tokens=(
                    message.usage.get("output_tokens") if message.is_final else None
                ),
                before=message.before,
                said=message.said() if self.ledger.keep_messages else None,
            )
        )
        if action == RESPOND:
            self._turn_ended = True

    def _pass_over(self, message: _Message) -> None:
        """Leave a message in the contexts that is no step."""
        if self.ledger.keep_messages:
            self._before = [*message.before, message.said(), *self._before]

    def _action(self, message: _Message, calls: list[_Call]) -> str | None:
        if not calls and message.has_text:
            return RESPOND
        action = canonical_group([(c.name, c.arguments) for c in calls]) if calls else None
        if action is None:
            self.ledger.count("messages with no reply or readable call (null actions)", self.task)
        return action

    def _tool_seconds(self, message: _Message, calls: list[_Call]) -> float:
        ends = [call.ended for call in calls if call.ended is not None and not call.rejected]
        account = self.ledger.count
        account("calls without a result", self.task, sum(c.ended is None for c in calls))
        account("calls a person refused (no tool time)", self.task, sum(c.rejected for c in calls))
        sub_agents = sum(c.name in _SUB_AGENT_TOOLS for c in calls)
        account("calls of a sub-agent, whose whole run is tool time", self.task, sub_agents)
        return max(0, max(ends, default=0) - message.ended) / 1e6

    def _is_dropped(self, call: _Call) -> bool:
        return any(fnmatchcase(call.name, pattern) for pattern in self.drop_tools)


def _sum_of(usage: dict[str, int]) -> int | None:
    known = [usage[key] for key in _PROMPT_TOKENS if key in usage]
    return sum(known) if known else None


def _text_of(block: dict[str, Any]) -> str:
    """Return the text of a text block, or of the result of a tool."""
    text = block.get("text", block.get("content"))
    if isinstance(text, list) and text and isinstance(text[0], dict):
        text = text[0].get("text")
    return text if isinstance(text, str) else ""


def _chat(block: dict[str, Any]) -> Message:
    """Return a block of a user record as a chat message."""
    if block.get("type") == "tool_result":
        return said_by_tool(block.get("content"), block.get("tool_use_id"))
    return said_by("user", [block])


def _recognises(sample: Sample) -> bool:
    if not isinstance(sample.record, dict) or not isinstance(sample.record.get("type"), str):
        return False
    return sample.has_keys("isSidechain", "message", "uuid")


def _patterns(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    patterns = (value,) if isinstance(value, str) else value
    if isinstance(patterns, Sequence) and all(isinstance(p, str) and p for p in patterns):
        return tuple(patterns)
    raise UsageError(f"drop_tools: expected names of tools, found {value!r}")


CLAUDE_CODE = Importer(
    name="claude-code",
    description="Claude Code session files (JSON Lines, one session a file)",
    suffixes=(".jsonl",),
    read_file=read_file,
    options={
        "drop_tools": "leave out the calls of these tools, such as ToolSearch (names or patterns)"
    },
    remarks=("tool times include any wait for a person to permit a call",),
    recognises=_recognises,
    has_messages=True,
)
