"""The logs of agents and benchmarks, one by one: what becomes a step, and how long it took."""

import gzip
import json

import pytest

from leapmodel.actions import RESPOND, TERMINATE
from leapmodel.errors import DataError
from leapmodel.importers import import_log
from tests.importers import agent_logs
from tests.importers.agent_logs import iso


@pytest.fixture
def log(tmp_path):
    """Write a log of a format and import it."""

    def import_it(name, value=None, **options):
        path = tmp_path / agent_logs.name_of(name)
        path.write_bytes(agent_logs.written(name, value))
        return import_log(name, path, **options)

    return import_it


def rows(trace, *columns):
    frame = trace.frame[list(columns)].astype(object)
    return frame.where(frame.notna(), None).to_numpy().tolist()


def warned(trace, text):
    return any(text in line for line in trace.metadata["warnings"])


def test_codex(log):
    trace = log("codex")
    assert rows(trace, "segment", "gen_s", "tool_s", "action") == [
        [0, 2.0, 2.0, 'look({"n":1})\ncount({})'],
        [0, 1.0, 0.25, 'patch({"input":"+ spoon"})'],
        [0, 2.25, 0.0, RESPOND],
        [1, 0.75, 0.0, RESPOND],
    ]
    assert rows(trace, "prompt_tokens", "cached_tokens", "completion_tokens")[1] == [100, 60, 5]
    assert trace.metadata["target_model"] == "larch-8b"
    assert trace.task_names == ["log_codex"]


def test_codex_rollouts_of_sub_agents_are_left_out(log):
    records = agent_logs.codex()
    records[0]["payload"]["source"] = {"subagent": {"thread_spawn": {}}}
    with pytest.raises(DataError, match="found none; rollouts of sub-agents left out: 1"):
        log("codex", records)


def test_codex_interrupted_responses_are_left_out(log):
    aborted = {
        "timestamp": iso(30),
        "type": "event_msg",
        "payload": {"type": "turn_aborted", "reason": "interrupted"},
    }
    records = agent_logs.codex()
    records = [*records[:-1], aborted]  # before its tokens were counted
    trace = log("codex", records)
    assert trace.n_steps == 3
    assert warned(trace, "responses interrupted by the user left out: 1")


def test_codex_rollouts_of_old_have_no_times(log):
    records = [{"type": "message", "role": "user", "content": []}]
    with pytest.raises(DataError, match="line 1, column timestamp: expected the time of the rec"):
        log("codex", records)


@pytest.mark.parametrize(("at", "found"), [(5.5, "the same time"), (5.0, "0.5 s before it")])
def test_a_clock_that_stands_still_or_goes_back_is_refused(log, at, found):
    records = agent_logs.codex()
    records[15]["timestamp"] = iso(at)
    with pytest.raises(DataError, match=f"line 16, column timestamp: .* found {found}"):
        log("codex", records)


def test_tau2_trials_are_runs_and_user_messages_end_segments(log):
    trace = log("tau2")
    assert rows(trace, "task", "run", "segment", "gen_s", "tool_s", "action") == [
        ["kite", 0, 0, 1.0, 0.5, 'find_kite({"colour":"red"})'],
        ["kite", 0, 0, 2.0, 0.0, RESPOND],
        ["kite", 0, 1, 0.25, 0.0, RESPOND],
        ["kite", 1, 0, 1.5, 0.5, 'find_kite({"colour":"red"})'],
        ["kite", 1, 0, 2.0, 0.0, RESPOND],
        ["kite", 1, 1, 0.25, 0.0, RESPOND],
    ]
    assert trace.metadata["target_model"] == "larch-8b"
    for text in (
        "greetings that no model generated left out: 2",
        "times without a zone, taken as UTC: 18",
        "generation times worked out from the times of messages: 6",
    ):
        assert warned(trace, text)


