"""The learned metric: a pseudo-metric whatever its factor, its matrix, and what it says about inputs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import Mahalanobis
from mercer.kernels import Gaussian
from mercer.mahalanobis import check_metric
from tests.examples_of import DATA, METRICS, QUICK, numbers, tables
from tests.naive import distance, metric_matrix

FACTORS = {name: make for name, make in METRICS.items() if name != "none"}
over_metrics = pytest.mark.parametrize("make", FACTORS.values(), ids=FACTORS.keys())
over_data = pytest.mark.parametrize("data", DATA.values(), ids=DATA.keys())


# ---- a pseudo-metric ---------------------------------------------------------------------------------------


@over_data
@over_metrics
def test_distance_equals_the_naive_twin(make, data):
    X = data()
    Z, metric = X[::-1] * 0.5, make(X.shape[1])
    M = metric_matrix(metric, X.shape[1])
    for found, other in ((metric.distance(X, Z), Z), (metric.distance(X), X)):
        expected = [[distance(x, z, M) for z in other] for x in X]
        assert_allclose(found, expected, rtol=1e-6, atol=1e-12 * np.abs(X).max())
    assert isinstance(metric.distance(torch.tensor(X), Z.copy()), torch.Tensor)
    assert metric.distance(X.astype(np.float32)).dtype == np.float32


@QUICK
@given(tables(), st.sampled_from([*FACTORS.values()]))
def test_is_a_pseudo_metric(X, make):
    D = make(X.shape[1]).distance(X)
    rounding = 1e-12 * max(1.0, np.abs(X).max())
    equal = (X[:, None] == X[None, :]).all(axis=2)
    assert (D >= 0).all()
    assert (D[equal] == 0).all()
    assert_allclose(D, D.T, rtol=1e-6, atol=rounding)
    assert (D[:, None, :] <= (D[:, :, None] + D[None, :, :]) * (1 + 1e-6) + rounding).all()


def test_a_low_rank_metric_does_not_see_its_null_space():
    metric = Mahalanobis(np.array([[1.0], [1.0]]))
    assert metric.distance([[0.0, 0.0]], [[1.0, -1.0]])[0, 0] == 0.0


# ---- factor and matrix -------------------------------------------------------------------------------------


@over_metrics
def test_the_matrix_is_the_factor_squared_and_comes_back(make):
    M = metric_matrix(make(4), 4)
    assert_allclose(make(4).matrix(4), M, rtol=1e-14)
    recovered = Mahalanobis.from_matrix(M)
    assert_allclose(recovered.matrix(), M, rtol=1e-12, atol=1e-14)
    assert recovered.factor.shape == (4, np.linalg.matrix_rank(M))


def test_a_tensor_is_a_factor_too():
    L = numbers(3, 2)
    metric = Mahalanobis(torch.from_numpy(L))
    assert_allclose(metric.matrix(), L @ L.T)
    assert_allclose(metric.normalized().importances(), Mahalanobis(L).importances())
    assert metric == clone(metric) == Mahalanobis(L)
    learned = Mahalanobis(torch.from_numpy(L).requires_grad_())
    assert learned.project(torch.ones(1, 3, dtype=torch.float64)).requires_grad
    assert_allclose(learned.matrix(), L @ L.T)


@pytest.mark.parametrize("rank", [1, 2, 3, 9])
def test_a_cut_rank_is_the_best_approximation(rank):
    M = metric_matrix(METRICS["full"](4), 4)
    U, s, Vt = np.linalg.svd(M)
    metric = Mahalanobis.from_matrix(M, rank=rank)
    assert metric.factor.shape == (4, min(rank, 4))
    assert_allclose(metric.matrix(), (U[:, :rank] * s[:rank]) @ Vt[:rank], rtol=1e-10, atol=1e-12)


def test_rounding_is_clipped_and_averaged():
    """Small negative eigenvalues and a small asymmetry, as rounding makes them; what is no rounding is an error."""
    Q = np.linalg.qr(numbers(3, 3))[0]
    M = (Q * [2.0, 1.0, -5e-8]) @ Q.T
    skew = 1e-7 * np.array([[0.0, 3.0, 0.0], [-3.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    for matrix in (M, M + skew, (M + skew).tolist()):
        assert_allclose(Mahalanobis.from_matrix(matrix).matrix(), (Q * [2.0, 1.0, 0.0]) @ Q.T, atol=1e-14)
    assert Mahalanobis.from_matrix(np.zeros((2, 2))).factor.shape == (2, 0)


def test_from_weights():
    assert_allclose(Mahalanobis.from_weights([4.0, 0.0, 1.0]).matrix(), np.diag([4.0, 0.0, 1.0]))


def test_check_metric_takes_what_a_kernel_takes():
    metric = METRICS["full"](3)
    assert check_metric(None) == Mahalanobis()
    assert check_metric(metric) is metric
    assert_allclose(check_metric([1.0, 4.0]).factor, [1.0, 2.0])
    assert_allclose(check_metric(metric.matrix()).matrix(), metric.matrix(), rtol=1e-12, atol=1e-14)
    assert_allclose(check_metric(torch.eye(2)).matrix(), np.eye(2))


@over_metrics
def test_pull_back_is_the_adjoint_of_project(make):
    metric, X = make(4), torch.tensor(numbers(5, 4))
    G = torch.tensor(numbers(*metric.project(X).shape, seed=1))
    assert_allclose((metric.project(X) * G).sum(), (X * metric.pull_back(G)).sum(), rtol=1e-12)
    assert metric.project(X.float()).dtype == metric.pull_back(G.float()).dtype == torch.float32


@over_metrics
def test_normalized_has_trace_d_and_the_same_shares(make):
    metric = make(4)
    before = clone(metric)
    M = metric.normalized().matrix(4)
    assert_allclose(np.trace(M), 4.0)
    assert_allclose(M / 4.0, metric.matrix(4) / np.trace(metric.matrix(4)), rtol=1e-12)
    assert metric == before
    zero = Mahalanobis(np.zeros(3))
    assert zero.normalized() == zero


# ---- what it says about inputs -----------------------------------------------------------------------------


@over_metrics
def test_importances_are_the_diagonal(make):
    importances, M = make(4).importances(4), metric_matrix(make(4), 4)
    assert_allclose(importances.sum(), 1.0)
    assert_allclose(importances, np.diag(M) / np.trace(M), rtol=1e-12)
    assert_array_equal(Mahalanobis(np.zeros((3, 1))).importances(), np.zeros(3))


@over_metrics
def test_directions_are_unit_eigenvectors_in_order_of_their_share(make):
    M = metric_matrix(make(4), 4)
    rows, shares = make(4).directions(n_features=4)
    assert len(rows) == np.linalg.matrix_rank(M)
    assert_allclose(rows @ rows.T, np.eye(len(rows)), atol=1e-12)
    assert_allclose(M @ rows.T, rows.T * (shares * np.trace(M)), atol=1e-12)
    assert (np.diff(shares) <= 1e-15).all()
    assert_allclose(shares.sum(), 1.0)
    assert (shares >= 0).all()
    assert (rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)] > 0).all()
    few, few_shares = make(4).directions(2, n_features=4)
    assert_array_equal(few, rows[:2])
    assert_array_equal(few_shares, shares[:2])


def test_summary_names_the_inputs_that_count():
    metric = Mahalanobis.from_matrix([[8.0, 0.0, 0.0], [0.0, 1.0, -0.5], [0.0, -0.5, 1.0]])
    lines = metric.summary(["age", "height", "weight"], n_top=2).splitlines()
    assert lines[0] == "full metric on 3 inputs"
    assert [line.split()[:2] for line in lines[1:3]] == [["age", "80.0%"], ["height", "10.0%"]]
    assert lines[1].count("█") == 32
    assert lines[3] == "  direction with 80.0% of the metric: +1.00 age"
    assert lines[4].startswith("  direction with 15.0% of the metric: ")
    assert "0.71 height" in lines[4]
    assert len(lines) == 5


def test_summary_without_names_or_directions():
    assert Mahalanobis.from_weights([1.0, 3.0]).summary().splitlines()[1].split()[:2] == ["x1", "75.0%"]
    assert Mahalanobis().summary(n_features=2).startswith("identity metric on 2 inputs")


# ---- a value -----------------------------------------------------------------------------------------------


def test_equality_is_that_of_the_factor():
    metrics = [make(3) for make in FACTORS.values()]
    for i, metric in enumerate(metrics):
        assert [metric == other for other in metrics] == [i == j for j in range(len(metrics))]
        assert clone(metric) == metric
    assert Mahalanobis([1.0, 2.0]) == Mahalanobis(np.array([1.0, 2.0]))
    assert Mahalanobis() != "identity"


def test_kind_and_size():
    described = {name: (make(4).kind, make(4).n_features) for name, make in FACTORS.items()}
    assert described == {
        "identity": ("identity", None),
        "diagonal": ("diagonal", 4),
        "full": ("full", 4),
        "low_rank": ("full", 4),
    }


def test_a_list_is_a_factor():
    assert Mahalanobis([1.0, 2.0]).n_features == 2
    assert_allclose(Mahalanobis([[1.0], [2.0]]).distance([[0.0, 0.0]], [[1.0, 1.0]]), [[3.0]])
    assert_allclose(np.trace(Mahalanobis([1.0, 2.0]).normalized().matrix()), 2.0)


# ---- errors ------------------------------------------------------------------------------------------------

BAD = {
    "negative_weight": (lambda: Mahalanobis.from_weights([1.0, -2.0]), r"weights=.*-2.*none negative"),
    "nan_weight": (lambda: Mahalanobis.from_weights([1.0, np.nan]), r"weights=.*nan.*finite"),
    "weights_shape": (lambda: Mahalanobis.from_weights([[1.0]]), r"weights=.*a vector"),
    "not_square": (lambda: Mahalanobis.from_matrix(np.ones((2, 3))), r"matrix=.*a square matrix"),
    "nan_matrix": (lambda: Mahalanobis.from_matrix([[np.nan]]), r"matrix=.*nan.*finite"),
    "negative_rank": (lambda: Mahalanobis.from_matrix(np.eye(3), rank=-1), r"rank=-1 .*at least"),
    "columns": (lambda: METRICS["full"](3).distance(np.ones((2, 4))), r"X has 4 columns.* 3"),
    "columns_differ": (lambda: Mahalanobis().distance(np.ones((2, 4)), np.ones((2, 3))), r"4.*3"),
    "identity_matrix": (lambda: Mahalanobis().matrix(), r"n_features=None .*number of inputs"),
    "identity_importances": (lambda: Mahalanobis().importances(), r"n_features=None .*number of inputs"),
    "names": (lambda: METRICS["diagonal"](3).summary(["a", "b"]), r"feature_names=\['a', 'b'\] .*3 names"),
    "metric": (lambda: check_metric("full", "metric_"), r"metric_='full' .*None, a Mahalanobis"),
    "three_axes": (lambda: check_metric(np.ones((2, 2, 2))), r"metric=.*\(d, d\) matrix"),
    "factor_axes": (lambda: Mahalanobis(np.ones((2, 2, 2))).distance(np.ones((2, 2))), r"factor=.*\(d, r\)"),
}


@pytest.mark.parametrize(("act", "message"), BAD.values(), ids=BAD.keys())
def test_errors_name_what_is_wrong_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        act()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_wide_column_does_not_hide_the_offset_of_one_that_counts(dtype):
    """Raw columns differ in scale by orders; the metric looks at one with a large offset and a small spread."""
    random = np.random.default_rng(0)
    offset, spread = (1e4, 0.1) if dtype == np.float32 else (1e6, 0.01)
    X = np.column_stack([1e6 * random.normal(size=40), offset + spread * random.normal(size=40)]).astype(dtype)
    metric = Mahalanobis.from_weights([0.0, 1.0])
    expected = Gaussian(spread).matrix(X[:, 1:].astype(float) - offset)
    assert_allclose(Gaussian(spread, metric=metric).matrix(X), expected, atol=2e-2 if dtype == np.float32 else 1e-6)


@pytest.mark.parametrize("matrix", [-np.eye(3), np.array([[0.0, 1.0], [0.0, 0.0]])], ids=["negative", "not symmetric"])
def test_matrices_that_are_no_metric_are_named(matrix):
    with pytest.raises(
        ValueError, match=r"(?s)matrix=.* is not allowed: matrix must be (symmetric|positive semi-definite)"
    ):
        Mahalanobis.from_matrix(matrix)


def test_the_metric_of_fewer_outer_products_than_columns_is_that_of_their_sum():
    G = numbers(6, 40, seed=5)
    G[3] = G[2]
    narrow = Mahalanobis.from_outer_products(torch.from_numpy(G))
    assert narrow.factor.shape == (40, 5)
    assert_allclose(narrow.matrix(), G.T @ G, atol=1e-12)
    columns = narrow.factor.T @ narrow.factor
    assert_allclose(columns, np.diag(np.diag(columns)), atol=1e-12)


def test_directions_of_a_wide_metric_need_no_square_matrix():
    rows, shares = Mahalanobis(numbers(50_000, 2, seed=6)).directions(10)  # M would take 20 GB
    assert rows.shape == (2, 50_000)
    assert_allclose(shares.sum(), 1.0)


@pytest.mark.parametrize("given", [None, np.ones((2, 3)), 0, 2.5, "3"])
def test_the_identity_is_told_a_number_of_inputs(given):
    for ask in (Mahalanobis().matrix, Mahalanobis().importances):
        with pytest.raises(ValueError, match="n_features="):
            ask(given)
