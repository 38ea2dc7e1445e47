"""What tells clusters apart: typical rows, rows on the border, and the columns in which a cluster differs most."""

from typing import Any

import numpy as np

from mercer.tables.columns import EncodedColumn
from mercer.tables.encoder import TableEncoder


def typical_rows(X: np.ndarray, members: np.ndarray, count: int) -> np.ndarray:
    """Return the members of a cluster that are nearest to its mean as row numbers of X, the nearest first."""
    own = np.asarray(X[members], dtype=np.float64)
    distances = np.linalg.norm(own - own.mean(axis=0), axis=1)
    return members[np.argsort(distances, kind="stable")[:count]]


def border_rows(confidence: np.ndarray, members: np.ndarray, count: int) -> np.ndarray:
    """Return the members of a cluster with the lowest confidence as row numbers, the lowest first."""
    return members[np.argsort(confidence[members], kind="stable")[:count]]


def column_profiles(encoder: TableEncoder, X: np.ndarray, labels: np.ndarray, count: int) -> list[list[dict[str, Any]]]:
    """Return for each cluster the columns of the table in which it differs most from all rows.

    The difference is that of the means of the cluster and of all rows, divided by the standard deviation of all rows.
    It is taken of each number, and of each indicator (0 or 1) of a category. Each column of the table is named once,
    by the part of it that differs most.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    X : ndarray of shape (n, n_encoded)
        The encoded rows.
    labels : ndarray of shape (n,)
        Clusters, numbered from 0.
    count : int
        The most columns of each cluster.

    Returns
    -------
    list of lists of dict
        For each cluster its columns: `column` (of the table), `what` (the name of what was compared, such as
        `city=Oslo`), `kind` ("number", "share" or "other"), `in_cluster` and `overall` (means in the units of the
        table, or shares; None for parts of dates and for text), and `difference` (in standard deviations).
    """
    names = encoder.get_feature_names_out()
    told = [told_by for column in encoder.columns_ for told_by in _units(column)]
    overall, spread = X.mean(axis=0), X.std(axis=0)
    profiles = []
    for cluster in range(int(labels.max()) + 1):
        means = X[labels == cluster].mean(axis=0)
        differences = np.divide(means - overall, spread, out=np.zeros_like(means), where=spread > 0)
        profile: list[dict[str, Any]] = []
        for j in np.argsort(-np.abs(differences), kind="stable"):
            column, kind, center, factor = told[j]
            if len(profile) == count or differences[j] == 0.0:
                break
            if all(entry["column"] != column for entry in profile):
                inside, outside = (center + float(value) / factor for value in (means[j], overall[j]))
                profile.append(
                    {
                        "column": column,
                        "what": str(names[j]),
                        "kind": kind,
                        "in_cluster": None if kind == "other" else inside,
                        "overall": None if kind == "other" else outside,
                        "difference": float(differences[j]),
                    }
                )
        profiles.append(profile)
    return profiles


def _units(column: EncodedColumn) -> list[tuple[str, str, float, float]]:
    """Return for each encoded column its name in the table, what it measures, and how to undo its scaling."""
    kind = {"number": "number", "category": "share"}.get(column.reader.kind, "other")
    own = [
        (column.name, kind, float(center), float(factor))
        for center, factor in zip(column.center, column.factor, strict=True)
    ]
    return own + [(column.name, "share", 0.0, 1.0)] * column.marked
