"""The average of several Gaussian processes: its distribution at rows, and draws from it. Targets are centered."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.blocks import WORKING_MEMORY
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.predictive import Predictive

Processes = Sequence[Machine]
"""Machines whose shares sum to 1."""


def means_of(
    processes: Processes, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the mean of the average, of shape (n, c), and of each process."""
    means = [c.mean(X, working_memory, device) for c in processes]
    return np.sum([c.share * m for c, m in zip(processes, means, strict=True)], axis=0), means


def predictive_of(
    processes: Processes, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> Predictive:
    """Return the distribution of targets at the rows of X: Gaussian components, nothing corrected."""
    variances = [observation_variance(c, X, working_memory, device) for c in processes]
    return Predictive(
        np.array([c.share for c in processes]),
        np.stack([c.mean(X, working_memory, device) for c in processes]),
        np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny)),
        np.full(len(processes[0].output_scales), np.inf),
    )


def function_variance(processes: Processes, deviations: np.ndarray) -> np.ndarray:
    """Return the variance of the function under each process, from the deviations of targets: (k, n, c)."""
    noise = np.stack([c.ridge * c.output_scales for c in processes])
    return np.maximum(deviations**2 - noise[:, None], 0.0)


def covariance_of(
    processes: Processes, X: np.ndarray, factors: np.ndarray, device: Any = None, *, of_function: bool = False
) -> np.ndarray:
    """Return the covariance of targets at the rows of X, or of the function without noise, of shape (n, n, c).

    `factors` of shape (k, n, c) are what the deviations of each process are multiplied by.
    """
    mean, means = means_of(processes, X, device=device)
    total = np.zeros((len(X), *mean.shape))
    for c, m, f in zip(processes, means, factors, strict=True):
        unit = c.unit_covariance(X, device)
        if not of_function:
            unit += c.ridge * np.eye(len(X))
        own = unit[:, :, None] * c.output_scales * f[:, None] * f[None, :]
        total += c.share * (own + (m - mean)[:, None] * (m - mean)[None, :])
    return total


def draw(
    processes: Processes,
    X: np.ndarray,
    n_samples: int,
    random: np.random.RandomState,
    factors: np.ndarray,
    tails: np.ndarray,
    device: Any = None,
) -> np.ndarray:
    """Draw targets at the rows of X, of shape (n, c, n_samples): each from a process drawn by its weight.

    Where tails are heavy, a draw is of a Student-t process (Shah, Wilson and Ghahramani, 2014): a Gaussian one times
    a random number that all rows of the draw share, so that draws have the covariance of `covariance_of`.
    """
    outputs = len(processes[0].output_scales)
    drawn = random.choice(len(processes), size=n_samples, p=[c.share for c in processes])
    result = np.empty((len(X), outputs, n_samples))
    for i, c in enumerate(processes):
        columns = np.flatnonzero(drawn == i)
        if len(columns):
            values, vectors = np.linalg.eigh(c.unit_covariance(X, device))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            smooth = np.einsum("ij,jcs->ics", root, random.normal(size=(len(X), outputs, len(columns))))
            noise = math.sqrt(c.ridge) * random.normal(size=smooth.shape)
            apart = (np.sqrt(c.output_scales) * factors[i])[:, :, None] * (smooth + noise)
            for j in np.flatnonzero(np.isfinite(tails)):
                apart[:, j] *= np.sqrt((tails[j] - 2.0) / random.chisquare(tails[j], size=len(columns)))
            result[:, :, columns] = c.mean(X, device=device)[:, :, None] + apart
    return result


def observation_variance(c: Machine, X: np.ndarray, working_memory: float, device: Any) -> np.ndarray:
    """Return the variance of a target under one process, of shape (n, c)."""
    return (c.unit_variance(X, working_memory, device)[:, None] + c.ridge) * c.output_scales
