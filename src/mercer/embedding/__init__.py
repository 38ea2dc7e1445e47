"""Representations: on landmarks, and of a network that makes classes subspaces."""

from mercer.embedding.kernel_embedding import KernelEmbedding
from mercer.embedding.mcr2 import MCR2
from mercer.embedding.nystrom import Nystrom

__all__ = ["MCR2", "KernelEmbedding", "Nystrom"]
