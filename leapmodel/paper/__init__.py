"""The LEAP paper's published tables, and what recomputes or reconstructs them.

Every number here has one of three origins, and says which:

- **published**: an entry of one of the paper's own tables (:mod:`~leapmodel.paper.tables`);
- **recomputed**: follows from published numbers by an equation (:mod:`~leapmodel.paper.table10`,
  :mod:`~leapmodel.paper.rederived`, :mod:`~leapmodel.paper.iid`);
- **reconstructed**: replayed on a trace that was built so that what the paper states holds
  (:mod:`~leapmodel.paper.replayed`, :mod:`~leapmodel.paper.truncation`; the traces are
  :mod:`~leapmodel.paper.reconstructed_traces`'). Nobody measured such a trace.

:mod:`~leapmodel.paper.reproduce` lists every table and figure that can be made again.
"""

from leapmodel.paper.comparison import Comparison, Origin
from leapmodel.paper.tables import PublishedTable, available, load

__all__ = ["Comparison", "Origin", "PublishedTable", "available", "load"]
