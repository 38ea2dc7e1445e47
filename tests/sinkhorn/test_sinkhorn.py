"""Doubly stochastic projections against plain iterations, and their gradients against the unrolled ones."""

import importlib
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from torch.autograd import gradcheck

from mercer.exceptions import ConvergenceWarning, InvalidParameterError
from mercer.sinkhorn import balanced, doubly_stochastic, sparse_doubly_stochastic
from tests.examples_of import QUICK, numbers

DUAL, ENTROPIC, SQUARED = (
    importlib.import_module(f"mercer.sinkhorn.{name}") for name in ("dual", "entropic", "squared")
)
MISSING = -math.inf


def naive_scaling(A, steps=3000):
    """diag(u) exp(A) diag(u) by u <- sqrt(u / (K u)), with a graph that autograd can walk back."""
    K = A.exp()
    u = torch.ones(len(A), dtype=A.dtype)
    for _ in range(steps):
        u = (u / (K @ u)).sqrt()
    return u[:, None] * K * u


def naive_sinkhorn(A, steps=3000):
    """diag(u) exp(A) diag(v) by rows and columns in turn."""
    K = A.exp()
    v = torch.ones(len(A), dtype=A.dtype)
    for _ in range(steps):
        u = 1 / (K @ v)
        v = 1 / (K.T @ u)
    return u[:, None] * K * v


def naive_nearest(X, steps=20_000):
    """The doubly stochastic matrix nearest to X by Dykstra's alternating projections."""
    n = len(X)
    P, correction = X.copy(), np.zeros_like(X)
    for _ in range(steps):
        f = (1 - P.sum(axis=1) - (n - P.sum()) / (2 * n)) / n
        affine = P + f[:, None] + f
        P = np.maximum(affine + correction, 0)
        correction += affine - P
    return P


def symmetric(n, seed=0, scale=1.0):
    X = scale * torch.from_numpy(numbers(n, n, seed=seed))
    return (X + X.T) / 2


def without_diagonal(A):
    return A.clone().fill_diagonal_(MISSING)


def between_sides(n):
    """Edges between two sides of n points only: P has the eigenvalue -1."""
    A = torch.full((2 * n, 2 * n), MISSING, dtype=torch.float64)
    A[:n, n:] = torch.from_numpy(numbers(n, n))
    A[n:, :n] = A[:n, n:].T
    return A


def in_blocks():
    return torch.block_diag(symmetric(3).exp(), symmetric(2, seed=1).exp()).log()


# Named by what is hard about them.
LOG_AFFINITIES = {
    "plain": symmetric(6),
    "positive": torch.from_numpy(numbers(7, 3) @ numbers(7, 3).T),
    "one": torch.full((1, 1), 3.0, dtype=torch.float64),
    "constant": torch.full((4, 4), -700.0, dtype=torch.float64),
    "no_diagonal": without_diagonal(symmetric(6, seed=1)),
    "two_sides": between_sides(3),
    "blocks": in_blocks(),
    "spread": symmetric(6, seed=2, scale=4.0),
    "masked": without_diagonal(symmetric(5, seed=3)).clamp(min=-1e9),
}
by_log_affinity = pytest.mark.parametrize("A", LOG_AFFINITIES.values(), ids=LOG_AFFINITIES)
STAR = torch.full((5, 5), MISSING, dtype=torch.float64)
STAR[0, 1:] = STAR[1:, 0] = 0.0


def assert_doubly_stochastic(P, tolerance=1e-6):
    P = np.asarray(P.detach() if isinstance(P, torch.Tensor) else P)
    assert P.min() >= 0
    assert_allclose(P.sum(axis=0), 1, atol=2 * tolerance)
    assert_allclose(P.sum(axis=1), 1, atol=tolerance)


# by entropy


@by_log_affinity
def test_scaling_naive_twin(A):
    P = doubly_stochastic(A, tolerance=1e-13)
    assert_doubly_stochastic(P, 1e-13)
    assert torch.equal(P, P.T)
    # One number off the whole of A scales u, and keeps the plain iteration from overflowing.
    assert_allclose(P, naive_scaling(A - A.max()), atol=1e-11)
    assert not P[A == MISSING].any()


