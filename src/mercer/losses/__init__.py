"""What embeddings are trained to do: pure functions of the embeddings of a sample's views, one a file.

Where embeddings do not suffice, because a loss has parameters or a memory of its own, an `Objective` holds them.
"""

from mercer.losses.barlow_twins import barlow_twins
from mercer.losses.byol import BYOL, byol
from mercer.losses.coding_rate import class_coding_rate, coding_rate, pairwise_coding_rate
from mercer.losses.kernel_autoencoder import KernelAutoencoder, kernel_autoencoder
from mercer.losses.kernel_pca import kernel_pca
from mercer.losses.mcr2 import mcr2
from mercer.losses.mlc import mlc
from mercer.losses.negatives import draw_negatives
from mercer.losses.nmce import nmce
from mercer.losses.objective import FromEmbeddings, Objective
from mercer.losses.penalties import orthogonality, orthonormal, tikhonov, unit_norms
from mercer.losses.simclr import simclr
from mercer.losses.simple_contrastive import simple_contrastive
from mercer.losses.spectral_contrastive import spectral_contrastive
from mercer.losses.vicreg import vicreg
from mercer.losses.view_coding_rate import view_coding_rate

__all__ = [
    "BYOL",
    "FromEmbeddings",
    "KernelAutoencoder",
    "Objective",
    "barlow_twins",
    "byol",
    "class_coding_rate",
    "coding_rate",
    "draw_negatives",
    "kernel_autoencoder",
    "kernel_pca",
    "mcr2",
    "mlc",
    "nmce",
    "orthogonality",
    "orthonormal",
    "pairwise_coding_rate",
    "simclr",
    "simple_contrastive",
    "spectral_contrastive",
    "tikhonov",
    "unit_norms",
    "vicreg",
    "view_coding_rate",
]
