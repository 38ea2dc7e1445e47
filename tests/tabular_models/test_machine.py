"""A fitted machine against the Gaussian process it stands for, in one piece, leaf by leaf and on landmarks."""

import copy
import pickle

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from mercer import ColumnWarp, Mahalanobis
from mercer.kernels import Custom, Gaussian, Laplace, ProductMatern32
from mercer.linalg.threads import FEW_ROWS
from mercer.tabular_models.machine import Machine, packed_triangle, unpacked_triangle
from mercer.tabular_models.partition import Partition
from tests import naive
from tests.examples_of import numbers

KERNELS = {
    "gaussian": Gaussian(1.3),
    "full": Laplace(1.1, metric=Mahalanobis(numbers(2, 2, seed=1))),
    "product": ProductMatern32(1.4),
}
RIDGE = 0.5
AT = np.exp(numbers(5, 2, seed=5))

kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
pieces = pytest.mark.parametrize("cut", [False, True], ids=["one piece", "leaves"])


def three_leaves(columns):
    """Two cuts of two columns: the first cut's left side is cut again."""
    directions, thresholds = np.array([[1.0, 0.4], [0.3, -1.0]]), np.array([0.2, 0.1])
    return Partition(columns, directions, thresholds, np.array([[1, -1], [-2, -3]]))


def naive_leaves(columns, X):
    """The leaf of each row, by asking the two cuts of `three_leaves` in turn."""
    leaves = []
    for a, b in columns.transform(X):
        if a + 0.4 * b > 0.2:
            leaves.append(0)
        else:
            leaves.append(1 if 0.3 * a - b <= 0.1 else 2)
    return np.array(leaves)


def machine(kernel, warp="none", cut=False, weighted=True, n=18, dtype=np.float64):
    """A machine of two outputs that was solved by hand, and the targets it was solved for."""
    X, y = np.exp(numbers(n, 2)).astype(dtype), numbers(n, 2, seed=2)
    columns = ColumnWarp(warp).fit(X)
    Z, weights = columns.transform(X.astype(np.float64)), np.linspace(0.5, 3.0, n) if weighted else None
    noise = RIDGE / (np.ones(n) if weights is None else weights)
    leaves = naive_leaves(columns, X.astype(np.float64)) if cut else np.zeros(n, dtype=int)
    alpha = np.zeros_like(y)
    for leaf in np.unique(leaves):
        own = leaves == leaf
        alpha[own] = np.linalg.solve(kernel.matrix(Z[own]) + np.diag(noise[own]), y[own])
    partition = three_leaves(columns) if cut else None
    given = leaves if cut else None
    return Machine(kernel, columns, X, alpha, RIDGE, 1.0, np.ones(2), weights, partition, given), y


def naive_process(fitted, y, at):
    """Mean and covariance at `at`: a process with noise ridge / w in each leaf, and nothing between leaves."""
    noise = RIDGE / (np.ones(len(y)) if fitted.weights is None else fitted.weights)
    own, asked = np.zeros(len(y), dtype=int), np.zeros(len(at), dtype=int)
    if fitted.partition is not None:
        own, asked = (naive_leaves(fitted.columns, X) for X in (fitted.rows, at))
    Z, x = fitted.columns.transform(fitted.rows), fitted.columns.transform(at)
    mean, covariance = np.zeros((len(at), y.shape[1])), np.zeros((len(at), len(at)))
    for leaf in np.unique(asked):
        i, j = np.flatnonzero(asked == leaf), np.flatnonzero(own == leaf)
        K = naive.kernel_matrix(fitted.kernel, x[i], Z[j])
        A = naive.kernel_matrix(fitted.kernel, Z[j], Z[j]) + np.diag(noise[j])
        mean[i] = K @ np.linalg.solve(A, y[j])
        prior = naive.kernel_matrix(fitted.kernel, x[i], x[i])
        covariance[np.ix_(i, i)] = prior - K @ np.linalg.solve(A, K.T)
    return mean, covariance


