"""The paper's tables as it prints them, and those of its main text put together from them.

Tables 1, 5 and 7 repeat numbers of Tables 9, 20 and 2; here they get their own shape back.
"""

from __future__ import annotations

import pandas as pd

from leapmodel.paper.comparison import Comparison, Origin
from leapmodel.paper.tables import load

SIZES = ("0.6B", "1.7B", "4B")


def as_published(name: str) -> Comparison:
    """Return a published table as it is, every number labelled as published.

    Examples
    --------
    >>> table = as_published("table3")
    >>> table.title
    'Table 3: Offline agreement of 0.6B drafts trained on other labels ...'
    >>> set(table.origins.values())
    {'published'}
    """
    table = load(name)
    return Comparison(
        f"{table.number}: {table.caption}",
        table.frame,
        _all(table.frame, "published"),
        table.notes,
    )


def table1() -> Comparison:
    """Return the speedups of Table 1, with standard errors, and those that Table 9 implies.

    Returns
    -------
    Comparison
        One row a benchmark and target: ``speedup`` and ``se`` of each draft size as published,
        ``se_from_interval`` recomputed as a 3.92nd of Table 9's 95% interval, and which size is
        ``fastest``.

    Examples
    --------
    >>> table1().frame["fastest"].tolist()[3:5]
    ['4B', '0.6B, 1.7B']
    """
    published = load("table09").frame
    rows, near = [], 0
    for (target, benchmark), group in published.groupby(["target", "benchmark"], sort=False):
        by_size = group.set_index("draft")
        best = by_size["speedup"].max()
        row: dict[str, object] = {"benchmark": benchmark, "target": target}
        for size in SIZES:
            drawn = by_size.loc[size]
            row[f"speedup {size}"] = drawn["speedup"]
            row[f"se {size}"] = drawn["speedup_se_table1"]
            row[f"se_from_interval {size}"] = (drawn["ci95_high"] - drawn["ci95_low"]) / 3.92
        row["fastest"] = ", ".join(s for s in SIZES if by_size.loc[s, "speedup"] == best)
        near += bool(best - by_size.loc["0.6B", "speedup"] <= 0.1 + 1e-9)
        rows.append(row)
    frame = pd.DataFrame(rows)
    origins = _all(frame, "published")
    origins |= {name: "recomputed" for name in origins if name.startswith("se_from")}
    origins["fastest"] = "recomputed"
    return Comparison(
        "Table 1: speedup of three draft sizes on two targets",
        frame,
        origins,
        (f"0.6B is within 0.1 of the fastest size in {near} of {len(frame)} rows (Sec. 4.3: 7).",),
    )


def table5() -> Comparison:
    """Return the final speedups of Table 5: offline drafts and those trained while running."""
    published = load("table20").frame
    wide = published.set_index(["variant", "benchmark"])
    variants = ("offline", "retrain", "continual")
    frame = pd.DataFrame({"benchmark": published["benchmark"].unique()})
    for variant in variants:
        frame[f"speedup {variant}"] = (
            wide.loc[variant].loc[frame["benchmark"], "speedup"].to_numpy()
        )
        frame[f"se {variant}"] = wide.loc[variant].loc[frame["benchmark"], "se_table5"].to_numpy()
    return Comparison(
        "Table 5: test speedup of drafts trained offline and while the agent ran",
        frame,
        _all(frame, "published"),
    )


def table7() -> Comparison:
    """Return the offline agreements of Table 7 with the number of contexts behind them."""
    agreement = load("table02").frame.set_index(["draft", "benchmark"])["agreement_pct"]
    frame = load("table07").frame
    for draft in ("0.6B base", "32B direct", "32B reason", "0.6B trained"):
        frame[draft] = agreement.loc[draft].loc[frame["benchmark"]].to_numpy()
    return Comparison(
        "Table 7: offline agreement (%) of four drafts with the Qwen3-32B target",
        frame,
        _all(frame, "published"),
    )


def _all(frame: pd.DataFrame, origin: Origin) -> dict[str, Origin]:
    numbers = frame.select_dtypes("number").columns
    return {str(name): origin for name in numbers if name != "k"}
