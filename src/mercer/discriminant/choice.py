"""How a kernel discriminant chooses its bandwidth and its ridge: by the leave-one-out error of the class indicators.

A discriminant with a ridge has the smoother of a ridge regression, so the squared error with which that regression
predicts the class indicators of rows left out, known in closed form, stands for how well the discriminant generalises.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.discriminant.directions import Groups, double_centred, landmark_basis, smoother_gram
from mercer.discriminant.landmark_rows import LandmarkRows
from mercer.kernels import Kernel
from mercer.selection import best, evaluate_matrix, select

# Bandwidths as multiples of the kernel's own, and the smallest eigenvalues of the kernel matrix to be trusted.
BANDWIDTHS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
CUTOFFS = tuple(10.0 ** (p / 2) for p in range(-8, 4))
# The most rows that a search is made on, without landmarks and with them, and the most landmarks.
SEARCH_ROWS = 2000
SEARCH_ROWS_OF_LANDMARKS = 20_000
SEARCH_LANDMARKS = 2000


def indicators(groups: Groups) -> Tensor:
    """Return a column a class, 1 for its rows and 0 for others, centred."""
    Y = torch.nn.functional.one_hot(groups.of_row, len(groups.counts)).to(torch.float64)
    return Y - Y.mean(dim=0)


def candidate_ridges(kernel: Kernel | None, X: np.ndarray, regularizer: str) -> list[float]:
    """Return the ridges to try: a cut-off c of the eigenvalues of K is the ridge c for R = K and c^2 for R = I.

    Cut-offs are relative to the mean of the kernel's diagonal; X is the kernel matrix itself if the kernel is None.
    """
    diagonal = X.diagonal() if kernel is None else kernel.diagonal(X)
    scale = float(np.mean(diagonal)) or 1.0
    return [(cutoff * scale) ** (1 if regularizer == "rkhs" else 2) for cutoff in CUTOFFS]


def gram_of(K: Tensor, regularizer: str, center: bool) -> Tensor:
    """Return the Gram matrix of the regression whose smoother the discriminant has."""
    return smoother_gram(double_centred(K) if center else K, regularizer)


def choose_exact(
    kernels: Sequence[Kernel],
    ridges: Sequence[float],
    X: np.ndarray,
    groups: Groups,
    regularizer: str,
    center: bool,
    random: np.random.RandomState,
) -> tuple[Kernel, float]:
    """Return the best kernel and ridge for functions of all rows, searched on at most 2000 of them.

    A ridge means the same on all rows as on a part of them, where it cuts the same eigenvalues of the kernel operator.
    """
    chosen = select(
        kernels,
        ridges,
        as_tensor(X, dtype=torch.float64, device=groups.counts.device),
        indicators(groups),
        n_search=SEARCH_ROWS,
        n_finalists=0,
        gram=partial(gram_of, regularizer=regularizer, center=center),
        intercept=center,
        random_state=random,
    )
    return chosen.kernel_used(), chosen.ridge


def choose_precomputed(
    K: np.ndarray,
    ridges: Sequence[float],
    groups: Groups,
    regularizer: str,
    center: bool,
    random: np.random.RandomState,
) -> float:
    """Return the best ridge for a given kernel matrix, searched on at most 2000 rows."""
    rows = drawn_rows(len(K), SEARCH_ROWS, random)
    part = as_tensor(K[np.ix_(rows, rows)], dtype=torch.float64, device=groups.counts.device)
    Y = indicators(groups)[torch.from_numpy(rows).to(groups.counts.device)]
    return best(evaluate_matrix(gram_of(part, regularizer, center), ridges, Y, intercept=center)).ridge


def choose_with_landmarks(
    kernels: Sequence[Kernel],
    X: np.ndarray,
    landmarks: np.ndarray,
    groups: Groups,
    regularizer: str,
    center: bool,
    working_memory: float,
    random: np.random.RandomState,
) -> Kernel:
    """Return the best kernel for functions of landmarks, each with its best ridge.

    Searched with at most 2000 of the landmarks and 20 000 of the rows: what is best for functions of few landmarks is
    wider than what is best for functions of all rows.
    """
    rows = drawn_rows(len(X), SEARCH_ROWS_OF_LANDMARKS, random)
    few = landmarks[drawn_rows(len(landmarks), SEARCH_LANDMARKS, random)]
    device = groups.counts.device
    # Numbered anew: a class that the draw has missed would have no mean.
    present, index = torch.unique(groups.of_row[torch.from_numpy(rows).to(device)], return_inverse=True)
    part = Groups.from_index(index, len(present))
    errors = []
    for kernel in kernels:
        seen = LandmarkRows(X[rows], few, kernel, center, working_memory, device)
        basis = landmark_basis(*seen.sums(part), part.counts, seen.regularizer(regularizer))
        errors.append(float(seen.compare(basis, part, candidate_ridges(kernel, few, regularizer))[0].min()))
    return kernels[int(np.argmin(errors))]


def drawn_rows(n: int, most: int, random: np.random.RandomState) -> np.ndarray:
    """Return all n rows, or `most` of them drawn at random, in order."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))
