"""Monotone transformations of single columns, so that the tail of a skewed column does not dominate its distances."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from mercer.checks import (
    LARGEST_NUMBERS,
    PRECISIONS,
    all_or_nothing,
    check_choice,
    finite_answers,
    refuse_sparse,
    validated,
)
from mercer.exceptions import invalid_parameter

WARPS = ("none", "log", "rank")
# The largest number of knots of a rank warp, enough to follow a distribution and few enough to store for every column.
MOST_KNOTS = 256


def log_warp(x: np.ndarray, sign: float, origin: float, scale: float) -> np.ndarray:
    """Return sign * log(1 + u) with u = (sign x - origin) / scale, continued as an odd function below u = 0."""
    u = (sign * x - origin) / scale
    return sign * np.sign(u) * np.log1p(np.abs(u))


def log_warp_slope(x: np.ndarray, sign: float, origin: float, scale: float) -> np.ndarray:
    """Return the derivative of `log_warp` with respect to x."""
    return 1.0 / (scale + np.abs(sign * x - origin))


def log_parameters(x: np.ndarray) -> tuple[float, float, float]:
    """Return the sign, origin and scale of the log warp of a column.

    The sign is that of the skewness: a column with its long tail on the left is mirrored, so that the long tail is
    always shortened. The origin is the end of the column opposite to that tail. The scale is the median distance from
    the origin, so that the warp does not depend on the units of the column.
    """
    centered = x - x.mean()
    sign = 1.0 if (centered**3).sum() >= 0 else -1.0
    origin = float((sign * x).min())
    distances = sign * x - origin
    return sign, origin, float(np.median(distances[distances > 0]))


def rank_knots(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the empirical distribution function of a column: values, and the share of rows below each.

    Rows with equal values count half. If there are more than MOST_KNOTS distinct values, quantiles of the column are
    used.
    """
    values, counts = np.unique(x, return_counts=True)
    shares = (np.cumsum(counts) - 0.5 * counts) / len(x)
    if len(values) > MOST_KNOTS:
        kept = np.unique(np.searchsorted(shares, np.linspace(shares[0], shares[-1], MOST_KNOTS)))
        values, shares = values[kept], shares[kept]
    return values, shares


