"""How a draft that learns online gets better: agreement and speedup, batch by batch (Fig. 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from leapmodel.bootstrap import MIN_TASKS, N_RESAMPLES, percentile_interval, resampled_sums
from leapmodel.errors import DataError
from leapmodel.measured_set import ROUNDS_ENDING
from leapmodel.rounds import Rounds, read_rounds
from leapmodel.trace import Trace
from leapmodel.versions import VERSIONS_ENDING, Version, read_versions

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class OnlineCurve:
    """The stream of one method.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a batch: ``batch`` (from 0), ``tasks``, ``acceptance`` (accepted over compared
        proposals), ``commits`` per round, ``speedup`` (sequential seconds per step over
        speculative seconds per committed step), ``low`` and ``high`` of its 95% interval over
        tasks (NaN under ten tasks), ``speedup_so_far`` (of this batch and all before it),
        ``pairs`` and ``agreement``, ``agreement_se``, ``update_s`` of the version that served it.
    last : Version or None
        The one after the last batch, which served none; None if it is not known.
    method : str
        ``"retrain"`` or ``"continual"``.
    """

    table: pd.DataFrame
    last: Version | None
    method: str

    def __repr__(self) -> str:
        return f"<OnlineCurve: {self.method}, {len(self.table)} batches>"

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table.copy()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, None where something is not known."""
        rows = self.table.astype(object).where(self.table.notna(), None).to_dict("records")
        return {
            "method": self.method,
            "batches": rows,
            "last": None if self.last is None else asdict(self.last),
        }

    def summary(self) -> str:
        """Return it as text."""
        shown = self.table.assign(speedup=[_with_interval(row) for _, row in self.table.iterrows()])
        columns = ["batch", "tasks", "acceptance", "commits", "speedup", "agreement", "update_s"]
        body = shown[columns].to_string(index=False, float_format=lambda v: f"{v:.3g}", na_rep="-")
        agreement = None if self.last is None else self.last.agreement
        after = "" if agreement is None else f"\nafter the last batch: agreement {agreement:.1%}"
        return f"online, {self.method}\n{body}{after}"

    def _repr_html_(self) -> str:
        html: str = self.table.to_html(index=False, float_format=lambda v: f"{v:.3g}", na_rep="-")
        return html

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the speedup of each batch, with its interval, against the tasks met."""
        ends = self.table["tasks"].cumsum()
        middle = ends - self.table["tasks"] / 2
        low = self.table["speedup"] - self.table["low"]
        high = self.table["high"] - self.table["speedup"]
        ax = self._draw(ax, middle, self.table["speedup"], np.vstack([low, high]))
        ax.axhline(1, color="0.5", linewidth=1)
        ax.set(xlabel="tasks met", ylabel="speedup on the batch")
        return ax

    def plot_agreement(self, ax: Axes | None = None) -> Axes:
        """Draw each version's agreement on held-out tasks (± SE) against the tasks it learned from.

        Raises
        ------
        DataError
            If the versions were not scored.
        """
        learned_from = [0, *self.table["tasks"].cumsum()]
        share, error = (
            np.array([*self.table[name], getattr(self.last, name, None)], dtype=float)
            for name in ("agreement", "agreement_se")
        )
        if np.isnan(share).all():
            raise DataError("the versions", column="agreement", expected="scores", found="none")
        ax = self._draw(ax, learned_from, share, error)
        ax.set(xlabel="tasks learned from", ylabel="agreement on held-out tasks")
        return ax

    def _draw(self, ax: Axes | None, x: Any, y: Any, error: Any) -> Axes:
        """Draw a line with its errors, in a colour of its own on axes that hold other methods."""
        from leapmodel.plots import COLOURS, new_axes

        ax = ax or new_axes()
        ax.errorbar(
            x,
            y,
            yerr=np.nan_to_num(error),
            color=COLOURS[len(ax.containers) % len(COLOURS)],
            marker="o",
            capsize=2,
            label=self.method,
        )
        ax.legend(frameon=False)
        return ax


def online_curve(
    rounds: Rounds,
    versions: Sequence[Version],
    *,
    sequential: Trace | None = None,
    seed: int = 0,
) -> OnlineCurve:
    """Compute agreement, acceptance and speedup of each batch of an online run.

    Parameters
    ----------
    rounds : Rounds
        With a column ``batch``.
    versions : sequence of Version
        Version b served batch b.
    sequential : Trace, optional
        The sequential arm on the same tasks, if the rounds hold none.
    seed : int, default 0
        Of the bootstrap.

    Raises
    ------
    DataError
        If the rounds have no batches or a batch has no sequential steps.
    """
    frame = rounds.frame
    if "batch" not in frame.columns or not len(rounds.speculative.frame):
        raise DataError(
            "the rounds", column="batch", expected="the batches of an online run", found="none"
        )
    if sequential is None:
        sequential = rounds.sequential_trace()
    steps = sequential.frame
    alone = (
        steps.assign(seconds=steps["gen_s"] + steps["tool_s"])
        .groupby("task", sort=False)
        .agg(alone_s=("seconds", "sum"), alone_steps=("step", "size"))
    )
    known = {version.number: version for version in versions}
    rows: list[dict[str, Any]] = []
    so_far = np.zeros(4)
    for batch, part in rounds.speculative.frame.groupby("batch", sort=True):
        number = int(batch)  # type: ignore[arg-type]  # a key of the groups
        tasks = part.groupby("task", sort=False).agg(
            wall_s=("wall_s", "sum"), committed=("committed", "sum")
        )
        tasks = tasks.join(alone, how="left")
        if tasks["alone_s"].isna().any():
            missing = str(tasks.index[tasks["alone_s"].isna()][0])
            raise DataError(
                "the sequential trace",
                column="task",
                expected=f"the tasks of batch {number}",
                found=f"none named {missing!r}",
            )
        low, high = _interval(tasks, seed)
        sums = tasks.sum().to_numpy()
        so_far += sums
        # Compared: the accepted ones, and the first that did not match if there was one.
        compared = part["accepted"].sum() + (part["accepted"] < part["proposed"]).sum()
        version = known.get(number)
        rows.append(
            {
                "batch": number,
                "tasks": len(tasks),
                "acceptance": part["accepted"].sum() / compared if compared else np.nan,
                "commits": part["committed"].mean(),
                "speedup": float(_speedup(sums)),
                "low": low,
                "high": high,
                "speedup_so_far": float(_speedup(so_far)),
                **_known_of(version),
            }
        )
    method = str((rounds.metadata.get("online") or {}).get("method", "online"))
    last = known.get(int(rows[-1]["batch"]) + 1)
    return OnlineCurve(pd.DataFrame(rows), last, method)


def read_online_curves(folder: str | Path) -> dict[str, OnlineCurve]:
    """Read a folder that ``make measure-online`` wrote, and compute the curve of each method.

    Parameters
    ----------
    folder : str or Path
        With ``METHOD.versions.json`` and ``METHOD.rounds.parquet``, both arms, of each method.

    Returns
    -------
    dict of str to OnlineCurve
        By method.

    Raises
    ------
    DataError
        If a file is missing or bad.
    """
    place = Path(folder)
    found = sorted(place.glob(f"*{VERSIONS_ENDING}"))
    if not found:
        raise DataError(
            place,
            expected=f"METHOD{VERSIONS_ENDING}, as make measure-online writes",
            found="none",
        )
    curves = {}
    for file in found:
        method = file.name.removesuffix(VERSIONS_ENDING)
        rounds = read_rounds(place / f"{method}{ROUNDS_ENDING}")
        curves[method] = online_curve(rounds, read_versions(file))
    return curves


def _known_of(version: Version | None) -> dict[str, float]:
    names = ("pairs", "agreement", "agreement_se", "update_s")
    values = {name: getattr(version, name, None) for name in names}
    return {name: np.nan if value is None else value for name, value in values.items()}


def _speedup(sums: np.ndarray) -> np.ndarray:
    """Return the speedup of rows of (wall, committed, sequential seconds, sequential steps)."""
    wall_s, committed, alone_s, alone_steps = np.moveaxis(sums, -1, 0)
    return np.asarray((alone_s / alone_steps) / (wall_s / committed))


def _interval(tasks: pd.DataFrame, seed: int) -> tuple[float, float]:
    if len(tasks) < MIN_TASKS:
        return float("nan"), float("nan")
    drawn = resampled_sums(
        tasks.to_numpy(dtype=float), N_RESAMPLES, rng=np.random.default_rng(seed)
    )
    low, high = percentile_interval(_speedup(drawn))
    return float(low), float(high)


def _with_interval(row: pd.Series) -> str:
    if np.isnan(row["low"]):
        return f"{row['speedup']:.2f}"
    return f"{row['speedup']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
