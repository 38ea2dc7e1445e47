"""Baselines on the rows that are left out: a constant, the target of the row before, a linear model, and trees."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV

RIDGES = np.logspace(-3, 3, 13)


class Answers(NamedTuple):
    """Predictions of one model for rows that are left out.

    Attributes
    ----------
    name : str
    predicted : ndarray of shape (n,)
    std : ndarray of shape (n,) or None
    probabilities : ndarray of shape (n, n_classes) or None
    classes : ndarray of shape (n_classes,) or None
    is_guess : bool
        Whether the model uses no input.
    """

    name: str
    predicted: np.ndarray
    std: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    classes: np.ndarray | None = None
    is_guess: bool = False

    def of_classes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities and the classes; raise if the model does not predict classes."""
        if self.probabilities is None or self.classes is None:
            raise TypeError(f"{self.name} has no probabilities of classes.")
        return self.probabilities, self.classes


def baseline_answers(
    task: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, random_state: Any, before: np.ndarray | None = None
) -> list[Answers]:
    """Fit simple models, and return their predictions.

    Parameters
    ----------
    task : {"regression", "classification"}
    X, X_test : ndarray of shape (n, d) and (n_test, d)
        The encoded table.
    y : ndarray of shape (n,)
        In the order of time if `before` is given.
    random_state : int, RandomState instance or None
    before : ndarray of shape (n_test,) or None
        For rows in the order of time, the target of the row before each row of X_test, which is often a good guess.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a linear model that has not fully converged is still a baseline
        if task == "regression":
            return list(_regressions(X, y, X_test, random_state, before))
        found = [] if before is None else [_class_before(y, before)]
        models = _classifiers(X, y, random_state)
        answers = [Answers(n, m.predict(X_test), None, m.predict_proba(X_test), m.classes_) for n, m in models]
        return [answers[0]._replace(is_guess=True), *found, *answers[1:]]


def baselines_of_split(
    task: str,
    X: np.ndarray,
    X_test: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    times: np.ndarray | None,
    random_state: Any,
) -> list[Answers]:
    """Return what simple models predict for the rows left out. With times, one predicts the target of the row before.

    Parameters
    ----------
    task : {"regression", "classification"}
    X, X_test : ndarray of shape (n_train, d) and (n_test, d)
        The encoded rows.
    y : ndarray of shape (n,)
        The targets of all rows.
    train, test : ndarray of int
        Positions of the rows to learn from and to score on.
    times : ndarray of shape (n,) or None
        The times of all rows, if rows are split by time.
    random_state : int, RandomState instance or None
    """
    if times is None:
        return baseline_answers(task, X, y[train], X_test, random_state)
    order = np.argsort(times[train], kind="stable")
    return baseline_answers(task, X[order], y[train[order]], X_test, random_state, row_before(y, times, test))


def row_before(y: np.ndarray, times: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Return the target of the row before each of some rows, in the order of time.

    Parameters
    ----------
    y : ndarray of shape (n,)
    times : ndarray of shape (n,)
    test : ndarray of int
        Positions of these rows. The first row in time has no row before it and gets its own target.
    """
    order = np.argsort(times, kind="stable")
    place = np.empty(len(y), dtype=int)
    place[order] = np.arange(len(y))
    return y[order[np.maximum(place[test] - 1, 0)]]


def _regressions(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, random_state: Any, before: np.ndarray | None
) -> Iterator[Answers]:
    constant = DummyRegressor().fit(X, y)
    yield Answers("mean of the target", constant.predict(X_test), np.full(len(X_test), y.std()), is_guess=True)
    if before is not None:
        steps = float(np.sqrt(np.mean(np.diff(y) ** 2)))
        yield Answers("value of the row before", before.astype(np.float64), np.full(len(X_test), steps), is_guess=True)
    linear = RidgeCV(RIDGES).fit(X, y)
    # best_score_ is minus the mean squared leave-one-out error, so that this spread is not an error on training rows.
    spread = np.sqrt(max(-linear.best_score_, 0.0))
    yield Answers("ridge regression", linear.predict(X_test), np.full(len(X_test), spread))
    trees = HistGradientBoostingRegressor(random_state=random_state).fit(X, y)
    yield Answers("gradient-boosted trees", trees.predict(X_test))


def _classifiers(X: np.ndarray, y: np.ndarray, random_state: Any) -> Iterator[tuple[str, Any]]:
    yield "most frequent class", DummyClassifier(strategy="prior").fit(X, y)
    yield "logistic regression", LogisticRegression(max_iter=1000).fit(X, y)
    yield "gradient-boosted trees", HistGradientBoostingClassifier(random_state=random_state).fit(X, y)


def _class_before(y: np.ndarray, before: np.ndarray) -> Answers:
    """Predict the class of the row before. Its probability is how often the class stays in the training rows."""
    classes, counts = np.unique(y, return_counts=True)
    stays = np.clip(np.mean(y[1:] == y[:-1]), 0.0, 1.0)
    shares = counts / counts.sum()
    probabilities = stays * (before[:, None] == classes) + (1.0 - stays) * shares
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    return Answers("class of the row before", classes[probabilities.argmax(axis=1)], None, probabilities, classes, True)