class ColumnWarp(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Warp each column by a monotone function, then give it mean 0 and standard deviation 1.

    In a skewed column most values are close together and a few are far away, so that no length scale of a kernel suits
    both. The logarithms or the ranks of the values are more evenly spread.

    Parameters
    ----------
    warp : {"none", "log", "rank"} or sequence of these, default="none"
        The function: one for all columns, or a sequence with one for each column. "log" is log(1 + u), where u is the
        distance from the end of the column opposite to its long tail, divided by the median distance; beyond that end
        it is continued as an odd function. "rank" is the share of the rows of `fit` below the value, interpolated
        linearly and constant beyond the ends. Columns with at most two distinct values keep "none".
    standardize : bool, default=True
        Whether to give each warped column mean 0 and standard deviation 1 over the rows of `fit`. Constant columns
        become 0. The values of a column with two distinct values are put 1 apart, whatever their frequencies. With
        indicators of categories, rows of a rare category are then no farther from others than those of a frequent one.

    Attributes
    ----------
    warps_ : list of str
        The warp of each column.
    parameters_ : list of ndarray
        The parameters of each warp: empty for "none"; sign, origin and scale for "log"; values and shares of the knots
        for "rank".
    mean_, scale_ : ndarray of shape (d,)
        The mean that is subtracted from each warped column, and the number by which it is then divided.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), where X had names

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ColumnWarp
    >>> ColumnWarp("log").fit_transform(np.array([[0.0], [1.0], [10.0], [1000.0]])).round(2).ravel()
    array([-0.71, -0.66, -0.35,  1.72])
    """

    def __init__(self, warp: str | Sequence[str] = "none", *, standardize: bool = True) -> None:
        self.warp = warp
        self.standardize = standardize

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "ColumnWarp":
        """Learn the warp of each column.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored
        sample_weight : array-like of shape (n,), optional
            Weights of the rows in the mean and the standard deviation.

        Returns
        -------
        self
        """
        refuse_sparse(self, X)
        X = validated(self, X, dtype=PRECISIONS)
        asked = [self.warp] * X.shape[1] if isinstance(self.warp, str) else list(self.warp)
        if len(asked) != X.shape[1]:
            raise invalid_parameter("warp", self.warp, f"one of {list(WARPS)}, or {X.shape[1]} of them, one a column")
        self.warps_, self.parameters_ = [], []
        counts = [len(np.unique(x)) for x in X.T]
        two_valued = np.array(counts) == 2
        for x, name, count in zip(X.T.astype(np.float64), asked, counts, strict=True):
            check_choice("warp", name, WARPS)
            kept = "none" if count <= 2 else name
            self.warps_.append(kept)
            made = log_parameters(x) if kept == "log" else rank_knots(x) if kept == "rank" else ()
            self.parameters_.append(np.array(made, dtype=np.float64))
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            warped = self._warp(X)
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
            self.mean_ = np.average(warped, axis=0, weights=weights)
            spread = np.sqrt(np.average((warped - self.mean_) ** 2, axis=0, weights=weights))
            # The spread of a constant column is a rounding error.
            self.scale_ = np.where(spread > 1e-13 * np.abs(warped).max(axis=0), spread, 1.0)
            self.scale_ = np.where(two_valued, np.ptp(X, axis=0), self.scale_)
        return self

    @finite_answers
    def transform(self, X: Any) -> np.ndarray:
        """Return the warped and standardized columns, in the precision of X."""
        check_is_fitted(self)
        X = validated(self, X, dtype=PRECISIONS, reset=False)
        with np.errstate(over="ignore"):
            warped = (self._warp(X) - self.mean_) / self.scale_
        # After division by a tiny deviation, a number may be too large to be squared. Such numbers are clipped.
        largest = LARGEST_NUMBERS[X.dtype]
        return np.clip(warped, -largest, largest, out=warped).astype(X.dtype, copy=False)

    @finite_answers
    def slopes(self, X: Any) -> np.ndarray:
        """Return the derivative of each transformed column with respect to the original column, at each row.

        A gradient with respect to the transformed columns, multiplied by this, is the gradient in the original units.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=PRECISIONS, reset=False)
        result = np.ones(X.shape, dtype=np.float64)
        for k, (name, parameters) in enumerate(zip(self.warps_, self.parameters_, strict=True)):
            if name == "log":
                result[:, k] = log_warp_slope(X[:, k].astype(np.float64), *parameters)
            elif name == "rank":
                values, shares = parameters
                piece = np.clip(np.searchsorted(values, X[:, k], side="right") - 1, 0, len(values) - 2)
                inside = (X[:, k] >= values[0]) & (X[:, k] <= values[-1])
                result[:, k] = np.where(inside, (np.diff(shares) / np.diff(values))[piece], 0.0)
        return result / self.scale_

    def _warp(self, X: np.ndarray) -> np.ndarray:
        result = X.astype(np.float64)
        for k, (name, parameters) in enumerate(zip(self.warps_, self.parameters_, strict=True)):
            if name == "log":
                result[:, k] = log_warp(result[:, k], *parameters)
            elif name == "rank":
                result[:, k] = np.interp(result[:, k], *parameters)
        return result


def mixed(names: tuple[str, ...], fitted: Mapping[str, ColumnWarp]) -> ColumnWarp:
    """Return the warp with the given name for each column, from warps that were fitted to all columns of the same rows.

    Each column has its own warp, so nothing is fitted again when a search tries different names for single columns.
    """
    chosen = [fitted[name] for name in names]
    warp = ColumnWarp(names, standardize=chosen[0].standardize)
    warp.warps_ = [each.warps_[k] for k, each in enumerate(chosen)]
    warp.parameters_ = [each.parameters_[k] for k, each in enumerate(chosen)]
    warp.mean_ = np.array([each.mean_[k] for k, each in enumerate(chosen)])
    warp.scale_ = np.array([each.scale_[k] for k, each in enumerate(chosen)])
    warp.n_features_in_ = len(names)
    return warp
