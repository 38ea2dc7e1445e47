"""Kernels: laws that hold for every kernel under every metric, the digits of small distances, bad input."""

import copy
import math
import pickle
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.svm import SVC

from mercer import Mahalanobis
from mercer.exceptions import DataWarning, NumericalWarning
from mercer.kernels import Custom, Gaussian, Laplace, Linear, Matern32, Matern52, Polynomial, Scaled, check_kernel
from tests.examples_of import (
    CLOSED_FORM,
    DATA,
    DIFFERENTIABLE,
    KERNELS,
    METRICS,
    ONE_PAIR_OF_WEIGHTS,
    QUICK,
    RADIAL,
    numbers,
    rational,
    tables,
)
from tests.naive import gradients, kernel_matrix, median_distance, metric_matrix


def over(argument, examples):
    return pytest.mark.parametrize(argument, examples.values(), ids=examples.keys())


over_kernels, over_metrics = over("kernel", KERNELS), over("metric", METRICS)
over_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])

X, Z = numbers(7, 3, seed=5), numbers(4, 3, seed=6)
X[5] = X[2]
Z[1] = X[0]


def gradient_sums(kernel, X, Z, alpha):
    """The gradients of sum_j alpha_jc k(., z_j) from the kernel's terms."""
    z = kernel.prepare(torch.as_tensor(Z))
    terms = kernel.gradient_terms(kernel.prepare(torch.as_tensor(X), beside=z), z)
    return sum(term.metric.pull_back(term.sums(torch.as_tensor(alpha))) for term in terms).numpy()


# ---- values ------------------------------------------------------------------------------------------------


@over("data", DATA)
@over_metrics
@over_kernels
def test_equals_the_naive_twin(kernel, metric, data):
    X = data()
    kernel = kernel.with_metric(metric(X.shape[1]))
    expected = kernel_matrix(kernel, X, X[::-1])
    rounding = 1e-10 * np.abs(expected).max()
    if not all(getattr(leaf, "exact_small_distances", True) for leaf in kernel.leaves()):
        # The expansion of squares, where it is left as it is, has the rounding error of the norms.
        rounding += 8 * np.finfo(X.dtype).eps * np.square(X - X.mean(axis=0)).sum(axis=1).max()
    assert_allclose(kernel.matrix(X, X[::-1]), expected, rtol=1e-9, atol=rounding)
    assert_allclose(kernel.matrix(X), expected[:, ::-1], rtol=1e-9, atol=rounding)


@over_metrics
@over_kernels
def test_is_symmetric_positive_and_has_its_diagonal(kernel, metric):
    kernel = kernel.with_metric(metric(3))
    K = kernel.matrix(X, X)
    assert_allclose(K, K.T, rtol=1e-13, atol=1e-13)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * K.max()
    assert_allclose(kernel.diagonal(X), K.diagonal(), rtol=1e-12)
    assert_allclose(kernel(X, Z), kernel.matrix(Z, X).T, rtol=1e-13, atol=1e-13)


@over_precisions
@over_metrics
@over_kernels
def test_precision_and_type_are_those_of_the_input(kernel, metric, dtype):
    kernel, x, z = kernel.with_metric(metric(3)), X.astype(dtype), Z.astype(dtype)
    tx, tz = torch.from_numpy(x), torch.from_numpy(z)
    expected = kernel_matrix(kernel, x, z)
    for K in (kernel(x, z), kernel(tx, tz).numpy()):
        assert K.dtype == kernel.diagonal(x).dtype == dtype
        assert_allclose(K, expected, rtol=0, atol=20 * np.finfo(dtype).eps * np.abs(expected).max())
    assert kernel(x, Z).dtype == kernel(X, z).dtype == np.float64
    for out in (kernel(x), kernel(x, z), kernel.diagonal(x)):
        assert isinstance(out, np.ndarray)
    for out in (kernel(tx), kernel(x, tz), kernel(tx, z), kernel.diagonal(tx)):
        assert isinstance(out, torch.Tensor)


@over_kernels
def test_lists_memory_maps_and_blocks_make_no_difference(kernel, tmp_path):
    np.save(tmp_path / "x.npy", X)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    for K in (
        kernel(X.tolist(), Z.tolist()),
        kernel(X, Z.tolist()),
        kernel(on_disk, Z),
        kernel(Z, on_disk).T,
        kernel.matrix(X, Z, working_memory=0.0),
        kernel.matrix(X, Z, working_memory=3 * 4 * len(Z) * 8 / 2**20),  # three rows at a time
    ):
        assert_allclose(K, kernel(X, Z), rtol=1e-12, atol=1e-13)
    assert_allclose(kernel.matrix(X, working_memory=0.0), kernel(X.tolist()), rtol=1e-12, atol=1e-13)
    assert_allclose(kernel.diagonal(X.tolist()), kernel.diagonal(on_disk), rtol=1e-13)


