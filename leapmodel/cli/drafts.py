"""What a person writes about a draft on the command line, turned into evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from leapmodel.cli.options import note, parse_numbers, report_dropped
from leapmodel.compared_draft import Pool, draft_from_predictions, draft_from_run
from leapmodel.configurations import configurations
from leapmodel.draft import Draft, probed, stated_draft
from leapmodel.errors import DataError, UsageError
from leapmodel.files import kind_of
from leapmodel.measured_draft import draft_from_rounds
from leapmodel.predictions import read_predictions
from leapmodel.probes import Probe, read_probe
from leapmodel.rounds import read_rounds
from leapmodel.trace import Trace, read_trace


def parse_draft(
    spec: str,
    trace: Trace,
    *,
    pool: Pool = "all",
    depth: int,
    lenient: bool = False,
    evidence_trace: Trace | None = None,
) -> list[Draft]:
    """Turn one ``--draft`` of ``leapmodel choose`` into drafts.

    Parameters
    ----------
    spec : str
        ``NAME=FILE`` with a trace (an independent run), a predictions file or measured rounds;
        ``FILE`` alone, for every draft of a file of predictions or rounds;
        ``NAME=ACCEPTANCE@COST``. ``@COST`` may follow a file too. COST is seconds a call, target
        steps with an ``x`` (``0.07x``), or a file of ``leapmodel probe``.

    Raises
    ------
    UsageError
        If it is none of these.
    DataError
        If the file is not right.
    """
    name, body, price = _split(spec)
    drafts = _parsed(spec, name, body, price, trace, pool, depth, lenient, evidence_trace)
    if price.probe is None:
        return drafts
    return [probed(draft, price.probe.slowdown) for draft in drafts]


def _parsed(
    spec: str,
    name: str,
    body: str,
    price: _Cost,
    trace: Trace,
    pool: Pool,
    depth: int,
    lenient: bool,
    evidence_trace: Trace | None,
) -> list[Draft]:
    latency_s, cost, _ = price
    if not body:
        raise UsageError(f"--draft: expected NAME=FILE or NAME=ACCEPTANCE@COST, found {spec!r}")
    if not Path(body).exists():
        return [_stated(name, body, latency_s, cost, spec)]
    kind = _kind(body)
    if kind == "rounds":
        rounds = read_rounds(body, lenient=lenient)
        report_dropped(rounds)
        drafts = list(dict.fromkeys(one.draft for one, _ in configurations(rounds)))
        if not drafts:
            raise DataError(body, expected="rounds with a draft", found="a sequential arm alone")
        if name and len(drafts) > 1 and name not in drafts:
            raise UsageError(f"--draft {spec}: the file holds {', '.join(drafts)}, not {name}")
        return [
            draft_from_rounds(
                trace, rounds, draft=each, latency_s=latency_s, cost=cost, name=name or each
            )
            for each in (drafts if name not in drafts else [name])
        ]
    if kind == "predictions":
        predictions = read_predictions(body, lenient=lenient)
        report_dropped(predictions)
        names = predictions.draft_names
        if name in names:
            wanted = [(name, name)]
        elif name and len(names) > 1:
            raise UsageError(f"--draft {spec}: the file holds {', '.join(names)}, not {name}")
        else:
            wanted = [(name or each, each) for each in names]
        note_another_draft(price.probe, [each for _, each in wanted])
        return [
            draft_from_predictions(
                trace,
                predictions,
                draft=each,
                latency_s=latency_s,
                cost=cost,
                evidence_trace=evidence_trace,
                name=label,
            )
            for label, each in wanted
        ]
    run = read_trace(body, lenient=lenient)
    report_dropped(run)
    return [
        draft_from_run(
            trace,
            run,
            pool=pool,
            depth=depth,
            latency_s=latency_s,
            cost=cost,
            evidence_trace=evidence_trace,
            name=name or Path(body).stem,
        )
    ]


def note_another_draft(probe: Probe | None, names: Sequence[str]) -> None:
    """Say if a probe timed another draft than the one whose predictions it is used with."""
    if probe is not None and probe.draft is not None and probe.draft not in names:
        note(
            f"{probe.source} timed the draft {probe.draft!r}, the predictions are of"
            f" {', '.join(map(repr, names))}"
        )


class _Cost(NamedTuple):
    """What a person says a draft's call costs: seconds, target steps, or a probe that timed it."""

    latency_s: float | None = None
    steps: float | None = None
    probe: Probe | None = None


def uses_evidence_trace(specs: Sequence[str]) -> bool:
    """Return whether a ``--draft`` names a file that belongs to a trace: predictions or a run."""
    bodies = [_split(spec)[1] for spec in specs]
    return any(Path(body).exists() and _kind(body) != "rounds" for body in bodies)


def _split(spec: str) -> tuple[str, str, _Cost]:
    """Return name, what is said of the hits, and the cost. A file's own ``=`` and ``@`` are its."""
    if Path(spec).exists():
        return "", spec, _Cost()
    for name, what in [("", spec), *_cuts(spec, "=")]:
        if Path(what).exists():
            return name, what, _Cost()
        for body, price in _cuts(what, "@"):
            if Path(body).exists() or _are_numbers(body):
                return name, body, _cost(price)
    name, _, what = spec.partition("=") if "=" in spec else ("", "", spec)
    body, at, price = what.rpartition("@")
    return (name, body, _cost(price)) if at else (name, what, _Cost())


def _cuts(text: str, mark: str) -> list[tuple[str, str]]:
    """Return what stands before and after each occurrence of a mark."""
    return [(text[:at], text[at + 1 :]) for at, letter in enumerate(text) if letter == mark]


def _are_numbers(text: str) -> bool:
    try:
        parse_numbers(text, "")
    except UsageError:
        return False
    return True


def _cost(price: str) -> _Cost:
    in_steps = price.endswith("x")
    number = price.removesuffix("x")
    if _are_numbers(number):
        value, *more = parse_numbers(number, "--draft …@COST")
        if more:
            raise UsageError(f"--draft …@COST: expected one number, found {price!r}")
        return _Cost(steps=value) if in_steps else _Cost(latency_s=value)
    if not price or not Path(price).exists():
        raise UsageError(
            f"--draft …@COST: expected seconds such as 0.2, target steps such as 0.07x, or a file"
            f" of leapmodel probe, found {price!r}"
        )
    probe = read_probe(price)
    return _Cost(latency_s=probe.draft_latency_s, probe=probe)


def _stated(name: str, body: str, latency_s: float | None, cost: float | None, spec: str) -> Draft:
    try:
        acceptance = parse_numbers(body, "--draft")
    except UsageError:
        raise DataError(
            body, expected="a readable file", found="no such file or directory"
        ) from None
    if latency_s is None and cost is None:
        raise UsageError(
            f"--draft {spec}: a stated acceptance needs a cost, as {spec}@0.2 (seconds a call) or"
            f" {spec}@0.07x (target steps)"
        )
    return stated_draft(acceptance, latency_s=latency_s, cost=cost, name=name or "stated")


def _kind(path: str) -> str:
    try:
        return kind_of(path)
    except DataError:
        return "trace"  # reading it as one gives the better error
