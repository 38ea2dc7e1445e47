"""Gaussian process classification: honest probabilities, the output scale, and what a fit publishes."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import softmax

import mercer
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.fitters import ClassFitter
from mercer.tabular_models.gp_classifier import with_latents
from mercer.tabular_models.laplace import softmax_posterior, step_by_conjugate_gradients
from mercer.tabular_models.latent_machine import (
    FIRST_SCALE,
    LatentMachine,
    LeftOutLatents,
    Sharpness,
    average_probabilities,
    best_sharpness,
    latent_machine,
    left_out_of,
)

PLAIN = {"kernel": "gaussian", "metric": "identity", "warp": "none", "random_state": 0}


def classes_of(X, random):
    """Labels drawn from known probabilities of three classes."""
    logits = np.column_stack([2.0 * X[:, 0], -2.0 * X[:, 0], 2.0 * X[:, 1] ** 2 - 2.0])
    p = softmax(logits, axis=1)
    return p, (p.cumsum(axis=1) < random.uniform(size=(len(X), 1))).sum(axis=1)


def test_probabilities_are_near_the_true_ones_and_return_to_the_shares_far_away():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = classes_of(X, random)[1]
    new = random.normal(size=(500, 3))
    model = mercer.GPClassifier(random_state=0).fit(X, y)
    p, true = model.predict_proba(new), classes_of(new, random)[0]
    divergence = (true * (np.log(true) - np.log(p))).sum(axis=1).mean()
    shares = np.bincount(y) / len(y)
    of_shares = (true * (np.log(true) - np.log(shares))).sum(axis=1).mean()
    assert divergence < 0.15 * of_shares
    assert_allclose(p.sum(axis=1), 1.0)
    smooth = mercer.GPClassifier(**PLAIN).fit(X, y)
    far = smooth.predict_proba(np.full((1, 3), 1e3))[0]
    # The spread of latent values draws the far probabilities toward each other, never past the shares' order.
    assert_allclose(far, shares, atol=0.12)


def test_a_given_scale_is_kept_and_a_sharper_prior_is_surer():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    for scale in (1.0, 50.0):
        model = mercer.GPClassifier(**PLAIN, output_scale=scale).fit(X, y)
        assert {float(m.output_scales[0]) for m in model.machines_} == {scale}
        assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="output_scale"):
        mercer.GPClassifier(output_scale=-1.0).fit(X, y)


def test_sharpness_mends_latents_that_are_too_timid_or_too_sure():
    random = np.random.default_rng(2)
    logits = torch.from_numpy(random.normal(0.0, 2.0, size=(3000, 3)))
    p = torch.softmax(logits, dim=1).numpy()
    labels = (p.cumsum(axis=1) < random.uniform(size=(3000, 1))).sum(axis=1)
    targets, none = torch.from_numpy(np.eye(3)[labels]), torch.zeros(3000, 3, 3, dtype=torch.float64)
    for factor in (0.3, 3.0):
        latents = LeftOutLatents(factor * logits, none, targets, torch.ones(3000, dtype=torch.float64))
        found = best_sharpness([latents], [1.0], torch.zeros(3, dtype=torch.float64))
        assert found.sharpness == pytest.approx(1.0 / factor, rel=0.12)


def test_judgments_that_share_a_kernel_share_their_machine(monkeypatch):
    random = np.random.default_rng(6)
    X = random.normal(size=(90, 3))
    model = mercer.GPClassifier(**PLAIN)
    _, table, _ = model._labeled_table(X, classes_of(X, random)[1], None)
    learned = model._learn(table, ClassFitter(table.center), None, Deadline(None))
    fit = learned.fits[0]
    machine = latent_machine(fit.machine, table, 5.0)
    calls = []

    def counted(*parts):
        calls.append(len(parts[0]))
        return softmax_posterior(*parts)

    monkeypatch.setattr("mercer.tabular_models.latent_machine.softmax_posterior", counted)
    together = left_out_of(machine, fit.judgments, table)
    assert len(fit.judgments) == 5
    assert calls == [90]
    apart = [left_out_of(machine, [judgment], table) for judgment in fit.judgments]
    for found, parts in zip(together, zip(*apart, strict=True), strict=True):
        torch.testing.assert_close(found, torch.cat(parts))


class Over(Deadline):
    """A deadline that is over once the search has ended."""

    def is_over(self, share=1.0):
        self.was_asked_in_vain = True
        return True


def test_out_of_time_one_newton_step_is_taken_and_no_scale_sought(monkeypatch):
    random = np.random.default_rng(7)
    X = random.normal(size=(60, 3))
    model = mercer.GPClassifier(**PLAIN)
    _, table, _ = model._labeled_table(X, classes_of(X, random)[1], None)
    fits = model._learn(table, ClassFitter(table.center), None, Deadline(None)).fits
    in_time, deadline = with_latents(fits, table, None, Deadline(None)), Over(1.0)
    steps = []

    def counted(*parts):
        steps.append(len(parts[0]))
        return step_by_conjugate_gradients(*parts)

    monkeypatch.setattr("mercer.tabular_models.laplace.step_by_conjugate_gradients", counted)
    monkeypatch.setattr("mercer.tabular_models.gp_classifier.left_out_of", lambda *parts: None)
    monkeypatch.setattr("mercer.tabular_models.gp_classifier.best_sharpness", lambda *parts: Sharpness(1.0, 1.0))
    out_of_time = with_latents(fits, table, None, deadline)
    assert steps == [60] * len(fits)
    assert deadline.was_asked_in_vain
    for early, late in zip(out_of_time, in_time, strict=True):
        assert early.machine.output_scales[0] == FIRST_SCALE
        # One step from 0 points where the mode is.
        correlation = np.corrcoef(early.machine.alpha.ravel(), late.machine.alpha.ravel())[0, 1]
        assert correlation > 0.9


def test_class_weights_and_sample_weights_are_copies():
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=60) > 0.8, "rare", "usual")
    counts = np.where(y == "rare", 3, 1)
    by_class = mercer.GPClassifier(**PLAIN, bandwidth=2.0, class_weight={"rare": 3.0}).fit(X, y)
    by_row = mercer.GPClassifier(**PLAIN, bandwidth=2.0).fit(X, y, sample_weight=counts)
    copied = mercer.GPClassifier(**PLAIN, bandwidth=2.0).fit(X.repeat(counts, axis=0), y.repeat(counts))
    assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X))
    assert_allclose(by_row.predict_proba(X), copied.predict_proba(X), atol=1e-6)
    plain = mercer.GPClassifier(**PLAIN, bandwidth=2.0).fit(X, y)
    rare = list(plain.classes_).index("rare")
    assert by_class.predict_proba(X)[:, rare].mean() > plain.predict_proba(X)[:, rare].mean() + 0.05


def test_it_is_saved_and_loaded(tmp_path):
    random = np.random.default_rng(4)
    X = random.normal(size=(90, 3))
    y = classes_of(X, random)[1]
    model = mercer.GPClassifier("laplace", random_state=0).fit(X, y)
    mercer.save(model, tmp_path / "model.mercer")
    loaded = mercer.load(tmp_path / "model.mercer")
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    assert_allclose(loaded.decision_function(X), model.predict_log_proba(X), rtol=1e-9)


def test_rows_in_leaves(monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.learning.MOST_EXACT_ROWS", 300)
    monkeypatch.setattr("mercer.tabular_models.learning.MANY_ROWS", 300)
    monkeypatch.setattr("mercer.tabular_models.learned.MANY_ROWS", 300)
    monkeypatch.setattr("mercer.tabular_models.many_rows.LEAF_ROWS", 200)
    random = np.random.default_rng(5)
    X = random.normal(size=(500, 2))
    y = classes_of(X, random)[1]
    model = mercer.GPClassifier(**PLAIN).fit(X, y)
    assert model.machines_[0].partition is not None
    true = classes_of(X, random)[0]
    p = model.predict_proba(X)
    assert np.abs(p - true).mean() < 0.1
    assert_allclose(p.sum(axis=1), 1.0)
    # One variance for all functions of a leaf, of some of its rows, says nearly what the covariances of all say.
    wide = [machine.changed(spread=1.0) for machine in model.machines_]
    cheap = average_probabilities(wide, X, 64.0, None)
    monkeypatch.setattr(LatentMachine, "has_one_variance", False)
    exact = average_probabilities([machine.changed() for machine in wide], X, 64.0, None)
    assert 1e-6 < np.abs(cheap - exact).max() < 0.06
    assert np.abs(cheap - exact).mean() < 0.01


def test_what_is_no_spread_is_not_worked_out(monkeypatch):
    random = np.random.default_rng(5)
    X = random.normal(size=(60, 2))
    (machine, *_) = mercer.GPClassifier(**PLAIN, average=False).fit(X, classes_of(X, random)[1]).machines_
    narrow = machine.changed(spread=1e-9).probabilities(X)
    monkeypatch.setattr(LatentMachine, "_curvature", None)
    assert_allclose(machine.changed(spread=0.0).probabilities(X), narrow, atol=1e-4)
