"""Find an agent's own chain of decisions in the spans of one trace, and time its steps.

A step is one generation of the agent itself. Of what else a span tree holds,

- a generation under a run of a tool, or of an agent that another agent runs, is a sub-agent's: its
  time is part of the wait for that tool or agent; one under a guard is the guard's;
- a generation around another one is the framework's wrapper of the same call: the inner one is
  timed, and what was said is taken from whichever says more;
- generations of the agent that overlap can't follow from one another: none of them is a step, and
  their time is waited for, like a tool's.

``gen_s`` is the generation's span, cut where the first tool that it called starts if the log lets
it go on past that; ``tool_s`` is the part of the time until the next generation (or until the end)
in which a tool runs. Text, or an end without a call, is a reply and ends the segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leapmodel.actions import RESPOND
from leapmodel.importers.chat import NOTHING, Said, joined
from leapmodel.importers.ledger import Ledger
from leapmodel.importers.records import Message, Step
from leapmodel.importers.span_tree import SpanTree, each_once

if TYPE_CHECKING:
    from leapmodel.importers.span import Span

_SLACK = 10_000
"""Microseconds by which spans may overlap and still follow one another: clocks are read apart."""
_SPLIT_MESSAGES = {"claude.assistant.turn"}
"""LangSmith's tracing of the Claude agent writes each content block of one message as a span."""


def agent_steps(
    spans: Iterable[Span],
    ledger: Ledger,
    task: str,
    instant: list[Span],
    *,
    silence_is_reply: bool = False,
) -> list[Step]:
    """Return the steps of the agent of one trace; its segments count from 0.

    Parameters
    ----------
    spans : iterable of Span
        All spans of the trace, in any order.
    ledger : Ledger
        Where what was left out, cut or not known is counted.
    task : str
        The trace's name there.
    instant : list of Span
        Generations that end at the moment they start are added to it.
    silence_is_reply : bool, default False
        Whether a generation without output and without a call was a reply.

    Raises
    ------
    DataError
        If a span ends before it starts, or is its own ancestor.
    """
    tree = SpanTree(each_once(spans, ledger, task))
    generations = _timed(tree.of_kind("generation"), ledger, task, instant)
    generations = _innermost(generations, tree)
    tree.find_tools(generations)
    own, aside = _own(generations, tree, ledger, task)
    own = _rejoined(own)
    tools = [tool for tool in tree.of_kind("tool") if tree.scope(tool).tool is None]
    _cut_at_tools(own, tools, tree, ledger, task)
    own, parallel = _without_overlaps(own, ledger, task)
    if not own:
        return []
    waits = _waits(own, [*tools, *aside, *parallel], ledger, task)
    own_tools = [tool for tool in tools if tree.scope(tool).agent not in aside]
    said = _decisions(own, own_tools, ledger, task, silence_is_reply)
    return _steps(own, said, waits, ledger, task)


def _timed(
    generations: Iterable[Span], ledger: Ledger, task: str, instant: list[Span]
) -> list[Span]:
    """Return the generations that have a time and did not fail."""
    kept = []
    for span in generations:
        if span.start is not None and span.end is not None and span.end < span.start:
            early = (span.start - span.end) / 1e6
            raise span.place.error(
                "end", "a time not before the span's start", f"{early:g} s earlier"
            )
        if span.failed:
            ledger.count("failed generations left out", task)
        elif span.start is None or span.end is None:
            ledger.count("generations without a start or an end left out", task)
        elif span.start == span.end:
            ledger.count("generations that take no time left out (cached answers?)", task)
            instant.append(span)
        else:
            kept.append(span)
    return kept


def _innermost(generations: list[Span], tree: SpanTree) -> list[Span]:
    """Return the generations that hold no other one, with what their wrappers say added."""
    inside: dict[str, int] = {}
    for span in generations:
        around = tree.scope(span).generation
        if around is not None:
            inside[around.id] = inside.get(around.id, 0) + 1
    leaves = [span for span in generations if span.id not in inside]
    for leaf in leaves:
        around = tree.scope(leaf).generation
        while around is not None and inside.get(around.id) == 1:
            _complete(leaf, around)
            around = tree.scope(around).generation
    return leaves


