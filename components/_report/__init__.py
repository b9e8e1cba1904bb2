"""HTML reports with inline plots, one look for all stages; knows nothing of what is reported."""

from .page import Report, combine

__all__ = ["Report", "combine"]
