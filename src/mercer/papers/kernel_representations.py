"""The paper on kernel representation learning with landmarks (krepes), as printed."""

from dataclasses import replace
from functools import partial
from typing import Any

from scipy.stats import loguniform
from sklearn.model_selection import RandomizedSearchCV, StratifiedShuffleSplit
from sklearn.utils import check_random_state

from mercer.checks import check_choice
from mercer.embedding import Alternate, KernelEmbedding, Steps
from mercer.embedding.linear_probe import SPACES, LossDistribution, probe_scorer
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
    B.3: random search over rate, decay and the loss's coefficients   `krepes_search(loss, images=...)`
    B.3: 60 to 80 epochs, patience 10 to 20, on rows left out         60, 10, `validation_fraction=0.1`
    ================================================================  ==================================================

    Parameters
    ----------
    loss : {"simclr", "vicreg", "barlow_twins", "byol", "spectral_contrastive", "simple_contrastive", "kernel_pca", \
"kernel_autoencoder"}
    landmarks : {"kmeans++", "leverage_hutchinson", "leverage", "uniform"}, default="kmeans++"
        How landmarks are chosen.
    learning_rate : float, default=1e-3
        The rate of Adam. The paper searches it.
    **changes
        Parameters of `KernelEmbedding`, which replace those above.

    Notes
    -----
    The paper does not print some settings, which are our choice: the kernel (Gaussian at the median distance; the paper
    has tangent kernels, `kernel=mercer.kernels...`), λ, how a new row is compared with tuples of views (by the mean
    over the views), and the decoder of the kernel autoencoder and its training (`Alternate`). The cross term of kernel
    PCA has the factor -2, where the paper prints -1.

    The defaults of `KernelEmbedding` differ from the paper. They use exact optima, white coordinates and centered
    embeddings, choose bandwidth and ridge, and keep the start if steps do not improve it.

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
        schedule=annealed(learning_rate),
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
        "solver": Alternate(guard=False) if loss == AUTOENCODER else steps,
    }
    return KernelEmbedding(**{**printed, **changes})


def annealed(learning_rate: float) -> Cosine:
    """Return the learning rate schedule of B.3: a warm-up, then a cosine down to 1e-5."""
    return Cosine(warmup_epochs=1.0, final=min(1.0, 1e-5 / learning_rate))


class DrawnSteps:
    """A distribution of solvers for a random search, which draws the learning rate and the decay of Adam.

    Parameters
    ----------
    steps : Steps
        The solver of `krepes`, whose other settings are kept.
    """

    learning_rate = loguniform(1e-4, 1e-1)
    # The paper also searches the decay, but prints no range for it.
    weight_decay = loguniform(1e-6, 1e-2)

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def rvs(self, random_state: Any = None) -> Steps:
        """Return a solver drawn by `random_state`."""
        random = check_random_state(random_state)
        rate, decay = (float(each.rvs(random_state=random)) for each in (self.learning_rate, self.weight_decay))
        return replace(self.steps, optimizer=Adam(rate, decay), schedule=annealed(rate))


def krepes_search(
    loss: str = "barlow_twins",
    *,
    images: bool,
    n_draws: int = 4,
    random_state: Any = None,
    **changes: Any,
) -> RandomizedSearchCV:
    """Return `krepes` inside the random search of appendix B.3; it is fitted to rows and labels.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    B.3: random search, 3 or 4 draws                                  `n_draws=4`
    B.3: a labeled validation set, 2 % of images, 10 % of tables      `images`
    B.3: learn on the other rows, with early stopping                 `krepes`: patience 10
    B.3: a linear classifier with only the small labeled subset       `probe_scorer(labeled=0.5)`
    B.3: best by its accuracy, balanced for imbalanced sets           `balanced="auto"`
    B.3: learning rate from [1e-4, 1e-1], log-uniform; decay          `DrawnSteps`
    B.3: λ from [1e-5, 100]; τ of SimCLR from [1e-3, 100]             `mercer.embedding.linear_probe.SPACES`
    ================================================================  ==================================================

    Half of the labeled rows train the classifier, and its accuracy is measured on the other half; the paper does not
    say on which rows it measures. The range of the decay, [1e-6, 1e-2], is our choice. BYOL has no coefficient to
    search, the simple contrastive loss has a constraint instead of λ, and the solver of the kernel autoencoder has no
    learning rate.

    Parameters
    ----------
    loss : str, default="barlow_twins"
        As in `krepes`.
    images : bool
        Whether rows are images, of which 2 % are labeled. Otherwise 10 % of the rows are.
    n_draws : int, default=4
        The number of settings that are drawn.
    random_state : int, RandomState instance or None, default=None
        Determines the split of the rows, the settings that are drawn, and the embedding.
    **changes
        As in `krepes`.

    Examples
    --------
    >>> from mercer.papers import krepes_search
    >>> sorted(krepes_search("simclr", images=True).param_distributions)
    ['loss', 'solver']
    """
    model = krepes(loss, random_state=random_state, **changes)
    space = dict(SPACES.get(loss, {}))
    if loss == "barlow_twins":
        space["loss"] = LossDistribution(model.loss, **SPACES[loss]["loss"].parameters)
    if isinstance(model.solver, Steps):
        space["solver"] = DrawnSteps(model.solver)
    return RandomizedSearchCV(
        model,
        space,
        n_iter=n_draws,
        scoring=probe_scorer(labeled=0.5, balanced="auto"),
        cv=StratifiedShuffleSplit(1, test_size=0.02 if images else 0.1, random_state=random_state),
        random_state=random_state,
    )
