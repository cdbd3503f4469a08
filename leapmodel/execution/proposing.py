"""Propose: the draft's actions, one after another, each run in a copy of the environment."""

from __future__ import annotations

import time
from dataclasses import dataclass

from leapmodel.benchmarks import Benchmark, Environment, Prompt
from leapmodel.execution.records.record import Proposal
from leapmodel.execution.talking.endpoint import Endpoint


@dataclass(frozen=True)
class Proposing:
    """What was proposed, and the contexts that it leads to.

    Attributes
    ----------
    calls : tuple of Proposal
        Every draft call, also one that proposed nothing.
    actions : tuple of str
        The proposals.
    branches : tuple of Environment
        The state after each proposal; the last one is where proposing went on from.
    contexts : tuple of Prompt
        What the target is asked: the committed state, then after each proposal that something may
        follow.
    """

    calls: tuple[Proposal, ...]
    actions: tuple[str, ...]
    branches: tuple[Environment, ...]
    contexts: tuple[Prompt, ...]


async def propose(
    benchmark: Benchmark,
    environment: Environment,
    draft: Endpoint | None,
    depth: int,
    began_s: float,
) -> Proposing:
    """Ask the draft for up to ``depth`` actions.

    Proposing stops at an output that does not parse, at an action that ends the segment or the
    task (nothing can be known past it), and, where the benchmark's terminal actions carry no
    proposal, before one. The call was paid in every case.

    Parameters
    ----------
    benchmark : Benchmark
    environment : Environment
        The committed state; it is left as it is.
    draft : Endpoint or None
        Not needed at depth 0.
    depth : int
        Proposals at most.
    began_s : float
        The round's start, by ``time.perf_counter()``.

    Raises
    ------
    EngineError
        If the draft's server fails.
    """
    calls: list[Proposal] = []
    actions: list[str] = []
    branches: list[Environment] = []
    contexts = [environment.prompt("target")]
    branch = environment
    while len(actions) < depth and draft is not None:
        answer = await draft.generate(branch.prompt("draft"))
        action = benchmark.parse("draft", answer.text)
        tool_s = 0.0
        if action is None:
            status = "invalid"
        elif benchmark.terminal == "probe" and benchmark.is_terminal(action):
            status = "withheld"
        else:
            status = "proposed"
            tool_began_s = time.perf_counter()
            branch = branch.clone()
            branch.step(action)
            tool_s = time.perf_counter() - tool_began_s
            actions.append(action)
            branches.append(branch)
        calls.append(
            Proposal(
                answer.context,
                answer.text,
                action,
                answer.start_s - began_s,
                answer.end_s - began_s,
                tool_s,
                answer.prompt_tokens,
                answer.completion_tokens,
                status,  # type: ignore[arg-type]
            )
        )
        if status != "proposed" or branch.over or branch.segment != environment.segment:
            break
        contexts.append(branch.prompt("target"))
    return Proposing(tuple(calls), tuple(actions), tuple(branches), tuple(contexts))
