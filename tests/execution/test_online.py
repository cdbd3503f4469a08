"""Learning online: every batch is served by what earlier batches taught, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leapmodel.benchmarks import Task
from leapmodel.benchmarks.planning.prompts import answer
from leapmodel.errors import DataError, EngineError, UsageError
from leapmodel.execution.contexts import Context, contexts_of
from leapmodel.execution.fake.server import FakeServer
from leapmodel.execution.loop import Models
from leapmodel.execution.online import Stream, run_online
from leapmodel.execution.protocol import Plan
from leapmodel.execution.swapping import Swap
from leapmodel.execution.talking.endpoint import Endpoint
from leapmodel.trace import Trace

from .scripted import PLANNING, planner

TASKS = PLANNING.tasks("test")[:12]
TRAINING = {"train_options": []}
HELD_OUT = PLANNING.tasks("test")[12:16]


def heldout(tasks: Sequence[Task] = HELD_OUT) -> list:
    rows = [
        {"task": task.name, "step": i, "gen_s": 1.0, "action": action}
        for task in tasks
        for i, action in enumerate(task.gold or ())
    ]
    return list(contexts_of(PLANNING, Trace.from_frame(pd.DataFrame(rows))))


class Pupil:
    """A draft that knows exactly the contexts it was trained on, by the folder it answers from."""

    def __init__(self) -> None:
        self.known: dict[str | None, dict[str, str]] = {None: {}}
        self.trained: list[tuple[list[tuple[str, int]], str, str | None]] = []
        self.fail_at: int | None = None

    def says(self, request) -> str:
        return self.known[request.weights].get(request.last, answer("Fill Mask"))

    async def train(self, pairs, folder: Path, previous: Path | None) -> None:
        if len(self.trained) == self.fail_at:
            self.fail_at = None
            raise EngineError("the training was killed")
        folder.mkdir()
        (folder / "training.json").write_text("{}")
        self.known[str(folder.resolve())] = {
            p["messages"][-1]["content"]: p["answer"] for p in pairs.frame.to_dict("records")
        }
        (folder / "adapter_model.safetensors").write_text(pairs.frame.to_json())
        keys = [(p["task"], p["step"]) for p in pairs.frame.to_dict("records")]
        self.trained.append((keys, folder.name, None if previous is None else previous.name))


class MergedPupil(Pupil):
    """One that is known by the weights that the server has in place, and not by a name."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        base.mkdir(exist_ok=True)
        self.known = {str(base): {}}
        self.served: list[str] = []

    def says(self, request) -> str:
        version = Path(request.weights).name
        if version not in self.served:
            self.served.append(version)
        return super().says(request)


def stream(
    folder: Path,
    pupil: Pupil,
    method: str,
    batches: int = 4,
    resume: bool = False,
    tasks: Sequence[Task] = TASKS,
    scored: Sequence[Context] | None = None,
    served: str | None = None,
    training: Mapping[str, Any] = TRAINING,
    base: str = "x",
    swap: Swap = "adapter",
    draft: FakeServer | None = None,
):
    """What a stream gives, and what the draft's server was asked."""
    with FakeServer(planner()) as target, ExitStack() as servers:
        draft = draft or servers.enter_context(FakeServer(pupil.says))

        async def work():
            async with AsyncExitStack() as stack:
                opened = [
                    await stack.enter_async_context(Endpoint(server.url, "fake"))
                    for server in (target, draft)
                ]
                opened[1].model = served or opened[1].model
                plan = Plan(PLANNING, tasks, Models(opened[0], opened[1]), 2)
                on = heldout() if scored is None else scored
                what = Stream(plan, batches, method, pupil.train, base, swap, on, training=training)
                return await run_online(what, folder, resume=resume)

        return asyncio.run(work()), draft.requests


def rows_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()][1:]


def version_of(request) -> str:
    return "base" if request.weights is None else Path(request.weights).name


