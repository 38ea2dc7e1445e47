"""Factorizations, solvers, leave-one-out, distances and eigenproblems against their plain twins."""

from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.testing import assert_allclose

from mercer.exceptions import ConvergenceWarning, NumericalError, NumericalWarning
from mercer.linalg import (
    block_krylov_eigenpairs,
    cholesky,
    conjugate_gradients,
    generalized_eigenpairs,
    inverse_root,
    inverted,
    ridge_leave_one_out,
    ridge_path,
    solve_refined,
    squared_distances,
    squared_norms,
    threads_for,
    top_eigenpairs,
)
from tests import naive
from tests.examples_of import DATA, QUICK, numbers, tables

# By name, for the module `cholesky` is hidden behind its function.
CHOLESKY, EIGEN, LEAVE_ONE_OUT, DISTANCES = (
    import_module(f"mercer.linalg.{name}") for name in ("cholesky", "eigen", "leave_one_out", "distances")
)


def tensor(*shape, seed=0):
    return torch.from_numpy(numbers(*shape, seed=seed))


def symmetric(eigenvalues, seed=0):
    """A symmetric matrix with these eigenvalues."""
    Q = torch.linalg.qr(tensor(len(eigenvalues), len(eigenvalues), seed=seed))[0]
    A = (Q * torch.as_tensor(eigenvalues, dtype=torch.float64)) @ Q.T
    return (A + A.T) / 2


def conditioned(n, condition):
    return symmetric(torch.logspace(0, -np.log10(condition), n, dtype=torch.float64))


# ---- Cholesky ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 3)])
def test_cholesky_of_a_definite_matrix_adds_nothing(dtype, shape):
    A, B = conditioned(6, 10).to(dtype), tensor(*shape, seed=1).to(dtype)
    before = A.clone()
    factor = cholesky(A)
    close = {"rtol": 200 * torch.finfo(dtype).eps, "atol": 200 * torch.finfo(dtype).eps}
    assert factor.jitter == 0.0
    assert_allclose(factor.lower @ factor.lower.T, A, **close)
    assert_allclose(factor.solve(B), np.linalg.solve(A, B), **close)
    assert_allclose(factor.inverse(), np.linalg.inv(A), **close)
    assert_allclose(factor.log_determinant(), np.linalg.slogdet(A)[1], **close)
    assert factor.solve(B).dtype == dtype
    assert torch.equal(A, before)


# Powers of 4 have exact roots, so that the second pivot is zero whatever the processor.
@pytest.mark.parametrize("size", [4.0**-13, 1.0, 4.0**13])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_singular_matrix_gets_a_little_jitter_and_a_warning_says_how_much(dtype, size):
    A = size * torch.ones(5, 5, dtype=dtype)
    with pytest.warns(NumericalWarning, match=r"size 5 .* added [\d.]+e.\d\d to its diagonal") as caught:
        factor = cholesky(A)
    assert f"{factor.jitter:.1e}" in str(caught[0].message)
    assert 0 < factor.jitter <= 1e3 * torch.finfo(dtype).eps * size
    assert_allclose(factor.lower @ factor.lower.T, A + factor.jitter * torch.eye(5), rtol=1e-6)
    assert cholesky(A, warn=False).jitter == factor.jitter  # in silence: warnings are errors in these tests


@pytest.mark.parametrize("shortfall", [1e-12, 1e-9, 1e-6])
def test_the_jitter_is_within_tenfold_of_what_is_needed(shortfall):
    assert shortfall / 2 < cholesky(symmetric([2.0, 1.0, -shortfall]), warn=False).jitter < 11 * shortfall


def test_zero_and_indefinite_and_broken_matrices():
    assert cholesky(torch.zeros(3, 3), warn=False).jitter > 0
    with pytest.raises(NumericalError, match=r"size 3 is not positive semi-definite: .* larger ridge"):
        cholesky(symmetric([1.0, 0.5, -0.1]))
    for bad in (float("nan"), float("inf")):
        for i, j in ((0, 0), (1, 1), (1, 0)):
            A = torch.eye(3)
            A[i, j] = A[j, i] = bad
            with pytest.raises(NumericalError, match="NaN or an infinity"):
                cholesky(A)


# ---- solve_refined -----------------------------------------------------------------------------------------


@pytest.fixture
def fallbacks(monkeypatch):
    """The calls that solve_refined makes for a factor in float64."""
    calls = []

    def spy(A, **options):
        calls.append(A.dtype)
        return cholesky(A, **options)

    monkeypatch.setattr(CHOLESKY, "cholesky", spy)
    return calls


