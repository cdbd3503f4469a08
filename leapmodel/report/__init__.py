"""One page to hand on: the verdict first, then everything it rests on.

The page is one file without anything to fetch: style and pictures are inside it, there is no
script, and whatever comes from a log is escaped.
"""

from leapmodel.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
