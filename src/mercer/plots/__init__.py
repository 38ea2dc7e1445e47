"""Displays: one a figure, each with `from_...`, `plot` and the drawn `figure_` and `ax_`, as in scikit-learn."""

from mercer.plots.discriminant import DiscriminantDisplay
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.metric import MetricDisplay

__all__ = ["DiscriminantDisplay", "EmbeddingDisplay", "MetricDisplay"]
