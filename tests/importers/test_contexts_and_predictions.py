"""What else an import gives: the contexts of a trace, and the guesses logged beside it."""

import json
from itertools import pairwise

import pytest

from leapmodel.errors import DataError, UsageError
from leapmodel.importers import FORMATS, import_log, import_predictions
from leapmodel.predictions import read_predictions, write_predictions
from tests.importers import agent_logs

NAMES = [n for n in agent_logs.BUILDERS if n != "swe-agent"]


@pytest.fixture
def contexts(tmp_path):
    """Write a format's log and its contexts; return the trace and the contexts' lines."""

    def import_it(name, value=None):
        path, out = tmp_path / agent_logs.name_of(name), tmp_path / "contexts.jsonl"
        path.write_bytes(agent_logs.written(name, value))
        trace = import_log(name, path, contexts=out)
        return trace, [json.loads(line) for line in out.read_text("utf-8").splitlines()]

    return import_it


@pytest.mark.parametrize("name", NAMES)
def test_one_context_a_step_each_the_beginning_of_the_next(name, contexts):
    trace, lines = contexts(name)
    keys = list(zip(trace.frame["task"], trace.frame["run"], trace.frame["step"], strict=True))
    assert [(line["task"], line["run"], line["step"]) for line in lines] == keys
    assert [line["action"] for line in lines] == trace.actions.tolist()
    for first, second in pairwise(lines):
        if second["step"] > 0:
            n = len(first["messages"])
            assert second["messages"][:n] == first["messages"]
            assert second["messages"][n]["role"] == "assistant"


@pytest.mark.parametrize("name", NAMES)
def test_messages_are_of_the_openai_chat_format(name, contexts):
    _, lines = contexts(name)
    for line in lines:
        asked: list[str] = []
        assert line["messages"]
        for message in line["messages"]:
            assert message["role"] in {"system", "user", "assistant", "tool"}
            if message["role"] == "assistant":
                asked = [call["id"] for call in message.get("tool_calls", [])]
                for call in message.get("tool_calls", []):
                    assert call["type"] == "function"
                    assert isinstance(json.loads(call["function"]["arguments"]), dict)
            elif message["role"] == "tool":
                assert message["tool_call_id"] in asked
            if "tool_calls" not in message:
                assert isinstance(message["content"], str)


