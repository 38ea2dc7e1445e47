"""Algorithm 1 and KTRR against loops that follow the printed pseudo-code line by line."""

import numpy as np
import pytest
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from mercer.papers import ktrr, precision_clustering


def gaussian(X, sigma):
    """K of columns of X, entry by entry: k(x, y) = exp(-|x - y|^2 / (2 sigma^2))."""
    n = X.shape[1]
    return np.array([[np.exp(-np.sum((X[:, i] - X[:, j]) ** 2) / (2 * sigma**2)) for j in range(n)] for i in range(n)])


def median_distance(X):
    n = X.shape[1]
    return np.median([np.linalg.norm(X[:, i] - X[:, j]) for i in range(n) for j in range(i)])


def equation_3(K, ridge):
    """Column i: the coefficients of all other points, of which phi(x_i) is made."""
    n = len(K)
    C = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        C[others, i] = np.linalg.solve(K[np.ix_(others, others)] + ridge * np.eye(n - 1), K[others, i])
    return C


def line_4(X, K, sigma, ridge):
    """The mean of nabla f^T nabla f, f expressing each point by the others."""
    m, n = X.shape
    total = np.zeros((m, m))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        inverse = np.linalg.inv(K[np.ix_(others, others)] + ridge * np.eye(n - 1))
        nabla = K[others, i][:, None] * (X[:, others].T - X[:, i]) / sigma**2
        total += nabla.T @ inverse @ K[np.ix_(others, others)] @ inverse @ nabla
    return total / n


def algorithm_1(X, L, ridge, sigma):
    """Lines 1 to 14, for X with points in columns of length 1: the affinity, and the points that it is of."""
    for _ in range(L):  # line 1
        K = gaussian(X, sigma)  # line 2
        Sigma = line_4(X, K, sigma, ridge)  # lines 3 and 4
        U, D, Vt = np.linalg.svd(Sigma)  # line 5
        inverse = D / (D + ridge) ** 2  # line 6
        inverse = inverse / inverse.max()  # line 7
        root = np.sqrt(inverse)  # line 8
        P = U @ np.diag(root) @ Vt  # line 9
        X = P @ X  # line 10
        X = X / np.linalg.norm(X, axis=0)  # line 11
    C = equation_3(gaussian(X, sigma), ridge)  # line 13
    return np.abs(C.T) + np.abs(C), X  # line 14


def line_15(W, k):
    return SpectralClustering(k, affinity="precomputed", random_state=0).fit(W).labels_


def ng_jordan_weiss(W, k):
    """Unit rows of the k leading eigenvectors of D^-1/2 W D^-1/2, and k-means."""
    root = 1 / np.sqrt(W.sum(axis=1))
    E = np.linalg.eigh(root[:, None] * W * root)[1][:, -k:]
    E = E / np.linalg.norm(E, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=0).fit(E).labels_


def points(d):
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(8, 2)) @ random.normal(size=(2, d)) for _ in range(3)])
    return X + 0.05 * random.normal(size=X.shape)


@pytest.mark.parametrize("d", [6, 40])  # more columns than rows: ours works in the span
@pytest.mark.parametrize("lambda_", [0.1, 0.2])
def test_precision_clustering_is_algorithm_1(d, lambda_):
    X = points(d)
    model = precision_clustering(3, lambda_, random_state=0).fit(X)
    columns = (X / np.linalg.norm(X, axis=1, keepdims=True)).T
    W, projected = algorithm_1(columns, 10, lambda_, median_distance(columns))
    np.testing.assert_allclose(model.affinity_matrix_, W, rtol=1e-5, atol=1e-7)
    rows = model.dictionary_
    np.testing.assert_allclose(rows @ rows.T, projected.T @ projected, atol=1e-6)
    assert model.n_iter_ == 10
    assert adjusted_rand_score(model.labels_, line_15(W, 3)) == 1.0


def test_ktrr_is_lines_13_to_15_on_the_points_as_they_are():
    X = points(6)
    model = ktrr(3, random_state=0).fit(X)
    columns = (X / np.linalg.norm(X, axis=1, keepdims=True)).T
    W, _ = algorithm_1(columns, 0, 0.2, median_distance(columns))
    np.testing.assert_allclose(model.affinity_matrix_, W, rtol=1e-8, atol=1e-12)
    assert model.n_iter_ == 0
    assert adjusted_rand_score(model.labels_, line_15(W, 3)) == 1.0
    unit = model.set_params(assign_labels="kmeans").fit(X)
    assert adjusted_rand_score(unit.labels_, ng_jordan_weiss(W, 3)) == 1.0


def test_parameters_reach_the_lines_that_read_them():
    model = precision_clustering(4, 0.3, n_iter=2, random_state=7)
    assert (model.n_clusters, model.n_iter, model.random_state) == (4, 2, 7)
    assert model.self_expression.ridge == model.feature_learning.shrinkage == 0.3
    assert ktrr(4, 0.3).self_expression.ridge == 0.3
