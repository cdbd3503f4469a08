from __future__ import annotations

import json

import numpy as np
import pytest

from leapmodel.choice import choose
from leapmodel.compared_draft import draft_from_run
from leapmodel.draft import stated_draft
from leapmodel.errors import UsageError
from leapmodel.money import Prices
from leapmodel.predictor import predict
from leapmodel.replay import exact_replay
from leapmodel.trace import Trace
from leapmodel.verdict import Unknown, give_verdict
from tests.conftest import disturbed, random_trace, steady_trace


@pytest.fixture
def drafts(workload: Trace, rng: np.random.Generator):
    return [
        draft_from_run(workload, disturbed(workload, rng, share=0.2), name="run"),
        stated_draft(0.6, cost=0.05, name="tiny"),
        stated_draft(0.9, cost=1.5, name="huge"),
    ]


def test_every_draft_and_depth_has_a_row_and_the_best_is_recommended(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 2, 4])
    table = choice.to_frame()
    assert len(table) == 9
    best = table.loc[table["speedup"].idxmax()]
    assert (choice.verdict.draft, choice.verdict.depth) == (best["draft"], best["k"])
    assert choice.verdict.speedup == best["speedup"]


def test_predictions_inside_a_choice_are_the_same_as_alone(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 3], seed=4)
    alone = predict(workload, drafts[0], [1, 3], seed=4)
    assert np.array_equal(choice.drafts[0].prediction.speedup, alone.speedup)
    assert np.array_equal(choice.drafts[0].prediction.resamples.speedup, alone.resamples.speedup)


def test_interval_of_the_best_is_wider_than_its_own(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 2, 3, 4])
    row = (
        choice.to_frame()
        .set_index(["draft", "k"])
        .loc[(choice.verdict.draft, choice.verdict.depth)]
    )
    low, high = choice.verdict.ci95
    assert high - low > row["speedup_high"] - row["speedup_low"]


def test_eq_6_says_exactly_whether_the_next_depth_is_faster(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 2, 3, 4, 5])
    for one in choice.drafts:
        speed = np.concatenate(([1.0], one.prediction.speedup))
        assert (one.rule.pays == (speed[1:] > speed[:-1])).all()


def test_the_depth_rule_counts_from_one_whatever_was_asked(workload: Trace, drafts):
    sparse = choose(workload, drafts[:1], [2, 5]).drafts[0]
    full = choose(workload, drafts[:1], [1, 2, 3, 4, 5]).drafts[0]
    assert sparse.rule.gain == pytest.approx(full.rule.gain)
    assert sparse.rule.threshold == pytest.approx(full.rule.threshold)


def test_break_even_is_where_the_speedup_is_one(workload: Trace, drafts):
    choice = choose(workload, drafts[1:2], [1, 2, 3])
    for depth, acceptance in zip([1, 2, 3], choice.drafts[0].break_even, strict=True):
        at = predict(workload, stated_draft(acceptance, cost=0.05), [depth]).speedup[0]
        assert at == pytest.approx(1.0, abs=1e-3)


def test_a_draft_slower_than_the_target_has_no_break_even_and_is_named(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 2])
    assert np.isnan(choice.drafts[2].break_even).all()
    assert any("Too slow to help however often right: huge" in line for line in choice.advice)


def test_ceiling_is_a_perfect_free_draft_and_bounds_everything(workload: Trace, drafts):
    choice = choose(workload, drafts, [1, 2, 3])
    perfect = exact_replay(workload.segments, 1.0, [1, 2, 3])
    tools = workload.tool_s.sum() / workload.gen_s.sum()
    expected = (
        perfect.commits * (1 + tools) / (perfect.wait_inflation + perfect.target_tools_per_round)
    )
    assert choice.ceiling == pytest.approx(expected)
    for one in choice.drafts:
        assert (one.prediction.speedup <= choice.ceiling).all()
        assert (one.prediction.speedup <= one.perfect_at_cost + 1e-12).all()


