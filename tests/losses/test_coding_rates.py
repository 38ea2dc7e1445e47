"""Coding rates and the losses made of them, against log determinants written out and against autograd."""

import importlib
import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch.autograd import gradcheck

from mercer.exceptions import InvalidParameterError, NumericalWarning
from mercer.losses import (
    FromEmbeddings,
    class_coding_rate,
    coding_rate,
    mcr2,
    mlc,
    nmce,
    pairwise_coding_rate,
    view_coding_rate,
)
from mercer.sinkhorn import doubly_stochastic, sparse_doubly_stochastic
from tests.examples_of import QUICK, numbers

CORE = importlib.import_module("mercer.losses.log_determinants")
EPSILON = 0.4

# More rows than columns, fewer, and columns that fill one strip, or two and a part of a third.
SHAPES = [(9, 4), (4, 9), (6, 6), (1, 3), (3, 1), (20, 2 * CORE.STRIP + 5), (50, 2 * CORE.STRIP + 5)]
by_shape = pytest.mark.parametrize(("n", "d"), SHAPES)


def features(n=9, d=4, seed=0):
    return torch.from_numpy(numbers(n, d, seed=seed))


def unit_rows(Z):
    return Z / Z.norm(dim=1, keepdim=True)


def shares(n=9, k=3, seed=5):
    """Rows sum to 1."""
    return torch.softmax(torch.from_numpy(numbers(n, k, seed=seed)), dim=1)


def pairs(n=9, seed=6):
    """Doubly stochastic."""
    X = torch.from_numpy(numbers(n, n, seed=seed))
    return doubly_stochastic((X + X.T) / 2)


def labels(n=9, k=3):
    return torch.arange(n) % k


# The formulas of the paper, class by class, with its columns as our rows.


def naive_rate(Z, epsilon=EPSILON):
    n, d = Z.shape
    return np.linalg.slogdet(np.eye(d) + d / (n * epsilon**2) * Z.T @ Z)[1]


def naive_class_rate(Z, Pi, epsilon=EPSILON):
    (n, d), total = Z.shape, 0.0
    for column in Pi.T:
        size = column.sum()
        total += size / n * np.linalg.slogdet(np.eye(d) + d / (size * epsilon**2) * Z.T @ np.diag(column) @ Z)[1]
    return total


def naive_pairwise_rate(Z, Pi, epsilon=EPSILON):
    (n, d), one = Z.shape, np.eye(Z.shape[1])
    return sum(np.linalg.slogdet(one + d / epsilon**2 * Z.T @ np.diag(column) @ Z)[1] for column in Pi.T) / n


# And once more for autograd.


def written_rate(Z, epsilon=EPSILON):
    n, d = Z.shape
    return torch.logdet(torch.eye(d, dtype=Z.dtype) + d / (n * epsilon**2) * Z.T @ Z)


def written_class_rate(Z, Pi, epsilon=EPSILON):
    (n, d), t = Z.shape, Pi.sum(dim=0)
    M = torch.einsum("ia,ij,ib->jab", Z, Pi, Z) * (d / (t * epsilon**2))[:, None, None]
    return (t / n * torch.logdet(torch.eye(d, dtype=Z.dtype) + M)).sum()


def written_pairwise_rate(Z, Pi, epsilon=EPSILON):
    (n, d), one = Z.shape, torch.eye(Z.shape[1], dtype=Z.dtype)
    return torch.logdet(one + d / epsilon**2 * torch.einsum("ia,ij,ib->jab", Z, Pi, Z)).sum() / n


def gradients(function, *tensors):
    tensors = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    return torch.autograd.grad(function(*tensors), tensors)


@by_shape
@pytest.mark.parametrize("epsilon", [0.1, EPSILON, 2.0])
def test_rates_are_their_formulas(n, d, epsilon):
    Z, Pi, P, y = features(n, d), shares(n), pairs(n), labels(n)
    one_hot = torch.nn.functional.one_hot(y, 5)[:, : int(y.max()) + 1].double()
    assert_allclose(coding_rate(Z, epsilon=epsilon), naive_rate(Z.numpy(), epsilon), rtol=1e-12)
    for membership, full in ((Pi, Pi), (y, one_hot), (one_hot, one_hot)):
        expected = naive_class_rate(Z.numpy(), full.numpy(), epsilon)
        assert_allclose(class_coding_rate(Z, membership, epsilon=epsilon), expected, rtol=1e-12)
    expected = naive_pairwise_rate(Z.numpy(), P.numpy(), epsilon)
    assert_allclose(pairwise_coding_rate(Z, P, epsilon=epsilon), expected, rtol=1e-12)


