"""Checks of the parameters of subspace clustering."""

from typing import Any

import numpy as np

from mercer.checks import check_choice, check_count, check_number
from mercer.clustering.distinct_rows import check_n_clusters
from mercer.clustering.expression import check_expression
from mercer.clustering.subspace.affinities import check_affinity
from mercer.clustering.subspace.feature_learning import check_feature_learning
from mercer.clustering.subspace.graphs import ASSIGN_LABELS


def check_parameters(clustering: Any, X: np.ndarray) -> None:
    """Raise if a parameter of a `SubspaceClustering` is not allowed for the rows X."""
    if clustering.n_clusters != "auto":
        check_n_clusters(clustering.n_clusters, X)
    check_feature_learning(clustering.feature_learning)
    check_affinity(clustering.affinity)
    check_expression(clustering.self_expression)
    check_choice("iterate", clustering.iterate, ("auto", "last"))
    check_choice("assign_labels", clustering.assign_labels, ASSIGN_LABELS)
    check_count("n_iter", clustering.n_iter, at_least=0)
    check_count("max_clusters", clustering.max_clusters, at_least=2)
    check_number("energy", clustering.energy, above=0.0, at_most=1.0)
    check_number("working_memory", clustering.working_memory, above=0.0)
    if clustering.ridge != "auto":
        check_number("ridge", clustering.ridge, above=0.0)
    if clustering.n_landmarks is not None:
        check_count("n_landmarks", clustering.n_landmarks)
    if clustering.truncate is not None and clustering.truncate != "auto":
        check_count("truncate", clustering.truncate)