def test_small_cases_by_hand():
    P = doubly_stochastic(torch.tensor([[4.0, 1.0], [1.0, 1.0]]).log())
    assert_allclose(P, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]], atol=1e-6)
    assert_allclose(doubly_stochastic(np.zeros((3, 3))), 1 / 3)
    # The zero corner leaves one permutation, reached in the limit only.
    P = doubly_stochastic(torch.tensor([[0.0, 0.0], [0.0, MISSING]]))
    assert_allclose(P, [[0, 1], [1, 0]], atol=1e-6)


def test_it_is_the_projection_in_the_divergence():
    """Any other doubly stochastic matrix is farther from exp(A)."""
    A = symmetric(4)
    P = doubly_stochastic(A, tolerance=1e-13)

    def divergence(Q):
        return float((Q * (Q.log() - A) - Q + A.exp()).sum())

    for seed in range(5):
        other = naive_sinkhorn(torch.from_numpy(numbers(4, 4, seed=seed)))
        for share in (0.01, 1.0):
            assert divergence((1 - share) * P + share * other) > divergence(P)


@by_log_affinity
def test_laws_of_scaling(A):
    P = doubly_stochastic(A, tolerance=1e-12)
    a = torch.from_numpy(numbers(len(A), seed=9))
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(A)))
    assert_allclose(doubly_stochastic(A + a[:, None] + a, tolerance=1e-12), P, atol=1e-10)
    assert_allclose(doubly_stochastic(A[order][:, order], tolerance=1e-12), P[order][:, order], atol=1e-10)
    assert_allclose(doubly_stochastic(P.log(), tolerance=1e-12), P, atol=1e-10)


def unrolled_gradient(A, G):
    B = A.clone().requires_grad_()
    finite = torch.where(A > MISSING, (B + B.T) / 2 - A.max(), MISSING)
    return torch.autograd.grad((naive_scaling(finite) * G).sum(), B)[0]


@by_log_affinity
def test_gradient_is_that_of_the_unrolled_iteration(A):
    G = torch.from_numpy(numbers(*A.shape, seed=4))
    B = A.clone().requires_grad_()
    (doubly_stochastic(B, tolerance=1e-13) * G).sum().backward()
    assert_allclose(B.grad, unrolled_gradient(A, G), atol=1e-10)
    assert torch.equal(B.grad, B.grad.T)
    # Adding to a row and its column changes nothing, so the gradient has no such part.
    assert_allclose(B.grad.sum(dim=1), 0, atol=1e-12)


@by_log_affinity
def test_gradient_by_differences(A):
    edges = torch.nonzero(A > MISSING, as_tuple=True)

    def project(values):
        filled = torch.full_like(A, MISSING).index_put(edges, values)
        return doubly_stochastic((filled + filled.T) / 2, tolerance=1e-13)

    assert gradcheck(project, A[edges].clone().requires_grad_(), atol=1e-6, rtol=1e-5, fast_mode=True)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_not_symmetric(n):
    A = torch.from_numpy(2 * numbers(n, n, seed=5))
    P = doubly_stochastic(A, tolerance=1e-12, symmetric=False)
    assert_doubly_stochastic(P, 1e-11)
    assert_allclose(P, naive_sinkhorn(A), atol=1e-10)
    assert gradcheck(
        lambda B: doubly_stochastic(B, tolerance=1e-13, symmetric=False), A.requires_grad_(), atol=1e-6, rtol=1e-5
    )
    S = symmetric(n)
    assert_allclose(doubly_stochastic(S, symmetric=False, tolerance=1e-12), doubly_stochastic(S), atol=1e-6)


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e3, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_spreads_converge(dtype, spread):
    A = symmetric(20)
    A = (spread * A / A.abs().max()).to(dtype).requires_grad_()
    P = doubly_stochastic(A)  # warnings are errors in these tests
    assert P.dtype == dtype
    assert_doubly_stochastic(P, 1.5e-6)
    (P * torch.arange(20.0, dtype=dtype)).sum().backward()
    assert torch.isfinite(A.grad).all()


