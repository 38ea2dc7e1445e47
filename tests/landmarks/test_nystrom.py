"""Nyström features: exact with all rows as landmarks, the best of their rank on the landmarks, honest in float32."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA

from mercer import Mahalanobis, Nystrom
from mercer.exceptions import DataWarning
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.landmarks import METHODS
from mercer.landmarks.features import landmark_features, principal_coefficients
from tests.examples_of import KERNELS, METRICS, numbers


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:300] / 16.0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_rows_as_landmarks_are_exact(kernel, metric):
    X = numbers(30, 4)
    kernel = KERNELS[kernel].with_metric(METRICS[metric](4))
    features = Nystrom(kernel, n_landmarks=30).fit_transform(X)
    K = kernel.matrix(X)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-7 * np.abs(K).max())


def test_naive_twin(digits):
    """K_nm U_h Lambda_h^-1/2 as section 3.1 of the paper writes it."""
    model = Nystrom(Gaussian(2.0), n_landmarks=40, n_components=10, random_state=0).fit(digits)
    K_mm = model.kernel_.matrix(model.landmarks_)
    values, U = np.linalg.eigh(K_mm)
    top = np.argsort(-values)[:10]
    naive = model.kernel_.matrix(digits, model.landmarks_) @ U[:, top] / np.sqrt(values[top])
    signs = np.sign((naive * model.transform(digits)).sum(axis=0))
    np.testing.assert_allclose(model.transform(digits), naive * signs, atol=1e-10)
    np.testing.assert_allclose(model.coefficients_.T @ K_mm @ model.coefficients_, np.eye(10), atol=1e-10)


def test_is_the_best_approximation_of_its_rank_on_the_landmarks(digits):
    model = Nystrom(Gaussian(2.0), n_landmarks=300, n_components=20, random_state=0)
    features = model.fit_transform(digits)
    K = model.kernel_.matrix(digits)
    values, U = np.linalg.eigh(K)
    np.testing.assert_allclose(features @ features.T, (U[:, -20:] * values[-20:]) @ U[:, -20:].T, atol=1e-9)


def test_linear_kernel_is_principal_components(digits):
    X = digits - digits.mean(axis=0)
    ours = Nystrom(Linear(), n_landmarks=300, n_components=5).fit_transform(X)
    theirs = PCA(5).fit_transform(X)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


def test_agrees_with_uncentered_kernel_pca(digits):
    """Inner products of new rows agree with scikit-learn's KernelPCA on a kernel centered beforehand."""
    K = Gaussian(2.0).matrix(digits)
    C = np.eye(300) - 1 / 300
    ours = Nystrom("precomputed", n_landmarks=300, n_components=8).fit_transform(C @ K @ C)
    theirs = KernelPCA(8, kernel="precomputed").fit_transform(K)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)


@pytest.mark.parametrize("landmarks", METHODS)
def test_more_landmarks_approximate_better(digits, landmarks):
    K = Laplace(4.0).matrix(digits)
    errors = []
    for m in (10, 50, 150, 300):
        features = Nystrom(Laplace(4.0), n_landmarks=m, landmarks=landmarks, random_state=0).fit_transform(digits)
        errors.append(np.linalg.norm(K - features @ features.T))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8


def test_float32_stays_float32_and_close(digits):
    double = Nystrom(Gaussian(2.0), n_landmarks=300).fit_transform(digits)
    single = Nystrom(Gaussian(2.0), n_landmarks=300).fit_transform(digits.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ single.T, double @ double.T, atol=2e-3)


def test_landmarks_given_as_rows_and_as_indices(digits):
    by_index = Nystrom(Gaussian(2.0), landmarks=np.arange(50)).fit(digits)
    by_row = Nystrom(Gaussian(2.0), landmarks=digits[:50]).fit(digits)
    np.testing.assert_allclose(by_index.transform(digits), by_row.transform(digits))
    assert by_row.landmark_indices_ is None
    np.testing.assert_array_equal(by_index.landmarks_, digits[:50])


def test_precomputed_equals_the_kernel(digits):
    kernel = Laplace(3.0)
    direct = Nystrom(kernel, n_landmarks=40, random_state=0).fit(digits[:200])
    given = Nystrom("precomputed", landmarks=direct.landmark_indices_).fit(kernel.matrix(digits[:200]))
    expected = direct.transform(digits[200:])
    np.testing.assert_allclose(given.transform(kernel.matrix(digits[200:], digits[:200])), expected, atol=1e-9)


