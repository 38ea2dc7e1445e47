"""Claims in the text of the paper: free memberships and γ, collapse by cross-entropy, and the time of line 10."""

import time
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from torch import Tensor, nn

from mercer.clustering.manifold.memberships import Memberships, membership_spectrum, spectral_clusters
from mercer.clustering.spectral import assign
from mercer.losses import mcr2, mlc
from mercer.metrics import clustering_accuracy, numerical_rank
from mercer.networks.heads import Entrance, FeatureNetwork, standardization
from mercer.training import Recipe, train

from .data import two_manifolds
from .runs import ENERGY, Measures

# Number of Frank-Wolfe steps, and the step lengths that are tried, as shares of the way to a corner of the set. If γ is
# large, the best step lengths are small.
ROUNDS, STEPS_ON_THE_WAY = 200, np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 25)])
# Training continues long after all digits are classified correctly, with weight decay, as when collapse was observed.
TRAINED = Recipe(n_epochs=200, batch_size=512, optimizer="adam", learning_rate=3e-3, weight_decay=5e-4, keep="last")
# In 32 dimensions, ten orthogonal subspaces would have only three dimensions each; the authors use 128.
HIDDEN, COMPONENTS = 512, 128


def run_free(settings: dict[str, Any], seed: int) -> Measures:
    """Section 2.2: optimize Π itself over Ω by Frank-Wolfe steps, for fixed features.

    Without the term of γ the objective is concave in Π, and a linear function on Ω has its minimum at a permutation (an
    assignment problem). With γ = 0 the first step therefore goes all the way to a permutation.
    """
    samples = two_manifolds(settings["deviation"], seed)
    Z = torch.nn.functional.normalize(torch.from_numpy(samples.X), dim=1)
    P = free_membership(Z, settings["gamma"])
    rows = P.max(dim=1).values
    labels = spectral_of(P, seed)
    return {
        "largest entry of a row": float(rows.mean()),
        "neighbors": float((1.0 / P.square().sum(dim=1)).mean()),
        "accuracy": clustering_accuracy(samples.y, labels),
    }


def free_membership(Z: Tensor, gamma: float, epsilon: float = 0.1**0.5) -> Tensor:
    """Return a Π in Ω for which objective (4) is large; the steps begin at the memberships of the features."""
    P = Memberships(0.175).of(Z)

    def objective(P: Tensor) -> Tensor:
        return mlc(Z, P, epsilon=epsilon, gamma=gamma)

    for _ in range(ROUNDS):
        free = P.clone().requires_grad_()
        value = objective(free)
        (G,) = torch.autograd.grad(value, free)
        rows, columns = linear_sum_assignment(G.numpy())
        corner = torch.zeros_like(P)
        corner[rows, columns] = 1.0
        along = [float(objective(P + t * (corner - P))) for t in STEPS_ON_THE_WAY]
        best = int(np.argmin(along))
        if best == 0:
            break
        P = P + STEPS_ON_THE_WAY[best] * (corner - P)
    return P


def spectral_of(P: Tensor, seed: int) -> np.ndarray:
    """Return two clusters from the eigenvectors of the symmetric part of a membership."""
    return assign(membership_spectrum((P + P.T) / 2.0, 3, seed), 2, random=np.random.RandomState(seed))


def run_collapse(settings: dict[str, Any], seed: int) -> Measures:
    """Section 1.1: train a network with labels by cross-entropy or MCR², and return the ranks of class features."""
    X, y = load_digits(return_X_y=True)
    X, y = (X / 16.0).astype(np.float32), torch.from_numpy(y)
    network = FeatureNetwork(nn.Identity(), 64, COMPONENTS, HIDDEN, Entrance(*standardization(X, (8, 8))), seed)
    network.classifier = nn.Linear(COMPONENTS, 10)
    rows = torch.from_numpy(X)

    def batch_loss(index: Tensor, generator: torch.Generator) -> Tensor:
        Z = network.features(rows[index])
        if settings["loss"] == "cross-entropy":
            return nn.functional.cross_entropy(network.classifier(Z), y[index])
        return mcr2(Z, y[index], epsilon=0.5**0.5) + 0.0 * network.classifier.weight.sum()

    training = train(network, batch_loss, len(X), TRAINED, seed=seed)
    with torch.no_grad():
        Z = network.features(rows).numpy()
    ranks = [numerical_rank(Z[y.numpy() == label], energy=ENERGY) for label in range(10)]
    return {
        "mean class rank": float(np.mean(ranks)),
        "most class rank": float(max(ranks)),
        "rank of all": float(numerical_rank(Z, energy=ENERGY)),
        "last loss": training.history[-1]["loss"],
    }


def run_spectral_step(settings: dict[str, Any], seed: int) -> Measures:
    """Appendix C.3: time line 10 (memberships, eigenvectors and k-means) for codes near ten subspaces."""
    random = np.random.default_rng(seed)
    n, k, d, own = settings["rows"], 10, 32, 3
    bases = [np.linalg.qr(random.normal(size=(d, own)))[0] for _ in range(k)]
    y = np.arange(n) % k
    C = np.stack([bases[label] @ random.normal(size=own) for label in y]) + 0.05 * random.normal(size=(n, d))
    codes = torch.nn.functional.normalize(torch.from_numpy(C).float(), dim=1)
    begun = time.perf_counter()
    used = time.process_time()
    found = spectral_clusters(codes, k, Memberships(0.08), seed)
    return {
        "seconds": time.perf_counter() - begun,
        "processor seconds": time.process_time() - used,
        "accuracy": clustering_accuracy(y, found.labels),
    }