@pytest.mark.filterwarnings("ignore::mercer.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("spread", [1e4, 1e8, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spreads_that_are_too_large_give_no_nan(dtype, spread):
    for A in (symmetric(30), without_diagonal(symmetric(12)), symmetric(12).square()):
        A = (spread * A).to(dtype).requires_grad_()
        P = doubly_stochastic(A, max_iter=20)
        (P * torch.arange(float(len(A)), dtype=dtype)).sum().backward()
        assert torch.isfinite(P).all()
        assert torch.isfinite(A.grad).all()


def test_float32_is_float64_rounded():
    A = symmetric(50, scale=10.0)
    P = doubly_stochastic(A.float())
    assert P.dtype == torch.float32
    assert_allclose(P, doubly_stochastic(A), atol=1e-5)
    # Potentials alone would leave an error of the rounding of A, here 1e-5 at least.
    assert_doubly_stochastic(doubly_stochastic((A + 300.0).float()), 1e-6)


@QUICK
@given(n=st.integers(1, 7), seed=st.integers(0, 100), power=st.integers(-4, 2), share=st.sampled_from([0.0, 0.3]))
def test_any_matrix_with_a_diagonal_is_scaled(n, seed, power, share):
    A = symmetric(n, seed=seed, scale=10.0**power)
    cut = torch.from_numpy(np.random.default_rng(seed).random((n, n)) < share)
    A = A.masked_fill((cut | cut.T) & ~torch.eye(n, dtype=torch.bool), MISSING)
    assert_doubly_stochastic(doubly_stochastic(A))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_support_warns_and_stays_finite(dtype):
    A = STAR.to(dtype).requires_grad_()
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=30 steps .* 1\.0e\+00 from 1, .* no doubly .* -inf"
    ) as caught:
        P = doubly_stochastic(A, max_iter=30)
    assert caught[0].filename == __file__
    # As near as damped steps come: leaves and center miss 1 by the same factor.
    assert_allclose(P.sum(dim=1).detach(), [2, 0.5, 0.5, 0.5, 0.5], rtol=1e-5)
    P[0, 1].backward()
    assert torch.isfinite(A.grad).all()


