"""Whatever an agent's log holds, its importer returns a trace or says in one line why not."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers import import_log, import_predictions
from leapmodel.importers.recognition import sample_of
from leapmodel.trace import read_trace, write_trace
from tests.importers import agent_logs
from tests.importers.test_import_anything import anything, containers

TIMES = st.sampled_from(
    ["2026-02-03T12:00:00", "2026-02-03T12:00:00.5+02:00", "0001-01-01T00:00:00+23:00", "", "noon"]
)
values = anything | TIMES | st.sampled_from([0, -1, 1e300, 1.5, 1770120000, 1770120000123])


@st.composite
def damaged(draw, name):
    """A good log in which up to four values were replaced, removed, repeated or swapped."""
    log = agent_logs.BUILDERS[name]()
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.sampled_from(containers(log)))
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        other = draw(st.sampled_from(keys))
        how = draw(st.sampled_from(["replace", "remove", "repeat", "swap"]))
        if how == "replace":
            place[key] = draw(values)
        elif how == "remove":
            del place[key]
        elif how == "swap":
            place[key], place[other] = place[other], place[key]
        elif isinstance(place, list):
            place.insert(other, place[key])
        if not log:
            break
    return log


def check(name, content, lenient, suffix=None, contexts=False):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{suffix or agent_logs.name_of(name)}"
        path.write_bytes(content)
        try:
            sample_of(path)
            trace = import_log(
                name,
                path,
                lenient=lenient,
                contexts=Path(folder) / "contexts.jsonl" if contexts else None,
            )
        except DataError as error:
            message = str(error)
            assert "\n" not in message
            assert message.startswith(str(path))
            assert not (Path(folder) / "contexts.jsonl").exists()
            return
        write_trace(trace, Path(folder) / "t.parquet")
        assert read_trace(Path(folder) / "t.parquet").n_steps == trace.n_steps
        if contexts:
            for line in (Path(folder) / "contexts.jsonl").read_text("utf-8").split("\n")[:-1]:
                assert json.loads(line).keys() == {"task", "run", "step", "messages", "action"}
        if name == "speculative-tool-calls":
            with suppress(DataError):  # it may hold no guess
                predictions = import_predictions(name, path, lenient=lenient)
                predictions.aligned(trace, predictions.draft_names[0], lenient=True)


@pytest.mark.parametrize("name", agent_logs.BUILDERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans(), contexts=st.booleans())
def test_damaged_logs(name, data, lenient, contexts):
    log = data.draw(damaged(name))
    check(name, agent_logs.written(name, log), lenient, contexts=contexts and name != "swe-agent")


@settings(max_examples=60, deadline=None)
@given(log=damaged("inspect-ai"), lenient=st.booleans())
def test_damaged_archives(log, lenient):
    samples = log.get("samples")
    samples = [s for s in samples if isinstance(s, dict)] if isinstance(samples, list) else []
    kept = [{"id": 1, "epoch": 1, **sample} for sample in samples]
    kept = [s | {"id": n} for n, s in enumerate(kept)]
    check("inspect-ai", agent_logs.as_eval(log | {"samples": kept}), lenient, suffix=".eval")


@pytest.mark.parametrize("name", [*agent_logs.BUILDERS, "table"])
@settings(max_examples=60, deadline=None)
@given(records=st.lists(anything, max_size=3), lenient=st.booleans())
def test_any_json(name, records, lenient):
    check(name, "".join(json.dumps(record) + "\n" for record in records).encode(), lenient)


@pytest.mark.parametrize(
    "start", [b"", b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b"{", b"[", b"task,gen_s\n"]
)
@pytest.mark.parametrize("name", [*agent_logs.BUILDERS, "table"])
@settings(max_examples=15, deadline=None)
@given(content=st.binary(max_size=200), lenient=st.booleans())
def test_any_bytes(name, start, content, lenient):
    check(name, start + content, lenient)


@settings(max_examples=150, deadline=None)
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "", " "]),
            st.sampled_from(["1", "2.5", "", "x", "-1", "nan", "inf", "1e400", "٣"]),
            st.sampled_from(["", "1", "2", "-1", "1.5", "9" * 30]),
            st.sampled_from(["", "go", '[{"name": "a"}]', "[1]", "[{}]", '"']),
            st.text(max_size=4),
        ),
        max_size=5,
    ),
    lenient=st.booleans(),
)
def test_any_table(cells, lenient):
    lines = [",".join(cell.replace("\r", "").replace("\n", "") for cell in row) for row in cells]
    content = "\n".join(["task,gen_s,step,action,segment", *lines])
    check("table", content.encode("utf-8", "surrogatepass"), lenient)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"task": st.just("a") | anything, "gen_s": st.floats(0.1, 9) | anything},
            optional={
                name: anything
                for name in (
                    "run",
                    "step",
                    "start",
                    "tool",
                    "arguments",
                    "kind",
                    "action",
                    "tool_s",
                )
            },
        ),
        max_size=4,
    ),
    lenient=st.booleans(),
)
def test_any_table_of_json(rows, lenient):
    content = "".join(json.dumps(row) + "\n" for row in rows)
    check("table", content.encode(), lenient, suffix=".jsonl")
