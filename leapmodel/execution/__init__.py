"""The real loop: propose, verify, commit, against any OpenAI-compatible engine.

Data walks one way here too: a benchmark's tasks → ``loop`` (``proposing``, ``verification``) over
``endpoint`` → ``journal`` → :mod:`leapmodel.rounds`, which predictions are compared with. Nothing
in this room knows how a speedup is predicted. Rooms of their own: ``serving`` starts the servers,
``training`` teaches the drafts, ``fake`` is a server for tests.
"""
