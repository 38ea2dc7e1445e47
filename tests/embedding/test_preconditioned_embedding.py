"""KernelEmbedding's preconditioners and kept views: what steps are made in which coordinates, and that they agree."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.embedding.centers import Centers
from mercer.embedding.coordinates import Coordinates, drawn_features, kept_features
from mercer.embedding.preconditioners import PRECONDITIONERS
from mercer.embedding.trained_losses import GRADIENT_LOSSES
from mercer.kernels import Gaussian
from mercer.losses import barlow_twins, simclr
from mercer.training import SGD, Adam, Cosine
from mercer.views import GaussianNoise
from mercer.views.sources import DrawnViews, GivenViews
from tests.killing import killed_at

X = load_digits().data[:200] / 16.0
VIEWS = [X + 0.1 * np.random.default_rng(i).normal(size=X.shape) for i in range(2)]
OPTIONS = {"kernel": Gaussian(1.5), "bandwidth": None, "n_landmarks": 40, "n_components": 5, "random_state": 0}
# One step on all rows: what it does to A can be written down.
PLAIN = Steps(schedule=Cosine(0.0), validation_fraction=0.0, redraw=True)
ONE = replace(PLAIN, epochs=1, batch_size=200, optimizer=SGD(0.1))


def fitted(preconditioner, loss="spectral_contrastive", steps=ONE, **options):
    solver = replace(steps, preconditioner=preconditioner)
    return KernelEmbedding(loss, solver=solver, **{**OPTIONS, **options}).fit_views(*VIEWS)


def white(model):
    """Coordinates in which the landmarks are white, as the fit has them."""
    landmarks = torch.from_numpy(model.landmarks_)
    K_mm = model.kernel_.matrix(landmarks)
    values, U = torch.linalg.eigh(K_mm)
    values, U = values.flip(0), U.flip(1)
    K = [model.kernel_.matrix(torch.from_numpy(view), landmarks) for view in VIEWS]
    origin = torch.cat(K).mean(dim=0)
    return [k - origin for k in K], K_mm, U * values.rsqrt()


def step(model, loss, P):
    """A after a step along P^-1 g, g the gradient by A, from principal components."""
    K, K_mm, B = white(model)
    A = B[:, :5].clone().requires_grad_()
    (g,) = torch.autograd.grad(loss(*[k @ A for k in K]), A)
    return (A - 0.1 * torch.linalg.solve(P(K_mm), g)).detach().numpy(), K_mm.numpy()


@pytest.mark.parametrize(
    ("name", "P"),
    [
        ("white", lambda K_mm: K_mm),
        ("identity", lambda K_mm: torch.eye(len(K_mm), dtype=K_mm.dtype)),
        ("kernel", lambda K_mm: K_mm + 1e-3 * torch.eye(len(K_mm), dtype=K_mm.dtype)),
    ],
)
def test_a_step_of_sgd_is_along_the_preconditioned_gradient(name, P):
    """White coordinates are K_mm for a preconditioner; the others are what they are called."""
    model = fitted(name, "barlow_twins")
    A, K_mm = step(model, barlow_twins, P)
    # Signs of eigenvectors are free: what embeddings have in common is compared.
    ours, ratio = model.coefficients_, A
    signs = np.sign(np.sum(ours * (K_mm @ ratio), axis=0))
    np.testing.assert_allclose(K_mm @ ours, K_mm @ (ratio * signs), rtol=1e-6, atol=1e-8)


def test_gauss_newton_lowers_the_loss_more_than_any_other_in_one_step():
    losses = {}
    for name in PRECONDITIONERS:
        model = fitted(name, "simclr", replace(ONE, optimizer=SGD(1.0)))
        views = [torch.from_numpy(model.transform(view)) for view in VIEWS]
        losses[name] = float(simclr(*views))
    assert min(losses, key=losses.get) == "gauss_newton"


@pytest.mark.parametrize("loss", [loss for loss in GRADIENT_LOSSES if loss != "simple_contrastive"])
@pytest.mark.parametrize("name", ["identity", "kernel"])
def test_every_loss_begins_with_the_same_value_in_all_coordinates(name, loss):
    """So that penalties, constraints and what a loss takes from the kernel's space are the same in both."""
    options = {"steps": replace(ONE, optimizer=Adam(1e-12)), "ridge": 0.3, "n_components": 4}
    a, b = fitted("white", loss, **options), fitted(name, loss, **options)
    assert a.loss_ == pytest.approx(b.loss_, rel=1e-6)
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-6)