@pytest.mark.parametrize("method", ["retrain", "continual"])
def test_a_batch_is_served_by_what_the_earlier_ones_taught(tmp_path: Path, method: str):
    pupil = Pupil()
    versions, asked = stream(tmp_path, pupil, method)
    assert [version.number for version in versions] == [0, 1, 2, 3, 4]
    for row in rows_of(tmp_path):
        if row["arm"] == "speculative":
            assert row["draft"] == f"version {row['batch']}"
    batch_of = {row["task"]: row["batch"] for row in rows_of(tmp_path)}
    assert sorted(batch_of.values()) == [b for b in range(4) for _ in range(3)]
    name_of = {task.text: task.name for task in TASKS}
    served: dict[int, set[str]] = {}
    for request in asked:
        task = request.last.removeprefix("Task: ").partition("\n")[0]
        if task in name_of:
            served.setdefault(batch_of[name_of[task]], set()).add(version_of(request))
    assert served == {b: {f"version-0{b}" if b else "base"} for b in range(4)}
    for number, (keys, _, previous) in enumerate(pupil.trained):
        taught = {batch_of[task] for task, _ in keys}
        assert max(taught) == number  # the batch just run, and nothing later
        if method == "retrain":
            assert taught == set(range(number + 1))
            assert previous is None
        else:
            new = [key for key in keys if batch_of[key[0]] == number]
            assert len(keys) - len(new) == (0 if number == 0 else len(new))
            assert len(set(keys)) == len(keys)
            assert previous == (f"version-{number:02d}" if number else None)


@pytest.mark.parametrize("method", ["retrain", "continual"])
def test_merged_weights_serve_what_adapters_would(tmp_path: Path, method: str):
    adapters, merged = Pupil(), MergedPupil(tmp_path / "base")
    expected, _ = stream(tmp_path / "adapters", adapters, method)
    versions, asked = stream(
        tmp_path / "merged", merged, method, base=str(tmp_path / "base"), swap="merged"
    )
    assert {request.model for request in asked} == {"fake"}
    assert merged.served == ["base", *(f"version-0{number}" for number in range(1, 5))]
    assert [keys for keys, *_ in merged.trained] == [keys for keys, *_ in adapters.trained]
    assert [one.agreement for one in versions] == [one.agreement for one in expected]
    first = None if method == "retrain" else "adapter"
    assert [previous for *_, previous in merged.trained] == [None, first, first, first]
    proposals = [
        [
            (row["task"], row["draft"], [proposed["action"] for proposed in row["proposals"]])
            for row in rows_of(tmp_path / name)
        ]
        for name in ("adapters", "merged")
    ]
    assert proposals[0] == proposals[1]


@pytest.mark.parametrize("fail_at", [1, 3])
def test_a_merged_stream_goes_on_after_the_server_lost_its_weights(tmp_path: Path, fail_at: int):
    pupil = MergedPupil(tmp_path / "base")
    pupil.fail_at = fail_at
    merged = {"base": str(tmp_path / "base"), "swap": "merged"}
    with pytest.raises(EngineError, match="killed"):
        stream(tmp_path / "parts", pupil, "continual", **merged)
    half = tmp_path / "parts" / f"version-{fail_at + 1:02d}"
    half.mkdir()
    (half / "config.json").write_text("{")  # killed while it was written
    # the server of the second attempt is new, and has the base
    versions, _ = stream(tmp_path / "parts", pupil, "continual", resume=True, **merged)
    whole = MergedPupil(tmp_path / "base")
    expected, _ = stream(tmp_path / "whole", whole, "continual", **merged)
    assert pupil.trained == whole.trained
    assert [one.agreement for one in versions] == [one.agreement for one in expected]


def test_what_is_learned_is_what_the_target_committed(tmp_path: Path):
    pupil = Pupil()
    stream(tmp_path, pupil, "retrain", batches=1)
    (keys, name, _) = pupil.trained[0]
    assert keys == [(t.name, i) for t in TASKS for i in range(len(t.gold or ()))]
    contexts = {
        f"Task: {task.text}\nDone: {', '.join((task.gold or ())[:i]) or 'nothing yet'}": action
        for task in TASKS
        for i, action in enumerate(task.gold or ())
    }
    assert pupil.known[str(tmp_path / name)] == {
        text: answer(action) for text, action in contexts.items()
    }


def test_agreement_is_scored_on_tasks_of_its_own(tmp_path: Path):
    versions, _ = stream(tmp_path, Pupil(), "retrain")
    contexts = heldout()
    expected = sum(context.action == "Fill Mask" for context in contexts) / len(contexts)
    assert all(version.agreement == pytest.approx(expected) for version in versions)


