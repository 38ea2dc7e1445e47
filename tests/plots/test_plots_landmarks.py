"""Embeddings by their landmarks: influence, class coverage and ranks, and the figures that show them."""

import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest
import torch

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from mercer import Nystrom
from mercer.exceptions import InvalidParameterError
from mercer.kernels import Gaussian, Linear
from mercer.landmarks.features import landmark_influence
from mercer.metrics import class_coverage, effective_rank, expected_class_coverage, numerical_rank
from mercer.plots import EmbeddingDisplay, SpectrumDisplay, TopLandmarksDisplay
from mercer.plots.style import CATEGORIES
from tests.examples_of import KERNELS, numbers
from tests.plots.test_plots_tables import assert_readable, ticks

ORANGE = CATEGORIES[5].lower()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return Nystrom(Gaussian(2.0), n_landmarks=12, n_components=5, random_state=0).fit(numbers(40, 6))


# influence


@pytest.mark.parametrize("kernel", KERNELS)
def test_influence_naive_twin(kernel):
    X, Z, A = numbers(7, 3), numbers(5, 3, seed=1), numbers(5, 2, seed=2)
    kernel = KERNELS[kernel]
    naive = np.empty((7, 5))
    for i in range(7):
        for l in range(5):
            naive[i, l] = kernel.matrix(X[i : i + 1], Z[l : l + 1])[0, 0] * np.sqrt((A[l] ** 2).sum())
    influence = landmark_influence(kernel, X, Z, A)
    assert type(influence) is np.ndarray
    np.testing.assert_allclose(influence, naive, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(landmark_influence(kernel, X, Z, A, working_memory=1e-4), naive, rtol=1e-9, atol=1e-12)


def test_influence_laws():
    """Rotating the embedding changes nothing, a scale goes through, and a landmark with a zero row has none."""
    X, Z, A = numbers(7, 3), numbers(5, 3, seed=1), numbers(5, 4, seed=2)
    rotation = np.linalg.qr(numbers(4, 4, seed=3))[0]
    plain = landmark_influence(Gaussian(1.0), X, Z, A)
    np.testing.assert_allclose(landmark_influence(Gaussian(1.0), X, Z, A @ rotation), plain, rtol=1e-10)
    np.testing.assert_allclose(landmark_influence(Gaussian(1.0), X, Z, -3 * A), 3 * plain, rtol=1e-10)
    A[2] = 0
    assert not landmark_influence(Gaussian(1.0), X, Z, A)[:, 2].any()


def test_influence_of_tensors_is_a_tensor_of_their_precision():
    X, Z, A = (torch.from_numpy(part).float() for part in (numbers(7, 3), numbers(5, 3, seed=1), numbers(5, 2)))
    influence = landmark_influence(Gaussian(1.0), X, Z, A)
    assert influence.dtype == torch.float32
    expected = landmark_influence(Gaussian(1.0), X.double().numpy(), Z.double().numpy(), A.double().numpy())
    np.testing.assert_allclose(influence.numpy(), expected, rtol=1e-5)
    assert landmark_influence(Gaussian(1.0), X.numpy(), Z.numpy(), A.double().numpy()).dtype == np.float32


def test_influence_needs_a_row_of_coefficients_a_landmark():
    with pytest.raises(InvalidParameterError, match=r"coefficients=\(4, 2\) .*5 landmarks"):
        landmark_influence(Gaussian(1.0), numbers(7, 3), numbers(5, 3), numbers(4, 2))


# class coverage


def naive_coverage(order, labels):
    seen = set()
    for k, i in enumerate(order, start=1):
        seen.add(labels[i])
        if seen == set(labels):
            return k
    raise AssertionError


@pytest.mark.parametrize("seed", range(8))
def test_class_coverage_naive_twin(seed):
    random = np.random.default_rng(seed)
    A, labels = random.normal(size=(30, 4)), random.choice(["cat", "dog", "ship", "frog"], size=30)
    order = sorted(range(30), key=lambda i: -np.sqrt((A[i] ** 2).sum()))
    assert class_coverage(A, labels) == naive_coverage(order, labels)
    assert type(class_coverage(A, labels)) is int


def test_class_coverage_at_its_ends():
    A = np.arange(6.0, 0.0, -1.0)[:, None]
    assert class_coverage(A, [0, 1, 2, 0, 0, 0]) == 3
    assert class_coverage(A, [0, 0, 0, 0, 0, 1]) == 6
    assert class_coverage(A, [7] * 6) == 1
    # Equal norms, signs apart, are taken in their order.
    assert class_coverage([[1.0], [-1.0], [1.0]], ["a", "b", "a"], classes=["b", "a"]) == 2


@pytest.mark.parametrize("labels", ["ab", "aab", "aabb", "abc", "aabccc", "abbcccc", "aaaaaa", "abcdef"])
def test_expected_coverage_is_the_mean_over_all_orders(labels):
    mean = np.mean([naive_coverage(order, labels) for order in itertools.permutations(range(len(labels)))])
    assert expected_class_coverage(list(labels)) == pytest.approx(mean, rel=1e-9)


def test_expected_coverage_by_simulation_and_in_the_limit():
    labels = np.repeat(np.arange(5), [100, 80, 60, 20, 4])
    random = np.random.default_rng(0)
    drawn = [class_coverage(random.random((264, 1)), labels) for _ in range(3000)]
    error = np.std(drawn) / np.sqrt(3000)
    assert expected_class_coverage(labels) == pytest.approx(np.mean(drawn), abs=4 * error)
    # The coupon collector's 10 (1 + 1/2 + ... + 1/10) where the landmarks are many.
    coupons = 10 * sum(1 / k for k in range(1, 11))
    assert expected_class_coverage(np.repeat(np.arange(10), 100_000)) == pytest.approx(coupons, rel=1e-4)
    # One of its class among many: in the middle, on average.
    assert expected_class_coverage(np.r_[0, np.ones(100_000)]) == pytest.approx(50_001, rel=1e-6)


@pytest.mark.parametrize(
    ("coefficients", "labels", "classes", "message"),
    [
        (np.ones(3), [0, 1, 1], None, r"coefficients=\(3,\) .*\(m, h\)"),
        (np.ones((3, 1)), [0, 1], None, r"labels=\(2,\) .*shape \(3,\)"),
        (np.ones((3, 1)), [[0], [1], [1]], None, r"labels=\(3, 1\) "),
        (np.full((3, 1), np.nan), [0, 1, 1], None, "coefficients=nan .*finite"),
        (np.ones((3, 1)), [0, 1, 1], [0, 1, 2], r"labels=\[0, 1\] .*all classes. No landmark is of \[2\]"),
        (np.ones((3, 0)), [0, 1, 1], None, r"coefficients=\(3, 0\) "),
        ("abc", [0, 1, 1], None, "coefficients='abc' .*numbers"),
    ],
)
def test_class_coverage_names_what_is_wrong(coefficients, labels, classes, message):
    with pytest.raises(InvalidParameterError, match=message):
        class_coverage(coefficients, labels, classes)
    if message.startswith("labels=[0"):
        with pytest.raises(InvalidParameterError, match=message):
            expected_class_coverage(labels, classes)


# ranks


def test_ranks_by_hand():
    A = np.zeros((5, 4))
    A[0, 0], A[1, 1], A[2, 2] = 2.0, 1.0, 1e-20
    assert numerical_rank(A) == 2
    p = np.array([0.8, 0.2])
    assert effective_rank(A) == pytest.approx(np.exp(-(p * np.log(p)).sum()))
    assert numerical_rank(np.eye(5, 4)) == 4
    assert effective_rank(np.eye(5, 4)) == pytest.approx(4.0)
    assert effective_rank(np.ones((5, 4))) == pytest.approx(1.0)
    # Some squares are so small that their share of the sum underflows.
    for B in (np.ones((60, 50)), np.diag([60.0, 1e-160])):
        assert effective_rank(B) == pytest.approx(1.0)
    assert numerical_rank(np.diag([1.0, 1e-9])) == 2
    assert numerical_rank(np.diag([1.0, 1e-9]).astype(np.float32)) == 1


def test_effective_rank_laws():
    A = numbers(20, 6)
    rotation = np.linalg.qr(numbers(6, 6, seed=1))[0]
    for scale in (1e-200, 1e200):
        assert effective_rank(scale * A) == pytest.approx(effective_rank(A), rel=1e-9)
    assert effective_rank(7 * A @ rotation) == pytest.approx(effective_rank(A), rel=1e-9)
    assert 1 <= effective_rank(A) <= numerical_rank(A) == 6
    with pytest.raises(InvalidParameterError, match="matrix=0.0 .*different from zero"):
        effective_rank(np.zeros((3, 2)))


# spectra


def test_spectrum_is_that_of_the_gram_matrix(model):
    A = model.coefficients_
    values = np.sort(np.linalg.eigvalsh(A.T @ A))[::-1]
    flat = np.linalg.qr(numbers(12, 5))[0]
    display = SpectrumDisplay({"fitted": A, "flat": flat}).plot()
    fitted, level = display.ax_.lines
    np.testing.assert_allclose(fitted.get_ydata(), values / values[0], rtol=1e-9)
    np.testing.assert_array_equal(fitted.get_xdata(), [1, 2, 3, 4, 5])
    np.testing.assert_allclose(level.get_ydata(), 1.0)
    assert display.ax_.get_yscale() == "log"
    bottom, top = display.ax_.get_ylim()
    assert bottom < min(0.1, values[-1] / values[0])
    assert top > 1
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [f"fitted: rank 5 of 5, effective {effective_rank(A):.1f}", "flat: rank 5 of 5, effective 5.0"]
    assert_readable(display.figure_)


def test_spectrum_of_estimators(model):
    other = Nystrom(Gaussian(2.0), n_landmarks=12, n_components=3, random_state=0).fit(numbers(40, 6))
    _, ax = plt.subplots()
    display = SpectrumDisplay.from_estimators({"five": model, "three": other}, ax=ax)
    assert display.ax_ is ax
    assert [len(line.get_xdata()) for line in ax.lines] == [5, 3]
    np.testing.assert_allclose(
        display.eigenvalues["five"], SpectrumDisplay({"five": model.coefficients_}).eigenvalues["five"]
    )


def test_spectrum_ends_where_rounding_begins():
    A = numbers(30, 3) @ numbers(3, 8, seed=1)
    display = SpectrumDisplay({"a": A}).plot()
    assert display.numerical_ranks == {"a": 3}
    assert len(display.ax_.lines[0].get_xdata()) == 3
    assert display.ax_.get_legend().get_texts()[0].get_text().startswith("a: rank 3 of 8, effective ")
    assert display.eigenvalues["a"].shape == (8,)
    # Fewer landmarks than components: the rest is zero.
    wide = SpectrumDisplay({"wide": numbers(3, 8)})
    assert wide.eigenvalues["wide"].shape == (8,)
    assert not wide.eigenvalues["wide"][3:].any()


def test_many_long_lines_are_readable():
    names = [f"a name that is by far too long for any figure {i}" for i in range(7)]
    display = SpectrumDisplay({name: numbers(200, 150, seed=i) for i, name in enumerate(names)}).plot()
    assert_readable(display.figure_)
    assert {line.get_marker() for line in display.ax_.lines} == {"none"}
    single = SpectrumDisplay({"one": np.ones((60, 50))}).plot()
    assert single.ax_.lines[0].get_marker() == "o"


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ({}, r"coefficients=\{\} .*not empty"),
        (np.ones((3, 2)), "(?s)coefficients=.*a dict from name"),
        ({"a": np.ones(3)}, r"coefficients\['a'\]=\(3,\)"),
        ({"a": np.zeros((3, 2))}, r"coefficients\['a'\]=0.0 .*different from zero"),
        ({"a": np.full((3, 2), np.inf)}, r"coefficients\['a'\]=inf"),
    ],
)
def test_spectrum_names_what_is_wrong(coefficients, message):
    with pytest.raises(InvalidParameterError, match=message):
        SpectrumDisplay(coefficients)


