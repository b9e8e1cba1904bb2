"""In which pieces, and in what order, a node sends a key."""

from .slices import InOrder, Slices

__all__ = ["InOrder", "Slices"]
