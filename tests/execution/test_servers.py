"""Servers are started, waited for and stopped, whatever happens; a stub stands for vLLM."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leapmodel.cli import main
from leapmodel.errors import EngineError, UsageError
from leapmodel.execution.precision import cpu_precision
from leapmodel.execution.serving.command import server_command, server_environment
from leapmodel.execution.serving.config import ServerConfig, ServingConfig
from leapmodel.execution.serving.presets import PRESETS, preset
from leapmodel.execution.serving.process import ServerDied
from leapmodel.execution.serving.servers import serving
from leapmodel.execution.serving.settings_file import read_serving_config

STUB = Path(__file__).with_name("stub_server.py")


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter that seems to have vLLM."""
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exit 0\nshift 2\nexec {sys.executable} {STUB} "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


@pytest.fixture
def config(python: str, tmp_path: Path) -> ServingConfig:
    server = ServerConfig(model="some/model", python=python)
    return ServingConfig(server, server, logs=str(tmp_path / "logs"))


def doing(config: ServingConfig, role: str, what: str) -> ServingConfig:
    changed = {"environment": {"STUB": what}}
    return config.replacing(
        target=changed if role == "target" else {}, draft=changed if role == "draft" else {}
    )


def child_of(log: str | Path) -> int:
    line = next(x for x in Path(log).read_text().splitlines() if x.startswith("child:"))
    return int(line.split()[1])


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def gone(pid: int, timeout_s: float = 15) -> bool:
    deadline = time.monotonic() + timeout_s
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs(pid)


def test_both_serve_while_the_body_runs_and_nothing_is_left(config: ServingConfig):
    said: list[str] = []
    with serving(config, said.append) as servers:
        assert servers.draft is not None
        assert servers.target_url != servers.draft_url
        assert servers.target.answers()
        assert servers.draft.answers()
        pids = [servers.target.pid, servers.draft.pid]
        pids += [child_of(servers.target.log), child_of(servers.draft.log)]
        assert all(map(runs, pids))
        servers.check()
    assert all(map(gone, pids))
    assert sum("target ready after" in text for text in said) == 1


def test_a_server_with_its_children_keeps_to_its_cores(config: ServingConfig):
    last = max(os.sched_getaffinity(0))
    with serving(config.replacing(target={"cores": str(last)}, draft={})) as servers:
        for pid in (servers.target.pid, child_of(servers.target.log)):
            assert os.sched_getaffinity(pid) == {last}
        assert servers.draft is not None
        assert os.sched_getaffinity(servers.draft.pid) == os.sched_getaffinity(0)


def test_without_a_draft_the_target_is_its_own(config: ServingConfig):
    with serving(replace(config, draft=None)) as servers:
        assert servers.draft is None
        assert servers.draft_url == servers.target_url


@pytest.mark.parametrize("role", ["target", "draft"])
def test_one_that_does_not_start_is_named_with_its_cause_and_the_other_stopped(
    config: ServingConfig, role: str
):
    with pytest.raises(ServerDied) as caught, serving(doing(config, role, "die")):
        pass
    log = Path(config.logs) / f"{role}.log"
    assert str(caught.value) == (
        f"the {role}'s server ended with exit status 3 before it was ready: ValueError: no memory "
        f"for the KV cache (see {log})"
    )
    assert caught.value.tail[-1].startswith("RuntimeError")
    for name in ("target", "draft"):
        assert gone(child_of(Path(config.logs) / f"{name}.log"))


def test_one_that_is_never_ready_is_given_up(config: ServingConfig):
    slow = replace(doing(config, "target", "never ready"), start_timeout_s=0.5)
    with pytest.raises(EngineError, match=r"the target's server was not ready after"):  # noqa: SIM117
        with serving(slow):
            pass


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_crash_stops_the_other_and_explains_the_engine_error_it_causes(
    config: ServingConfig, role: str
):
    with pytest.raises(ServerDied) as caught, serving(config) as servers:  # noqa: PT012
        assert servers.draft is not None
        victim, other = servers.target, servers.draft
        if role == "draft":
            victim, other = other, victim
        os.killpg(victim.pid, signal.SIGKILL)
        raise EngineError("a connection was reset")
    assert str(caught.value).startswith(
        f"the {role}'s server was killed by SIGKILL (out of memory?)"
    )
    assert gone(other.pid)


