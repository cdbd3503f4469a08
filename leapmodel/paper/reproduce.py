"""Every table and figure that can be made again, by name: what ``leapmodel reproduce`` offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from leapmodel.atomic import atomic_path
from leapmodel.errors import UsageError
from leapmodel.paper import published, rederived, replayed, table10, truncation
from leapmodel.paper.comparison import Comparison
from leapmodel.paper.fit_report import fit_report
from leapmodel.paper.written import csv_text, markdown_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parts = Mapping[str, Comparison]
_FIGURES = "leapmodel.paper.figures"


@dataclass(frozen=True)
class Artefact:
    """One table, figure or statement of the paper that is made again.

    Attributes
    ----------
    name : str
        What it is asked for by, such as ``"table10"``.
    what : str
        What it shows.
    parts : callable
        Returns its numbers: one :class:`~leapmodel.paper.comparison.Comparison` a part (a panel of
        a figure, a table), keyed by the part's name; ``""`` where there is only one.
    draw : callable, optional
        Returns the figure.
    left_out : str
        What the paper shows there and can't be made from what it prints.
    """

    name: str
    what: str
    parts: Callable[[], Parts]
    draw: Callable[[], Figure] | None = None
    left_out: str = ""

    def write(self, folder: Path) -> list[Path]:
        """Write its numbers as CSV and Markdown and, of a figure, the picture as PDF and PNG.

        Returns
        -------
        list of Path
            The files written: ``name.md``, ``name.csv`` (``name_part.csv`` where there are
            several) and, of a figure, ``name.pdf`` and ``name.png``.
        """
        parts = self.parts()
        texts = {f"{self.name}.md": "\n".join(map(markdown_text, parts.values()))}
        if self.left_out:
            texts[f"{self.name}.md"] += f"\nLeft out: {self.left_out}\n"
        for part, table in parts.items():
            texts[f"{self.name}{'_' * bool(part)}{part}.csv"] = csv_text(table)
        written = [_write(folder / name, text) for name, text in texts.items()]
        if self.draw is not None:
            from leapmodel.paper.figures.style import save

            written += save(self.draw(), folder, self.name)
        return written


def _write(path: Path, text: str) -> Path:
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return path


def _one(make: Callable[[], Comparison]) -> Callable[[], Parts]:
    return lambda: {"": make()}


def _as_published(name: str) -> Callable[[], Parts]:
    return lambda: {"": published.as_published(name)}


def _figure(
    name: str, what: str, module: str, data: str = "data", draw: str = "draw", left_out: str = ""
) -> Artefact:
    # matplotlib takes a second to load: only when a figure is asked for
    def part(function: str) -> Callable[[], object]:
        return getattr(import_module(f"{_FIGURES}.{module}"), function)

    return Artefact(
        name,
        what,
        lambda: part(data)(),  # type: ignore[arg-type, return-value]
        lambda: part(draw)(),  # type: ignore[arg-type, return-value]
        left_out,
    )


_NO_BATCHES = "the speedups and acceptances of single batches, which the paper does not print."
ARTEFACTS: dict[str, Artefact] = {
    artefact.name: artefact
    for artefact in (
        _figure(
            "fig2",
            "training a small draft; what a large one costs",
            "acceptance_and_cost",
            left_out="the untrained draft's exact acceptance, which is not printed; a lower bound "
            "that follows from its hit rates is drawn.",
        ),
        _figure(
            "fig3",
            "speedup by draft size",
            "draft_size",
            left_out="the independent repeats of the planning runs, which are not printed.",
        ),
        _figure("fig4", "predicted against measured speedup and wait", "predicted_measured"),
        _figure(
            "fig5",
            "learning online: agreement",
            "online",
            "figure5_data",
            "draw_figure5",
            f"panel (b): {_NO_BATCHES}",
        ),
        _figure("fig6", "timeline of a round, simulated", "timeline"),
        _figure(
            "fig7",
            "components of the framework",
            "components",
            left_out="beta of the four runs with tool delay, which is not printed.",
        ),
        _figure(
            "fig8",
            "learning online: versions and final drafts",
            "online",
            "figure8_data",
            "draw_figure8",
            f"panel (b) and the batches of (c): {_NO_BATCHES}",
        ),
        Artefact("table1", "speedup of three draft sizes", _one(published.table1)),
        Artefact("table2", "offline agreement with standard errors", _as_published("table2")),
        Artefact("table3", "objective and supervision", _as_published("table3")),
        Artefact("table4", "tool delay", _one(replayed.table4_replayed)),
        Artefact("table5", "final online drafts", _one(published.table5)),
        Artefact("table7", "offline agreement of four drafts", _one(published.table7)),
        Artefact("table8", "from agreement to acceptance", _one(rederived.table8)),
        Artefact(
            "table9",
            "end-to-end speedup",
            _one(lambda: rederived.with_round_cost("table9", "commits_per_round", "speedup")),
        ),
        Artefact("table10", "predicted against measured speedup", _one(replayed.table10_replayed)),
        Artefact(
            "table11",
            "prediction before the run",
            _one(lambda: rederived.with_round_cost("table11", "replay_c", "speedup_ex_ante")),
        ),
        Artefact(
            "table12",
            "predictions of the size study",
            lambda: {"": table10.table12(), "replayed": replayed.table12_replayed()},
        ),
        Artefact("table13", "training recipes", _as_published("table13")),
        Artefact("table14", "draft size", _as_published("table14")),
        Artefact("table16", "hit rates, loss and commits", _one(table10.table16)),
        Artefact("table18", "truncation by task length", _one(truncation.table18)),
        Artefact("table19", "transfer across benchmarks", _as_published("table19")),
        Artefact("table20", "final online drafts, intervals", _as_published("table20")),
        Artefact("table21", "agreement of each online version", _as_published("table21")),
        Artefact("table22", "task outcomes", _one(rederived.table22)),
        Artefact("table23", "trajectory identity", _as_published("table23")),
        Artefact("eq2", "4B against 0.6B by Eq. 2", _one(rederived.draft_size_ratios)),
        Artefact("depth-rule", "which k Eq. 7 selects", _one(rederived.depth_rules)),
        Artefact("reconstruction", "fit of the reconstructed traces", fit_report),
    )
}
NOT_MADE = {
    "Fig. 1, Table 6": "a drawing and a list of symbols: no numbers.",
    "Tables 15 and 17": "settings in words; they are in the package as data (`tables.load`).",
}


def find(names: Iterable[str]) -> list[Artefact]:
    """Return what is asked for by name; ``all`` is everything.

    Raises
    ------
    UsageError
        If there is no such table or figure; lists what there is.

    Examples
    --------
    >>> [artefact.name for artefact in find(["table10", "Fig. 4"])]
    ['table10', 'fig4']
    """
    found = []
    for name in names:
        plain = name.lower().replace(" ", "").replace(".", "").replace("figure", "fig")
        if plain == "all":
            return list(ARTEFACTS.values())
        if plain not in ARTEFACTS:
            raise UsageError(f"nothing named {name!r} to reproduce; there are all, {_listed()}")
        found.append(ARTEFACTS[plain])
    return found


def _listed() -> str:
    return ", ".join(ARTEFACTS)


def index() -> str:
    """Return a page in Markdown that lists every file ``all`` writes, and what it leaves out."""
    lines = [
        "# The paper's figures and tables, made again",
        "",
        "Written by `leapmodel reproduce all -o paper_figs`. Each number is **published** (the",
        "paper's own entry), **recomputed** (from published numbers, by an equation) or",
        "**reconstructed** (replayed on a trace that was made up so that what the paper states",
        "holds; see `traces/reconstructed`); the durations in Fig. 6 are *illustrative*. The head",
        "of every column says which. Nothing here was measured by this project.",
        "",
        "| name | what | files |",
        "|---|---|---|",
    ]
    for artefact in ARTEFACTS.values():
        kinds = ["md", *(["pdf", "png"] if artefact.draw else [])]
        names = [f"[{kind}]({artefact.name}.{kind})" for kind in kinds]
        names += [
            f"[csv{' ' * bool(part)}{part}]({artefact.name}{'_' * bool(part)}{part}.csv)"
            for part in artefact.parts()
        ]
        lines.append(f"| {artefact.name} | {artefact.what} | {' '.join(names)} |")
    lines += ["", "Left out:", ""]
    lines += [f"- {a.name}: {a.left_out}" for a in ARTEFACTS.values() if a.left_out]
    lines += [f"- {name}: {why}" for name, why in NOT_MADE.items()]
    return "\n".join(lines) + "\n"


def write_all(folder: Path) -> list[Path]:
    """Write everything, and an index that lists it."""
    written = [path for artefact in ARTEFACTS.values() for path in artefact.write(folder)]
    return [*written, _write(folder / "README.md", index())]
