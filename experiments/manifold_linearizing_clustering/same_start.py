"""Tables 1, 5 and 6, Figure 3 and the sweep of γ: second stages of several methods on one start, for several seeds.

The start is that of `ManifoldClustering()`. The second stage is as printed (η = .175, inner products, both heads in
each batch, SGD at .01, spectral clusters of the memberships), except for the number of epochs, which the paper does not
give, batches of 512 of the 2000 rows, and the 32 dimensions of the start. For Table 6 both methods have the settings of
appendix E: ε² = .2, and 100 epochs of LARS with a learning rate that falls from .3 to 0 by a cosine.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor, nn

from mercer.clustering.manifold.base import DEFAULT_COMPONENTS
from mercer.clustering.manifold.closed_start import begin_in_closed_form, scale_outputs
from mercer.clustering.manifold.manifold_clustering import ManifoldClustering
from mercer.clustering.manifold.memberships import Memberships, spectral_clusters
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.nmce import learn_together, learned_membership, memberships_by
from mercer.clustering.manifold.parameters import start_recipe_of
from mercer.clustering.manifold.training import linearize, start_features
from mercer.losses import coding_rate, mlc
from mercer.metrics import numerical_rank
from mercer.networks.heads import Entrance, standardization
from mercer.papers.manifold_linearizing_clustering import SECOND, TABLE_6
from mercer.training import Training
from mercer.views.sources import GivenViews

from .baselines import best_of_grid
from .data import Samples
from .runs import ENERGY, Measures, cached, scores

PRINTED = Memberships(0.175, "inner")
# The printed batch size of 1024 would be half of the 2000 rows, so all batches have 512.
BATCH, EPOCHS = 512, 25
LINES_3_TO_9 = replace(SECOND, n_epochs=EPOCHS, batch_size=BATCH)
# ε of objective (4), and the settings of appendix E.
EPSILON_4, EPSILON_6, APPENDIX_E = 0.1**0.5, 0.2**0.5, replace(TABLE_6, batch_size=BATCH)


@dataclass(frozen=True, eq=False)
class Start:
    """Samples, their views, and a network that was trained on them. Compared by identity, so that it can be cached."""

    samples: Samples
    source: GivenViews
    network: ManifoldNetwork
    clusters: int

    @property
    def agreement(self) -> float:
        return self.network.n_components * math.log1p(ManifoldClustering().epsilon_start ** -2)


@lru_cache(maxsize=2)
def shared_start(name: str, rows: int) -> Start:
    """Return the start that all seeds share: line 1 of Algorithm 1 with the default settings of the estimator."""
    return learned_start(cached(name, rows, 0))


def learned_start(samples: Samples) -> Start:
    """Return a network that is trained on these samples as the estimator would train it."""
    defaults = ManifoldClustering()
    start = Start(
        samples, GivenViews(samples.views, defaults.n_views), drawn_network(samples, 0), len(np.unique(samples.y))
    )
    begin_in_closed_form(start.network, start.source, 0)
    recipe = start_recipe_of(defaults, len(samples.X), start.agreement)
    start_features(
        start.network, start.source, recipe, epsilon=defaults.epsilon_start, agreement=start.agreement, seed=0
    )
    scale_outputs(start.network, start.source, 0)
    start.network.copy_head()
    return start


def drawn_network(samples: Samples, seed: int) -> ManifoldNetwork:
    """Return a network with random weights."""
    d = samples.X.shape[1]
    entrance = Entrance(*standardization(samples.X, (d,), False))
    hidden = ManifoldClustering().hidden
    return ManifoldNetwork(nn.Identity(), d, min(DEFAULT_COMPONENTS, d), hidden, entrance, seed)


def run_on_one_start(settings: dict[str, Any], seed: int) -> Measures:
    """Run one seed of a method on the shared start."""
    start = shared_start(settings["data"], settings["rows"])
    return METHODS[settings["method"]](start, seed)


# Cached, since MLC itself and both methods of Table 1 on MLC's features need it.
@lru_cache(maxsize=3)
def second_stage(
    start: Start, seed: int, augmented: bool, random_start: bool, gamma: float, as_table_6: bool
) -> tuple[ManifoldNetwork, Training]:
    """Return the network after lines 3 to 9 and the record of the training; callers must not change the network."""
    network = beginning(start, seed, random_start)
    training = linearize(
        network,
        start.source if augmented else GivenViews([start.samples.X] * 2, 2),
        APPENDIX_E if as_table_6 else LINES_3_TO_9,
        PRINTED,
        epsilon=EPSILON_6 if as_table_6 else EPSILON_4,
        gamma=gamma,
        regularizer="squared",
        freeze=True,
        seed=seed,
    )
    return network, training


def beginning(start: Start, seed: int, random_start: bool) -> ManifoldNetwork:
    """Return a network for the second stage to train: a copy of the start's network, or one with random weights."""
    network = drawn_network(start.samples, seed + 1) if random_start else copy.deepcopy(start.network)
    network.copy_head()
    return network


