"""KernelEmbedding by gradient steps: every loss, the exact optima as a yardstick, starts, resume, and bad input."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits

import mercer
from mercer import KernelEmbedding
from mercer.embedding import Alternate, Exact, Steps
from mercer.embedding.starts import STARTS
from mercer.embedding.trained_losses import GRADIENT_LOSSES, PURE, views_needed
from mercer.exceptions import ModelFileError
from mercer.kernels import Gaussian
from mercer.losses import BYOL, FromEmbeddings, simclr, spectral_contrastive
from mercer.training import Adam, Cosine
from mercer.views import GaussianNoise
from tests.killing import killed_at

X = load_digits().data[:200] / 16.0
# All rows are trained on: what is left out is tested in test_steps.py.
FEW = Steps(epochs=3, batch_size=64, optimizer=Adam(1e-2), schedule=Cosine(0.0), validation_fraction=0.0, redraw=True)
STILL = replace(FEW, epochs=1, optimizer=Adam(1e-9))
OPTIONS = {
    "kernel": Gaussian(1.5),
    "bandwidth": None,
    "augment": GaussianNoise(0.1),
    "n_landmarks": 40,
    "n_components": 5,
    "random_state": 0,
    "solver": FEW,
}


def fitted(loss="simclr", rows=X, **options):
    return KernelEmbedding(loss, **{**OPTIONS, **options}).fit(rows)


def epochs(model):
    return [record for record in model.history_ if "epoch" in record]


def gram(model):
    """A^T K_mm A."""
    A = model.coefficients_.astype(np.float64)
    return A.T @ model.kernel_.matrix(model.landmarks_) @ A


@pytest.mark.parametrize("loss", GRADIENT_LOSSES)
def test_every_loss_is_lowered(loss):
    model = fitted(loss, solver=replace(FEW, epochs=15, optimizer=Adam(3e-3)))
    first, last = epochs(model)[0]["loss"], epochs(model)[-1]["loss"]
    assert len(epochs(model)) == 15
    if loss != "simple_contrastive":  # its start is near its optimum
        assert last < first
    Z = model.transform(X)
    assert Z.shape == (200, 5)
    assert np.isfinite(Z).all()
    assert model.eigenvalues_ == pytest.approx(Z.var(axis=0), rel=0.3)  # over noisy views, and over rows
    assert model.loss_ == min(record["criterion"] for record in epochs(model))


@pytest.mark.parametrize("loss", ["spectral_contrastive", "kernel_pca"])
def test_steps_come_near_the_exact_optimum_and_never_below(loss):
    views = [X + 0.05 * np.random.default_rng(i).normal(size=X.shape) for i in range(2)]
    options = {**OPTIONS, "ridge": 0.0}
    exact = KernelEmbedding(loss, **{**options, "solver": Exact("tikhonov")}).fit_views(*views)
    many = replace(FEW, epochs=400, batch_size=200, optimizer=Adam(3e-2))
    steps = KernelEmbedding(loss, **{**options, "solver": many}).fit_views(*views)
    start = KernelEmbedding(loss, **{**options, "solver": replace(STILL, batch_size=200)}).fit_views(*views)
    assert steps.loss_ >= exact.loss_ - 1e-6 * abs(exact.loss_)
    assert steps.loss_ - exact.loss_ < 0.1 * (start.loss_ - exact.loss_)


def test_the_simple_contrastive_loss_keeps_its_constraint():
    np.testing.assert_allclose(gram(fitted("simple_contrastive")), np.eye(5), atol=1e-5)


def test_the_penalty_is_tikhonovs():
    """A large ridge makes the norm in the kernel's space small, and it is in the loss."""
    small, large = fitted(ridge=0.0), fitted(ridge=10.0)
    assert np.trace(gram(large)) < 0.9 * np.trace(gram(small))
    assert large.ridge_ == 10.0
    start = fitted(ridge=10.0, solver=STILL)
    free = fitted(ridge=0.0, solver=STILL)
    assert start.loss_ - free.loss_ == pytest.approx(10.0 * np.trace(gram(start)), rel=1e-3)


