"""What embeddings are trained to do: pure functions of the embeddings of a sample's views, one a file."""

from mercer.losses.kernel_pca import kernel_pca
from mercer.losses.simple_contrastive import simple_contrastive
from mercer.losses.spectral_contrastive import spectral_contrastive

__all__ = ["kernel_pca", "simple_contrastive", "spectral_contrastive"]
