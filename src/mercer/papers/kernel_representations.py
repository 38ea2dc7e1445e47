"""Kernel representation learning with landmarks as printed (krepes)."""

from functools import partial
from typing import Any

from mercer.checks import check_choice
from mercer.embedding import Alternate, KernelEmbedding, Steps
from mercer.embedding.parameters import LOSSES
from mercer.embedding.preconditioners import Identity
from mercer.embedding.trained_losses import AUTOENCODER, CONSTRAINED
from mercer.losses import barlow_twins
from mercer.training import Adam, Cosine


def krepes(
    loss: str = "barlow_twins", *, landmarks: str = "kmeans++", learning_rate: float = 1e-3, **changes: Any
) -> KernelEmbedding:
    """Return a `KernelEmbedding` with the settings of the paper, for one of its eight losses.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    section 2: f(x) = W φ(x), Tikhonov λ Tr(AᵀK_mm A)                 `ridge`, searched in [1e-5, 100]; 1e-3 here
    section 3: m tuples of views as landmarks, each for its views     `landmark_tuples="by_view"`
    section 3: γ, a learnable bias vector                             `bias="learned"`; none for kernel PCA
    section 3: the correlations of Barlow Twins, not centered         `partial(barlow_twins, center=False)`
    section 3: AᵀK_mm A = I for the simple contrastive loss           steps on the Stiefel manifold
    section 3.1: A₀ = U_h Λ_h^-1/2                                    `Steps(start="principal")`
    section 3.2: A ← A - η g                                          `Steps(preconditioner=Identity())`
    section 3.2: P = K_mm + λ I, or Gauss-Newton                      `KernelMatrix()`, `GaussNewton()`
    section 3.3: k-means++, leverage scores, uniform                  "kmeans++", "leverage_hutchinson", "uniform"
    section 4, B.2: 2000 landmarks, h = 150                           `n_landmarks=2000`, `n_components=150`
    B.1: Gaussian noise and dropped features for tables               `augment="tables"`; give `augment` for images
    B.3: Adam, rate from [1e-4, 1e-1], batches of 256                 `Adam(learning_rate)`, `batch_size=256`
    B.3: cosine annealing down to 1e-5, with warm-up                  `Cosine(warmup_epochs=1.0, final=1e-5 / rate)`
    B.3: 60 to 80 epochs, patience 10 to 20, on rows left out         60, 10, `validation_fraction=0.1`
    ================================================================  ==================================================

    Parameters
    ----------
    loss : {"simclr", "vicreg", "barlow_twins", "byol", "spectral_contrastive", "simple_contrastive", "kernel_pca", \
"kernel_autoencoder"}
    landmarks : {"kmeans++", "leverage_hutchinson", "leverage", "uniform"}, default="kmeans++"
    learning_rate : float, default=1e-3
        The paper searches it.
    **changes
        Any other parameter of `KernelEmbedding`, in place of the one above.

    Notes
    -----
    Not printed, and ours: the kernel (Gaussian at the median distance; the paper has tangent kernels,
    `kernel=mercer.kernels...`), λ, what a new row is compared with under tuples of views (the mean over the views), the
    kernel autoencoder's decoder and how it is trained (`Alternate()`), -2 in the cross term of kernel PCA where the
    paper prints -1. Our defaults differ by exact optima, white coordinates, centered embeddings and the choice of
    bandwidth and ridge; and they keep the start where steps do not help.

    Examples
    --------
    >>> from mercer.papers import krepes
    >>> krepes("simclr").solver.epochs
    60
    """
    check_choice("loss", loss, LOSSES)
    without_views = loss in ("kernel_pca", AUTOENCODER)
    steps = Steps(
        epochs=60,
        batch_size=256,
        optimizer=Adam(learning_rate),
        schedule=Cosine(warmup_epochs=1.0, final=min(1.0, 1e-5 / learning_rate)),
        preconditioner="white" if loss in CONSTRAINED else Identity(),
        start="principal",
        validation_fraction=0.1,
        guard=False,
        patience=10,
    )
    printed: dict[str, Any] = {
        "loss": partial(barlow_twins, center=False) if loss == "barlow_twins" else loss,
        "kernel": "gaussian",
        "bandwidth": "median",
        "n_components": 150,
        "n_landmarks": 2000,
        "landmarks": landmarks,
        "landmark_tuples": "shared" if without_views else "by_view",
        "augment": "tables",
        "ridge": 1e-3,
        "bias": "none" if loss == "kernel_pca" else "learned",
        "solver": Alternate() if loss == AUTOENCODER else steps,
    }
    return KernelEmbedding(**{**printed, **changes})
