"""Representations: kernel embeddings on landmarks, and a network whose features place each class in a subspace."""

from mercer.embedding.alternate import Alternate
from mercer.embedding.exact import Exact
from mercer.embedding.kernel_embedding import KernelEmbedding
from mercer.embedding.mcr2 import MCR2
from mercer.embedding.nystrom import Nystrom
from mercer.embedding.steps import Steps

__all__ = ["MCR2", "Alternate", "Exact", "KernelEmbedding", "Nystrom", "Steps"]
