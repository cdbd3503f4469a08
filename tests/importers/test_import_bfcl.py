import json

import numpy as np
import pytest

from leapmodel.actions import RESPOND, same_action
from leapmodel.errors import DataError
from leapmodel.importers import import_log
from leapmodel.trace import read_trace, write_trace

GOOD = {"id": "t", "result": [[[{"ls": "{}"}], []]], "latency": [[1.0, 2.0]]}


def changed(**fields):
    return json.dumps({**GOOD, **fields})


def by_task(trace):
    return {name: rows.reset_index() for name, rows in trace.frame.groupby("task", sort=False)}


def test_turns_are_segments_and_entries_are_steps(result_file):
    rows = by_task(import_log("bfcl", result_file))["multi_turn_base_0"]
    assert rows["segment"].tolist() == [0, 0, 0, 1, 1, 2]
    assert rows["step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert rows["gen_s"].tolist() == [1.5, 0.5, 0.25, 0.75, 0.125, 0.5]
    assert rows["tool_s"].tolist() == [0] * 6
    assert rows["prompt_tokens"].tolist() == [100, 140, 160, 200, 220, 240]
    assert rows["completion_tokens"].tolist() == [20, 10, 5, 11, 4, 6]
    assert rows["action"].tolist() == [
        'open_drawer({"name":"oak"})\ncount_spoons({})',
        'take({"n":2,"what":"spoon"})',
        RESPOND,
        'close_drawer({"name":"oak"})',
        RESPOND,
        RESPOND,
    ]


def test_a_turn_may_end_on_an_unparsable_output_or_a_null_reply(result_file):
    trace = import_log("bfcl", result_file)
    rows = by_task(trace)["multi_turn_base_1"]
    assert rows["segment"].tolist() == [0, 0, 1, 1]
    actions = [None if a != a else a for a in rows["action"]]
    assert actions == [
        'take({"n":1,"what":"fork"})',
        None,
        'take({"n":true,"what":"cup"})',
        RESPOND,
    ]
    assert rows["prompt_tokens"].isna().all()
    unparsed = "outputs that do not parse (null actions): 2 (first in multi_turn_base_1)"
    assert unparsed in trace.metadata["warnings"]


def test_the_prompting_mode_writes_calls_as_python(result_file):
    rows = by_task(import_log("bfcl", result_file))["multi_turn_base_3"]
    assert rows["action"][0] == 'open_drawer({"name":"oak"})\ntake({"n":2,"what":"spoon"})'
    assert rows["action"].isna().tolist() == [False, True, False, False]  # inside a turn: no reply
    assert rows["action"][2] == RESPOND
    assert rows["action"][3] == 'take({"n":1})'  # the step cap


@pytest.mark.parametrize(
    "text",
    [
        "[open_drawer(1)]",
        "[a(**b)]",
        "[f(x=g(1))]",
        "[1, 2, (3)]",
        "[f(]",
        "['\\d', f(x=1)]",
        "[()]",
    ],
)
def test_other_texts_at_the_end_of_a_turn_are_replies(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(changed(result=[[[{"ls": "{}"}], text]]))
    assert import_log("bfcl", path).actions.tolist() == ["ls({})", RESPOND]


def test_failed_tasks_are_listed_and_are_no_error(result_file):
    trace = import_log("bfcl", result_file)
    assert trace.task_names == ["multi_turn_base_0", "multi_turn_base_1", "multi_turn_base_3"]
    assert trace.dropped == ()
    assert trace.metadata["failed_tasks"] == ["multi_turn_base_2"]
    assert "failed tasks left out: 1 (first: multi_turn_base_2)" in trace.metadata["warnings"]
    assert any("tool_s is 0" in line for line in trace.metadata["warnings"])
    assert trace.metadata["target_model"] == "larch-8b"


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_the_trace_survives_writing(result_file, tmp_path, suffix):
    trace = import_log("bfcl", result_file)
    write_trace(trace, tmp_path / f"t{suffix}")
    again = read_trace(tmp_path / f"t{suffix}")
    assert again.metadata == trace.metadata
    assert again.actions.tolist() == trace.actions.tolist()
    np.testing.assert_array_equal(again.gen_s, trace.gen_s)


BAD = {
    "id: expected text, found nothing": json.dumps({"result": [], "latency": []}),
    "id: expected text, found 7": changed(id=7),
    "result: expected a list, found nothing": json.dumps({"id": "t"}),
    "result: expected at least one step, found none": changed(result=[], latency=[]),
    r"result\[0\]: expected a list, found an object": changed(result=[{"ls": "{}"}]),
    r"result\[0\]\[0\]: expected a list, found 3": changed(result=[[3, []]]),
    r"result\[0\]\[0\]\[0\]: expected an object, found the text": changed(result=[[["ls"], []]]),
    r"result\[0\]\[0\]\[0\]: expected one call": changed(result=[[[{}], []]]),
    "latency: expected a list, found nothing": json.dumps({"id": "t", "result": [[[]]]}),
    "latency: expected 1 turns as in result, found 2": changed(latency=[[1.0, 2.0], []]),
    r"latency\[0\]: expected 2 as in result\[0\], found 1": changed(latency=[[1.0]]),
    r"latency\[0\]\[1\]: expected a number > 0, found the text '2'": changed(latency=[[1, "2"]]),
    r"latency\[0\]\[0\]: expected a number > 0, found 0": changed(latency=[[0, 1]]),
    r"latency\[0\]\[0\]: expected a number > 0, found nan": changed(latency=[[float("nan"), 1]]),
    r"latency\[0\]\[0\]: expected a number > 0, found True": changed(latency=[[True, 1]]),
    r"latency\[0\]\[0\]: expected a number > 0, found -1": changed(latency=[[-1, 1]]),
    r"input_token_count\[0\]\[1\]: expected a whole number >= 0": changed(
        input_token_count=[[1, 1.5]]
    ),
    r"output_token_count\[0\]: expected 2": changed(output_token_count=[[1]]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_tasks_are_named_or_dropped(message, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(changed(id="good") + "\n" + BAD[message] + "\n")
    with pytest.raises(DataError, match=rf"r\.json: line 2, column {message}") as caught:
        import_log("bfcl", path)
    assert "\n" not in str(caught.value)
    trace = import_log("bfcl", path, lenient=True)
    assert trace.task_names == ["good"]
    assert [entry.reason for entry in trace.dropped] == [str(caught.value)]


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b'{"id": "t", "resu', "line 2: expected a JSON object, found .*file ends inside"),
        (b"\xff\xfe\n", "line 2: expected UTF-8 text, found byte 0xff at position 1"),
        (b"[1, 2]\n", r"line 2: expected a JSON object, found \[1, 2\]"),
        (b'{"id": "\0"}\n', "line 2: expected JSON text, found binary data"),
        (b"[" * 100_000 + b"\n", "line 2: expected a JSON object"),
    ],
)
def test_damaged_lines_are_named_or_dropped(tail, message, tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(changed().encode() + b"\n" + tail)
    with pytest.raises(DataError, match=message):
        import_log("bfcl", path)
    trace = import_log("bfcl", path, lenient=True)
    assert trace.task_names == ["t"]
    assert [entry.task for entry in trace.dropped] == ["(r.json line 2)"]


def test_too_long_a_line_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("leapmodel.jsonlines.MAX_LINE_BYTES", 1000)
    path = tmp_path / "r.json"
    path.write_text(changed() + "\n" + changed(id="x" * 2000) + "\n")
    with pytest.raises(DataError, match="line 2: expected lines of at most"):
        import_log("bfcl", path)
    assert import_log("bfcl", path, lenient=True).task_names == ["t"]


@pytest.mark.parametrize("lenient", [False, True])
def test_an_empty_file_is_refused(tmp_path, lenient):
    path = tmp_path / "r.json"
    path.touch()
    with pytest.raises(DataError, match=r"found .*an empty file"):
        import_log("bfcl", path, lenient=lenient)


def test_all_failed_or_all_bad_is_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(changed(result="Error"))
    with pytest.raises(DataError, match="at least one task with steps, found none; failed tasks"):
        import_log("bfcl", path)
    path.write_text(changed(latency=3))
    with pytest.raises(DataError, match=r"found 1 bad, the first: .*latency"):
        import_log("bfcl", path, lenient=True)


def known_and_hits(target, draft):
    """Compare step by step over a task until the first difference (DESIGN.md, two runs)."""
    known = hits = 0
    for name in target.keys() & draft.keys():
        for first, second in zip(target[name], draft[name], strict=False):
            known += 1
            if not same_action(first, second):
                break
            hits += 1
    return known, hits


def actions_by_task(trace):
    actions: dict[str, list[str | None]] = {}
    for name, action in zip(trace.frame["task"], trace.actions, strict=True):
        actions.setdefault(name, []).append(action)
    return actions


def as_spelled(folder, size):
    """Read the steps of a file's good tasks, not through the importer: the text of their calls."""
    name = f"gpt-oss-{size}_multi_turn_base_result.json"
    tasks = map(json.loads, (folder / "bfcl_results" / name).read_text("utf-8").splitlines())
    return {
        task["id"]: [json.dumps(step) for turn in task["result"] for step in turn]
        for task in tasks
        if not isinstance(task["result"], str)
    }


def test_known_steps_end_with_the_first_difference():
    target = {"a": ["x", "y", "z"], "b": [None, "y"], "c": ["x"], "target only": ["x"]}
    draft = {"a": ["x", "w", "z"], "b": [None, "y"], "c": ["x", "x"]}
    assert known_and_hits(target, draft) == (4, 2)


class TestRealResults:
    def import_model(self, folder, size):
        name = f"gpt-oss-{size}_multi_turn_base_result.json"
        return import_log("bfcl", folder / "bfcl_results" / name)

    def test_size_and_times(self, shared_traces):
        trace = self.import_model(shared_traces, "120b")
        assert (trace.n_tasks, trace.n_segments, trace.n_steps) == (200, 732, 2178)
        assert trace.gen_s.mean() == pytest.approx(1.7548, abs=5e-5)
        assert trace.gen_s.std() / trace.gen_s.mean() == pytest.approx(1.378, abs=5e-4)
        assert trace.metadata["target_model"] == "gpt-oss-120b"

    def test_pairing_with_the_small_model(self, shared_traces):
        target = actions_by_task(self.import_model(shared_traces, "120b"))
        small = self.import_model(shared_traces, "20b")
        draft = actions_by_task(small)
        assert len(small.metadata["failed_tasks"]) == 5
        assert len(target.keys() & draft.keys()) == 195
        assert known_and_hits(target, draft) == (973, 823)

    def test_pairing_with_arguments_as_the_files_spell_them(self, shared_traces):
        target, draft = (as_spelled(shared_traces, size) for size in ("120b", "20b"))
        assert known_and_hits(target, draft) == (962, 810)

    @pytest.mark.parametrize(("size", "steps"), [("0.6b", 10), ("8b", 13), ("32b", 27)])
    def test_excerpts(self, shared_traces, size, steps):
        trace = import_log("bfcl", shared_traces / "bfcl_results" / f"qwen3-{size}-FC_task0.json")
        assert trace.n_steps == steps
