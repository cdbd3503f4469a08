"""Whole measurements on this machine, made of the commands that a person would type."""
