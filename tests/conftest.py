"""Workloads that several test modules share, all made here."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapmodel.trace import Trace

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell starts background jobs deaf to Ctrl-C, and what they start would be deaf too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"
TOOLS = ["search", "open_page", "send_mail", "book_room", "calculate"]


def random_trace(
    rng: np.random.Generator,
    n_tasks: int = 30,
    *,
    with_tools: bool = True,
    runs: int = 1,
) -> Trace:
    """A workload of tasks with one to three segments of one to six steps, replies at their ends."""
    rows = []
    for task in range(n_tasks):
        for run in range(runs):
            step = 0
            for segment in range(rng.integers(1, 4)):
                length = int(rng.integers(1, 7))
                for i in range(length):
                    last = i == length - 1
                    tool = TOOLS[rng.integers(len(TOOLS))]
                    rows.append(
                        {
                            "task": f"task{task}",
                            "run": run,
                            "segment": segment,
                            "step": step,
                            "gen_s": float(rng.lognormal(0.0, 0.5)),
                            "tool_s": 0.0
                            if last or not with_tools
                            else float(rng.exponential(0.3)),
                            "action": "<respond/>" if last else f'{tool}({{"x":{i}}})',
                            "prompt_tokens": 500 + 100 * step,
                            "cached_tokens": 400,
                            "completion_tokens": int(rng.integers(20, 200)),
                        }
                    )
                    step += 1
    return Trace.from_frame(pd.DataFrame(rows))


def disturbed(
    trace: Trace, rng: np.random.Generator, share: float | np.ndarray, speed: float = 0.3
) -> Trace:
    """An independent run of the same tasks in which a share of the actions differ."""
    frame = trace.frame.copy()
    differs = rng.random(len(frame)) < share
    frame["action"] = np.where(differs, "other({})", frame["action"])
    frame["kind"] = np.where(differs, "tool", frame["kind"])
    frame["gen_s"] = speed * frame["gen_s"] * rng.lognormal(0, 0.2, len(frame))
    return Trace.from_frame(frame)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260)


@pytest.fixture
def workload(rng: np.random.Generator) -> Trace:
    return random_trace(rng)


@pytest.fixture
def shared_traces() -> Path:
    """Real logs that live beside the checkout; tests that need them say so when they are absent."""
    folder = SHARED / "traces"
    if not folder.is_dir():
        pytest.skip("needs the real logs in ../shared/traces, which are not here")
    return folder


def steady_trace(tasks: int, steps: int) -> Trace:
    """Tasks of steps of one second each."""
    names = [f"t{i:02d}" for i in range(tasks)]
    return Trace.from_frame(
        pd.DataFrame(
            {
                "task": np.repeat(names, steps),
                "step": np.tile(np.arange(steps), tasks),
                "segment": 0,
                "gen_s": 1.0,
                "action": "ls({})",
            }
        )
    )
