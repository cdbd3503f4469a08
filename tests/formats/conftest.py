"""Files of every kind, written byte by byte or column by column."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

STEP = {"task": "a", "run": 0, "segment": 0, "step": 0, "gen_s": 1.5, "tool_s": 0.25}


@pytest.fixture
def step():
    """Return a maker of one good step as a record; keyword arguments change or add fields."""

    def make(**changes):
        return {**STEP, "action": "ls({})", **changes}

    return make


@pytest.fixture
def prediction():
    """Return a maker of one good prediction as a record."""

    def make(**changes):
        return {"task": "a", "run": 0, "step": 0, "action": "ls({})", "latency_s": 0.2, **changes}

    return make


@pytest.fixture
def jsonl(tmp_path):
    """Return a writer of a JSON Lines file; records may be dicts, text or bytes."""

    def write(*records, name="t.jsonl") -> Path:
        path = tmp_path / name
        lines = [
            r if isinstance(r, bytes) else (r if isinstance(r, str) else json.dumps(r)).encode()
            for r in records
        ]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    return write


@pytest.fixture
def parquet(tmp_path):
    """Return a writer of a Parquet file from records, with columns replaced by Arrow arrays."""

    def write(*records, name="t.parquet", metadata=None, **arrays) -> Path:
        path = tmp_path / name
        columns = {k: pa.array([r[k] for r in records]) for k in records[0]} if records else {}
        table = pa.table({**columns, **arrays})
        if metadata is not None:
            table = table.replace_schema_metadata({b"leapmodel": metadata})
        pq.write_table(table, path)
        return path

    return write
