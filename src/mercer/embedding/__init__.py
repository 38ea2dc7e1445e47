"""Representations: on landmarks, and of a network that makes classes subspaces."""

from mercer.embedding.alternate import Alternate
from mercer.embedding.exact import Exact
from mercer.embedding.kernel_embedding import KernelEmbedding
from mercer.embedding.mcr2 import MCR2
from mercer.embedding.nystrom import Nystrom
from mercer.embedding.steps import Steps

__all__ = ["MCR2", "Alternate", "Exact", "KernelEmbedding", "Nystrom", "Steps"]
