"""The real loop: propose, verify, commit, against any OpenAI-compatible engine.

Data walks one way here too: a benchmark's tasks → ``protocol`` and ``loop`` (``proposing``,
``verification``) over ``endpoint`` → ``records`` → :mod:`leapmodel.rounds`, which predictions are
compared with. Nothing in this room knows how a speedup is predicted.

``serving`` starts the servers, ``training`` teaches the drafts, ``online`` does both while the loop
runs; ``agreement`` and ``probe`` measure what may be known beforehand; ``auditing`` checks what was
recorded; ``measuring`` puts it all together; ``fake`` is a server for tests.
"""