def test_a_crash_is_noticed_while_waiting(config: ServingConfig):
    with serving(config) as servers:
        assert servers.draft is not None
        os.kill(servers.draft.pid, signal.SIGSEGV)
        with pytest.raises(ServerDied, match="the draft's server was killed by SIGSEGV"):
            servers.wait()


def test_a_body_that_fails_for_another_reason_keeps_its_error(config: ServingConfig):
    with pytest.raises(UsageError, match="mine"), serving(config) as servers:  # noqa: PT012
        pid = servers.target.pid
        raise UsageError("mine")
    assert gone(pid)


def test_one_that_ignores_being_asked_is_killed(config: ServingConfig):
    with serving(doing(config, "target", "stubborn")) as servers:
        pids = [servers.target.pid, child_of(servers.target.log)]
        servers.target.stop(patience_s=0.2)
        assert all(map(gone, pids))
        servers._ended.set()


@contextmanager
def command_line(config: ServingConfig, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """``leapmodel serve``, once it serves."""
    args = ["serve", "--preset", "cpu", "--target-model", "m/t", "--draft-model", "m/d"]
    args += ["--python", str(config.target.python), "--logs", config.logs]
    with subprocess.Popen(
        [sys.executable, "-m", "leapmodel", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "LEAPMODEL_API_KEY": "sesame", **environment},
    ) as process:
        assert process.stdout is not None
        try:
            while (line := process.stdout.readline()) and not line.startswith("serving"):
                pass
            assert line, process.communicate()[1]
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_the_command_leaves_nothing_however_it_ends(
    config: ServingConfig, how: signal.Signals, status: int
):
    with command_line(config) as process:
        children = [child_of(Path(config.logs) / f"{role}.log") for role in ("target", "draft")]
        process.send_signal(how)
        _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert all(map(gone, children))


def test_the_command_shows_the_log_of_one_that_died(config: ServingConfig):
    with command_line(config) as process:
        found = subprocess.run(
            ["pgrep", "-f", f"{STUB} .*--served-model-name m/d"], capture_output=True, text=True
        )
        os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "  draft | child: " in err
    assert err.splitlines()[-1].startswith(
        "leapmodel: error: the draft's server was killed by SIGKILL"
    )


def test_an_api_key_is_in_the_environment_alone(config: ServingConfig):
    with command_line(config) as process:
        log = (Path(config.logs) / "target.log").read_text()
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)
    assert "key: sesame" in log  # the stub tells; vLLM does not
    assert "sesame" not in log.replace("key: sesame", "") + listed + "".join(said)


def test_two_interruptions_kill_at_once(config: ServingConfig):
    with command_line(config, STUB="stubborn") as process:  # SIGTERM would not end it
        target = child_of(Path(config.logs) / "target.log")
        began_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert time.monotonic() - began_s < 8  # and not the ten seconds it is given
    assert gone(target)


# Settings


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"cpu"}))
def test_presets_of_the_paper_can_be_started_as_they_are(name: str):
    preset(name).check()
    assert preset(name).one_after_the_other


@pytest.mark.parametrize(
    ("name", "context", "shares", "sequences", "reasons"),
    [
        ("openagi", 2048, (0.82, 0.10), (8, 2), False),
        ("taskbench", 4096, (0.85, 0.10), (4, 2), False),
        ("tau2", 16384, (0.88, 0.08), (4, 4), True),
        ("bfcl", 24576, (0.88, 0.06), (4, 1), True),
        ("openagi-study", 2048, (0.82, 0.14), (8, 2), False),
        ("taskbench-study", 4096, (0.82, 0.14), (4, 2), False),
        ("tau2-study", 12288, (0.83, 0.13), (4, 4), True),
        ("bfcl-study", 15360, (0.84, 0.135), (4, 1), True),
    ],
)
def test_presets_are_table_17s(name: str, context: int, shares: Any, sequences: Any, reasons: bool):
    config = preset(name)
    assert config.draft is not None
    servers = (config.target, config.draft)
    assert [s.max_model_len for s in servers] == [context, context]
    assert tuple(s.gpu_memory_utilization for s in servers) == shares
    assert tuple(s.max_num_seqs for s in servers) == sequences
    assert (config.target.reasoning_parser == "qwen3") is reasons
    assert (config.target.structured_outputs == "xgrammar") is reasons
    assert (config.target.model, config.draft.model) == ("Qwen/Qwen3-32B", "Qwen/Qwen3-0.6B")
    assert config.draft.max_lora_rank == 64


