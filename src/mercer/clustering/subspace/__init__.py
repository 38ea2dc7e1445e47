"""Subspace clustering by self-expression under a learned precision matrix."""

from mercer.clustering.subspace.affinities import Affinity, DoublyStochasticAffinity, PlainAffinity, ScaledAffinity
from mercer.clustering.subspace.feature_learning import Covariance, FeatureLearning, Precision

__all__ = [
    "Affinity",
    "Covariance",
    "DoublyStochasticAffinity",
    "FeatureLearning",
    "PlainAffinity",
    "Precision",
    "ScaledAffinity",
]
