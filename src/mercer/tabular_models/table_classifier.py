"""The base class of classifiers of tables: classes as indicators, and predictions from probabilities."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from mercer.checks import distinct_classes, finite_answers, refuse_sparse
from mercer.rows import wherever_rows_are
from mercer.tabular_models.all_rows import SomeRows, some_labeled_rows
from mercer.tabular_models.classes import class_indicators, class_weights
from mercer.tabular_models.grouped_rows import GroupedRows
from mercer.tabular_models.table import Table
from mercer.tabular_models.table_model import TableModel


class LabeledTable(NamedTuple):
    """The classes, the table whose targets are their indicators, and its rows with their groups of identical rows."""

    classes: np.ndarray
    table: Table
    rows: GroupedRows


class TableClassifier(ClassifierMixin, TableModel, ABC):
    """The base class of classifiers of tables; see `RFMClassifier` and `GPClassifier` for the parameters."""

    class_weight: Any
    classes_: np.ndarray

    def _labeled_table(self, X: Any, y: Any, sample_weight: Any) -> LabeledTable:
        """Check the input and the parameters, and return the classes and the table to learn from."""
        return self._table_of_classes(self._some_rows(X, y, sample_weight))

    def _some_rows(self, X: Any, y: Any, sample_weight: Any) -> SomeRows:
        refuse_sparse(self, X)
        return some_labeled_rows(self, X, y, sample_weight)

    def _table_of_classes(self, some: SomeRows) -> LabeledTable:
        X, y = some.X, some.y
        distinct_classes(y)  # called first, since scikit-learn has no clear error for classes that cannot be compared
        check_classification_targets(y)
        self._check_parameters()
        # The weights of drawn rows already include those of their classes: a draw has other shares of the classes.
        by_class = self.class_weight if some.everything is None else None
        labels = class_indicators(y, class_weights(X, y, some.weights, by_class))
        return LabeledTable(labels.classes, *self._table(X, labels.indicators, labels.weights))

    @abstractmethod
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities of the classes, of shape (n, n_classes)."""

    @wherever_rows_are
    @finite_answers
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    @wherever_rows_are
    @finite_answers
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        most_probable = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def _is_single_output(self) -> bool:
        return False