def _complete(leaf: Span, wrapper: Span) -> None:
    if not leaf.said.calls and (wrapper.said.calls or leaf.said.text is None):
        leaf.said = wrapper.said if wrapper.said.is_known else leaf.said
    leaf.model = leaf.model or wrapper.model
    leaf.messages = leaf.messages or wrapper.messages
    leaf.streamed = leaf.streamed or wrapper.streamed
    if leaf.prompt_tokens is None and leaf.completion_tokens is None:
        leaf.prompt_tokens = wrapper.prompt_tokens
        leaf.cached_tokens = wrapper.cached_tokens
        leaf.completion_tokens = wrapper.completion_tokens


def _own(
    generations: list[Span], tree: SpanTree, ledger: Ledger, task: str
) -> tuple[list[Span], list[Span]]:
    """Return the agent's own generations in order, and the sub-agents' spans beside them."""
    outside = [span for span in generations if tree.scope(span).tool is None]
    agents = {agent.id for span in outside if (agent := tree.scope(span).agent) is not None}
    own: list[Span] = []
    aside: dict[str, Span] = {}
    for span in outside:
        # Of agents that run one another, the outermost that decides anything is the agent.
        above = agent = tree.scope(span).agent
        while above is not None and (above := tree.scope(above).agent) is not None:
            if above.id in agents:
                break
        if agent is not None and above is not None:
            aside[agent.id] = agent
        else:
            own.append(span)
    own.sort(key=_start)
    kept, parallel = _one_agent_at_a_time(own, tree)
    left_out = len(generations) - len(kept)
    ledger.count("generations of sub-agents, parallel agents and guards left out", task, left_out)
    return kept, [*aside.values(), *parallel]


def _one_agent_at_a_time(own: list[Span], tree: SpanTree) -> tuple[list[Span], list[Span]]:
    """Set aside the runs of agents at the same time; one after the other they are one chain."""
    runs: dict[str, tuple[int, int]] = {}
    for span in own:
        if (agent := tree.scope(span).agent) is not None:
            start, end = runs.get(agent.id, (_start(span), 0))
            runs[agent.id] = (start, max(end, _stop(span)))
    parallel: set[str] = set()
    last, until = "", 0
    for agent_id, (start, end) in sorted(runs.items(), key=lambda item: item[1]):
        if last and start < until - _SLACK:
            parallel |= {last, agent_id}
        if end > until:
            last, until = agent_id, end
    scope_agent = {span.id: tree.scope(span).agent for span in own}
    kept = [s for s in own if (a := scope_agent[s.id]) is None or a.id not in parallel]
    aside = {a.id: a for s in own if (a := scope_agent[s.id]) is not None and a.id in parallel}
    return kept, list(aside.values())


def _rejoined(own: list[Span]) -> list[Span]:
    """Join spans that hold the parts of one message."""
    result: list[Span] = []
    for span in own:
        before = result[-1] if result else None
        if (
            before is not None
            and span.name == before.name
            and span.name in _SPLIT_MESSAGES
            and span.start == before.end
        ):
            parts = [before, span]
            result[-1] = replace(
                before,
                end=span.end,
                said=joined([part.said for part in parts]),
                completion_tokens=_sum(part.completion_tokens for part in parts),
            )
        else:
            result.append(span)
    return result


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _cut_at_tools(
    own: list[Span], tools: list[Span], tree: SpanTree, ledger: Ledger, task: str
) -> None:
    """End a generation where the first of its tools starts, if the log lets it go on past that."""
    inside: dict[str, int] = {}
    for tool in tools:
        holder = tree.scope(tool).generation
        if holder is not None and tool.start is not None:
            inside[holder.id] = min(tool.start, inside.get(holder.id, tool.start))
    starts = sorted(tool.start for tool in tools if tool.start is not None)
    at = 0
    for index, span in enumerate(own):
        start, end = _start(span), _stop(span)
        cut = inside.get(span.id)
        after = _start(own[index + 1]) if index + 1 < len(own) else None
        while at < len(starts) and starts[at] <= start:
            at += 1
        if cut is None and after is not None and after < end - _SLACK and at < len(starts):
            # The next decision follows from the tools' results, so this one was taken before them.
            cut = starts[at] if starts[at] < after else None
        if cut is not None and start < cut < end:
            span.end = cut
            ledger.count("generations that go on past the start of their tools, cut there", task)