def test_spectrum_needs_fitted_models(model):
    with pytest.raises(InvalidParameterError, match=r"models\['raw'\]=Nystrom.*coefficients_"):
        SpectrumDisplay.from_estimators({"raw": Nystrom()})
    with pytest.raises(InvalidParameterError, match="(?s)models=.*a dict from name"):
        SpectrumDisplay.from_estimators(model)


# top landmarks


def test_images_are_the_samples_over_their_most_influential_landmarks(model):
    X = numbers(3, 6, seed=5)
    influence = landmark_influence(model.kernel_, X, model.landmarks_, model.coefficients_)
    own, theirs = np.array(["a", "b", "a"]), np.array(["a", "b", "c"] * 4)
    display = TopLandmarksDisplay.from_estimator(model, X, own, image_shape=(2, 3), landmark_labels=theirs)
    assert display.axes_.shape == (4, 3)
    low = min(X.min(), model.landmarks_.min())
    high = max(X.max(), model.landmarks_.max())
    for i in range(3):
        top = sorted(range(12), key=lambda l: -influence[i, l])[:3]
        shown = [np.asarray(ax.images[0].get_array()) for ax in display.axes_[:, i]]
        for image, row in zip(shown, [X[i], *model.landmarks_[top]], strict=True):
            np.testing.assert_allclose(image * (high - low) + low, row.reshape(2, 3), atol=1e-12)
        assert display.axes_[0, i].get_xlabel() == own[i]
        for ax, l in zip(display.axes_[1:, i], top, strict=True):
            label, number = ax.get_xlabel().split(": ")
            assert label == theirs[l]
            assert float(number) == pytest.approx(influence[i, l], rel=6e-3)
            assert (to_hex(ax.xaxis.label.get_color()) == ORANGE) == (theirs[l] != own[i])
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["sample", "top 1", "top 2", "top 3"]
    assert "orange" in display.figure_.get_supxlabel()
    assert_readable(display.figure_)


