"""The contestants: KernelEmbedding, its principal-component start, networks, scikit-learn's Nystroem and KernelPCA.

All kernels are Gaussian. The bandwidth of scikit-learn's contestants is the median distance, gamma = 0.5 / median^2.
The start has half of this bandwidth.
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
    """A transformer that is fitted on at most `most_rows` rows, drawn by the seed, and maps rows in blocks.

    Without blocks, KernelPCA would hold the kernel matrix between all rows and those of the fit twice.
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
    """Return the transformer before its fit, or None for the raw inputs; X is used for its median distance only."""
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
    """Return the solver of a case that is trained by steps.

    Parameters
    ----------
    steps : dict
        optimizer: "adam" (the default) or "sgd".
        learning_rate: that of the optimizer.
        All others are parameters of Steps.
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
        widths: the widths of the hidden layers of the MLP.
        width: the width of the ResMLP; alternatively n_landmarks, the number of landmarks of the kernel embedding that
        costs as much to train.
        recipe: the parameters of a Recipe.
        All others are parameters of NetworkEmbedding: loss, n_components, augment, image_shape.
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
