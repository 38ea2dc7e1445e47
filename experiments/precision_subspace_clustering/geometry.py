"""What section 5.1 says of projections: wider angles between clusters, larger distances."""

import numpy as np


def between_clusters(rows: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Return the mean angle, in degrees, and the mean distance of unit rows of different clusters.

    The angle is that between lines, 90 degrees at most: a point and its negative are of one subspace. `separation` is
    the mean distance between clusters over that within them.
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
    """Return both measures of two sets of rows, named by when they were taken."""
    parts = {"before": between_clusters(before, labels), "after": between_clusters(after, labels)}
    return {f"{name} {when}": value for when, found in parts.items() for name, value in found.items()}