def test_agreement_is_that_of_the_version_that_is_scored(tmp_path: Path):
    contexts = [
        replace(context, task=replace(context.task, name=f"like {context.task.name}"))
        for context in heldout(TASKS[:6])
    ]
    right = [f"like {task.name}" for task in TASKS[:3]]  # what the first batch teaches
    learned = sum(context.task.name in right for context in contexts)
    others = [context for context in contexts if context.task.name not in right]
    lucky = sum(context.action == "Fill Mask" for context in others)
    versions, _ = stream(tmp_path, Pupil(), "retrain", scored=contexts)
    assert versions[1].agreement == pytest.approx((learned + lucky) / len(contexts))
    assert versions[0].agreement < versions[1].agreement < versions[2].agreement == 1


def test_tasks_that_are_learned_from_are_not_held_out(tmp_path: Path):
    pupil = Pupil()
    first, *_ = sorted(task.name for task in TASKS[:2])
    said = f"^the training tasks have 2 of the held-out tasks, such as {first}$"
    with pytest.raises(UsageError, match=said):
        stream(tmp_path / "x", pupil, "retrain", scored=[*heldout(), *heldout(TASKS[:2])])
    assert not pupil.trained
    assert not (tmp_path / "x").exists()


def test_two_streams_can_use_one_server(tmp_path: Path):
    first, second = Pupil(), Pupil()
    both = FakeServer(lambda request: (second if "b" in where(request) else first).says(request))

    def where(request) -> str:
        return "" if request.weights is None else Path(request.weights).parent.name

    with both as draft:
        first.fail_at = 3
        with pytest.raises(EngineError, match="killed"):
            stream(tmp_path / "a", first, "retrain", draft=draft)
        assert draft.adapters  # the stream broke off and has left its last version there
        versions, asked = stream(tmp_path / "b", second, "continual", draft=draft)
        mine = [request for request in asked if request.weights is not None][-1]
        assert Path(mine.weights).parent.name == "b"
        assert all("b" not in path for path in draft.adapters.values())  # its own are unloaded
    alone, _ = stream(tmp_path / "c", Pupil(), "continual")
    assert [one.agreement for one in versions] == [one.agreement for one in alone]


@pytest.mark.parametrize("swap", ["adapter", "merged"])
def test_a_stream_that_broke_off_leaves_the_base_in_the_server(tmp_path: Path, swap: Swap):
    base = tmp_path / "base"
    pupil = MergedPupil(base) if swap == "merged" else Pupil()
    pupil.fail_at = 2
    with FakeServer(pupil.says) as draft:
        with pytest.raises(EngineError, match="killed"):
            stream(tmp_path / "x", pupil, "retrain", base=str(base), swap=swap, draft=draft)
        assert draft.weights in (None, str(base))


def test_an_update_that_was_broken_off_counts_its_training(tmp_path: Path):
    pupil = Pupil()
    stream(tmp_path / "whole", pupil, "retrain", batches=2)
    (tmp_path / "whole" / "version-02" / "training.json").write_text('{"seconds": 70}')
    versions = json.loads((tmp_path / "whole" / "versions.json").read_text())
    (tmp_path / "whole" / "versions.json").write_text(json.dumps(versions[:2]))
    again, _ = stream(tmp_path / "whole", pupil, "retrain", batches=2, resume=True)
    assert 70 <= again[-1].update_s < 80
    assert len(pupil.trained) == 2


@pytest.mark.parametrize("fail_at", [0, 2])
def test_a_stream_that_broke_off_goes_on(tmp_path: Path, fail_at: int):
    whole, pupil = Pupil(), Pupil()
    stream(tmp_path / "whole", whole, "continual")
    pupil.fail_at = fail_at
    with pytest.raises(EngineError, match="killed"):
        stream(tmp_path / "parts", pupil, "continual")
    versions, _ = stream(tmp_path / "parts", pupil, "continual", resume=True)
    assert pupil.trained == whole.trained
    assert len(versions) == 5
    keys = ("task", "arm", "round", "batch", "accepted", "draft")
    assert [[row[k] for k in keys] for row in rows_of(tmp_path / "parts")] == [
        [row[k] for k in keys] for row in rows_of(tmp_path / "whole")
    ]


