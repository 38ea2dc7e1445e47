"""The distribution that machines predict, corrected by left-out rows: its spread, and noise that depends on x."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.blocks import WORKING_MEMORY
from mercer.tabular_models.learned import Fit
from mercer.tabular_models.noise_level import NoiseLevel, find_noise_level
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import Spread, fit_spread, left_out_predictive


class Distribution(NamedTuple):
    """How the predictive distribution of the machines is corrected.

    Attributes
    ----------
    spread : Spread
    noise_levels : list of (NoiseLevel or None)
        One a target; None where the noise does not depend on x.
    """

    spread: Spread
    noise_levels: Sequence[NoiseLevel | None]

    def factors(self, raw: Predictive, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return what the deviations of an uncorrected distribution at the rows of X are multiplied by, (k, n, c)."""
        mean = raw.mean()
        levels = np.ones_like(mean)
        for j, level in enumerate(self.noise_levels):
            if level is not None:
                levels[:, j] = level.at(X, mean[:, j], working_memory)
        return levels * self.spread.factors(levels * raw.deviations)

    def corrected(self, raw: Predictive, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> Predictive:
        """Return an uncorrected distribution at the rows of X with its deviations and tails corrected."""
        deviations = raw.deviations * self.factors(raw, X, working_memory)
        return raw._replace(deviations=deviations, tails=self.spread.tails)


class Learned(NamedTuple):
    """A distribution, and the mean log density of left-out rows under it."""

    distribution: Distribution
    log_density: float


def learn_distribution(fits: Sequence[Fit], X: np.ndarray, *, calibrate: bool) -> Learned:
    """Return how the distribution of machines is to be corrected.

    Parameters
    ----------
    fits : sequence of Fit
        The machines, the largest share first, with their predictions of left-out rows.
    X : ndarray of shape (n, d)
        The rows of the table.
    calibrate : bool
        False corrects nothing.
    """
    parts = [fit.left_out for fit in fits]
    raw, y, weights = left_out_predictive([fit.machine for fit in fits], parts), parts[0].y, parts[0].weights
    if not calibrate:
        none = Distribution(Spread.none(len(fits), y.shape[1]), [None] * y.shape[1])
        return Learned(none, float(np.average(raw.log_densities(y).mean(axis=1), weights=weights)))
    # Of each machine a bandwidth, a ridge and a share were chosen by these rows, and the spread has three numbers.
    n_chosen = 3 * len(fits) + 2
    spreads, levels, scores = [], [], []
    for j in range(y.shape[1]):
        own, target = raw.of_target(j), y[:, j : j + 1]
        spread = fit_spread(own, target, weights, n_chosen)
        score = np.average(spread.corrected(own).log_densities(target)[:, 0], weights=weights)
        found = find_noise_level(fits[0].machine, X[fits[0].judged], own, target, weights, spread, n_chosen)
        spreads.append(spread if found is None else found.spread)
        levels.append(None if found is None else found.level)
        scores.append(score if found is None else found.score)
    return Learned(Distribution(Spread.joined(spreads), levels), float(np.mean(scores)))