def test_tasks_needed_follows_from_the_standard_error(workload: Trace, drafts):
    choice = choose(workload, drafts[:1], [2], half_width=0.1)
    se = choice.drafts[0].prediction.speedup_se[0]
    n_tasks = drafts[0].evidence_tasks  # not all tasks have a step whose hit would save a round
    assert 20 < n_tasks <= 30
    assert choice.drafts[0].tasks_needed[0] == np.ceil(n_tasks * (1.959964 * se / 0.1) ** 2)


def test_extra_tokens_lie_between_nothing_and_never_cancelling(workload: Trace, drafts):
    table = choose(workload, drafts, [1, 2, 3]).to_frame()
    assert (table["extra_tokens"] >= 0).all()
    assert (table["extra_tokens"] <= table["extra_tokens_bound"] + 1e-12).all()
    assert np.allclose(table["extra_tokens_bound"], table["extra_requests"])


def test_money_by_hand_for_a_perfect_draft(rng: np.random.Generator):
    """With no miss nothing is thrown away: both arms cost the same."""
    trace = random_trace(rng, 12)
    prices = Prices(prompt=1.0, cached=0.1, completion=4.0)
    choice = choose(trace, [stated_draft(1.0, cost=0.1)], [1, 3], prices=prices)
    frame = trace.frame
    expected = (
        ((frame["prompt_tokens"] - 400) * 1.0 + 400 * 0.1 + frame["completion_tokens"] * 4.0).sum()
        / 1e6
        / 12
    )
    money = choice.drafts[0].money
    assert money.sequential_per_run == pytest.approx(expected)
    assert money.speculative_per_run == pytest.approx([expected, expected])


def test_a_worse_draft_costs_more_money(workload: Trace):
    prices = Prices(prompt=1.0, cached=0.1, completion=4.0)
    drafts = [stated_draft(a, cost=0.1, name=f"{a}") for a in (0.2, 0.5, 0.8)]
    choice = choose(workload, drafts, [2], prices=prices)
    costs = [one.money.speculative_per_run[0] for one in choice.drafts]
    assert costs == sorted(costs, reverse=True)


def test_money_without_tokens_is_refused(workload: Trace, drafts):
    bare = Trace.from_frame(workload.frame.drop(columns=["prompt_tokens"]))
    with pytest.raises(UsageError, match="money needs the column prompt_tokens"):
        choose(bare, drafts[1:2], [1], prices=Prices(1, 1, 1))


def test_missing_token_counts_are_filled_at_the_traces_rate(workload: Trace, drafts):
    frame = workload.frame.copy()
    frame.loc[3, "completion_tokens"] = np.nan
    holed = Trace.from_frame(frame)
    choice = choose(holed, drafts[1:2], [1], prices=Prices(1, 1, 1))
    assert np.isfinite(choice.drafts[0].money.sequential_per_run)


def test_names_must_differ_and_there_must_be_one(workload: Trace, drafts):
    with pytest.raises(UsageError, match="expected at least one draft"):
        choose(workload, [], [1])
    with pytest.raises(UsageError, match="each draft needs a name of its own, found tiny, tiny"):
        choose(workload, [drafts[1], drafts[1]], [1])


def test_json_is_whole(workload: Trace, drafts):
    value = choose(workload, drafts, [1, 2], prices=Prices(1, 1, 1)).to_dict()
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    assert [d["draft"] for d in value["drafts"]] == ["run", "tiny", "huge"]
    assert value["drafts"][2]["break_even"] == [None, None]


@pytest.mark.parametrize(
    ("ci95", "decision"),
    [
        ((1.11, 1.5), "deploy"),
        ((1.10, 1.5), "pilot first"),
        ((1.01, 1.5), "pilot first"),
        ((1.0, 1.5), "don't"),
        ((0.8, 0.9), "don't"),
        (None, "cannot tell"),
    ],
)
def test_the_verdict_rule(ci95, decision):
    verdict = give_verdict(
        draft="d", depth=2, speedup=1.2, ci95=ci95, n_tasks=60, n_configurations=6
    )
    assert verdict.decision == decision


