"""Who maps the rows: KernelEmbedding, its principal-component start, networks, scikit-learn's Nystroem and KernelPCA.

Kernels are Gaussian everywhere. scikit-learn's have the median distance for a bandwidth, gamma = 0.5 / median^2; the
start has half of it.
"""

from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.kernel_approximation import Nystroem

from mercer import KernelEmbedding, Nystrom
from mercer.checks import check_choice
from mercer.embedding import Steps
from mercer.kernels import Gaussian
from mercer.training import SGD, Adam, Recipe

from .network_embedding import NetworkEmbedding
from .networks import ResMLP, mlp, resmlp_width

ROWS_A_BLOCK = 2000


class OnSomeRows:
    """A transformer fitted on at most `most_rows` rows, drawn by the seed; rows are mapped block by block.

    KernelPCA would hold the kernel matrix between all rows and those of the fit, twice.
    """

    def __init__(self, transformer: Any, most_rows: int, seed: int) -> None:
        self.transformer, self.most_rows, self.seed = transformer, most_rows, seed

    def fit(self, X: np.ndarray) -> "OnSomeRows":
        rows = np.random.RandomState(self.seed).permutation(len(X))[: self.most_rows]
        self.transformer.fit(X[rows])
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        blocks = range(0, len(X), ROWS_A_BLOCK)
        return np.concatenate([self.transformer.transform(X[start : start + ROWS_A_BLOCK]) for start in blocks])


def contestant(name: str, options: dict[str, Any], X: np.ndarray, seed: int) -> Any:
    """Return the transformer, not fitted; None for the inputs as they are. X is looked at for its median distance."""
    if name == "raw":
        return None
    if name == "KernelEmbedding":
        solver = solver_of(options.pop("steps")) if "steps" in options else "auto"
        return KernelEmbedding(solver=solver, **options, random_state=seed)
    if name == "network":
        return network_embedding(options, X.shape[1], seed)
    median = Gaussian().resolved(X, seed).bandwidth
    if name == "Nystrom":
        return Nystrom(bandwidth=0.5 * median, **options, random_state=seed)
    gamma = 0.5 / median**2
    if name == "Nystroem":
        return Nystroem(gamma=gamma, **options, random_state=seed)
    most_rows = options.pop("most_rows")
    kernel_pca = KernelPCA(kernel="rbf", gamma=gamma, eigen_solver="randomized", random_state=seed, **options)
    return OnSomeRows(kernel_pca, most_rows, seed)


def solver_of(steps: dict[str, Any]) -> Steps:
    """Return the solver by steps of a case.

    Parameters
    ----------
    steps : dict
        optimizer: "adam", the default, or "sgd", with learning_rate; and parameters of Steps.
    """
    steps = dict(steps)
    optimizer = {"adam": Adam, "sgd": SGD}[steps.pop("optimizer", "adam")](steps.pop("learning_rate"))
    return Steps(optimizer=optimizer, **steps)


def network_embedding(options: dict[str, Any], d: int, seed: int) -> NetworkEmbedding:
    """Return a network to be trained on rows of d columns.

    Parameters
    ----------
    options : dict
        architecture: "mlp" or "resmlp".
        widths: those of the hidden layers of the MLP.
        width: that of the ResMLP; or n_landmarks: those of the kernel embedding that costs as much to train.
        recipe: what a Recipe is made of.
        Those of NetworkEmbedding: loss, n_components, augment, image_shape.
    """
    options = dict(options)
    architecture = check_choice("architecture", options.pop("architecture"), ("mlp", "resmlp"))
    recipe = Recipe(**options.pop("recipe"))
    if architecture == "mlp":
        network: Any = partial(mlp, hidden=options.pop("widths"))
    elif "n_landmarks" in options:
        network = partial(ResMLP, width=resmlp_width(d, options["n_components"], options.pop("n_landmarks")))
    else:
        network = partial(ResMLP, width=options.pop("width"))
    return NetworkEmbedding(network, recipe=recipe, random_state=seed, **options)
