"""The average of several Gaussian processes of centered targets: its predictive distribution, and draws from it."""

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
    """Return the mean of the average, of shape (n, c), and the means of all processes."""
    means = [process.mean(X, working_memory, device) for process in processes]
    return np.sum([process.share * mean for process, mean in zip(processes, means, strict=True)], axis=0), means


def predictive_of(
    processes: Processes, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> Predictive:
    """Return the distribution of targets at the rows of X: Gaussian components, before any calibration."""
    variances = [target_variance(process, X, working_memory, device) for process in processes]
    return Predictive(
        np.array([process.share for process in processes]),
        np.stack([process.mean(X, working_memory, device) for process in processes]),
        np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny)),
        np.full(len(processes[0].output_scales), np.inf),
    )


def function_variance(processes: Processes, deviations: np.ndarray) -> np.ndarray:
    """Return the variance of the function under each of k processes, from the deviations of targets, (k, n, c)."""
    noise = np.stack([process.ridge * process.output_scales for process in processes])
    return np.maximum(deviations**2 - noise[:, None], 0.0)


def covariance_of(
    processes: Processes, X: np.ndarray, factors: np.ndarray, device: Any = None, *, of_function: bool = False
) -> np.ndarray:
    """Return the covariance of targets at the rows of X, or of the function without noise, of shape (n, n, c).

    The deviations of each of k processes are multiplied by `factors`, of shape (k, n, c).
    """
    mean, means = means_of(processes, X, device=device)
    total = np.zeros((len(X), *mean.shape))
    for process, m, f in zip(processes, means, factors, strict=True):
        unit = process.unit_covariance(X, device)
        if not of_function:
            unit += process.ridge * np.eye(len(X))
        own = unit[:, :, None] * process.output_scales * f[:, None] * f[None, :]
        total += process.share * (own + (m - mean)[:, None] * (m - mean)[None, :])
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
    """Draw targets at the rows of X, of shape (n, c, n_samples), each from a process that is drawn by its share.

    With heavy tails, a draw is from a Student-t process (Shah, Wilson and Ghahramani, 2014): a Gaussian process times a
    random factor that all rows of the draw share. The draws have the covariance of `covariance_of`.
    """
    outputs = len(processes[0].output_scales)
    drawn = random.choice(len(processes), size=n_samples, p=[process.share for process in processes])
    result = np.empty((len(X), outputs, n_samples))
    for i, process in enumerate(processes):
        columns = np.flatnonzero(drawn == i)
        if len(columns):
            values, vectors = np.linalg.eigh(process.unit_covariance(X, device))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            smooth = np.einsum("ij,jcs->ics", root, random.normal(size=(len(X), outputs, len(columns))))
            noise = math.sqrt(process.ridge) * random.normal(size=smooth.shape)
            apart = (np.sqrt(process.output_scales) * factors[i])[:, :, None] * (smooth + noise)
            for j in np.flatnonzero(np.isfinite(tails)):
                apart[:, j] *= np.sqrt((tails[j] - 2.0) / random.chisquare(tails[j], size=len(columns)))
            result[:, :, columns] = process.mean(X, device=device)[:, :, None] + apart
    return result


def target_variance(process: Machine, X: np.ndarray, working_memory: float, device: Any) -> np.ndarray:
    """Return the variance of a target under one process, including the noise, of shape (n, c)."""
    return (process.unit_variance(X, working_memory, device)[:, None] + process.ridge) * process.output_scales