def test_starts():
    models = {start: fitted(solver=replace(STILL, start=start)) for start in STARTS}
    np.testing.assert_allclose(gram(models["principal"]), np.eye(5), atol=1e-5)
    # The landmarks' kernel principal components, as Nystrom has them.
    landmarks = models["principal"].landmarks_
    nystrom = mercer.Nystrom(Gaussian(1.5), landmarks=landmarks, n_components=5).fit(X)
    A, B = models["principal"].coefficients_, nystrom.coefficients_
    np.testing.assert_allclose(np.abs(A), np.abs(B), rtol=1e-4, atol=1e-5)
    # The same, with outputs of variance 1 in the mean.
    scale = nystrom.transform(landmarks).var(axis=0).mean() ** -0.5
    np.testing.assert_allclose(models["standardized"].coefficients_, scale * A, rtol=1e-4, atol=1e-4)
    spectral = KernelEmbedding("spectral_contrastive", **{**OPTIONS, "solver": Exact()}).fit(X)
    np.testing.assert_allclose(models["spectral"].coefficients_, spectral.coefficients_, rtol=1e-4, atol=1e-4)
    other = fitted(solver=replace(STILL, start="random"), random_state=1)
    assert not np.allclose(models["random"].coefficients_, other.coefficients_)


def test_losses_of_directions_alone_learn_the_same_from_a_start_at_any_scale(monkeypatch):
    """Adam's rate goes with the scale: only what asks for a scale of its own, as VICReg does, sees a difference."""
    found = {}
    for loss in ("simclr", "vicreg"):
        scaled = fitted(loss).transform(X)
        with monkeypatch.context() as patched:
            patched.setattr("mercer.embedding.steps.unit_scale", lambda problem, W: 1.0)
            found[loss] = scaled, fitted(loss).transform(X)
    scaled, plain = found["simclr"]
    assert abs(np.corrcoef(scaled.ravel(), plain.ravel())[0, 1]) > 0.999
    far = [abs(np.log(Z.std(axis=0).mean())) for Z in found["vicreg"]]
    assert far[0] < 0.2 < far[1]


@pytest.mark.parametrize(
    "change", [{}, {"n_landmarks": 10}, {"kernel": Gaussian(0.5)}, {"kernel": 9.0 * Gaussian(3.0)}]
)
@pytest.mark.parametrize("bias", ["centered", "none"])
def test_a_random_start_has_outputs_of_variance_one(change, bias):
    """Whatever the kernel, its scale and the number of landmarks are; over the views of the fit."""
    Z = fitted(solver=replace(STILL, start="random"), augment=GaussianNoise(0.0), bias=bias, **change).transform(X)
    np.testing.assert_allclose(Z.var(axis=0), 1.0, rtol=1e-4)


@pytest.mark.parametrize("loss", ["simclr", "byol"])
def test_a_fit_that_was_killed_ends_as_one_that_was_not(loss, tmp_path, monkeypatch):
    whole = fitted(loss)
    path = tmp_path / "fit.checkpoint"
    with killed_at(21, GaussianNoise, monkeypatch):
        fitted(loss, solver=replace(FEW, checkpoint=path))
    assert path.exists()
    resumed = fitted(loss, solver=replace(FEW, checkpoint=path))
    np.testing.assert_array_equal(resumed.coefficients_, whole.coefficients_)
    assert epochs(resumed) == epochs(whole)


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    kept = replace(FEW, checkpoint=path)
    fitted(solver=kept)
    for change in (
        {"n_components": 4},
        {"loss": "vicreg"},
        {"solver": replace(kept, start="random")},
        {"bias": "learned"},
        {"rows": X[::-1]},
        {"ridge": 0.1},
        {"augment": GaussianNoise(0.2)},
        {"kernel": Gaussian(1.6)},
        {"n_views": 3},
    ):
        with pytest.raises((ModelFileError, ValueError), match="checkpoint"):
            fitted(**{"solver": kept, **change})


def test_any_callable_of_the_embeddings_is_a_loss():
    def distance(*views):
        return (views[0] - views[1]).square().mean() - 0.1 * views[0].var(dim=0).mean()

    assert epochs(fitted(distance))[-1]["loss"] < epochs(fitted(distance))[0]["loss"]
    cool, warm = fitted(partial(simclr, temperature=0.05)), fitted("simclr")
    assert not np.allclose(cool.coefficients_, warm.coefficients_)
    np.testing.assert_allclose(fitted(FromEmbeddings(simclr)).coefficients_, warm.coefficients_)
    generator = torch.Generator().manual_seed(0)
    small = BYOL(5, generator=generator, hidden=8)
    assert np.isfinite(fitted(small).coefficients_).all()


