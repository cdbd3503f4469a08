"""A server without an engine, for tests and for measuring the harness: it speaks as vLLM does."""

from leapmodel.execution.extras import require

require("aiohttp", "execution")  # says what to install, where a script of one's own begins
