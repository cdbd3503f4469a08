"""``leapmodel describe``: what a trace holds."""

from __future__ import annotations

import click

from leapmodel.cli.options import (
    check_plot_path,
    json_option,
    open_trace,
    plot_option,
    trace_argument,
)
from leapmodel.cli.screen import clean, console, figure, new_table, print_json, seconds, show_notes
from leapmodel.cli.sketch import histogram
from leapmodel.description import Description, describe

N_TOOLS = 12


@click.command("describe", short_help="Show what a trace holds, and what looks wrong.")
@trace_argument
@json_option
@plot_option
def command(
    trace: str,
    lenient: bool,
    boundary_tools: str | None,
    winsorize: float | None,
    as_json: bool,
    plot: str | None,
) -> None:
    """Show a TRACE's tasks, segments, step times and tools, and what looks suspicious."""
    check_plot_path(plot)
    about = describe(open_trace(trace, lenient, boundary_tools, winsorize))
    if plot is not None:
        from leapmodel.plots import save

        save(about.plot(), plot)
    if as_json:
        print_json(about.to_dict())
        return
    _show(about, trace)
    if plot is not None:
        click.echo(f"picture: {plot}")


def _show(about: Description, name: str) -> None:
    out = console()
    counts = new_table(clean(name), "", "")
    for label, value in [
        ("tasks", f"{about.tasks:,}"),
        *([("runs", f"{about.runs:,}")] if about.runs != about.tasks else []),
        ("segments", f"{about.segments:,}"),
        ("steps", f"{about.steps:,}"),
        ("steps per task", figure(about.steps / about.tasks)),
        ("steps per segment L, mean", figure(about.steps_per_segment["mean"])),
        ("step time t_gen, mean", seconds(about.gen_s["mean"])),
        ("step time CV", figure(about.gen_s["cv"], 3)),
        ("tool share f (steps with tool time)", figure(about.tool_step_share, 3)),
        ("tool cost tau (their tool time / t_gen)", figure(about.tool_cost, 3)),
        ("tool time / all time", figure(about.tool_time_share, 3)),
        *(
            [("boundary-tool steps", f"{about.boundary_steps:,}")]
            if "boundary_tools" in about.metadata
            else []
        ),
        *((f"{name.replace('_', ' ')}, mean", figure(v, 0)) for name, v in about.tokens.items()),
    ]:
        counts.add_row(label, value)
    counts.show_header = False
    out.print(counts)
    quantiles = [key for key in about.gen_s if key.startswith("p")] + ["max"]
    spread = new_table("spread", "", *quantiles)
    spread.add_row("step time (s)", *(f"{about.gen_s[q]:.3g}" for q in quantiles))
    spread.add_row("steps per segment", *(f"{about.steps_per_segment[q]:.3g}" for q in quantiles))
    out.print(spread)
    low, high = seconds(float(about.times.min())), seconds(about.gen_s["max"])
    out.print(f" {low} {histogram(about.times)} {high}   (step times, logarithmic)")
    out.print()
    ends = new_table("segments end on", "", "segments", "share")
    for kind, n in about.segment_ends.items():
        ends.add_row(kind, f"{n:,}", f"{n / about.segments:.0%}")
    out.print(ends)
    if len(about.tools):
        tools = new_table("tools", "tool", "steps", "share", "mean time", "boundary")
        for row in about.tools.head(N_TOOLS).to_dict(orient="records"):
            tools.add_row(
                clean(str(row["tool"])),
                f"{row['steps']:,}",
                f"{row['share']:.0%}",
                seconds(float(row["tool_s"])),
                "yes" if row["boundary"] else "",
            )
        if len(about.tools) > N_TOOLS:
            tools.caption = f"and {len(about.tools) - N_TOOLS} more (--json lists all)"
        out.print(tools)
    longest = new_table("longest steps", "task", "run", "step", "time", "of all time")
    for row in about.longest.to_dict(orient="records"):
        longest.add_row(
            clean(str(row["task"])),
            str(row["run"]),
            str(row["step"]),
            seconds(float(row["gen_s"])),
            f"{row['share']:.1%}",
        )
    out.print(longest)
    show_notes(out, "suspicious", about.suspicious)
    show_notes(out, "notes", about.notes)