def _without_overlaps(own: list[Span], ledger: Ledger, task: str) -> tuple[list[Span], list[Span]]:
    groups: list[list[Span]] = []
    until = 0
    for span in own:
        if groups and _start(span) < until - _SLACK:
            groups[-1].append(span)
        else:
            groups.append([span])
        until = max(until, _stop(span))
    single = [group[0] for group in groups if len(group) == 1]
    parallel = [span for group in groups if len(group) > 1 for span in group]
    ledger.count("generations at the same time as others left out", task, len(parallel))
    return single, parallel


def _waits(own: list[Span], work: list[Span], ledger: Ledger, task: str) -> list[float]:
    """Return the seconds after each generation, and before the next, in which any work runs."""
    intervals: list[list[int]] = []
    for span in sorted((s for s in work if s.start is not None), key=_start):
        if span.end is None:
            ledger.count("tool runs without an end (no tool time)", task)
        elif span.end < _start(span):
            raise span.place.error("end", "a time not before the span's start", "an earlier one")
        elif intervals and _start(span) <= intervals[-1][1]:
            intervals[-1][1] = max(intervals[-1][1], span.end)
        else:
            intervals.append([_start(span), span.end])
    waits: list[float] = []
    at = 0
    for index, span in enumerate(own):
        end = _stop(span)
        after = _start(own[index + 1]) if index + 1 < len(own) else None
        while at < len(intervals) and intervals[at][1] <= end:
            at += 1
        total, ahead = 0, at
        while ahead < len(intervals) and (after is None or intervals[ahead][0] < after):
            start, stop = intervals[ahead]
            total += max(0, (stop if after is None else min(stop, after)) - max(start, end))
            ahead += 1
        waits.append(total / 1e6)
    return waits


def _decisions(
    own: list[Span], tools: list[Span], ledger: Ledger, task: str, silence_is_reply: bool
) -> list[Said]:
    """Return what each generation decided: as it is logged, or as the tools it ran show."""
    if any(span.said.calls for span in own):
        return [span.said for span in own]
    runs = sorted((tool for tool in tools if tool.start is not None), key=_start)
    result = []
    at = 0
    for index, span in enumerate(own):
        after = _start(own[index + 1]) if index + 1 < len(own) else None
        mine: list[Span] = []
        while at < len(runs) and (after is None or _start(runs[at]) < after):
            if _start(runs[at]) > _start(span):
                mine.append(runs[at])
            at += 1
        said = span.said
        if mine and all(tool.said.calls for tool in mine):
            said = Said(tuple(call for tool in mine for call in tool.said.calls), said.text)
            ledger.count("actions read from the tools that ran, not from the output", task)
        elif mine:  # a tool ran, so text is no reply; which call it was is not logged
            said = NOTHING
        elif silence_is_reply and not said.is_known:
            said = Said(finish="stop")
            ledger.count("outputs not logged, taken as replies as no tool ran", task)
        result.append(said)
    return result


def _steps(
    own: list[Span], decisions: list[Said], waits: list[float], ledger: Ledger, task: str
) -> list[Step]:
    steps: list[Step] = []
    segment = 0
    for span, said, wait in zip(own, decisions, waits, strict=True):
        action = said.action()
        if action is None:
            ledger.count("outputs not logged or not readable (null actions)", task)
        if span.streamed:
            ledger.count(
                "streamed generations, too short if their spans end at the first token", task
            )
        ledger.saw_model(span.model)
        before: Sequence[Message] = ()
        if ledger.keep_messages and span.messages:
            before = span.messages if not steps else _after_last_assistant(span.messages)
        steps.append(
            Step(
                segment=segment,
                gen_s=(_stop(span) - _start(span)) / 1e6,
                action=action,
                tool_s=0.0 if action == RESPOND else wait,
                started_s=_start(span) / 1e6,
                prompt_tokens=span.prompt_tokens,
                cached_tokens=span.cached_tokens,
                completion_tokens=span.completion_tokens,
                before=before,
                said=said.message() if ledger.keep_messages else None,
            )
        )
        segment += action == RESPOND
    return steps


def _after_last_assistant(messages: list[Message]) -> list[Message]:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "assistant":
            return messages[index + 1 :]
    return messages


def _start(span: Span) -> int:
    assert span.start is not None
    return span.start


def _stop(span: Span) -> int:
    assert span.end is not None
    return span.end
