"""The softmax that calibrates a classifier: its minimum, its gradient, and that it is honest."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

from mercer.tabular_models import calibration
from mercer.tabular_models.calibration import Calibration, fit_calibration, fit_softmax


def labeled_outputs(n=4000, scale=3.0, offsets=(0.5, -0.2, 0.0), seed=0):
    """Outputs, and labels drawn from a softmax of them."""
    random = np.random.default_rng(seed)
    outputs = random.normal(size=(n, 3))
    p = np.exp(log_softmax(scale * outputs + offsets, axis=1))
    return outputs, (p.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)


def shared_targets(n, seed=1):
    """Targets of rows that stand for several of different classes."""
    return np.random.default_rng(seed).dirichlet(np.ones(3), size=n)


def naive_loss(theta, outputs, targets, weights, log_shares):
    """What is minimized, row by row and class by class; outputs of several machines come one after the other."""
    m = len(outputs)
    doubt = calibration.ROWS_IN_DOUBT / (sum(weights) + 2 * calibration.ROWS_IN_DOUBT)
    penalty = calibration.PRIOR_ROWS / 2 * ((theta[m:] - log_shares) ** 2).sum()
    likelihood = 0.0
    for i, w in enumerate(weights):
        logits = sum(theta[j] * outputs[j][i] for j in range(m)) + theta[m:]
        log_p = logits - math.log(sum(math.exp(value) for value in logits))
        for value, t, log_share in zip(log_p, targets[i], log_shares, strict=True):
            likelihood += w * ((1 - doubt) * t + doubt * math.exp(log_share)) * value
    return penalty - likelihood


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("m", [1, 3])
def test_the_softmax_is_the_naive_minimum_and_its_gradient_that_of_differences(shared, m, monkeypatch):
    labels = labeled_outputs(40)[1]
    outputs = np.stack([labeled_outputs(40)[0] + np.random.default_rng(j).normal(size=(40, 3)) for j in range(m)])
    targets = shared_targets(40) if shared else np.eye(3)[labels]
    weights, log_shares = np.linspace(0.5, 2.0, 40), np.log([0.2, 0.3, 0.5])
    asked = []

    def spy(loss, *args, **options):
        asked.append(loss)
        return minimize(loss, *args, **options)

    monkeypatch.setattr(calibration, "minimize", spy)
    fitted = fit_softmax(outputs, targets, weights, log_shares)
    theta = np.append(np.linspace(1.3, 0.4, m), [0.1, -0.4, 0.9])
    value, slope = asked[0](theta)
    given = (outputs, targets, weights, log_shares)
    assert value == pytest.approx(naive_loss(theta, *given))
    assert_allclose(slope, approx_fprime(theta, naive_loss, 1e-7, *given), rtol=1e-4, atol=1e-5)
    bounds = m * [(0, 1000)] + 3 * [(None, None)]
    expected = minimize(naive_loss, np.append(np.ones(m), np.zeros(3)), args=given, tol=1e-10, bounds=bounds)
    found = np.concatenate(fitted)
    assert naive_loss(found, *given) < expected.fun + 1e-4
    if not shared:
        assert_allclose(found, expected.x, atol=2e-2)


def test_rows_that_are_all_right_leave_a_doubt_of_one_row():
    n = 98
    labels = np.arange(n) % 2
    targets = np.eye(2)[labels]
    fitted = fit_calibration(targets - 0.5, targets, np.ones(n), np.log([0.5, 0.5]))
    p = np.exp(fitted.log_probabilities(targets - 0.5))
    # A doubt of 1 in n + 2, half of which goes to the class that a row has anyway.
    assert_allclose(p[labels == 0, 1], 0.5 / (n + 2), rtol=0.02)


def test_it_recovers_the_scale_and_the_offsets():
    outputs, labels = labeled_outputs()
    shares = np.bincount(labels) / len(labels)
    fitted = fit_calibration(outputs, np.eye(3)[labels], np.ones(len(labels)), np.log(shares))
    assert fitted.scale == pytest.approx(3.0, rel=0.1)
    assert_allclose(fitted.offsets - fitted.offsets[2], [0.5, -0.2, 0.0], atol=0.15)
    probabilities = np.exp(fitted.log_probabilities(outputs))
    assert_allclose(probabilities.sum(axis=1), 1.0)
    # It is honest: classes are as frequent as they are probable, and so among the surest rows.
    assert_allclose(probabilities.mean(axis=0), shares, atol=1e-3)
    sure = probabilities.max(axis=1) > 0.9
    right = probabilities.argmax(axis=1) == labels
    assert right[sure].mean() == pytest.approx(probabilities.max(axis=1)[sure].mean(), abs=0.02)


def test_weights_are_repeats_and_outputs_that_say_nothing_leave_the_shares():
    outputs, labels = labeled_outputs(60)
    targets = np.eye(3)[labels]
    weights = np.random.default_rng(1).integers(1, 4, size=60)
    log_shares = np.log([0.2, 0.3, 0.5])
    weighted = fit_calibration(outputs, targets, weights.astype(float), log_shares)
    repeated = fit_calibration(
        outputs.repeat(weights, axis=0), targets.repeat(weights, axis=0), np.ones(weights.sum()), log_shares
    )
    assert weighted.scale == pytest.approx(repeated.scale, rel=1e-4)
    assert_allclose(weighted.offsets, repeated.offsets, atol=1e-3)
    shares = np.bincount(labels) / 60
    silent = fit_calibration(np.zeros((60, 3)), targets, np.ones(60), np.log(shares))
    assert_allclose(np.exp(silent.log_probabilities(np.zeros((1, 3))))[0], shares, atol=1e-3)


def test_a_row_of_shares_is_rows_of_single_classes_with_the_shares_as_weights():
    outputs, targets = labeled_outputs(50)[0], shared_targets(50)
    log_shares = np.log(targets.mean(axis=0))
    shared = fit_calibration(outputs, targets, np.ones(50), log_shares)
    apart = fit_calibration(outputs.repeat(3, axis=0), np.tile(np.eye(3), (50, 1)), targets.ravel(), log_shares)
    assert shared.scale == pytest.approx(apart.scale, rel=1e-3)
    assert_allclose(shared.offsets, apart.offsets, atol=1e-3)


def test_log_probabilities_are_a_log_softmax():
    outputs = labeled_outputs(5)[0]
    expected = np.exp(2.0 * outputs + [0.1, 0.2, 0.3])
    found = Calibration(2.0, np.array([0.1, 0.2, 0.3])).log_probabilities(outputs)
    assert_allclose(np.exp(found), expected / expected.sum(axis=1, keepdims=True))
