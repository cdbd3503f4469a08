"""Talking to a model's server: its address, what is asked, what comes back, and what may go wrong.

:mod:`endpoint <leapmodel.execution.talking.endpoint>` is what the rest uses.
"""
