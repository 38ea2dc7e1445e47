"""Predictors whose metric is learned from the targets."""

from mercer.supervised.recursion import recursive_features

__all__ = ["recursive_features"]
