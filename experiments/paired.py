"""Comparison of two methods on the same seeds: the differences, the interval of their mean, and its sign."""

import statistics
from collections.abc import Sequence

from scipy.stats import t as student

from experiments.claims import Results


def gains(results: Results, better: str, worse: str, measure: str) -> list[float]:
    """Return the differences of a measure between two cases, seed by seed."""
    pairs = zip(results.values(better, measure), results.values(worse, measure), strict=True)
    return [one - other for one, other in pairs]


def interval(differences: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of Student's t for the mean of paired differences; None for fewer than two."""
    n = len(differences)
    if n < 2:
        return None
    mean = statistics.fmean(differences)
    half = float(student.ppf(0.5 + level / 2, n - 1)) * statistics.stdev(differences) / n**0.5
    return mean - half, mean + half


def is_above_zero(differences: Sequence[float]) -> bool:
    """Whether the interval of the mean lies above zero; for a single difference, whether this is above zero."""
    found = interval(differences)
    return differences[0] > 0 if found is None else found[0] > 0


def shown(differences: Sequence[float]) -> str:
    """Return the mean and its interval as text."""
    found, mean = interval(differences), statistics.fmean(differences)
    return f"{mean:+.3f}" if found is None else f"{mean:+.3f} [{found[0]:+.3f}, {found[1]:+.3f}]"
