"""Sparse and low-rank self-expression against per-point solvers, optimality conditions, and data that break things."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, orthogonal_mp_gram

from mercer.clustering.expression import (
    ElasticNetExpression,
    LassoExpression,
    LowRankExpression,
    MatchingPursuitExpression,
    active_set,
)
from mercer.exceptions import ConvergenceWarning, InvalidParameterError, NumericalError
from mercer.kernels import Gaussian
from tests.examples_of import DATA, QUICK, numbers, tables

SPARSE = [ElasticNetExpression(), LassoExpression(), ElasticNetExpression(8.0, 0.3), MatchingPursuitExpression(4)]
LOW_RANK = [LowRankExpression(), LowRankExpression(0.1)]
by_sparse = pytest.mark.parametrize("expression", SPARSE, ids=repr)
by_expression = pytest.mark.parametrize("expression", SPARSE + LOW_RANK, ids=repr)
by_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def subspaces(n=60, d=12, dimension=3, noise=0.05, seed=0):
    """Points of three subspaces, with noise."""
    X = np.concatenate(
        [numbers(n // 3, dimension, seed=seed + i) @ numbers(dimension, d, seed=9 + i) for i in range(3)]
    )
    return X + noise * numbers(*X.shape, seed=seed + 5)


def copies(n=36):
    """Every point twice, in no more dimensions than the subspaces have."""
    return subspaces(n, noise=0.0)[np.arange(n) // 2 + n // 4]


def zero_rows(n=30):
    X = subspaces(n)
    X[[0, 7, 8]] = 0.0
    return X


def faces_alike(n=40):
    """Points that are nearly equal, up to their length: the systems are ill conditioned."""
    return np.linspace(0.1, 3.0, n)[:, None] * (1.0 + 0.01 * numbers(n, 8))


HARD = {
    "subspaces": subspaces,
    "copies": copies,
    "zero_rows": zero_rows,
    "alike": faces_alike,
    "in_the_plane": lambda: numbers(25, 2),
    "lengths": lambda: np.geomspace(1e-4, 1e4, 30)[:, None] * numbers(30, 5),
    "all_zero": lambda: np.zeros((5, 3)),
    **{name: DATA[name] for name in ("duplicates", "constant_column", "one_row", "one_column", "offset")},
}
by_data = pytest.mark.parametrize("data", HARD.values(), ids=HARD.keys())


def gram(X, dtype=torch.float64):
    x = torch.from_numpy(np.asarray(X))
    return (x @ x.T).to(dtype)


def within(expression, K):
    return expression.solver(K)(K, K.diagonal(), torch.arange(len(K)))


def penalties(k, own, strength, l1_ratio):
    """The l1 and l2 penalties of min_c 1/2 |x - Z c|^2 + l1 |c|_1 + l2/2 |c|^2, the objective divided by gamma."""
    largest = np.abs(k[np.arange(len(k)) != own]).max(initial=0.0)
    # 1 / gamma, for gamma is infinite for a target that is orthogonal to all.
    inverse = largest / (strength * l1_ratio)
    return l1_ratio * inverse, (1.0 - l1_ratio) * inverse


def objective(K, k, norm, c, l1, l2):
    return 0.5 * (norm - 2 * c @ k + c @ K @ c) + l1 * np.abs(c).sum() + 0.5 * l2 * c @ c


def naive_elastic_net(X, x, own, strength, l1_ratio):
    """One target by scikit-learn, its own point left out."""
    l1, l2 = penalties(X @ x, own, strength, l1_ratio)
    others, c = np.arange(len(X)) != own, np.zeros(len(X))
    model = ElasticNet((l1 + l2) / len(x), l1_ratio=l1 / (l1 + l2), fit_intercept=False, tol=1e-12, max_iter=200_000)
    c[others] = model.fit(X[others].T, x).coef_
    return c


def naive_pursuit(X, x, own, n_nonzero, tolerance):
    """One target by least squares after each atom."""
    lengths, taken, c = np.linalg.norm(X, axis=1), [], np.zeros(len(X))
    for _ in range(n_nonzero):
        residual = x - c @ X
        if residual @ residual <= tolerance * x @ x:
            break
        correlations = np.divide(np.abs(X @ residual), lengths, out=np.zeros(len(X)), where=lengths > 0)
        correlations[[own, *taken] if own >= 0 else taken] = 0.0
        taken.append(int(correlations.argmax()))
        c[taken] = np.linalg.lstsq(X[taken].T, x, rcond=None)[0]
    return c


def naive_low_rank(X, tau, steps=1500):
    """min |C|_* + tau/2 |X^T - X^T C|^2 by proximal gradient steps: singular values are shrunk after each."""
    K = X @ X.T
    step, C = 1.0 / (tau * np.linalg.eigvalsh(K)[-1]), np.zeros_like(K)
    for _ in range(steps):
        U, s, Vt = np.linalg.svd(C + step * tau * (K - K @ C))
        C = (U * np.maximum(s - step, 0.0)) @ Vt
    return C


def broken_optimality(K, k, own, C, strength, l1_ratio):
    """By how much, relative to its bound, the correlation of any atom breaks the optimality conditions of a target."""
    worst = []
    for j in range(k.shape[1]):
        l1, l2 = penalties(k[:, j], own[j], strength, l1_ratio)
        g, c = k[:, j] - K @ C[:, j] - l2 * C[:, j], C[:, j]
        broken = np.where(c != 0, np.abs(g - l1 * np.sign(c)), np.maximum(np.abs(g) - l1, 0.0))
        broken[own[j]] = 0.0 if own[j] >= 0 else broken[own[j]]
        worst.append(broken.max() / (l1 or 1.0))
    return np.array(worst)


# ---- elastic net and lasso ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l1_ratio", [1.0, 0.9, 0.2])
@pytest.mark.parametrize("strength", [1.5, 20.0, 500.0])
def test_elastic_net_equals_a_loop_over_scikit_learn(strength, l1_ratio):
    X = subspaces(30)
    K = gram(X)
    C = within(ElasticNetExpression(strength, l1_ratio), K).numpy()
    for j in range(len(X)):
        c, (l1, l2) = naive_elastic_net(X, X[j], j, strength, l1_ratio), penalties(K[j].numpy(), j, strength, l1_ratio)
        ours, theirs = (objective(K.numpy(), K[j].numpy(), K[j, j].item(), a, l1, l2) for a in (C[:, j], c))
        assert_allclose(ours, theirs, rtol=1e-9)
        assert_allclose(C[:, j], c, atol=1e-5)


def test_elastic_net_of_new_targets_and_of_some_that_are_points():
    X, Y = subspaces(30), subspaces(9, seed=40)
    Y[:2], own = X[[3, 12]], torch.tensor([3, 12, *[-1] * 7])
    k, norms = torch.from_numpy(X @ Y.T), torch.from_numpy((Y**2).sum(axis=1))
    solve = ElasticNetExpression(30.0, 0.8).solver(gram(X))
    C = solve(k, norms, own)
    for j, i in enumerate(own.tolist()):
        assert_allclose(C[:, j], naive_elastic_net(X, Y[j], i, 30.0, 0.8), atol=1e-6)
    assert torch.equal(solve(k[:, 2:], norms[2:], None), solve(k[:, 2:], norms[2:], own[2:]))


@by_dtype
@by_data
@pytest.mark.parametrize(("strength", "l1_ratio"), [(3.0, 0.5), (300.0, 1.0), (300.0, 0.8)])
def test_elastic_net_is_optimal_whatever_the_points(strength, l1_ratio, data, dtype):
    X = data()
    X = X / max(np.abs(X).max(), 1e-300) if dtype == torch.float32 else X
    K = gram(X, dtype)
    C = within(ElasticNetExpression(strength, l1_ratio), K)
    assert C.dtype == dtype
    assert (C.diagonal() == 0).all()
    broken = broken_optimality(
        *(a.double().numpy() for a in (K, K)), range(len(K)), C.double().numpy(), strength, l1_ratio
    )
    assert broken.max() < 1e-6 + 20 * strength * torch.finfo(dtype).eps


@QUICK
@given(tables(), st.sampled_from([1.1, 30.0, 1e4]), st.sampled_from([1.0, 0.7, 0.05]))
def test_elastic_net_is_optimal_for_any_table(X, strength, l1_ratio):
    K = gram(X)
    C = within(ElasticNetExpression(strength, l1_ratio), K)
    broken = broken_optimality(K.numpy(), K.numpy(), range(len(K)), C.numpy(), strength, l1_ratio)
    assert broken.max() < 1e-6 + 50 * strength * np.finfo(float).eps


@by_dtype
@pytest.mark.parametrize("strength", [1e4, 1e6])
def test_high_strengths_end_at_the_rounding_error_and_not_in_circles(strength, dtype):
    """Of the Gaussian kernel almost all points are in the support; warnings are errors here."""
    K = torch.from_numpy(Gaussian(3.0).matrix(subspaces(45))).to(dtype)
    C = within(LassoExpression(strength), K).double().numpy()
    K = K.double().numpy()
    left = np.diag(K - 2 * K @ C + C.T @ K @ C)
    assert_allclose(left, 1.0 / np.diag(np.linalg.inv(K)), atol=10 / strength)


@pytest.mark.parametrize(
    ("data", "dtype", "strength"), [(copies, torch.float64, 50.0), (subspaces, torch.float32, 1e5)]
)
def test_atoms_that_break_the_bound_by_rounding_alone_do_not_come_and_go_for_ever(data, dtype, strength):
    within(LassoExpression(strength, tolerance=1e-15 if dtype == torch.float64 else 1e-6), gram(data(), dtype))


def test_an_atom_that_has_nothing_to_gain_leaves():
    """Where its correlation is its bound, to the last digit."""
    one = torch.ones(1, dtype=torch.float64)
    problems = active_set._Problems(
        one[:, None], torch.tensor([[1.0, 0.0]]).double(), torch.tensor([1]), one, 0.0 * one
    )
    before = active_set._Supports(torch.tensor([[0]]), torch.zeros(1, 1).double(), one[:, None])
    after, _, value = active_set._step(problems, torch.tensor([0]), before, 1e-6)
    assert [values.tolist() for values in after] == [[[1]], [[0.0]], [[0.0]]]
    assert value == 0.0


def test_the_tolerance_bounds_the_duality_gap_and_what_breaks_optimality():
    K = gram(subspaces(60))
    exact = within(ElasticNetExpression(200.0, 0.9), K).numpy()
    for tolerance in (0.5, 0.05):
        C = within(ElasticNetExpression(200.0, 0.9, tolerance=tolerance), K).numpy()
        broken = broken_optimality(K.numpy(), K.numpy(), range(len(K)), C, 200.0, 0.9)
        assert tolerance / 5 < broken.max() <= tolerance
        for j in range(len(K)):
            l1, l2 = penalties(K[j].numpy(), j, 200.0, 0.9)
            ours, least = (objective(K.numpy(), K[j].numpy(), K[j, j].item(), a[:, j], l1, l2) for a in (C, exact))
            assert least * (1 - 1e-12) <= ours <= least * (1 + tolerance)


def test_the_first_coefficient_leaves_zero_at_a_strength_of_one():
    K = gram(subspaces(30))
    C = within(LassoExpression(1.0 + 1e-4), K)
    off_diagonal = K - torch.diag(K.diagonal())
    assert torch.equal(C.abs().argmax(dim=0), off_diagonal.abs().argmax(dim=0))
    assert (C.abs().amax(dim=0) > 0).all()
    assert C.abs().max() < 1e-3


def test_the_lasso_is_an_elastic_net_without_its_second_penalty():
    K = gram(subspaces(30))
    assert torch.equal(within(LassoExpression(20.0), K), within(ElasticNetExpression(20.0, 1.0), K))
    dense = within(ElasticNetExpression(20.0, 0.05), K)
    assert (dense != 0).sum() > 2 * (within(LassoExpression(20.0), K) != 0).sum()


def test_a_stop_before_the_end_warns_and_gives_what_there_is():
    K = gram(subspaces(30))
    with pytest.warns(ConvergenceWarning, match=r"(\d+) of 30 targets .* max_iter=2 steps.* smaller strength than 50"):
        C = within(LassoExpression(max_iter=2), K)
    assert torch.isfinite(C).all()
    l1 = np.array([penalties(K[j].numpy(), j, 50.0, 1.0)[0] for j in range(30)])
    gain = 0.5 * np.diag(C.T @ K @ C) - np.diag(C.T @ K) + l1 * np.abs(C.numpy()).sum(axis=0)
    assert (gain <= 0).all()
    assert (gain < 0).sum() > 15
    with pytest.warns(ConvergenceWarning):
        within(ElasticNetExpression(max_iter=2), K)


def test_the_steps_that_suffice_do_not_warn():
    K = gram(np.eye(4)[[0, 0, 1, 1, 2, 2]])
    C = within(LassoExpression(10.0, max_iter=1), K)  # one atom a target: one step
    assert_allclose(C, 0.9 * gram(np.eye(3)[[0, 0, 1, 1, 2, 2]]).fill_diagonal_(0.0))


@pytest.mark.parametrize(("name", "value"), [("SOLVE_MEMORY", 1e-4), ("ENTERING", 1), ("ENTERING_SHARE", 3.0)])
def test_how_the_work_is_cut_changes_nothing(monkeypatch, name, value):
    K = gram(subspaces(24))
    usual = within(LassoExpression(100.0), K)
    monkeypatch.setattr(active_set, name, value)
    assert_allclose(within(LassoExpression(100.0), K), usual, atol=1e-10)


@pytest.mark.parametrize("shortfall", [1e-12, 1e-8, 1e-5])
def test_a_matrix_that_is_semi_definite_but_for_rounding_is_taken(shortfall):
    K = torch.tensor([[1.0, 1.0 + shortfall], [1.0 + shortfall, 1.0]], dtype=torch.float64)
    C = LassoExpression(10.0).solver(K)(torch.tensor([[0.5], [0.5]]).double(), torch.ones(1).double(), None)
    assert_allclose(C.sum(), 0.45, rtol=1e-3)


def test_an_indefinite_matrix_is_refused():
    K = torch.ones(3, 3, dtype=torch.float64)
    K[0, 1] = K[1, 0] = 2.0
    with pytest.raises(NumericalError, match="atoms of the Gram matrix is not positive semi-definite"):
        LassoExpression(1e3).solver(K)(torch.tensor([[1.0], [0.9], [0.8]]).double(), torch.ones(1).double(), None)


# ---- matching pursuit -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 0.05])
@pytest.mark.parametrize("n_nonzero", [1, 3, 8])
@pytest.mark.parametrize("data", ["subspaces", "zero_rows", "lengths"])
def test_pursuit_equals_least_squares_atom_by_atom(data, n_nonzero, tolerance):
    X = HARD[data]()
    n_nonzero = min(n_nonzero, X.shape[1])
    C = within(MatchingPursuitExpression(n_nonzero, tolerance), gram(X)).numpy()
    for j in range(len(X)):
        assert_allclose(C[:, j], naive_pursuit(X, X[j], j, n_nonzero, tolerance), rtol=1e-6, atol=1e-9)


def test_pursuit_equals_scikit_learn():
    X = subspaces(45)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    C = within(MatchingPursuitExpression(5, 0.0), gram(X)).numpy()
    for j in range(len(X)):
        others = np.arange(len(X)) != j
        c = orthogonal_mp_gram((X @ X.T)[np.ix_(others, others)], X[others] @ X[j], n_nonzero_coefs=5)
        assert_allclose(C[others, j], c, atol=1e-10)


def test_pursuit_of_new_targets_and_of_some_that_are_points():
    X, Y = subspaces(30), subspaces(9, seed=40)
    Y[:2], own = X[[3, 12]], torch.tensor([3, 12, *[-1] * 7])
    k, norms = torch.from_numpy(X @ Y.T), torch.from_numpy((Y**2).sum(axis=1))
    solve = MatchingPursuitExpression(4).solver(gram(X))
    C = solve(k, norms, own)
    for j, i in enumerate(own.tolist()):
        assert_allclose(C[:, j], naive_pursuit(X, Y[j], i, 4, 1e-6), atol=1e-9)
    points = solve(k, norms, None)
    assert_allclose(points[[3, 12], [0, 1]], [1.0, 1.0])  # without `own`, a point is its own best atom
    assert ((points[:, :2] != 0).sum(dim=0) == 1).all()


@by_dtype
@by_data
@pytest.mark.parametrize("n_nonzero", [2, 100])
def test_pursuit_leaves_what_no_atom_explains(n_nonzero, data, dtype):
    """What is left is orthogonal to the atoms taken, and with enough of them to all that can be taken."""
    X = data()
    X = X / max(np.abs(X).max(), 1e-300)
    C = within(MatchingPursuitExpression(n_nonzero, 0.0), gram(X, dtype))
    assert torch.isfinite(C).all()
    assert (C.diagonal() == 0).all()
    assert (C != 0).sum(dim=0).max() <= min(n_nonzero, len(X) - 1)
    lengths = np.linalg.norm(X, axis=1)
    assert (C[lengths == 0] == 0).all()
    left = X - C.double().numpy().T @ X
    scale = np.outer(lengths, np.maximum(lengths, 1e-300))
    noise = 2e-3 if dtype == torch.float32 else 1e-6
    for j in range(len(X)):
        at = (C[:, j] != 0).numpy() if n_nonzero == 2 else np.arange(len(X)) != j
        assert (np.abs(X @ left[j])[at] <= noise * scale[at, j]).all()


def test_pursuit_takes_no_atom_for_rounding():
    """Points of one line beside an orthogonal one: one atom says all, and one is alone."""
    X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [-3.0, -3.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.3]]) / 3.0
    C = within(MatchingPursuitExpression(4, 0.0), gram(X))
    assert (C != 0).sum(dim=0).tolist() == [1, 1, 1, 2, 2]
    C = within(MatchingPursuitExpression(4, 0.0), gram(X[:4]))
    assert (C != 0).sum(dim=0).tolist() == [1, 1, 1, 0]


def test_pursuit_stops_at_atoms_that_differ_by_rounding():
    """1e-8 apart, so that their squared difference has no digits: a second one would get a coefficient of 1e8."""
    X = np.concatenate([np.ones((6, 1)), 1e-8 * numbers(6, 3)], axis=1)
    y = np.array([1.0, 1.0, -1.0, 2.0])
    C = MatchingPursuitExpression(4, 0.0).solver(gram(X))(torch.from_numpy(X @ y)[:, None], torch.tensor([7.0]), None)
    assert_allclose(C.abs().sum(), 1.0, atol=1e-6)


# ---- low rank -------------------------------------------------------------------------------------------------------


def test_clean_low_rank_expression_is_the_shape_interaction_matrix():
    X = subspaces(45, noise=0.0)
    C = within(LowRankExpression(), gram(X)).numpy()
    V = np.linalg.svd(X.T, full_matrices=False)[2][:9].T
    assert_allclose(C, V @ V.T, atol=1e-9)
    assert_allclose(C.T @ X, X, atol=1e-9)
    # Independent subspaces: no point is expressed by one of another.
    assert_allclose(C[:15, 15:], 0.0, atol=1e-9)
    assert (C.diagonal() > 0).all()


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.8])
def test_noisy_low_rank_expression_minimizes_its_objective(noise):
    X = subspaces(18, d=6)
    X /= np.linalg.norm(X, 2)
    tau = 1.0 / noise**2
    C = within(LowRankExpression(noise), gram(X)).numpy()
    assert_allclose(C, naive_low_rank(X, tau), atol=1e-5)
    assert np.linalg.matrix_rank(C, tol=1e-9) == (np.linalg.svd(X)[1] > noise).sum()


def test_low_rank_expression_of_new_targets_is_linear_and_that_of_points_their_own():
    X, y = subspaces(30), numbers(12, 3)
    k, norms = torch.from_numpy(X @ y), torch.from_numpy((y**2).sum(axis=0))
    for expression in LOW_RANK:
        K = gram(X)
        solve, C = expression.solver(K), within(expression, K)
        in_points = torch.from_numpy(np.linalg.pinv(X).T @ y)  # y = X^T in_points, for X spans the space
        assert_allclose(solve(k, norms, None), C @ in_points, atol=1e-9)
        assert torch.equal(solve(K, K.diagonal(), None), C)
        assert torch.equal(solve(k, norms, torch.tensor([0, 1, -1])), solve(k, norms, None))


# ---- laws of all ----------------------------------------------------------------------------------------------------


@by_expression
def test_a_kernel_is_as_good_as_its_features(expression):
    K = torch.from_numpy(Gaussian(2.0).matrix(subspaces(30)))
    values, vectors = np.linalg.eigh(K.numpy())
    features = vectors * np.sqrt(values)
    assert_allclose(within(expression, K), within(expression, gram(features)), atol=1e-6)
    if isinstance(expression, ElasticNetExpression):
        c = naive_elastic_net(features, features[4], 4, expression.strength, expression.l1_ratio)
        assert_allclose(within(expression, K)[:, 4], c, atol=1e-6)


@by_expression
@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_the_scale_of_the_data_does_not_matter(expression, scale):
    X = subspaces(30)
    assert_allclose(within(expression, gram(scale * X)), within(expression, gram(X)), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("expression", [LassoExpression(), MatchingPursuitExpression(4), *LOW_RANK], ids=repr)
def test_coefficients_follow_the_scale_of_the_target(expression):
    X, y = subspaces(30), numbers(12, 2)
    k, norms = torch.from_numpy(X @ y), torch.from_numpy((y**2).sum(axis=0))
    solve = expression.solver(gram(X))
    assert_allclose(solve(-1e3 * k, 1e6 * norms, None), -1e3 * solve(k, norms, None), rtol=1e-6, atol=1e-7)


@by_expression
@pytest.mark.parametrize("data", ["subspaces", "copies", "alike"])
def test_targets_do_not_feel_each_other(expression, data):
    K = gram(HARD[data]())
    solve, whole = expression.solver(K), within(expression, K)
    for j in (0, 5, 17):
        one = solve(K[:, [j]], K.diagonal()[[j]], torch.tensor([j]))
        assert one.shape == (len(K), 1)
        assert_allclose(K @ one[:, 0], K @ whole[:, j], atol=1e-9)
        if data != "copies":  # of which the lasso may take either
            assert_allclose(one[:, 0], whole[:, j], atol=1e-9)


@pytest.mark.parametrize("expression", SPARSE[2:] + LOW_RANK, ids=repr)
@by_dtype
@by_data
def test_nothing_is_ever_nan_and_nothing_is_written_into(data, dtype, expression):
    X = data()
    X = X / max(np.abs(X).max(), 1e-300)
    K = gram(X, dtype)
    k, norms, own = K.clone(), K.diagonal().clone(), torch.arange(len(K))
    before = [a.clone() for a in (K, k, norms, own)]
    C = expression.solver(K)(k, norms, own)
    assert torch.isfinite(C).all()
    assert (C.dtype, C.shape) == (dtype, K.shape)
    for a, b in zip((K, k, norms, own), before, strict=True):
        assert torch.equal(a, b)
    zero = norms == 0
    assert (C[:, zero] == 0).all()
    assert (C[zero] == 0).all()


@by_expression
def test_a_zero_target_that_is_no_point(expression):
    C = expression.solver(gram(subspaces(30)))(torch.zeros(30, 2).double(), torch.zeros(2).double(), None)
    assert torch.equal(C, torch.zeros(30, 2).double())


@by_sparse
def test_single_precision_is_near_double(expression):
    X = subspaces(60)
    single, double = (within(expression, gram(X, dtype)) for dtype in (torch.float32, torch.float64))
    assert_allclose(single, double, atol=2e-4)


@by_sparse
def test_points_of_clean_subspaces_are_expressed_by_their_own(expression):
    """Orthogonal subspaces: exactly so."""
    X = np.kron(np.eye(3), numbers(15, 3))
    C = within(expression, gram(X)).reshape(3, 15, 3, 15)
    for i in range(3):
        assert (C[i, :, [j for j in range(3) if j != i]] == 0).all()
        assert (C[i, :, i] != 0).any(dim=0).all()


@by_sparse
def test_a_dictionary_that_is_not_contiguous(expression):
    K = gram(subspaces(30))
    spread = torch.zeros(60, 60).double()
    spread[::2, ::2] = K
    view = spread[::2, ::2]
    own = torch.arange(30)
    assert torch.equal(expression.solver(view)(view, view.diagonal(), own), within(expression, K))


@by_expression
def test_it_is_a_value(expression):
    assert clone(expression).get_params() == expression.get_params()
    assert expression.is_sparse == (expression in SPARSE)
    changed = expression.with_params(**dict.fromkeys(expression.get_params(), 0.5))
    assert set(changed.get_params().values()) == {0.5}


WRONG = [
    (ElasticNetExpression(strength=1.0), "strength=1.0 .* above 1"),
    (LassoExpression(strength=float("inf")), "strength=inf .* above 1"),
    (ElasticNetExpression(l1_ratio=0.0), "l1_ratio=0.0 .* above 0 and at most 1"),
    (ElasticNetExpression(l1_ratio=1.1), "l1_ratio=1.1 .* above 0 and at most 1"),
    (ElasticNetExpression(tolerance=0.0), "tolerance=0.0 .* above 0"),
    (LassoExpression(tolerance=-1.0), "tolerance=-1.0 .* above 0"),
    (ElasticNetExpression(max_iter=0), "max_iter=0 .* at least 1"),
    (LassoExpression(max_iter=2.5), "max_iter=2.5 .* whole number"),
    (MatchingPursuitExpression(n_nonzero=0), "n_nonzero=0 .* at least 1"),
    (MatchingPursuitExpression(tolerance=-1e-9), "tolerance=-1e-09 .* at least 0"),
    (LowRankExpression(noise=0.0), "noise=0.0 .* above 0"),
    (LowRankExpression(noise=1.0), "noise=1.0 .* above 0 and below 1, or None"),
]


@pytest.mark.parametrize(("expression", "message"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_parameters_are_named(expression, message):
    with pytest.raises(InvalidParameterError, match=message):
        expression.solver(gram(subspaces(6)))