def test_a_speedup_that_still_rises_at_the_largest_depth_is_said():
    trace = steady_trace(tasks=12, steps=12)
    draft = stated_draft(0.95, cost=0.01)
    assert "k = 3 is the largest depth tried" in " ".join(choose(trace, draft, [1, 2, 3]).advice)
    assert "k = 3 is the largest depth tried" in " ".join(predict(trace, draft, [1, 3]).advice)
    for depths in ([3], [1, 2, 3, 11, 12]):
        assert not any("largest" in line for line in choose(trace, draft, depths).advice)
    hopeless = stated_draft(0.1, cost=1.0)
    assert not any("largest" in line for line in choose(trace, hopeless, [1, 2]).advice)


def test_the_verdict_repeats_what_it_is_conditional_on():
    verdict = give_verdict(
        draft="d",
        depth=2,
        speedup=1.4,
        ci95=(1.2, 1.6),
        n_tasks=60,
        n_configurations=1,
        conditional_on=("the acceptance, as stated",),
    )
    assert "It depends on the acceptance, as stated." in verdict.sentence
    assert verdict.title == "deploy, if what was stated holds"
    assert verdict.to_dict()["conditional"] is True


@pytest.mark.parametrize(
    ("ci95", "unknown", "decision"),
    [
        ((1.2, 1.6), (0.3, 0.9, 2.0), "pilot first"),
        ((1.2, 1.6), (0.3, 1.1, 2.0), "deploy"),
        ((1.2, 1.6), (0.6, 0.9, 2.0), "deploy"),
        ((0.6, 0.8), (0.3, 0.5, 1.3), "cannot tell"),
        ((0.6, 0.8), (0.3, 0.5, 1.05), "don't"),
        ((0.6, 0.8), (0.6, 0.5, 1.3), "don't"),
    ],
)
def test_mostly_unknown_outcomes_soften_the_verdict(ci95, unknown, decision):
    verdict = give_verdict(
        draft="d",
        depth=2,
        speedup=1.2,
        ci95=ci95,
        n_tasks=60,
        n_configurations=6,
        unknown=Unknown(*unknown),
    )
    assert verdict.decision == decision
    assert verdict.sentence.lower().startswith(decision)


def test_segments_of_one_step_leave_nothing_to_gain(workload: Trace, drafts):
    frame = workload.frame.assign(segment=workload.frame["step"])
    choice = choose(Trace.from_frame(frame), drafts[1:], [1, 2])
    assert choice.advice == (
        "There is nothing to gain from any draft: no segment has a second step.",
    )


SLOWDOWN = (1.0, 1.2, 1.3, 1.4)


def test_a_slowdown_is_in_everything_that_is_said_of_a_draft(workload: Trace, drafts):
    free = choose(workload, drafts[1:2], [2, 4], n_resamples=200).drafts[0]
    slower = choose(workload, drafts[1:2], [2, 4], slowdown=SLOWDOWN, n_resamples=200).drafts[0]
    alone = predict(workload, drafts[1], [2, 4], slowdown=SLOWDOWN, n_resamples=200)
    assert np.array_equal(slower.prediction.speedup, alone.speedup)
    assert (slower.perfect_at_cost < free.perfect_at_cost).all()
    assert (slower.break_even > free.break_even).all()
    for depth, acceptance in zip([2, 4], slower.break_even, strict=True):
        draft = stated_draft(acceptance, cost=0.05)
        at = predict(workload, draft, [depth], slowdown=SLOWDOWN, n_resamples=200).speedup[0]
        assert at == pytest.approx(1.0, abs=1e-3)
    every = choose(workload, drafts[1:2], [1, 2, 3, 4], slowdown=SLOWDOWN, n_resamples=200)
    assert slower.rule.threshold == pytest.approx(every.drafts[0].rule.threshold)