@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 4)])
@pytest.mark.parametrize(("condition", "falls_back"), [(1e2, 0), (1e4, 0), (1e6, 0), (1e12, 1)])
def test_solve_refined_is_as_good_as_double_precision(fallbacks, condition, falls_back, shape):
    A, B = conditioned(60, condition), tensor(*shape, seed=2)
    X, direct = solve_refined(A, B), torch.from_numpy(np.linalg.solve(A.numpy(), B.numpy()))
    assert X.dtype == torch.float64
    assert fallbacks == [torch.float64] * falls_back
    assert_allclose(X, direct, rtol=0, atol=1e-15 * condition * direct.abs().max())
    missed, missed_directly = ((A @ solution - B).abs().max() for solution in (X, direct))
    assert missed <= 4 * missed_directly + 1e-12


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-200, 1e-100, 1e-30, 1e30, 1e100, 1e200, 1e300])
def test_solve_refined_for_right_sides_of_any_size(fallbacks, size):
    A = conditioned(20, 1e3)
    B = tensor(20, 2, seed=2)
    B[:, 1] *= size  # one column of its own size beside an ordinary one
    expected = np.linalg.solve(A, B)
    for X, right in ((solve_refined(A, B), expected), (solve_refined(A, B[:, 1])[:, None], expected[:, 1:])):
        assert_allclose(X, right, rtol=1e-8, atol=0)
    assert not fallbacks or size in (1e-300, 1e-200, 1e200, 1e300)


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_solve_refined_for_matrices_that_single_precision_does_not_hold(size):
    A, B = conditioned(20, 1e3), tensor(20, seed=2)
    assert_allclose(solve_refined(size * A, B) * size, np.linalg.solve(A, B), rtol=1e-9)


# ---- conjugate gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30,), (30, 1), (30, 4)])
def test_conjugate_gradients_equal_the_direct_solution(shape):
    A, B = conditioned(30, 1e3), tensor(*shape, seed=3)
    before = B.clone()
    solution = conjugate_gradients(lambda V: A @ V, B, tolerance=1e-11, max_steps=200)
    assert solution.converged
    assert solution.relative_residual <= 1e-11
    assert_allclose(solution.x, np.linalg.solve(A, B), rtol=1e-7, atol=1e-8)
    assert torch.equal(B, before)


def test_each_column_has_its_own_steps():
    A, B = conditioned(30, 1e2), tensor(30, 3, seed=3)
    B[:, 0] = 0.0
    B[:, 1] *= 1e-9
    X = conjugate_gradients(lambda V: A @ V, B, tolerance=1e-10).x
    assert (X[:, 0] == 0).all()
    assert_allclose(X[:, 1:], np.linalg.solve(A, B[:, 1:]), rtol=1e-6, atol=1e-17)
    assert conjugate_gradients(lambda V: A @ V, torch.zeros(30, 2)).steps == 0


@pytest.mark.parametrize("broken", [-torch.eye(30, dtype=torch.float64), torch.full((30, 30), torch.nan)])
def test_conjugate_gradients_end_where_no_step_can_help(broken):
    broken, products = broken.to(torch.float64), []

    def multiply(V):
        products.append(1)
        return broken @ V

    with pytest.warns(ConvergenceWarning, match="not positive definite, or its products are not finite"):
        solution = conjugate_gradients(multiply, tensor(30, 2, seed=3))
    assert len(products) == 1
    assert not solution.converged
    assert torch.isfinite(solution.x).all()


def test_a_preconditioner_lowers_the_steps():
    A, B = conditioned(50, 1e2) + torch.diag(torch.logspace(0, 4, 50)), tensor(50, seed=3)
    plain = conjugate_gradients(lambda V: A @ V, B, max_steps=500)
    better = conjugate_gradients(lambda V: A @ V, B, precondition=lambda R: R / A.diagonal()[:, None])
    assert plain.converged
    assert better.converged
    assert better.steps < plain.steps / 2
    exact = conjugate_gradients(lambda V: A @ V, B, precondition=lambda R: torch.linalg.solve(A, R))
    assert exact.steps == 1


def test_a_stop_before_the_tolerance_warns_with_what_to_try():
    A, B = conditioned(30, 1e6), tensor(30, seed=3)
    with pytest.warns(ConvergenceWarning, match=r"max_steps=3 .* tolerance=1e-06.* ridge .* preconditioner"):
        solution = conjugate_gradients(lambda V: A @ V, B, max_steps=3)
    assert not solution.converged
    assert solution.steps == 3
    true = torch.linalg.vector_norm(A @ solution.x - B) / torch.linalg.vector_norm(B)
    assert_allclose(solution.relative_residual, true, rtol=1e-6)
    assert not conjugate_gradients(lambda V: A @ V, B, max_steps=3, warn=False).converged


