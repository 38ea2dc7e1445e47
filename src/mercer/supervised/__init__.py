"""Regression and classification: recursive feature machines, Gaussian processes, kernel discriminants."""

from mercer.supervised.recursion import recursive_features

__all__ = ["recursive_features"]
