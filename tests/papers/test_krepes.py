"""krepes as printed: the settings, and the algorithm beside a naive twin of a few lines."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.model_selection import ParameterSampler, StratifiedShuffleSplit

from mercer.embedding import Alternate
from mercer.embedding.linear_probe import probe_scorer
from mercer.embedding.parameters import LOSSES
from mercer.embedding.preconditioners import GaussNewton, KernelMatrix
from mercer.exceptions import InvalidParameterError
from mercer.losses import barlow_twins, simclr
from mercer.papers import krepes, krepes_search
from mercer.training.batches import epoch_batches
from mercer.training.schedules import warmup_cosine
from tests.examples_of import numbers

X = numbers(60, 3)
VIEWS = [X + 0.2 * numbers(60, 3, seed=1 + j) for j in range(2)]
SMALL = {"n_landmarks": 12, "n_components": 3, "random_state": 0}


def twin(model, loss, rate, n_epochs, batch_size, ridge):
    """Section 3 as it is written: Z_A = K_A A + γ and Z_B = K_B A + γ, A from A_0, Adam on loss + λ Tr(A^T K_mm A)."""
    sets = np.split(model.landmarks_, 2)
    K = [torch.from_numpy(model.kernel_.matrix(view, Z)) for view, Z in zip(VIEWS, sets, strict=True)]
    K_mm = torch.from_numpy(sum(model.kernel_.matrix(a, b) for a in sets for b in sets) / 4)
    K = [k - torch.cat(K).mean(dim=0) for k in K]
    values, U = torch.linalg.eigh(K_mm)
    A = (U[:, -3:] / values[-3:].sqrt()).flip(1).clone().requires_grad_()
    gamma = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([A, gamma], lr=rate)
    n_batches = -(-60 // batch_size)
    best, kept = torch.inf, A
    for epoch in range(n_epochs):
        total = 0.0
        for b, rows in enumerate(epoch_batches(60, n_batches, model.seed_, epoch)):
            step = epoch * n_batches + b
            optimizer.param_groups[0]["lr"] = warmup_cosine(step, n_epochs * n_batches, n_batches, rate, 1e-5)
            optimizer.zero_grad()
            value = loss(*(k[rows] @ A + gamma for k in K)) + ridge * torch.trace(A.T @ K_mm @ A)
            value.backward()
            optimizer.step()
            total += float(value.detach())
        if total < best:  # the epoch of the smallest loss is kept
            best, kept = total, A.detach().clone()
    return kept.numpy()


@pytest.mark.parametrize(
    ("name", "loss"), [("simclr", simclr), ("barlow_twins", lambda *z: barlow_twins(*z, center=False))]
)
def test_the_fit_is_that_of_the_naive_twin(name, loss):
    printed = krepes(name, learning_rate=1e-2, **SMALL)
    steps = replace(printed.solver, epochs=3, batch_size=30, validation_fraction=0.0, patience=None)
    model = printed.set_params(solver=steps).fit_views(*VIEWS)
    A = twin(model, loss, 1e-2, 3, 30, 1e-3)
    ours = model.coefficients_[:12] * 2.0  # sets share A, and new rows have the mean over both
    signs = np.sign((ours * A).sum(axis=0))  # those of eigenvectors are free
    np.testing.assert_allclose(ours, A * signs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_of_the_paper_has_its_settings_and_fits(loss):
    model = krepes(loss, **SMALL)
    if loss == "kernel_autoencoder":
        assert isinstance(model.solver, Alternate)
    else:
        assert (model.solver.epochs, model.solver.batch_size, model.solver.patience) == (60, 256, 10)
        model.set_params(solver=replace(model.solver, epochs=2))
    assert np.isfinite(model.fit(X).transform(X)).all()
    assert model.bias == ("none" if loss == "kernel_pca" else "learned")


def test_preconditioners_and_parameters_can_be_changed():
    for preconditioner in (KernelMatrix(), GaussNewton()):
        steps = replace(krepes("simclr").solver, preconditioner=preconditioner, epochs=1)
        assert np.isfinite(krepes("simclr", solver=steps, **SMALL).fit(X).coefficients_).all()
    assert krepes().get_params()["n_landmarks"] == 2000
    assert krepes(landmarks="uniform").landmarks == "uniform"
    with pytest.raises(InvalidParameterError, match="loss='moco'"):
        krepes("moco")


def few_steps(loss):
    """The preset's solver with few steps; the kernel autoencoder's has a few rounds anyway."""
    solver = krepes(loss).solver
    return {} if loss == "kernel_autoencoder" else {"solver": replace(solver, epochs=2)}


def test_the_search_is_appendix_b3():
    """Draws, a fit without the labeled rows, a classifier on half of these, the best on the others, a fit on all."""
    rows, labels = numbers(200, 3), np.arange(200) % 2
    rows[labels == 1] += 1.0
    search = krepes_search("simclr", images=False, n_draws=3, **few_steps("simclr"), **SMALL)
    fitted = search.fit(rows, labels)
    train, held_out = next(StratifiedShuffleSplit(1, test_size=0.1, random_state=0).split(rows, labels))
    assert len(held_out) == 20
    scores, models = [], []
    for drawn in ParameterSampler(search.param_distributions, 3, random_state=0):
        model = krepes("simclr", **SMALL).set_params(**drawn)
        scores.append(
            probe_scorer(labeled=0.5, balanced="auto")(model.fit(rows[train]), rows[held_out], labels[held_out])
        )
        models.append(model)
    np.testing.assert_allclose(fitted.cv_results_["mean_test_score"], scores)
    best = models[int(np.argmax(scores))]
    np.testing.assert_allclose(fitted.transform(rows), best.fit(rows).transform(rows))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_drawn_from_the_printed_ranges(loss):
    search = krepes_search(loss, images=True, n_draws=2, **few_steps(loss), **SMALL)
    assert search.cv.test_size == 0.02
    for drawn in ParameterSampler(search.param_distributions, 20, random_state=0):
        if "solver" in drawn:
            rate = drawn["solver"].optimizer.learning_rate
            assert 1e-4 <= rate <= 1e-1
            assert rate * drawn["solver"].schedule.final == pytest.approx(1e-5)
        assert 1e-5 <= drawn.get("ridge", 1.0) <= 100
        if loss == "barlow_twins":
            assert drawn["loss"].keywords["center"] is False
            assert 1e-5 <= drawn["loss"].keywords["off_diagonal"] <= 100
    assert ("solver" in search.param_distributions) == (loss != "kernel_autoencoder")