def test_tau2_generation_times_count_where_they_are_given(log):
    results = agent_logs.tau2()
    for simulation in results["simulations"]:
        for number, message in enumerate(simulation["messages"][1:], start=1):
            if message["role"] == "assistant":
                message["generation_time_seconds"] = number / 10
    trace = log("tau2", results)
    assert trace.gen_s.tolist() == [0.2, 0.4, 0.8] * 2
    assert not warned(trace, "worked out")


def test_tau2_with_one_trial_a_file_counts_files_as_runs(log, tmp_path):
    results = agent_logs.tau2()
    results["info"]["num_trials"] = 1
    results["simulations"] = results["simulations"][:1]
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(json.dumps(results))
    assert import_log("tau2", paths).frame["run"].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("as_archive", [False, True])
def test_inspect(tmp_path, as_archive):
    log = agent_logs.inspect_ai()
    path = tmp_path / ("log.eval" if as_archive else "log.json")
    path.write_bytes(agent_logs.as_eval(log) if as_archive else json.dumps(log).encode())
    trace = import_log("inspect-ai", path)
    assert rows(trace, "task", "segment", "gen_s", "tool_s", "action") == [
        ["garden/1", 0, 1.5, 3.0, 'dig({"depth":2})\ndig({"depth":3})'],
        ["garden/1", 0, 0.5, 0.0, RESPOND],
        ["garden/b", 0, 0.75, 0.0, RESPOND],
    ]
    for text in (
        "retries of model calls (their time is in no step): 1",
        "model calls of tools and sub-agents left out: 1",
        "model calls of scorers left out: 1",
        "generation times that hold retries and waits: 1 (first in garden/b)",
    ):
        assert warned(trace, text)


def test_inspect_epochs_are_runs(log):
    value = agent_logs.inspect_ai()
    value["eval"]["config"]["epochs"] = 2
    value["samples"][1] |= {"id": 1, "epoch": 2}
    assert log("inspect-ai", value).frame["run"].tolist() == [0, 0, 1]


def test_inspect_before_spans_brackets_its_scorers(log):
    value = agent_logs.inspect_ai()
    events = value["samples"][0]["events"]
    events[7] = {"event": "step", "action": "begin", "type": "scorer", "name": "x"}
    del events[8]["span_id"]
    assert log("inspect-ai", value).n_steps == 3


def test_inspect_answers_from_the_cache_are_refused(log):
    value = agent_logs.inspect_ai()
    value["samples"][0]["events"][1]["cache"] = "read"
    with pytest.raises(DataError, match=r"row 1, column .*cache: .* read from inspect's cache"):
        log("inspect-ai", value)
    trace = log("inspect-ai", value, lenient=True)
    assert trace.task_names == ["garden/b"]


def test_inspect_models_with_a_role_or_of_another_name_are_not_the_target(log):
    value = agent_logs.inspect_ai()
    value["samples"][1]["events"] += [
        value["samples"][1]["events"][0] | {"role": "critic"},
        value["samples"][1]["events"][0] | {"model": "forest/fir-1b"},
        value["samples"][1]["events"][0] | {"pending": True},
    ]
    trace = log("inspect-ai", value)
    assert trace.n_steps == 3
    assert warned(trace, "model calls of models with a role of their own left out: 1")
    assert warned(trace, "model calls of other models left out: 1")


def test_inspect_samples_with_an_error_failed(log):
    value = agent_logs.inspect_ai()
    value["samples"][0]["error"] = {"message": "out of memory"}
    assert log("inspect-ai", value).metadata["failed_tasks"] == ["garden/1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 and nothing more", "expected a whole .eval archive"),
        (
            agent_logs.as_eval({"eval": {}, "samples": []}),
            "expected samples in the log, found none",
        ),
    ],
)
def test_damaged_archives(tmp_path, content, message):
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        import_log("inspect-ai", path)


