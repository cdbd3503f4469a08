"""A server without an engine, for tests and for measuring the harness: it speaks as vLLM does."""
