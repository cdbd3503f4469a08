"""The loop itself: servers, clients, rounds, their audit, and the training of drafts.

Nothing here is loaded by ``import leapmodel``, and nothing here knows the predictor: what is
measured is written in the project's file formats, and prediction and measurement meet in
:mod:`leapmodel.validation`.
"""
