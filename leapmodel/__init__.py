"""Predict, before deploying it, whether action speculation makes an LLM agent faster.

A log becomes a trace, a trace and evidence about a draft become a prediction, several drafts and
depths become a choice:

    >>> import leapmodel as lm
    >>> trace = lm.read_trace("traces/reconstructed/openagi.parquet")
    >>> draft = lm.stated_draft(0.75, latency_s=0.07)
    >>> lm.predict(trace, draft, depths=[1, 2, 3]).verdict.decision
    'deploy'

Submodules load when they are first used, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

del lazy_loader
