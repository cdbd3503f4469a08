"""The paper's figures, drawn from published, recomputed and reconstructed numbers.

Each module has the numbers (a :class:`~leapmodel.paper.comparison.Comparison`) and a function that
draws them. matplotlib is loaded here and nowhere else in :mod:`leapmodel.paper`.
"""
