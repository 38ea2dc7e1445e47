"""One contestant on one data set: accuracy, balanced accuracy, log loss, time, and how good its map in the plane is."""

import time
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from mercer import KernelDiscriminant, datasets

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def prepared(name: str, n_train: int | None, n_test: int | None, seed: int) -> Split:
    """Return (X, y, X_test, y_test); the same rows for every contestant with the same seed.

    With its own split, a set's training rows are drawn anew for each seed, unless all are used; others are split 3 : 1.
    """
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X / 16.0, y, random_state=seed, stratify=y)
        return X, y, X_test, y_test
    data = datasets.load(name)
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if X_test is None or y_test is None:
        X, X_test, y, y_test = train_test_split(X, y, random_state=seed, stratify=y)
    X, y = drawn(X, y, n_train, seed)
    X_test, y_test = drawn(X_test, y_test, n_test, 0)
    if name == "adult":
        encoder = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=20), data.categorical),
            remainder=StandardScaler(),
        )
        X, X_test = encoder.fit_transform(X), encoder.transform(X_test)
    elif name == "covtype":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def drawn(X: np.ndarray, y: np.ndarray, n: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if n is None or n >= len(X):
        return X, y
    rows = np.random.RandomState(seed).permutation(len(X))[:n]
    return X[rows], y[rows]


def contestant(name: str, settings: dict[str, Any], seed: int) -> Any:
    """Return the estimator, on its defaults where the settings do not say otherwise."""
    if name == "KernelDiscriminant":
        return KernelDiscriminant(bandwidth="auto", random_state=seed, **settings)
    if name == "LDA":
        return LinearDiscriminantAnalysis()
    if name == "QDA":
        # The default solver needs more rows in each class than columns.
        if settings["smallest class"] > settings["columns"]:
            return QuadraticDiscriminantAnalysis(reg_param=0.1)
        return QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)
    if name == "KernelPCA + LDA":
        kernel_pca = KernelPCA(100, kernel="rbf", gamma=settings["gamma"], eigen_solver="randomized", random_state=seed)
        return make_pipeline(kernel_pca, LinearDiscriminantAnalysis())
    if name == "SVC":
        return SVC(cache_size=2000, decision_function_shape="ovr")
    return KNeighborsClassifier()


def plane(name: str, fitted: Any, X: np.ndarray) -> np.ndarray | None:
    """Return the contestant's own map to the plane; None if it has none."""
    if hasattr(fitted, "transform"):
        values = np.asarray(fitted.transform(X))
        return values[:, :2] if values.shape[1] > 1 else np.column_stack([values, np.zeros(len(values))])
    return None


def run(settings: dict[str, Any], seed: int) -> dict[str, float | str]:
    """Fit and score one contestant."""
    X, y, X_test, y_test = prepared(settings["data"], settings["n_train"], settings["n_test"], seed)
    options = dict(settings["options"])
    if settings["contestant"] == "KernelPCA + LDA":
        # scikit-learn's SVC default: one over the number of columns times the variance.
        options["gamma"] = float(1.0 / (X.shape[1] * X.var()))
    if settings["contestant"] == "QDA":
        options |= {"columns": X.shape[1], "smallest class": int(np.bincount(y).min())}
    model = contestant(settings["contestant"], options, seed)
    start = time.perf_counter()
    model.fit(X, y)
    fit_seconds = time.perf_counter() - start
    predicted = model.predict(X_test)
    measures: dict[str, float | str] = {
        "accuracy": float(accuracy_score(y_test, predicted)),
        "balanced accuracy": float(balanced_accuracy_score(y_test, predicted)),
        "fit seconds": fit_seconds,
    }
    if hasattr(model, "predict_proba"):
        measures["log loss"] = float(log_loss(y_test, model.predict_proba(X_test), labels=np.unique(y)))
    map_train, map_test = plane(settings["contestant"], model, X), plane(settings["contestant"], model, X_test)
    if map_train is not None and map_test is not None:
        measures["map accuracy"] = float(KNeighborsClassifier(15).fit(map_train, y).score(map_test, y_test))
    if settings["contestant"] == "KNN":
        flat = PCA(2, random_state=seed).fit(X)
        neighbours = KNeighborsClassifier(15).fit(flat.transform(X), y)
        measures["map accuracy"] = float(neighbours.score(flat.transform(X_test), y_test))
    return measures