@over_metrics
@over_kernels
def test_a_metric_is_the_identity_on_projected_rows(kernel, metric):
    metric = metric(3)
    L = np.eye(3) if metric is None or metric.factor is None else metric.factor
    L = np.diag(L) if L.ndim == 1 else L
    assert_allclose(kernel.with_metric(metric)(X, Z), kernel(X @ L, Z @ L), rtol=1e-11, atol=1e-12)


@over_kernels
def test_a_diagonal_metric_is_ard(kernel):
    lengths = np.array([0.5, 2.0, 4.0])
    weights, expected = 1 / lengths**2, kernel(X / lengths, Z / lengths)
    for metric in (weights, Mahalanobis.from_weights(weights), np.diag(weights).tolist()):
        assert_allclose(kernel.with_metric(metric)(X, Z), expected, rtol=1e-11, atol=1e-12)


@over("right", KERNELS)
@over("left", KERNELS)
def test_sums_products_and_scalings_are_those_of_the_matrices(left, right):
    K, H = left(X, Z), right(X, Z)
    assert_allclose((left + right)(X, Z), K + H, rtol=1e-13)
    assert_allclose((left * right)(X, Z), K * H, rtol=1e-13)
    assert_allclose((3 * left)(X, Z), 3 * K, rtol=1e-13)
    assert_allclose((left * 0.5)(X, Z), K / 2, rtol=1e-13)


@over_precisions
@over_metrics
@over("kernel", RADIAL)
def test_a_radial_kernel_does_not_see_where_the_rows_are(kernel, metric, dtype):
    kernel, offset = kernel.with_metric(metric(3)), 1e3 if dtype is np.float32 else 1e4
    x, z = (X + offset).astype(dtype), (Z + offset).astype(dtype)
    expected = kernel_matrix(kernel, x.astype(np.float64) - offset, z.astype(np.float64) - offset)
    assert_allclose(kernel(x, z), expected, rtol=0, atol=10 * offset * np.finfo(dtype).eps)


# ---- derivatives -------------------------------------------------------------------------------------------


