"""What scikit-learn does not measure: Gaussian uncertainty, methods over data sets, embeddings by their landmarks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm, rankdata

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter


def as_numbers(name: str, value: Any) -> np.ndarray:
    """Return `value` as a float64 array, or say that it is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise invalid_parameter(name, value, "an array of numbers") from error


def check_gaussian(y: Any, mean: Any, std: Any, y_name: str = "y") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return targets y and their predictions N(mean, std^2) as float64 arrays of one shape, or say what is wrong."""
    arrays = {name: as_numbers(name, value) for name, value in ((y_name, y), ("mean", mean), ("std", std))}
    shape = arrays[y_name].shape
    for name, array in arrays.items():
        # No broadcasting: y of shape (n, 1) beside a mean of shape (n,) would silently compare all pairs.
        if array.shape != shape:
            raise invalid_parameter(name, array.shape, f"an array of the shape of {y_name}, which is {shape}")
        if array.size == 0:
            raise invalid_parameter(name, array.shape, "an array with at least one entry")
        if not np.all(np.isfinite(array)):
            first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise invalid_parameter(name, float(array[first]), "finite throughout", f"Found at {first}.")
    if arrays["std"].min() <= 0:
        raise invalid_parameter("std", float(arrays["std"].min()), "above 0 throughout")
    return arrays[y_name], arrays["mean"], arrays["std"]


def check_level(level: Any) -> float:
    """Return the probability of an interval if it lies strictly between 0 and 1, where the interval is finite."""
    number = check_number("level", level, above=0)
    if number >= 1:
        raise invalid_parameter("level", level, "a finite number above 0 and below 1")
    return number


def interval_halfwidth(level: Any) -> float:
    """Return z such that mean ± z std holds a Gaussian target with probability `level`."""
    return float(norm.ppf((1 + check_level(level)) / 2))


def negative_log_likelihood(y: Any, mean: Any, std: Any) -> float:
    """How probable are targets under Gaussian predictions? Return the mean of -log N(y | mean, std^2), lower is better.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        What a model predicts of each. The spread is that of a target, noise included.

    Examples
    --------
    >>> from mercer.metrics import negative_log_likelihood
    >>> round(negative_log_likelihood([0.0, 2.0], [0.0, 0.0], [1.0, 1.0]), 4)
    1.9189
    """
    y, mean, std = check_gaussian(y, mean, std)
    return float(np.mean(0.5 * np.log(2 * np.pi) + np.log(std) + 0.5 * ((y - mean) / std) ** 2))


def coverage(y: Any, mean: Any, std: Any, level: float = 0.9) -> float:
    """How often does the central interval of probability `level` hold its target? Return the share; `level` is right.

    Parameters
    ----------
    y : array-like
        The targets.
    mean, std : array-like of the shape of y
        What a model predicts of each: the interval is mean ± z std.
    level : float, default=0.9
        Strictly between 0 and 1.

    Examples
    --------
    >>> from mercer.metrics import coverage
    >>> coverage([0.0, 1.6, 1.7, -2.0], [0.0] * 4, [1.0] * 4)
    0.5
    """
    y, mean, std = check_gaussian(y, mean, std)
    return float(np.mean(np.abs(y - mean) <= interval_halfwidth(level) * std))


def common_data_sets(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the data sets of `scores[method][data set]`; an error unless all methods have the same ones.

    A method that is left out where it would do badly would come out ahead.
    """
    if not isinstance(scores, Mapping) or not scores:
        raise invalid_parameter("scores", scores, "a dict from method to a dict from data set to scores, not empty")
    for method, of_method in scores.items():
        if not isinstance(of_method, Mapping) or not of_method:
            raise invalid_parameter(f"scores[{method!r}]", of_method, "a dict from data set to scores, not empty")
    first = next(iter(scores))
    for method, of_method in scores.items():
        if set(of_method) != set(scores[first]):
            raise invalid_parameter(
                f"scores[{method!r}]",
                sorted(map(str, of_method)),
                f"scores on the data sets of {first!r}, {sorted(map(str, scores[first]))}",
            )
    return list(scores[first])


def mean_ranks(scores: Mapping[str, Mapping[str, float]], *, lower_is_better: bool = True) -> dict[str, float]:
    """Which method is best over data sets of different scales? Return the mean rank of each, 1 for always the best.

    Parameters
    ----------
    scores : dict from method to dict from data set to float
        All methods on the same data sets. Methods with equal scores share the mean of their ranks.
    lower_is_better : bool, default=True
        Whether the lowest score gets rank 1, or the highest.

    Examples
    --------
    >>> from mercer.metrics import mean_ranks
    >>> mean_ranks({"a": {"wine": 0.6, "power": 3.8}, "b": {"wine": 0.7, "power": 3.8}})
    {'a': 1.25, 'b': 1.75}
    """
    data_sets = common_data_sets(scores)
    table = np.array(
        [
            [check_number(f"scores[{method!r}][{data_set!r}]", of_method[data_set]) for data_set in data_sets]
            for method, of_method in scores.items()
        ]
    )
    ranks = rankdata(table if lower_is_better else -table, axis=0).mean(axis=1)
    return dict(zip(scores, ranks.tolist(), strict=True))


