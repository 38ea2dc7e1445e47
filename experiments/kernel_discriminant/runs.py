"""Run one contestant on one data set; measure accuracy, log loss, time, and the accuracy in its map to the plane."""

import time
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from experiments.data import prepared
from mercer import KernelDiscriminant


def contestant(name: str, settings: dict[str, Any], seed: int) -> Any:
    """Return the estimator, with its defaults for everything that is not in the settings."""
    if name == "KernelDiscriminant":
        # The kernel of the note, unless the case names another.
        return KernelDiscriminant(random_state=seed, **{"kernel": "gaussian"} | settings)
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
    """Return the rows mapped to the plane by the contestant's first two components; None if it has no transform."""
    if hasattr(fitted, "transform"):
        values = np.asarray(fitted.transform(X))
        return values[:, :2] if values.shape[1] > 1 else np.column_stack([values, np.zeros(len(values))])
    return None


def run(settings: dict[str, Any], seed: int) -> dict[str, float | str]:
    """Fit and score one contestant."""
    X, y, X_test, y_test = prepared(settings["data"], settings["n_train"], settings["n_test"], seed)
    options = dict(settings["options"])
    if settings["contestant"] == "KernelPCA + LDA":
        # The default of scikit-learn's SVC: 1 / (number of columns * variance).
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
        neighbors = KNeighborsClassifier(15).fit(flat.transform(X), y)
        measures["map accuracy"] = float(neighbors.score(flat.transform(X_test), y_test))
    return measures