RATES = {
    "class": (class_coding_rate, written_class_rate, shares),
    "pairwise": (pairwise_coding_rate, written_pairwise_rate, pairs),
}
by_rate = pytest.mark.parametrize(("rate", "written", "membership"), RATES.values(), ids=RATES.keys())


@by_shape
def test_gradients_are_those_of_autograd(n, d):
    Z = features(n, d)
    (expected,), (found,) = gradients(written_rate, Z), gradients(partial(coding_rate, epsilon=EPSILON), Z)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@by_shape
@by_rate
def test_gradients_in_features_and_membership_are_those_of_autograd(rate, written, membership, n, d):
    """The membership need not have its sums, nor be symmetric: the gradients are those of all its entries."""
    Z, Pi = features(n, d), membership(n) * torch.from_numpy(numbers(n, 1, seed=3)).abs()
    found = gradients(partial(rate, epsilon=EPSILON), Z, Pi)
    for ours, theirs in zip(found, gradients(written, Z, Pi), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@by_rate
@pytest.mark.parametrize(("n", "d"), [(7, 3), (3, 7)])
def test_gradients_by_finite_differences(rate, written, membership, n, d):
    Z, Pi = features(n, d).requires_grad_(), membership(n).requires_grad_()
    assert gradcheck(partial(rate, epsilon=EPSILON), (Z, Pi))
    assert gradcheck(lambda Z: rate(Z, Pi.detach(), epsilon=EPSILON), (Z,))
    assert gradcheck(lambda Pi: 3.0 * rate(Z.detach(), Pi, epsilon=EPSILON), (Pi,))
    assert gradcheck(lambda Z: -2.0 * coding_rate(Z, epsilon=EPSILON), (Z,))
    assert gradcheck(lambda Z: class_coding_rate(Z, labels(n), epsilon=EPSILON), (Z,))


@by_rate
def test_blocks_of_rows_and_of_classes_change_nothing(rate, written, membership, monkeypatch):
    Z, Pi = features(50, 37), membership(50)
    value, whole = rate(Z, Pi, epsilon=EPSILON), gradients(partial(rate, epsilon=EPSILON), Z, Pi)
    sizes = []
    monkeypatch.setattr(CORE, "rows_per_block", lambda n, size: sizes.append((n, size)) or 7 if n == 50 else 2)
    assert_allclose(rate(Z, Pi, epsilon=EPSILON), value, rtol=1e-13)
    for ours, theirs in zip(gradients(partial(rate, epsilon=EPSILON), Z, Pi), whole, strict=True):
        assert_allclose(ours, theirs, rtol=1e-11, atol=1e-14)
    assert (50, 2 * CORE.STRIP * 37 * 8) in sizes


def test_nothing_is_inverted_where_no_gradient_is_wanted(monkeypatch):
    Z, P = features(), pairs()
    expected = pairwise_coding_rate(Z, P, epsilon=EPSILON)
    monkeypatch.setattr(torch, "cholesky_inverse", None)
    with torch.no_grad():
        assert_allclose(pairwise_coding_rate(Z.requires_grad_(), P, epsilon=EPSILON), expected)
        assert coding_rate(Z, epsilon=EPSILON) > 0
    assert class_coding_rate(Z.detach(), labels(), epsilon=EPSILON) > 0


@pytest.mark.parametrize(("n", "d"), [(5, 300), (300, 5)])
def test_the_smaller_side_is_factored(n, d, monkeypatch):
    sizes, factor = [], torch.linalg.cholesky_ex
    monkeypatch.setattr(torch.linalg, "cholesky_ex", lambda M: sizes.append(M.shape[-1]) or factor(M))
    Z = features(n, d)
    for rate in (coding_rate(Z, epsilon=EPSILON), class_coding_rate(Z, shares(n), epsilon=EPSILON)):
        assert rate > 0
    class_coding_rate(Z, torch.arange(n) % 2, epsilon=EPSILON)
    assert sizes == ([5, 5, 3, 2] if n == 5 else [5, 5, 5, 5])


@by_rate
def test_float32_agrees_with_float64(rate, written, membership):
    """At the size and precision of the paper: unit rows, ε^2 = 0.1."""
    Z, Pi = unit_rows(features(120, 64)).float(), membership(120).float()
    epsilon = math.sqrt(0.1)
    value = rate(Z, Pi, epsilon=epsilon)
    assert value.dtype == torch.float32
    assert_allclose(value, rate(Z.double(), Pi.double(), epsilon=epsilon), rtol=1e-5)
    assert_allclose(coding_rate(Z, epsilon=epsilon), coding_rate(Z.double(), epsilon=epsilon), rtol=1e-5)
    single = gradients(partial(rate, epsilon=epsilon), Z, Pi)
    double = gradients(partial(rate, epsilon=epsilon), Z.double(), Pi.double())
    for ours, theirs in zip(single, double, strict=True):
        assert ours.dtype == torch.float32
        assert_allclose(ours, theirs, atol=1e-5 * float(theirs.abs().max()))


def test_lower_precisions_are_worked_out_in_float32():
    Z = features().to(torch.bfloat16).requires_grad_()
    rate = coding_rate(Z, epsilon=EPSILON)
    assert rate.dtype == torch.float32
    assert_allclose(rate.item(), naive_rate(Z.detach().double().numpy()), rtol=1e-5)
    assert torch.autograd.grad(rate, Z)[0].dtype == torch.bfloat16


# Laws.


def all_rates(Z, y, Pi, P, epsilon=EPSILON):
    parts = [class_coding_rate(Z, y, epsilon=epsilon), class_coding_rate(Z, Pi, epsilon=epsilon)]
    return [coding_rate(Z, epsilon=epsilon), *parts, pairwise_coding_rate(Z, P, epsilon=epsilon)]


@given(n=st.integers(1, 12), d=st.integers(1, 8), seed=st.integers(0, 50))
@QUICK
def test_parts_take_no_longer_a_code_than_the_whole(n, d, seed):
    """The log determinant is concave."""
    R, *parts = all_rates(features(n, d, seed), labels(n), shares(n, seed=seed), pairs(n, seed))
    assert all(-1e-12 <= part <= R * (1 + 1e-6) for part in parts)


def test_turned_features_and_reordered_samples_have_the_same_rates():
    Z, y, Pi, P = features(), labels(), shares(), pairs()
    rates = all_rates(Z, y, Pi, P)
    turn, order = torch.linalg.qr(features(4, 4, seed=8)).Q, torch.tensor([3, 0, 8, 5, 1, 7, 2, 6, 4])
    assert_allclose(all_rates(Z @ turn, y, Pi, P), rates, rtol=1e-12)
    assert_allclose(all_rates(Z[order], y[order], Pi[order], P[order][:, order]), rates, rtol=1e-12)
    assert_allclose(all_rates(3 * Z, y, Pi, P, epsilon=3 * EPSILON), rates, rtol=1e-12)
    # The columns of a membership are classes in any order, whatever their names.
    assert_allclose(all_rates(Z, 1000 * (2 - y), Pi.flip(1), P[:, order]), rates, rtol=1e-12)


@by_shape
def test_rates_that_are_known(n, d):
    Z = features(n, d)
    R, even = coding_rate(Z, epsilon=EPSILON), torch.full((n, n), 1 / n, dtype=Z.dtype)
    alone = np.mean(np.log1p(d / EPSILON**2 * (Z**2).sum(dim=1).numpy()))
    assert_allclose(pairwise_coding_rate(Z, even, epsilon=EPSILON), R, rtol=1e-12)
    assert_allclose(class_coding_rate(Z, even[:, :3], epsilon=EPSILON), R * even[:, :3].sum(dim=1)[0], rtol=1e-12)
    assert_allclose(pairwise_coding_rate(Z, torch.eye(n).double(), epsilon=EPSILON), alone, rtol=1e-12)
    assert_allclose(class_coding_rate(Z, torch.arange(n), epsilon=EPSILON), alone, rtol=1e-12)
    assert_allclose(class_coding_rate(Z, torch.zeros(n, dtype=torch.int32), epsilon=EPSILON), R, rtol=1e-12)


def test_orthogonal_subspaces_are_the_best_of_mcr2():
    """Two classes, evenly on the two halves of the axes: R - R_c is the most that Yu et al. prove."""
    Z, y = torch.eye(4).double().repeat(3, 1), torch.tensor([0, 0, 1, 1] * 3)
    best = 4 * math.log(1 + 1 / EPSILON**2) - 2 * math.log(1 + 2 / EPSILON**2)
    assert_allclose(mcr2(Z, y, epsilon=EPSILON), -best, rtol=1e-12)
    others = [mcr2(features(12, 4, seed), y, epsilon=EPSILON) for seed in range(20)]
    assert min(others) > -best


# Degenerate features and memberships.


def degenerate(name, n=40, d=24):
    Z = unit_rows(features(n, d)).float()
    scales = {"zeros": 0.0, "tiny": 1e-30, "long": 1e4, "longer": 1e18, "longest": 3e38}
    if name == "collapsed":
        Z = Z[:1].repeat(n, 1)
    elif name == "collapsed and long":
        Z = 1e4 * Z[:1].repeat(n, 1)
    elif name == "collapsed and longer":
        Z = 1e18 * Z[:1].repeat(n, 1)
    elif name == "duplicated":
        Z = Z[: n // 4].repeat(4, 1)
    elif name == "one long":
        Z[3] *= 1e12
    return Z * scales.get(name, 1.0)


FEATURES = [
    "collapsed",
    "collapsed and long",
    "collapsed and longer",
    "duplicated",
    "zeros",
    "tiny",
    "long",
    "longer",
    "longest",
    "one long",
]
MEMBERSHIPS = ["plain", "zeros", "below zero", "empty class", "nearly empty class", "small class", "one class"]


def spoiled(Pi, name):
    Pi = Pi.clone()
    if name == "zeros":
        Pi[Pi < Pi.median()] = 0.0
    elif name == "below zero":
        Pi[::2] = -3e-7
    elif name == "empty class":
        Pi[:, 1] = 0.0
    elif name == "nearly empty class":
        Pi[:, 1] = 1e-44
    elif name == "small class":
        Pi[:, 1] = 1e-20
    elif name == "one class":
        Pi[:, 1:] = 0.0
        Pi[:, 0] = 1.0
    return Pi


@pytest.mark.filterwarnings("ignore::mercer.exceptions.NumericalWarning")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("membership", MEMBERSHIPS)
@pytest.mark.parametrize("name", FEATURES)
def test_degenerate_features_have_finite_rates_and_gradients(name, membership, wide):
    Z = (degenerate(name, 12, 24) if wide else degenerate(name)).requires_grad_()
    n = len(Z)
    Pi, P = (spoiled(shape(n).float(), membership).requires_grad_() for shape in (shares, pairs))
    epsilon = math.sqrt(0.1)
    for rate, inputs in (
        (partial(coding_rate, Z), [Z]),
        (partial(class_coding_rate, Z, labels(n)), [Z]),
        (partial(class_coding_rate, Z, Pi), [Z, Pi]),
        (partial(pairwise_coding_rate, Z, P), [Z, P]),
        (partial(mcr2, Z, Pi), [Z, Pi]),
        (partial(mlc, Z, P), [Z, P]),
        (partial(mlc, Z, P, regularizer="entropy"), [Z, P]),
        (partial(view_coding_rate, Z, Z.flip(0)), [Z]),
        (partial(nmce, [Z, Z.flip(0)], [Pi, Pi.flip(0)]), [Z, Pi]),
    ):
        value = rate(epsilon=epsilon)
        assert torch.isfinite(value), rate
        for gradient in torch.autograd.grad(value, inputs):
            assert torch.isfinite(gradient).all(), rate


@pytest.mark.parametrize("name", ["collapsed", "collapsed and long", "duplicated", "long"])
def test_degenerate_rates_are_right_too(name):
    """float32 features so long that I is lost beside them, in float32."""
    Z, epsilon = degenerate(name), math.sqrt(0.1)
    n, d = Z.shape
    squares = np.linalg.svd(Z.double().numpy(), compute_uv=False) ** 2
    expected = np.log1p(d / (n * epsilon**2) * np.where(squares > 1e-12 * squares[0], squares, 0)).sum()
    even = torch.full((n, n), 1 / n)
    for rate in (
        coding_rate(Z, epsilon=epsilon),
        class_coding_rate(Z, torch.zeros(n, dtype=torch.long), epsilon=epsilon),
        class_coding_rate(Z, even[:, :1], epsilon=epsilon) * n,
        pairwise_coding_rate(Z, even, epsilon=epsilon),
    ):
        assert rate.dtype == torch.float32
        assert_allclose(rate, expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeros_take_no_code_whatever_the_precision(dtype):
    Z = torch.zeros(9, 4, dtype=dtype)
    for rate in all_rates(Z, labels(), shares(), pairs(), epsilon=1e-200):
        assert rate == 0.0


def test_gradients_of_long_features_are_right_too():
    Z, Pi = degenerate("long"), shares(40).float()
    found = gradients(partial(class_coding_rate, epsilon=EPSILON), Z, Pi)
    for ours, theirs in zip(found, gradients(written_class_rate, Z.double(), Pi.double()), strict=True):
        assert ours.dtype == torch.float32
        assert_allclose(ours, theirs, atol=1e-4 * float(theirs.abs().max()))


def test_a_precision_below_rounding_is_raised_and_told():
    """Past that the rate does not grow any more, and its gradient is that of the raised precision."""
    Z = features().requires_grad_()
    with pytest.warns(
        NumericalWarning, match=r"epsilon=1e-09 is below the rounding error of features of length 2\.\de"
    ):
        rate = coding_rate(Z, epsilon=1e-9)
    (gradient,) = torch.autograd.grad(rate, Z)
    with pytest.warns(NumericalWarning):
        assert_allclose(coding_rate(1e150 * Z.detach(), epsilon=EPSILON), rate.item(), rtol=1e-9)
    longest = Z.detach().norm(dim=1).max().item()
    raised = math.sqrt(4) * longest / 2.0**22
    assert_allclose(rate.item(), naive_rate(Z.detach().numpy(), raised), rtol=1e-9)
    assert_allclose(gradient, gradients(partial(written_rate, epsilon=raised), Z)[0], rtol=1e-6)
    coding_rate(Z, epsilon=1.01 * raised)


def test_a_membership_with_large_sums_has_a_finite_rate():
    Z, P = features().float(), 1e30 * pairs().float()
    with pytest.warns(NumericalWarning):
        assert torch.isfinite(pairwise_coding_rate(Z, P, epsilon=EPSILON))


def test_what_rounding_left_below_zero_counts_as_zero():
    Z, P = features(), pairs()
    P[0] = 0.0
    below = P.clone()
    below[0] = -1e-7
    assert pairwise_coding_rate(Z, below, epsilon=EPSILON) == pairwise_coding_rate(Z, P, epsilon=EPSILON)
    assert below[0, 0] == -1e-7
    # Zero itself has a gradient: the membership may come to be.
    (at_zero,) = gradients(lambda P: pairwise_coding_rate(Z, P, epsilon=EPSILON), P)
    assert_allclose(at_zero, gradients(lambda P: written_pairwise_rate(Z, P), P)[0], rtol=1e-9)
    assert (at_zero[0] > 0).all()


def test_a_class_without_samples_adds_nothing():
    Z, Pi = features(), shares()
    with_empty = torch.cat([Pi, torch.zeros(9, 1).double()], dim=1)
    expected = class_coding_rate(Z, Pi, epsilon=EPSILON)
    assert_allclose(class_coding_rate(Z, with_empty, epsilon=EPSILON), expected, rtol=1e-14)
    dZ, dPi = gradients(partial(class_coding_rate, epsilon=EPSILON), Z, with_empty)
    for ours, theirs in zip((dZ, dPi[:, :3]), gradients(written_class_rate, Z, Pi), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert (dPi[:, 3] == 0).all()


# Losses.


def test_mcr2_is_its_formula():
    Z, Pi, y = features(), shares(), labels()
    U = unit_rows(Z).numpy()
    one_hot = np.eye(3)[y.numpy()]
    R = naive_rate(U)
    assert_allclose(mcr2(Z, Pi, epsilon=EPSILON), naive_class_rate(U, Pi.numpy()) - R, rtol=1e-12)
    assert_allclose(mcr2(Z, y, epsilon=EPSILON), naive_class_rate(U, one_hot) - R, rtol=1e-12)
    assert gradcheck(partial(mcr2, epsilon=EPSILON), (Z.requires_grad_(), Pi.requires_grad_()))


@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("regularizer", ["squared", "entropy"])
def test_mlc_is_its_formula(gamma, regularizer):
    Z, P = features(), pairs()
    penalty = {"squared": float((P**2).sum()) / 2, "entropy": float((P * P.log()).sum())}[regularizer]
    U = unit_rows(Z).numpy()
    expected = naive_pairwise_rate(U, P.numpy()) - naive_rate(U) + gamma * penalty
    loss = partial(mlc, epsilon=EPSILON, gamma=gamma, regularizer=regularizer)
    assert_allclose(loss(Z, P), expected, rtol=1e-12)
    assert gradcheck(loss, (Z.requires_grad_(), P.requires_grad_()))


def test_mlc_at_the_authors_gamma():
    Z, P = features(), pairs()
    assert_allclose(mlc(Z, P, epsilon=EPSILON), mlc(Z, P, epsilon=EPSILON, gamma=0.05, regularizer="squared"))


@pytest.mark.parametrize("project", [doubly_stochastic, partial(sparse_doubly_stochastic, strength=2.0)])
def test_gradients_of_mlc_go_through_the_projection(project):
    """Also where the membership is zero for most pairs, and the entropy has an infinite slope."""
    C = unit_rows(features(8, 3, seed=2)).requires_grad_()
    Z = features(8, 3)
    assert gradcheck(lambda C: mlc(Z, project(C @ C.T / 0.3, tolerance=1e-12), epsilon=EPSILON), (C,))
    P = project((C @ C.T / 0.01).detach()).requires_grad_()
    loss = mlc(Z, P, epsilon=EPSILON, regularizer="entropy")
    assert torch.isfinite(torch.autograd.grad(loss, P)[0]).all()


def test_each_regularizer_is_least_for_the_even_membership():
    Z, n = features(), 9
    even = torch.full((n, n), 1 / n).double()
    for regularizer in ("squared", "entropy"):
        penalties = [
            mlc(Z, P, epsilon=EPSILON, gamma=1.0, regularizer=regularizer) - mlc(Z, P, epsilon=EPSILON, gamma=0.0)
            for P in (even, pairs(), torch.eye(n).double())
        ]
        assert penalties == sorted(penalties)
        assert penalties[0] < penalties[2]


@pytest.mark.parametrize("n_views", [2, 3, 4])
def test_the_start_is_its_formula(n_views):
    views = [features(seed=seed) for seed in range(n_views)]
    U = [unit_rows(view).numpy() for view in views]
    sizes = [abs(U[a][i] @ U[b][i]) for i in range(9) for a in range(n_views) for b in range(a)]
    expected = -naive_rate(np.mean(U, axis=0)) - 3.0 * np.mean(sizes)
    loss = partial(view_coding_rate, epsilon=EPSILON, agreement=3.0)
    assert_allclose(loss(*views), expected, rtol=1e-12)
    assert_allclose(loss(*views[::-1]), expected, rtol=1e-12)
    assert gradcheck(loss, [view.requires_grad_() for view in views])


@pytest.mark.parametrize("n_views", [2, 3])
def test_nmce_is_its_formula(n_views):
    views, Pi = [features(seed=seed) for seed in range(n_views)], [shares(seed=seed) for seed in range(n_views)]
    U = [unit_rows(view) for view in views]
    sizes = [abs(float(U[a][i] @ U[b][i])) for i in range(9) for a in range(n_views) for b in range(a)]
    Z, mean = unit_rows(sum(U)).numpy(), np.mean([p.numpy() for p in Pi], axis=0)
    expected = naive_class_rate(Z, mean) - naive_rate(Z) - 3.0 * np.mean(sizes)
    assert_allclose(nmce(views, Pi, epsilon=EPSILON, agreement=3.0), expected, rtol=1e-12)


def test_agreement_is_weighed_as_the_authors_code_does():
    views, Pi = [features(seed=0), features(seed=1)], [shares(), shares()]
    start, both = (partial(view_coding_rate, *views), partial(nmce, views, Pi))
    for loss in (start, both):
        assert_allclose(loss(epsilon=EPSILON), loss(epsilon=EPSILON, agreement=200.0))


def test_the_start_is_trained_as_other_losses_are():
    model = torch.nn.Linear(5, 3)
    objective = FromEmbeddings(partial(view_coding_rate, epsilon=EPSILON))
    x = features(8, 5).float()
    loss = objective(model, [x, x + 0.1], torch.Generator())
    loss.backward()
    assert model.weight.grad.abs().max() > 0


# What is refused.


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_epsilon_must_be_positive(epsilon):
    for loss in (
        partial(coding_rate, features()),
        partial(class_coding_rate, features(), labels()),
        partial(pairwise_coding_rate, features(), pairs()),
        partial(mlc, features(), pairs()),
        partial(view_coding_rate, features(), features()),
    ):
        with pytest.raises(InvalidParameterError, match="epsilon=.* is not allowed.*above 0"):
            loss(epsilon=epsilon)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_features_must_be_finite(bad):
    Z = features()
    Z[4, 2] = bad
    for rate in (
        partial(coding_rate, Z),
        partial(class_coding_rate, Z, shares()),
        partial(pairwise_coding_rate, Z, pairs()),
        partial(mcr2, Z, labels()),
    ):
        with pytest.raises(InvalidParameterError, match="Z=(nan|inf) is not allowed: Z must be finite"):
            rate(epsilon=EPSILON)


@pytest.mark.parametrize("Z", [torch.zeros(3), torch.zeros(0, 3), torch.zeros(3, 0), torch.ones(3, 2).long()])
def test_features_must_be_a_matrix_of_floats(Z):
    with pytest.raises(InvalidParameterError, match=r"Z='torch.* of shape .*floats of shape \(n, d\)"):
        coding_rate(Z, epsilon=EPSILON)


@pytest.mark.parametrize(
    ("rate", "membership", "message"),
    [
        (class_coding_rate, torch.arange(8), r"\(8,\) is not allowed.*of shape \(9,\)"),
        (class_coding_rate, torch.arange(9) - 1, r"membership=-1 is not allowed.*from 0 on"),
        (class_coding_rate, torch.arange(9).double(), r"float64 is not allowed.*whole numbers"),
        (class_coding_rate, torch.arange(9) > 3, r"bool is not allowed.*whole numbers"),
        (class_coding_rate, shares(8), r"\(8, 3\)' is not allowed.*floats of shape \(9, k\)"),
        (class_coding_rate, shares()[:, :0], r"\(9, 0\)' is not allowed.*floats of shape \(9, k\)"),
        (class_coding_rate, shares()[None], r"\(1, 9, 3\)' is not allowed"),
        (class_coding_rate, shares().long(), r"int64 of shape \(9, 3\)' is not allowed.*floats"),
        (class_coding_rate, shares() - 1.0, r"membership=-0\.\d+ is not allowed.*not negative"),
        (class_coding_rate, shares() * math.nan, r"membership=nan is not allowed.*finite"),
        (pairwise_coding_rate, shares(), r"\(9, 3\)' is not allowed.*floats of shape \(9, 9\)"),
        (pairwise_coding_rate, pairs(8), r"\(8, 8\)' is not allowed.*floats of shape \(9, 9\)"),
        (pairwise_coding_rate, labels(), r"\(9,\)' is not allowed.*floats of shape \(9, 9\)"),
        (pairwise_coding_rate, pairs() - 1e-1, r"is not allowed.*not negative"),
        (pairwise_coding_rate, pairs() / 0.0, r"membership=inf is not allowed.*finite"),
    ],
)
def test_memberships_that_do_not_fit_are_named(rate, membership, message):
    with pytest.raises(InvalidParameterError, match=message):
        rate(features(), membership, epsilon=EPSILON)


def test_other_parameters_out_of_range_are_named():
    Z, P = features(), pairs()
    with pytest.raises(InvalidParameterError, match="gamma=-1.0 is not allowed"):
        mlc(Z, P, epsilon=EPSILON, gamma=-1.0)
    with pytest.raises(InvalidParameterError, match="regularizer='cubed' is not allowed.*'squared', 'entropy'"):
        mlc(Z, P, epsilon=EPSILON, regularizer="cubed")
    with pytest.raises(InvalidParameterError, match="agreement=-1.0 is not allowed"):
        view_coding_rate(Z, Z, epsilon=EPSILON, agreement=-1.0)
    with pytest.raises(InvalidParameterError, match="agreement=-1.0 is not allowed"):
        nmce([Z, Z], [shares(), shares()], epsilon=EPSILON, agreement=-1.0)
    with pytest.raises(ValueError, match="2 or more"):
        view_coding_rate(Z, epsilon=EPSILON)
    with pytest.raises(ValueError, match="there are 2 views and 3 memberships"):
        nmce([Z, Z], [shares()] * 3, epsilon=EPSILON)
    with pytest.raises(ValueError, match=r"\(9, 3\), \(9, 2\)"):
        nmce([Z, Z], [shares(), shares(9, 2)], epsilon=EPSILON)