def test_too_few_steps_warn():
    A = symmetric(8, scale=3.0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 steps .*, above tolerance=1e-09\. More .* temperature,"):
        P = doubly_stochastic(A, max_iter=1, tolerance=1e-9)
    assert not torch.equal(P, doubly_stochastic(A))
    assert_doubly_stochastic(P, 0.5)
    with pytest.warns(ConvergenceWarning) as caught:
        doubly_stochastic(A, max_iter=1, tolerance=1e-9, symmetric=False)
    assert "-inf" not in str(caught[0].message)


def test_the_tolerance_is_kept_and_used():
    A = symmetric(30, scale=2.0)
    loose, tight = (
        float((doubly_stochastic(A, tolerance=tolerance).sum(dim=1) - 1).abs().max()) for tolerance in (0.3, 1e-12)
    )
    assert tight <= 1e-12 < 1e-6 < loose <= 0.3


def test_newton_steps_are_few(monkeypatch):
    """Where damped steps crawl, as without a diagonal, Newton steps do not."""
    steps = []

    def spy(*args):
        result = DUAL.newton(*args)
        steps.append(result[2])
        return result

    monkeypatch.setattr(ENTROPIC, "newton", spy)
    A = symmetric(40, scale=20.0)
    assert (naive_scaling(A - A.max(), steps=500).sum(dim=1) - 1).abs().max() > 1e-4
    doubly_stochastic(A, tolerance=1e-12)
    doubly_stochastic(symmetric(40), tolerance=1e-12)
    doubly_stochastic(torch.zeros(5, 5))
    assert steps[0] <= 20
    assert steps[1] <= 6
    assert steps[2] == 0


def test_the_gradient_says_when_it_is_poor(monkeypatch):
    A = symmetric(6).requires_grad_()
    P = doubly_stochastic(A)
    monkeypatch.setattr(DUAL, "GRADIENT_TOLERANCE", 0.0)
    with pytest.warns(ConvergenceWarning, match="gradient of a doubly .* relative error of some .*larger temperature"):
        P[0, 1].backward()


def test_near_permutations_have_the_right_gradient():
    """The system is nearly singular there; its solution by eigenvectors is the judge."""
    A = symmetric(30, scale=30.0)
    G = torch.from_numpy(numbers(30, 30, seed=8))
    B = A.clone().requires_grad_()
    P = doubly_stochastic(B, tolerance=1e-12)
    (P * G).sum().backward()
    P = P.detach()
    S = P * (G + G.T) / 2
    H = torch.diag(P.sum(dim=1)) + P
    assert float(torch.linalg.eigvalsh(H)[0]) < 1e-3
    w = torch.linalg.solve(H, S.sum(dim=1))
    assert_allclose(B.grad, S - P * (w[:, None] + w), atol=1e-9)


# by squares

AFFINITIES = {
    "plain": symmetric(6),
    "similarities": torch.from_numpy(numbers(6, 3) @ numbers(6, 3).T),
    "no_diagonal": symmetric(6, seed=1).abs().fill_diagonal_(0.0),
    "one": torch.full((1, 1), 3.0, dtype=torch.float64),
    "two_sides": between_sides(3).exp(),
    "constant": torch.full((5, 5), 2.0, dtype=torch.float64),
    "negative": -symmetric(5, seed=2).abs(),
}
by_affinity = pytest.mark.parametrize("A", AFFINITIES.values(), ids=AFFINITIES)


@by_affinity
@pytest.mark.parametrize("strength", [0.3, 2.0, 50.0])
def test_nearest_naive_twin(A, strength):
    P = sparse_doubly_stochastic(A, strength=strength, tolerance=1e-12)
    assert_doubly_stochastic(P, 1e-12)
    assert torch.equal(P, P.T)
    assert_allclose(P, naive_nearest(A.numpy() / strength, 3000), atol=1e-7)


@by_affinity
def test_laws_of_the_nearest(A):
    P = sparse_doubly_stochastic(A, strength=0.7, tolerance=1e-12)
    a = torch.from_numpy(numbers(len(A), seed=9))
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(A)))

    def again(B, strength=0.7):
        return sparse_doubly_stochastic(B, strength=strength, tolerance=1e-12)

    assert_allclose(again(A + a[:, None] + a), P, atol=1e-10)
    assert_allclose(again(A[order][:, order]), P[order][:, order], atol=1e-10)
    assert_allclose(again(100 * A, strength=70.0), P, atol=1e-10)
    assert_allclose(again(P, strength=1.0), P, atol=1e-10)
    assert_allclose(again(A, strength=1e6), 1 / len(A), atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_small_strength_gives_the_best_assignment(dtype, seed):
    A = symmetric(60, seed=seed)
    # Without a warning, which is an error in these tests: strengths that fall take 30 steps, this one alone up to 75.
    P = sparse_doubly_stochastic(A.to(dtype), strength=1e-4, max_iter=40)
    assert P.dtype == dtype
    assert_doubly_stochastic(P, 1.5e-6)
    best = A.numpy()[linear_sum_assignment(A.numpy(), maximize=True)].sum()
    assert float((A * P).sum()) == pytest.approx(best, abs=60 * 1e-4 + 1e-3)
    assert (P > 0).sum() < 150


def test_the_larger_the_strength_the_more_entries():
    A = AFFINITIES["similarities"]
    counts = [int((sparse_doubly_stochastic(A, strength=s) > 0).sum()) for s in (0.01, 0.5, 2.0, 100.0)]
    assert counts == sorted(set(counts))
    assert counts[-1] == 36


@by_affinity
@pytest.mark.parametrize("strength", [0.7, 5.0])
def test_gradient_of_the_nearest_by_differences(A, strength):
    def project(B):
        return sparse_doubly_stochastic((B + B.T) / 2, strength=strength, tolerance=1e-13)

    if len(A.unique()) == 1 or strength > 1:
        A = A + 0.01 * symmetric(len(A), seed=3)
    assert gradcheck(project, A.clone().requires_grad_(), eps=1e-7, atol=1e-5, rtol=1e-4, fast_mode=True)
    B = A.clone().requires_grad_()
    P = sparse_doubly_stochastic(B, strength=strength)
    (P * torch.from_numpy(numbers(*A.shape))).sum().backward()
    assert not B.grad[P == 0].any()
    assert torch.equal(B.grad, B.grad.T)


def test_the_nearest_says_when_it_is_not():
    A = symmetric(20).requires_grad_()
    with pytest.warns(ConvergenceWarning, match=r"sparse_.* max_iter=2 steps .* or a larger strength") as caught:
        P = sparse_doubly_stochastic(A, strength=1e-3, max_iter=2)
    assert caught[0].filename == __file__
    P[0, 1].backward()
    assert torch.isfinite(P).all()
    assert torch.isfinite(A.grad).all()


def test_a_start_without_support_is_no_trouble():
    A = symmetric(5)
    T, error, _ = DUAL.newton(A - 10.0, SQUARED._positive_part(2.0), 1e-12, 50)
    assert error <= 1e-12
    assert_allclose(T.clamp(min=0) / 2.0, sparse_doubly_stochastic(A, strength=2.0), atol=1e-6)
    # Nor is a row without any in the gradient, of a solution that was not reached.
    B = A.clone().requires_grad_()
    unsolved = A.abs() - 10.0 * torch.eye(5)[0] - 10.0 * torch.eye(5)[0][:, None]
    DUAL.Solved.apply(B, unsolved, SQUARED._positive_part(2.0))[1].sum().backward()
    assert torch.isfinite(B.grad).all()
    assert B.grad.any()


@pytest.mark.filterwarnings("ignore::mercer.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 5, 8, 12, 100])
def test_steps_at_all_strengths_count(monkeypatch, max_iter):
    taken = []

    def spy(*args):
        result = DUAL.newton(*args)
        taken.append(result[2])
        return result

    monkeypatch.setattr(SQUARED, "newton", spy)
    sparse_doubly_stochastic(symmetric(30), strength=1e-2, max_iter=max_iter)
    assert sum(taken) == max_iter if max_iter < 15 else 15 <= sum(taken) < 40


@QUICK
@given(
    n=st.integers(1, 7), seed=st.integers(0, 100), power=st.integers(-4, 4), strength=st.sampled_from([0.1, 1, 10.0])
)
def test_every_matrix_has_a_nearest(n, seed, power, strength):
    A = symmetric(n, seed=seed, scale=10.0**power)
    assert_doubly_stochastic(sparse_doubly_stochastic(A, strength=strength))


# both


@pytest.mark.parametrize("project", [doubly_stochastic, lambda A: sparse_doubly_stochastic(A, strength=1.0)])
def test_arrays_stay_arrays_and_nothing_is_written_into_them(project):
    A = symmetric(5)
    before, array = A.clone(), A.float().numpy()
    P = project(array)
    assert type(P) is np.ndarray
    assert P.dtype == np.float32
    project(A)
    assert torch.equal(A, before)
    assert torch.equal(torch.from_numpy(array), before.float())
    assert project(np.ones((2, 2), dtype=int)).dtype == np.float64
    # What differs by rounding only is made symmetric.
    nearly = A + 10 * torch.eye(5)
    nearly[0, 1], nearly[1, 0], nearly[2, 3] = 0.0, 1e-6, nearly[2, 3] + 1e-7
    assert torch.equal(project(nearly), project(nearly).T)


def bad(i, j, value):
    A = torch.zeros(3, 3)
    A[i, j] = value
    return A


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (torch.zeros(3), r"log_affinity=\(3,\) .*\(n, n\)"),
        (torch.zeros(3, 2), r"log_affinity=\(3, 2\) "),
        (torch.zeros(0, 0), r"log_affinity=\(0, 0\) .*at least 1"),
        (bad(1, 1, math.nan), "log_affinity=nan .*finite or -inf"),
        (bad(1, 1, math.inf), "log_affinity=inf .*finite or -inf"),
        (torch.full((2, 2), MISSING), "log_affinity=-inf .*somewhere in each row"),
        (bad(0, 2, 1.0), r"log_affinity\[0, 2\], log_affinity\[2, 0\]=\(1.0, 0.0\) .*symmetric"),
        (bad(2, 1, MISSING), r"log_affinity\[1, 2\], log_affinity\[2, 1\]=\(0.0, -inf\) .*symmetric"),
    ],
)
def test_bad_log_affinities_are_named(A, message):
    with pytest.raises(InvalidParameterError, match=message):
        doubly_stochastic(A)


