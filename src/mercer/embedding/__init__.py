"""Representations on landmarks."""

from mercer.embedding.kernel_embedding import KernelEmbedding
from mercer.embedding.nystrom import Nystrom

__all__ = ["KernelEmbedding", "Nystrom"]