def test_images_without_classes_and_in_color():
    samples, landmarks = np.zeros((2, 12)), np.eye(3, 12)
    display = TopLandmarksDisplay(samples, landmarks, [[1, 3, 2], [0.5, 0.25, 0.125]], image_shape=(2, 2, 3))
    np.testing.assert_array_equal(display.order, [[1, 2, 0], [0, 1, 2]])
    display.plot(n_top=1)
    assert display.axes_.shape == (2, 2)
    assert display.axes_[1, 0].images[0].get_array().shape == (2, 2, 3)
    assert [ax.get_xlabel() for ax in display.axes_[1]] == ["3.00", "0.500"]
    assert display.figure_.get_supxlabel() == "below a landmark: its influence"
    assert_readable(display.figure_)


@pytest.mark.parametrize(("n_samples", "image_shape"), [(1, (4, 16)), (1, (16, 4)), (5, (8, 8)), (5, (4, 16))])
def test_images_of_any_shape_fit(n_samples, image_shape):
    names = np.array(["a class of a very long name" if n_samples == 1 else "ship", "automobile"] * 5)
    display = TopLandmarksDisplay(
        numbers(n_samples, 64),
        numbers(10, 64, seed=1),
        np.abs(numbers(n_samples, 10)) * 12345.0,
        labels=names[:n_samples],
        landmark_labels=names,
        image_shape=image_shape,
    ).plot()
    assert_readable(display.figure_)


