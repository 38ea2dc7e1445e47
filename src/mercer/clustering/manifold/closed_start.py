"""Initial weights in closed form: a last layer that separates samples from each other but not views of one sample."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.linalg import generalized_eigenpairs, threads_for
from mercer.training.randomness import generator_of
from mercer.views.sources import ViewSource

# The largest number of samples from which the moments of the hidden layer are computed.
MOST_ROWS = 4096
# The ridge, as a share of the mean variance of views, and the share of the largest ratio of variances below which a
# direction is noise.
RIDGE, FLOOR = 1e-2, 1e-3
# The share of the mean square of the hidden layer below which samples differ by rounding only.
SMALLEST = 1e-10


@torch.no_grad()
def begin_in_closed_form(network: ManifoldNetwork, source: ViewSource, seed: int) -> None:
    """Set the last layer of the feature head in closed form so that views agree before training; others stay fixed.

    Objective (5) asks for features that differ between samples and agree between views of a sample. For affine maps of
    the hidden layer h, the best directions v have the largest ratio of variances v^T T v / v^T W v. T is the covariance
    of the mean views of the samples, and W that of views around their means. This is a linear discriminant whose
    classes are the samples. Each direction is scaled to variance 1 over the samples, which makes R largest.

    Parameters
    ----------
    network : ManifoldNetwork
        Only `feature_head[-1]` is changed, in place.
    source : DrawnViews or GivenViews
    seed : int
        Draws the samples and views from which the moments are computed.

    Notes
    -----
    O(n p^2 + p^3) for n samples and a hidden layer of width p, which is less than ten steps of training.
    """
    views = _views_of_some(network, source, seed, "closed form")
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
        # If all views are equal, all directions are equally good, and those with the largest variance are taken.
        scale = max(float(W.diagonal().mean()), FLOOR * float(T.diagonal().mean()))
        if not scale > SMALLEST * float(H.square().mean()):
            return
        W.diagonal().add_(RIDGE * scale)
        ratios, V = generalized_eigenpairs(T, W, last.out_features)
    V = V / (ratios + FLOOR * ratios[0]).sqrt()
    # If there are fewer directions than components, the other components keep their initial weights.
    last.weight[: len(ratios)] = V.T.to(last.weight)
    last.bias[: len(ratios)] = -(center @ V).to(last.bias)


@torch.no_grad()
def scale_outputs(network: ManifoldNetwork, source: ViewSource, seed: int) -> None:
    """Scale the last layer of the feature head so that its outputs have a mean length of sqrt(d).

    Features are directions and do not change by this. But a step of gradient descent turns a long vector less than a
    short one, by the square of its length, and the second stage should not depend on the lengths after the first. With
    a length of 1 it diverges at the authors' learning rate of 0.01 (ALGORITHMS).

    Parameters
    ----------
    network, source, seed
        As in `begin_in_closed_form`.
    """
    network.eval()
    view = _views_of_some(network, source, seed, "lengths")[0]
    length = torch.linalg.vector_norm(network.feature_head(network.represent(view)), dim=1).mean()
    if bool(length > 0) and bool(torch.isfinite(length)):
        for part in network.feature_head[-1].parameters():
            part.mul_(math.sqrt(network.n_components) / length)


def _views_of_some(network: ManifoldNetwork, source: ViewSource, seed: int, purpose: str) -> list[Tensor]:
    """Return views of at most `MOST_ROWS` samples; the same samples for every purpose, but other views."""
    rows = np.random.RandomState(seed).permutation(source.n_rows)[:MOST_ROWS]
    return source.batch(np.sort(rows), generator_of(seed, purpose), network.center)
