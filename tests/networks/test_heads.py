"""What rows go through before a network sees them: few rows of many columns enter in their span."""

import numpy as np
import pytest
from torch import nn

import mercer
from mercer.networks import heads
from mercer.networks.heads import Entrance, standardization
from mercer.training import Recipe
from tests.examples_of import numbers

ROWS = 3.0 + numbers(6, 40) * np.linspace(0.1, 2.0, 40)
FEW = Recipe(n_epochs=2, keep="last")


@pytest.fixture
def small_bound(monkeypatch):
    """Let 40 columns be many."""
    monkeypatch.setattr(heads, "MOST_COLUMNS", 39)


def seen(entrance, X):
    rows = (X - entrance.center) / entrance.scale
    return rows if entrance.span is None else rows @ entrance.span


@pytest.mark.parametrize("by_column", [True, False])
@pytest.mark.parametrize("rows", [ROWS, np.vstack([ROWS, ROWS[:2]])], ids=["independent", "repeated"])
def test_the_span_keeps_all_angles_of_the_rows_and_the_size_of_their_entries(rows, by_column, small_bound):
    entrance = Entrance.learned(rows, (40,), by_column, None)
    Z, whole = seen(entrance, rows), (rows - entrance.center) / entrance.scale
    assert Z.shape[1] == np.linalg.matrix_rank(rows / entrance.scale) <= 6
    assert entrance.shape_seen((40,)) == Z.shape[1:]
    np.testing.assert_allclose(Z @ Z.T, whole @ whole.T * Z.shape[1] / 40, rtol=1e-8, atol=1e-10)
    assert np.mean(Z**2) == pytest.approx(np.mean(whole**2))


@pytest.mark.parametrize("backbone", [nn.Linear(40, 2), "resnet18"])
def test_networks_that_want_samples_as_they_are_get_them(backbone, small_bound):
    assert Entrance.learned(ROWS, (40,), True, backbone).span is None


def test_other_rows_enter_as_they_are(monkeypatch):
    for rows, bound in ((ROWS, 40), (numbers(60, 40), 39)):
        monkeypatch.setattr(heads, "MOST_COLUMNS", bound)
        center, scale, span = Entrance.learned(rows, (40,), True, None)
        assert span is None
        np.testing.assert_array_equal((center, scale), standardization(rows, (40,)))


@pytest.mark.parametrize("backbone", [None, "mlp"])
@pytest.mark.parametrize("name", ["MCR2", "ManifoldClustering", "NMCE"])
def test_no_layer_is_as_wide_as_a_wide_table(name, backbone, small_bound, tmp_path):
    options = {"hidden": 4, "backbone": backbone, "recipe": FEW, "random_state": 0}
    if name == "MCR2":
        model = mercer.MCR2(n_components=3, **options).fit(ROWS, [0, 1] * 3)
    else:
        model = getattr(mercer, name)(2, n_components=3, start_recipe=FEW, **options).fit(ROWS)
    layers = [w for key, w in model.weights_.items() if w.ndim == 2 and key != "span"]
    assert max(layer.shape[1] for layer in layers) <= (6 if backbone is None else 512)
    assert not any(40 in layer.shape for layer in layers)
    # New rows count by their part in the span alone, and files bring it back.
    aside = np.linalg.svd(ROWS / model.weights_["scale"])[2][-1] * model.weights_["scale"]
    np.testing.assert_allclose(model.transform(ROWS + aside), model.transform(ROWS), atol=1e-5)
    mercer.save(model, tmp_path / "model")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model").transform(ROWS), model.transform(ROWS))