def test_tables_have_a_bar_an_input_and_the_sample_on_the_landmarks(model):
    X = numbers(2, 6, seed=5)
    names = ["age", "height", "weight", "income", "hours", "a name that is too long for the axis"]
    display = TopLandmarksDisplay.from_estimator(
        model, X, ["no", "yes"], n_top=2, landmark_labels=["no"] * 12, feature_names=names
    )
    assert display.axes_.shape == (2, 3)
    influence = landmark_influence(model.kernel_, X, model.landmarks_, model.coefficients_)
    center, spread = model.landmarks_.mean(axis=0), model.landmarks_.std(axis=0)
    for i, panels in enumerate(display.axes_):
        top = sorted(range(12), key=lambda l: -influence[i, l])[:2]
        for ax, row in zip(panels, [X[i], *model.landmarks_[top]], strict=True):
            np.testing.assert_allclose([bar.get_width() for bar in ax.patches], (row - center) / spread, atol=1e-12)
            assert [text.get_text() for text in ax.texts] == [f"{value:.3g}" for value in row]
        for ax, l in zip(panels[1:], top, strict=True):
            marks = [segment[0, 0] for segment in ax.collections[0].get_segments()]
            np.testing.assert_allclose(marks, (X[i] - center) / spread, atol=1e-12)
            assert ax.get_title().startswith(f"landmark {l}\nno, influence 0.")
            assert (to_hex(ax.title.get_color()) == ORANGE) == (i == 1)
        assert not panels[0].collections
    assert ticks(display.axes_[0, 0].yaxis)[:5] == names[:5]
    assert [ax.get_title() for ax in display.axes_[:, 0]] == ["sample 1: no", "sample 2: yes"]
    assert_readable(display.figure_)


def test_tables_of_many_inputs_show_where_the_sample_stands_out():
    landmarks = numbers(50, 30)
    sample = landmarks.mean(axis=0)
    sample[[3, 20, 7]] += [5.0, -4.0, 3.0]
    display = TopLandmarksDisplay(sample[None], landmarks, np.ones((1, 50))).plot(n_top=1, max_features=3)
    assert ticks(display.axes_[0, 0].yaxis) == ["x3", "x7", "x20"]
    assert display.axes_[0, 1].get_title() == "landmark 0\ninfluence 1.00"
    assert_readable(display.figure_)