def test_the_cpu_preset_is_what_is_known_to_work():
    config = preset("cpu").replacing(target={"model": "m/t"}, draft={"model": "m/d"})
    assert config.draft is not None
    config.check()
    command = " ".join(server_command(config.draft, host="127.0.0.1", port=1))
    for option in (
        "--enforce-eager", f"--dtype {cpu_precision()}", "--max-num-seqs 4", "--block-size 32",
        "--seed 0", "--kv-cache-memory-bytes 536870912", "--generation-config vllm",
        '--structured-outputs-config {"backend":"xgrammar","disable_any_whitespace":true}',
        "--enable-lora --max-lora-rank 64 --max-loras 2",
    ):  # fmt: skip
        assert option in command
    environment = server_environment(config.draft, base={})
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"  # confined as a whole
    assert environment["OMP_NUM_THREADS"] == "1"
    assert "--distributed-executor-backend uni" in command
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert environment["VLLM_SERVER_DEV_MODE"] == "1"
    assert environment["VLLM_ALLOW_RUNTIME_LORA_UPDATING"] == "True"
    assert "VLLM_ALLOW_RUNTIME_LORA_UPDATING" not in server_environment(config.target, base={})


def test_adapters_take_the_next_rank_vllm_knows(tmp_path: Path):
    (tmp_path / "adapter_config.json").write_text('{"r": 24}')
    server = ServerConfig(model="m/d", max_lora_rank=24, adapters={"trained": str(tmp_path)})
    server.check("draft")
    command = server_command(server, host="127.0.0.1", port=1)
    assert command[command.index("--max-lora-rank") + 1] == "32"
    assert command[-2:] == ["--lora-modules", f"trained={tmp_path}"]
    with pytest.raises(UsageError, match="has rank 24, above max_lora_rank 16"):
        replace(server, max_lora_rank=16).check("draft")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("preset = 'cpu", "expected TOML, found "),
        ("preset = 'cpo'", "no preset 'cpo'; did you mean cpu?"),
        ("hots = '::'", "column hots: expected host, found an unknown key"),
        ("[target]\nmodle = 'x'", "column target.modle: expected model, found an unknown key"),
        ("[target]\nport = 'x'", "column target.port: expected a whole number, found 'x'"),
        ("[draft]\nport = true", "column draft.port: expected a whole number, found True"),
        ("draft = 3", "column draft: expected a table, found 3"),
        ("[draft]\nadapters = ['x']", "column draft.adapters: expected a table of texts"),
        (
            "preset = 'cpu'",
            "target: expected a model (a hub's name, or a folder such as leapmodel prepare makes),"
            " found none",
        ),
        ("[target]\nmodel = '/nowhere'", "target: /nowhere: expected a model's folder"),
        ("[target]\nmodel = 'a/b'\nport = 0", "target: port: expected 1 to 65535, found 0"),
        (
            "[target]\nmodel = 'a/b'\ngpu_memory_utilization = 1.5",
            "target: gpu_memory_utilization: expected 0 to 1, found 1.5",
        ),
        ("[target]\nmodel='a/b'\ncores = '0-'", "cores: expected such as 0 or 0-3,6, found '0-'"),
        ("[target]\nmodel='a/b'\ncores = '0,4096'", "target: cores: expected some of [0"),
        (
            "preset = 'openagi'\n[draft]\ngpu_memory_utilization = 0.2",
            "gpu_memory_utilization: target and draft share a GPU and want 1.02 of it",
        ),
        (
            "preset = 'openagi'\n[draft]\nadapters = {a = 'nowhere'}",
            "nowhere: has no adapter_config.json",
        ),
        (
            "preset='openagi'\n[target]\nport = 9000\n[draft]\nport = 9000",
            "target and draft can't both have port 9000",
        ),
    ],
)
def test_a_wrong_file_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "serve.toml"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["serve", "--config", str(path), "--dry-run"])
    assert stop.value.code in (1, 2)
    out = capsys.readouterr()
    assert out.out == ""
    assert len(out.err.splitlines()) == 1
    assert message in out.err


