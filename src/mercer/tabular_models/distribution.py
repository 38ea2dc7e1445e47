"""Calibration of the predictive distribution on left-out rows: its spread, and noise that depends on x."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.blocks import WORKING_MEMORY
from mercer.tabular_models.learned import Fit
from mercer.tabular_models.noise_level import NoiseLevel, find_noise_level
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import Spread, fit_spread, left_out_predictive


class Distribution(NamedTuple):
    """The correction of the predictive distribution of the machines.

    Attributes
    ----------
    spread : Spread
    noise_levels : list of (NoiseLevel or None)
        The noise level of each target; None if its noise does not depend on x.
    """

    spread: Spread
    noise_levels: Sequence[NoiseLevel | None]

    def factors(self, raw: Predictive, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return the factors, of shape (k, n, c), that correct the deviations of a distribution at the rows of X."""
        mean = raw.mean()
        levels = np.ones_like(mean)
        for j, level in enumerate(self.noise_levels):
            if level is not None:
                levels[:, j] = level.at(X, mean[:, j], working_memory)
        return levels * self.spread.factors(levels * raw.deviations)

    def corrected(self, raw: Predictive, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> Predictive:
        """Return a distribution at the rows of X with corrected deviations and tails."""
        deviations = raw.deviations * self.factors(raw, X, working_memory)
        return raw._replace(deviations=deviations, tails=self.spread.tails)


class Learned(NamedTuple):
    """A correction, and the mean log density of left-out rows under the corrected distribution."""

    distribution: Distribution
    log_density: float


def learn_distribution(fits: Sequence[Fit], X: np.ndarray, *, calibrate: bool) -> Learned:
    """Learn the correction of the predictive distribution from left-out rows.

    Parameters
    ----------
    fits : sequence of Fit
        The machines in decreasing order of their shares, with their predictions of left-out rows.
    X : ndarray of shape (n, d)
        The rows of the table.
    calibrate : bool
        If False, the correction changes nothing.
    """
    parts = [fit.left_out for fit in fits]
    raw, y, weights = left_out_predictive([fit.machine for fit in fits], parts), parts[0].y, parts[0].weights
    if not calibrate:
        none = Distribution(Spread.none(len(fits), y.shape[1]), [None] * y.shape[1])
        return Learned(none, float(np.average(raw.log_densities(y).mean(axis=1), weights=weights)))
    # These rows have chosen a bandwidth, a ridge and a share for each machine, and choose three numbers of the spread.
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
