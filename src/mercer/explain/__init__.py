"""Reasons for one prediction: how it moves with each column, and the training rows that drove it."""

from mercer.explain.local import Reasons, reasons

__all__ = ["Reasons", "reasons"]
