"""The width and the tails of a predictive distribution, learned from its errors on left-out rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from mercer.tabular_models.fitters import LeftOut
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.predictive import TAILS, Predictive

# A Student-t with more degrees of freedom is replaced by a Gaussian.
GAUSSIAN_FROM = 200.0
# The standard deviations of the Gaussian priors of the exponent, around 1, and of the logarithm of the scale, around 0.
EXPONENT_PRIOR, SCALE_PRIOR = 0.25, 2.0
# The bounds of the absolute logarithm of the scale, and of the exponent.
LARGEST_LOG_SCALE, EXPONENTS = 3.0, (0.1, 2.5)
# Central intervals of this probability must contain this share of the left-out rows, less one standard error.
LEVEL = 0.9
# Number of bisections that find the factor for which they do.
BISECTIONS = 20


class Spread(NamedTuple):
    """A correction of the deviations s of a component to scale * s * (s / reference)^(exponent - 1), and its tails.

    With an exponent below 1, the corrected deviations of different rows differ less than the predicted ones, and with
    an exponent above 1 they differ more. The ratio s / reference is clipped to its range on left-out rows.

    Attributes
    ----------
    scale : ndarray of shape (c,)
    exponent : ndarray of shape (c,)
    tails : ndarray of shape (c,)
        The degrees of freedom of a Student-t, infinite for a Gaussian.
    reference : ndarray of shape (k, c)
        The geometric mean of the deviations of each component on left-out rows.
    smallest, largest : ndarray of shape (k, c)
        The logarithms of the smallest and the largest of these deviations, relative to the reference.
    """

    scale: np.ndarray
    exponent: np.ndarray
    tails: np.ndarray
    reference: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray

    @classmethod
    def none(cls, n_components: int, n_outputs: int) -> "Spread":
        """Return the correction that changes nothing."""
        ones, zeros = np.ones(n_outputs), np.zeros((n_components, n_outputs))
        return cls(ones, ones, np.full(n_outputs, np.inf), 1.0 + zeros, zeros, zeros)

    @classmethod
    def joined(cls, parts: Sequence["Spread"]) -> "Spread":
        """Return the corrections of several targets as one."""
        return cls(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))

    def factors(self, deviations: np.ndarray) -> np.ndarray:
        """Return the factors that correct deviations of shape (k, n, c)."""
        relative = np.log(deviations / self.reference[:, None])
        relative = np.clip(relative, self.smallest[:, None], self.largest[:, None])
        return self.scale * np.exp((self.exponent - 1.0) * relative)

    def corrected(self, raw: Predictive) -> Predictive:
        """Return a predictive distribution with corrected deviations and tails."""
        return raw._replace(deviations=raw.deviations * self.factors(raw.deviations), tails=self.tails)


def left_out_predictive(machines: Sequence[Machine], parts: Sequence[LeftOut]) -> Predictive:
    """Return the distribution that the machines predict for left-out rows, without any correction."""
    variances = [m.output_scales * part.unit_variance[:, None] for m, part in zip(machines, parts, strict=True)]
    return Predictive(
        np.array([machine.share for machine in machines]),
        np.stack([part.mean for part in parts]),
        np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny)),
        np.full(len(machines[0].output_scales), np.inf),
    )


def fit_spread(raw: Predictive, y: np.ndarray, weights: np.ndarray, n_chosen: int) -> Spread:
    """Return the correction that maximizes the penalized likelihood of left-out rows.

    For each nu of a few degrees of freedom, log scale and exponent maximize

        sum_i w_i log sum_c share_c bell_nu((y_i - mean_ci) / s_ci) / s_ci - penalty,   s_ci as in `Spread`,

    which is a smooth problem in two numbers. The final 1 / nu is the mean of the values that were tried, weighted by
    the likelihoods that they reach: few rows cannot distinguish tails, and give a value in between. Scale and exponent
    are then found again for this nu. If there are few rows, the penalty shrinks the correction toward none.

    Parameters
    ----------
    raw : Predictive
        The uncorrected distribution of left-out rows.
    y : ndarray of shape (n, c)
    weights : ndarray of shape (n,)
        The weights of the rows, of which only the ratios matter.
    n_chosen : int
        The number p of parameters that were chosen by their fit to the same rows. Variances are multiplied by
        n / (n - p), as for residuals of a regression.
    """
    n, outputs = y.shape
    mass = weights * (n / weights.sum())
    reference = np.exp(np.tensordot(np.log(raw.deviations), mass, axes=(1, 0)) / n)
    relative = np.log(raw.deviations / reference[:, None])
    enlarged = np.sqrt(n / max(n - n_chosen, n / 2))
    scale, exponent, tails = np.empty(outputs), np.empty(outputs), np.empty(outputs)
    for j in range(outputs):
        problem = Problem(y[:, j], raw.shares, raw.means[:, :, j], raw.deviations[:, :, j], relative[:, :, j], mass)
        tails[j] = likely_tails(problem)
        _, (log_scale, apart) = problem.solved(tails[j])
        scale[j], exponent[j] = enlarged * np.exp(log_scale), 1.0 + apart
    likeliest = Spread(scale, exponent, tails, reference, relative.min(axis=1), relative.max(axis=1))
    return likeliest._replace(scale=scale * covering_factors(likeliest.corrected(raw), y, mass))


def covering_factors(predictive: Predictive, y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the smallest factors, at least 1, for the deviations of each target that make intervals wide enough.

    Central intervals of probability `LEVEL` must contain this share of the rows, less one standard error.

    If half of the rows have a near copy with the same target, their errors are nearly 0, and the width that maximizes
    the likelihood is that of the copies. The other rows would be far outside.

    Parameters
    ----------
    predictive : Predictive
        The distribution of left-out rows.
    y : ndarray of shape (n, c)
    mass : ndarray of shape (n,)
        Weights that sum to n.
    """
    n, outputs = y.shape
    wanted = LEVEL - np.sqrt(LEVEL * (1.0 - LEVEL) / n)
    low, high = np.zeros(outputs), np.full(outputs, 2.0 * LARGEST_LOG_SCALE)

    def is_wide_enough(logarithms: np.ndarray) -> np.ndarray:
        wider = predictive._replace(deviations=predictive.deviations * np.exp(logarithms))
        inside = np.abs(2.0 * wider.cumulative(y) - 1.0) <= LEVEL
        return mass @ inside / n >= wanted

    low_is_enough = is_wide_enough(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        enough = is_wide_enough(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(low_is_enough, 1.0, np.exp(high))


class Problem(NamedTuple):
    """One target at n left-out rows, and its predictions by k components; arrays of components have shape (k, n)."""

    y: np.ndarray
    shares: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    relative: np.ndarray
    mass: np.ndarray

    def loss(self, theta: np.ndarray, tails: float) -> tuple[float, np.ndarray]:
        """Return minus the penalized log likelihood, and its gradient, at (log scale, exponent - 1)."""
        log_factor = theta[0] + theta[1] * self.relative
        deviations = self.deviations * np.exp(log_factor)
        one = Predictive(self.shares, self.means[..., None], deviations[..., None], np.array([tails]))
        terms = np.log(self.shares)[:, None] + one.component_log_densities(self.y[:, None])[..., 0]
        log_densities = np.logaddexp.reduce(terms, axis=0)
        squares = ((self.y - self.means) / deviations) ** 2
        # The derivative of log(bell(r / s) / s) in log s.
        slopes = squares - 1.0 if np.isinf(tails) else (tails + 1.0) * squares / (tails - 2.0 + squares) - 1.0
        slopes = np.exp(terms - log_densities) * slopes * self.mass
        prior = np.array([SCALE_PRIOR, EXPONENT_PRIOR]) ** -2.0
        value = -float(self.mass @ log_densities) + 0.5 * float(prior @ theta**2)
        return value, prior * theta - np.array([slopes.sum(), (slopes * self.relative).sum()])

    def solved(self, tails: float, start: Any = (0.0, 0.0)) -> tuple[float, np.ndarray]:
        """Return the smallest loss for given tails, and the log scale and exponent - 1 at which it is attained."""
        bounds = [(-LARGEST_LOG_SCALE, LARGEST_LOG_SCALE), (EXPONENTS[0] - 1.0, EXPONENTS[1] - 1.0)]
        found = minimize(self.loss, start, args=(tails,), jac=True, method="L-BFGS-B", bounds=bounds)
        return float(found.fun), found.x


def likely_tails(problem: Problem) -> float:
    """Return the degrees of freedom whose inverse is the mean of 1 / nu over `TAILS`, weighted by the likelihoods."""
    losses, start = [], np.zeros(2)
    for tails in TAILS:
        loss, start = problem.solved(tails, start)
        losses.append(loss)
    likely = np.exp(min(losses) - np.array(losses))
    inverse = float(likely @ (1.0 / np.array(TAILS)) / likely.sum())
    return 1.0 / inverse if inverse * GAUSSIAN_FROM > 1.0 else np.inf
