"""Whatever a log of spans holds, its importer returns a trace or says in one line why not."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError
from leapmodel.importers import import_log
from leapmodel.trace import read_trace, write_trace
from tests.importers.span_logs import FIXTURES, FORMAT_OF, SPAN_FORMATS
from tests.importers.test_import_anything import anything, containers

odd = anything | st.sampled_from(
    ["generation", "LLM", "{}", '{"role": "assistant"}', "2026-01-01T00:00:00", 2**70, -1, "\ud800"]
)


def records_of(name):
    text = (FIXTURES / name).read_text()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    whole = json.loads(text)
    return whole if isinstance(whole, list) else [whole]


@st.composite
def damaged(draw, name):
    """A good log in which up to four values were replaced, removed, repeated or swapped."""
    records = records_of(name)
    for _ in range(draw(st.integers(1, 4))):
        places = containers(records)
        if not places:
            break
        place = draw(st.sampled_from(places))
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key, other = draw(st.sampled_from(keys)), draw(st.sampled_from(keys))
        how = draw(st.sampled_from(["replace", "remove", "repeat", "swap"]))
        if how == "replace":
            place[key] = draw(odd)
        elif how == "remove":
            del place[key]
        elif how == "swap":
            place[key], place[other] = place[other], place[key]
        elif isinstance(place, list):
            place.insert(other, place[key])
    if draw(st.booleans()):
        return json.dumps(records).encode()
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def check(format_name, content, lenient, with_contexts=False):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_bytes(content)
        contexts = Path(folder) / "contexts.jsonl" if with_contexts else None
        try:
            trace = import_log(format_name, path, lenient=lenient, contexts=contexts)
        except DataError as error:
            message = str(error)
        else:
            message = None
        if message is not None:
            assert "\n" not in message
            assert message.startswith((str(path), str(contexts)))
            return
        write_trace(trace, Path(folder) / "t.parquet")
        assert read_trace(Path(folder) / "t.parquet").n_steps == trace.n_steps
        assert (trace.gen_s > 0).all()
        assert (trace.tool_s >= 0).all()


@pytest.mark.parametrize("name", FORMAT_OF)
@settings(max_examples=80, deadline=None)
@given(data=st.data(), lenient=st.booleans(), with_contexts=st.booleans())
def test_damaged_logs(name, data, lenient, with_contexts):
    check(FORMAT_OF[name], data.draw(damaged(name)), lenient, with_contexts)


@pytest.mark.parametrize("name", SPAN_FORMATS)
@settings(max_examples=40, deadline=None)
@given(records=st.lists(anything, max_size=3), lenient=st.booleans())
def test_any_json(name, records, lenient):
    check(name, "".join(json.dumps(record) + "\n" for record in records).encode(), lenient)


@pytest.mark.parametrize("name", SPAN_FORMATS)
@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=200), lenient=st.booleans())
def test_any_bytes(name, content, lenient):
    check(name, content, lenient)


@pytest.mark.parametrize("name", FORMAT_OF)
def test_a_record_of_too_many_levels_is_refused_not_a_crash(name):
    deep = json.loads("[" * 900 + "]" * 900)
    for key in ("attributes", "output", "outputs", "span_data", "response", "spans"):
        record = {**records_of(name)[0], key: {"llm": deep, "gen_ai.output.messages": deep}}
        check(FORMAT_OF[name], json.dumps(record).encode(), lenient=False)
