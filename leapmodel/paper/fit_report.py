"""What was fitted to make the reconstructed traces, how well it fits, and what it was tested on."""

from __future__ import annotations

import pandas as pd

from leapmodel.paper.comparison import Comparison
from leapmodel.paper.fits import PLANS, TRAINED, Fit, fit
from leapmodel.paper.reconstructed_traces import reconstruct_trace
from leapmodel.paper.replayed import FITTED, HELD_OUT, table12_replayed
from leapmodel.paper.step_times import replayed_beta
from leapmodel.paper.tables import load


def fit_parameters(fits: list[Fit] | None = None) -> Comparison:
    """Make the fits again and put their parameters beside those of the shipped traces.

    Parameters
    ----------
    fits : list of Fit, optional
        Fits that were made already.

    Returns
    -------
    Comparison
        One row a benchmark: the ``free`` parameters and how many numbers they were fitted to
        (``targets``); every parameter as found again and as ``shipped``; the correlation of two
        log times of one task; the coefficient of variation stated, of the fit, and of the shipped
        trace.

    Examples
    --------
    >>> fit_parameters().frame[["benchmark", "free", "targets"]]
        benchmark                 free        targets
    0     OpenAGI    slope and step_sd         3 beta
    1   TaskBench              step_sd         3 beta
    2  tau2-bench              step_sd         2 beta
    3        BFCL  step_sd and task_sd  3 beta and CV
    """
    rows = []
    for found in fits or [fit(benchmark) for benchmark in PLANS]:
        plan = found.plan
        gen_s = reconstruct_trace(plan.benchmark).gen_s
        low, high = plan.stated_variation
        rows.append(
            {
                "benchmark": plan.benchmark,
                "free": " and ".join(plan.free),
                "targets": f"{len(found.fitted)} beta" + " and CV" * plan.fit_variation,
                "t_gen_s": plan.times.mean_s,
                "slope": found.times.slope,
                "slope_shipped": plan.times.slope,
                "step_sd": found.times.step_sd,
                "step_sd_shipped": plan.times.step_sd,
                "task_sd": found.times.task_sd,
                "task_sd_shipped": plan.times.task_sd,
                "correlation": found.correlation,
                "cv_stated": f"{low}" if low == high else f"{low} to {high}",
                "cv": found.variation,
                "cv_trace": float(gen_s.std() / gen_s.mean()),
            }
        )
    frame = pd.DataFrame(rows)
    numbers = frame.select_dtypes("number").columns.drop("t_gen_s")
    return Comparison(
        "Step times fitted to Table 10: free parameters",
        frame,
        {"t_gen_s": "published", **{str(name): "reconstructed" for name in numbers}},
        (
            "Log time = slope x position in the task + a task's level (sd task_sd) + a step's "
            "level (sd step_sd); parameters that are not free stay at nought.",
            *(f"{plan.benchmark}: {plan.why}." for plan in PLANS.values()),
        ),
    )


def fit_residuals(fits: list[Fit] | None = None) -> Comparison:
    """Put every row of Table 10 beside what the fits give, fitted rows and held-out ones.

    Parameters
    ----------
    fits : list of Fit, optional
        Fits that were made already.

    Returns
    -------
    Comparison
        One row a control run: the ``q1`` it is replayed at, beta as predicted by the paper, beta
        averaged over draws of the fit, its ``residual``; beta of the shipped trace (one draw) and
        its ``residual_trace``.

    Examples
    --------
    >>> frame = fit_residuals().frame
    >>> frame["fit"].value_counts().to_dict()
    {'fitted': 11, 'held out': 6}
    """
    found = {each.plan.benchmark: each for each in fits or [fit(name) for name in PLANS]}
    frame = load("table10").frame[["benchmark", "draft", "k", "q1", "beta_predicted"]].copy()
    frame.insert(3, "fit", [FITTED if name == TRAINED else HELD_OUT for name in frame["draft"]])
    for benchmark, each in found.items():
        segments = reconstruct_trace(benchmark).segments
        for role, rows, beta in (
            (FITTED, each.fitted, each.beta_fitted),
            (HELD_OUT, each.held_out, each.beta_held_out),
        ):
            here = (frame["benchmark"] == benchmark) & (frame["fit"] == role)
            frame.loc[here, "beta_fit"] = beta
            frame.loc[here, "beta_trace"] = replayed_beta(segments.gen_s, segments.lengths, rows)
    frame["residual"] = frame["beta_fit"] - frame["beta_predicted"]
    frame["residual_trace"] = frame["beta_trace"] - frame["beta_predicted"]
    return Comparison(
        "Step times fitted to Table 10: residuals and held-out errors of beta",
        frame,
        {
            "q1": "published",
            "beta_predicted": "published",
            "beta_fit": "reconstructed",
            "beta_trace": "reconstructed",
            "residual": "reconstructed",
            "residual_trace": "reconstructed",
        },
        tuple(_largest(frame, role) for role in (FITTED, HELD_OUT)),
    )


def _largest(frame: pd.DataFrame, role: str) -> str:
    errors = frame.loc[frame["fit"] == role, ["residual", "residual_trace"]].abs()
    return (
        f"largest error of beta, {role} rows: {errors['residual'].max():.3f} of the fit, "
        f"{errors['residual_trace'].max():.3f} of the shipped trace"
    )


def fit_report() -> dict[str, Comparison]:
    """Make every fit again: its parameters, its errors on Table 10, its errors on Table 12.

    Examples
    --------
    >>> list(fit_report())
    ['parameters', 'beta', 'table12']
    """
    fits = [fit(benchmark) for benchmark in PLANS]
    return {
        "parameters": fit_parameters(fits),
        "beta": fit_residuals(fits),
        "table12": table12_replayed(),
    }
