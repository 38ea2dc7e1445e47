"""Regression and classification of tables: recursive feature machines and Gaussian processes."""

from mercer.tabular_models.recursion import recursive_features

__all__ = ["recursive_features"]