def test_negatives_may_be_drawn():
    all_pairs, drawn = (fitted(FromEmbeddings(spectral_contrastive, negatives=which)) for which in ("all", "drawn"))
    assert not np.allclose(all_pairs.coefficients_, drawn.coefficients_)


def test_views_that_are_given_are_trained_on():
    views = [X, X + 0.1]
    model = KernelEmbedding("barlow_twins", **OPTIONS).fit_views(*views)
    again = KernelEmbedding("barlow_twins", **OPTIONS).fit_views(*views)
    np.testing.assert_array_equal(model.coefficients_, again.coefficients_)
    assert epochs(model)[-1]["loss"] < epochs(model)[0]["loss"]


@pytest.mark.parametrize("loss", PURE)
def test_scores_are_losses_of_batches(loss):
    model = fitted(loss)
    assert np.isfinite(model.score(X))
    model.set_params(solver=replace(FEW, batch_size=200))
    Z = [torch.from_numpy(np.asarray(model.transform(X)))] * 2
    assert model.score(X) < -float(PURE[loss](*Z)) + 10.0  # of noisy views, and of the same order


def test_the_loss_decides_how_many_views_are_needed():
    assert [views_needed(loss) for loss in ("simclr", "kernel_pca", "kernel_autoencoder", simclr)] == [2, 1, 1, 2]
    assert views_needed(FromEmbeddings(simclr, min_views=3)) == 3


def test_progress_is_shown_by_scikit_learns_callbacks(capsys):
    model = KernelEmbedding("simclr", **OPTIONS).set_callbacks(ProgressBar())
    np.testing.assert_array_equal(model.fit(X).coefficients_, fitted().coefficients_)
    shown = capsys.readouterr()
    assert "epoch" in (shown.out + shown.err).lower() or "fit" in (shown.out + shown.err).lower()
    KernelEmbedding("kernel_pca", n_landmarks=20).set_callbacks(ProgressBar()).fit(X)  # exact: nothing to show


def test_models_are_saved_with_their_solver(tmp_path):
    model = fitted()
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.solver == FEW


def vector(*views):
    return (views[0] * views[1]).sum(dim=1)


BAD = {
    "loss": (lambda: {"loss": "moco"}, "loss='moco'.*'spectral_contrastive'.*'simclr'"),
    "solver": (lambda: {"solver": "newton"}, "solver='newton'.*Exact"),
    "no optimum": (lambda: {"solver": Exact()}, "solver=Exact.*loss='simclr', which has no exact optimum"),
    "no autoencoder": (lambda: {"solver": Alternate()}, "solver=Alternate.*loss='simclr'"),
    "no steps": (lambda: {"loss": "kernel_autoencoder"}, "solver=Steps.*Alternate.*loss='kernel_autoencoder'"),
    "regularizer": (lambda: {"solver": Exact("l1")}, "regularizer='l1'.*covariance"),
    "start": (lambda: {"solver": Steps(start="pca")}, "start='pca'.*'principal', 'random', 'spectral'"),
    "epochs": (lambda: {"solver": Steps(epochs=0)}, "epochs=0"),
    "optimizer": (lambda: {"solver": Steps(optimizer="lion")}, "optimizer='lion'.*'adam'"),
    "schedule": (lambda: {"solver": Steps(schedule="cosine")}, "schedule='cosine'.*Cosine"),
    "left out": (lambda: {"solver": Steps(validation_fraction=1.0)}, "validation_fraction=1.0.*below 1"),
    "rounds": (lambda: {"solver": Alternate(rounds=-1)}, "rounds=-1"),
    "negatives": (lambda: {"loss": FromEmbeddings(simclr, negatives="hard")}, "negatives='hard'"),
    "negatives of simclr": (lambda: {"loss": FromEmbeddings(simclr, negatives="drawn")}, "negatives='drawn'.*simclr"),
    "a vector": (lambda: {"loss": vector}, r"vector returned a tensor of shape \(.*scalar"),
    "a batch of one": (lambda: {"solver": replace(FEW, batch_size=1)}, "batch_size=1 .*at least 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        fitted(**options())


def test_what_needs_an_exact_optimum_says_so():
    with pytest.raises(ValueError, match="solver='auto'.*batches.*loss='simclr'"):
        KernelEmbedding("simclr").partial_fit(X)
    with pytest.raises(ValueError, match="loss='byol' has parts beside the embedding.*probe_scorer"):
        fitted("byol").score(X)
