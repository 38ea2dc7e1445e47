"""Doubly stochastic matrices near an affinity: by entropy, by squared errors, or by scaling a sparse matrix."""

from mercer.sinkhorn.entropic import doubly_stochastic
from mercer.sinkhorn.scaling import balanced
from mercer.sinkhorn.squared import sparse_doubly_stochastic

__all__ = ["balanced", "doubly_stochastic", "sparse_doubly_stochastic"]
