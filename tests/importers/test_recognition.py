import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leapmodel.errors import DataError, UsageError
from leapmodel.importers import FORMATS, import_log, recognise
from leapmodel.importers.recognition import sample_of
from leapmodel.importers.records import Sample
from tests.importers import agent_logs
from tests.importers.test_import_anything import anything

NAMES = [*agent_logs.BUILDERS, "table"]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_one_format_recognises_each_log(name, packed, tmp_path):
    path = tmp_path / agent_logs.name_of(name)
    content = agent_logs.written(name)
    path.write_bytes(gzip.compress(content) if packed else content)
    assert recognise(path) is FORMATS[name]


@pytest.mark.parametrize("name", NAMES)
def test_so_does_the_head_of_a_long_log(name, tmp_path):
    content = agent_logs.written(name)
    if name in agent_logs.LINE_BY_LINE or name == "table":
        content *= 200
    else:
        content = content[:-1] + b', "tail": "' + b"x" * 2**17 + b'"}'
    path = tmp_path / agent_logs.name_of(name)
    path.write_bytes(content)
    assert recognise(path) is FORMATS[name]


def test_a_sample_holds_the_first_line_or_a_short_document(tmp_path):
    path = tmp_path / "x"
    for content, record in [
        (b'{"a": 1}\n{"b": 2}\n', {"a": 1}),
        (b'{\n"a": 1\n}\n', {"a": 1}),
        (b"[\n1]", [1]),
        (b"task,gen_s\n", None),
        (b'{"a": "' + b"x" * 2**17, None),
        (b"[" * 5000, None),
        (b"", None),
    ]:
        path.write_bytes(content)
        sample = sample_of(path)
        assert sample.record == record
        assert len(sample.head) <= 2**16


def test_auto_imports_what_it_recognises(tmp_path):
    path = tmp_path / "log.json"
    path.write_bytes(agent_logs.written("tau2"))
    trace = import_log("auto", path)
    assert trace.metadata["format"] == "tau2"
    assert import_log("AUTO", tmp_path).frame.equals(trace.frame)


def test_what_none_recognises_is_refused_with_what_to_type(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text("{}")
    with pytest.raises(DataError, match=r"one of the formats bfcl, claude-code, .* found one that"):
        recognise(path)
    with pytest.raises(DataError, match=r"leapmodel import FORMAT notes\.json"):
        recognise(path)


def test_what_several_recognise_is_refused_with_their_names(tmp_path):
    path = tmp_path / "both.json"
    path.write_bytes(agent_logs.written("tau2")[:-1] + b', "schema_version": "ATIF-v1.7"}')
    with pytest.raises(DataError, match="one that tau2 and atif recognise"):
        recognise(path)


def test_two_formats_at_once_are_refused(tmp_path):
    paths = []
    for name in ("codex", "atif"):
        paths.append(tmp_path / agent_logs.name_of(name))
        paths[-1].write_bytes(agent_logs.written(name))
    with pytest.raises(DataError, match=r"expected codex, as .* is, found atif"):
        recognise(paths)


def test_a_folder_shows_its_format_in_its_first_files(tmp_path):
    (tmp_path / "0.json").write_text("{}")
    (tmp_path / "1.jsonl").write_bytes(agent_logs.written("codex"))
    assert recognise(tmp_path).name == "codex"


def test_compressed_files_of_a_folder_belong_to_it(tmp_path):
    for number in range(2):
        content = gzip.compress(agent_logs.written("codex"))
        (tmp_path / f"walk_{number}.jsonl.gz").write_bytes(content)
    assert import_log("auto", tmp_path).task_names == ["walk_0", "walk_1"]


def test_nothing_to_recognise(tmp_path):
    with pytest.raises(UsageError, match="at least one file"):
        recognise([])
    with pytest.raises(DataError, match="nothing there"):
        recognise(tmp_path / "absent")


@settings(max_examples=300, deadline=None)
@given(record=anything, head=st.binary(max_size=40))
def test_nothing_upsets_a_recogniser(record, head):
    sample = Sample(Path("x"), head + json.dumps(record).encode(), record)
    for entry in FORMATS.values():
        assert entry.recognises(sample) in (True, False)


def test_every_format_can_be_recognised():
    assert [name for name, entry in FORMATS.items() if entry.recognises is None] == []


OF_FOLDER = {
    "bfcl_results": "bfcl",
    "claude_code": "claude-code",
    "codex": "codex",
    "inspect_ai": "inspect-ai",
    "langfuse": "langfuse",
    "langsmith": "langsmith",
    "mini_swe_agent": "mini-swe-agent",
    "openinference": "openinference",
    "otel": "otlp",
    "speculative_runs": "speculative-tool-calls",
    "swe_agent": "swe-agent",
    "tau2_results": "tau2",
}


def test_exactly_one_format_recognises_each_real_log(shared_traces):
    seen = set()
    for path in sorted(shared_traces.rglob("*")):
        folder = path.relative_to(shared_traces).parts[0]
        if not path.is_file() or folder == "tasks" or path.name == "SOURCES.tsv":
            continue
        sample = sample_of(path)
        names = [n for n, entry in FORMATS.items() if entry.recognises and entry.recognises(sample)]
        assert names == [OF_FOLDER[folder]], path.name
        seen.add(folder)
    assert seen == OF_FOLDER.keys()
