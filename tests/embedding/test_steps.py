"""Steps as a solver: rows that are left out, the guard of the start, and fits that fail."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer import KernelEmbedding
from mercer.embedding import Exact, Steps
from mercer.embedding.neutral import embedded, head_loss, statistics_of
from mercer.embedding.steps import split_rows
from mercer.embedding.trained_map import TrainedMap
from mercer.kernels import Gaussian
from mercer.losses import simclr, spectral_contrastive
from mercer.training import SGD, Adam, Cosine
from mercer.training.checkpoint import Checkpoint
from mercer.views import GaussianNoise
from tests.examples_of import numbers
from tests.killing import killed_at

X = numbers(100, 3)
VIEWS = [X + 0.2 * numbers(100, 3, seed=1 + j) for j in range(2)]
OPTIONS = {"kernel": Gaussian(1.5), "bandwidth": None, "n_landmarks": 25, "n_components": 4, "random_state": 0}
STEPS = Steps(epochs=6, batch_size=45, optimizer=Adam(1e-2), schedule=Cosine(0.0))


def fitted(loss="simclr", **options):
    return KernelEmbedding(loss, **{**OPTIONS, "solver": STEPS, **options}).fit_views(*VIEWS)


def epochs(model):
    return [record for record in model.history_ if "epoch" in record]


def test_the_criterion_is_the_loss_of_rows_that_no_step_has_seen():
    model = fitted(solver=replace(STEPS, guard=False), ridge=0.01)
    seen, left_out = split_rows(100, 0.1, model.seed_)
    assert (len(seen), len(left_out)) == (90, 10)
    assert not set(seen) & set(left_out)
    A = model.coefficients_
    penalty = 0.01 * np.trace(A.T @ model.kernel_.matrix(model.landmarks_) @ A)
    loss = float(simclr(*(torch.from_numpy(model.transform(view[left_out])) for view in VIEWS)))
    assert_allclose(model.loss_, loss + penalty, rtol=1e-6)
    assert model.loss_ == min(record["criterion"] for record in epochs(model))
    # What is left out has no part in the steps: other numbers there lead to the same steps.
    changed = [view.copy() for view in VIEWS]
    for view in changed:
        view[left_out] += 0.1
    options = {**OPTIONS, "landmarks": X[seen][:25], "n_landmarks": None, "bias": "none"}
    same = [
        KernelEmbedding("simclr", solver=replace(STEPS, guard=False), **options).fit_views(*views)
        for views in (VIEWS, changed)
    ]
    assert [r["loss"] for r in epochs(same[0])] == [r["loss"] for r in epochs(same[1])]
    assert [r["criterion"] for r in epochs(same[0])] != [r["criterion"] for r in epochs(same[1])]


def test_few_rows_are_all_trained_on():
    assert len(split_rows(40, 0.1, 0)[1]) == 0
    assert len(split_rows(100, 0.0, 0)[1]) == 0


def test_patience_ends_it_by_the_rows_left_out():
    wild = replace(STEPS, epochs=40, optimizer=Adam(1.0), patience=3, guard=False)
    model = fitted(solver=wild)
    criteria = [record["criterion"] for record in epochs(model)]
    assert len(criteria) < 40
    assert int(np.argmin(criteria)) == len(criteria) - 4


def test_the_start_is_kept_where_steps_have_not_helped():
    """A loss that pulls all rows together is lowered, and tells no row from another."""

    def together(first, second):
        return first[:, 1:].square().mean() + (first - second).square().mean() - first[:, 0].mean()

    start = fitted(solver=replace(STEPS, epochs=1, optimizer=Adam(1e-12)))
    spoiled = replace(STEPS, epochs=60, optimizer=Adam(3e-2))
    kept = fitted(together, solver=spoiled)
    assert kept.history_[-1]["kept"] == "start"
    assert_allclose(kept.coefficients_, start.coefficients_, atol=1e-9)
    assert not np.allclose(fitted(together, solver=replace(spoiled, guard=False)).coefficients_, start.coefficients_)


def test_the_guard_judges_by_a_head_found_on_other_rows():
    """By the formula, on embeddings: the spectral optimum of some rows, its loss on others."""
    F = [torch.from_numpy(numbers(80, 5, seed=j) + 2.0 * numbers(80, 5, seed=9)) for j in (1, 2)]
    W = torch.from_numpy(numbers(5, 3, seed=4))
    seen, unseen = (statistics_of([f[rows] for f in F]) for rows in (slice(50), slice(50, 80)))
    found = head_loss(embedded(seen, W), embedded(unseen, W), ridge=0.1)
    Z = [f @ W for f in F]
    means = [torch.cat([z[rows] for z in Z]).mean(dim=0) for rows in (slice(50), slice(50, 80))]
    a, b = (z[:50] - means[0] for z in Z)
    second, cross = (a.T @ a + b.T @ b) / 100, (a.T @ b + b.T @ a) / 100
    values, Q = torch.linalg.eigh(second + 0.1 * torch.linalg.eigvalsh(second)[-1] * torch.eye(3))
    root = Q / values.sqrt() @ Q.T
    rho, V = torch.linalg.eigh(root @ cross @ root)
    H = root @ V * rho.clamp(min=0.0).sqrt()
    expected = float(spectral_contrastive(*((z[50:] - means[1]) @ H for z in Z)))
    assert found == pytest.approx(expected, rel=1e-6)
    # Turned and scaled as a whole, an embedding says the same.
    turn = 3.0 * torch.linalg.qr(torch.from_numpy(numbers(3, 3, seed=7)))[0]
    assert head_loss(embedded(seen, W @ turn), embedded(unseen, W @ turn), 0.1) == pytest.approx(found)


def test_features_are_kept_where_memory_allows(monkeypatch):
    options = {**OPTIONS, "augment": GaussianNoise(0.3)}
    solver = replace(STEPS, epochs=2, batch_size=100, optimizer=Adam(1e-12), validation_fraction=0.0)
    for most, drawn_once in ((2**30, True), (100, False)):
        monkeypatch.setattr("mercer.embedding.steps.MOST_KEPT", most)
        first, second = (r["loss"] for r in epochs(KernelEmbedding("simclr", solver=solver, **options).fit(X)))
        assert (first == pytest.approx(second, rel=1e-7)) == drawn_once


@pytest.mark.parametrize("loss", ["simclr", "simple_contrastive", "vicreg"])
@pytest.mark.parametrize("bias", ["centered", "learned"])
def test_a_training_that_was_killed_ends_as_one_that_was_not(loss, bias, tmp_path, monkeypatch):
    """Bit for bit, with rows left out, features kept, a bias, and steps under a constraint."""
    whole = fitted(loss, bias=bias)
    solver = replace(STEPS, checkpoint=tmp_path / "fit")
    usual, calls = TrainedMap.batch_loss, []

    def dies(self, rows, generator):
        calls.append(rows)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return usual(self, rows, generator)

    monkeypatch.setattr(Checkpoint, "is_due", lambda self: True)
    with monkeypatch.context() as patch:
        patch.setattr(TrainedMap, "batch_loss", dies)
        with pytest.raises(KeyboardInterrupt):
            fitted(loss, bias=bias, solver=solver)
    resumed = fitted(loss, bias=bias, solver=solver)
    np.testing.assert_array_equal(resumed.coefficients_, whole.coefficients_)
    np.testing.assert_array_equal(resumed.bias_, whole.bias_)
    assert resumed.history_ == whole.history_


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 3},
        {"batch_size": 30},
        {"optimizer": SGD(0.5)},
        {"optimizer": Adam(1e-2, weight_decay=1.0)},
        {"schedule": Cosine(2.0)},
        {"schedule": Cosine(0.0, final=1.0)},
        {"preconditioner": "identity"},
        {"start": "spectral"},
        {"validation_fraction": 0.3},
    ],
)
def test_no_parameter_is_dead(change):
    plain = replace(STEPS, guard=False)
    assert not np.allclose(fitted(solver=plain).transform(X), fitted(solver=replace(plain, **change)).transform(X))


def test_small_data_have_more_epochs():
    assert Steps().recipe(5).n_epochs == 80
    assert Steps().recipe(211).n_epochs == 20
    assert Steps(epochs=3).recipe(5).n_epochs == 3


@pytest.mark.parametrize("failing", ["loss", "kill"])
def test_a_fit_that_fails_leaves_the_old_one_usable(failing, monkeypatch):
    model = KernelEmbedding("simclr", augment=GaussianNoise(0.1), **OPTIONS, solver=replace(STEPS, epochs=1)).fit(X)
    before, known = model.transform(X), set(vars(model))
    if failing == "loss":
        model.set_params(loss=lambda *views: views[0])
        with pytest.raises(ValueError, match="scalar"):
            model.fit(X[:, :2])
    else:
        with killed_at(4, GaussianNoise, monkeypatch):
            model.fit(X[:, :2])
    np.testing.assert_array_equal(model.transform(X), before)
    assert set(vars(model)) == known
    stream = KernelEmbedding(solver=Exact(), augment=GaussianNoise(0.1), **OPTIONS).partial_fit(X)
    rows = [fold.n_rows for fold in stream.moments_]
    with pytest.raises(ValueError, match="features"):
        stream.partial_fit(X[:, :2])
    assert [fold.n_rows for fold in stream.moments_] == rows
