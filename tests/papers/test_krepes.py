"""krepes as printed: the settings, and the algorithm beside a naive twin of a few lines."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mercer.embedding import Alternate
from mercer.embedding.parameters import LOSSES
from mercer.embedding.preconditioners import GaussNewton, KernelMatrix
from mercer.exceptions import InvalidParameterError
from mercer.losses import barlow_twins, simclr
from mercer.papers import krepes
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