def test_the_words_of_one_context(contexts):
    _, lines = contexts("tau2")
    assert lines[1]["messages"] == [
        {"role": "system", "content": "Find kites."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "My kite?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find_kite", "arguments": '{"colour": "red"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "lost"},
    ]
    # What the user simulator does with tools of its own is not shown to the agent.
    assert [m["role"] for m in lines[2]["messages"][5:]] == ["assistant", "user"]


def test_attachments_of_inspect_are_looked_up(contexts):
    _, lines = contexts("inspect-ai")
    assert lines[0]["messages"] == [{"role": "user", "content": "What is below?"}]


def test_claude_code_and_bfcl_give_contexts_too(tmp_path, sessions):
    out = tmp_path / "c.jsonl"
    trace = import_log("claude-code", sessions, contexts=out)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(lines) == trace.n_steps
    assert any("without the system prompt" in line for line in trace.metadata["warnings"])
    bfcl = {
        "id": "t",
        "result": [[[{"ls": "{}"}, {"pwd": "{}"}], "Done."], [[{"ls": "{}"}]]],
        "latency": [[1.0, 2.0], [3.0]],
        "inference_log": [
            [{"role": "state_info"}],
            {
                "begin_of_turn_query": [{"role": "user", "content": "List."}],
                "step_0": [
                    {"role": "assistant", "content": ""},
                    {"role": "handler_log", "content": "ok"},
                    {"role": "tool", "content": "a"},
                    {"role": "tool", "content": "b"},
                ],
                "step_1": [{"role": "assistant", "content": "Done."}],
            },
            [{"role": "state_info"}],
            {"begin_of_turn_query": [{"role": "user", "content": "Again."}], "step_0": []},
        ],
    }
    path = tmp_path / "r.json"
    path.write_text(json.dumps(bfcl))
    import_log("bfcl", path, contexts=out)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [len(line["messages"]) for line in lines] == [1, 4, 6]
    assert lines[1]["messages"][2:] == [
        {"role": "tool", "tool_call_id": "call_0_0_0", "content": "a"},
        {"role": "tool", "tool_call_id": "call_0_0_1", "content": "b"},
    ]
    assert lines[2]["messages"][4:] == [
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Again."},
    ]


def test_logs_without_messages_give_no_contexts(tmp_path, result_file):
    out = tmp_path / "c.jsonl"
    with pytest.raises(DataError, match="expected the messages of at least one run"):
        import_log("bfcl", result_file, contexts=out)
    table = tmp_path / "t.csv"
    table.write_text(agent_logs.TABLE)
    with pytest.raises(UsageError, match="table logs hold no messages to write as contexts"):
        import_log("table", table, contexts=out)
    assert not out.exists()


def test_nothing_is_left_behind_by_an_import_that_fails(tmp_path):
    log = agent_logs.openhands()
    log[2]["history"][-1]["timestamp"] = "noon"
    path = tmp_path / "log.jsonl"
    path.write_bytes(agent_logs.written("openhands", log))
    with pytest.raises(DataError, match="line 3"):
        import_log("openhands", path, contexts=tmp_path / "c.jsonl")
    assert [entry.name for entry in tmp_path.iterdir()] == ["log.jsonl"]


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_is_the_same_with_and_without_contexts(name, contexts, tmp_path):
    trace, _ = contexts(name)
    plain = import_log(name, tmp_path / agent_logs.name_of(name))
    assert plain.frame.equals(trace.frame)


@pytest.fixture
def speculative(tmp_path):
    path = tmp_path / "run.json"
    path.write_bytes(agent_logs.written("speculative-tool-calls"))
    return path


def test_guesses_are_predictions_on_the_trace(speculative, tmp_path):
    predictions = import_predictions("auto", speculative)
    assert predictions.draft_names == ["fir-1b"]
    assert predictions.frame["step"].tolist() == [0, 1]
    assert predictions.frame["action"].tolist() == ['hop({"n":1})', 'hop({"n":1})\nskip({"n":1})']
    assert predictions.frame["latency_s"].tolist() == [0.5, 0.75]
    trace = import_log("auto", speculative)
    aligned = predictions.aligned(trace)
    assert aligned.has[0].tolist() == [True, True, False, False]
    assert (aligned.actions[0] == trace.actions)[:2].tolist() == [True, False]
    write_predictions(predictions, tmp_path / "p.parquet")
    assert read_predictions(tmp_path / "p.parquet").frame.equals(predictions.frame)


def test_formats_without_guesses_say_which_have_them(tmp_path, result_file):
    assert [n for n, entry in FORMATS.items() if entry.has_guesses] == ["speculative-tool-calls"]
    with pytest.raises(
        UsageError, match=r"bfcl logs hold no guesses .*\(speculative-tool-calls do"
    ):
        import_predictions("bfcl", result_file)


def test_a_run_without_guesses_is_refused(speculative):
    value = agent_logs.speculative_tool_calls()
    for node in value["trajectory"]:
        node.pop("spec_predictions", None)
    speculative.write_text(json.dumps(value))
    with pytest.raises(DataError, match="expected guesses of a draft in at least one step"):
        import_predictions("speculative-tool-calls", speculative)


def test_real_guesses(shared_traces):
    folder = shared_traces / "speculative_runs" / "results_level1_spec_20251204_155043"
    trace, predictions = import_log("auto", folder), import_predictions("auto", folder)
    aligned = predictions.aligned(trace)
    assert int(aligned.has.sum()) == 216
    assert int((aligned.actions[0] == trace.actions)[aligned.has[0]].sum()) == 12
