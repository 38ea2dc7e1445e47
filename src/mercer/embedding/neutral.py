"""A criterion that is none of the losses, by which a start and what steps made of it are compared without labels."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.embedding.coordinates import Coordinates, all_features
from mercer.embedding.problem import Problem
from mercer.views.sources import GivenViews

# Rows left out that are looked at, rows that their neighbors are found among, and neighbors of each.
MOST_ROWS, POOL, NEIGHBORS = 1000, 4000, 5
# Where views are noise, neighbors must come nearer by this share: a smaller gain is within what chance does.
MARGIN = 0.03


class Judge(NamedTuple):
    """Pairs of rows left out that ought to be near each other, by their features z.

    Attributes
    ----------
    first, second : tensors of shape (n, r)
    margin : float
        By which share the criterion has to fall for steps to be kept.
    """

    first: Tensor
    second: Tensor
    margin: float


def judge_of(problem: Problem, white: Coordinates, left_out: np.ndarray) -> Judge:
    """Return the pairs: two views of a row; or, where views are noise, a row and its neighbors in the kernel's space."""
    source = problem.source.of_rows(left_out[:MOST_ROWS])
    if not problem.views_are_noise:
        views = all_features(white, source)
        # Without views, neighboring rows are all there is.
        if len(views) > 1:
            return Judge(views[0], views[1], 0.0)
    # Neighbors may be any rows: few are left out, and among few none is near.
    others = np.setdiff1d(np.arange(problem.source.n_rows), left_out)
    pool = np.concatenate([left_out, np.random.default_rng(problem.seed).permutation(others)])[:POOL]
    chosen = problem.source.of_rows(pool)
    X = chosen.arrays[0] if isinstance(chosen, GivenViews) else chosen.X
    (Z,) = white.map()([as_tensor(X, dtype=white.centers.like.dtype, device=white.centers.like.device)])
    n, k = min(len(left_out), MOST_ROWS), min(NEIGHBORS, len(Z) - 1)
    distances = torch.cdist(Z[:n], Z)
    distances[torch.arange(n), torch.arange(n)] = torch.inf
    nearest = distances.topk(k, dim=1, largest=False).indices
    return Judge(Z[:n].repeat_interleave(k, dim=0), Z[nearest.flatten()], MARGIN)


def neutral_loss(judge: Judge, W: Tensor) -> float:
    """Return how far pairs are apart, as a share of how far any two rows are: E |f - f+|^2 / E |f - f-|^2.

    It says nothing of the scale of the embedding, and a bias changes nothing.

    Parameters
    ----------
    judge : Judge
    W : tensor of shape (r, h)
    """
    W = W.to(judge.first)
    first, second = judge.first @ W, judge.second @ W
    apart = (first - second).square().sum(dim=1).mean()
    both = torch.cat([first, second])
    spread = 2.0 * (both - both.mean(dim=0)).square().sum(dim=1).mean()
    return float(apart / spread) if float(spread) > 0 else float("inf")