def numerical_rank(matrix: Any) -> int:
    """How many directions of a matrix are more than rounding? Return the number, as `numpy.linalg.matrix_rank`.

    A singular value counts above max(m, h) times the rounding error of the largest, in the precision of the matrix:
    float32 has fewer than float64.

    Parameters
    ----------
    matrix : array-like of shape (m, h)
    """
    check_matrix("matrix", matrix)
    return int(np.linalg.matrix_rank(np.asarray(matrix)))


def effective_rank(matrix: Any) -> float:
    """How many directions does a matrix A use, small ones counting little? Return exp(-sum p_i log p_i).

    The p_i are the eigenvalues of A^T A over their sum. From 1 (all in one direction) to h (all directions alike).

    Parameters
    ----------
    matrix : array-like of shape (m, h)
        A; not zero throughout.

    Examples
    --------
    >>> from mercer.metrics import effective_rank
    >>> round(effective_rank([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 6)
    2.0
    """
    squares = np.linalg.svd(check_matrix("matrix", matrix), compute_uv=False) ** 2
    if not squares.any():
        raise invalid_parameter("matrix", 0.0, "different from zero somewhere")
    shares = squares[squares > 0] / squares.sum()
    return float(np.exp(-np.sum(shares * np.log(shares))))


def check_matrix(name: str, values: Any) -> np.ndarray:
    """Return a finite float64 matrix with an entry at least."""
    array = as_numbers(name, values)
    if array.ndim != 2 or not array.size:
        raise invalid_parameter(name, array.shape, "a matrix of shape (m, h), with an entry at least")
    if not np.all(np.isfinite(array)):
        raise invalid_parameter(name, float(array[~np.isfinite(array)][0]), "finite throughout")
    return array


def class_coverage(coefficients: Any, labels: Any, classes: Any = None) -> int:
    """How many landmarks must one look at to have seen every class? Return kappa of krepes, section 5: small is good.

    Landmarks are taken by the norm of their row of coefficients A, the largest first; equal ones in their order.
    `expected_class_coverage` is what a random order would give.

    Parameters
    ----------
    coefficients : array-like of shape (m, h)
        A.
    labels : array-like of shape (m,)
        The class of each landmark.
    classes : array-like, optional
        All classes of the data; those of the landmarks where not given.

    Examples
    --------
    >>> from mercer.metrics import class_coverage
    >>> class_coverage([[3.0], [0.1], [-2.0], [1.0]], ["cat", "dog", "cat", "dog"])
    3
    """
    norms = np.linalg.norm(check_matrix("coefficients", coefficients), axis=1)
    codes, counts = _landmark_classes(labels, classes)
    if len(codes) != len(norms):
        raise invalid_parameter("labels", codes.shape, f"one class a landmark, of shape ({len(norms)},)")
    ordered = codes[np.argsort(-norms, kind="stable")]
    first = [int(np.argmax(ordered == k)) for k in range(len(counts))]
    return max(first) + 1


def expected_class_coverage(labels: Any, classes: Any = None) -> float:
    """How many landmarks in random order does one look at until every class has been seen? Return the mean.

    With c_k of the m landmarks in class k it is (m + 1) times the integral of 1 - prod_k (1 - x^c_k) over [0, 1]: let
    the landmarks come at independent uniform times 1 - x, and classes are seen or not independently of each other.

    Parameters
    ----------
    labels : array-like of shape (m,)
        The class of each landmark.
    classes : array-like, optional
        All classes of the data; those of the landmarks where not given.

    Examples
    --------
    >>> from mercer.metrics import expected_class_coverage
    >>> round(expected_class_coverage(["cat", "dog"]), 6), round(expected_class_coverage(["cat", "cat", "dog"]), 4)
    (2.0, 2.3333)
    """
    codes, counts = _landmark_classes(labels, classes)
    rarest = counts.min()

    # x = exp(-u / c_min): then the integrand is spread over u of order 1, however many landmarks there are.
    def integrand(u: float) -> float:
        seen = np.log1p(-np.exp(-np.maximum(u, 1e-300) * counts / rarest))
        return float(-np.expm1(seen.sum()) * np.exp(-u / rarest) / rarest)

    area, _ = quad(integrand, 0.0, np.inf, epsabs=0.0, epsrel=1e-10, limit=500)
    return float((len(codes) + 1) * area)


def _landmark_classes(labels: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each landmark's class, and how many landmarks each class has."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or not labels.size:
        raise invalid_parameter("labels", labels.shape, "one class a landmark, of shape (m,)")
    own, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    missing = [] if classes is None else sorted(set(np.asarray(classes).tolist()) - set(own.tolist()), key=str)
    if missing:
        raise invalid_parameter("labels", own.tolist(), "of all classes", f"No landmark is of {missing}.")
    return codes, counts
