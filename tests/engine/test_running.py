"""The loop on real servers: both arms agree, a killed run goes on, a killed server is named."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leapmodel.benchmarks.planning import PlanningBenchmark
from leapmodel.errors import EngineError
from leapmodel.execution.loop import Models
from leapmodel.execution.protocol import Plan
from leapmodel.execution.records.journal import Journal
from leapmodel.execution.records.record import Round
from leapmodel.execution.records.recording import ROUNDS_NAME, record
from leapmodel.execution.serving.config import ServingConfig
from leapmodel.execution.serving.process import ServerDied
from leapmodel.execution.serving.servers import Servers, serving
from leapmodel.execution.talking.endpoint import Endpoint
from tests.execution.scripted import rounds_of
from tests.execution.test_journal import lines, stable

BENCHMARK = PlanningBenchmark(target_tokens=16)


def run(servers: Servers, folder: Path, *, observe: Any = None, **options: Any) -> Journal:
    """Two tasks, both arms; the target without its thought drafts for itself."""

    async def work() -> Journal:
        async with (
            Endpoint(servers.target_url, "target", role="target", stalled_s=60) as target,
            Endpoint(servers.target_url, "target", role="draft", stalled_s=60) as draft,
        ):
            plan = Plan(BENCHMARK, BENCHMARK.tasks("test")[:2], Models(target, draft, "own"), 2)
            return await record(plan, folder, observe=observe, **options)

    return asyncio.run(work())


def actions(journal: Journal, arm: str) -> list[Any]:
    return [
        (row["task"], v["action"], v["output"])
        for row in rounds_of(journal, arm)
        for v in row["verifications"]
        if v["status"] == "used"
    ]


class Stop(Exception):
    pass


def test_both_arms_commit_the_same_and_a_run_that_stopped_goes_on_to_the_same(
    servers: Servers, tmp_path: Path
):
    whole = run(servers, tmp_path / "whole")
    assert actions(whole, "sequential") == actions(whole, "speculative")
    rows = [row for rows in whole.rows.values() for row in rows]
    assert min(row["residual_s"] for row in rows) >= 0
    for rows_of_one in whole.rows.values():
        wall_s = sum(row["wall_s"] for row in rows_of_one)
        assert wall_s == pytest.approx(rows_of_one[-1]["clock_s"], rel=0.01, abs=0.005)

    stops = len(rows) // 2

    def stop_once(finished: Round) -> None:
        nonlocal stops
        stops -= 1
        if stops == 0:
            raise Stop

    with pytest.raises(Stop):
        run(servers, tmp_path / "parts", observe=stop_once)
    before = lines(tmp_path / "parts")
    run(servers, tmp_path / "parts", resume=True)
    after = lines(tmp_path / "parts")
    assert after[: len(before)] == before
    assert stable(after[1:]) == stable(lines(tmp_path / "whole")[1:])


def test_a_server_killed_mid_round_is_named_and_nothing_is_left(
    config: ServingConfig, tmp_path: Path
):
    """The target alone: two more servers beside the session's are too many for a small machine."""
    alone = replace(config, draft=None, logs=str(tmp_path / "logs"))
    killed: list[int] = []

    def kill(finished: Round) -> None:
        if not killed:
            killed.append(servers.target.pid)
            os.killpg(servers.target.pid, signal.SIGKILL)

    with pytest.raises(ServerDied, match="the target's server was killed by SIGKILL") as caught:  # noqa: SIM117
        with serving(alone, print) as servers:
            run(servers, tmp_path / "out", observe=kill)
    assert isinstance(caught.value.__cause__, EngineError)
    recorded = lines(tmp_path / "out", ROUNDS_NAME)
    assert len(recorded) == 2  # what it is, and the round before
    with pytest.raises(ProcessLookupError):
        os.killpg(killed[0], 0)
