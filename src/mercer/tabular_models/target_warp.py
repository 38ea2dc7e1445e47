"""Monotone transformations of targets, for noise that grows with the target, or for a long tail on one side."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mercer.tabular_models.predictive import Predictive, bell_quantile

# The exponents of the Yeo-Johnson transformation (2000) that are compared; an exponent of 1 changes nothing.
EXPONENTS = (0.0, 0.5, 1.5, 2.0)
# Nodes and weights of the Gauss-Legendre quadrature over probabilities, which gives moments.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)
# Arguments of the exponential function are clipped to this, so that it does not overflow.
LARGEST_EXPONENT = 700.0


class TargetWarp(NamedTuple):
    """An increasing function t(y): y itself, log(y + shift), or the Yeo-Johnson transformation of (y - shift) / scale.

    Attributes
    ----------
    name : {"none", "log", "yeo-johnson"}
    shift : float
    scale : float
    exponent : float
        The exponent of the Yeo-Johnson transformation.
    smallest : float
        The smallest target that is predicted: 0 for "log", since no target was negative, and minus infinity otherwise.
    """

    name: str = "none"
    shift: float = 0.0
    scale: float = 1.0
    exponent: float = 1.0
    smallest: float = -math.inf

    def forward(self, y: np.ndarray) -> np.ndarray:
        """Return t(y), which is minus infinity where the argument of a logarithm is not positive."""
        if self.name == "none":
            return y
        if self.name == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(y + self.shift > 0, np.log(np.maximum(y + self.shift, 0.0)), -np.inf)
        u, a = (y - self.shift) / self.scale, self.exponent
        return np.where(u >= 0, _power(np.maximum(u, 0.0), a), -_power(np.maximum(-u, 0.0), 2.0 - a))

    def inverse(self, t: np.ndarray) -> np.ndarray:
        """Return the targets y with t(y) = t."""
        if self.name == "none":
            return t
        if self.name == "log":
            return np.maximum(np.exp(np.minimum(t, LARGEST_EXPONENT)) - self.shift, self.smallest)
        a = self.exponent
        u = np.where(t >= 0, _root(np.maximum(t, 0.0), a), -_root(np.maximum(-t, 0.0), 2.0 - a))
        return self.shift + self.scale * u

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Return log t'(y), the difference of the log densities of y and of t."""
        if self.name == "none":
            return np.zeros_like(y)
        if self.name == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(y + self.shift > 0, -np.log(np.maximum(y + self.shift, 0.0)), -np.inf)
        u = (y - self.shift) / self.scale
        return np.sign(u) * (self.exponent - 1.0) * np.log1p(np.abs(u)) - math.log(self.scale)


def _power(u: np.ndarray, a: float) -> np.ndarray:
    """Return ((1 + u)^a - 1) / a for u >= 0, which is log(1 + u) for a = 0."""
    return np.log1p(u) if a == 0.0 else np.expm1(a * np.log1p(u)) / a


def _root(t: np.ndarray, a: float) -> np.ndarray:
    """Return the inverse of `_power`; its range is bounded for a < 0, and values beyond it are clipped."""
    if a == 0.0:
        return np.expm1(np.minimum(t, LARGEST_EXPONENT))
    return np.expm1(np.log1p(np.maximum(a * t, -1.0 + 1e-12)) / a)


def log_warp(y: np.ndarray) -> TargetWarp | None:
    """Return log(y), or log(y + half the smallest positive target) if some are 0; None if some targets are negative."""
    if not (y >= 0).all() or not (y > 0).any():
        return None
    shift = 0.0 if (y > 0).all() else 0.5 * float(y[y > 0].min())
    return TargetWarp("log", shift, smallest=0.0)


def power_warps(y: np.ndarray) -> list[TargetWarp]:
    """Return the Yeo-Johnson transformations of the standardized target with all exponents, or [] if it is constant."""
    scale = float(y.std())
    if not scale > 0:
        return []
    return [TargetWarp("yeo-johnson", float(y.mean()), scale, exponent) for exponent in EXPONENTS]


def forward_of(warps: Sequence[TargetWarp], y: np.ndarray) -> np.ndarray:
    """Return the targets, of shape (n, c), after the warp of each of them."""
    return np.stack([warp.forward(y[:, j]) for j, warp in enumerate(warps)], axis=1)


def inverse_of(warps: Sequence[TargetWarp], t: np.ndarray) -> np.ndarray:
    """Return the targets whose warped values are t, of shape (n, c) or (n, c, s)."""
    return np.stack([warp.inverse(t[:, j]) for j, warp in enumerate(warps)], axis=1)


def log_slopes_of(warps: Sequence[TargetWarp], y: np.ndarray) -> np.ndarray:
    """Return the logarithm of the slope of each target's warp at y, of shape (n, c)."""
    return np.stack([warp.log_slope(y[:, j]) for j, warp in enumerate(warps)], axis=1)


def moments_of(predictive: Predictive, warps: Sequence[TargetWarp]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of targets y whose t(y) has this distribution, both of shape (n, c).

    In each component, they follow from Gauss-Legendre quadrature over probabilities u_k with weights w_k:
    sum_k w_k y(mean + deviation quantile(u_k)). The outermost nodes are .0014 and .9986. Under a logarithm, the mean of
    a distribution with heavy tails is infinite, but this approximation is finite. For a Gaussian with standard
    deviation .5 under a logarithm, it agrees with the mean to .1 %.
    """
    first, second = np.empty(predictive.means.shape[1:]), np.empty(predictive.means.shape[1:])
    for j, warp in enumerate(warps):
        own = predictive.of_target(j)
        if warp.name == "none":
            first[:, j], second[:, j] = own.mean()[:, 0], np.sqrt(own.variance()[:, 0])
            continue
        total, squares = 0.0, 0.0
        for node, weight in zip(0.5 * (NODES + 1.0), 0.5 * NODE_WEIGHTS, strict=True):
            at = own.means + own.deviations * bell_quantile(node, own.tails)
            y = np.tensordot(own.shares, warp.inverse(at), axes=1)[:, 0]
            y2 = np.tensordot(own.shares, warp.inverse(at) ** 2, axes=1)[:, 0]
            total, squares = total + weight * y, squares + weight * y2
        first[:, j], second[:, j] = total, np.sqrt(np.maximum(squares - total**2, 0.0))
    return first, second