def test_openhands_of_both_generations(log):
    trace = log("openhands")
    assert rows(trace, "task", "segment", "gen_s", "tool_s", "action") == [
        ["shed-1", 0, 2.25, 1.5, 'run({"command":"ls"})\nlook({})'],
        ["shed-1", 0, 1.75, 0.0, TERMINATE],
        ["shed-3", 0, 1.0, 1.5, 'sweep({"at":1})\nsweep({"at":1})'],
        ["shed-3", 0, 1.5, 0.0, RESPOND],
        ["shed-3", 1, 0.5, 0.0, RESPOND],
    ]
    assert rows(trace, "prompt_tokens", "cached_tokens", "completion_tokens")[0] == [9, 3, 2]
    assert trace.metadata["failed_tasks"] == ["shed-2"]
    assert warned(trace, "generation times worked out from the times of events: 3 (first in shed-3")


def test_openhands_before_function_calls_in_pairs(log):
    task = {
        "instance_id": "old",
        "history": [
            [
                {"source": "user", "action": "message", "args": {"content": "Hi."}},
                {"observation": "null", "content": ""},
            ],
            [
                {
                    "source": "agent",
                    "action": "run",
                    "args": {"command": "ls", "thought": "Hm."},
                    "timestamp": iso(1, ""),
                },
                {"observation": "run", "content": "mess", "timestamp": iso(2, "")},
            ],
            [{"source": "agent", "action": "finish", "args": {}, "timestamp": iso(4, "")}],
        ],
    }
    trace = log("openhands", [task])
    assert rows(trace, "gen_s", "action") == [[2.0, TERMINATE]]
    assert warned(trace, "messages with no time before them left out: 1")


def test_mini_swe_agent(log):
    trace = log("mini-swe-agent")
    assert rows(trace, "task", "gen_s", "tool_s", "action") == [
        ["wood-7", 1.5, 1.0, 'bash({"command":"peel log"})'],
        ["wood-7", 5.0, 0.0, 'bash({"command":"submit"})'],
    ]
    assert warned(trace, "unreadable answers, whose time counts in the next step: 1")


@pytest.mark.parametrize("whole", [True, False])
def test_mini_swe_agent_without_times_is_refused(log, whole):
    value = agent_logs.mini_swe_agent()
    for message in value["messages"]:
        message.pop("extra", None)
    with pytest.raises(DataError, match=r"messages\[2\]\.extra\.timestamp: .* since version 2"):
        log("mini-swe-agent", value if whole else value["messages"])


def test_swe_agent_is_refused_with_the_reason(log):
    with pytest.raises(DataError, match="logs how long commands ran, not how long the model took"):
        log("swe-agent")


def test_atif(log):
    trace = log("atif")
    assert rows(trace, "task", "gen_s", "tool_s", "action") == [
        ["log_atif", 2.0, 0.0, 'saw({"cm":10})'],
        ["log_atif", 0.75, 0.0, RESPOND],
    ]
    assert warned(trace, "hold the tool time of one of them")
    assert warned(trace, "steps without a model call left out: 1")


def test_atif_trials_are_named_by_their_folders(tmp_path):
    paths = []
    for trial in ("shelf__aB3", "shelf__cD4", "chair__eF5"):
        folder = tmp_path / trial / "agent"
        folder.mkdir(parents=True)
        paths.append(folder / "trajectory.json")
        paths[-1].write_text(json.dumps(agent_logs.atif()))
    frame = import_log("atif", paths).frame
    assert frame[["task", "run"]].drop_duplicates().to_numpy().tolist() == [
        ["shelf", 0],
        ["shelf", 1],
        ["chair", 0],
    ]


def test_atif_without_times_is_refused(log):
    value = agent_logs.atif()
    for step in value["steps"]:
        step.pop("timestamp", None)
    del value["steps"][3]
    with pytest.raises(DataError, match=r"steps\[2\]\.timestamp: expected the time of each step"):
        log("atif", value)


def test_atif_copied_context_is_no_step(log):
    value = agent_logs.atif()
    value["steps"][2]["is_copied_context"] = True
    assert log("atif", value).n_steps == 1