def test_tables_of_large_and_constant_values_fit():
    landmarks = np.c_[np.full(7, 123456.7), numbers(7, 1) * 1e-7, numbers(7, 1) * 1e9, np.full(7, 0.1)]
    display = TopLandmarksDisplay(landmarks[:3], landmarks, np.eye(3, 7)).plot()
    assert display.axes_[0, 0].texts[0].get_text() == "123,457"
    # The mean of equal numbers is not quite that number.
    np.testing.assert_allclose([display.axes_[0, 0].patches[i].get_width() for i in (0, 3)], 0, atol=1e-9)
    assert_readable(display.figure_)
    TopLandmarksDisplay(np.ones((1, 2)), np.ones((3, 2)), np.ones((1, 3))).plot().figure_.canvas.draw()


def test_names_come_from_the_frame_and_influence_from_the_model():
    frame = pd.DataFrame(numbers(20, 3), columns=["p", "q", "r"])
    model = Nystrom(Gaussian(1.0), n_landmarks=6, random_state=0).fit(frame)
    display = TopLandmarksDisplay.from_estimator(model, frame.iloc[:2])
    assert ticks(display.axes_[0, 0].yaxis) == ["p", "q", "r"]

    class WithInfluence:
        landmarks_ = np.eye(3)

        def influence(self, X):
            return np.tile([0.25, 0.5, 0.125], (len(X), 1))

    display = TopLandmarksDisplay.from_estimator(WithInfluence(), np.eye(3)[:2])
    assert display.order.tolist() == [[1, 0, 2]] * 2


def test_negative_influence_comes_last():
    model = Nystrom(Linear(), landmarks=np.array([[1.0, 0.0], [-3.0, 0.0], [0.5, 1.0]])).fit(numbers(9, 2))
    display = TopLandmarksDisplay.from_estimator(model, np.array([[1.0, 0.0]]))
    assert display.influence[0, 1] < 0
    assert display.order[0, -1] == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": np.ones(6)}, r"samples=\(6,\)"),
        ({"landmarks": np.ones((4, 5))}, r"landmarks=\(4, 5\) .*\(m, 6\)"),
        ({"influence": np.ones((4, 2))}, r"influence=\(4, 2\) .*\(2, 4\)"),
        ({"influence": np.full((2, 4), np.nan)}, "influence=nan"),
        ({"labels": ["a"]}, r"labels=\(1,\) .*\(2,\)"),
        ({"landmark_labels": ["a", "b"]}, r"landmark_labels=\(2,\) .*\(4,\)"),
        ({"image_shape": (2, 2)}, r"image_shape=\(2, 2\) .*6 numbers"),
        ({"image_shape": (3, 1, 2)}, r"image_shape=\(3, 1, 2\) .*\(height, width, 3\)"),
        ({"image_shape": (-2, -3)}, r"image_shape=\(-2, -3\) "),
        ({"image_shape": 6}, "image_shape=6 "),
        ({"feature_names": ["a"]}, r"feature_names=\['a'\] .*6 names"),
    ],
)
def test_top_landmarks_name_what_is_wrong(changes, message):
    arguments = {"samples": np.ones((2, 6)), "landmarks": np.ones((4, 6)), "influence": np.ones((2, 4)), **changes}
    with pytest.raises(InvalidParameterError, match=message):
        TopLandmarksDisplay(**arguments)


def test_top_landmarks_need_a_fitted_model_and_no_more_landmarks_than_there_are(model):
    X = numbers(2, 6)
    with pytest.raises(InvalidParameterError, match="n_top=13 .*at most 12"):
        TopLandmarksDisplay.from_estimator(model, X, n_top=13)
    with pytest.raises(InvalidParameterError, match="max_features=0"):
        TopLandmarksDisplay.from_estimator(model, X).plot(max_features=0)
    with pytest.raises(InvalidParameterError, match="model=Nystrom.* with landmarks_, kernel_, coefficients_"):
        TopLandmarksDisplay.from_estimator(Nystrom(), X)
    precomputed = Nystrom("precomputed", n_landmarks=3, random_state=0).fit(np.eye(6))
    with pytest.raises(InvalidParameterError, match="model=Nystrom"):
        TopLandmarksDisplay.from_estimator(precomputed, X)


# the first two components, as they are


def test_embedding_display_serves_an_embedding(model):
    X = numbers(40, 6)
    features = model.transform(X)
    display = EmbeddingDisplay.from_features(features, np.arange(40) % 3)
    points = np.concatenate([collection.get_offsets() for collection in display.ax_.collections])
    np.testing.assert_allclose(np.sort(points, axis=0), np.sort(features[:, :2], axis=0))
    assert_readable(display.figure_)
