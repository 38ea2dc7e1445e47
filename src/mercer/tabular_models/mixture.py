"""The average of several Gaussian processes: its moments, its density, and draws from it. Targets are centred."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.blocks import WORKING_MEMORY
from mercer.tabular_models.machine import Machine

Processes = Sequence[Machine]
"""Machines whose shares sum to 1."""


def means_of(
    processes: Processes, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the mean of the average, of shape (n, c), and of each process."""
    means = [c.mean(X, working_memory, device) for c in processes]
    return np.sum([c.share * m for c, m in zip(processes, means, strict=True)], axis=0), means


def variance_of(
    processes: Processes, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> np.ndarray:
    """Return the variance of an observation, of shape (n, c): of each process, and of their means around theirs."""
    mean, means = means_of(processes, X, working_memory, device)
    return np.sum(
        [
            c.share * (observation_variance(c, X, working_memory, device) + (m - mean) ** 2)
            for c, m in zip(processes, means, strict=True)
        ],
        axis=0,
    )


def covariance_of(processes: Processes, X: np.ndarray, device: Any = None) -> np.ndarray:
    """Return the covariance of observations at the rows of X, of shape (n, n, c)."""
    mean, means = means_of(processes, X, device=device)
    total = np.zeros((len(X), *mean.shape))
    for c, m in zip(processes, means, strict=True):
        unit = c.unit_covariance(X, device) + c.ridge * np.eye(len(X))
        total += c.share * (unit[:, :, None] * c.output_scales + (m - mean)[:, None] * (m - mean)[None, :])
    return total


def log_density_of(
    processes: Processes, X: np.ndarray, y: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None
) -> np.ndarray:
    """Return log sum_c weight_c N(y | process c) at each row; the densities of several targets are multiplied."""
    terms = []
    for c in processes:
        variance = observation_variance(c, X, working_memory, device)
        squares = (y - c.mean(X, working_memory, device)) ** 2 / variance
        terms.append(math.log(c.share) - 0.5 * (np.log(2 * math.pi * variance) + squares).sum(axis=1))
    return np.logaddexp.reduce(terms, axis=0)


def draw(
    processes: Processes, X: np.ndarray, n_samples: int, random: np.random.RandomState, device: Any = None
) -> np.ndarray:
    """Draw observations at the rows of X, of shape (n, c, n_samples): each from a process drawn by its weight."""
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
            mean = c.mean(X, device=device)
            result[:, :, columns] = mean[:, :, None] + np.sqrt(c.output_scales)[:, None] * (smooth + noise)
    return result


def observation_variance(c: Machine, X: np.ndarray, working_memory: float, device: Any) -> np.ndarray:
    """Return the variance of an observation under one process, of shape (n, c)."""
    return (c.unit_variance(X, working_memory, device)[:, None] + c.ridge) * c.output_scales
