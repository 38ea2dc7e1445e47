"""Class coverage kappa with its curve: how many landmarks it takes until every class is among them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from mercer.metrics import class_coverage, expected_class_coverage


class Coverage(NamedTuple):
    """How many of the most important landmarks show every class, compared with a random order and the best one.

    Attributes
    ----------
    kappa : int
        The number of landmarks, taken in the order of the norms of their rows of A, until every class is among them
        (krepes, section 5).
    kappa_random : float
        The mean of kappa over random orders.
    kappa_best : int
        Kappa in the best order, which is the number of classes.
    classes : list of str
    counts : ndarray of shape (c,)
        The number of landmarks of each class.
    first : ndarray of shape (c,)
        The rank of the first landmark of each class, counted from 1.
    first_random : ndarray of shape (c,)
        The mean of `first` over random orders, (m + 1) / (count + 1).
    curve, curve_random, curve_best : ndarray of shape (m,)
        The number of classes among the first k landmarks, k = 1, ..., m: in the order of the norms, on average over
        random orders, and in the best order.
    """

    kappa: int
    kappa_random: float
    kappa_best: int
    classes: list[str]
    counts: np.ndarray
    first: np.ndarray
    first_random: np.ndarray
    curve: np.ndarray
    curve_random: np.ndarray
    curve_best: np.ndarray

    def __str__(self) -> str:
        width = max(len(name) for name in self.classes)
        lines = [
            f"kappa {self.kappa}; {self.kappa_random:.4g} in a random order, {self.kappa_best} at best",
            f"  {'class':<{width}}  landmarks  first  first in a random order",
        ]
        for name, count, first, by_chance in zip(self.classes, self.counts, self.first, self.first_random, strict=True):
            lines.append(f"  {name:<{width}}  {count:>9}  {first:>5}  {by_chance:.4g}")
        return "\n".join(lines)


def coverage(coefficients: Any, labels: Any) -> Coverage:
    """Return the class coverage of landmarks, class by class and landmark by landmark.

    Parameters
    ----------
    coefficients : array-like of shape (m, h)
        A, such as `embedding.coefficients_`.
    labels : array-like of shape (m,)
        The class of each landmark, such as `y[embedding.landmark_indices_]`.

    Examples
    --------
    >>> from mercer.explain import coverage
    >>> found = coverage([[3.0], [0.1], [-2.0], [1.0]], ["cat", "dog", "cat", "dog"])
    >>> found.kappa, found.curve.tolist()
    (3, [1, 1, 2, 2])
    """
    kappa, by_chance = class_coverage(coefficients, labels), expected_class_coverage(labels)
    norms = np.linalg.norm(np.asarray(coefficients, dtype=np.float64), axis=1)
    classes, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    m, ordered = len(codes), codes[np.argsort(-norms, kind="stable")]
    first = np.array([int(np.argmax(ordered == k)) + 1 for k in range(len(classes))])
    k = np.arange(1, m + 1)
    return Coverage(
        kappa=kappa,
        kappa_random=by_chance,
        kappa_best=len(classes),
        classes=[str(name) for name in classes],
        counts=counts,
        first=first,
        first_random=(m + 1) / (counts + 1),
        curve=(first[None, :] <= k[:, None]).sum(axis=1),
        curve_random=seen_by_chance(counts, m),
        curve_best=np.minimum(k, len(classes)),
    )


def seen_by_chance(counts: np.ndarray, m: int) -> np.ndarray:
    """Return the mean number of classes among k landmarks drawn from m, for k = 1, ..., m.

    A class with c landmarks is missed with probability C(m - c, k) / C(m, k).
    """
    k, rest = np.arange(1, m + 1)[:, None], m - np.asarray(counts)[None, :]
    possible = k <= rest
    left = np.where(possible, rest - k, 0)
    log_missed = gammaln(rest + 1) - gammaln(left + 1) - gammaln(m + 1) + gammaln(m - k + 1)
    return (1.0 - np.where(possible, np.exp(np.where(possible, log_missed, 0.0)), 0.0)).sum(axis=1)
