"""vLLM keeps the contract that the loop is written against, and the fake server imitates."""

from __future__ import annotations

from tests.execution.contract import *  # noqa: F403
