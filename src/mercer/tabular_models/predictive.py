"""The predictive distribution of targets: a mixture of Gaussian or Student-t components, its density and quantiles."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

# The degrees of freedom of a Student-t that are compared; infinity is the Gaussian.
TAILS = (np.inf, 30.0, 15.0, 10.0, 7.0, 5.0, 4.0, 3.0)
# The largest number of steps to the maximum likelihood scale of a Student-t, and the change of its logarithm at which
# they end.
SCALE_STEPS, SCALE_TOLERANCE = 50, 1e-4
# The largest number of steps to a quantile. Bisection alone gains three digits in ten steps.
MOST_STEPS = 80


class Predictive(NamedTuple):
    """The distribution of c targets at each of n rows: a mixture of k components bell((y - mean) / deviation).

    The bell is the density of a Gaussian, or of a Student-t with `tails` degrees of freedom. It is scaled to variance
    1, so that the deviations are standard deviations for all tails.

    Attributes
    ----------
    shares : ndarray of shape (k,)
        The weights of the components, which sum to 1.
    means : ndarray of shape (k, n, c)
    deviations : ndarray of shape (k, n, c)
    tails : ndarray of shape (c,)
        The degrees of freedom, which are above 2, and infinite for a Gaussian.
    """

    shares: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    tails: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the mean, of shape (n, c)."""
        return np.tensordot(self.shares, self.means, axes=1)

    def variance(self) -> np.ndarray:
        """Return the variance, of shape (n, c): the mean of the variances plus the variance of the means."""
        return np.tensordot(self.shares, self.deviations**2 + (self.means - self.mean()) ** 2, axes=1)

    def component_log_densities(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of y of shape (n, c) under each component, of shape (k, n, c)."""
        return log_bell((y - self.means) / self.deviations, self.tails) - np.log(self.deviations)

    def log_densities(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of each target by itself, of shape (n, c)."""
        return np.logaddexp.reduce(np.log(self.shares)[:, None, None] + self.component_log_densities(y), axis=0)

    def joint_log_densities(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of each row, of shape (n,); within a component, the targets are independent."""
        return np.logaddexp.reduce(np.log(self.shares)[:, None] + self.component_log_densities(y).sum(axis=2), axis=0)

    def cumulative(self, y: np.ndarray) -> np.ndarray:
        """Return the probability of a target at most y, of shape (n, c)."""
        return np.tensordot(self.shares, bell_cumulative((y - self.means) / self.deviations, self.tails), axes=1)

    def quantiles(self, q: float) -> np.ndarray:
        """Return the q-quantiles, of shape (n, c).

        The quantile of a mixture lies between the smallest and the largest quantile of its components. From this
        bracket it is found by Newton's method, with bisection wherever a step leaves the bracket. All rows are
        processed together, in O(k n c) for each step.
        """
        of_components = self.means + self.deviations * bell_quantile(q, self.tails)
        low, high = of_components.min(axis=0), of_components.max(axis=0)
        at = np.tensordot(self.shares, of_components, axes=1)
        if len(self.shares) == 1:
            return at
        for _ in range(MOST_STEPS):
            excess = self.cumulative(at) - q
            low, high = np.where(excess <= 0, at, low), np.where(excess >= 0, at, high)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                step = at - excess * np.exp(-self.log_densities(at))
            moved = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            done = np.abs(moved - at) <= 1e-12 * (np.abs(at) + self.deviations.min(axis=0))
            at = moved
            if done.all():
                break
        return at

    def of_rows(self, index: np.ndarray) -> "Predictive":
        """Return the distribution at some of the rows."""
        return self._replace(means=self.means[:, index], deviations=self.deviations[:, index])

    def of_target(self, j: int) -> "Predictive":
        """Return the distribution of one target alone."""
        means, deviations = self.means[:, :, j : j + 1], self.deviations[:, :, j : j + 1]
        return self._replace(means=means, deviations=deviations, tails=self.tails[j : j + 1])


def unit_factor(tails: np.ndarray) -> np.ndarray:
    """Return the factor sqrt((nu - 2) / nu) that scales a Student-t to variance 1."""
    return np.sqrt(1.0 - 2.0 / np.asarray(tails, dtype=np.float64))


def log_bell(z: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Return the log density of the bell of variance 1 at z, whose last axis corresponds to `tails`."""
    tails = np.broadcast_to(tails, z.shape[-1:])
    result = -0.5 * (math.log(2.0 * math.pi) + z**2)
    for j in np.flatnonzero(np.isfinite(tails)):
        nu = float(tails[j])
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * math.log((nu - 2) * math.pi)
        result[..., j] = constant - 0.5 * (nu + 1) * np.log1p(z[..., j] ** 2 / (nu - 2))
    return result


def likeliest_log_densities(z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the log density of each of z, of shape (n,), under the centered bell with the largest likelihood.

    The tails are among `TAILS`: the Gaussian is tried first, then heavier tails as long as they raise the likelihood.
    The maximum likelihood scale s of a Student-t with nu degrees of freedom solves the fixed-point equation
    s^2 = mean of (nu + 1) z^2 / (nu + z^2 / s^2).
    """
    mass = weights / weights.sum()
    square = max(float(mass @ z**2), np.finfo(np.float64).tiny)
    best = log_bell(z[:, None] / math.sqrt(square), np.array([np.inf]))[:, 0] - 0.5 * math.log(square)
    for nu in TAILS[1:]:
        for _ in range(SCALE_STEPS):
            before = square
            square = max(float(mass @ ((nu + 1.0) * z**2 / (nu + z**2 / before))), np.finfo(np.float64).tiny)
            if abs(math.log(square / before)) < SCALE_TOLERANCE:
                break
        scale = math.sqrt(square) / float(unit_factor(np.array(nu)))
        found = log_bell(z[:, None] / scale, np.array([nu]))[:, 0] - math.log(scale)
        if mass @ found <= mass @ best:
            break
        best = found
    return best


def bell_cumulative(z: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """Return the probability below z under the bell of variance 1."""
    tails = np.broadcast_to(tails, z.shape[-1:])
    result = ndtr(z)
    for j in np.flatnonzero(np.isfinite(tails)):
        result[..., j] = stdtr(tails[j], z[..., j] / unit_factor(tails[j]))
    return result


def bell_quantile(q: float, tails: np.ndarray) -> np.ndarray:
    """Return the q-quantile of the bell of variance 1 for each of `tails`."""
    return np.array([ndtri(q) if np.isinf(nu) else unit_factor(nu) * stdtrit(nu, q) for nu in tails])
