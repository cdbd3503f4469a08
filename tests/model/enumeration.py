"""A second implementation of the replay: enumerate every way a trace's rounds can go.

Plain Python, straight from the definitions (DESIGN.md, the paper's Sec. 3.1-3.2, App. C.1 and
App. H), slow, and sharing nothing with the package. A law says what a draft's call does at a step
when it is the j-th of its round and the path so far is the target's own:

    hit        the target's action
    miss       another action; the draft's path goes on, unseen, to min(k, r) calls
    invalid    no usable proposal; the call is paid, proposing stops
    wrong_end  a reply or the end of the task where the target goes on; proposing stops
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

OUTCOMES = ("hit", "miss", "invalid", "wrong_end")
Law = Callable[[int, int], dict[str, float]]


def law_by_position(acceptances: Sequence[float]) -> Law:
    """The App. H law: the j-th proposal matches with probability a_j, whatever the step."""

    def law(step: int, j: int) -> dict[str, float]:
        return {"hit": acceptances[j - 1], "miss": 1 - acceptances[j - 1]}

    return law


def law_by_step(
    hit: Sequence[float],
    invalid: Sequence[float] | None = None,
    wrong_end: Sequence[float] | None = None,
) -> Law:
    """The teacher-forced law: what the draft does depends on the step alone."""

    def law(step: int, j: int) -> dict[str, float]:
        given = {
            "hit": hit[step],
            "invalid": invalid[step] if invalid is not None else 0.0,
            "wrong_end": wrong_end[step] if wrong_end is not None else 0.0,
        }
        return {**given, "miss": 1 - sum(given.values())}

    return law


@dataclass
class Trace:
    """Steps of segments, as lists: ``segments[s]`` holds the indices of segment s's steps."""

    gen_s: list[float]
    tool_s: list[float]
    boundary: list[bool]
    segments: list[list[int]]
    groups: list[int]
    n_groups: int

    @property
    def mean_gen_s(self) -> float:
        return sum(self.gen_s) / len(self.gen_s)


@dataclass
class Round:
    """What happened in one round."""

    accepted: int
    committed: list[int]
    wait_s: float
    calls: int
    proposals: int
    rejected_tools: int
    adopted: list[int]  # steps whose tool ran while proposing and was kept
    requested: list[int]  # steps at whose place in the trace a verification was asked for
    cancelled: int
    lost_bonus: bool


@dataclass
class Walk:
    """One way a segment can go, and its probability."""

    probability: float
    rounds: list[Round] = field(default_factory=list)


def call_sequences(steps: Sequence[int], depth: int, law: Law) -> Iterator[tuple[float, list[str]]]:
    """Yield (probability, outcomes of the calls) of a round; past a miss calls are 'unseen'."""
    n_calls = min(depth, len(steps))

    def extend(so_far: list[str], probability: float) -> Iterator[tuple[float, list[str]]]:
        if probability == 0:
            return
        if len(so_far) == n_calls or (so_far and so_far[-1] in ("invalid", "wrong_end")):
            yield probability, so_far
        elif so_far and so_far[-1] in ("miss", "unseen"):
            yield from extend([*so_far, "unseen"], probability)
        else:
            chances = law(steps[len(so_far)], len(so_far) + 1)
            for outcome in OUTCOMES:
                yield from extend([*so_far, outcome], probability * chances.get(outcome, 0.0))

    yield from extend([], 1.0)


