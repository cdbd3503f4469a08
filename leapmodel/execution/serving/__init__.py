"""Serve a target and a draft with vLLM: settings and presets, one server, and the two together.

Nothing else in ``execution`` needs this room: every command takes servers that somebody else runs.
"""