def test_a_file_changes_its_preset(tmp_path: Path):
    (tmp_path / "adapter").mkdir()
    path = tmp_path / "serve.toml"
    path.write_text(
        "preset = 'tau2'\nhost = '0.0.0.0'\nstart_timeout_s = 60\n"
        "[target]\nmax_num_seqs = 8\n"
        "[draft]\nmodel = 'Qwen/Qwen3-1.7B'\nadapters = { trained = 'adapter' }\n"
    )
    config = read_serving_config(path)
    assert config.draft is not None
    assert (config.host, config.start_timeout_s) == ("0.0.0.0", 60.0)
    assert config.target == replace(preset("tau2").target, max_num_seqs=8)
    assert config.draft.adapters == {"trained": str(tmp_path / "adapter")}
    assert config.draft.gpu_memory_utilization == 0.08
    path.write_text("preset = 'tau2'\ndraft = false\n")
    assert read_serving_config(path).draft is None


def test_the_example_file_can_be_read():
    example = Path(__file__).parents[2] / "docs" / "serve.toml"
    assert read_serving_config(example).target.model


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "expected --config FILE or --preset NAME (one of openagi, "),
        (["--preset", "cpu", "--config", "x"], "expected --config FILE or --preset NAME"),
        (["--config", "nowhere.toml"], "nowhere.toml: can't read it"),
        (["--preset", "openagi", "--adapter", "x"], "--adapter: expected NAME=FOLDER, found 'x'"),
        (["--preset", "openagi", "--no-draft", "--draft-port", "1"], "--no-draft leaves nothing"),
        (["--preset", "openagi", "--python", "/nowhere/python"], "no interpreter /nowhere/python"),
        (
            ["--preset", "openagi", "--python", "{this}"],
            "has no vLLM: pip install 'leapmodel[serve]'",
        ),
    ],
)
def test_wrong_options_are_one_line(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as stop:
        main(["serve", *[sys.executable if a == "{this}" else a for a in args]])
    assert stop.value.code == 2
    out = capsys.readouterr()
    assert len(out.err.splitlines()) == 1
    assert message in out.err


def test_other_machines_are_let_in_only_when_told_and_with_a_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("LEAPMODEL_API_KEY", raising=False)
    main(["serve", "--preset", "openagi", "--dry-run"])
    out = capsys.readouterr()
    assert out.out.count("--host 127.0.0.1") == 2
    assert out.err == ""
    main(["serve", "--preset", "openagi", "--dry-run", "--host", "0.0.0.0"])
    out = capsys.readouterr()
    assert out.out.count("--host 0.0.0.0") == 2
    assert "warning: --host 0.0.0.0: other machines can use these servers" in out.err
    assert "no LEAPMODEL_API_KEY is set" in out.err


def test_what_a_draft_is_told_needs_a_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "serve.toml"
    path.write_text("[target]\nmodel = 'm/t'\n")
    for more in (["--draft-port", "80"], ["--adapter", f"a={tmp_path}"]):
        with pytest.raises(SystemExit):
            main(["serve", "--config", str(path), "--dry-run", *more])
        assert "there is no draft for --draft-port or --adapter" in capsys.readouterr().err


def test_a_dry_run_prints_a_port_once(capsys: pytest.CaptureFixture[str]):
    main(["serve", "--preset", "openagi", "--target-port", "8001", "--dry-run"])
    said = capsys.readouterr().out
    assert (said.count("--port 8001"), said.count("--port 8000")) == (1, 1)


def test_a_taken_port_is_said(config: ServingConfig):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"target: can't listen on 127.0.0.1:{port}"):  # noqa: SIM117
            with serving(config.replacing(target={"port": port}, draft={})):
                pass
