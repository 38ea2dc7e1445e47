"""Scores of embeddings: the number of their directions, and the coverage of the classes by their landmarks."""

from typing import Any

import numpy as np
from scipy.integrate import quad

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter
from mercer.metrics.arrays import check_matrix


def numerical_rank(matrix: Any, *, energy: float | None = None) -> int:
    """Return the number of directions of a matrix that exceed rounding errors, or that hold most of its energy.

    Without `energy`, it is `numpy.linalg.matrix_rank`: a singular value counts if it is above max(m, h) times the
    rounding error of the largest, in the precision of the matrix, so that fewer count in float32 than in float64. With
    `energy`, it is the smallest number of leading singular values whose squares are more than that share of the sum of
    all squares (section 3.1 of manifold-linearizing-clustering); a matrix of zeros has rank 0.

    Parameters
    ----------
    matrix : array-like of shape (m, h)
    energy : float, optional
        Strictly between 0 and 1; 0.95 in the paper.

    Examples
    --------
    >>> from mercer.metrics import numerical_rank
    >>> A = [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.1]]
    >>> numerical_rank(A), numerical_rank(A, energy=0.95)
    (3, 2)
    """
    A = check_matrix("matrix", matrix)
    if energy is None:
        return int(np.linalg.matrix_rank(np.asarray(matrix)))
    if check_number("energy", energy, above=0) >= 1:
        raise invalid_parameter("energy", energy, "a finite number above 0 and below 1")
    singular = np.linalg.svd(A, compute_uv=False)
    # Divided by the largest, so that no square overflows or underflows.
    held = np.cumsum((singular / (singular[0] or 1.0)) ** 2)
    return int(np.argmax(held > energy * held[-1])) + 1 if held[-1] else 0


def effective_rank(matrix: Any) -> float:
    """Return exp(-sum p_i log p_i), the number of directions of a matrix A, in which small directions count little.

    The p_i are the eigenvalues of A^T A divided by their sum. The result is between 1 (there is only one direction) and
    h (all directions have the same size).

    Parameters
    ----------
    matrix : array-like of shape (m, h)
        A. At least one entry must not be zero.

    Examples
    --------
    >>> from mercer.metrics import effective_rank
    >>> round(effective_rank([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 6)
    2.0
    """
    singular = np.linalg.svd(check_matrix("matrix", matrix), compute_uv=False)
    if not singular[0]:
        raise invalid_parameter("matrix", 0.0, "different from zero somewhere")
    # Divided by the largest, so that no square overflows. Those that underflow add nothing to the sum: p log p is 0.
    squares = (singular / singular[0]) ** 2
    shares = squares / squares.sum()
    shares = shares[shares > 0]
    return float(np.exp(-np.sum(shares * np.log(shares))))


def class_coverage(coefficients: Any, labels: Any, classes: Any = None) -> int:
    """Return how many of the most important landmarks are needed for every class to be among them; small is good.

    This is kappa of krepes, section 5. Landmarks are ordered by the norm of their row of the coefficients A, the
    largest first; equal ones stay in their order. For a random order, the mean is `expected_class_coverage`.

    Parameters
    ----------
    coefficients : array-like of shape (m, h)
        A.
    labels : array-like of shape (m,)
        The class of each landmark.
    classes : array-like, optional
        All classes of the data; by default, those of the landmarks.

    Examples
    --------
    >>> from mercer.metrics import class_coverage
    >>> class_coverage([[3.0], [0.1], [-2.0], [1.0]], ["cat", "dog", "cat", "dog"])
    3
    """
    norms = np.linalg.norm(check_matrix("coefficients", coefficients), axis=1)
    codes, counts = _landmark_classes(labels, classes)
    if len(codes) != len(norms):
        raise invalid_parameter("labels", codes.shape, f"one class for each landmark, of shape ({len(norms)},)")
    ordered = codes[np.argsort(-norms, kind="stable")]
    first = [int(np.argmax(ordered == k)) for k in range(len(counts))]
    return max(first) + 1


def expected_class_coverage(labels: Any, classes: Any = None) -> float:
    """How many landmarks in random order are needed until every class is among them? Return the mean.

    If c_k of the m landmarks are in class k, it is (m + 1) times the integral of 1 - prod_k (1 - x^c_k) over [0, 1].
    This follows if the landmarks arrive at independent uniform times 1 - x, since whether one class has been seen at a
    time is then independent of the other classes.

    Parameters
    ----------
    labels : array-like of shape (m,)
        The class of each landmark.
    classes : array-like, optional
        All classes of the data; by default, those of the landmarks.

    Examples
    --------
    >>> from mercer.metrics import expected_class_coverage
    >>> round(expected_class_coverage(["cat", "dog"]), 6), round(expected_class_coverage(["cat", "cat", "dog"]), 4)
    (2.0, 2.3333)
    """
    codes, counts = _landmark_classes(labels, classes)
    rarest = counts.min()

    # With x = exp(-u / c_min), the integrand extends over u of order 1, however many landmarks there are.
    def integrand(u: float) -> float:
        seen = np.log1p(-np.exp(-np.maximum(u, 1e-300) * counts / rarest))
        return float(-np.expm1(seen.sum()) * np.exp(-u / rarest) / rarest)

    area, _ = quad(integrand, 0.0, np.inf, epsabs=0.0, epsrel=1e-10, limit=500)
    return float((len(codes) + 1) * area)


def _landmark_classes(labels: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each landmark's class, counted from 0, and how many landmarks each class has."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or not labels.size:
        raise invalid_parameter("labels", labels.shape, "one class for each landmark, of shape (m,)")
    own, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    missing = [] if classes is None else sorted(set(np.asarray(classes).tolist()) - set(own.tolist()), key=str)
    if missing:
        raise invalid_parameter("labels", own.tolist(), "of all classes", f"No landmark is of {missing}.")
    return codes, counts
