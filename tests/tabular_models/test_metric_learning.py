"""Metrics learned on rows: gradient outer products against autograd, length scales at the top of the evidence."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import Mahalanobis
from mercer.kernels import Gaussian, Laplace, Linear, ProductLaplace
from mercer.tabular_models.evidence import negative_log_evidence
from mercer.tabular_models.fitters import ProcessFitter
from mercer.tabular_models.metric_learning import (
    advanced,
    coefficients,
    relearned,
    scaled_columns,
    with_length_scales,
)
from mercer.tabular_models.tuning import Freedom, Iterate, tuned
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of

FLOOR = 1e-6
WEIGHTS = np.linspace(0.1, 5.0, 15)
metrics = pytest.mark.parametrize("metric", ["diagonal", "full"])


def bent_rows(weights=None, n=15):
    X = numbers(n, 2)
    return table_of(X, X[:, 0] ** 2 + 0.3 * X[:, 1], weights)


def naive_step(kernel, ridge, table, metric):
    """The metric of the next step: the weighted mean of the outer products of the gradients, of trace d."""
    X, w, d = table.X, table.mass.numpy(), table.X.shape[1]
    A = naive.kernel_matrix(kernel, X, X) + np.diag(ridge / w)
    alpha = np.linalg.solve(A, table.y.numpy())
    M = sum(w_i * np.outer(g, g) for w_i, row in zip(w, naive.gradients(kernel, X, X, alpha), strict=True) for g in row)
    M = np.diag(np.diag(M)) if metric == "diagonal" else M
    return M * d / np.trace(M)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(1.1), ProductLaplace(1.4)])
def test_coefficients_solve_the_system_with_the_noise_of_each_row(kernel, weights):
    table = bent_rows(weights)
    w = np.ones(15) if weights is None else table.weights.numpy()
    A = naive.kernel_matrix(kernel, table.X, table.X) + np.diag(0.2 / w)
    found = coefficients(kernel, 0.2, table.warped("none"), table)
    assert_allclose(found, np.linalg.solve(A, table.y), atol=1e-9)


@metrics
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("kernel", [Gaussian(1.3), Laplace(1.1, metric=Mahalanobis([0.5, 1.2]))])
def test_a_step_takes_the_outer_product_of_the_gradients_for_the_metric(kernel, weights, metric):
    table = bent_rows(weights)
    found = advanced(Iterate(kernel, 0.2), table, table.warped("none"), metric)
    assert found.bandwidth == kernel.bandwidth
    assert_allclose(found.metric.matrix(), naive_step(kernel, 0.2, table, metric), atol=1e-8)
    assert np.trace(found.metric.matrix()) == pytest.approx(2.0)


def test_weights_reach_the_recursion():
    plain, weighted = (
        advanced(Iterate(Laplace(1.1), 0.2), table, table.warped("none"), "full").metric.matrix()
        for table in (bent_rows(), bent_rows(WEIGHTS))
    )
    assert np.abs(plain - weighted).max() > 0.01


# ---- length scales -----------------------------------------------------------------------------------------


def evidence_at(iterate, table):
    """The evidence of an iterate with its derivatives in the length scales of all columns and in the noise."""
    factor = iterate.kernel.single_metric().factor
    log_scales = np.zeros(table.X.shape[1]) if factor is None else -np.log(np.asarray(factor))
    return negative_log_evidence(
        iterate.kernel,
        table.warped("none"),
        table.y,
        log_scales,
        math.log(iterate.ridge),
        table.weights,
        table.repeats,
    )


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(2.0), ProductLaplace(2.0), Gaussian(4.0) * Laplace(9.0)])
def test_a_length_scale_a_column_beats_a_shared_one_and_finds_the_columns_that_count(kernel):
    table = table_of(*smooth_rows())
    Z = table.warped("none")
    shared = tuned(kernel, 0.1, [(table, Z)], ProcessFitter(by_evidence=True), Freedom(), fine=True)
    ard = with_length_scales(shared, table, Z, noise_floor=FLOOR, steps=50)
    found = evidence_at(ard, table)
    assert found.value < evidence_at(shared, table).value - 0.05
    assert abs(found.by_noise) < 5e-3
    assert np.abs(found.by_scales).max() < 5e-3
    metric = ard.kernel.single_metric()
    assert np.trace(metric.matrix()) == pytest.approx(3.0)
    assert_array_equal(np.argsort(-metric.importances()), [0, 1, 2])
    # Begun from its own end it stays.
    again = with_length_scales(ard, table, Z, noise_floor=FLOOR, steps=50)
    assert evidence_at(again, table).value == pytest.approx(found.value, abs=1e-3)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0) + Linear()])
def test_inner_products_end_at_the_top_of_the_evidence_too(kernel):
    table = table_of(*smooth_rows())
    ard = with_length_scales(Iterate(kernel, 0.1), table, table.warped("none"), noise_floor=FLOOR, steps=80)
    found = evidence_at(ard, table)
    assert abs(found.by_noise) < 5e-3
    assert np.abs(found.by_scales).max() < 5e-3


def test_weights_reach_the_evidence():
    X, y = smooth_rows()
    table = table_of(X, y, np.where(np.arange(40) < 20, 0.02, 50.0))
    found = with_length_scales(Iterate(Gaussian(2.0), 0.1), table, table.warped("none"), noise_floor=FLOOR, steps=80)
    end = evidence_at(found, table)
    assert abs(end.by_noise) < 5e-3
    assert np.abs(end.by_scales).max() < 5e-3
    plain = table_of(X, y)
    other = with_length_scales(Iterate(Gaussian(2.0), 0.1), plain, plain.warped("none"), noise_floor=FLOOR, steps=80)
    assert abs(evidence_at(other, table).by_noise) > 0.05


def test_repeats_reach_the_evidence():
    table = table_of(*repeated_rows(60))
    Z = table.warped("none")
    found = with_length_scales(Iterate(Gaussian(1.0), 0.1), table, Z, noise_floor=FLOOR, steps=80)
    assert abs(evidence_at(found, table).by_noise) < 5e-3
    table.repeats = table.repeats._replace(scatter=10 * table.repeats.scatter)
    assert with_length_scales(Iterate(Gaussian(1.0), 0.1), table, Z, noise_floor=FLOOR).ridge > 1.5 * found.ridge


def test_the_noise_stays_above_its_floor():
    table = table_of(numbers(25, 2), numbers(25, 2)[:, 0] ** 2)
    found = with_length_scales(Iterate(Gaussian(1.0), 0.5), table, table.warped("none"), noise_floor=0.02)
    assert found.ridge == pytest.approx(0.02, rel=1e-6)


def test_only_the_first_rows_are_followed():
    table, other = table_of(*smooth_rows(40)), table_of(*smooth_rows(40))
    other.y[30:] = 7.0
    few, same = (
        with_length_scales(Iterate(Gaussian(2.0), 0.1), t, t.warped("none"), noise_floor=FLOOR, rows=30)
        for t in (table, other)
    )
    assert (few.kernel, few.ridge) == (same.kernel, same.ridge)
    more = with_length_scales(Iterate(Gaussian(2.0), 0.1), other, other.warped("none"), noise_floor=FLOOR)
    assert more.ridge != pytest.approx(few.ridge, rel=0.1)


@pytest.mark.parametrize(
    "kernel", [Gaussian(2.0), ProductLaplace(0.7), Gaussian(1.0) * Laplace(3.0), 2 * Gaussian(1.2)]
)
def test_the_size_of_the_length_scales_goes_to_the_bandwidth_and_changes_nothing(kernel):
    X, log_scales = numbers(6, 3), np.array([0.3, -0.4, 2.0])
    made = scaled_columns(kernel, log_scales, 3)
    assert np.trace(made.single_metric().matrix()) == pytest.approx(3.0)
    assert_allclose(
        naive.kernel_matrix(made, X, X), naive.kernel_matrix(kernel, *2 * [X / np.exp(log_scales)]), atol=1e-12
    )
    # One length scale for all columns is the identity and a bandwidth.
    shared = scaled_columns(kernel, np.array([0.5]), 3)
    assert_allclose(shared.single_metric().matrix(), np.eye(3), atol=1e-12)
    assert_allclose(naive.kernel_matrix(shared, X, X), naive.kernel_matrix(kernel, *2 * [X / np.exp(0.5)]), atol=1e-12)


def test_a_kernel_without_a_bandwidth_keeps_the_size_in_its_metric():
    X, log_scales = numbers(6, 3), np.array([0.3, -0.4, 2.0])
    for kernel in (Linear(), Gaussian(2.0) + Linear()):
        made = scaled_columns(kernel, log_scales, 3)
        expected = naive.kernel_matrix(kernel, *2 * [X / np.exp(log_scales)])
        assert_allclose(naive.kernel_matrix(made, X, X), expected, atol=1e-12)


# ---- plans learned anew ------------------------------------------------------------------------------------


@metrics
def test_a_plan_learned_anew_has_its_bandwidths_and_ridges_and_metrics_of_these_rows(metric):
    table = bent_rows(WEIGHTS)
    wrong = Mahalanobis([1.0, 5.0])
    plan = [
        Iterate(Laplace(1.1), 0.2, 3.0),
        Iterate(Laplace(0.8, metric=wrong), 0.1, 2.0),
        Iterate(Laplace(0.6, metric=wrong), 0.05, 1.0),
    ]
    found = relearned(plan, metric, table, table.warped("none"), FLOOR)
    assert [(each.kernel.bandwidth, each.ridge) for each in found] == [(1.1, 0.2), (0.8, 0.1), (0.6, 0.05)]
    first = naive_step(Laplace(1.1), 0.2, table, metric)
    assert_allclose(found[1].kernel.metric.matrix(), first, atol=1e-8)
    second = naive_step(Laplace(0.8, metric=Mahalanobis.from_matrix(first)), 0.1, table, metric)
    assert_allclose(found[2].kernel.metric.matrix(), second, atol=1e-6)


def test_length_scales_learned_anew_begin_at_the_identity():
    """Length scales of a plan may come from rows that are to be judged: they are not even a start."""
    table = table_of(*smooth_rows())
    Z, start = table.warped("none"), Iterate(Gaussian(2.0), 0.1)
    plans = [
        [start, Iterate(Gaussian(3.0, metric=Mahalanobis(factor)), 0.3)]
        for factor in ([1.0, 1.0, 1.0], [0.1, 0.1, 1.7])
    ]
    one, other = (relearned(plan, "ard", table, Z, FLOOR)[-1] for plan in plans)
    assert (one.kernel, one.ridge) == (other.kernel, other.ridge)
    expected = with_length_scales(start, table, Z, noise_floor=FLOOR)
    assert (one.kernel, one.ridge) == (expected.kernel, expected.ridge)


def test_the_identity_has_nothing_to_learn():
    plan = [Iterate(Gaussian(2.0), 0.1, 0.5)]
    assert relearned(plan, "identity", bent_rows(), torch.empty(0), FLOOR) == plan


def test_a_target_without_gradients_leaves_the_metric():
    table = table_of(numbers(10, 2), np.full(10, 3.0))
    assert advanced(Iterate(Gaussian(1.3), 0.2), table, table.warped("none"), "full") == Gaussian(1.3)
