"""The lists over which laws run: kernels, metrics, and data of the kinds that break things."""

from functools import partial

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from mercer import Mahalanobis
from mercer.kernels import (
    SHORTHANDS,
    BandwidthKernel,
    Custom,
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    NeuralTangent,
    Polynomial,
    ProductLaplace,
    ProductMatern32,
    RadialKernel,
    RationalQuadratic,
    Scaled,
)
from mercer.losses import OF_VIEWS, barlow_twins
from mercer.training.randomness import global_chance_from

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def rational(X, Z):
    """1 / (1 + |x - z|^2), as a user would write it."""
    return 1.0 / (1.0 + (X[:, None, :] - Z[None, :, :]).square().sum(dim=2))


def columns_network():
    """A network of rows with any number of columns: a convolution over them, and the mean."""
    with global_chance_from(0, torch.device("cpu")):
        body = torch.nn.Conv1d(1, 3, 3, padding=1), torch.nn.Tanh(), torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten()
        return torch.nn.Sequential(torch.nn.Unflatten(1, (1, -1)), *body, torch.nn.Linear(3, 1)).eval()


# Laws run over every kernel that has a name; one that is new comes in by itself, with a bandwidth of 1.1.
ITSELF = {name: kind(1.1) if issubclass(kind, BandwidthKernel) else kind() for name, kind in SHORTHANDS.items()}
KERNELS = ITSELF | {
    "gaussian": Gaussian(1.3),
    "laplace": Laplace(0.9),
    "matern32": Matern32(1.7),
    "matern52": Matern52(0.8),
    "product_laplace": ProductLaplace(1.2),
    "product_matern32": ProductMatern32(1.4),
    "polynomial": Polynomial(degree=2, offset=0.5),
    "rational_quadratic": RationalQuadratic(1.2, alpha=0.7),
    "cubic": Polynomial(degree=3, offset=1.5, scale=0.7),
    "affine": Linear(offset=0.7),
    "sum": Gaussian(0.7) + Linear(),
    "product": Laplace(2.0) * Polynomial(degree=2, offset=1.0),
    "scaled": 2.5 * Matern52(1.1),
    "nested": 0.5 * (Gaussian(1.0) + Laplace(3.0) * (Linear() + 2 * Matern32(0.6))),
    "custom": Custom(rational),
    "tangent": NeuralTangent(columns_network(), random_state=3),
}
DIFFERENTIABLE = {name: kernel for name, kernel in KERNELS.items() if name != "tangent"}
CLOSED_FORM = {name: kernel for name, kernel in DIFFERENTIABLE.items() if name != "custom"}
ONE_PAIR_OF_WEIGHTS = {name: kernel for name, kernel in CLOSED_FORM.items() if kernel.has_gradient_weights}


def is_radial(kernel):
    """Whether a kernel is a function of the distance alone."""
    return is_radial(kernel.kernel) if isinstance(kernel, Scaled) else isinstance(kernel, RadialKernel)


RADIAL = {name: kernel for name, kernel in KERNELS.items() if name == "custom" or is_radial(kernel)}

# Losses of the views' embeddings, those of other parameters than the defaults included.
LOSSES = OF_VIEWS | {"barlow_twins_uncentered": partial(barlow_twins, center=False)}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# name -> function of the number d of inputs
METRICS = {
    "none": lambda d: None,
    "identity": lambda d: Mahalanobis(),
    "diagonal": lambda d: Mahalanobis(np.linspace(0.4, 1.6, d)),
    "full": lambda d: Mahalanobis(numbers(d, d, seed=1)),
    "low_rank": lambda d: Mahalanobis(numbers(d, max(1, d // 2), seed=2)),
}


def _with(change):
    """Return a function of (n, d) that gives standard normal rows with `change` made to them."""
    return lambda n=5, d=3: change(numbers(n, d, seed=3))


def _duplicate(X):
    X[1::2] = X[0]
    return X


def _hold_constant(X):
    X[:, 0] = 4.0
    return X


DATA = {
    "plain": _with(lambda X: X),
    "duplicates": _with(_duplicate),
    "constant_column": _with(_hold_constant),
    "one_row": _with(lambda X: X[:1]),
    "one_column": _with(lambda X: X[:, :1]),
    "offset": _with(lambda X: X + 1e4),
    "large": _with(lambda X: 1e5 * X),
    "small": _with(lambda X: 1e-5 * X),
}


@st.composite
def tables(draw, max_rows=6, max_columns=4):
    """Rows of any scale and offset, some of them equal, some columns constant."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    X = numbers(n, d, seed=draw(st.integers(0, 1000))) * 10.0 ** draw(st.integers(-4, 4))
    X += draw(st.sampled_from([0.0, 1.0, 100.0]))
    X[:, draw(st.lists(st.integers(0, d - 1), max_size=d))] = 1.0
    return X[draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))]


def labeled(n=60, classes=3, seed=0):
    """Rows of three columns in overlapping classes."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return random.normal(size=(n, 3)) + 1.2 * np.eye(classes, 3)[y], y


def same_up_to_signs(A, B, atol=1e-6):
    """Assert that the columns of A and B are equal or opposite."""
    np.testing.assert_allclose(A * np.sign((A * B).sum(axis=0)), B, atol=atol * np.abs(B).max())
