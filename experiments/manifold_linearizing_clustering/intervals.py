"""Differences of two methods over the same seeds, and the 95 % interval of their mean."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from scipy.stats import t


class Interval(NamedTuple):
    """The mean of some differences with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def interval(gains: Sequence[float]) -> Interval:
    """Return Student's interval of paired differences; for a single difference it is infinite."""
    mean = statistics.fmean(gains)
    if len(gains) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(t.ppf(0.975, len(gains) - 1)) * statistics.stdev(gains) / math.sqrt(len(gains))
    return Interval(mean, mean - half, mean + half)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the differences seed by seed; if the lists differ in length, over the seeds that both have."""
    return [a - b for a, b in zip(ours, theirs, strict=False)]


def on_shared_start(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the differences seed by seed of methods on one start that all seeds share.

    A method that could vary with the seed only through k-means is run once, and its value is used for all seeds.
    """
    return paired(ours, theirs if len(theirs) > 1 else [theirs[0]] * len(ours))