@pieces
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("warp", ["none", "log"])
@kernels
def test_mean_variance_and_covariance_are_those_of_the_process(kernel, warp, weighted, cut):
    fitted, y = machine(kernel, warp, cut, weighted)
    at = np.concatenate([AT, fitted.rows[[4, 4, 1]]])
    if cut:
        assert len(np.unique(naive_leaves(fitted.columns, at))) == 3
    mean, covariance = naive_process(fitted, y, at)
    for working_memory in (64.0, 1e-4):
        assert_allclose(fitted.mean(at, working_memory), mean, atol=1e-10)
        assert_allclose(fitted.unit_variance(at, working_memory), covariance.diagonal(), atol=1e-10)
    assert_allclose(fitted.unit_covariance(at), covariance, atol=1e-10)


@pieces
@kernels
def test_blocks_of_any_size_give_the_same_gradients(kernel, cut):
    fitted, _ = machine(kernel, "log", cut)
    assert_allclose(fitted.gradients(AT, 1e-4), fitted.gradients(AT), rtol=1e-12, atol=1e-14)


@pieces
@pytest.mark.parametrize("warp", ["none", "log", "rank"])
@kernels
def test_gradients_are_in_the_units_of_the_columns(kernel, warp, cut):
    fitted, _ = machine(kernel, warp, cut)
    sorted_rows = np.sort(fitted.rows, axis=0)
    at = sorted_rows[5:11] * 0.43 + sorted_rows[6:12] * 0.57
    for x, got in zip(at, fitted.gradients(at), strict=True):
        for c in range(2):
            expected = approx_fprime(x, lambda v, c=c: fitted.mean(v[None])[0, c], 1e-7)
            assert_allclose(got[c], expected, rtol=1e-4, atol=1e-5 * np.abs(fitted.alpha).max())


@pieces
@kernels
def test_contributions_add_up_and_are_zero_for_rows_of_other_leaves(kernel, cut):
    fitted, _ = machine(kernel, cut=cut)
    parts = fitted.contributions(AT)
    assert parts.shape == (5, 18, 2)
    assert_allclose(parts.sum(axis=1), fitted.mean(AT), atol=1e-10)
    K = naive.kernel_matrix(kernel, *(fitted.columns.transform(X) for X in (AT, fitted.rows)))
    if cut:
        K *= naive_leaves(fitted.columns, AT)[:, None] == naive_leaves(fitted.columns, fitted.rows)
    assert_allclose(parts, K[:, :, None] * fitted.alpha, atol=1e-10)


def test_the_posterior_root_of_landmarks_adds_what_the_rows_say():
    kernel, X, landmarks = Gaussian(1.3), numbers(20, 2), numbers(5, 2, seed=1)
    w = np.linspace(0.5, 3.0, 20)
    K_mm, K_nm = kernel.matrix(landmarks), kernel.matrix(X, landmarks)
    B = K_mm + K_nm.T @ (w[:, None] * K_nm) / RIDGE
    half = np.linalg.solve(np.linalg.cholesky(K_mm), K_nm.T)
    root = np.linalg.inv(np.linalg.cholesky(np.eye(5) + half @ (w[:, None] * half.T) / RIDGE))
    columns = ColumnWarp(standardize=False).fit(X)
    fitted = Machine(
        kernel, columns, landmarks, np.ones((5, 1)), RIDGE, 1.0, np.ones(1), posterior_root=packed_triangle(root)
    )
    at = numbers(4, 2, seed=3)
    k = kernel.matrix(at, landmarks)
    expected = kernel.matrix(at) - k @ np.linalg.solve(K_mm, k.T) + k @ np.linalg.solve(B, k.T)
    assert_allclose(fitted.unit_covariance(at), expected, atol=1e-8)
    for working_memory in (64.0, 1e-4):
        assert_allclose(fitted.unit_variance(at, working_memory), expected.diagonal(), atol=1e-8)


