"""Scores that scikit-learn lacks: of Gaussian predictions, of methods over data sets, of embeddings and of clusters."""

from mercer.metrics.arrays import as_numbers, check_labels, check_matrix, check_square
from mercer.metrics.clustering import block_mass, clustering_accuracy, connectivity, subspace_preserving_error
from mercer.metrics.comparison import common_data_sets, mean_ranks
from mercer.metrics.embedding import class_coverage, effective_rank, expected_class_coverage, numerical_rank
from mercer.metrics.gaussian import (
    check_gaussian,
    check_level,
    coverage,
    interval_halfwidth,
    negative_log_likelihood,
)

__all__ = [
    "as_numbers",
    "block_mass",
    "check_gaussian",
    "check_labels",
    "check_level",
    "check_matrix",
    "check_square",
    "class_coverage",
    "clustering_accuracy",
    "common_data_sets",
    "connectivity",
    "coverage",
    "effective_rank",
    "expected_class_coverage",
    "interval_halfwidth",
    "mean_ranks",
    "negative_log_likelihood",
    "numerical_rank",
    "subspace_preserving_error",
]