# ---- leave-one-out -----------------------------------------------------------------------------------------

FEW, MANY = [0.05, 0.7], np.geomspace(1e-3, 10, 8).tolist()


def gaussian_matrix(n):
    return (-squared_distances(tensor(n, 3), tensor(n, 3)) / 2).exp()


@pytest.mark.parametrize("shape", [(9,), (9, 1), (9, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridges", [FEW, MANY])
def test_leave_one_out_equals_n_refits(ridges, weighted, shape):
    assert (len(ridges) >= LEAVE_ONE_OUT.RIDGES_WORTH_AN_EIGENDECOMPOSITION) == (ridges is MANY)
    K, y = gaussian_matrix(9), tensor(*shape, seed=4)
    weights = torch.linspace(0.2, 3.0, 9, dtype=torch.float64) if weighted else None
    w, before = np.ones(9) if weights is None else weights.numpy(), K.clone()
    solutions = list(ridge_path(K, y, ridges, weights))
    assert [solution.ridge for solution in solutions] == ridges
    for solution in [*solutions, ridge_leave_one_out(K, y, ridges[0], weights)]:
        misses, variances = naive.ridge_leave_one_out(K.numpy(), y.numpy(), solution.ridge, w)
        assert_allclose(solution.alpha, naive.ridge_fit(K.numpy(), y.numpy(), solution.ridge, w), rtol=1e-8)
        assert_allclose(solution.residuals, misses, rtol=1e-8)
        assert_allclose(solution.variances, variances, rtol=1e-8)
    assert torch.equal(K, before)


@pytest.mark.parametrize("weighted", [False, True])
def test_both_routes_of_the_ridge_path_agree(monkeypatch, weighted):
    K, y = gaussian_matrix(12), tensor(12, 2, seed=4)
    weights = torch.linspace(0.2, 3.0, 12, dtype=torch.float64) if weighted else None
    by_eigenvalues = list(ridge_path(K, y, MANY, weights))
    monkeypatch.setattr(LEAVE_ONE_OUT, "RIDGES_WORTH_AN_EIGENDECOMPOSITION", len(MANY) + 1)
    monkeypatch.setattr(torch.linalg, "eigh", None)  # the other route does without
    for one, other in zip(by_eigenvalues, ridge_path(K, y, MANY, weights), strict=True):
        for a, b in zip(one, other, strict=True):
            assert_allclose(a, b, rtol=1e-8)


# ---- distances ---------------------------------------------------------------------------------------------


def mended(x, z, *norms):
    """The distances with small ones computed again from the differences."""
    return squared_distances(x, z, *norms, differences=lambda i, j: x[i] - z[j])


@pytest.mark.parametrize("distances", [squared_distances, mended])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA.keys())
def test_squared_distances_equal_the_naive_twin(data, distances):
    X = data()
    Z, x = np.concatenate([X[::-1], 2 * X]), torch.tensor(X)
    eye = np.eye(X.shape[1])
    expected = [[naive.distance(a, b, eye) ** 2 for b in Z] for a in X]
    z = torch.tensor(Z)
    for norms in ((), (squared_norms(x), squared_norms(z))):
        r2 = distances(x, z, *norms)
        assert_allclose(r2, expected, rtol=1e-6, atol=1e-14 * (Z**2).max())
        assert (r2 >= 0).all()
    assert_allclose(squared_norms(x), (X**2).sum(axis=1), rtol=1e-14)


@QUICK
@given(tables())
def test_equal_rows_are_exactly_zero_apart_in_single_precision(X):
    x = torch.tensor(X, dtype=torch.float32)
    r2 = mended(x, x.flip(0))
    equal = (x[:, None] == x.flip(0)[None]).all(dim=2)
    assert (r2[equal] == 0).all()
    assert (r2 >= 0).all()
    exact = (x[:, None].double() - x.flip(0)[None].double()).square().sum(dim=2)
    assert_allclose(r2, exact, rtol=0.02, atol=1e-30)


@pytest.mark.parametrize("gap", [1e-6, 1e-4, 1e-2, 1e-1, 1.0])
def test_near_rows_have_the_right_distance_in_single_precision(gap):
    x = (5 * tensor(60, 50)).float()
    z = (x.double() + gap * tensor(60, 50, seed=1)).float()
    exact = (x.double() - z.double()).square().sum(dim=1)
    assert_allclose(mended(x, z).diagonal(), exact, rtol=0.02)
    assert (squared_distances(x, x) >= 0).all()


def test_small_distances_are_mended_chunk_by_chunk(monkeypatch):
    x = (torch.from_numpy(numbers(20, 3)) * 1e-4 + 5).float()
    whole = mended(x, x)
    monkeypatch.setattr(DISTANCES, "CHUNK_NUMBERS", 7)
    assert torch.equal(mended(x, x), whole)
    assert mended(x[:0], x).shape == (0, 20)


# ---- eigenproblems -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_components", [None, 1, 2, 8, 20, 50])
def test_top_eigenpairs_by_both_routes(monkeypatch, n_components, dtype):
    A = symmetric(torch.linspace(-1, 3, 20)).to(dtype)
    expected = np.linalg.eigvalsh(A)[::-1][:n_components]
    for share in (0.0, 1.1):  # always whole, always partial
        monkeypatch.setattr(EIGEN, "PARTIAL_SHARE", share)
        values, vectors = top_eigenpairs(A, n_components)
        close = 100 * torch.finfo(dtype).eps
        assert values.dtype == vectors.dtype == dtype
        assert_allclose(values, expected, atol=close)
        assert_allclose(A @ vectors, vectors * values, atol=close)
        assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=close)


@pytest.mark.parametrize("n", [1, 2, 12])
@pytest.mark.parametrize("n_components", [None, 1, 3])
def test_generalized_eigenpairs_equal_scipy(n, n_components):
    A, B = symmetric(torch.linspace(-1, 2, n)), symmetric(torch.logspace(0, -3, n), seed=1)
    values, vectors = generalized_eigenpairs(A, B, n_components)
    expected_values, expected = naive.generalized_eigenpairs(A, B)
    assert_allclose(values, expected_values[:n_components], rtol=1e-9, atol=1e-9)
    assert_allclose(vectors.T @ B @ vectors, np.eye(len(values)), atol=1e-10)
    assert_allclose(vectors.T @ A @ vectors, np.diag(values), atol=1e-10)
    assert_allclose(np.abs((expected.T @ B.numpy() @ vectors.numpy()).diagonal()), 1.0, rtol=1e-8)


@pytest.mark.parametrize("rank", [0, 1, 4, 9])
@pytest.mark.parametrize("n_components", [None, 2])
def test_a_singular_right_side_gives_finite_pairs_on_its_range(rank, n_components):
    B = symmetric([*np.linspace(1, 2, rank), *np.zeros(10 - rank)], seed=1)
    A = symmetric(torch.linspace(-1, 2, 10))
    values, vectors = generalized_eigenpairs(A, B, n_components)
    assert len(values) == min(rank, 10 if n_components is None else n_components)
    assert vectors.shape == (10, len(values))
    assert (values.diff() <= 0).all()
    on_range = B @ torch.linalg.pinv(B, rtol=1e-10, hermitian=True)
    assert_allclose(on_range @ (A @ vectors - B @ vectors * values), np.zeros((10, len(values))), atol=1e-10)
    assert_allclose(vectors.T @ B @ vectors, np.eye(len(values)), atol=1e-10)
    assert_allclose(vectors.T @ A @ vectors, np.diag(values), atol=1e-10)


def test_a_zero_right_side_has_no_pairs():
    for n in (1, 3):
        values, vectors = generalized_eigenpairs(torch.eye(n), torch.zeros(n, n))
        assert values.shape == (0,)
        assert vectors.shape == (n, 0)


def test_the_tolerance_says_what_counts_as_zero():
    B = symmetric([1.0, 0.5, 1e-4, 1e-6], seed=1)
    eye = torch.eye(4, dtype=torch.float64)
    for tolerance, kept in ((None, 4), (1e-5, 3), (1e-3, 2), (0.6, 1)):
        assert inverse_root(B, tolerance).shape == (4, kept)
        assert len(generalized_eigenpairs(eye, B, tolerance=tolerance).values) == kept


@pytest.mark.parametrize("eigenvalues", [[3, 2, 1], [3, 2, 0], [1e-20, 0, 0], [0, 0, 0], [2]])
def test_inverse_root_halves_the_pseudo_inverse(eigenvalues):
    B = symmetric(eigenvalues)
    V = inverse_root(B)
    assert V.shape == (len(B), np.count_nonzero(eigenvalues))
    assert_allclose(V.T @ B @ V, np.eye(V.shape[1]), atol=1e-12)
    pinv = np.linalg.pinv(B.numpy(), rcond=1e-10, hermitian=True)
    assert_allclose(V @ V.T, pinv, atol=1e-12 * max(1.0, np.abs(pinv).max()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("contiguous", [True, False])
def test_inverted_gives_inverse_and_log_determinant(dtype, contiguous):
    B = torch.from_numpy(np.random.default_rng(0).normal(size=(7, 7)))
    A = (B @ B.T + torch.eye(7)).to(dtype)
    expected = np.linalg.inv(A.double().numpy())
    given = A.clone() if contiguous else torch.stack([A, A], dim=2)[:, :, 0]
    inverse, log_determinant = inverted(given)
    np.testing.assert_allclose(inverse, expected, rtol=1e-3 if dtype == torch.float32 else 1e-10)
    assert log_determinant.item() == pytest.approx(np.linalg.slogdet(A.double().numpy())[1], rel=1e-5)
    assert inverted(torch.diag(torch.tensor([1.0, -1.0], dtype=dtype))) is None
    assert inverted(torch.full((2, 2), float("nan"), dtype=dtype)) is None


def test_threads_are_put_back_after_small_problems():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threads_for(10):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with pytest.raises(KeyError), threads_for(10):
        raise KeyError
    assert torch.get_num_threads() == 2
    with threads_for(10**6):
        assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


# ---- blocks of a Krylov space, shifted factors ------------------------------------------------------------------


@pytest.mark.parametrize("gap", [30.0, 1.001])
def test_blocks_of_a_krylov_space_find_the_top_eigenpairs(gap):
    """Wide gaps take a few products; with hardly any, single Lanczos vectors go on, and end at the same."""
    random = np.random.default_rng(0)
    Q = torch.from_numpy(np.linalg.qr(random.normal(size=(300, 300)))[0])
    values = torch.cat([gap + torch.arange(4.0, dtype=torch.float64).flip(0), torch.linspace(1, 0, 296).double()])
    A = (Q * values) @ Q.T
    counted = []

    def multiply(V):
        counted.append(V.shape[1])
        return A @ V

    found = block_krylov_eigenpairs(multiply, A @ torch.from_numpy(random.normal(size=(300, 5))), 4)
    assert_allclose(found.values, values[:4], rtol=1e-10)
    assert_allclose(A @ found.vectors, found.vectors * found.values, atol=1e-5)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(4), atol=1e-8)
    assert (sum(counted) < 60) == (gap > 2)


def test_a_start_of_lower_rank_and_one_as_wide_as_the_space_will_do():
    random = np.random.default_rng(1)
    B = torch.from_numpy(random.normal(size=(12, 12)))
    A, expected = B @ B.T, np.linalg.eigvalsh((B @ B.T).numpy())[::-1]
    start = torch.from_numpy(random.normal(size=(12, 3)))
    for given_start in (torch.cat([start, start], dim=1), torch.eye(12, dtype=torch.float64)):
        assert_allclose(block_krylov_eigenpairs(lambda V: A @ V, given_start, 3).values, expected[:3], rtol=1e-8)


def test_a_shift_is_added_to_the_diagonal():
    random = np.random.default_rng(2)
    B = torch.from_numpy(random.normal(size=(20, 20)))
    A = B @ B.T
    before = A.clone()
    factor = cholesky(A, shift=0.5)
    assert_allclose(factor.lower @ factor.lower.T, A + 0.5 * torch.eye(20), atol=1e-10)
    assert torch.equal(A, before)
    # The jitter comes on top.
    with pytest.warns(NumericalWarning, match="added"):
        singular = cholesky(torch.ones(20, 20, dtype=torch.float64) - 0.5 * torch.eye(20), shift=0.5)
    assert singular.jitter > 0


def test_the_diagonal_of_an_inverse_in_float32_is_off_by_the_root_of_the_condition_number():
    random = np.random.default_rng(3)
    Q = torch.from_numpy(np.linalg.qr(random.normal(size=(80, 80)))[0])
    A = (Q * torch.logspace(0, -7, 80, dtype=torch.float64)) @ Q.T
    exact = torch.linalg.inv(A).diagonal()
    factor = cholesky(A)
    single = factor.inverse_diagonal(precision=torch.float32)
    assert single.dtype == torch.float64
    assert_allclose(factor.inverse_diagonal(), exact, rtol=1e-6)
    assert_allclose(single, exact, rtol=1e-3)
    assert (single - exact).abs().max() > 1e-9 * exact.abs().max()
