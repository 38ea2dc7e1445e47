"""The measures of section 5.1: angles and distances between clusters, which projections should increase."""

import numpy as np


def between_clusters(rows: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the mean angle in degrees, the mean distance and the separation of unit rows of different clusters.

    The angle is that between lines, at most 90 degrees, since a point and its negative are in the same subspace. The
    separation is the mean distance between clusters divided by the mean distance within clusters.
    """
    products = np.clip(rows @ rows.T, -1.0, 1.0)
    distances = np.sqrt(2.0 - 2.0 * products)
    apart = labels[:, None] != labels
    within = ~apart & ~np.eye(len(labels), dtype=bool)
    angles = np.degrees(np.arccos(np.abs(products[apart])))
    between = float(distances[apart].mean())
    inside = float(distances[within].mean()) if within.any() else np.nan
    return {"angle": float(angles.mean()), "distance": between, "separation": between / inside if inside else np.nan}


def before_and_after(before: np.ndarray, after: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the measures of both sets of rows, under names that end with "before" and "after"."""
    parts = {"before": between_clusters(before, labels), "after": between_clusters(after, labels)}
    return {f"{name} {when}": value for when, found in parts.items() for name, value in found.items()}