def test_bad_values_are_named():
    one_sided = torch.zeros(3, 3)
    one_sided[:, 1] = MISSING
    with pytest.raises(InvalidParameterError, match="log_affinity=-inf .*each column"):
        doubly_stochastic(one_sided, symmetric=False)
    with pytest.raises(InvalidParameterError, match="affinity=-inf .*finite throughout"):
        sparse_doubly_stochastic(STAR, strength=1.0)
    with pytest.raises(InvalidParameterError, match=r"affinity\[0, 1\], .*symmetric"):
        sparse_doubly_stochastic(bad(0, 1, 1.0), strength=1.0)
    with pytest.raises(InvalidParameterError, match="strength=0 .*above 0"):
        sparse_doubly_stochastic(torch.eye(2), strength=0)
    for function, A in ((doubly_stochastic, torch.eye(2)), (balanced, np.eye(2))):
        with pytest.raises(InvalidParameterError, match="tolerance=0 .*above 0"):
            function(A, tolerance=0)
        with pytest.raises(InvalidParameterError, match="max_iter=0 .*at least 1"):
            function(A, max_iter=0)
    with pytest.raises(InvalidParameterError, match="tolerance=-1 "):
        sparse_doubly_stochastic(torch.eye(2), strength=1.0, tolerance=-1)
    with pytest.raises(InvalidParameterError, match=r"max_iter=2\.5 "):
        sparse_doubly_stochastic(torch.eye(2), strength=1.0, max_iter=2.5)


