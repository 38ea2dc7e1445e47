"""The time limit of a fit, and the shares of it after which parts of the fit begin no further step."""

import time

# Each of these is a share of the time limit. Once it has passed, no further step of the kind named above it begins.

# The screen: pairs of a kernel and a warp that are tuned under the identity metric.
IDENTITIES_UNTIL = 0.2
# The screen, and leaves of large tables: plans whose metric, or warp of each column, is learned as well.
METRICS_UNTIL = 0.35
# The race: splits of the rows on which plans are judged, after the first.
SPLITS_UNTIL = 0.6
# The race: plans that are judged on a split, after the first plan.
PLANS_OF_A_SPLIT_UNTIL = 0.7
# Large tables: trends that are subtracted from the targets before a search on the residuals.
TRENDS_UNTIL = 0.2
# Large tables: kernels and metrics that are compared for one trend, after the first.
STARTS_OF_A_TREND_UNTIL = 0.3
# Large tables: plans whose bandwidth and ridge are tuned in leaves, after the first.
TUNED_IN_LEAVES_UNTIL = 0.3
# Large tables: finalists that are tuned to the end, after the first.
FINALISTS_UNTIL = 0.5
# Gaussian process classifiers: the whole search for kernel and metric. The rest is for the latent functions.
SEARCH_OF_A_CLASSIFIER_UNTIL = 0.4
# Gaussian process classifiers: output scales that are compared.
OUTPUT_SCALES_UNTIL = 0.6
# Gaussian process classifiers: steps of Newton's method, after the first.
NEWTON_STEPS_UNTIL = 0.8


class Deadline:
    """A time limit in seconds, or None. It is checked before each step, and records whether it was ever exceeded."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.start = time.monotonic()
        self.was_asked_in_vain = False

    def is_over(self, share: float = 1.0) -> bool:
        """Return whether this share of the time has passed, and record it if so."""
        over = self.limit is not None and self.passed() >= share * self.limit
        self.was_asked_in_vain = self.was_asked_in_vain or over
        return over

    def passed(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.start

    def part(self, share: float) -> "Deadline":
        """Return a deadline for the first share of the time, with the same start and a record of its own."""
        part = Deadline(None if self.limit is None else share * self.limit)
        part.start = self.start
        return part
