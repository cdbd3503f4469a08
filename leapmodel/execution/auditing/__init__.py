"""Check a record: its contexts, outputs and commits, its times, and the whole of it."""
