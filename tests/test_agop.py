"""Gradients and their outer products, against autograd and against the definition."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.agop import agop, predictor_gradients
from mercer.kernels import Custom, Gaussian, Laplace, Linear
from mercer.mahalanobis import Mahalanobis
from tests import naive
from tests.examples_of import DIFFERENTIABLE, METRICS


def data(n=17, m=11, d=4, outputs=None, seed=0):
    random = np.random.default_rng(seed)
    shape = (m,) if outputs is None else (m, outputs)
    return random.normal(size=(n, d)), random.normal(size=(m, d)), random.normal(size=shape)


@pytest.mark.parametrize(("n", "outputs"), [(5, 1), (5, 2), (2, 2)])  # more rows than columns, and fewer
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kernel", DIFFERENTIABLE)
def test_gradients_and_agop_equal_autograd(kernel, metric, n, outputs):
    X, Z, alpha = data(n=n, m=4, d=3, outputs=outputs)
    k = DIFFERENTIABLE[kernel].with_metric(METRICS[metric](X.shape[1]))
    gradients = predictor_gradients(k, X, Z, alpha)
    np.testing.assert_allclose(gradients, naive.gradients(k, X, Z, alpha), rtol=1e-9, atol=1e-9)
    M = agop(k, X, Z, alpha)
    np.testing.assert_allclose(M, naive.agop(k, X, Z, alpha), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(agop(k, X, Z, alpha, diagonal=True), np.diag(M), rtol=1e-9, atol=1e-12)
    first = predictor_gradients(k, X, Z, alpha[:, 0])
    np.testing.assert_allclose(first, gradients[:, 0], rtol=1e-9, atol=1e-12)


def test_kernels_whose_terms_have_their_own_metrics():
    X, Z, alpha = data(n=6, m=5, outputs=2)
    k = Gaussian(1.0, metric=Mahalanobis(np.array([1.0, 0.0, 2.0, 1.0]))) + Laplace(2.0) * Gaussian(3.0)
    np.testing.assert_allclose(agop(k, X, Z, alpha), naive.agop(k, X, Z, alpha), rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 30), m=st.integers(1, 30), d=st.integers(1, 5), memory=st.floats(1e-5, 1e-2))
def test_blocks_change_nothing(n, m, d, memory):
    X, Z, alpha = data(n, m, d)
    k = Laplace(1.5)
    whole = predictor_gradients(k, X, Z, alpha)
    np.testing.assert_allclose(predictor_gradients(k, X, Z, alpha, working_memory=memory), whole, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(agop(k, X, Z, alpha, working_memory=memory), whole.T @ whole / n, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_laplace_at_its_own_centers_and_their_duplicates(dtype, metric):
    """A center at the point itself, and any copy of it, add nothing; the others add what they do in float64."""
    random = np.random.default_rng(1)
    X = np.repeat(random.normal(size=(5, 3)) + 5.0, 2, axis=0).astype(dtype)
    alpha = random.normal(size=(10, 1)).astype(dtype)
    k = Laplace(1.0, metric=METRICS[metric](3))
    gradients = predictor_gradients(k, X, X, alpha)
    assert gradients.dtype == dtype
    np.testing.assert_allclose(gradients, naive.gradients(k, X, X, alpha), rtol=1e-4 if dtype == np.float32 else 1e-9)


def test_the_metric_learned_is_the_truth_for_a_linear_predictor():
    """f(x) = w.x has the gradient w everywhere, so M = w w^T."""
    X, _, _ = data(n=30, d=5)
    w = np.arange(5.0)
    alpha = np.linalg.lstsq(X.T, w, rcond=None)[0]
    np.testing.assert_allclose(agop(Linear(), X, X, alpha), np.outer(w, w), atol=1e-10)


def test_no_array_of_n_by_m_by_d_is_formed():
    """Every tensor that is made stays within the working memory, counted by the allocator."""
    n, d = 2000, 30
    X = torch.randn(n, d, dtype=torch.float64)
    alpha = torch.randn(n, dtype=torch.float64)
    with torch.profiler.profile(profile_memory=True) as profile:
        agop(Laplace(1.0), X, X, alpha, working_memory=8.0)
    largest = max(abs(event.self_cpu_memory_usage) for event in profile.events())
    assert largest <= 8 * 2**20


def test_tensors_in_tensors_out():
    X, Z, alpha = map(torch.from_numpy, data())
    assert isinstance(agop(Gaussian(1.0), X, Z, alpha), torch.Tensor)
    assert isinstance(agop(Gaussian(1.0), X.numpy(), Z.numpy(), alpha.numpy()), np.ndarray)


def test_errors():
    X, Z, alpha = data()
    with pytest.raises(ValueError, match="alpha has 10 rows and Z has 11"):
        agop(Gaussian(1.0), X, Z, alpha[:-1])
    with pytest.raises(ValueError, match="X has 3 columns, but the metric was learned on 4"):
        agop(Gaussian(1.0, metric=Mahalanobis(np.eye(4))), X[:, :3], Z[:, :3], alpha)
    numpy_kernel = Custom(lambda A, B: A.detach().numpy() @ B.detach().numpy().T)
    with pytest.raises(TypeError, match="not differentiable"):
        agop(numpy_kernel, X, Z, alpha)


def test_weights_count_rows_as_often_as_they_say():
    X, Z, alpha = data(n=8)
    counts = np.array([1, 2, 0, 3, 1, 1, 2, 1])
    weighted = agop(Laplace(1.0), X, Z, alpha, weights=counts.astype(float))
    np.testing.assert_allclose(weighted, agop(Laplace(1.0), np.repeat(X, counts, axis=0), Z, alpha), rtol=1e-10)


def test_the_precision_is_that_of_the_finer_input():
    X, Z, alpha = data()
    assert predictor_gradients(Gaussian(1.0), X, Z.astype(np.float32), alpha).dtype == np.float64
    assert predictor_gradients(Gaussian(1.0), X.astype(np.float32), Z.astype(np.float32), alpha).dtype == np.float32


def test_outputs_taken_in_turns_change_nothing(monkeypatch):
    X, Z, alpha = data(outputs=5)
    whole = predictor_gradients(Gaussian(1.0), X, Z, alpha)
    monkeypatch.setattr("mercer.kernels.base.MOST_SCALED", 2 * Z.size)
    np.testing.assert_allclose(predictor_gradients(Gaussian(1.0), X, Z, alpha), whole, rtol=1e-12)
