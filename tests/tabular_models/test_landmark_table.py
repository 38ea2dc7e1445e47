"""Machines on landmarks of a table: coefficients, variances and left-out rows by hand, and the ridge that is chosen."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Gaussian, Laplace
from mercer.tabular_models import landmark_table
from mercer.tabular_models.evidence import matrix_evidence
from mercer.tabular_models.finish import exact_iterate
from mercer.tabular_models.fitters import ProcessFitter, RidgeFitter
from mercer.tabular_models.landmark_table import RIDGES, Landmarks, landmark_machine
from mercer.tabular_models.plans import Plan
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Iterate
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_finish import machine_of
from tests.tabular_models.test_landmark_ridge import naive_fit
from tests.tabular_models.test_race import search
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of

KERNEL, RIDGE = Laplace(1.1), 0.2
FITTERS = {"ridge": RidgeFitter(), "evidence": ProcessFitter(by_evidence=True)}


def landmarks(count, method="uniform", seed=0, working_memory=64.0):
    return Landmarks(count, method, seed, working_memory)


def fitted(table, count, fitter=FITTERS["ridge"], ridge=RIDGE, kernel=KERNEL, **options):
    return landmark_machine(Iterate(kernel, 9.0), "none", table, landmarks(count, **options), fitter, ridge)


@pytest.mark.parametrize("working_memory", [64.0, 1e-3])
@pytest.mark.parametrize("method", ["uniform", "kmeans++"])
def test_coefficients_and_variances_are_those_of_the_equations(method, working_memory):
    table = table_of(*repeated_rows(60))
    found = fitted(table, 8, FITTERS["evidence"], method=method, working_memory=working_memory)
    machine, index = found.machine, found.row_index
    assert len(set(index)) == 8
    assert_array_equal(machine.rows, table.X[index])
    X, Z = torch.from_numpy(table.X), torch.from_numpy(table.X[index])
    assert_allclose(machine.alpha, naive_fit(KERNEL, X, Z, table.y, table.mass, RIDGE), rtol=1e-6, atol=1e-9)
    K_mm, K_nm, w = KERNEL.matrix(Z).numpy(), KERNEL.matrix(X, Z).numpy(), table.mass.numpy()
    B, at = K_mm + K_nm.T @ (w[:, None] * K_nm) / RIDGE, numbers(4, 2, seed=3)
    k = naive.kernel_matrix(KERNEL, at, table.X[index])
    expected = 1.0 - np.sum(k.T * np.linalg.solve(K_mm, k.T), axis=0) + np.sum(k.T * np.linalg.solve(B, k.T), axis=0)
    assert_allclose(machine.unit_variance(at), expected, rtol=1e-6)
    assert machine.posterior_root.dtype == np.float32
    assert (machine.kernel, machine.ridge) == (KERNEL, RIDGE)
    assert_allclose(machine.output_scales, found.evidence.best_scales())


def test_left_out_predictions_are_those_of_refits_on_the_same_landmarks():
    table = table_of(*repeated_rows(40))
    found = fitted(table, 6)
    X, Z = torch.from_numpy(table.X), torch.from_numpy(table.X[found.row_index])
    assert_array_equal(found.left_out.y, table.y)
    for i in range(len(table)):
        rest = torch.arange(len(table)) != i
        alpha = naive_fit(KERNEL, X[rest], Z, table.y[rest], table.mass[rest], RIDGE)
        assert_allclose(found.left_out.mean[i], KERNEL.matrix(X[[i]], Z)[0] @ alpha, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("fitter", FITTERS.values(), ids=FITTERS.keys())
def test_where_every_row_is_a_landmark_the_machine_is_the_exact_one(fitter):
    table = table_of(numbers(25, 2), np.sin(2 * numbers(25, 2)))
    found = fitted(table, 25, fitter)
    K = naive.kernel_matrix(KERNEL, table.X, table.X)
    misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), RIDGE, np.ones(25))
    assert_allclose(found.left_out.y - found.left_out.mean, misses, atol=1e-6)
    assert_allclose(found.left_out.unit_variance, variances, rtol=1e-6)
    exact = machine_of(Iterate(KERNEL, RIDGE), table)
    at = numbers(5, 2, seed=5)
    assert_allclose(found.machine.mean(at), exact.mean(at), atol=1e-6)
    if fitter.needs_variances:
        assert_allclose(found.machine.unit_variance(at), exact.unit_variance(at), atol=1e-6)
    else:
        assert found.machine.posterior_root is None
    evidence = matrix_evidence(torch.from_numpy(K), table.y, math.log(RIDGE))
    assert found.evidence.log_evidence(found.evidence.best_scales()) == pytest.approx(-25 * 2 * evidence, rel=1e-6)


@pytest.mark.parametrize("name", FITTERS)
def test_the_ridge_is_that_of_the_best_scores_of_left_out_rows(name):
    X, y = smooth_rows(30)
    table = table_of(X, y)
    found = fitted(table, 30, FITTERS[name], None, Gaussian(1.5))
    K, scores = naive.kernel_matrix(Gaussian(1.5), table.X, table.X), {}
    for ridge in RIDGES:
        if ridge >= FITTERS[name].smallest_ridge:
            misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), ridge, np.ones(30))
            scale = np.mean(misses[:, 0] ** 2 / variances)
            density = -0.5 * np.mean(np.log(scale * variances) + misses[:, 0] ** 2 / (scale * variances))
            scores[ridge] = -np.mean(misses**2) if name == "ridge" else density
    assert found.machine.ridge == max(scores, key=scores.get)
    assert min(scores) < found.machine.ridge < max(scores)
    misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), found.machine.ridge, np.ones(30))
    assert_allclose(found.left_out.density_scales(), np.mean(misses[:, 0] ** 2 / variances), rtol=1e-5)


def test_no_ridge_is_below_the_noise_floor():
    table = table_of(numbers(20, 2), numbers(20, 2)[:, 0])
    assert fitted(table, 10, ProcessFitter(0.05, by_evidence=True), None, Gaussian(2.0)).machine.ridge == pytest.approx(
        0.1
    )


@pytest.mark.parametrize("method", ["uniform", "kmeans++"])
def test_landmarks_come_close_to_the_exact_process(method):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 1))
    table = table_of(X, np.sin(1.5 * X[:, 0]) + 0.1 * random.normal(size=60))
    plan = Plan(Setting(Gaussian(1.0), "none"), [Iterate(Gaussian(1.0), 0.01)])
    iterate = exact_iterate(search(ProcessFitter(by_evidence=True)), plan, table)
    exact = machine_of(iterate, table)
    made = landmark_machine(
        iterate, "none", table, landmarks(25, method), ProcessFitter(by_evidence=True), iterate.ridge
    )
    assert_allclose(made.machine.mean(X), exact.mean(X), atol=0.02)
    assert_allclose(made.machine.unit_variance(X), exact.unit_variance(X), rtol=0.2, atol=1e-3)
    evidence = matrix_evidence(iterate.kernel.matrix(table.warped("none")), table.y, math.log(iterate.ridge))
    assert made.evidence.log_evidence(made.evidence.best_scales()) == pytest.approx(-60 * evidence, abs=0.5)
    assert made.evidence.log_evidence(made.evidence.best_scales()) < -60 * evidence + 1e-6  # It is a lower bound.


def test_a_seed_chooses_the_same_rows_for_every_kernel():
    table = table_of(*smooth_rows(60))
    one, other, third = fitted(table, 10), fitted(table, 10, kernel=Gaussian(0.7)), fitted(table, 10, seed=1)
    assert_array_equal(one.row_index, other.row_index)
    assert not np.array_equal(np.sort(one.row_index), np.sort(third.row_index))


def test_of_many_rows_some_are_drawn_for_landmarks_and_for_errors(monkeypatch):
    monkeypatch.setattr(landmark_table, "MOST_SAMPLED", 20)
    table = table_of(*smooth_rows(60))
    found = fitted(table, 8)
    assert len(found.left_out.y) == 20
    X, Z = torch.from_numpy(table.X), torch.from_numpy(table.X[found.row_index])
    # All rows still count in the fit.
    assert_allclose(found.machine.alpha, naive_fit(KERNEL, X, Z, table.y, table.mass, RIDGE), rtol=1e-6, atol=1e-9)


def test_the_variance_on_many_landmarks_is_that_of_all_rows(monkeypatch):
    """The landmarks of a machine are not all that it has seen, however its coefficients were found."""
    monkeypatch.setattr(landmark_table, "MOST_SUMMED", 8)
    monkeypatch.setattr(landmark_table, "SUMMED_OF_MANY", 6)
    table = table_of(*smooth_rows(60))
    machine = fitted(table, 12, ProcessFitter(by_evidence=True)).machine
    assert len(machine.rows) == 12
    K_mm, K_nm = KERNEL.matrix(machine.rows), KERNEL.matrix(table.X, machine.rows)
    at = numbers(4, 3, seed=3)
    k = KERNEL.matrix(at, machine.rows)
    inverse = np.linalg.inv(K_mm) - np.linalg.inv(K_mm + K_nm.T @ K_nm / RIDGE)
    assert_allclose(machine.unit_variance(at), 1.0 - np.sum(k * (k @ inverse), axis=1), rtol=1e-5)