def test_another_stream_is_refused(tmp_path: Path):
    stream(tmp_path, Pupil(), "retrain")
    with pytest.raises(UsageError, match="was begun with online"):
        stream(tmp_path, Pupil(), "continual", resume=True)
    with pytest.raises(
        UsageError, match="--batches: expected at most 12, one for each task, found"
    ):
        stream(tmp_path / "x", Pupil(), "retrain", batches=13)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tasks": TASKS[:8]}, "online tasks 12, now it is 8"),
        ({"tasks": TASKS[::-1]}, "online tasks_sha256 '"),
        ({"scored": heldout()[1:]}, "online heldout_sha256 '"),
        ({"served": "version-01"}, "draft model 'fake', now it is 'version-01'"),
        ({"training": {"base": "y", "train_options": []}}, "online base 'x', now it is 'y'"),
        (
            {"training": {"base": "x", "train_options": ["--epochs", "1"]}},
            r"online train_options \[\], now it is \['--epochs', '1'\]",
        ),
    ],
)
def test_a_stream_goes_on_only_as_it_was_begun(tmp_path: Path, changed: dict, said: str):
    pupil = Pupil()
    pupil.fail_at = 1
    with pytest.raises(EngineError, match="killed"):
        stream(tmp_path, pupil, "retrain")
    before = {path: path.read_bytes() for path in tmp_path.glob("*.json*")}
    with pytest.raises(UsageError, match=f"was begun with {said}"):
        stream(tmp_path, pupil, "retrain", resume=True, **changed)
    assert {path: path.read_bytes() for path in tmp_path.glob("*.json*")} == before


def test_a_stream_that_states_less_goes_on(tmp_path: Path):
    pupil = Pupil()
    pupil.fail_at = 1
    with pytest.raises(EngineError, match="killed"):
        stream(tmp_path, pupil, "retrain")
    path = tmp_path / "rounds.jsonl"
    first, rest = path.read_text().split("\n", 1)
    about = json.loads(first)
    about["online"] = {name: about["online"][name] for name in ("method", "batches", "seed")}
    path.write_text(json.dumps(about) + "\n" + rest)
    with pytest.raises(UsageError, match="was served in batch 0, now it would be in batch 1"):
        stream(tmp_path, pupil, "retrain", resume=True, tasks=TASKS[:8])
    with pytest.raises(UsageError, match="was served in batch 0, now it would be in none"):
        stream(tmp_path, pupil, "retrain", resume=True, tasks=TASKS[4:])
    versions, _ = stream(tmp_path, pupil, "retrain", resume=True)
    assert len(versions) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said[1].update(adapter=7), "row 2, column adapter: expected a folder's name"),
        (lambda said: said[1].update(adapter="../x"), "row 2, column adapter: expected a folder's"),
        (
            lambda said: said[1].pop("pairs"),
            "row 2, column pairs: expected a whole number, found N",
        ),
        (lambda said: said[0].update(update_s="1"), "row 1, column update_s: expected a number"),
        (
            lambda said: said[0].update(agreement=[]),
            "row 1, column agreement: expected a number or",
        ),
        (lambda said: said.pop(0), "row 1, column number: expected 0, found 1"),
        (lambda said: said.insert(0, 3), "row 1: expected a JSON object, found 3"),
    ],
)
def test_versions_of_a_wrong_shape_are_named(
    tmp_path: Path, change: Callable[[list], None], said: str
):
    pupil = Pupil()
    pupil.fail_at = 1
    with pytest.raises(EngineError, match="killed"):
        stream(tmp_path, pupil, "retrain")
    path = tmp_path / "versions.json"
    versions = json.loads(path.read_text())
    change(versions)
    path.write_text(json.dumps(versions))
    with pytest.raises(DataError, match=f"versions.json: {said}"):
        stream(tmp_path, pupil, "retrain", resume=True)


@pytest.mark.parametrize("name", ["versions.json", "trace.jsonl", "version-01"])
def test_what_another_stream_left_is_not_taken_for_its_own(tmp_path: Path, name: str):
    if name == "version-01":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("[]\n")
    with pytest.raises(UsageError, match=f"{name}: exists already, without a rounds.jsonl"):
        stream(tmp_path, Pupil(), "retrain", resume=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]
