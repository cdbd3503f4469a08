"""Measure leapmodel's speed and print it as one table: ``python benchmarks/run.py``.

Every ratio is of two things measured in this run. A target that is missed is said and fails
nothing: machines are noisy.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

from figures import Figure, machine
from rich.console import Console
from rich.table import Table


def main() -> None:
    """Run all benchmarks; the commands first, while this process is small."""
    # wide enough for the notes where the output is no terminal
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(f"[bold]{machine()}, numpy {version('numpy')}, scipy {version('scipy')}[/]")
    console.print("command: " + " ".join([sys.executable, *sys.argv]), soft_wrap=True)

    console.print("\nthe commands (about a minute) …", style="dim")
    from command_speed import PREDICT, command_figures

    figures = {f"leapmodel {' '.join(PREDICT)}": command_figures()}
    console.print("imports (two minutes, 1 GB of disk) …", style="dim")
    from import_memory import memory_figures
    from import_speed import import_figures

    memory = memory_figures()  # first: a child's peak counts what this process holds
    figures["import"] = [*import_figures(), *memory]
    console.print("the bootstrap …", style="dim")
    from bootstrap_speed import bootstrap_figures

    figures["bootstrap"] = bootstrap_figures()
    console.print("the loop (half a minute) …", style="dim")
    from harness_overhead import overhead_figures

    figures["loop"] = overhead_figures()
    console.print("the replays (half a minute) …\n", style="dim")
    from replay_speed import replay_figures

    figures["replay"] = replay_figures()
    for title, rows in reversed(figures.items()):
        console.print(_table(title, rows))
    missed = [f for rows in figures.values() for f in rows if f.is_met is False]
    console.print(f"{len(missed)} target(s) missed; the median decides", style="bold")


def _table(title: str, figures: list[Figure]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("what", overflow="fold", min_width=30)
    for name in ("min", "median", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("note", overflow="fold")
    for figure in figures:
        style = "red" if figure.is_met is False else ""
        table.add_row(*figure.cells(), style=style)
    return table


if __name__ == "__main__":
    main()
