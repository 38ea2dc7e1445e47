"""KernelEmbedding on 60 000 rows of 784 columns, 1000 landmarks, 150 components, compared with its matrix products."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import Benchmark, RatioClaim
from benchmarks.kernel_matrix import BANDWIDTH
from mercer import KernelEmbedding

# Rows in a block. The products reuse one array, as the estimator does: new memory for each would make them slower.
ROWS_A_BLOCK = 2048


class Data(NamedTuple):
    """Two views of the same images, as float32 rows, and a fitted embedding."""

    X: np.ndarray
    other_view: np.ndarray
    model: KernelEmbedding


def setup(quick: bool) -> Data:
    n, m, h, side = (2000, 100, 20, 7) if quick else (60_000, 1000, 150, 28)
    random = np.random.default_rng(0)
    X = random.random((n, side * side), dtype=np.float32)
    other = X + 0.1 * random.random(X.shape, dtype=np.float32)
    model = KernelEmbedding(
        bandwidth=BANDWIDTH, n_landmarks=m, n_components=h, image_shape=(side, side), random_state=0
    )
    some = slice(2 * m)
    return Data(X, other, model.set_params(ridge=1e-3).fit_views(X[some], other[some]).set_params(ridge="auto"))


def landmarks_and_coefficients(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(data.model.landmarks_), torch.from_numpy(data.model.coefficients_)


def feature_products(data: Data) -> np.ndarray:
    """Compute X Z^T A in blocks: the matrix products of features."""
    X, (Z, A) = torch.from_numpy(data.X), landmarks_and_coefficients(data)
    out = torch.empty(len(X), A.shape[1])
    scratch = torch.empty(ROWS_A_BLOCK, len(Z))
    for start in range(0, len(X), ROWS_A_BLOCK):
        x = X[start : start + ROWS_A_BLOCK]
        K = torch.mm(x, Z.T, out=scratch[: len(x)])
        torch.mm(K, A, out=out[start : start + len(x)])
    return out.numpy()


def features(data: Data) -> tuple[Data, np.ndarray]:
    return data, data.model.transform(data.X)


def fit_products(data: Data) -> list[torch.Tensor]:
    """Compute the matrix products of a fit on two views: X Z^T of each, and three sums for each half of the rows."""
    views, (Z, _) = [torch.from_numpy(data.X), torch.from_numpy(data.other_view)], landmarks_and_coefficients(data)
    scratch = [torch.empty(ROWS_A_BLOCK, len(Z)) for _ in range(3)]
    sums = [torch.zeros(len(Z), len(Z)) for _ in range(2)]
    for start in range(0, len(data.X), ROWS_A_BLOCK):
        rows = [view[start : start + ROWS_A_BLOCK] for view in views]
        K = [torch.mm(x, Z.T, out=out[: len(x)]) for x, out in zip(rows, scratch, strict=False)]
        K.append(torch.add(*K, out=scratch[2][: len(rows[0])]))
        for k in K:
            middle = len(k) // 2
            for half, total in zip((k[:middle], k[middle:]), sums, strict=True):
                total.addmm_(half.T, half)
    return sums


def unfitted(data: Data) -> KernelEmbedding:
    return KernelEmbedding(**data.model.get_params(deep=False))


def fit_given_views(data: Data) -> KernelEmbedding:
    return unfitted(data).fit_views(data.X, data.other_view)


def fit_drawn_views(data: Data) -> KernelEmbedding:
    return unfitted(data).fit(data.X)


def check(outputs: Mapping[str, Any]) -> None:
    """Raise unless features are A^T k(x) + bias with scikit-learn's kernel, and fits are finite on all landmarks."""
    from sklearn.metrics.pairwise import rbf_kernel

    data, found = outputs["features"]
    model = data.model
    K = rbf_kernel(data.X[:100].astype(float), model.landmarks_.astype(float), gamma=0.5 / BANDWIDTH**2)
    expected = K @ model.coefficients_.astype(float) + model.bias_
    np.testing.assert_allclose(found[:100], expected, rtol=0, atol=1e-3 * np.abs(expected).max())
    for name in ("fit, given views", "fit, drawn views"):
        assert len(outputs[name].coefficients_) == len(model.coefficients_), name
        assert np.isfinite(outputs[name].loss_), name


BENCHMARK = Benchmark(
    "embedding",
    setup,
    {
        "products of features": feature_products,
        "features": features,
        "products of fit": fit_products,
        "fit, given views": fit_given_views,
        "fit, drawn views": fit_drawn_views,
    },
    check=check,
    claims=[
        RatioClaim("features at 80 % of the rate of their products", "products of features", "features", 0.8),
        RatioClaim("given views: fit under 6 x its products", "products of fit", "fit, given views", 1 / 6),
        RatioClaim("views drawn as images: fit under 6 x", "products of fit", "fit, drawn views", 1 / 6),
    ],
)
