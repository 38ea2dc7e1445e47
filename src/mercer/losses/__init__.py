"""What embeddings are trained to do: pure functions of the embeddings of a sample's views, one a file.

Where embeddings do not suffice, because a loss has parameters or a memory of its own, an `Objective` holds them.
"""

from mercer.losses.barlow_twins import barlow_twins
from mercer.losses.byol import BYOL, byol
from mercer.losses.kernel_autoencoder import KernelAutoencoder, kernel_autoencoder
from mercer.losses.kernel_pca import kernel_pca
from mercer.losses.negatives import draw_negatives
from mercer.losses.objective import FromEmbeddings, Objective
from mercer.losses.penalties import orthogonality, orthonormal, tikhonov, unit_norms
from mercer.losses.simclr import simclr
from mercer.losses.simple_contrastive import simple_contrastive
from mercer.losses.spectral_contrastive import spectral_contrastive
from mercer.losses.vicreg import vicreg

__all__ = [
    "BYOL",
    "FromEmbeddings",
    "KernelAutoencoder",
    "Objective",
    "barlow_twins",
    "byol",
    "draw_negatives",
    "kernel_autoencoder",
    "kernel_pca",
    "orthogonality",
    "orthonormal",
    "simclr",
    "simple_contrastive",
    "spectral_contrastive",
    "tikhonov",
    "unit_norms",
    "vicreg",
]