@over_metrics
@over("kernel", ONE_PAIR_OF_WEIGHTS)
def test_gradient_weights_give_the_derivative_for_every_pair(kernel, metric):
    kernel = kernel.with_metric(metric(3))
    P, Q = kernel.gradient_weights(X, Z)
    fast = (P[:, :, None] * Z - Q[:, :, None] * X[:, None, :]) @ metric_matrix(metric(3), 3)
    assert_allclose(fast, gradients(kernel, X, Z, np.eye(len(Z))), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("outputs", [1, 3])
@over_metrics
@over("kernel", CLOSED_FORM)
def test_gradient_sums_equal_autograd(kernel, metric, outputs):
    kernel, alpha = kernel.with_metric(metric(3)), numbers(4, outputs, seed=7)
    expected = gradients(kernel, X, Z, alpha)
    assert_allclose(gradient_sums(kernel, X, Z, alpha), expected, rtol=1e-9, atol=1e-11)


def test_terms_may_have_their_own_metrics():
    one, other = METRICS["full"](3), METRICS["diagonal"](3)
    kernel, alpha = Gaussian(1.0, one) * Polynomial(2, 1.0, metric=other) + Laplace(2.0), numbers(4, 2, seed=7)
    assert_allclose(kernel(X, Z), kernel_matrix(kernel, X, Z), rtol=1e-10)
    assert_allclose(gradient_sums(kernel, X, Z, alpha), gradients(kernel, X, Z, alpha), rtol=1e-9, atol=1e-11)
    with pytest.raises(ValueError, match="different metrics"):
        kernel.gradient_weights(X, Z)
    assert kernel.with_metric(one).single_metric() == one


@over_metrics
@over("kernel", DIFFERENTIABLE)
def test_torch_differentiates_the_values(kernel, metric):
    kernel, alpha = kernel.with_metric(metric(3)), numbers(4, 1, seed=7)
    x, z = torch.tensor(X, requires_grad=True), kernel.prepare(torch.from_numpy(Z))
    f = kernel.values(kernel.prepare(x, beside=z), z) @ torch.from_numpy(alpha)
    (fast,) = torch.autograd.grad(f.sum(), x)
    assert_allclose(fast, gradients(kernel, X, Z, alpha)[:, 0], rtol=1e-9, atol=1e-11)


def test_which_kernels_have_closed_form_gradients():
    assert all(kernel.has_closed_form_gradient for kernel in CLOSED_FORM.values())
    assert not (Gaussian(1.0) + Custom(rational)).has_closed_form_gradient
    with pytest.raises(TypeError, match="autograd"):
        Custom(rational).gradient_weights(X)


def test_products_over_columns_have_weights_a_column_only():
    with pytest.raises(TypeError, match="ProductLaplace.* weights a column"):
        KERNELS["product_laplace"].gradient_weights(X)


# ---- the digits of small distances -------------------------------------------------------------------------


@over_precisions
@over_metrics
def test_laplace_at_equal_rows_is_exactly_one_and_has_no_slope(metric, dtype):
    n, d = 82, 17  # sizes at which a product with the metric rounds equal rows unequally, by where they stand
    rows = (numbers(n // 2, d, seed=8) + 2).astype(dtype)
    rows = np.concatenate([rows, rows[::-1]])
    equal = (rows[:, None] == rows[None, :]).all(axis=2)
    assert equal.sum() == 2 * n
    kernel, alpha = Laplace(9.0, metric(d)), np.ones((n, 1), dtype)
    for at_once in (1, 2, 7, n):
        K = kernel.matrix(rows, rows, working_memory=at_once * 4 * n * rows.itemsize / 2**20)
        assert (K[equal] == 1.0).all()
        P, Q = kernel.gradient_weights(rows[:at_once], rows)
        assert (P[equal[:at_once]] == 0.0).all()
        assert (Q[equal[:at_once]] == 0.0).all()
    fast, expected = gradient_sums(kernel, rows[:2], rows, alpha), gradients(kernel, rows[:2], rows, alpha)
    assert_allclose(fast, expected, rtol=0, atol=1e4 * np.finfo(dtype).eps)


@over_metrics
def test_near_rows_have_the_right_distance_in_single_precision(metric):
    far = (5 * numbers(20, 6, seed=9)).astype(np.float32)
    near = (far + 1e-3 * numbers(20, 6, seed=10)).astype(np.float32)
    kernel = Laplace(1.0, metric(6))
    expected = -np.log(kernel_matrix(kernel, far, near).diagonal())
    assert_allclose(-np.log(kernel(far, near).diagonal()), expected, rtol=0.02)


# ---- a kernel is a value -----------------------------------------------------------------------------------


@over_kernels
def test_making_a_new_kernel_never_changes_the_first(kernel):
    kernel = copy.deepcopy(kernel).with_metric(METRICS["full"](3))
    before = copy.deepcopy(kernel)
    kernel.resolved(X)
    kernel.rescaled(2.0)
    kernel.with_metric(np.array([1.0, 2.0, 3.0]))
    assert kernel == before == kernel.rescaled(1.0)
    for name, old in before.get_params().items():
        if isinstance(old, (int, float, np.ndarray)) and np.any(old):
            assert kernel.with_params(**{name: 2 * old}) == clone(before).set_params(**{name: 2 * old}) != before
            assert kernel == before, f"with_params({name}=...) changed its kernel"


def test_the_offset_of_a_linear_kernel_is_the_mean_of_its_diagonal():
    X, metric = numbers(7, 3), Mahalanobis([0.5, 2.0, 1.0])
    assert Linear(metric, "mean").resolved(X) == Linear(metric, float(np.mean(np.diag(Linear(metric)(X)))))
    assert_allclose(Linear(offset=0.7)(X, X[:2]), X @ X[:2].T + 0.7)


def test_rescaled_multiplies_every_bandwidth():
    kernel = KERNELS["nested"].rescaled(2.0)
    assert kernel == 0.5 * (Gaussian(2.0) + Laplace(6.0) * (Linear() + 2 * Matern32(1.2)))


@pytest.mark.parametrize("n", [2, 3, 4, 7])
@over_metrics
def test_median_is_the_median_distance_between_distinct_rows(metric, n):
    rows = np.concatenate([X[:n], X[:1]]) + 50.0
    expected = median_distance(rows, metric_matrix(metric(3), 3))
    for data in (rows, torch.from_numpy(rows)):
        kernel = (Gaussian(metric=metric(3)) + Laplace(4.0)).resolved(data)
        assert_allclose(kernel.left.bandwidth, expected, rtol=1e-9)
        assert kernel.right == Laplace(4.0)


@over_metrics
def test_median_of_equal_rows_is_one_with_a_warning(metric):
    with pytest.warns(DataWarning, match="all are equal"):
        assert Gaussian(metric=metric(17)).resolved(np.repeat(numbers(1, 17), 41, axis=0)).bandwidth == 1.0


def test_median_of_lists_and_of_a_sample_of_many_rows():
    drawn = [Gaussian().resolved(numbers(1500, 2), random_state=seed).bandwidth for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert_allclose(drawn, math.sqrt(4 * math.log(2)), rtol=0.05)  # r^2 / 2 is chi-squared with two degrees
    assert Gaussian().resolved(X.tolist()) == Gaussian().resolved(X)


@over_metrics
@over_kernels
def test_copies_are_equal_kernels(kernel, metric):
    kernel = kernel.with_metric(metric(3))
    # Twice 0 is no change.
    plain = {name: old for name, old in kernel.get_params().items() if isinstance(old, (int, float)) and old}
    changed = clone(kernel).set_params(**{name: 2 * old for name, old in plain.items()})
    assert (changed == kernel) == (not plain)
    for copied in (clone(kernel), pickle.loads(pickle.dumps(kernel)), changed.set_params(**plain)):
        assert copied is not kernel
        assert copied == kernel
        assert (copied(X) == kernel(X)).all()


def test_kernels_that_differ_are_not_equal():
    kernels = [*KERNELS.values(), Gaussian(1.4), Laplace(1.3), Gaussian(1.3, [1.0, 2.0]), Gaussian(0.8) + Linear()]
    for i, kernel in enumerate(kernels):
        assert [kernel == other for other in kernels] == [i == j for j in range(len(kernels))]
    assert Gaussian(1.0) == Gaussian(1.0, Mahalanobis())
    assert Gaussian(1.0) != 1.0


def test_nested_parameters_have_names():
    kernel = clone(KERNELS["nested"]).set_params(kernel__right__left__bandwidth=7.0, scale=4.0)
    assert kernel == 4.0 * (Gaussian(1.0) + Laplace(7.0) * (Linear() + 2 * Matern32(0.6)))


@over_kernels
def test_serves_as_a_callable_in_scikit_learn(kernel):
    kernel, y = kernel.with_metric(METRICS["full"](3)), np.arange(7) % 2
    ours, theirs = SVC(kernel=kernel).fit(X, y), SVC(kernel="precomputed").fit(kernel(X), y)
    assert_allclose(ours.decision_function(Z), theirs.decision_function(kernel(Z, X)), rtol=1e-9, atol=1e-9)


def test_check_kernel():
    assert check_kernel("laplace") == Laplace()
    assert check_kernel(KERNELS["cubic"]) is KERNELS["cubic"]
    assert check_kernel(rational) == Custom(rational)
    assert check_kernel("matern52", bandwidth=2.0) == Matern52(2.0)
    assert check_kernel(Gaussian(1.0) + Linear(), bandwidth="median") == Gaussian("median") + Linear()


# ---- bad input ---------------------------------------------------------------------------------------------

USES = [lambda k: k(X), lambda k: k.gradient_weights(X), lambda k: k.rescaled(2.0)]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "broad", None, True])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, Matern32, Matern52])
def test_a_bad_bandwidth_is_named(kind, value):
    for use in (*USES, lambda k: k.resolved(X)):
        with pytest.raises(ValueError, match=re.escape(f"bandwidth={value!r}") + ".* a finite number above 0"):
            use(kind(value))