# by scaling a matrix, sparse or not


def graph(n=30, k=4, seed=0):
    """Weights of k neighbors of points on a line, without a diagonal."""
    x = np.sort(np.random.default_rng(seed).random(n))
    distances = np.abs(x[:, None] - x) + 10 * np.eye(n)
    near = distances <= np.sort(distances, axis=1)[:, [k - 1]]
    return np.where(near | near.T, np.exp(-10 * distances), 0.0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix, sparse.csc_array])
def test_balanced_naive_twin(kind):
    A = graph()
    given_one = kind(A.copy())
    P = balanced(given_one, tolerance=1e-12)
    dense = P.toarray() if sparse.issparse(P) else P
    assert_doubly_stochastic(dense, 1e-11)
    assert_allclose(dense, naive_scaling(torch.from_numpy(A).log()), atol=1e-10)
    assert (dense == dense.T).all()
    assert ((dense > 0) == (A > 0)).all()
    assert dense.dtype == np.float64
    if sparse.issparse(given_one):
        assert P.format == "csr"
        assert isinstance(P, sparse.sparray) == isinstance(given_one, sparse.sparray)
        given_one = given_one.toarray()
    else:
        assert type(P) is np.ndarray
    assert_allclose(given_one, A, rtol=0)


def test_balanced_is_the_scaling_of_the_logarithm():
    A = graph()
    P = doubly_stochastic(torch.from_numpy(A).log())
    assert_allclose(balanced(A), P, atol=1e-5)
    assert_allclose(balanced(A.astype(np.float32)), P, atol=1e-5)
    assert_allclose(balanced(1e200 * A), P, atol=1e-5)
    assert_allclose(balanced(1e-200 * A), P, atol=1e-5)
    nearly = A * (1 + 1e-7 * numbers(*A.shape))
    assert_allclose(balanced(nearly), P, atol=1e-5)
    assert (balanced(nearly) == balanced(nearly).T).all()
    d = 10.0 ** np.linspace(-60, 60, len(A))
    assert_allclose(balanced(d[:, None] * A * d, max_iter=3000), P, atol=1e-5)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_of_zeros_stay_zero(kind):
    A = np.zeros((6, 6))
    A[:4, :4] = 1 + graph(4, 3)
    with pytest.warns(
        ConvergenceWarning, match="^2 of the 6 rows of the affinity are zero and stay zero; more n"
    ) as caught:
        P = balanced(kind(A))
    assert caught[0].filename == __file__
    P = P.toarray() if sparse.issparse(P) else P
    assert_doubly_stochastic(P[:4, :4])
    assert not P[4:].any()
    with pytest.warns(ConvergenceWarning, match="^3 of the 3 rows"):
        assert not balanced(kind(np.zeros((3, 3)))).sum()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_what_cannot_be_balanced_warns_and_stays_finite(kind):
    star = np.zeros((7, 7))
    star[0, 1:] = star[1:, 0] = 1.0
    star[6, :] = star[:, 6] = 0.0  # beside a row of zeros, which is not the worst
    for A in (star, 1e300 * star, 1e-310 * star):
        with pytest.warns(ConvergenceWarning, match="^max_iter=3000 scalings left row 0 with a sum of 2.24 .*identity"):
            P = balanced(kind(A), max_iter=3000)
        P = P.toarray() if sparse.issparse(P) else P
        assert_allclose(P.sum(axis=1), [5**0.5] + 5 * [5**-0.5] + [0])
    with pytest.warns(ConvergenceWarning, match=r"^max_iter=5 scalings left row \d+ with a sum of"):
        balanced(kind(graph()), max_iter=5)
    # So small beside the others that their scales would overflow.
    faint = np.zeros((3, 3))
    faint[0, 0], faint[1, 2], faint[2, 1] = 1.0, 1e-310, 1e-310
    with pytest.warns(ConvergenceWarning, match="^2 of the 3 rows"):
        P = balanced(kind(faint))
    assert_allclose(P.toarray() if sparse.issparse(P) else P, np.diag([1.0, 0.0, 0.0]))
    with pytest.warns(ConvergenceWarning, match="^1 of the 2 rows"):
        assert_allclose(balanced(np.array([[1e308, 1e-300], [1e-300, 0.0]])), [[1, 0], [0, 0]])


