"""Where training begins, in closed form: the last layer that best tells samples from views, and its length after."""

import math
from typing import Any

import numpy as np
import torch

from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.linalg import generalized_eigenpairs, threads_for
from mercer.training.randomness import generator_of
from mercer.views.sources import ViewSource

# Moments of the hidden layer are of at most so many samples.
MOST_ROWS = 4096
# Shares of the mean variance between views, and of the largest ratio: directions below are noise.
RIDGE, FLOOR = 1e-2, 1e-3
# Of the mean square of the hidden layer: below it samples differ by rounding alone.
SMALLEST = 1e-10


@torch.no_grad()
def begin_in_closed_form(network: ManifoldNetwork, source: ViewSource, seed: int) -> None:
    """Set the last layer of the feature head, given the layers before it as they are, to where views agree already.

    Objective (5) wants features that spread over samples and agree over views of a sample. For an affine map of what
    comes before, h, the directions with the largest ratio of variances v^T T v / v^T W v do so, T being the covariance
    of the samples' mean views and W that of views around their means: a linear discriminant whose classes are the
    samples. They are scaled to variance 1 over samples each, which makes R largest.

    Parameters
    ----------
    network : ManifoldNetwork
        Changed in place: `feature_head[-1]` alone.
    source : DrawnViews or GivenViews
    seed : int
        Draws the samples and views that moments are of.

    Notes
    -----
    O(n p^2 + p^3) for n samples and a hidden layer of width p: less than ten steps of training.
    """
    rows = np.random.RandomState(seed).permutation(source.n_rows)[:MOST_ROWS]
    views = source.batch(np.sort(rows), generator_of(seed, "closed form"), network.center)
    network.eval()
    *before, _ = network.feature_head
    last: Any = network.feature_head[-1]
    hidden = torch.nn.Sequential(*before)
    H = torch.stack([hidden(network.represent(view)) for view in views]).double()
    with threads_for(H.shape[2]):
        means = H.mean(dim=0)
        center = means.mean(dim=0)
        spread, noise = means - center, (H - means).flatten(0, 1)
        T, W = spread.T @ spread / len(means), noise.T @ noise / len(means)
        # Where views are equal, all directions are as good and those of largest spread are taken.
        scale = max(float(W.diagonal().mean()), FLOOR * float(T.diagonal().mean()))
        if not scale > SMALLEST * float(H.square().mean()):
            return
        W.diagonal().add_(RIDGE * scale)
        ratios, V = generalized_eigenpairs(T, W, last.out_features)
    V = V / (ratios + FLOOR * ratios[0]).sqrt()
    # With fewer directions than components the others stay as they were drawn.
    last.weight[: len(ratios)] = V.T.to(last.weight)
    last.bias[: len(ratios)] = -(center @ V).to(last.bias)


@torch.no_grad()
def scale_outputs(network: ManifoldNetwork, source: ViewSource, seed: int) -> None:
    """Scale the last layer of the feature head so that what it gives has a length of sqrt(d) in the mean.

    Features are directions, and stay as they are. But a step of gradient descent turns a long vector less than a short
    one, by the square of its length: the second stage should not depend on how long the start has left them. With a
    length of 1 it diverges at the authors' rate of 0.01 (ALGORITHMS).

    Parameters
    ----------
    network, source, seed
        As in `begin_in_closed_form`.
    """
    network.eval()
    rows = np.random.RandomState(seed).permutation(source.n_rows)[:MOST_ROWS]
    view = source.batch(np.sort(rows), generator_of(seed, "lengths"), network.center)[0]
    length = torch.linalg.vector_norm(network.feature_head(network.represent(view)), dim=1).mean()
    if bool(length > 0) and bool(torch.isfinite(length)):
        for part in network.feature_head[-1].parameters():
            part.mul_(math.sqrt(network.n_components) / length)
