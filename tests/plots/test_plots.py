"""Displays draw what they are given, and say what is wrong otherwise."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

from mercer import KernelDiscriminant, Mahalanobis
from mercer.plots import DiscriminantDisplay, EmbeddingDisplay, MetricDisplay


def test_metric_display_shows_the_matrix_under_its_names():
    M = np.array([[4.0, -2.0], [-2.0, 1.0]])
    display = MetricDisplay.from_metric(Mahalanobis.from_matrix(M), feature_names=["age", "height"])
    np.testing.assert_allclose(display.ax_.images[0].get_array(), M / 4)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["age", "height"]
    display.figure_.canvas.draw()


def test_metric_display_draws_many_inputs_without_names_and_the_identity():
    display = MetricDisplay.from_metric(Mahalanobis(), feature_names=[f"x{i}" for i in range(60)])
    assert display.ax_.get_xlabel() == "input"
    assert display.matrix.shape == (60, 60)


def test_embedding_display_has_one_color_a_class():
    features = np.arange(12.0).reshape(4, 3)
    display = EmbeddingDisplay.from_features(features, ["a", "b", "a", "b"], components=(0, 2))
    points = [collection.get_offsets() for collection in display.ax_.collections]
    np.testing.assert_allclose(points[0], [[0, 2], [6, 8]])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b"]
    assert display.ax_.get_ylabel() == "component 3"
    with pytest.raises(ValueError, match=r"components=\(0, 3\) .*\(4, 3\)"):
        EmbeddingDisplay.from_features(features, components=(0, 3))


def test_displays_draw_onto_given_axes():
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    assert EmbeddingDisplay.from_features(np.zeros((3, 2)), ax=axes[0]).ax_ is axes[0]
    assert MetricDisplay.from_metric(Mahalanobis(), n_features=2, ax=axes[1]).ax_ is axes[1]


@pytest.mark.parametrize(("classes", "n_components", "panels"), [(4, 2, 2), (4, 3, 4), (3, 3, 2), (2, 2, 2)])
def test_discriminant_display_has_a_panel_a_pair_and_the_ratios(classes, n_components, panels):
    random = np.random.default_rng(0)
    y = np.arange(80) % classes
    X = random.normal(size=(80, 4)) + 3 * np.eye(classes, 4)[y]
    model = KernelDiscriminant(ridge=0.1).fit(X, y)
    display = DiscriminantDisplay.from_estimator(model, X, y, n_components=n_components)
    assert len(display.axes_) == panels
    heights = [bar.get_height() for bar in display.axes_[-1].patches]
    np.testing.assert_allclose(heights, model.variance_ratios_)
    display.figure_.canvas.draw()
    DiscriminantDisplay.from_estimator(model, X).figure_.canvas.draw()


def test_discriminant_regions_are_those_of_the_model():
    """With two components the region of a point is the class that the model predicts for it."""
    random = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = random.normal(size=(90, 2)) + 2 * np.array([[0, 0], [2, 0], [0, 2]])[y]
    model = KernelDiscriminant(ridge=0.1).fit(X, y)
    display = DiscriminantDisplay.from_estimator(model, X, y)
    mesh = display.axes_[0].collections[0]
    grid = mesh.get_coordinates()
    region = np.asarray(mesh.get_array()).reshape(grid.shape[0] - 1, grid.shape[1] - 1)
    low, high = grid[0, 0], grid[-1, -1]
    cells = ((display.values - low) / (high - low) * np.array([region.shape[1], region.shape[0]])).astype(int)
    agreement = region[cells[:, 1], cells[:, 0]] == model.predict(X)
    assert agreement.mean() > 0.97
    with pytest.raises(ValueError, match="n_components=4 .*at most 3"):
        display.plot(n_components=4)