def test_given_kernel_is_left_alone_and_median_becomes_a_number(digits):
    kernel = Gaussian()
    model = Nystrom(kernel, n_landmarks=10, random_state=0).fit(digits)
    assert kernel.bandwidth == "median"
    assert model.kernel_.bandwidth == pytest.approx(np.median(_distances(digits)), rel=1e-12)
    assert Nystrom(kernel, n_landmarks=10, bandwidth=3.0).fit(digits).kernel_.bandwidth == 3.0


def _distances(X):
    differences = X[:, None] - X[None]
    r = np.sqrt((differences**2).sum(-1))[np.triu_indices(len(X), 1)]
    return np.sort(r)[: len(r) - (len(r) + 1) % 2]  # torch takes the lower of two middle values


def test_working_memory_changes_nothing(digits):
    small = Nystrom(Gaussian(2.0), n_landmarks=40, random_state=0, working_memory=0.01).fit_transform(digits)
    large = Nystrom(Gaussian(2.0), n_landmarks=40, random_state=0, working_memory=1e3).fit_transform(digits)
    np.testing.assert_allclose(small, large, atol=1e-10)


def test_learned_metric_goes_in(digits):
    weights = np.random.default_rng(0).random(64)
    metric = Mahalanobis.from_weights(weights)
    with_metric = Nystrom(Gaussian(2.0, metric=metric), landmarks=np.arange(30)).fit_transform(digits)
    scaled = Nystrom(Gaussian(2.0), landmarks=np.arange(30)).fit_transform(digits * np.sqrt(weights))
    np.testing.assert_allclose(with_metric, scaled, atol=1e-10)


def test_bias_is_added():
    Z = torch.from_numpy(numbers(4, 2))
    A = principal_coefficients(Gaussian(1.0).matrix(Z))
    bias = torch.arange(4.0, dtype=torch.float64)
    plain = landmark_features(Gaussian(1.0), Z, Z, A)
    torch.testing.assert_close(landmark_features(Gaussian(1.0), Z, Z, A, bias), plain + bias)


def test_rank_is_what_the_data_have():
    X = np.repeat(numbers(5, 2), 4, axis=0)
    assert Nystrom(Gaussian(1.0)).fit(X).coefficients_.shape == (5, 5)
    with pytest.warns(
        DataWarning, match="n_components=4, but the kernel matrix of the 5 landmarks has numerical rank 2"
    ):
        Nystrom(Linear(), n_components=4).fit(X)
    with pytest.warns(DataWarning, match="n_landmarks=30, but the 20 rows hold only 5 distinct"):
        Nystrom(Gaussian(1.0), n_landmarks=30).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks=0 is not allowed: .*at least 1"),
        ({"n_landmarks": 2.5}, "n_landmarks=2.5 is not allowed: .*whole number"),
        ({"n_landmarks": 5, "n_components": 6}, r"n_components=6 is not allowed: .*at most 5 \(n_landmarks\)"),
        ({"kernel": "rbf"}, "kernel='rbf' is not allowed: kernel must be one of 'gaussian', 'laplace'"),
        ({"kernel": Gaussian(0.0)}, "bandwidth=0.0 is not allowed: .*above 0"),
        ({"bandwidth": -1.0}, "bandwidth=-1.0 is not allowed: .*above 0"),
        ({"bandwidth": "mean"}, "bandwidth='mean' is not allowed: .*'median'"),
        ({"landmarks": "grid"}, r"landmarks='grid' is not allowed: .*'uniform', 'kmeans\+\+'"),
        ({"landmarks": np.array([0, 99])}, "landmarks=.* is not allowed: .*row indices from 0 to 19"),
        ({"landmarks": np.zeros((3, 5))}, r"landmarks='array of shape \(3, 5\)' is not allowed: .*\(m, 4\)"),
        ({"working_memory": 0.0}, "working_memory=0.0 is not allowed: .*above 0"),
        ({"kernel": "precomputed"}, r"landmark_matrix=None is not allowed: .*X has shape \(20, 4\)"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        Nystrom(**params).fit(numbers(20, 4))
