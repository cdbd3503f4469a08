"""Whatever a log holds, an importer returns a trace or says in one line why not."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers import import_log
from leapmodel.trace import read_trace, write_trace

FIXTURES = Path(__file__).parent / "fixtures"
LOGS = {
    "bfcl": FIXTURES / "larch-8b_multi_turn_base_result.json",
    "claude-code": FIXTURES / "sessions" / "errand_2.jsonl",
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def containers(value):
    """List every list and object inside a value, itself included."""
    inside = value.values() if isinstance(value, dict) else value
    found = [value] if value else []
    for item in inside:
        if isinstance(item, (dict, list)):
            found += containers(item)
    return found


@st.composite
def damaged(draw, path):
    """A good log in which up to three values were replaced, removed, repeated or swapped."""
    records = [json.loads(line) for line in path.read_text().splitlines() if line]
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.sampled_from(containers(records)))
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        other = draw(st.sampled_from(keys))
        how = draw(st.sampled_from(["replace", "remove", "repeat", "swap"]))
        if how == "replace":
            place[key] = draw(anything)
        elif how == "remove":
            del place[key]
        elif how == "swap":
            place[key], place[other] = place[other], place[key]
        elif isinstance(place, list):
            place.insert(other, place[key])
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def check(format_name, content, lenient):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content)
        try:
            trace = import_log(format_name, path, lenient=lenient)
        except DataError as error:
            message = str(error)
        else:
            write_trace(trace, Path(folder) / "t.parquet")
            assert read_trace(Path(folder) / "t.parquet").n_steps == trace.n_steps
            return
        assert "\n" not in message
        assert message.startswith(str(path))
        assert "row " not in message  # an importer names lines; rows are the trace's


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans())
def test_damaged_logs(name, data, lenient):
    check(name, data.draw(damaged(LOGS[name])), lenient)


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=100, deadline=None)
@given(records=st.lists(anything, max_size=3), lenient=st.booleans())
def test_any_json(name, records, lenient):
    check(name, "".join(json.dumps(record) + "\n" for record in records).encode(), lenient)


@pytest.mark.parametrize("name", LOGS)
@settings(max_examples=50, deadline=None)
@given(content=st.binary(max_size=200), lenient=st.booleans())
def test_any_bytes(name, content, lenient):
    check(name, content, lenient)
