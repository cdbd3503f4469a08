"""The equations on the paper's own numbers."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leapmodel import equations

Row = dict[str, str]


def table(name: str) -> list[Row]:
    """A published table, read without the package's own loader."""
    text = (files("leapmodel.paper") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def row(name: str, **keys: str) -> Row:
    (found,) = [r for r in table(name) if all(r[key] == value for key, value in keys.items())]
    return found


def numbers(found: Row, names: str) -> list[float]:
    return [float(found[name]) for name in names.split() if found[name]]


def test_equation_4_on_table_10() -> None:
    misses = []
    for r in table("table10_predicted_vs_measured"):
        c, beta, d, published = numbers(
            r, "commits_per_round beta_predicted draft_term_D speedup_predicted"
        )
        # in whole hundredths, as both are printed
        misses.append(round(100 * float(equations.speedup(c, beta, d))) - round(100 * published))
    assert len(misses) == 17
    assert max(abs(miss) for miss in misses) <= 1


def test_equation_3_on_table_16() -> None:
    for r in table("table16_hit_rates"):
        c, e = numbers(r, "c e")
        assert_allclose(equations.commits(numbers(r, "q1 q2 q3 q4 q5"), e), c, atol=0.021)


@pytest.mark.parametrize(
    ("benchmark", "t_gen_s", "delay_s"),
    [
        ("tau2-bench", 12.4, "2"),
        ("tau2-bench", 12.4, "5"),
        ("BFCL", 10.8, "2"),
        ("BFCL", 10.8, "5"),
    ],
)
def test_equation_1_with_tool_delays(benchmark: str, t_gen_s: float, delay_s: str) -> None:
    """Table 4; its own c and beta are not printed, those of the undelayed run stand for them."""
    delayed = row("table04_tool_delay", benchmark=benchmark, delay_s=delay_s)
    plain = row("table10_predicted_vs_measured", benchmark=benchmark, draft="trained 0.6B", k="2")
    c, beta = numbers(plain, "commits_per_round beta_predicted")
    d, f, g, published = numbers(delayed, "draft_term_D f g predicted")
    s = equations.speedup(
        c,
        beta,
        d,
        tool_cost=float(delay_s) / t_gen_s,
        tool_step_share=f,
        target_tool_steps=g,
    )
    assert_allclose(s, published, atol=0.03)


def components(benchmark: str, draft: str) -> tuple[float, float, float]:
    """Measured (c, beta, D) of a Qwen3 draft: Tables 9, 12 and 14."""
    key = {"benchmark": benchmark, "draft": draft}
    (c,) = numbers(row("table09_speedup", target="Qwen3-32B", **key), "commits_per_round")
    beta = numbers(row("table12_size_study_predictions", target="Qwen3", **key), "beta_measured")[0]
    (d,) = numbers(row("table14_draft_size", **key), "draft_term_D")
    return c, beta, d


@pytest.mark.parametrize(
    ("benchmark", "commits_ratio", "cost_ratio"),
    [("OpenAGI", 1.10, 1.12), ("TaskBench", 1.09, 1.12)],
)
def test_equation_2_on_the_4b_draft(
    benchmark: str, commits_ratio: float, cost_ratio: float
) -> None:
    """Sec. 4.3: commits rise by 1.09-1.10, but round cost by 1.12."""
    small, large = components(benchmark, "0.6B"), components(benchmark, "4B")
    assert round(large[0] / small[0], 2) == commits_ratio
    assert_allclose(sum(large[1:]) / sum(small[1:]), cost_ratio, atol=0.006)
    pairs = list(zip(small, large, strict=True))
    ratio = equations.speedup_ratio(*pairs)
    assert ratio < 1
    speedups = [float(equations.speedup(*part)) for part in (small, large)]
    assert_allclose(ratio, speedups[1] / speedups[0], rtol=1e-12)


def test_equation_2_is_even_on_tau2_bench() -> None:
    """Sec. 4.3: both ratios are within 0.02 of one."""
    small, large = components("tau2-bench", "0.6B"), components("tau2-bench", "4B")
    assert abs(large[0] / small[0] - 1) <= 0.02
    assert abs(sum(large[1:]) / sum(small[1:]) - 1) <= 0.02


def test_equation_7_on_openagi() -> None:
    """App. C: d = 0.06, threshold about 0.09, selects k = 4."""
    rates = row("table16_hit_rates", benchmark="OpenAGI", draft="trained 0.6B", k="5")
    q = numbers(rates, "q1 q2 q3 q4 q5")
    rule = equations.depth_rule_simplified(q, 1.5, 0.06)
    assert_allclose(rule.threshold, 0.09, atol=0.005)
    assert rule.pays.tolist() == [True, True, True, True, False]
    assert rule.last_before_stop == 4
    # with pi_4 = 0.41, pi_5 = 0.15 and 0.015 of wait a position, 0.06 and 0.04: gains to k = 5
    fine = equations.depth_rule_simplified(
        q[3:], 1.5, 0.06, proposal_rates=[0.41, 0.15], wait_growth=0.015
    )
    assert np.round(fine.threshold, 2).tolist() == [0.06, 0.04]
    assert fine.pays.all()


def test_equation_7_on_taskbench() -> None:
    """App. C: d = 0.07, threshold about 0.10, selects k = 4; q_4 and q_5 stand in the text."""
    run = row("table10_predicted_vs_measured", benchmark="TaskBench", draft="trained 0.6B", k="5")
    q = [*numbers(run, "q1 q2 q3"), 0.16, 0.06]
    rule = equations.depth_rule_simplified(q, 1.41, 0.07)
    assert_allclose(rule.threshold, 0.10, atol=0.005)
    assert rule.last_before_stop == 4


@pytest.mark.parametrize(
    ("benchmark", "draft_cost", "selected"), [("BFCL", 0.02, 2), ("tau2-bench", 0.014, 3)]
)
def test_equation_7_on_the_tool_benchmarks(
    benchmark: str, draft_cost: float, selected: int
) -> None:
    """App. C: threshold 0.02; BFCL stops at k = 2, tau2-bench goes on to k = 3.

    d is BFCL's D at k = 1 (Table 10) and tau2-bench's probe (text of Table 11).
    """
    runs = [
        r
        for r in table("table10_predicted_vs_measured")
        if r["benchmark"] == benchmark and r["draft"] == "trained 0.6B"
    ]
    measured = [numbers(r, "speedup_measured")[0] for r in runs]
    q = numbers(runs[-1], "q1 q2 q3")
    rule = equations.depth_rule_simplified(q, measured[0], draft_cost)
    assert np.round(rule.threshold, 2).tolist() == [0.02] * len(q)
    assert rule.last_before_stop == selected


def test_the_simplified_rule_takes_a_speedup_per_depth() -> None:
    rule = equations.depth_rule_simplified([0.5, 0.1], [1.0, 1.4], 0.1)
    assert_allclose(rule.threshold, [0.1, 0.14])
    assert rule.pays.tolist() == [True, False]


def test_the_depth_rule_starts_from_the_sequential_loop() -> None:
    rule = equations.depth_rule([1.1], [1.2])
    assert_allclose(rule.gain, [0.1])
    assert_allclose(rule.threshold, [0.2])
    assert rule.last_before_stop == 0


def test_equal_drafts_have_a_ratio_of_one() -> None:
    assert equations.speedup_ratio((2.0, 2.0), (1.2, 1.2), (0.1, 0.1)) == 1.0


def test_negligible_tool_time_leaves_c_over_beta_plus_d() -> None:
    c, beta, d = np.array([1.5, 2.0]), np.array([1.1, 1.2]), np.array([0.1, 0.2])
    assert_allclose(equations.speedup(c, beta, d), c / (beta + d), rtol=1e-15)
    # tools on every step, all proposals kept: D = k (d + tau), Sec. C.1
    s = equations.speedup(3.0, 1.2, 2 * (0.05 + 0.4), tool_cost=0.4)
    assert_allclose(s, 3.0 * 1.4 / (1.2 + 2 * 0.45 + 0.4), rtol=1e-15)


def test_commits_iid_is_the_geometric_sum() -> None:
    p = np.array([0.0, 0.3, 0.9, 1.0])
    for depth in (1, 2, 5):
        expected = sum(p**j for j in range(depth + 1))
        assert_allclose(equations.commits_iid(p, depth), expected, rtol=1e-14)


def test_a_perfect_draft_has_no_ceiling() -> None:
    assert equations.long_segment_ceiling(1.0, 1.2) == np.inf


def test_positions_past_the_depth_are_absent() -> None:
    padded = [[0.5, np.nan], [0.5, 0.25]]
    assert equations.commits(padded, [0.1, 0.2]).tolist() == [1.4, 1.55]
    assert_allclose(equations.draft_term(padded, 0.1, [0.0, 0.3]), [0.05, 0.375])