@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("is_given", [False, True])
def test_kept_features_are_those_of_the_views_that_sums_are_made_of(is_raw, is_given):
    landmarks = torch.from_numpy(X[:20])
    centers = Centers(Gaussian(1.5), [landmarks])
    coordinates = Coordinates(centers, torch.randn(20, 7, dtype=torch.float64), landmarks[:, 0])
    coordinates = coordinates.raw() if is_raw else coordinates
    source = GivenViews(VIEWS) if is_given else DrawnViews(X, GaussianNoise(0.1), 2, seed=3)
    rows = torch.tensor([5, 199, 0, 5])
    kept = kept_features(coordinates, source)(rows, torch.Generator())
    views = [torch.cat(parts) for parts in zip(*source.chunks(landmarks), strict=True)]
    for Z, view in zip(kept, views, strict=True):
        torch.testing.assert_close(Z, coordinates.map()([view])[0][rows])
    if is_given:
        for Z, other in zip(kept, drawn_features(coordinates, source)(rows, torch.Generator()), strict=True):
            torch.testing.assert_close(Z, other)


def test_coordinates_lead_to_white_ones_and_back():
    landmarks = torch.from_numpy(X[:20])
    kernel = Gaussian(1.5)
    values, U = torch.linalg.eigh(kernel.matrix(landmarks))
    coordinates = Coordinates(Centers(kernel, [landmarks]), U * values.rsqrt(), None)
    W = torch.randn(20, 3, dtype=torch.float64)
    raw = coordinates.raw()
    A = raw.from_white(W)
    assert coordinates.from_white(W) is W
    assert coordinates.to_white(W) is W
    torch.testing.assert_close(raw.to_white(A), W)
    torch.testing.assert_close(raw.gram(A), W.T @ W)
    torch.testing.assert_close(raw.squared_norm(A), W.square().sum())
    torch.testing.assert_close(coordinates.map()([landmarks])[0] @ W, raw.map()([landmarks])[0] @ A)


def test_given_views_need_not_be_mapped_twice():
    """With views that are there, keeping their features changes nothing but the time it takes."""
    steps = replace(PLAIN, epochs=3, batch_size=64, optimizer=Adam(1e-2))
    a, b = (fitted("white", "simclr", replace(steps, redraw=redraw)) for redraw in (True, False))
    np.testing.assert_allclose(a.coefficients_, b.coefficients_, rtol=1e-9, atol=1e-9)


def test_views_drawn_once_are_the_same_in_all_epochs():
    options = {**OPTIONS, "augment": GaussianNoise(0.3)}
    for redraw in (True, False):
        solver = replace(PLAIN, epochs=2, batch_size=200, optimizer=Adam(1e-12), redraw=redraw)
        model = KernelEmbedding("simclr", solver=solver, **options).fit(X)
        first, second = (record["loss"] for record in model.history_)
        assert (first == pytest.approx(second, rel=1e-7)) == (not redraw)


@pytest.mark.parametrize("name", ["kernel", "gauss_newton"])
def test_a_fit_that_was_killed_ends_as_one_that_was_not(name, tmp_path, monkeypatch):
    steps = replace(PLAIN, epochs=5, batch_size=64, optimizer=SGD(0.5), preconditioner=name)
    options = {**OPTIONS, "augment": GaussianNoise(0.1)}
    through = KernelEmbedding("barlow_twins", solver=steps, **options).fit(X)
    model = KernelEmbedding("barlow_twins", solver=replace(steps, checkpoint=tmp_path / "steps"), **options)
    with killed_at(30, GaussianNoise, monkeypatch):
        model.fit(X)
    assert (tmp_path / "steps").exists()
    resumed = model.fit(X)
    assert (resumed.coefficients_ == through.coefficients_).all()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"preconditioner": "newton"}, "preconditioner='newton'.*'white'"),
        ({"preconditioner": "gauss_newton", "loss": "vicreg"}, "loss='vicreg'.*'barlow_twins', 'simclr'"),
        ({"preconditioner": "kernel", "loss": "simple_contrastive"}, "preconditioner='kernel'.*'white'"),
        ({"redraw": "once"}, "redraw='once'.*True or False"),
    ],
)
def test_bad_input_is_named(options, says):
    loss = options.pop("loss", "simclr")
    with pytest.raises(ValueError, match=says):
        KernelEmbedding(loss, solver=Steps(**options), **OPTIONS).fit(X)
