import numpy as np
import pytest

from leapmodel.errors import UsageError
from leapmodel.paper.fit_report import fit_parameters, fit_residuals
from leapmodel.paper.fits import PLANS, beta_rows, fit, plan_of
from leapmodel.paper.layout import Layout
from leapmodel.paper.step_times import Replayed, StepTimes, fit_step_times, replayed_beta
from leapmodel.paper.tables import load


@pytest.fixture(scope="module")
def fits():
    return [fit(benchmark) for benchmark in PLANS]


def test_trained_rows_are_fitted_to_with_fewer_parameters_and_the_others_held_out():
    counts = load("table10").frame.groupby("benchmark").size()
    for benchmark, plan in PLANS.items():
        fitted, held_out = (beta_rows(benchmark, trained=trained) for trained in (True, False))
        assert len(fitted) + len(held_out) == counts[benchmark]
        assert len(plan.free) < len(fitted) + plan.fit_variation
    assert sum(len(beta_rows(name, trained=False)) for name in PLANS) == 6


def test_the_shipped_step_times_are_the_fits_rounded(fits):
    for found in fits:
        for name in ("slope", "step_sd", "task_sd"):
            shipped = getattr(found.plan.times, name)
            assert getattr(found.times, name) == pytest.approx(shipped, abs=0.005)
            if name not in found.plan.free:
                assert shipped == 0


def test_the_fits_start_does_not_matter():
    times = StepTimes(12.4, slope=0.0, step_sd=0.2)
    plan = plan_of("tau2-bench")
    rows = beta_rows("tau2-bench", trained=True)
    found = fit_step_times(times, plan.lengths.layout(), rows, free=["step_sd"])
    assert found.step_sd == pytest.approx(plan.times.step_sd, abs=0.005)


def test_beta_is_the_papers_within_0_02_on_fitted_and_held_out_rows(fits):
    table = fit_residuals(fits)
    assert len(table.frame) == 17
    assert table.frame["residual"].abs().max() < 0.01
    assert table.frame["residual_trace"].abs().max() < 0.01
    assert "largest error of beta, held out rows: 0.009 of the fit" in table.notes[1]


def test_the_coefficients_of_variation_are_the_stated_ones(fits):
    frame = fit_parameters(fits).frame.set_index("benchmark")
    assert frame.loc["BFCL", "cv"] == pytest.approx(1.07, abs=0.001)
    assert frame.loc["BFCL", "cv_trace"] == pytest.approx(1.07, abs=0.01)
    others = frame.drop("BFCL")[["cv", "cv_trace"]].round(2)
    assert ((others >= 0.3) & (others <= 0.5)).all(axis=None)


@pytest.mark.parametrize("benchmark", PLANS)
def test_no_lucky_draw_was_picked(benchmark):
    plan = plan_of(benchmark)
    layout = plan.lengths.layout()
    rows = beta_rows(benchmark, trained=True) + beta_rows(benchmark, trained=False)
    wanted = np.array([row.wait_inflation for row in rows])
    misses = np.array(
        [
            replayed_beta(plan.times.draw(layout.task_lengths, seed), layout.segment_lengths, rows)
            - wanted
            for seed in range(40)
        ]
    )
    assert np.abs(misses).max() < 0.04
    assert (np.abs(misses).max(axis=1) < 0.02).mean() > 0.7


def test_a_fit_needs_more_targets_than_free_parameters():
    one = Layout(np.array([3]), np.array([0]))
    with pytest.raises(ValueError, match="2 free parameters need more than 1 targets"):
        fit_step_times(StepTimes(1.0, 0.0, 0.1), one, [Replayed(1, 0.7, 1.1)])


def test_a_fit_finds_the_times_that_made_its_rows():
    true, layout = StepTimes(2.0, slope=-0.2, step_sd=0.3), Layout(np.full(60, 5), np.arange(60))
    lengths = layout.task_lengths
    gen_s = true.draw(lengths, seed=3)
    asked = [Replayed(k, 0.8, 0.0) for k in (1, 3, 5)]
    rows = [
        Replayed(row.depth, row.first_hit_rate, float(beta))
        for row, beta in zip(asked, replayed_beta(gen_s, lengths, asked), strict=True)
    ]
    start = StepTimes(2.0, slope=-0.3, step_sd=0.2)
    fitted = fit_step_times(start, layout, rows, seeds=[3])
    # slope and spread both widen the maxima, so beta alone tells them apart only roughly
    assert replayed_beta(fitted.draw(lengths, 3), lengths, rows) == pytest.approx(
        [row.wait_inflation for row in rows], abs=0.002
    )


def test_task_levels_correlate_the_steps_of_a_task():
    lengths = np.full(200, 4)
    gen_s = StepTimes(1.0, 0.0, step_sd=0.2, task_sd=0.4).draw(lengths, seed=1).reshape(200, 4)
    together = np.corrcoef(np.log(gen_s[:, 0]), np.log(gen_s[:, 1]))[0, 1]
    assert together == pytest.approx(0.16 / 0.20, abs=0.06)
    assert gen_s.mean() == pytest.approx(1.0)


def test_an_unknown_benchmark_is_refused():
    with pytest.raises(UsageError, match="no reconstruction of 'WebArena'; there are OpenAGI"):
        plan_of("WebArena")