def test_balanced_stops_when_it_is_there():
    """As many scalings as the tolerance needs, and max_iter of them are allowed."""
    A = graph()
    steps = 0
    P = A / A.max()
    while np.abs(P.sum(axis=1) - 1).max() > 1e-3:
        P = P / np.sqrt(np.outer(P.sum(axis=1), P.sum(axis=1)))
        steps += 1
    assert steps > 5
    assert_allclose(balanced(A, tolerance=1e-3, max_iter=steps), P, rtol=1e-10)
    assert_allclose(balanced(A, tolerance=1e-3), P, rtol=1e-10)
    with pytest.warns(ConvergenceWarning):
        balanced(A, tolerance=1e-3, max_iter=steps - 1)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_bad_affinities_are_named(kind):
    for value, message in (
        (-1.0, "affinity=-1.0 .*at least 0"),
        (np.nan, "affinity=nan .*finite"),
        (np.inf, "affinity=inf .*finite"),
        (0.5, "affinity=.*transpose by 0.5.* symmetric"),
    ):
        A = np.eye(3)
        A[0, 1] = value
        with pytest.raises(InvalidParameterError, match=message):
            balanced(kind(A))
    with pytest.raises(InvalidParameterError, match=r"affinity=\(2, 3\) .*\(n, n\)"):
        balanced(kind(np.zeros((2, 3))))
    with pytest.raises(InvalidParameterError, match=r"affinity=\(0, 0\) "):
        balanced(np.zeros((0, 0)))


def test_pot_agrees():
    ot = pytest.importorskip("ot")
    A, even = symmetric(12), np.full(12, 1 / 12)
    plan = 12 * ot.sinkhorn(even, even, -A.numpy(), reg=1.0, stopThr=1e-12, numItermax=10_000)
    assert_allclose(doubly_stochastic(A), plan, atol=1e-6)
    # Its plan sums to 1, not to n, so that the strength is n times as large.
    plan = 12 * ot.smooth.smooth_ot_dual(even, even, -A.numpy(), reg=12.0, reg_type="l2", stopThr=1e-12)
    assert_allclose(sparse_doubly_stochastic(A, strength=1.0), plan, atol=1e-4)