def play_round(trace: Trace, steps: Sequence[int], calls: list[str], terminal: str) -> Round:
    """Return what a round does that starts with `steps` left in the segment."""
    hits = 0
    while hits < len(calls) and calls[hits] == "hit":
        hits += 1
    left = len(steps)
    committed = list(steps[: min(hits + 1, left)])
    # under `probe` the segment's last action is no proposal, and neither is any other reply
    can_be_proposed = left if terminal == "accepted" else left - 1
    made = [
        j
        for j, outcome in enumerate(calls, start=1)
        if j <= can_be_proposed
        and outcome != "invalid"
        and not (outcome == "wrong_end" and terminal == "probe")
    ]
    accepted = min(hits, can_be_proposed)
    # the first context, and the one after each proposal that leaves the segment open
    standing = [j for j, outcome in enumerate(calls, 1) if outcome in ("hit", "miss", "unseen")]
    requested = [steps[0], *(steps[j] for j in standing if j < left)]
    return Round(
        accepted=accepted,
        committed=committed,
        wait_s=max(trace.gen_s[s] for s in committed),
        calls=len(calls),
        proposals=len(made),
        rejected_tools=sum(calls[j - 1] in ("miss", "unseen") for j in made),
        adopted=[s for s in steps[:accepted] if not trace.boundary[s] and trace.tool_s[s] > 0],
        requested=requested,
        cancelled=len(requested) - len(committed),
        lost_bonus=accepted == left,
    )


def walks(
    trace: Trace, steps: Sequence[int], depth: int, law: Law, terminal: str
) -> Iterator[Walk]:
    """Yield every way the segment can go."""
    if not steps:
        yield Walk(1.0)
        return
    for probability, calls in call_sequences(steps, depth, law):
        this = play_round(trace, steps, calls, terminal)
        for rest in walks(trace, steps[len(this.committed) :], depth, law, terminal):
            yield Walk(probability * rest.probability, [this, *rest.rounds])


def enumerate_replay(
    trace: Trace,
    law: Law,
    depth: int,
    terminal: str,
    request_cost: Sequence[float] | None = None,
) -> dict[str, object]:
    """Return the expected sums of a replay at one depth, under the names of ReplaySums.

    Lists are by group or by position; in addition `cancelled` counts the verifications cancelled.
    """
    cost = request_cost or [0.0] * len(trace.gen_s)
    by_group = {
        name: [0.0] * trace.n_groups
        for name in ("rounds", "wait_s", "calls", "proposal_tool_s", "target_tool_s")
    }
    by_position = {
        name: [0.0] * depth for name in ("hits", "proposals", "reached", "further_requests")
    }
    totals = dict.fromkeys(
        (
            "bonus_lost",
            "requests",
            "target_tool_steps",
            "cancelled",
            "cancelled_s",
            "request_cost",
            "steps",
        ),
        0.0,
    )
    proposable = [
        trace.tool_s[s]
        for segment in trace.segments
        for s in segment
        if not trace.boundary[s] and not (terminal == "probe" and s == segment[-1])
    ]
    rejected_tool_s = sum(proposable) / len(proposable) if proposable else 0.0
    for segment, group in zip(trace.segments, trace.groups, strict=True):
        for walk in walks(trace, segment, depth, law, terminal):
            for r in walk.rounds:
                p = walk.probability
                by_group["rounds"][group] += p
                by_group["wait_s"][group] += p * r.wait_s
                by_group["calls"][group] += p * r.calls
                adopted_s = sum(trace.tool_s[s] for s in r.adopted)
                run_s = sum(trace.tool_s[s] for s in r.committed)
                by_group["proposal_tool_s"][group] += p * (
                    adopted_s + r.rejected_tools * rejected_tool_s
                )
                by_group["target_tool_s"][group] += p * (run_s - adopted_s)
                for j in range(1, r.proposals + 1):
                    by_position["proposals"][j - 1] += p
                    by_position["hits"][j - 1] += p * (r.accepted >= j)
                    by_position["reached"][j - 1] += p * (r.accepted >= j - 1)
                for j in range(1, len(r.requested)):
                    by_position["further_requests"][j - 1] += p
                totals["steps"] += p * len(r.committed)
                totals["bonus_lost"] += p * r.lost_bonus
                totals["requests"] += p * len(r.requested)
                totals["request_cost"] += p * sum(cost[s] for s in r.requested)
                totals["target_tool_steps"] += p * (
                    sum(trace.tool_s[s] > 0 for s in r.committed) - len(r.adopted)
                )
                totals["cancelled"] += p * r.cancelled
                totals["cancelled_s"] += p * r.cancelled * min(r.wait_s, trace.mean_gen_s)
    return {**by_group, **by_position, **totals}
