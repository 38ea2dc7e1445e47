"""Fit any estimator on a table with columns of any kind: `tabular(estimator)`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.utils import Tags, TransformerTags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.checks import all_or_nothing
from mercer.exceptions import invalid_parameter
from mercer.mahalanobis import Mahalanobis
from mercer.rows import is_elsewhere
from mercer.tables.column_sums import with_sums_of_all_rows
from mercer.tables.elsewhere import TableElsewhere, column_of
from mercer.tables.encoder import TableEncoder
from mercer.tables.frames import as_frame, optional
from mercer.tables.level_sums import with_means_of_all_rows
from mercer.tables.target import check_target


def tabular(estimator: Any, **options: Any) -> "TabularModel":
    """Let an estimator learn from a data frame with numbers, categories, dates, text and missing values.

    Parameters
    ----------
    estimator : estimator
        An estimator of Mercer or of scikit-learn; it is cloned, not changed.
    **options : of TableEncoder
        `kinds`, `cardinality_threshold`, `n_components`, `scale` and `target_type`.

    Returns
    -------
    model : TabularModel
        With the methods of the estimator, and importances under the names of the table's columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import mercer
    >>> table = pd.DataFrame({"age": [31, None, 52, 47, 29], "city": ["Oslo", "Rome", "Oslo", None, "Rome"]})
    >>> model = mercer.tabular(mercer.KernelDiscriminant()).fit(table, ["no", "no", "yes", "yes", "no"])
    >>> model.predict(pd.DataFrame({"city": ["Paris"], "age": [58]})).tolist()
    ['yes']
    """
    return TabularModel(estimator, encoder=TableEncoder(**options))


def _has(method: str) -> Callable[["TabularModel"], bool]:
    """Return a check that the estimator has a method: the model has those of its estimator and no others."""
    return lambda self: hasattr(getattr(self, "estimator_", self.estimator), method)


class TabularModel(MetaEstimatorMixin, BaseEstimator):
    """Encode a table, fit an estimator on the encoded columns, and explain it in the columns of the table.

    `tabular(estimator)` is a shorter way to make one. The model has the methods of its estimator, which is given a
    matrix of numbers without missing values.

    Parameters
    ----------
    estimator : estimator
        The estimator that learns from the encoded table.
    encoder : TableEncoder or None, default=None
        The encoder of the columns. None is TableEncoder().

    Attributes
    ----------
    encoder_ : TableEncoder
        The fitted encoder.
    estimator_ : estimator
        The estimator that was fitted on the encoded columns, with their names if the table had names.
    classes_ : ndarray of shape (n_classes,), where the estimator has it
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where the table had names

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import Ridge
    >>> from mercer import TabularModel
    >>> table = pd.DataFrame({"day": ["2024-01-01", "2024-01-02", "2024-01-03"], "rain": [0.0, 2.0, None]})
    >>> TabularModel(Ridge()).fit(table, [1.0, 2.0, 3.0]).predict(table).shape
    (3,)
    """

    def __init__(self, estimator: Any, *, encoder: TableEncoder | None = None) -> None:
        self.estimator = estimator
        self.encoder = encoder

    # ---- fit and use ---------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> "TabularModel":
        """Fit the encoder on X, then the estimator on the encoded rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n, d)
            Also a Dask frame or rows of files (`mercer.rows`). If there are more than 100 000 such rows, the encoder
            learns kinds of columns and coordinates of texts from a draw of 100 000, and everything else from all rows.
        y : array-like of shape (n,) or (n, n_outputs), optional
            A Series of any dtype, or None if the estimator needs no target.
        **fit_params
            Passed to the estimator, such as `sample_weight`. The encoder does not use weights.

        Returns
        -------
        self
        """
        self._check_parameters()
        encoder = TableEncoder() if self.encoder is None else clone(self.encoder)
        kind = self._target_type()
        if kind is not None and encoder.target_type == "auto":
            encoder.set_params(target_type=kind)
        if is_elsewhere(X):
            table = TableElsewhere.of(X)
            drawn = table.drawn(getattr(self.estimator, "random_state", None))
            if drawn is not None:
                return self._fit_on_drawn(table, drawn, y, encoder, kind, fit_params)
            X, y = table.frame(slice(None)), column_of(y, slice(None), len(table.rows))[1]
        target = check_target(y)
        # If the table had names, the estimator gets a data frame, with the encoded names and the index of the rows.
        encoder.set_output(transform="default" if as_frame(X) is None else "pandas")
        # An estimator that is neither a classifier nor a regressor must not learn y through the means of levels.
        encoded = encoder.fit_transform(X, None if kind is None else target)
        return self._keep(clone(self.estimator).fit(encoded, target, **self._routed("fit", fit_params)), encoder)

    def _fit_on_drawn(
        self,
        table: TableElsewhere,
        drawn: np.ndarray,
        y: Any,
        encoder: TableEncoder,
        kind: str | None,
        fit_params: dict[str, Any],
    ) -> "TabularModel":
        """Learn kinds of columns from some rows, and the rest of the encoder and the estimator from all rows."""
        target, some = column_of(y, drawn, len(table.rows))
        encoder.set_output(transform="pandas")
        frame = table.frame(drawn)
        encoder.fit(frame, None if kind is None else some)
        encoder = with_sums_of_all_rows(encoder, table.rows, table.categories, frame)
        if kind is None:
            of_fit = [encoder]
        else:
            encoder, of_fit = with_means_of_all_rows(encoder, table.rows, table.categories, target, some)
        encoded = table.encoded_in_fit(of_fit)
        return self._keep(clone(self.estimator).fit(encoded, target, **self._routed("fit", fit_params)), encoder)

    def _keep(self, estimator: Any, encoder: TableEncoder) -> "TabularModel":
        self.estimator_, self.encoder_ = estimator, encoder
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _ask(self, method: str, X: Any, /, *args: Any, **options: Any) -> Any:
        check_is_fitted(self)
        rows = TableElsewhere.of(X).encoded(self.encoder_) if is_elsewhere(X) else self.encoder_.transform(X)
        return getattr(self.estimator_, method)(rows, *args, **options)

    @available_if(_has("predict"))
    def predict(self, X: Any, **options: Any) -> Any:
        """Return the estimator's predictions; options, such as `return_std=True`, are its own."""
        return self._ask("predict", X, **options)

    @available_if(_has("predict_quantiles"))
    def predict_quantiles(self, X: Any, q: Any) -> Any:
        """Return quantiles of a new target, as the estimator's `predict_quantiles` does."""
        return self._ask("predict_quantiles", X, q)

    @available_if(_has("predict_interval"))
    def predict_interval(self, X: Any, coverage: float = 0.9, **options: Any) -> Any:
        """Return intervals that contain a new target with probability `coverage`: lower and upper ends, (n, 2)."""
        return self._ask("predict_interval", X, coverage, **options)

    @available_if(_has("support"))
    def support(self, X: Any) -> Any:
        """Return how well the training rows support the prediction of each row, near 0 where they do not, (n,)."""
        return self._ask("support", X)

    @available_if(_has("log_density"))
    def log_density(self, X: Any, y: Any) -> Any:
        """Return the log density of y at each row, of shape (n,)."""
        return self._ask("log_density", X, y)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any, **options: Any) -> Any:
        """Return the probability of each class, of shape (n, n_classes)."""
        return self._ask("predict_proba", X, **options)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **options: Any) -> Any:
        """Return the logarithms of `predict_proba`."""
        return self._ask("predict_log_proba", X, **options)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any, **options: Any) -> Any:
        """Return the estimator's decision function."""
        return self._ask("decision_function", X, **options)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, **options: Any) -> float:
        """Return the estimator's score, such as accuracy or R^2."""
        return self._ask("score", X, check_target(y), **self._routed("score", options))

    @available_if(_has("transform"))
    def transform(self, X: Any, **options: Any) -> Any:
        """Return the encoded rows as the estimator transforms them."""
        return self._ask("transform", X, **options)

    @available_if(_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the encoded rows as the estimator transforms them."""
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : ignored
            Ignored; the names are those of the fit.
        """
        check_is_fitted(self)
        return self.estimator_.get_feature_names_out()

    @available_if(_has("set_output"))
    def set_output(self, *, transform: str | None = None) -> "TabularModel":
        """Set the container that `transform` returns: "default", "pandas" or "polars"; None changes nothing.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
        """
        # On a copy: the estimator is the caller's.
        self.estimator = clone(self.estimator).set_output(transform=transform)
        if hasattr(self, "estimator_"):
            self.estimator_.set_output(transform=transform)
        return self

    # ---- explanations --------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """The classes, if the estimator is a classifier."""
        return self._fitted().classes_

    @property
    def metric_(self) -> Mahalanobis:
        """The learned metric on the encoded columns, if the estimator learns one."""
        return self._fitted().metric_

    @property
    def feature_importances_(self) -> np.ndarray:
        """The importance of each column of the table, of shape (n_features_in_,); they sum to 1.

        The importance of a column is the sum over its encoded columns, and 0 if the column was dropped. To see how much
        worse new rows are predicted without a column, use `mercer.explain.permutation_importances`, with intervals.
        """
        encoded = np.asarray(self._fitted().feature_importances_, dtype=np.float64)
        summed = np.bincount(self.encoder_.origins_, weights=encoded, minlength=self.n_features_in_)
        total = summed.sum()
        return summed / total if total > 0 else summed

    @property
    def importances_(self) -> Any:
        """`feature_importances_` as a pandas Series under the names of the columns, the largest first."""
        values = self.feature_importances_
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(values))])
        series = optional("pandas", "importances_").Series(values, index=names, name="importance")
        return series.sort_values(ascending=False, kind="stable")

    def metric_of_columns(self) -> Any:
        """Return the learned metric M as a data frame with the encoded names as rows and columns."""
        names = self.encoder_.get_feature_names_out() if hasattr(self, "encoder_") else ()
        M = self.metric_.matrix(len(names))
        return optional("pandas", "metric_of_columns").DataFrame(M, index=names, columns=names)

    def _fitted(self) -> Any:
        # Before the fit this must be an AttributeError, so that hasattr returns False.
        if not hasattr(self, "estimator_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.estimator_

    # ---- scikit-learn --------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise invalid_parameter("estimator", self.estimator, "an estimator, such as mercer.KernelDiscriminant()")
        if self.encoder is not None and not isinstance(self.encoder, TableEncoder):
            raise invalid_parameter("encoder", self.encoder, "a TableEncoder or None")

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is passed to the estimator if scikit-learn's metadata routing is on, such as weights of rows."""
        mapping = MethodMapping().add(caller="fit", callee="fit").add(caller="score", callee="score")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def _routed(self, method: str, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options for a method of the estimator: all, or with metadata routing those it has requested."""
        if not options or not get_config()["enable_metadata_routing"]:
            return options
        return process_routing(self, method, **options)["estimator"][method]

    def _target_type(self) -> str | None:
        """Return how the estimator treats y; None if it is neither a classifier nor a regressor."""
        if not hasattr(self.estimator, "__sklearn_tags__"):
            return None
        return "classes" if is_classifier(self.estimator) else "numbers" if is_regressor(self.estimator) else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            own = get_tags(self.estimator)
            tags.estimator_type = own.estimator_type
            tags.target_tags = own.target_tags
            tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
            if own.transformer_tags is not None:  # encoded columns are float64
                tags.transformer_tags = TransformerTags(preserves_dtype=["float64"])
            tags.non_deterministic = own.non_deterministic
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags
