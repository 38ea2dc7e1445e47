"""Every objective learns: on rows with a planted factor the representation finds it, where its start does not."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.embedding.parameters import LOSSES
from mercer.embedding.probes import LabelProbe, ViewProbe
from mercer.exceptions import InvalidParameterError
from mercer.losses import BYOL
from mercer.training import Adam

N = 400
STEPS = Steps(epochs=60, batch_size=100, optimizer=Adam(3e-2), redraw=False)


def planted(seed=0):
    """Two views that share one factor, in one column of six: in the others each view has its own loud numbers."""
    random = np.random.default_rng(seed)
    factor = random.uniform(-1.0, 1.0, N)
    return factor, [np.column_stack([factor, 1.5 * random.normal(size=(N, 5))]) for _ in range(2)]


def curve(seed=0):
    """Rows along a circle with a little noise: where on it one is, is the factor."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 1.5 * np.pi, N)
    return angle, np.column_stack([np.cos(angle), np.sin(angle), 0.1 * random.normal(size=(N, 2))])


def explained(Z, factor):
    """The share of the variance of the factor that a line in the embedding explains on the second half of the rows."""
    F = np.column_stack([np.ones(N), Z])
    half = N // 2
    weights = np.linalg.lstsq(F[:half], factor[:half], rcond=None)[0]
    return 1.0 - np.mean((factor[half:] - F[half:] @ weights) ** 2) / np.var(factor[half:])


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss not in ("kernel_pca", "kernel_autoencoder")])
def test_what_views_share_is_found(loss):
    factor, views = planted()
    options = {"n_landmarks": 100, "n_components": 3, "bandwidth": "median", "kernel": "gaussian", "random_state": 0}
    solver = {} if "contrastive" in loss else {"solver": STEPS}
    objective = loss
    if loss == "byol":
        # The authors' predictor is 4096 wide. From principal components, which are all but orthogonal to the factor
        # here, its target holds it back.
        objective = BYOL(3, generator=torch.Generator().manual_seed(0), hidden=32, rate=0.9)
        solver = {"solver": replace(STEPS, start="random")}
    model = KernelEmbedding(objective, **options, **solver).fit_views(*views)
    still = replace(STEPS, epochs=1, optimizer=Adam(1e-12))
    start = KernelEmbedding("simclr", solver=still, **options).fit_views(*views)
    found, before = (explained(m.transform(views[0]), factor) for m in (model, start))
    assert found > before + 0.2
    assert found > 0.5
    if solver:  # and the guard of the start lets it through
        assert model.history_[-1]["kept"] == "steps"


@pytest.mark.parametrize("loss", ["kernel_pca", "kernel_autoencoder"])
def test_what_rows_vary_along_is_found(loss):
    angle, X = curve()
    model = KernelEmbedding(loss, n_landmarks=100, n_components=2, random_state=0).fit(X)
    assert explained(model.transform(X), angle) > 0.8


def test_a_probe_without_labels_chooses_bandwidth_and_width():
    X = load_digits().data[:400]
    model = KernelEmbedding(image_shape=(8, 8), n_landmarks=80, random_state=0)
    bandwidths = GridSearchCV(model.set_params(n_components=20), {"bandwidth": [4.0, 25.0]}, scoring=ViewProbe(), cv=2)
    assert bandwidths.fit(X).best_params_ == {"bandwidth": 25.0}
    widths = GridSearchCV(model.set_params(bandwidth=25.0), {"n_components": [1, 20]}, scoring=ViewProbe(), cv=2)
    assert widths.fit(X).best_params_ == {"n_components": 20}


def test_probes_are_values():
    X, y = load_digits(return_X_y=True)
    model = KernelEmbedding("kernel_pca", n_landmarks=60, n_components=10, random_state=0).fit(X[:300])
    assert ViewProbe() == ViewProbe(0.01)
    assert ViewProbe()(model, X[300:500]) == ViewProbe()(model, X[300:500])
    assert LabelProbe(0.5)(model, X[300:600], y[300:600]) > 0.6
    with pytest.raises(InvalidParameterError, match="ridge=0"):
        ViewProbe(0.0)
    with pytest.raises(InvalidParameterError, match="labeled=2.0"):
        LabelProbe(2.0)
