"""Figures of manifold clustering: rates over epochs, cosines by cluster, principal samples, features on the sphere."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from mercer.clustering.manifold.principal_samples import principal_samples
from mercer.exceptions import InvalidParameterError
from mercer.metrics import block_mass
from mercer.plots import PrincipalSamplesDisplay, RatesDisplay, SimilarityDisplay, SphereDisplay
from mercer.plots.clusters import features_and_labels
from mercer.plots.principal_samples import OTHER_SIDE, gaps, mosaic
from mercer.plots.similarity import ordinal
from mercer.plots.sphere import viewing_frame
from mercer.plots.style import CATEGORIES
from tests.examples_of import QUICK, numbers
from tests.plots.test_plots_tables import LONG, assert_readable, ticks


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def unit(Z):
    return Z / np.linalg.norm(Z, axis=-1, keepdims=True)


def subspaces(labels, d=12, dimension=2, seed=0):
    """Features of each label in a subspace of its own, orthogonal to the others."""
    labels = np.asarray(labels)
    Z = np.zeros((len(labels), d))
    for k, name in enumerate(np.unique(labels)):
        inside = labels == name
        Z[inside, k * dimension : (k + 1) * dimension] = numbers(inside.sum(), dimension, seed=seed + k)
    return Z


def model_of(features, labels):
    """A fitted clustering that maps row i of its data, which holds i, to the i-th feature."""
    return SimpleNamespace(transform=lambda X: np.asarray(features)[np.asarray(X)[:, 0].astype(int)], labels_=labels)


def legend_of(owner):
    legend = owner.get_legend() if hasattr(owner, "get_legend") else owner.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def curves(ax):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines}


# what they share


def test_features_come_with_the_clusters_of_the_model_or_with_labels():
    Z, X = numbers(4, 3), np.arange(4.0)[:, None]
    model = model_of(Z, np.array([0, 1, 1, 0]))
    features, labels = features_and_labels(model, X)
    np.testing.assert_array_equal(features, Z)
    assert labels is model.labels_
    given_labels = ["a", "b"]
    features, labels = features_and_labels(model, X[2:], given_labels)
    np.testing.assert_array_equal(features, Z[2:])
    assert labels is given_labels
    with pytest.raises(InvalidParameterError, match="X='2 samples' .*the 4 samples of the fit.*model.predict"):
        features_and_labels(model, X[2:])
    unlabeled = SimpleNamespace(transform=model.transform)
    assert features_and_labels(unlabeled, X, [0] * 4)[1] == [0] * 4
    for wrong in (unlabeled, SimpleNamespace(labels_=model.labels_)):
        with pytest.raises(InvalidParameterError, match="model=.*transform and labels_"):
            features_and_labels(wrong, X)


# rates


def history_of(n_start, n_second, first=0):
    start = [{"stage": "start", "epoch": first + t, "rate": 10.0 + t, "cluster_rate": 8.0} for t in range(n_start)]
    second = [
        {"stage": "final", "epoch": first + t, "rate": 20.0, "cluster_rate": 7.0 - t, "ranks": [5, 6, 7]}
        for t in range(n_second)
    ]
    return start + second


def test_rates_and_ranks_share_their_epochs():
    rates, cluster_rates = [10.0, 12.0, 13.0, 12.5], [9.0, 8.0, 6.0, 4.0]
    ranks = [[5, 7], [4, 6], [3, 3], [2, 0]]
    display = RatesDisplay(
        rates, cluster_rates, ranks, epochs=[1, 2, 4, 8], second_stage=2, all_ranks=[9, 9, 8, 8], names=["a", "b"]
    ).plot()
    above, below = display.axes_
    x = [1, 2, 4, 8]
    drawn = curves(above)
    assert drawn["$R$, all features"] == (x, rates)
    assert drawn["$R_c$, by cluster"] == (x, cluster_rates)
    assert drawn[r"$\Delta R = R - R_c$"] == (x, [1, 4, 7, 8.5])
    np.testing.assert_array_equal(display.reductions, [1, 4, 7, 8.5])
    drawn = curves(below)
    assert (drawn["a"], drawn["b"], drawn["all together"]) == ((x, [5, 4, 3, 2]), (x, [7, 6, 3, 0]), (x, [9, 9, 8, 8]))
    # Halfway from the last epoch of the first stage to the first of the second.
    for ax in (above, below):
        assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [3]
    assert legend_of(above) == [*list(curves(above))[:3], "second stage"]
    assert legend_of(below) == ["a", "b", "all together"]
    assert above.get_xlim() == below.get_xlim()
    assert below.get_ylim()[0] == 0
    assert above.get_title() == r"$\Delta R$ ends at 8.5"
    assert len({to_hex(line.get_color()) for line in above.lines[:3]}) == 3
    assert_readable(display.figure_)


def test_rates_say_where_the_reduction_was_largest():
    display = RatesDisplay([5, 9, 7, np.nan], [4, 2, 3, 3], epochs=[0, 10, 20, 30]).plot()
    assert display.axes_[0].get_title() == r"$\Delta R$ ends at 4; the largest is 7, at epoch 10"
    assert len(display.axes_) == 1
    assert display.axes_[0].get_xlabel() == "epoch"
    # Without a dashed line there is no second stage.
    assert legend_of(display.axes_[0]) == list(curves(display.axes_[0]))
    assert not RatesDisplay([5.0], [np.nan]).plot().axes_[0].get_title()


def test_epochs_without_a_number_are_passed_over():
    display = RatesDisplay([1, np.nan, 3], [np.nan, np.nan, 1], [None, [4, np.nan, 2], [3, 5]]).plot()
    above, below = map(curves, display.axes_)
    assert above["$R$, all features"] == ([0, 2], [1, 3])
    assert above["$R_c$, by cluster"] == ([2], [1])
    assert (below["0"], below["1"], below["2"]) == (([1, 2], [4, 3]), ([2], [5]), ([1], [2]))
    np.testing.assert_array_equal(display.ranks, [[np.nan] * 3, [4, np.nan, 2], [3, 5, np.nan]])


def test_ranks_of_many_clusters_are_drawn_as_their_spread():
    ranks = np.random.default_rng(0).integers(1, 40, size=(6, 31)).astype(float)
    ranks[2], ranks[3, 4] = np.nan, np.nan
    ax = RatesDisplay(np.ones(6), np.ones(6), ranks).plot().axes_[1]
    known = [0, 1, 3, 4, 5]
    assert curves(ax)["median of 31"] == (known, [np.nanmedian(ranks[t]) for t in known])
    for band, (low, high) in zip(ax.collections, ((0, 100), (25, 75)), strict=True):
        vertices = band.get_paths()[0].vertices
        for t in known:
            edges = vertices[vertices[:, 0] == t, 1]
            assert (edges.min(), edges.max()) == (np.nanpercentile(ranks[t], low), np.nanpercentile(ranks[t], high))
    assert legend_of(ax) == ["range", "middle half", "median of 31"]
    assert_readable(ax.figure)
    assert len(RatesDisplay(np.ones(6), np.ones(6), ranks[:, :10]).plot().axes_[1].lines) == 10


@pytest.mark.parametrize(("t", "marks"), [(1, True), (40, True), (41, False)])
def test_rates_of_any_length_fit(t, marks):
    ranks = np.full((t, 3), 4.0)
    ranks[1:, 2] = np.nan
    names = [LONG + str(j) for j in range(3)]
    display = RatesDisplay(np.arange(t) + 3.0, np.arange(t), ranks, names=names).plot()
    assert {line.get_marker() != "none" for line in display.axes_[0].lines} == {marks}
    # A single point would not be seen without a mark.
    assert display.axes_[1].lines[2].get_marker() != "none"
    assert max(map(len, legend_of(display.axes_[1]))) <= 16
    assert_readable(display.figure_)
    assert all(float(text).is_integer() for text in ticks(display.axes_[1].xaxis) if "−" not in text)


@pytest.mark.parametrize("first", [0, 1])
def test_rates_of_an_estimator_go_on_in_the_second_stage(first):
    history = history_of(4, 3, first=first)
    display = RatesDisplay.from_estimator(SimpleNamespace(history_=history), names=["a", "b", "c"])
    np.testing.assert_array_equal(display.epochs, first + np.arange(7))
    assert display.second_stage == 4
    np.testing.assert_array_equal(display.reductions, [2, 3, 4, 5, 13, 14, 15])
    assert curves(display.axes_[1])["b"] == ([first + t for t in (4, 5, 6)], [6, 6, 6])
    assert "all together" not in legend_of(display.axes_[1])
    assert [record["epoch"] for record in history] == [first + t for t in (0, 1, 2, 3, 0, 1, 2)]
    # Epochs that count on stay as they are.
    for t, record in enumerate(history):
        record["epoch"] = 10 * t
    np.testing.assert_array_equal(
        RatesDisplay.from_estimator(SimpleNamespace(history_=history)).epochs, 10 * np.arange(7)
    )


def test_rates_of_an_estimator_with_one_stage_or_less_in_it():
    for history in (history_of(3, 0), history_of(0, 3)):
        display = RatesDisplay.from_estimator(SimpleNamespace(history_=history))
        assert display.second_stage is None
        np.testing.assert_array_equal(display.epochs, [0, 1, 2])
    assert len(RatesDisplay.from_estimator(SimpleNamespace(history_=history_of(3, 0))).axes_) == 1
    history = [{"stage": "start", "epoch": 0}, {"stage": "start", "epoch": 1, "rate": 2.0, "ranks": None, "rank": 6}]
    display = RatesDisplay.from_estimator(SimpleNamespace(history_=history))
    assert curves(display.axes_[0])["$R$, all features"] == ([1], [2])
    assert curves(display.axes_[1])["all together"] == ([1], [6])
    for model in (SimpleNamespace(), SimpleNamespace(history_=[])):
        with pytest.raises(InvalidParameterError, match="model=.*history_"):
            RatesDisplay.from_estimator(model)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rates": []}, r"rates=\(0,\) .*shape \(t,\)"),
        ({"rates": [[1.0, 2.0]]}, r"rates=\(1, 2\) .*shape \(t,\)"),
        ({"rates": "abc"}, "rates='abc' .*numbers"),
        ({"rates": [1.0, np.inf]}, "rates=inf .*finite, or NaN"),
        ({"rates": [np.nan] * 2, "cluster_rates": [np.nan] * 2}, "rates=nan .*or else cluster_rates"),
        ({"cluster_rates": [1.0]}, r"cluster_rates=\(1,\) .*shape \(2,\)"),
        ({"ranks": [[1, 2]]}, "ranks=.*a sequence of 2"),
        ({"ranks": 3}, "ranks=3 .*a sequence of 2"),
        ({"ranks": "ab"}, "ranks='ab' .*a sequence of 2"),
        ({"ranks": [[1], [-1]]}, r"ranks\[1\]=\[-1\] .*at least 0"),
        ({"ranks": [[1], [np.inf]]}, r"ranks\[1\]=.*at least 0"),
        ({"ranks": [[[1]], [2]]}, r"ranks\[0\]=\[\[1\]\] .*a rank per cluster"),
        ({"ranks": [None, None]}, "ranks=.*known in at least one epoch"),
        ({"epochs": [2, 1]}, "epochs=.*not descending"),
        ({"epochs": [0, np.nan]}, "epochs=.*finite"),
        ({"epochs": [0, 1, 2]}, r"epochs=\(3,\) .*shape \(2,\)"),
        ({"second_stage": 0}, "second_stage=0 .*at least 1"),
        ({"second_stage": 2}, "second_stage=2 .*at most 1 .one less than the 2 epochs"),
        ({"all_ranks": [1]}, r"all_ranks=\(1,\)"),
        ({"ranks": [[1, 2], [1, 2]], "names": ["a"]}, "names=1 .*ranks have 2"),
    ],
)
def test_rates_name_what_is_wrong(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        RatesDisplay(**{"rates": [1.0, 2.0], "cluster_rates": [1.0, 1.0], **changes})


# similarity


def test_similarity_is_sorted_by_cluster():
    labels = np.array(["b", "a", "c", "a", "b", "a"])
    Z = numbers(6, 4) * np.array([1, 5, 1e-200, 1e200, 1, 1])[:, None]
    before = Z.copy()
    display = SimilarityDisplay(Z, labels).plot()
    order = [1, 3, 5, 0, 4, 2]
    unit_rows = unit(numbers(6, 4))
    expected = np.abs(unit_rows @ unit_rows.T)
    np.testing.assert_allclose(display.image, expected[order][:, order], rtol=1e-12)
    np.testing.assert_array_equal(Z, before)
    assert display.blocks.order.tolist() == order
    assert display.rows.tolist() == list(range(6))
    assert ticks(display.ax_.yaxis) == ["a", "b", "c"]
    assert display.share == pytest.approx(block_mass(expected, labels))
    assert display.ax_.get_title() == f"|cosine|: {display.share:.1%} of the mass in the blocks"
    assert display.ax_.get_xlabel() == "6 points in 3 blocks, by cluster"
    assert_readable(display.figure_)


def test_orthogonal_clusters_have_all_mass_in_their_blocks():
    labels = np.arange(60) % 5
    assert SimilarityDisplay(subspaces(labels), labels).share == pytest.approx(1)


@QUICK
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(1, 70))
def test_every_kth_point_of_each_cluster_is_taken(labels, most_points):
    display = SimilarityDisplay(np.ones((len(labels), 2)), labels, most_points=most_points)
    step = -(-len(labels) // most_points)
    taken, seen = [], {}
    for i, label in enumerate(labels):
        if seen.get(label, 0) % step == 0:
            taken.append(i)
        seen[label] = seen.get(label, 0) + 1
    assert display.rows.tolist() == taken
    assert len(taken) <= most_points + len(set(labels))
    assert set(display.blocks.names.tolist()) == set(labels)


def test_similarity_of_many_points_says_what_was_taken():
    labels = np.repeat([LONG + "0", LONG + "1", LONG + "2"], [6000, 3000, 1])
    Z = subspaces(labels)
    display = SimilarityDisplay(Z, labels, most_points=600).plot(title="cosines")
    assert len(display.rows) == 375 + 188 + 1
    lines = display.ax_.get_title().split("\n")
    assert lines == ["every 16th of 9,001 points", f"cosines: {display.share:.1%} of the mass in the blocks"]
    assert display.image.shape == (500, 500)
    assert display.ax_.get_xlabel().startswith(f"{len(display.rows)} points in 3 blocks")
    assert_readable(display.figure_)


@pytest.mark.parametrize(
    ("k", "word"),
    [
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (22, "22nd"),
        (103, "103rd"),
        (112, "112th"),
        (1001, "1,001st"),
    ],
)
def test_ordinals(k, word):
    assert ordinal(k) == word


@pytest.mark.parametrize("labels", [[0], [0, 0, 0], list(range(120)), [0, 2, 2, 7]], ids=len)
def test_similarity_of_one_point_one_cluster_and_many_fits(labels):
    display = SimilarityDisplay(numbers(len(labels), 3), labels).plot()
    assert_readable(display.figure_)
    assert display.blocks.names.tolist() == sorted(set(labels))


def test_similarity_of_an_estimator():
    labels = np.arange(20) % 2
    model = model_of(subspaces(labels), labels)
    X = np.arange(20.0)[:, None]
    own = SimilarityDisplay.from_estimator(model, X)
    assert own.share == pytest.approx(1)
    assert own.ax_.get_xlabel() == "20 points in 2 blocks, by cluster"
    _, ax = plt.subplots()
    true = SimilarityDisplay.from_estimator(model, X[:8], ["a", "a", "b", "b"] * 2, most_points=4, ax=ax)
    assert (true.ax_, true.figure_) == (ax, ax.figure)
    assert true.share < 0.9
    assert ax.get_xlabel() == "4 points in 2 blocks, by label"
    assert ax.get_title().startswith("every 2nd of 8 points\n")


@pytest.mark.parametrize(
    ("features", "labels", "options", "message"),
    [
        (np.ones(3), [0, 1, 1], {}, r"features=\(3,\) "),
        (np.zeros((3, 2)), [0, 1, 1], {}, "features=0.0 .*different from zero"),
        (np.full((3, 2), np.nan), [0, 1, 1], {}, "features=nan .*finite"),
        (np.ones((3, 2)), [0, 1], {}, r"labels=\(2,\) .*shape \(3,\)"),
        (np.ones((3, 2)), [0, 1, 1], {"most_points": 0}, "most_points=0 .*at least 1"),
    ],
)
def test_similarity_names_what_is_wrong(features, labels, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        SimilarityDisplay(features, labels, **options)


# principal samples


def naive_principal_samples(Z, members, n_directions, n_samples):
    """By the eigenvectors of the sum of z z^T, one sample at a time."""
    Z = unit(Z)
    scatter = sum(np.outer(Z[i], Z[i]) for i in members)
    values, vectors = np.linalg.eigh(scatter)
    rows, cosines, shares = [], [], []
    for value, v in sorted(zip(values, vectors.T, strict=True), key=lambda pair: -pair[0])[:n_directions]:
        if value > 1e-10 * values.max():
            nearest = sorted(members, key=lambda i: -round(abs(Z[i] @ v), 6))[:n_samples]
            rows.append(nearest)
            cosines.append([Z[i] @ v * np.sign(Z[nearest[0]] @ v) for i in nearest])
            shares.append(value / len(members))
    return rows, cosines, shares


@QUICK
@given(
    st.integers(1, 25), st.integers(1, 6), st.integers(1, 4), st.integers(1, 8), st.integers(1, 8), st.integers(0, 999)
)
def test_principal_samples_naive_twin(n, d, n_clusters, n_directions, n_samples, seed):
    Z = numbers(n, d, seed=seed) + 0.3
    labels = np.random.default_rng(seed).integers(n_clusters, size=n)
    found = principal_samples(Z, labels, n_directions=n_directions, n_samples=n_samples)
    assert list(found) == sorted(set(labels.tolist()))
    for name, (rows, cosines, shares) in found.items():
        expected = naive_principal_samples(Z, np.flatnonzero(labels == name).tolist(), n_directions, n_samples)
        assert rows.tolist() == expected[0]
        np.testing.assert_allclose(cosines, expected[1], atol=1e-7)
        np.testing.assert_allclose(shares, expected[2], rtol=1e-6, atol=1e-12)


def test_principal_samples_of_orthogonal_concepts():
    """A cluster of three concepts: each is a direction, the commonest first, and both its sides are near to it."""
    concept = np.repeat([0, 1, 2], [6, 9, 4])
    Z = np.eye(5)[concept] * np.linspace(1, 3, 19)[:, None]
    Z[3] *= -1
    before = Z.copy()
    (found,) = principal_samples(Z, ["only"] * 19, n_samples=4).values()
    assert [set(concept[row]) for row in found.rows] == [{1}, {0}, {2}]
    np.testing.assert_allclose(found.shares, [9 / 19, 6 / 19, 4 / 19])
    np.testing.assert_allclose(np.abs(found.cosines), 1)
    # Of equally near ones the first.
    assert found.rows.tolist() == [[6, 7, 8, 9], [0, 1, 2, 3], [15, 16, 17, 18]]
    np.testing.assert_allclose(found.cosines[1], [1, 1, 1, -1])
    np.testing.assert_array_equal(Z, before)


def test_directions_go_through_the_origin():
    """Features around one direction have it as their first, with nearly all that there is."""
    Z = np.array([0.0, 0.0, 4.0]) + 0.5 * numbers(50, 3)
    found = principal_samples(Z, np.zeros(50, int))[0]
    assert found.shares[0] > 0.9
    assert found.cosines[0].min() > 0.98


def test_directions_are_no_more_than_the_rank():
    Z = np.outer(np.linspace(1, 2, 30), numbers(7))
    for features in (Z, Z.astype(np.float32), (1e4 * Z).astype(np.float32)):
        assert principal_samples(features, [0] * 30)[0].rows.tolist() == [list(range(8))]
    assert principal_samples(np.eye(3, dtype=int), [0, 0, 0])[0].rows.shape == (3, 3)
    # A cluster without any direction, and a sample without one beside others.
    zeros = principal_samples([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [0, 0, 5, 5])
    assert zeros[0].rows.shape == (0, 2)
    assert zeros[5].rows.tolist() == [[2, 3]]
    assert zeros[5].cosines.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.ones(4)}, r"features=\(4,\) "),
        ({"features": np.full((4, 2), np.nan)}, "features=nan"),
        ({"labels": [0, 1]}, r"labels=\(2,\) .*shape \(4,\)"),
        ({"n_directions": 0}, "n_directions=0 .*at least 1"),
        ({"n_samples": 1.5}, "n_samples=1.5 .*whole number"),
    ],
)
def test_principal_samples_name_what_is_wrong(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        principal_samples(**{"features": np.ones((4, 2)), "labels": [0, 0, 1, 1], **changes})


def tiles(ax, shape):
    """The images of a mosaic, one gray number a pixel."""
    canvas = np.asarray(ax.images[0].get_array())
    below, beside = gaps(*shape)
    height, width = shape[0] + below, shape[1] + beside
    r, s = canvas.shape[0] // height, canvas.shape[1] // width
    return np.array(
        [[canvas[i * height :, j * width :][: shape[0], : shape[1], 0] for j in range(s)] for i in range(r)]
    )


@pytest.mark.parametrize("flat", [True, False])
def test_principal_samples_as_images(flat):
    X, Z, labels = numbers(30, 4, 5), numbers(30, 6, seed=1), np.arange(30) % 3
    display = PrincipalSamplesDisplay(
        X.reshape(30, -1) if flat else X, Z, labels, n_directions=3, image_shape=(4, 5) if flat else None
    ).plot()
    found = principal_samples(Z, labels, n_directions=3)
    scaled = (X - X.min()) / (X.max() - X.min())
    assert display.axes_.shape == (1, 3)
    for k, ax in enumerate(display.axes_.flat):
        np.testing.assert_allclose(tiles(ax, (4, 5)), scaled[found[k].rows])
        assert ax.get_title() == f"cluster {k}\n10 samples"
        assert ticks(ax.yaxis) == [f"{i + 1}: {share:.0%}" for i, share in enumerate(found[k].shares)]
        (marks,) = ax.collections
        middles = [(int(line[0, 1]), int(line[:, 0].mean())) for line in marks.get_segments()]
        assert middles == [(i, j) for i in range(3) for j in range(8) if found[k].cosines[i, j] < 0]
        assert to_hex(marks.get_color()[0]) == OTHER_SIDE.lower()
    assert_readable(display.figure_)


def test_mosaic_keeps_images_apart():
    images = np.random.default_rng(0).random((2, 3, 20, 10, 3))
    below, beside = gaps(20, 10)
    assert (below, beside) == (2, 1)
    canvas = mosaic(images)
    assert canvas.shape == (2 * 22, 3 * 11, 3)
    np.testing.assert_array_equal(canvas[22:42, 11:21], images[1, 1])
    assert (canvas[20:22] == 1).all()
    assert (canvas[:, 10::11] == 1).all()
    gray = mosaic(images[..., 0])
    np.testing.assert_array_equal(gray[:20, 22:32, 2], images[0, 2, :, :, 0])


@pytest.mark.parametrize("shape", [(6, 6, 3), (2, 12), (12, 2, 1)])
def test_principal_samples_of_any_shape_fit(shape):
    X, labels = numbers(40, *shape), np.array([LONG + str(k % 3) for k in range(40)])
    display = PrincipalSamplesDisplay(X, numbers(40, 9), labels).plot()
    assert display.image_shape == (shape if shape[2:] == (3,) else shape[:2])
    assert_readable(display.figure_)
    assert max(map(len, display.axes_[0, 0].get_title().split("\n"))) <= 20


def test_colors_are_those_of_the_samples():
    X = np.zeros((2, 3, 3, 3))
    X[0, ..., 0] = X[1, ..., 2] = 1
    display = PrincipalSamplesDisplay(X, [[1.0, 0.0], [0.0, 1.0]], ["red", "blue"]).plot()
    colors = [np.asarray(ax.images[0].get_array())[0, 0].tolist() for ax in display.axes_.flat]
    assert colors == [[0, 0, 1], [1, 0, 0]]


def test_principal_samples_as_tables():
    X, Z = numbers(30, 3) * [1, 10, 0.1] + [5, 0, -3], numbers(30, 6, seed=1)
    X = np.column_stack([X, np.full(30, 0.1)])
    labels = np.array(["a", "b"] * 15)
    display = PrincipalSamplesDisplay(X, Z, labels, n_directions=4, feature_names=["p", "q", "r", "same"]).plot()
    found = principal_samples(Z, labels, n_directions=4, n_samples=3)
    z = np.column_stack([(X[:, :3] - X[:, :3].mean(axis=0)) / X[:, :3].std(axis=0), np.zeros(30)])
    for ax, name in zip(display.axes_.flat, "ab", strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), z[found[name].rows.ravel()], atol=1e-12)
        assert ticks(ax.xaxis) == ["p", "q", "r", "same"]
        assert ax.get_yticks().tolist() == [1.5, 4.5, 7.5, 10.5]
        between, marks = ax.collections
        assert [line[0, 1] for line in between.get_segments()] == [3, 6, 9]
        other = np.flatnonzero(found[name].cosines < 0)
        assert [line[:, 1].tolist() for line in marks.get_segments()] == [[i, i + 1] for i in other]
    assert display.figure_.get_supxlabel().replace("\n", " ").endswith("colors: standard deviations from the mean")
    assert_readable(display.figure_)


def test_of_many_inputs_those_far_from_the_mean():
    X = np.zeros((20, 30))
    labels = np.repeat([0, 1], 10)
    # Rare values are far from the mean in standard deviations, and these are the samples that are drawn.
    X[0, [4, 17]] = X[10, 17] = 1
    Z = np.where(np.arange(20)[:, None] % 10 == 0, [1.0, 0.0], [0.0, 1.0])
    display = PrincipalSamplesDisplay(X, Z, labels, n_samples=1, n_directions=2).plot(max_features=2)
    assert ticks(display.axes_[0, 0].xaxis) == ["x4", "x17"]
    assert "2 of 30 inputs" in display.figure_.get_supxlabel().replace("\n", " ")


def test_names_of_inputs_are_below_the_lowest_panels():
    X, labels = numbers(60, 5), np.arange(60) % 7
    names = [LONG + str(j) for j in range(5)]
    display = PrincipalSamplesDisplay(X, X, labels, feature_names=names).plot()
    down, across = display.axes_.shape
    assert down == 2
    named = [bool(ticks(ax.xaxis)) for ax in display.axes_.flat][:7]
    assert named == [place + across >= 7 for place in range(7)]
    assert_readable(display.figure_)


def test_of_many_clusters_the_largest_are_drawn():
    labels = np.repeat(np.arange(20), np.where(np.arange(20) % 3 == 0, 5, 2))
    X = numbers(len(labels), 2, 2)
    display = PrincipalSamplesDisplay(X, X.reshape(-1, 4), labels).plot(max_clusters=9)
    shown = [ax.get_title().split("\n")[0] for ax in display.axes_.flat if ax.get_title()]
    assert shown == [f"cluster {k}" for k in (0, 1, 2, 3, 6, 9, 12, 15, 18)]
    assert "the 9 largest of 20 clusters" in display.figure_.get_supxlabel()
    assert_readable(display.figure_)


@pytest.mark.parametrize("image", [True, False])
@pytest.mark.parametrize("n", [1, 2])
def test_principal_samples_of_next_to_nothing(n, image):
    """One sample, and a cluster without features."""
    X = np.ones((n, 2, 2)) if image else np.ones((n, 4))
    display = PrincipalSamplesDisplay(X, np.eye(2)[:n] * [1, 0], range(n)).plot()
    assert display.axes_[0, 0].get_title() == "cluster 0\n1 sample"
    assert ticks(display.axes_[0, 0].yaxis) == ["1: 100%"]
    assert [text.get_text() for text in display.axes_[0, -1].texts] == ["features of zero"][: n - 1]
    assert_readable(display.figure_)
    nothing = PrincipalSamplesDisplay(X, np.zeros((n, 2)), range(n)).plot()
    assert_readable(nothing.figure_)


def test_small_shares_are_not_called_nothing():
    Z = np.eye(2)[[0] * 299 + [1]]
    display = PrincipalSamplesDisplay(numbers(300, 3), Z, [0] * 300).plot()
    assert ticks(display.axes_[0, 0].yaxis) == ["1: 100%", "2: <1%"]


def test_principal_samples_of_an_estimator():
    X = np.column_stack([np.arange(12), numbers(12)])
    model = model_of(numbers(12, 4), np.arange(12) % 3)
    model.feature_names_in_ = np.array(["number", "noise"])
    display = PrincipalSamplesDisplay.from_estimator(model, X, n_directions=2, n_samples=1)
    assert list(display.found) == [0, 1, 2]
    assert display.found[0].rows.shape == (2, 1)
    np.testing.assert_array_equal(
        display.found[2].rows, principal_samples(numbers(12, 4), model.labels_)[2].rows[:2, :1]
    )
    assert ticks(display.axes_[0, 0].xaxis) == ["number", "noise"]
    display = PrincipalSamplesDisplay.from_estimator(model, X[:4], list("aabb"), feature_names=["p", "q"])
    assert list(display.found) == ["a", "b"]
    assert ticks(display.axes_[0, 0].xaxis) == ["p", "q"]
    assert PrincipalSamplesDisplay.from_estimator(model, X, image_shape=(1, 2)).image_shape == (1, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": np.ones(4)}, r"samples=\(4,\) "),
        ({"samples": np.full((4, 6), np.nan)}, "samples=nan"),
        ({"samples": np.ones((3, 6))}, r"samples=\(3, 6\) .*4 rows"),
        ({"samples": np.ones((4, 2, 3, 2))}, r"image_shape=\(2, 3, 2\) "),
        ({"image_shape": (2, 2)}, r"image_shape=\(2, 2\) .*6 numbers"),
        ({"features": np.ones((3, 2))}, r"labels=\(4,\) .*shape \(3,\)"),
        ({"feature_names": ["a"]}, "feature_names="),
        ({"n_directions": 0}, "n_directions=0 "),
        ({"n_samples": 0}, "n_samples=0 "),
    ],
)
def test_principal_samples_display_names_what_is_wrong(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        PrincipalSamplesDisplay(
            **{"samples": np.ones((4, 6)), "features": np.ones((4, 2)), "labels": [0, 0, 1, 1], **changes}
        )


@pytest.mark.parametrize("name", ["max_clusters", "max_features"])
def test_panels_and_inputs_are_one_at_least(name):
    with pytest.raises(InvalidParameterError, match=f"{name}=0 "):
        PrincipalSamplesDisplay(np.ones((2, 2)), np.eye(2), [0, 1]).plot(**{name: 0})


# sphere


@pytest.mark.parametrize(("elevation", "azimuth"), [(25, -60), (0, 0), (90, 0), (-40, 200)])
def test_viewing_frame_is_a_rotation(elevation, azimuth):
    frame = viewing_frame(elevation, azimuth)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1)
    # The third axis is never seen leaning, and an eye above sees its tip.
    assert frame[0, 2] == 0
    assert frame[1, 2] >= 0
    assert frame[2, 2] == pytest.approx(np.sin(np.radians(elevation)))


def test_viewing_frame_from_the_first_axis():
    np.testing.assert_allclose(viewing_frame(0, 0), [[0, 1, 0], [0, 0, 1], [1, 0, 0]], atol=1e-15)


def test_sphere_draws_near_points_over_far_ones():
    labels = np.array(["b", "a"] * 10)
    Z = unit(numbers(20, 3))
    display = SphereDisplay({"data": 1.5 * Z, "MLC": Z}, labels, elevation=0, azimuth=0).plot()
    assert [ax.get_title() for ax in display.axes_.flat] == ["data", "MLC"]
    color = {"a": CATEGORIES[0].lower(), "b": CATEGORIES[1].lower()}
    order = np.argsort(Z[:, 0])
    for ax, scale in zip(display.axes_.flat, (1.5, 1), strict=True):
        far, near = ax.collections
        n_far = int((Z[:, 0] < 0).sum())
        np.testing.assert_allclose(far.get_offsets(), scale * Z[order[:n_far], 1:])
        np.testing.assert_allclose(near.get_offsets(), scale * Z[order[n_far:], 1:])
        assert [to_hex(c) for c in far.get_facecolors()] == [color[labels[i]] for i in order[:n_far]]
        assert [to_hex(c) for c in near.get_facecolors()] == [color[labels[i]] for i in order[n_far:]]
        assert far.get_alpha() < near.get_alpha()
        # One scale for all, with all points inside.
        assert ax.get_xlim() == ax.get_ylim() == pytest.approx((-1.06 * 1.5 * np.abs(Z[:, 1:]).max(), ax.get_xlim()[1]))
        assert ax.get_xlim()[1] == -ax.get_xlim()[0]
    np.testing.assert_allclose(display.positions["MLC"], Z[:, [1, 2, 0]], atol=1e-15)
    assert legend_of(display.figure_) == ["a", "b"]
    assert_readable(display.figure_)


def test_sphere_has_the_great_circles_of_its_axes():
    ax = SphereDisplay({"one": [[0.0, 0.0, 1.0]]}, [0]).plot().axes_[0, 0]
    outline = ax.patches[0].get_xy()
    np.testing.assert_allclose(np.linalg.norm(outline, axis=1), 1)
    assert ax.get_xlim() == (-1.06, 1.06)
    frame = viewing_frame(25, -60)
    assert len(ax.lines) == 6
    for normal, (far, near) in zip([2, 0, 1], zip(ax.lines[::2], ax.lines[1::2], strict=True), strict=True):
        for line, side in ((far, -1), (near, 1)):
            seen = np.array(line.get_data())
            seen = seen[:, ~np.isnan(seen[0])]
            depth = side * np.sqrt(np.clip(1 - (seen**2).sum(axis=0), 0, 1))
            np.testing.assert_allclose((frame.T @ np.vstack([seen, depth]))[normal], 0, atol=1e-6)
    assert (far.get_linestyle(), near.get_linestyle()) == (":", "-")


@pytest.mark.parametrize(("n_panels", "n_labels"), [(1, 9), (3, 30), (5, 1), (5, 9)])
def test_spheres_of_any_number_and_names_fit(n_panels, n_labels):
    labels = np.array([LONG + str(k % n_labels) for k in range(60)])
    panels = {LONG + str(t): unit(numbers(60, 3, seed=t)) for t in range(n_panels)}
    display = SphereDisplay(panels, labels).plot()
    assert display.axes_.shape == (-(-n_panels // 4), min(4, n_panels))
    assert_readable(display.figure_)
    assert len(display.figure_.legends) == (n_labels < 30)
    assert [bool(ax.collections) for ax in display.axes_.flat] == [t < n_panels for t in range(display.axes_.size)]


def test_spheres_in_columns():
    panels = {name: np.eye(3) for name in "abcde"}
    assert SphereDisplay(panels, [0, 1, 2]).plot(columns=2).axes_.shape == (3, 2)
    with pytest.raises(InvalidParameterError, match="columns=0 "):
        SphereDisplay(panels, [0, 1, 2]).plot(columns=0)


def test_spheres_of_estimators():
    start, final = unit(numbers(6, 3)), unit(numbers(6, 3, seed=1))
    X = np.column_stack([np.arange(6), numbers(6, 2)])
    models = {
        "start": model_of(start, np.array([0, 1, 0, 1, 0, 1])),
        "MLC": model_of(final, np.array([0, 0, 0, 1, 1, 2])),
    }
    display = SphereDisplay.from_estimators(models, X)
    assert list(display.positions) == ["data", "start", "MLC"]
    for title, points in (("data", X), ("start", start), ("MLC", final)):
        np.testing.assert_allclose(display.positions[title], points @ viewing_frame(25, -60).T)
    assert legend_of(display.figure_) == ["0", "1", "2"]
    other = SphereDisplay.from_estimators(models, X[:4, :2], list("abab"))
    assert list(other.positions) == ["start", "MLC"]
    assert legend_of(other.figure_) == ["a", "b"]
    for wrong in ({}, models["MLC"]):
        with pytest.raises(InvalidParameterError, match="models=.*a dict"):
            SphereDisplay.from_estimators(wrong, X)


@pytest.mark.parametrize(
    ("panels", "options", "message"),
    [
        ({}, {}, "panels={} .*not empty"),
        ([np.eye(3)], {}, "(?s)panels=.*a dict from title"),
        ({"a": np.eye(3), "b": np.eye(2)}, {}, r"panels\['b'\]=\(2, 2\) .*\(3, 3\), as there are 3 labels"),
        ({"a": np.ones((3, 2))}, {}, r"panels\['a'\]=\(3, 2\) "),
        ({"a": np.full((3, 3), np.inf)}, {}, r"panels\['a'\]=inf"),
        ({"a": np.eye(3)}, {"elevation": np.nan}, "elevation=nan"),
        ({"a": np.eye(3)}, {"azimuth": "north"}, "azimuth='north'"),
    ],
)
def test_spheres_name_what_is_wrong(panels, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        SphereDisplay(panels, [0, 1, 2], **options)
