"""The kernel autoencoder: how much of rows left out can be had back from their embeddings."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import mercer
from mercer import KernelEmbedding, Nystrom
from mercer.embedding import Alternate
from mercer.embedding.alternate import Rows, linear_codes
from mercer.embedding.decoder import decoder_without_weights, solved, unexplained
from mercer.kernels import Gaussian
from tests.examples_of import numbers


def explained(X, found, mean):
    return 1.0 - np.square(X - found).sum() / np.square(X - mean).sum()


def spiral(n, seed=0):
    random = np.random.default_rng(seed)
    t = random.uniform(0, 1, n)
    return np.c_[np.cos(4 * np.pi * t), np.sin(4 * np.pi * t), t] + 0.02 * random.normal(size=(n, 3))


def by_both(X, X_test, h, **options):
    """The share of the variance of left-out rows that the autoencoder explains, and that PCA does."""
    model = KernelEmbedding("kernel_autoencoder", n_components=h, random_state=0, **options).fit(X)
    pca = PCA(h).fit(X)
    shares = [explained(X_test, m.inverse_transform(m.transform(X_test)), X.mean(axis=0)) for m in (model, pca)]
    return model, *shares


def test_a_curve_is_followed_where_a_line_cuts_across():
    model, ours, linear = by_both(spiral(400), spiral(200, seed=1), 1, n_landmarks=150)
    assert ours > linear + 0.3
    assert ours > 0.8
    assert model.transform(spiral(10)).shape == (10, 1)


def test_digits_are_had_back_as_well_as_by_principal_components():
    X = load_digits().data
    model, ours, linear = by_both(X[:900], X[900:], 32, n_landmarks=200, solver=Alternate(rounds=1))
    assert ours >= 0.95 * linear
    assert_allclose(model.score(X[900:]), ours - 1.0, atol=2e-2)
    assert model.loss_ < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "mnist"])
def test_rows_left_out_are_had_back(name):
    from experiments.data import prepared

    X, _, X_test, _ = prepared(name, 10_000, 2000, 0)
    _, ours, linear = by_both(X, X_test, 32, n_landmarks=500)
    assert ours >= 0.95 * linear


def test_rounds_lower_the_loss_on_rows_left_out():
    history = KernelEmbedding("kernel_autoencoder", n_components=1, n_landmarks=100, random_state=0).fit(spiral(300))
    *rounds, guard = history.history_
    losses = [record["criterion"] for record in rounds]
    assert len(losses) > 1
    assert guard["kept"] == "rounds"
    assert history.loss_ == min(losses) < losses[0]


def test_principal_components_are_kept_where_no_other_encoder_has_more_of_the_rows():
    X = load_digits().data[:600]
    options = {"n_components": 60, "n_landmarks": 200, "random_state": 0}
    kept, free = (
        KernelEmbedding("kernel_autoencoder", solver=Alternate(rounds=0, guard=guard), **options).fit(X)
        for guard in (True, False)
    )
    start = Nystrom(kept.kernel_, landmarks=kept.landmarks_, n_components=60).fit(X).transform(X)
    codes = kept.transform(X)
    assert_allclose(codes - codes.mean(axis=0), start - start.mean(axis=0), atol=1e-6)
    (guard,) = [record for record in kept.history_ if "kept" in record]
    assert guard["kept"] == "start"
    assert kept.loss_ == guard["loss_of_start"] <= free.loss_ + 0.01
    assert all("kept" not in record for record in free.history_)
    assert free.loss_ != kept.loss_


def test_the_start_is_the_best_under_a_linear_decoder():
    """Reduced-rank ridge regression of x on z: no other encoder and linear decoder of that rank gets lower."""
    Z, X = (torch.from_numpy(numbers(80, d, seed=d)) for d in (12, 6))
    X = X + Z[:, :6] * 2.0
    Z, X = Z - Z.mean(dim=0), X - X.mean(dim=0)
    ridge = 0.3
    values, Q = torch.linalg.eigh(Z.T @ Z / 80)
    W = linear_codes(Rows(Z, X, Z, X), values, Q, ridge, 2)

    def loss(W, V):
        return float((X - Z @ W @ V).square().sum(dim=1).mean() + ridge * (W @ V).square().sum())

    def best_decoder(W):
        F = Z @ W
        return torch.linalg.solve(F.T @ F / 80 + ridge * W.T @ W, F.T @ X / 80)

    best = loss(W, best_decoder(W))
    for seed in range(20):
        other = W + 0.1 * torch.from_numpy(numbers(12, 2, seed=seed))
        assert loss(other, best_decoder(other)) > best


def test_the_decoder_is_a_ridge_regression():
    codes, X = torch.from_numpy(numbers(60, 2)), torch.from_numpy(numbers(60, 3, seed=1))
    empty = decoder_without_weights(codes, 0.5, 3)
    (decoder,) = solved(empty, codes, X, [0.1])
    assert decoder.bandwidth == pytest.approx(0.5 * float(torch.pdist(codes).median()), rel=0.05)
    L = Gaussian(decoder.bandwidth).matrix(codes, decoder.centers)
    F = torch.cat([codes / decoder.scale, L @ decoder.basis], dim=1)
    F_c, X_c = F - F.mean(dim=0), X - X.mean(dim=0)
    weights = torch.linalg.solve(F_c.T @ F_c / 60 + 0.1 * torch.eye(F.shape[1]), F_c.T @ X_c / 60)
    assert_allclose(decoder.rows(codes), X.mean(dim=0) + F_c @ weights, rtol=1e-6, atol=1e-8)
    assert float(unexplained(X, X.mean(dim=0).expand_as(X), X.mean(dim=0))) == pytest.approx(1.0)


def test_it_is_saved_with_its_decoder(tmp_path):
    X = spiral(200)
    model = KernelEmbedding("kernel_autoencoder", n_components=2, n_landmarks=50, random_state=0).fit(X)
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    codes = model.transform(X)
    np.testing.assert_array_equal(again.inverse_transform(codes), model.inverse_transform(codes))
    assert again.score(X) == model.score(X)


def test_only_an_autoencoder_has_rows_back():
    X = spiral(100)
    model = KernelEmbedding(n_landmarks=30, n_components=2, random_state=0).fit(X)
    assert not hasattr(model, "inverse_transform")
    auto = KernelEmbedding("kernel_autoencoder", n_landmarks=30, n_components=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="3 columns, and embeddings have 2"):
        auto.inverse_transform(X)
