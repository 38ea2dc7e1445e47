"""What the closed forms need of the data: sums over rows of products of kernel values between views."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.embedding.centers import Centers

Views = Sequence[Tensor]
"""The p views of the same rows, each of shape (n, d)."""


class Moments(NamedTuple):
    """Sums over rows of k_j = k(x_j), x_1 .. x_p the views of a row and k(x) its kernel values with m landmarks.

    Products are formed and summed in float64 whatever the rows are: the optima divide by small eigenvalues of these
    sums, and products rounded to float32 would be noise there (views would seem to agree more than perfectly). The
    values themselves may be float32, since their errors average out over rows.

    Attributes
    ----------
    n_rows : int
    total : tensor of shape (m,)
        The sum of the mean over views of k.
    second : tensor of shape (m, m)
        The sum of the mean over views of k k^T.
    cross : tensor of shape (m, m)
        The sum of the mean over ordered pairs of different views of k k+^T; zero for a single view.
    diagonal : tensor of shape ()
        The sum of the mean over views of k(x, x).
    """

    n_rows: int
    total: Tensor
    second: Tensor
    cross: Tensor
    diagonal: Tensor

    def plus(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows."""
        return Moments(
            self.n_rows + other.n_rows,
            self.total + other.total,
            self.second + other.second,
            self.cross + other.cross,
            self.diagonal + other.diagonal,
        )

    @property
    def mean(self) -> Tensor:
        """The mean of k(x), of shape (m,)."""
        return self.total / self.n_rows


class Statistics(NamedTuple):
    """Means over rows and views of z = B^T (k(x) - origin): Σ = E[z z^T], S = E[z z+^T], the mean, and E |φ|^2.

    B whitens the landmarks, B^T K_mm B = I: f(x) = W^T z has A = B W, and the penalty Tr(A^T K_mm A) is |W|^2. φ is a
    row in the kernel's space, less the point there that the origin stands for, so that |φ|^2 is k(x, x) without one.
    """

    second: Tensor
    cross: Tensor
    mean: Tensor
    diagonal: float


def no_moments(landmarks: Tensor) -> Moments:
    """Return the moments of no rows."""
    m = len(landmarks)
    zeros = torch.zeros((m, m), dtype=torch.float64, device=landmarks.device)
    return Moments(0, zeros[0].clone(), zeros, zeros.clone(), zeros[0, 0].clone())


def add_views(folds: Sequence[Moments], centers: Centers, chunks: Iterable[Views], seed: int) -> list[Moments]:
    """Return the moments of each fold with those of chunks of rows added.

    The rows of a chunk are shuffled, by the seed, and dealt to the folds in turn. In their own order they may alternate
    between two sources, as the writers of MNIST do: folds would then differ by more than chance.

    O(n p m (d + m)) time: per view one kernel matrix and one product, and one product more for all pairs, since with
    t = sum_j k_j the pairs sum to t t^T - sum_j k_j k_j^T. Beside the sums, memory for four matrices of a chunk.
    """
    folds = list(folds)
    kernel, like = centers.kernel, centers.like
    prepared = [kernel.prepare(Z) for Z in centers.sets]
    for views in chunks:
        p, n = len(views), len(views[0])
        shuffle = shuffled(n, seed, sum(fold.n_rows for fold in folds)).to(like.device)
        sums = torch.zeros((n, len(like)), dtype=torch.float64, device=like.device)
        seconds = [torch.zeros_like(fold.second) for fold in folds]
        diagonals = torch.zeros_like(sums[:, 0])
        scratch = torch.empty((n, len(like)), dtype=like.dtype, device=like.device)
        for j, view in enumerate(views):
            landmarks = prepared[j % len(prepared)]
            x = kernel.prepare(view[shuffle].to(like), beside=landmarks)
            K = kernel.values(x, landmarks, scratch).to(torch.float64)
            sums += K
            diagonals += kernel.prepared_diagonal(x)
            for i, second in enumerate(seconds):
                second.addmm_(K[i :: len(folds)].T, K[i :: len(folds)])
        for i, (fold, second) in enumerate(zip(folds, seconds, strict=True)):
            dealt = sums[i :: len(folds)]
            cross = (dealt.T @ dealt).sub_(second).div_(p * (p - 1)) if p > 1 else torch.zeros_like(second)
            diagonal = diagonals[i :: len(folds)].sum() / p
            folds[i] = fold.plus(Moments(len(dealt), dealt.sum(dim=0) / p, second / p, cross, diagonal))
    return folds


def shuffled(n: int, seed: int, place: int) -> Tensor:
    """Return the numbers below n in an order drawn for rows that come after `place` others."""
    return torch.from_numpy(np.random.default_rng([seed, place]).permutation(n))


def statistics(moments: Moments, B: Tensor, origin: Tensor | None = None) -> Statistics:
    """Return the means of z = B^T (k(x) - origin) from the sums; the origin is 0 unless it is given.

    Taking a from k turns E[k k^T] into E[k k^T] - μ a^T - a μ^T + a a^T, μ = E[k]. In the kernel's space it takes
    away the point c of the landmarks' span whose kernel values with them are a, so that E |φ(x) - c|^2 is
    E[k(x, x)] - 2 (B^T μ)^T (B^T a) + |B^T a|^2.
    """
    mean = moments.mean
    a = torch.zeros_like(mean) if origin is None else origin
    change = torch.outer(a, a) - torch.outer(mean, a) - torch.outer(a, mean)
    second, cross = (B.T @ (part / moments.n_rows + change) @ B for part in (moments.second, moments.cross))
    center = B.T @ a
    diagonal = float(moments.diagonal / moments.n_rows - 2.0 * (B.T @ mean) @ center + center @ center)
    return Statistics((second + second.T) / 2, (cross + cross.T) / 2, B.T @ (mean - a), diagonal)
