"""The moments from which exact optima are computed: sums over rows of products of kernel values between views."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.embedding.centers import Centers
from mercer.kernels.base import threads_of
from mercer.linalg import gram
from mercer.rows import RowNumbers, sum_over_rows
from mercer.views.sources import ViewSource

Views = Sequence[Tensor]
"""The p views of the same rows, each of shape (n, d)."""


class Moments(NamedTuple):
    """Sums over rows of products of k_j = k(x_j), the kernel values of view x_j of a row with the m landmarks.

    Products are computed and summed in float64 for rows of any dtype. The optima divide by small eigenvalues of these
    sums, where products rounded to float32 would be noise (views would seem to agree more than perfectly). The kernel
    values themselves may be float32, since their errors average out over rows.

    Attributes
    ----------
    n_rows : int
        The number of rows in the sums.
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
    """Means over rows and views of z = B^T (k(x) - origin): Σ = E[z z^T], S = E[z z+^T], E[z], and E |φ|^2.

    B whitens the landmarks: B^T K_mm B = I. Therefore f(x) = W^T z has the coefficients A = B W, and the penalty
    Tr(A^T K_mm A) is |W|^2. φ is a row in the kernel's space minus the element that corresponds to the origin; without
    an origin |φ|^2 is k(x, x).
    """

    second: Tensor
    cross: Tensor
    mean: Tensor
    diagonal: float

    def along(self, V: Tensor) -> "Statistics":
        """Return the moments of V^T z, for directions V of shape (r, k)."""
        return self._replace(second=V.T @ self.second @ V, cross=V.T @ self.cross @ V, mean=V.T @ self.mean)


def no_moments(landmarks: Tensor) -> Moments:
    """Return the moments of an empty set of rows."""
    m = len(landmarks)
    zeros = torch.zeros((m, m), dtype=torch.float64, device=landmarks.device)
    return Moments(0, zeros[0].clone(), zeros, zeros.clone(), zeros[0, 0].clone())


def add_views(
    folds: Sequence[Moments], centers: Centers, source: ViewSource, seed: int, rows_a_block: int | None = None
) -> list[Moments]:
    """Add the moments of the views of all rows of a source to those of the folds.

    The rows of a block are shuffled by the seed and assigned to the folds in turn. They are not assigned in their own
    order, which may alternate between two sources, as the writers of MNIST do: the folds would then differ
    systematically.

    O(n p m (d + m)) time: one kernel matrix and one product for each view, and one more product for all pairs of views.
    With t = sum_j k_j, the sum over pairs is t t^T - sum_j k_j k_j^T. In addition to the sums, each thread needs memory
    for four matrices of a block.
    """
    like, seen = centers.like, sum(fold.n_rows for fold in folds)
    sums = sum_over_rows(
        moments_of_views,
        (centers, source.without_rows(), len(folds), seed),
        RowNumbers(source.n_rows, seen),
        *source.held,
        rows_a_block=rows_a_block or source.rows_a_draw,
        dtype=like.dtype,
        device=like.device,
        # Blocks go to Python threads with one BLAS thread each. BLAS threads that share a product wait for the slowest
        # of them, which takes most of the time if another process is busy.
        n_threads=threads_of(centers.kernel, like.device),
    )
    width = len(Moments._fields)
    found = [Moments(int(sums[i]), *sums[i + 1 : i + width]) for i in range(0, len(sums), width)]
    return [fold.plus(part) for fold, part in zip(folds, found, strict=True)]


def moments_of_views(
    centers: Centers, source: ViewSource, n_folds: int, seed: int
) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function (row numbers, rows or their views) -> the moments of these rows for each fold, flattened."""
    prepared = [centers.kernel.prepare(Z) for Z in centers.sets]

    def moments(numbers: Tensor, *held: Tensor) -> tuple[Tensor, ...]:
        place = int(numbers[0])
        views = source.views_of(held, place, centers.like)
        folds = chunk_moments(centers, prepared, views, n_folds, shuffled(len(numbers), seed, place))
        return tuple(torch.as_tensor(part) for fold in folds for part in fold)

    return moments


def chunk_moments(
    centers: Centers, prepared: Sequence[Any], views: Views, n_folds: int, order: Tensor
) -> list[Moments]:
    """Return the moments of a chunk of rows for each fold; the rows are assigned to the folds in turn, in `order`."""
    kernel, like = centers.kernel, centers.like
    p, n, order = len(views), len(views[0]), order.to(like.device)
    zeros = torch.zeros((len(like), len(like)), dtype=torch.float64, device=like.device)
    sums = zeros.new_zeros((n, len(like)))
    seconds = [zeros.clone() for _ in range(n_folds)]
    diagonals = zeros.new_zeros(n)
    scratch = torch.empty((n, len(like)), dtype=like.dtype, device=like.device)
    for j, view in enumerate(views):
        landmarks = prepared[j % len(prepared)]
        x = kernel.prepare(view[order].to(like), beside=landmarks)
        K = kernel.values(x, landmarks, scratch).to(torch.float64)
        sums += K
        diagonals += kernel.prepared_diagonal(x)
        for i, second in enumerate(seconds):
            second += gram(K[i::n_folds])
    found = []
    for i, second in enumerate(seconds):
        dealt = sums[i::n_folds]
        cross = gram(dealt).sub_(second).div_(p * (p - 1)) if p > 1 else torch.zeros_like(second)
        diagonal = diagonals[i::n_folds].sum() / p
        found.append(Moments(len(dealt), dealt.sum(dim=0) / p, second / p, cross, diagonal))
    return found


def shuffled(n: int, seed: int, place: int) -> Tensor:
    """Return a random permutation of n rows that depends on the seed and on the number `place` of the first row."""
    return torch.from_numpy(np.random.default_rng([seed, place]).permutation(n))


def statistics(moments: Moments, B: Tensor, origin: Tensor | None = None) -> Statistics:
    """Return the means of z = B^T (k(x) - origin) from the sums; without an origin it is 0.

    With μ = E[k], subtracting a from k changes E[k k^T] to E[k k^T] - μ a^T - a μ^T + a a^T. In the kernel's space this
    subtracts the element c in the span of the landmarks whose kernel values with them are a, so that E |φ(x) - c|^2 is
    E[k(x, x)] - 2 (B^T μ)^T (B^T a) + |B^T a|^2.
    """
    mean = moments.mean
    a = torch.zeros_like(mean) if origin is None else origin
    change = torch.outer(a, a) - torch.outer(mean, a) - torch.outer(a, mean)
    second, cross = (B.T @ (part / moments.n_rows + change) @ B for part in (moments.second, moments.cross))
    center = B.T @ a
    diagonal = float(moments.diagonal / moments.n_rows - 2.0 * (B.T @ mean) @ center + center @ center)
    return Statistics((second + second.T) / 2, (cross + cross.T) / 2, B.T @ (mean - a), diagonal)