def test_speculative_tool_calls(log):
    trace = log("speculative-tool-calls")
    assert rows(trace, "gen_s", "tool_s", "action") == [
        [2.5, 1.25, 'hop({"n":1})'],
        [3.5, 0.25, 'hop({"n":1})\nhop({"n":1})'],
        [4.5, 0.0, None],
        [1.5, 0.0, RESPOND],
    ]


def test_constant_times_are_placeholders(log):
    value = agent_logs.speculative_tool_calls()
    value["trajectory"] = value["trajectory"][1:2] * 12
    with pytest.raises(DataError, match=r"column gen_s: .* found 2\.5 s for each of 12 steps"):
        log("speculative-tool-calls", value)


@pytest.mark.parametrize("name", ["codex", "tau2", "inspect-ai", "openhands", "atif"])
def test_gzip_is_read_as_it_is(name, tmp_path):
    plain, packed = (tmp_path / f"{kind}_{agent_logs.name_of(name)}" for kind in ("a", "b"))
    plain.write_bytes(agent_logs.written(name))
    packed.write_bytes(gzip.compress(agent_logs.written(name)))
    first, second = (import_log(name, path) for path in (plain, packed))
    assert first.gen_s.tolist() == second.gen_s.tolist()


@pytest.mark.parametrize("name", ["tau2", "inspect-ai"])
def test_large_documents_are_streamed_with_the_same_result(name, log, monkeypatch):
    whole = log(name)
    monkeypatch.setattr("leapmodel.importers.nested.LARGEST_WHOLE", 100)
    streamed = log(name)
    assert streamed.frame.equals(whole.frame)
    assert streamed.metadata == whole.metadata


@pytest.mark.parametrize("name", [n for n in agent_logs.BUILDERS if n != "swe-agent"])
def test_a_bad_task_is_dropped_in_lenient_use(name, tmp_path):
    good, bad = (tmp_path / f"{kind}_{agent_logs.name_of(name)}" for kind in ("good", "bad"))
    good.write_bytes(agent_logs.written(name))
    bad.write_bytes(b'{"simulations": [{}], "instance_id": 1.5, "eval": 3, "steps": "x"}\n')
    with pytest.raises(DataError, match="bad_log"):
        import_log(name, [bad, good])
    trace = import_log(name, [bad, good], lenient=True)
    assert trace.n_steps == import_log(name, good).n_steps
    assert len(trace.dropped) == 1


class TestRealLogs:
    @pytest.mark.parametrize(
        ("name", "where", "sizes", "mean", "cv"),
        [
            ("codex", "codex", (1, 1, 28), 10.9320, 2.0124),
            ("tau2", "tau2_results", (10, 92, 171), 1.8180, 0.6702),
            (
                "speculative-tool-calls",
                "speculative_runs/results_level1_baseline_20251203_002006",
                (53, 53, 296),
                24.0154,
                1.3283,
            ),
            (
                "speculative-tool-calls",
                "speculative_runs/results_level1_spec_20251204_155043",
                (52, 52, 276),
                30.9480,
                0.8566,
            ),
        ],
    )
    def test_size_and_times(self, shared_traces, name, where, sizes, mean, cv):
        trace = import_log("auto", shared_traces / where)
        assert trace.metadata["format"] == name
        assert (trace.n_tasks, trace.n_segments, trace.n_steps) == sizes
        assert trace.gen_s.mean() == pytest.approx(mean, abs=1e-4)
        assert trace.gen_s.std() / trace.gen_s.mean() == pytest.approx(cv, abs=1e-4)

    def test_inspect(self, shared_traces):
        files = sorted((shared_traces / "inspect_ai").iterdir())
        assert [import_log("auto", file).n_steps for file in files[:2]] == [10, 3]
        with pytest.raises(DataError, match="messages alone carry no times, found nothing"):
            import_log("auto", files[2])

    @pytest.mark.parametrize("folder", ["mini_swe_agent", "swe_agent"])
    def test_logs_without_times_are_refused(self, shared_traces, folder):
        for file in (shared_traces / folder).iterdir():
            with pytest.raises(DataError, match="expected the time"):
                import_log("auto", file)