def mlc_measures(
    start: Start,
    seed: int,
    *,
    augmented: bool = True,
    random_start: bool = False,
    gamma: float = 0.05,
    as_table_6: bool = False,
) -> Measures:
    """Run lines 2 to 10 of Algorithm 1; also measure the ranks of the true classes before and after (Figure 3)."""
    X = torch.from_numpy(start.samples.X)
    network = beginning(start, seed, random_start)
    before, rates_before = class_ranks(network, X, start.samples.y), rates(network, X)
    network, training = second_stage(start, seed, augmented, random_start, gamma, as_table_6)
    with torch.no_grad():
        C = network.codes(X)
    found = spectral_clusters(C, start.clusters, PRINTED, seed)
    rates_after, (within, between) = rates(network, X), cosines(network, X, found.labels)
    after = class_ranks(network, X, start.samples.y)
    return {
        **scores(start.samples.y, found.labels),
        "first loss": training.history[0]["loss"],
        "last loss": training.history[-1]["loss"],
        "neighbors": neighbors(found.P),
        "rank of all": float(after["all"]),
        "mean class rank at first": float(np.mean(before["classes"])),
        "mean class rank at last": float(np.mean(after["classes"])),
        "least class rank at last": float(min(after["classes"])),
        "most class rank at last": float(max(after["classes"])),
        **{f"{name} at first": rate for name, rate in rates_before.items()},
        **{f"{name} at last": rate for name, rate in rates_after.items()},
        "cosine within clusters": within,
        "cosine between clusters": between,
    }


@torch.no_grad()
def rates(network: ManifoldNetwork, X: Tensor) -> dict[str, float]:
    """Return the coding rates R and R_c of objective (4) over all samples: of all features, and of the members."""
    Z, P = network.features(X), PRINTED.of(network.codes(X))
    R = float(coding_rate(Z, epsilon=EPSILON_4))
    return {"R": R, "R_c": R + float(mlc(Z, P, epsilon=EPSILON_4, gamma=0.0))}


@torch.no_grad()
def cosines(network: ManifoldNetwork, X: Tensor, labels: np.ndarray) -> tuple[float, float]:
    """Return the mean absolute cosines of features within a cluster and of different clusters (Figure 4)."""
    Z = network.features(X).numpy()
    sizes, same = np.abs(Z @ Z.T), labels[:, None] == labels
    np.fill_diagonal(same, False)
    return float(sizes[same].mean()), float(sizes[labels[:, None] != labels].mean())


@torch.no_grad()
def class_ranks(network: ManifoldNetwork, X: Tensor, y: np.ndarray) -> dict[str, Any]:
    """Return the numerical ranks of all features and of each true class."""
    Z = network.features(X).numpy()
    each = [numerical_rank(Z[y == label], energy=ENERGY) for label in np.unique(y)]
    return {"all": numerical_rank(Z, energy=ENERGY), "classes": each}


def neighbors(P: Tensor) -> float:
    """Return the effective number of neighbors of a point: the mean of 1 / |row of P|^2, 1 for a permutation."""
    return float((1.0 / P.square().sum(dim=1)).mean())


def nmce_measures(start: Start, seed: int) -> Measures:
    """Run NMCE on the same start with the same optimizer and settings."""
    network, X = copy.deepcopy(start.network), torch.from_numpy(start.samples.X)
    with torch.no_grad():
        Z = network.features(X)
    network.cluster_head = learned_membership(Z, start.clusters, 1, seed)
    learn_together(
        network, start.source, APPENDIX_E, epsilon=EPSILON_6, agreement=start.agreement, freeze=True, seed=seed
    )
    with torch.no_grad():
        labels = memberships_by(network.cluster_head, network.features(X)).argmax(dim=1).numpy()
    return scores(start.samples.y, labels)


def start_measures(start: Start, seed: int, how: str) -> Measures:
    """Cluster the features of the start, without a second stage."""
    with torch.no_grad():
        Z = start.network.features(torch.from_numpy(start.samples.X))
    if how == "spectral":
        return scores(start.samples.y, spectral_clusters(Z, start.clusters, PRINTED, seed).labels)
    if how == "k-means":
        return scores(start.samples.y, KMeans(start.clusters, n_init=10, random_state=seed).fit(Z.numpy()).labels_)
    return best_of_grid(how, Z.numpy(), start.samples.y, seed)


def linearized_measures(start: Start, seed: int, how: str) -> Measures:
    """Run subspace clustering on the features that MLC has learned (Table 1)."""
    network, _ = second_stage(start, seed, True, False, 0.05, False)
    with torch.no_grad():
        Z = network.features(torch.from_numpy(start.samples.X)).numpy()
    return best_of_grid(how, Z, start.samples.y, seed)


METHODS: dict[str, Callable[[Start, int], Measures]] = {
    "MLC": mlc_measures,
    "MLC without views": partial(mlc_measures, augmented=False),
    "MLC from random weights": partial(mlc_measures, random_start=True),
    "MLC, γ = 0": partial(mlc_measures, gamma=0.0),
    "MLC, γ = 0.5": partial(mlc_measures, gamma=0.5),
    "MLC, γ = 5": partial(mlc_measures, gamma=5.0),
    "spectral on the start": partial(start_measures, how="spectral"),
    "k-means on the start": partial(start_measures, how="k-means"),
    "EnSC on the start": partial(start_measures, how="EnSC"),
    "SSC-OMP on the start": partial(start_measures, how="SSC-OMP"),
    "EnSC on MLC's features": partial(linearized_measures, how="EnSC"),
    "SSC-OMP on MLC's features": partial(linearized_measures, how="SSC-OMP"),
    "Table 6: MLC": partial(mlc_measures, as_table_6=True),
    "Table 6: NMCE": nmce_measures,
}
