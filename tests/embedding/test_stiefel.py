"""Steps under W^T W = I: the constraint holds at every step, and the loss falls."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mercer import KernelEmbedding
from mercer.embedding import Exact, Steps
from mercer.embedding.stiefel import retracted, tangent
from mercer.embedding.trained_map import TrainedMap
from mercer.kernels import Gaussian
from mercer.training import SGD, Adam, Cosine
from tests.examples_of import numbers

X = numbers(120, 3)
VIEWS = [X + 0.3 * numbers(120, 3, seed=1 + j) for j in range(2)]
OPTIONS = {"kernel": Gaussian(1.5), "bandwidth": None, "n_landmarks": 25, "n_components": 4, "random_state": 0}


def test_tangents_and_retractions():
    W = torch.linalg.qr(torch.from_numpy(numbers(9, 3)))[0]
    D = torch.from_numpy(numbers(9, 3, seed=1))
    T = tangent(W, D)
    torch.testing.assert_close(W.T @ T + T.T @ W, torch.zeros(3, 3, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(tangent(W, T), T)
    assert float((T * D).sum()) > 0
    Q = retracted(W + 1e-4 * T)
    torch.testing.assert_close(Q.T @ Q, torch.eye(3, dtype=torch.float64), atol=1e-12, rtol=0)
    assert float((Q - W - 1e-4 * T).abs().max()) < 1e-6  # to second order
    torch.testing.assert_close(retracted(W), W)


@pytest.mark.parametrize("optimizer", [SGD(0.5), SGD(0.2, momentum=0.5), Adam(1e-3)])
@pytest.mark.parametrize("start", ["principal", "random", "spectral"])
def test_the_constraint_holds_at_every_step_and_the_loss_falls(optimizer, start, monkeypatch):
    grams, losses = [], []
    usual, loss_of = TrainedMap.after_step, TrainedMap.batch_loss

    def after_step(self):
        usual(self)
        grams.append((self.model.W.T @ self.model.W).detach().clone())

    def batch_loss(self, rows, generator):
        loss = loss_of(self, rows, generator)
        losses.append(float(loss.detach()))
        return loss

    monkeypatch.setattr(TrainedMap, "after_step", after_step)
    monkeypatch.setattr(TrainedMap, "batch_loss", batch_loss)
    steps = Steps(epochs=25, batch_size=120, start=start, schedule=Cosine(0.0), validation_fraction=0.0)
    model = KernelEmbedding("simple_contrastive", solver=replace(steps, optimizer=optimizer), **OPTIONS)
    model.fit_views(*VIEWS)
    assert len(grams) == 25
    for gram in grams:
        np.testing.assert_allclose(gram, np.eye(4), atol=1e-9)
    exact = KernelEmbedding("simple_contrastive", solver=Exact(), **OPTIONS).fit_views(*VIEWS)
    assert min(losses) >= exact.loss_ - 1e-9
    if isinstance(optimizer, SGD) or start == "random":  # the other starts are near the optimum, where Adam wanders
        assert losses[-1] < losses[0]
    if isinstance(optimizer, SGD) and optimizer.momentum == 0:  # plain descent: at every single step
        assert (np.diff(losses) <= 1e-12).all()