@pytest.mark.parametrize("use", USES)
def test_an_unresolved_median_says_how_to_resolve_it(use):
    with pytest.raises(ValueError, match=r"bandwidth='median' .* a number.*resolved\(X\)"):
        use(0.5 * Gaussian())


BAD = {
    "offset": (lambda: Polynomial(offset=-1.0)(X), r"offset=-1.0 .* at least 0"),
    "offset_linear": (lambda: Linear(offset=-1.0)(X), r"offset=-1.0 .* at least 0"),
    "offset_word": (lambda: Linear(offset="median")(X), r"offset='median' .* at least 0, or 'mean'"),
    "offset_mean": (lambda: Linear(offset="mean")(X), r"offset='mean' .* a number before the kernel is evaluated"),
    "degree_zero": (lambda: Polynomial(degree=0)(X), r"degree=0 .* whole number, at least 1"),
    "degree_half": (lambda: Polynomial(degree=1.5)(X), r"degree=1.5 .* whole number, at least 1"),
    "polynomial_scale": (lambda: Polynomial(scale=0.0).gradient_weights(X), r"scale=0.0 .* above 0"),
    "scale": (lambda: Scaled(Linear(), -2.0)(X), r"scale=-2.0 .* at least 0"),
    "one_axis": (lambda: Linear()(X[0]), r"X=\(3,\) .* \(rows, columns\)"),
    "one_axis_z": (lambda: Linear()(X, Z[0]), r"Z=\(3,\) .* \(rows, columns\)"),
    "one_axis_x": (lambda: Linear()(X[0], Z), r"X has shape \(3,\) and Z has shape \(4, 3\)"),
    "three_axes": (lambda: Linear().diagonal(X[None]), r"X=\(1, 7, 3\) .* \(rows, columns\)"),
    "columns": (lambda: Gaussian(1.0)(X, Z[:, :2]), r"X has shape \(7, 3\) and Z has shape \(4, 2\)"),
    "columns_of_lists": (lambda: Gaussian(1.0)(X.tolist(), Z[:, :2].tolist()), r"\(7, 3\) .* \(4, 2\)"),
    "columns_of_weights": (lambda: Gaussian(1.0).gradient_weights(X, Z[:, :2]), r"\(7, 3\) .* \(4, 2\)"),
    "metric_size": (lambda: Gaussian(1.0, [1.0, 2.0])(X), r"X has 3 columns, .* learned on 2"),
    "metric": (lambda: Linear(metric="ard")(X), r"metric='ard' .* None, a Mahalanobis, a vector"),
    "metric_shape": (lambda: Linear(metric=np.ones((3, 2)))(X), r"metric=array.* \(d, d\) matrix"),
    "negative_weights": (lambda: Linear(metric=[1.0, -1.0, 1.0])(X), r"weights=.*none negative"),
    "function": (lambda: Custom("no")(X), r"function='no' .* a callable"),
    "function_shape": (lambda: Custom(lambda a, b: a)(X, Z), r"returned shape \(7, 3\) .* \(7, 4\)"),
    "kernel": (lambda: check_kernel("cosine"), r"kernel='cosine' .* 'gaussian', 'laplace'"),
    "kernel_class": (lambda: check_kernel(Gaussian), r"kernel=.*Gaussian.* 'gaussian'"),
}


