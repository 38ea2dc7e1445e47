"""Data sets that are split, drawn, encoded and scaled for classifiers, with the same rows for every contestant."""

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mercer import datasets

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def prepared(name: str, n_train: int | None, n_test: int | None, seed: int) -> Split:
    """Return (X, y, X_test, y_test); contestants with the same seed get the same rows.

    If a set has its own test rows, `n_train` training rows are drawn for each seed, or all are used. Other sets are
    split 3 : 1. The columns of Adult are encoded one-hot or standardized, and those of CoverType are standardized.
    Images are flat rows with values in [0, 1].
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
    X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def drawn(X: np.ndarray, y: np.ndarray, n: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n randomly drawn rows with their targets, or all rows if n is None or there are no more than n."""
    if n is None or n >= len(X):
        return X, y
    rows = np.random.RandomState(seed).permutation(len(X))[:n]
    return X[rows], y[rows]
