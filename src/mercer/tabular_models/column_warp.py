"""Columns bent one by one, so that a skewed column does not spend its distances on its tail."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from mercer.checks import LARGEST_NUMBERS, all_or_nothing, check_choice, finite_answers, refuse_sparse, validated
from mercer.exceptions import invalid_parameter

WARPS = ("none", "log", "rank")
# Knots of the rank warp: enough to follow a distribution, few enough to store for every column.
MOST_KNOTS = 256


def log_warp(x: np.ndarray, sign: float, origin: float, scale: float) -> np.ndarray:
    """Return sign * log(1 + u), u = (sign x - origin) / scale, continued as an odd function below u = 0."""
    u = (sign * x - origin) / scale
    return sign * np.sign(u) * np.log1p(np.abs(u))


def log_warp_slope(x: np.ndarray, sign: float, origin: float, scale: float) -> np.ndarray:
    """Return the derivative of `log_warp` in x."""
    return 1.0 / (scale + np.abs(sign * x - origin))


def log_parameters(x: np.ndarray) -> tuple[float, float, float]:
    """Return the sign, origin and scale of a column's log warp: they follow its skewness, minimum and spread.

    The long tail is drawn in, whichever side it is on: a column with its tail on the left is mirrored. The scale is the
    median distance from the end that stays, so that the warp does not depend on the units of the column.
    """
    centered = x - x.mean()
    sign = 1.0 if (centered**3).sum() >= 0 else -1.0
    origin = float((sign * x).min())
    distances = sign * x - origin
    return sign, origin, float(np.median(distances[distances > 0]))


def rank_knots(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the empirical distribution function of a column: values, and the share of rows below each.

    Ties count half. Beyond MOST_KNOTS distinct values, quantiles of the column stand for it.
    """
    values, counts = np.unique(x, return_counts=True)
    shares = (np.cumsum(counts) - 0.5 * counts) / len(x)
    if len(values) > MOST_KNOTS:
        kept = np.unique(np.searchsorted(shares, np.linspace(shares[0], shares[-1], MOST_KNOTS)))
        values, shares = values[kept], shares[kept]
    return values, shares


class ColumnWarp(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Warp each column by a monotone function, then give it mean 0 and standard deviation 1.

    A distance between rows adds up the columns. Where one is skewed, most of its rows lie together and a few far away,
    and no length scale suits both; its logarithm or its rank spreads them.

    Parameters
    ----------
    warp : {"none", "log", "rank"} or sequence of these, default="none"
        One for all columns, or one a column. "log" is log(1 + u), u the distance from the end of the column that is not
        its long tail, in units of its median, continued as an odd function beyond that end. "rank" is the share of the
        rows of `fit` below the value, linear in between and constant beyond the ends. Columns of at most two values
        keep "none".
    standardize : bool, default=True
        Whether to give each warped column mean 0 and standard deviation 1 over the rows of `fit`; constant columns
        become 0. The two values of a column that has no more are put 1 apart, whatever their shares: indicators of
        categories then make rows that differ equally far apart, a rare category no farther than a frequent one.

    Attributes
    ----------
    warps_ : list of str
        The warp of each column.
    parameters_ : list of ndarray
        Of each column: nothing; the sign, the origin and the scale; or the knots, values first.
    mean_, scale_ : ndarray of shape (d,)
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
        X = validated(self, X, dtype=(np.float64, np.float32))
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
            # A constant column's spread is rounding, not signal.
            self.scale_ = np.where(spread > 1e-13 * np.abs(warped).max(axis=0), spread, 1.0)
            self.scale_ = np.where(two_valued, np.ptp(X, axis=0), self.scale_)
        return self

    @finite_answers
    def transform(self, X: Any) -> np.ndarray:
        """Return the warped and standardized columns, in the precision of X."""
        check_is_fitted(self)
        X = validated(self, X, dtype=(np.float64, np.float32), reset=False)
        with np.errstate(over="ignore"):
            warped = (self._warp(X) - self.mean_) / self.scale_
        # In units of a tiny deviation a number may be too large to be squared: it is as far away as a number can be.
        largest = LARGEST_NUMBERS[X.dtype]
        return np.clip(warped, -largest, largest, out=warped).astype(X.dtype, copy=False)

    @finite_answers
    def slopes(self, X: Any) -> np.ndarray:
        """Return the derivative of each transformed column in its own column, at each row.

        A gradient with respect to the warped columns times this is the gradient in the units that the user knows.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=(np.float64, np.float32), reset=False)
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
    """Return the warp with a name for each column, from warps of all columns that were fitted to the same rows.

    Columns are warped one by one, so that nothing is to be learned anew: a search that tries a name for one column
    after another takes the columns that it has.
    """
    chosen = [fitted[name] for name in names]
    warp = ColumnWarp(names, standardize=chosen[0].standardize)
    warp.warps_ = [each.warps_[k] for k, each in enumerate(chosen)]
    warp.parameters_ = [each.parameters_[k] for k, each in enumerate(chosen)]
    warp.mean_ = np.array([each.mean_[k] for k, each in enumerate(chosen)])
    warp.scale_ = np.array([each.scale_[k] for k, each in enumerate(chosen)])
    warp.n_features_in_ = len(names)
    return warp