@pytest.mark.parametrize(("act", "message"), BAD.values(), ids=BAD.keys())
def test_errors_name_what_is_wrong_and_what_is_allowed(act, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        act()


# ---- tables of any kind ------------------------------------------------------------------------------------


@QUICK
@given(tables(), st.sampled_from([*KERNELS.values()]), st.sampled_from([*METRICS.values()]))
def test_laws_hold_for_tables_of_any_kind(X, kernel, metric):
    kernel = kernel.with_metric(metric(X.shape[1]))
    K = kernel(X, X)
    rounding = 1e-9 * K.diagonal().max()
    assert_allclose(K, kernel_matrix(kernel, X, X), rtol=1e-9, atol=rounding)
    assert_allclose(K, K.T, rtol=0, atol=rounding)
    assert_allclose(kernel(X), K, rtol=1e-9, atol=rounding)
    assert_allclose(kernel.matrix(X, working_memory=0.0), K, rtol=1e-9, atol=rounding)
    assert np.linalg.eigvalsh(K).min() >= -len(X) * rounding


@QUICK
@given(tables(), st.sampled_from([*ONE_PAIR_OF_WEIGHTS.values()]), st.sampled_from([*METRICS.values()]))
def test_gradients_are_right_for_tables_of_any_kind(X, kernel, metric):
    kernel, alpha = kernel.with_metric(metric(X.shape[1])), np.ones((len(X), 1))
    P, Q = kernel.gradient_weights(X)
    M = metric_matrix(kernel.single_metric(), X.shape[1])
    rounding = 1e-13 * (abs(P) + abs(Q)).max() * np.abs(X).max() * M.max()
    expected = gradients(kernel, X, X, alpha)
    assert_allclose(gradient_sums(kernel, X, X, alpha), expected, rtol=1e-7, atol=rounding)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, z: x[:, :1] - z[:, 0], "is not k.z, x."),
        (lambda x, z: -(x @ z.T), "k.x, x. is negative"),
        (lambda x, z: -(torch.cdist(x, z) ** 2), "is larger than k.x, x. k.z, z."),
    ],
)
def test_a_function_that_is_no_kernel_is_told(function, message):
    with pytest.warns(NumericalWarning, match=f"not a positive semi-definite kernel.*{message}"):
        Custom(function)(X)


@over_precisions
def test_rounding_does_not_make_a_kernel_none(dtype):
    rows = torch.as_tensor(1e3 + np.concatenate([X, X]).astype(dtype))
    for function in (rational, lambda x, z: x @ z.T, lambda x, z: (-torch.cdist(x, z)).exp()):
        Custom(function)(rows)  # a warning would be an error
