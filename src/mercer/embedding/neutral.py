"""A criterion that compares embeddings without labels and favors no loss: the loss of a linear head on views."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.embedding.closed_forms import spectral_contrastive_loss, spectral_contrastive_optima
from mercer.embedding.coordinates import Coordinates, all_features
from mercer.embedding.moments import Statistics
from mercer.embedding.problem import Problem

# At most this many rows are used to compute the head, and this many left-out rows to evaluate it.
HEAD_ROWS, JUDGED_ROWS = 4000, 2000
# λ of the head, as a share of the largest variance of the embedding.
RIDGE = 1e-2


class Judge(NamedTuple):
    """The moments of the features z of views, for rows that were trained on and for rows that were left out."""

    seen: Statistics
    left_out: Statistics


def judge_of(problem: Problem, white: Coordinates, seen: np.ndarray, left_out: np.ndarray) -> Judge:
    """Return the moments of both sets of rows in white coordinates."""
    some = np.sort(np.random.default_rng(problem.seed).permutation(seen)[:HEAD_ROWS])
    return Judge(
        *(
            statistics_of([Z.double() for Z in all_features(white, problem.source.of_rows(rows))])
            for rows in (some, left_out[:JUDGED_ROWS])
        )
    )


def neutral_loss(judge: Judge, W: Tensor) -> float:
    """Return the loss of the best linear head on f = W^T z on left-out rows; the smaller, the better f identifies rows.

    Parameters
    ----------
    judge : Judge
    W : tensor of shape (r, h)
    """
    return head_loss(embedded(judge.seen, W), embedded(judge.left_out, W))


def head_loss(seen: Statistics, unseen: Statistics, ridge: float = RIDGE) -> float:
    """Compute the optimal linear head for the spectral contrastive loss on some rows; return its loss on other rows.

    As with a linear probe, embeddings of any width, kernel and loss can be compared, since the head may rotate and
    scale them in any way. Directions of little variance count little, as in any linear model with a penalty.

    Parameters
    ----------
    seen, unseen : Statistics
        The moments of the centered embeddings of the views, on the rows for the head and on the other rows.
    ridge : float, default=0.01
        λ, as a share of the largest variance.
    """
    top = float(torch.linalg.eigvalsh(seen.second)[-1])
    (optimum,) = spectral_contrastive_optima(seen, [ridge * top], len(seen.mean))
    return spectral_contrastive_loss(unseen, optimum.W)


def embedded(stats: Statistics, W: Tensor) -> Statistics:
    """Return the moments of W^T (z - E z) from those of z."""
    W = W.to(stats.mean)
    center = torch.outer(stats.mean, stats.mean)
    second, cross = (W.T @ (moment - center) @ W for moment in (stats.second, stats.cross))
    return Statistics((second + second.T) / 2, (cross + cross.T) / 2, torch.zeros_like(W[0]), stats.diagonal)


def statistics_of(views: Sequence[Tensor]) -> Statistics:
    """Return the moments of features from the first two views of each row, each of shape (n, h)."""
    first, second = views[:2]
    n = len(first)
    cross = first.T @ second / n
    return Statistics(
        (first.T @ first + second.T @ second) / (2 * n),
        (cross + cross.T) / 2,
        (first.mean(dim=0) + second.mean(dim=0)) / 2,
        float("nan"),
    )
