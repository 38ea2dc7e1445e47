"""Representations on landmarks."""

from mercer.embedding.nystrom import Nystrom

__all__ = ["Nystrom"]
