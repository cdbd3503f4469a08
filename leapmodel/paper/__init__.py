"""The LEAP paper's published tables, and what recomputes or reconstructs them.

Every number here has one of three origins, and says which:

- **published**: an entry of one of the paper's own tables (:mod:`~leapmodel.paper.tables`);
- **recomputed**: follows from published numbers by an equation (:mod:`~leapmodel.paper.table10`,
  :mod:`~leapmodel.paper.iid`);
- **reconstructed**: replayed on a trace that was built so that what the paper states holds
  (:mod:`~leapmodel.paper.reconstruction`). Nobody measured such a trace.
"""

from leapmodel.paper.comparison import Comparison, Origin
from leapmodel.paper.tables import PublishedTable, available, load

__all__ = ["Comparison", "Origin", "PublishedTable", "available", "load"]
