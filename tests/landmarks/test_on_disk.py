"""K_nm in a file: equal to the matrix, made once, resumed after a kill, never taken for another's."""

import json

import numpy as np
import pytest

from mercer import KernelDiscriminant, KernelEmbedding, Nystrom
from mercer.exceptions import InvalidParameterError
from mercer.kernels import Custom, Gaussian, NeuralTangent, Precomputed
from mercer.landmarks import kernel_matrix_on_disk, on_disk
from mercer.networks import MLP
from tests.examples_of import labeled, numbers, same_up_to_signs

X = numbers(20, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_matrix_and_is_made_once(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr(on_disk, "MOST_ROWS", 7)
    rows, path = X.astype(dtype), tmp_path / "k.npy"
    kernel = NeuralTangent(MLP(3, (5,)))
    K = kernel_matrix_on_disk(kernel, rows, rows[:6], path)
    assert isinstance(K, np.memmap)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, kernel.matrix(rows, rows[:6]), rtol=1e-5)
    monkeypatch.setattr(NeuralTangent, "values", None)
    again = kernel_matrix_on_disk(kernel, rows, rows[:6], path)
    assert (again == K).all()


def test_goes_on_where_it_was_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "MOST_ROWS", 5)
    path, calls = tmp_path / "k.npy", []

    def product(x, z):
        calls.append(len(x))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return x @ z.T

    kernel = Custom(product)
    with pytest.raises(KeyboardInterrupt):
        kernel_matrix_on_disk(kernel, X, X[:4], path)
    K = kernel_matrix_on_disk(kernel, X, X[:4], path)
    assert calls == [5, 5, 5, 5, 5]
    np.testing.assert_allclose(K, X @ X[:4].T)


def test_another_kernel_other_rows_and_other_landmarks_are_worked_out_anew(tmp_path):
    path = tmp_path / "k.npy"
    for kernel, rows, m in (
        (Gaussian(1.0), X, 4),
        (Gaussian(2.0), X, 4),
        (Gaussian(2.0), X + 1, 4),
        (Gaussian(2.0), X + 1, 5),
        (NeuralTangent(MLP(3, (5,), random_state=0)), X, 4),
        (NeuralTangent(MLP(3, (5,), random_state=1)), X, 4),
    ):
        K = kernel_matrix_on_disk(kernel, rows, rows[:m], path)
        np.testing.assert_allclose(K, kernel.matrix(rows, rows[:m]), rtol=1e-10)
    assert json.loads((tmp_path / "k.npy.json").read_text())["rows"] == 20
    np.save(tmp_path / "mine.npy", X)
    with pytest.raises(InvalidParameterError, match="mine.npy.* no note beside it"):
        kernel_matrix_on_disk(Gaussian(1.0), X, X[:4], tmp_path / "mine.npy")
    assert (np.load(tmp_path / "mine.npy") == X).all()


def test_precomputed_values_serve_estimators_as_the_kernel_does():
    rows, y = labeled(40)
    kernel = Gaussian(1.5)
    K, K_new = kernel(rows, rows[:12]), kernel(rows[:5] + 0.3, rows[:12])
    direct = Nystrom(kernel, landmarks=np.arange(12), n_components=4).fit(rows)
    given = Nystrom("precomputed", n_components=4).fit(K)
    same_up_to_signs(given.transform(K_new), direct.transform(rows[:5] + 0.3))
    options = {"landmarks": np.arange(12), "n_components": 3, "random_state": 0}
    direct = KernelEmbedding("kernel_pca", kernel, **options).fit(rows)
    given = KernelEmbedding("kernel_pca", Precomputed(), **options).fit(K)
    same_up_to_signs(given.transform(K_new), direct.transform(rows[:5] + 0.3), atol=1e-5)
    low_rank = K @ np.linalg.solve(K[:12], K.T)
    whole = KernelDiscriminant("precomputed", random_state=0).fit(low_rank, y)
    given = KernelDiscriminant(Precomputed(K[:12]), random_state=0).fit(K, y)
    np.testing.assert_allclose(given.predict_proba(K), whole.predict_proba(low_rank), atol=1e-4)


def test_the_precomputed_kernel_is_the_kernel_with_landmarks_and_nystrom_elsewhere():
    K = Gaussian(1.5)(X, X[:6])
    kernel = Precomputed(K[:6])
    np.testing.assert_allclose(kernel(K, K[:6]), K, atol=1e-10)
    np.testing.assert_allclose(kernel(K), K @ np.linalg.solve(K[:6], K.T), atol=1e-10)
    np.testing.assert_allclose(kernel.diagonal(K), np.diag(kernel(K)))
    assert kernel == Precomputed().resolved(K)
    assert kernel != Precomputed(2 * K[:6])


BAD = {
    "not_first": (lambda: Precomputed().resolved(Gaussian(1.0)(X, X[3:9])), "landmark_matrix=None .* first 6 rows"),
    "too_few": (lambda: Precomputed().resolved(X[:2]), r"X has shape \(2, 3\)"),
    "unresolved": (lambda: Precomputed()(X), r"landmark_matrix=None .*resolved\(X\)"),
    "shape": (lambda: Precomputed(np.eye(4))(X), r"landmark_matrix=.*\(4, 4\).* \(3, 3\)"),
    "metric": (lambda: Precomputed(np.eye(3)).with_metric([1.0, 2.0, 3.0]), "metric=.* None for a Precomputed"),
    "wide": (lambda: Nystrom("precomputed").fit(X[:2]), r"shape \(2, 3\).*\(n, m\) with the m landmarks first"),
}


@pytest.mark.parametrize(("act", "message"), BAD.values(), ids=BAD.keys())
def test_errors_say_what_is_wrong(act, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        act()


def test_precomputed_values_have_no_derivatives():
    with pytest.raises(TypeError, match="Precomputed kernel has no derivatives"):
        Precomputed(np.eye(3)).gradient_weights(X)