def test_triangles_are_packed_row_by_row():
    lower = np.tril(numbers(4, 4)).astype(np.float32)
    packed = packed_triangle(lower)
    assert_array_equal(packed, np.concatenate([lower[i, : i + 1] for i in range(4)]))
    assert_array_equal(unpacked_triangle(packed, 4), lower)
    assert packed.dtype == unpacked_triangle(packed, 4).dtype == np.float32


def test_rounding_does_not_make_a_variance_negative():
    """Nothing is left to be unsure of at the rows themselves where there is hardly any noise."""
    fitted, _ = machine(Gaussian(1.3), weighted=False)
    certain = fitted.changed(kernel=1e6 * Gaussian(3.0), ridge=1e-12)
    assert (certain.unit_variance(fitted.rows) >= 0).all()
    assert (certain.unit_variance(fitted.rows) < 1e-8).all()
    # Without the bound, rounding would show.
    assert certain.unit_covariance(fitted.rows).diagonal().min() < 1e-9


@pieces
def test_what_is_worked_out_on_demand_stays_behind_in_copies(cut):
    fitted, _ = machine(Laplace(1.1), cut=cut)
    small = len(pickle.dumps(fitted))
    questions = [fitted.mean(AT), fitted.unit_variance(AT), fitted.unit_covariance(AT)]
    assert len(pickle.dumps(fitted)) == small
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), fitted.changed(share=0.5)):
        # Only the fields themselves have come along.
        assert set(vars(other)) == set(Machine.__dataclass_fields__)
        for asked, expected in zip((other.mean, other.unit_variance, other.unit_covariance), questions, strict=True):
            assert_array_equal(asked(AT), expected)


@pieces
def test_a_changed_machine_has_factors_of_its_own(cut):
    fitted, _ = machine(Laplace(1.1), cut=cut)
    fitted.unit_variance(AT)
    changed = fitted.changed(ridge=3.0, weights=None)
    fresh, _ = machine(Laplace(1.1), cut=cut)
    assert_array_equal(changed.unit_variance(AT), fresh.changed(ridge=3.0, weights=None).unit_variance(AT))
    assert np.abs(changed.unit_variance(AT) - fitted.unit_variance(AT)).min() > 1e-3
    assert fitted.ridge == RIDGE


def test_rows_of_single_precision_are_taken_and_answers_are_double():
    fitted, _ = machine(Gaussian(1.3), "log", dtype=np.float32)
    at = AT.astype(np.float32)
    for ask in (fitted.mean, fitted.unit_variance, fitted.unit_covariance, fitted.contributions):
        assert ask(at).dtype == np.float64
        assert_allclose(ask(at), ask(at.astype(np.float64)), rtol=1e-12, atol=1e-14)
    assert_allclose(fitted.gradients(at), fitted.gradients(at.astype(np.float64)), rtol=1e-5)


def test_no_question_changes_the_rows_or_what_is_asked():
    fitted, _ = machine(ProductMatern32(1.4), cut=True)
    rows, at = fitted.rows.copy(), AT.copy()
    for ask in (fitted.mean, fitted.unit_variance, fitted.unit_covariance, fitted.gradients, fitted.contributions):
        before = ask(AT)
        assert_array_equal(ask(AT), before)
    assert_array_equal(fitted.rows, rows)
    assert_array_equal(at, AT)


@pytest.mark.parametrize(("n", "m", "threads"), [(5, 40, 1), (1000, 1000, 1), (FEW_ROWS, FEW_ROWS, 2), (30_000, 50, 2)])
def test_few_rows_are_predicted_with_one_thread(n, m, threads):
    seen, before = [], torch.get_num_threads()

    def counted(X, Z):
        seen.append(torch.get_num_threads())
        return X[:, :1] @ Z[:, :1].T

    rows = numbers(m, 1)
    columns = ColumnWarp(standardize=False).fit(rows)
    machine = Machine(Custom(counted), columns, rows, np.ones((m, 1)), 0.1, 1.0, np.ones(1))
    torch.set_num_threads(2)
    try:
        machine.mean(numbers(n, 1))
        assert set(seen) == {threads}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
