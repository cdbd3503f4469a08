"""Which format is used where the processor has no fast bfloat16."""

from __future__ import annotations

from pathlib import Path

import pytest

from leapmodel.execution import precision


@pytest.mark.parametrize(
    ("machine", "said", "expected"),
    [
        ("x86_64", "flags\t\t: fpu sse2 avx2 avx512f avx512_bf16", "bfloat16"),
        ("x86_64", "flags\t\t: fpu sse2 avx2 fma", "float32"),
        ("aarch64", "Features\t: fp asimd bf16 sve", "bfloat16"),
        ("aarch64", "Features\t: fp asimd", "float32"),
        ("riscv64", "isa : rv64gc", "float32"),
    ],
)
def test_by_what_the_processor_says_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, said: str, expected: str
):
    monkeypatch.setattr(precision.platform, "machine", lambda: machine)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: avx512f\n{said}\n")
    assert precision.cpu_precision(str(tmp_path / "cpuinfo")) == expected


def test_where_nothing_is_said(tmp_path: Path):
    assert precision.cpu_precision(str(tmp_path / "none")) == "float32"
