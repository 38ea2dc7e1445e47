"""Figures of clusterings: affinities by label, their evolution over iterates, and the gap among the eigenvalues."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_hex

from mercer.exceptions import InvalidParameterError
from mercer.plots import AffinityDisplay, EigengapDisplay, EvolutionDisplay
from mercer.plots.affinity import BRIGHTEST
from mercer.plots.style import CATEGORIES, DIVERGING, SEQUENTIAL
from tests.examples_of import QUICK, numbers
from tests.plots.test_plots_tables import LONG, assert_readable, ticks

FORMATS = [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.lil_array]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def affinity_of(labels, noise=0.1, seed=0):
    """Symmetric, bright in the blocks, without a diagonal."""
    labels = np.asarray(labels)
    random = np.random.default_rng(seed)
    W = random.random((len(labels), len(labels))) * np.where(labels[:, None] == labels, 1.0, noise)
    np.fill_diagonal(W, 0)
    return W + W.T


def naive_image(matrix, labels, cells):
    """Mean sizes over cells of the sorted matrix, with the signs of the means."""
    n = len(labels)
    order = sorted(range(n), key=lambda i: (labels[i], i))
    members = [[order[place] for place in range(n) if place * cells // n == c] for c in range(cells)]
    image = np.empty((cells, cells))
    for a, rows in enumerate(members):
        for b, columns in enumerate(members):
            entries = [matrix[i, j] for i in rows for j in columns]
            size = sum(map(abs, entries)) / len(entries)
            image[a, b] = -size if sum(entries) < 0 else size
    return image


def naive_share(matrix, labels):
    n = len(labels)
    inside = sum(abs(matrix[i, j]) for i in range(n) for j in range(n) if labels[i] == labels[j])
    return inside / np.abs(matrix).sum()


def lines_of(ax):
    """Where the horizontal and the vertical lines between blocks are."""
    across, along = ax.collections
    return [line[0, 1] for line in across.get_segments()], [line[0, 0] for line in along.get_segments()]


# affinity


def test_affinity_is_sorted_by_label_with_lines_and_names():
    labels = np.array(["b", "a", "c", "a", "b", "a"])
    W = affinity_of(labels)
    W[0, 1] = 0.875
    before = W.copy()
    display = AffinityDisplay(W, labels).plot()
    order = [1, 3, 5, 0, 4, 2]
    drawn = display.ax_.images[0]
    np.testing.assert_array_equal(drawn.get_array(), W[order][:, order])
    np.testing.assert_array_equal(W, before)
    assert display.blocks.order.tolist() == order
    assert display.blocks.edges.tolist() == [0, 3, 5, 6]
    assert lines_of(display.ax_) == ([3, 5], [3, 5])
    assert ticks(display.ax_.yaxis) == ["a", "b", "c"]
    assert display.ax_.get_yticks().tolist() == [1.5, 4, 5.5]
    assert drawn.get_extent() == [0, 6, 6, 0]
    assert (display.ax_.get_xlim(), display.ax_.get_ylim()) == ((0, 6), (6, 0))
    assert display.share == pytest.approx(naive_share(W, labels))
    assert display.ax_.get_title() == f"affinity: {naive_share(W, labels):.1%} of the mass in the blocks"
    assert display.ax_.get_xlabel() == "6 points in 3 blocks, by label"
    assert_readable(display.figure_)


@QUICK
@given(st.integers(1, 24), st.integers(1, 30), st.integers(1, 5), st.booleans(), st.integers(0, 10**6))
def test_affinity_naive_twin(n, most_points, n_labels, signed, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(n_labels, size=n)
    W = random.normal(size=(n, n)) * (random.random((n, n)) < 0.7)
    W[0, 0] = 1.0
    if not signed:
        W = np.abs(W)
    display = AffinityDisplay(W, labels, most_points=most_points)
    np.testing.assert_allclose(display.image, naive_image(W, labels, min(n, most_points)), rtol=1e-12, atol=1e-14)
    assert display.share == pytest.approx(naive_share(W, labels))


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("most_points", [7, 500])
def test_sparse_affinity_is_as_dense(make, most_points):
    labels = numbers(40).argsort() % 4
    W = np.where(numbers(40, 40, seed=1) > 0.5, numbers(40, 40, seed=2), 0)
    dense = AffinityDisplay(W, labels, most_points=most_points)
    display = AffinityDisplay(make(W), labels, most_points=most_points)
    np.testing.assert_allclose(display.image, dense.image, rtol=1e-12, atol=1e-15)
    assert display.share == pytest.approx(dense.share)
    neighbors = AffinityDisplay(make(W != 0), labels, most_points=most_points)
    np.testing.assert_allclose(neighbors.image, AffinityDisplay(W != 0, labels, most_points=most_points).image)


def test_sparse_affinity_of_many_points_is_never_dense():
    """A quarter of a million points: their matrix would have half a terabyte."""
    n = 250_000
    labels = np.arange(n) % 3
    ring = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 3) % n)))
    display = AffinityDisplay(ring, labels, most_points=30).plot()
    assert display.image.shape == (30, 30)
    # All but the last three neighbors, where n is no multiple of three, are of the same label.
    assert display.share == pytest.approx(1 - 3 / n)
    assert "250,000 points" in display.ax_.get_xlabel()
    assert display.ax_.images[0].get_extent() == [0, n, n, 0]
    np.testing.assert_allclose(lines_of(display.ax_)[0], [n / 3, 2 * n / 3], atol=1)


def test_blocks_of_cosines_outlive_pooling():
    """In a subspace signs are arbitrary: means would leave nothing of the blocks."""
    labels = np.repeat([0, 1], 150)
    X = np.zeros((300, 4))
    X[:150, :2], X[150:, 2:] = numbers(150, 2), numbers(150, 2, seed=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    display = AffinityDisplay(X @ X.T, labels, most_points=20)
    assert np.abs(display.image[:10, :10]).min() > 0.5
    assert not display.image[:10, 10:].any()
    assert display.image.min() < -0.5


def test_pooled_mass_is_the_mass():
    labels, W = np.repeat([0, 1, 2], 20), numbers(60, 60)
    image = AffinityDisplay(W, labels, most_points=12).image
    assert np.abs(image).mean() == pytest.approx(np.abs(W).mean())
    assert sum(np.abs(image[c : c + 4, c : c + 4]).sum() for c in (0, 4, 8)) / np.abs(image).sum() == pytest.approx(
        naive_share(W, labels)
    )


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_colors_end_inside_the_blocks(scale):
    labels = np.repeat(np.arange(4), 25)
    W = affinity_of(labels)
    W[0, 1] = W[1, 0] = 500.0
    # As in a kernel matrix.
    np.fill_diagonal(W, 30.0)
    display = AffinityDisplay(scale * W, labels).plot()
    inside = [W[i, j] for i in range(100) for j in range(100) if labels[i] == labels[j] and i != j]
    low, high = display.ax_.images[0].get_clim()
    assert low == 0
    assert high == pytest.approx(scale * np.percentile(inside, BRIGHTEST))
    assert high < 3 * scale
    assert display.ax_.images[0].get_cmap().name == SEQUENTIAL
    assert display.ax_.images[0].colorbar.extend == "max"


def test_colors_of_pooled_blocks_end_inside_them():
    labels = np.repeat([0, 1], 50)
    W = np.where(labels[:, None] == labels, 1.0, 5.0)
    assert AffinityDisplay(W, labels, most_points=10).plot().ax_.images[0].get_clim() == (0, 1)


def test_colors_by_entries_that_are_there():
    """Zeros of a sparse matrix are no entries, and one cluster of many points and 60 of one are no special cases."""
    labels = np.repeat([0, 1], 30)
    W = np.where(numbers(60, 60) > 2, 2.0, 0.0)
    assert AffinityDisplay(sparse.csr_array(W), labels).plot().ax_.images[0].get_clim() == (0, 2)
    assert AffinityDisplay(W, labels).plot().ax_.images[0].colorbar.extend == "neither"
    one = AffinityDisplay(W, np.zeros(60)).plot()
    assert one.ax_.get_xlabel() == "60 points in 1 block, by label"
    assert lines_of(one.ax_) == ([], [])
    alone = AffinityDisplay(W - np.diag(np.diag(W)), np.arange(60)).plot()
    assert alone.share == 0
    assert alone.ax_.images[0].get_clim() == (0, 2)


def test_colors_diverge_where_there_are_negative_entries():
    labels = np.repeat([0, 1], 20)
    X = numbers(40, 3) + 3 * labels[:, None]
    cosines = (X @ X.T) / np.linalg.norm(X, axis=1) / np.linalg.norm(X, axis=1)[:, None]
    drawn = AffinityDisplay(cosines, labels).plot().ax_.images[0]
    assert drawn.get_cmap().name == DIVERGING
    low, high = drawn.get_clim()
    assert low == -high
    assert drawn.colorbar.extend == "both"
    # What rounding leaves below zero is not negative.
    W = affinity_of(labels)
    W[0, 39] = -1e-16
    assert AffinityDisplay(W, labels).plot().ax_.images[0].get_cmap().name == SEQUENTIAL
    W[0, 39] = -0.1
    assert AffinityDisplay(W, labels).plot().ax_.images[0].get_cmap().name == DIVERGING


def test_lines_are_seen_on_their_colors():
    labels = np.repeat([0, 1], 20)
    W = affinity_of(labels)
    bright = AffinityDisplay(W, labels).plot().ax_.collections[0]
    dark = AffinityDisplay(-W, labels).plot().ax_.collections[0]
    assert bright.get_color()[0, :3].tolist() == [1, 1, 1]
    assert dark.get_color()[0, :3].max() < 0.5
    many = np.arange(60)
    thin = AffinityDisplay(affinity_of(many), many).plot().ax_.collections[0]
    assert thin.get_linewidth() < bright.get_linewidth()
    # Lines would hide all else.
    crowd = np.arange(300)
    assert not AffinityDisplay(affinity_of(crowd), crowd).plot().ax_.collections


@pytest.mark.parametrize("prefix", ["", LONG])
@pytest.mark.parametrize("counts", [[5, 5, 5], [4] * 38, [60, 1, 1, 1, 1, 30, 2], [1] * 120], ids=len)
def test_names_of_blocks_fit(prefix, counts):
    labels = np.array([f"{prefix}{k:03}" for k in np.repeat(np.arange(len(counts)), counts)])
    display = AffinityDisplay(affinity_of(labels), labels).plot()
    assert_readable(display.figure_)
    names = ticks(display.ax_.yaxis)
    assert len(names) == len(display.ax_.get_yticks())
    if len(counts) in (3, 38):
        assert len(names) == len(counts)
    assert 3 <= len(names) < 60
    assert max(map(len, names)) <= (16 if len(counts) <= 12 else 10)
    sizes = {text.get_fontsize() for text in display.ax_.get_yticklabels()}
    assert sizes == ({9} if len(counts) == 3 else {6})


@pytest.mark.parametrize("layout", [None, "compressed"])
def test_affinity_on_given_axes(layout):
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout=layout)
    labels = np.repeat([f"subject {k}" for k in range(8)], 6)
    display = AffinityDisplay(affinity_of(labels), labels).plot(axes[1], title="first")
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert display.ax_.get_title().startswith("first: ")
    assert len(ticks(display.ax_.yaxis)) == 8
    assert_readable(figure)


def test_names_of_blocks_have_room_on_narrow_axes():
    _, ax = plt.subplots(figsize=(5.4, 4.7), layout="constrained")
    labels = np.repeat(["first", "second", "third"], 20)
    assert_readable(AffinityDisplay(affinity_of(labels), labels).plot(ax).figure_)


def test_affinity_of_an_estimator():
    labels = np.repeat([0, 1, 2], 8)
    model = SimpleNamespace(affinity_matrix_=sparse.csr_array(affinity_of(labels)), labels_=labels[::-1] % 2)
    own = AffinityDisplay.from_estimator(model)
    assert own.ax_.get_xlabel() == "24 points in 2 blocks, by cluster"
    assert own.share == pytest.approx(naive_share(model.affinity_matrix_.toarray(), model.labels_))
    _, ax = plt.subplots()
    true = AffinityDisplay.from_estimator(model, labels, most_points=6, ax=ax)
    assert true.ax_ is ax
    assert true.image.shape == (6, 6)
    assert ax.get_xlabel() == "24 points in 3 blocks, by label"
    assert true.share == pytest.approx(naive_share(model.affinity_matrix_.toarray(), labels))
    for missing in ("labels_", "affinity_matrix_"):
        unfitted = SimpleNamespace(**{name: value for name, value in vars(model).items() if name != missing})
        with pytest.raises(InvalidParameterError, match="(?s)model=.*affinity_matrix_ and labels_"):
            AffinityDisplay.from_estimator(unfitted, labels)
    model.affinity_matrix_ = None
    with pytest.raises(InvalidParameterError, match="(?s)model=.*through landmarks"):
        AffinityDisplay.from_estimator(model)


@pytest.mark.parametrize(
    ("affinity", "labels", "message"),
    [
        (np.ones(4), [0, 1, 1, 1], r"affinity=\(4,\) "),
        (np.ones((4, 3)), [0, 1, 1, 1], r"affinity=\(4, 3\) .*\(n, n\)"),
        (sparse.csr_array(np.ones((3, 4))), [0, 1, 1], r"affinity=\(3, 4\) .*\(n, n\)"),
        (np.zeros((2, 2)), [0, 1], "affinity=0.0 .*different from zero"),
        (sparse.csr_array((2, 2)), [0, 1], "affinity=0.0 .*different from zero"),
        (np.full((2, 2), np.nan), [0, 1], "affinity=nan .*finite"),
        (sparse.csr_array([[1.0, np.inf], [0, 1]]), [0, 1], "affinity=inf .*finite"),
        ("abc", [0, 1], "affinity='abc' .*numbers"),
        (np.ones((4, 4)), [0, 1, 1], r"labels=\(3,\) .*shape \(4,\)"),
        (np.ones((2, 2)), [[0], [1]], r"labels=\(2, 1\) .*shape \(n,\)"),
        (np.ones((2, 2)), [0, np.nan], "labels=nan .*missing"),
    ],
)
def test_affinity_names_what_is_wrong(affinity, labels, message):
    with pytest.raises(InvalidParameterError, match=message):
        AffinityDisplay(affinity, labels)


def test_affinity_needs_a_cell_at_least():
    with pytest.raises(InvalidParameterError, match="most_points=0 .*at least 1"):
        AffinityDisplay(np.ones((2, 2)), [0, 1], most_points=0)


# evolution


@pytest.fixture
def iterates():
    """Three iterates of two subspaces that turn away from each other."""
    labels = np.array(["up", "down"] * 15)
    points, kernels, affinities = [], [], []
    for t in range(3):
        X = numbers(30, 3, seed=t) * [1.0, 0.1, 1.0]
        X[labels == "up"] += [0, 0, t]
        points.append(X)
        kernels.append(X @ X.T)
        affinities.append(affinity_of(labels, noise=1 / (t + 1), seed=t))
    return points, kernels, affinities, labels


def test_evolution_has_a_column_an_iterate(iterates):
    points, kernels, affinities, labels = iterates
    display = EvolutionDisplay(*iterates).plot()
    assert display.axes_.shape == (3, 3)
    order = np.r_[np.flatnonzero(labels == "down"), np.flatnonzero(labels == "up")]
    for t, (data, kernel, affinity) in enumerate(display.axes_.T):
        for k, name in enumerate(["down", "up"]):
            np.testing.assert_array_equal(data.collections[k].get_offsets(), points[t][labels == name, :2])
            assert to_hex(data.collections[k].get_facecolor()[0]) == CATEGORIES[k].lower()
        for ax, matrix in ((kernel, kernels[t]), (affinity, affinities[t])):
            np.testing.assert_allclose(ax.images[0].get_array(), matrix[order][:, order], rtol=1e-12, atol=1e-15)
            assert ax.get_xlabel() == f"{naive_share(matrix, labels):.1%} in blocks"
            assert lines_of(ax) == ([15], [15])
        assert kernel.images[0].get_cmap().name == DIVERGING
        assert affinity.images[0].get_cmap().name == SEQUENTIAL
    assert [ax.get_title() for ax in display.axes_[0]] == ["iterate 0", "iterate 1", "iterate 2"]
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == ["data, columns 0, 1", "kernel matrix", "affinity"]
    shares = [naive_share(W, labels) for W in affinities]
    np.testing.assert_allclose(display.shares["affinity"], shares)
    assert shares == sorted(shares)
    assert_readable(display.figure_)


def test_colors_say_which_block_is_which(iterates):
    display = EvolutionDisplay(*iterates).plot()
    display.figure_.canvas.draw()
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["down", "up"]
    assert [to_hex(patch.get_facecolor()) for patch in legend.get_patches()] == [c.lower() for c in CATEGORIES[:2]]
    for ax in display.axes_[1:, 0]:
        assert [line.get_color() for line in ax.lines] == list(CATEGORIES[:2])
        assert [list(line.get_ydata()) for line in ax.lines] == [[0, 15], [15, 30]]
        assert ax.yaxis.label.get_window_extent().x1 < ax.lines[0].get_window_extent().x0
    assert not any(ax.lines for ax in display.axes_[1:, 1:].flat)
    # More labels than colors.
    labels = np.arange(30) // 2
    display = EvolutionDisplay(*iterates[:3], labels).plot()
    assert not display.figure_.legends
    assert to_hex(display.axes_[0, 0].collections[10].get_facecolor()[0]) == CATEGORIES[0].lower()
    assert_readable(display.figure_)


def test_angles_are_right(iterates):
    points, _, _, labels = iterates
    display = EvolutionDisplay(points, None, None, labels, columns=(2, 1)).plot()
    display.figure_.canvas.draw()
    for ax, X in zip(display.axes_[0], points, strict=True):
        np.testing.assert_array_equal(ax.collections[1].get_offsets(), X[labels == "up"][:, [2, 1]])
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        assert right - left == pytest.approx(high - low)
        assert left < X[:, 2].min() < X[:, 2].max() < right
        assert low < X[:, 1].min() < X[:, 1].max() < high
        box = ax.get_window_extent()
        assert box.width == pytest.approx(box.height, rel=1e-6)
    assert display.axes_[0, 0].get_ylabel() == "data, columns 2, 1"


@pytest.mark.parametrize("left_out", [(0,), (1,), (2,), (0, 1), (1, 2)])
def test_rows_that_are_not_wanted(iterates, left_out):
    rows = [None if i in left_out else row for i, row in enumerate(iterates[:3])]
    display = EvolutionDisplay(*rows, iterates[3]).plot()
    assert display.axes_.shape == (3 - len(left_out), 3)
    wanted = [name for i, name in enumerate(["data, columns 0, 1", "kernel matrix", "affinity"]) if i not in left_out]
    assert [ax.get_ylabel() for ax in display.axes_[:, 0]] == wanted
    assert display.axes_[0, 1].get_title() == "iterate 1"
    assert_readable(display.figure_)


@pytest.mark.parametrize("n_iterates", [1, 2, 7])
def test_evolution_of_any_length_and_names_fits(iterates, n_iterates):
    points, kernels, affinities, _ = ([row[t % 3] for t in range(n_iterates)] for row in iterates)
    labels = np.array([LONG + str(k % 10) for k in range(30)])
    titles = [LONG + str(t) for t in range(n_iterates)]
    display = EvolutionDisplay(points, kernels, affinities, labels, titles).plot()
    assert display.axes_.shape == (3, n_iterates)
    assert display.axes_[0, -1].get_title().endswith(str(n_iterates - 1))
    assert_readable(display.figure_)
    legend = display.figure_.legends[0].get_window_extent()
    assert display.figure_.bbox.x0 <= legend.x0 < legend.x1 <= display.figure_.bbox.x1
    assert all(ax.get_tightbbox().y0 > legend.y1 - 1 for ax in display.axes_[-1])


def test_evolution_of_many_points_is_pooled():
    labels = np.repeat(np.arange(3), 200)
    W = sparse.csr_array(affinity_of(labels))
    display = EvolutionDisplay(None, None, [W, W], labels).plot()
    images = display.images["affinity"]
    assert [image.shape for image in images] == [(400, 400)] * 2
    np.testing.assert_allclose(images[0], AffinityDisplay(W, labels, most_points=400).image)
    assert list(display.images) == ["affinity"]


def test_evolution_of_points_all_alike_can_be_drawn():
    display = EvolutionDisplay([np.ones((4, 2))], None, None, [0, 0, 1, 1]).plot()
    assert display.axes_[0, 0].get_xlim() == (0, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": None, "kernel_matrices": None, "affinities": None}, "points=None .*or kernel_matrices, or aff"),
        ({"points": None, "kernel_matrices": None, "affinities": None, "titles": ["a"]}, "points=None "),
        ({"points": []}, r"points=\[\] .*not empty"),
        ({"affinities": 3}, "affinities=3 .*a sequence"),
        ({"titles": "ab"}, "titles='ab' .*a sequence"),
        ({"kernel_matrices": [np.eye(4)]}, "kernel_matrices=1 .*as many as points, which has 2"),
        ({"titles": ["a", "b", "c"]}, "titles=3 .*as many as points, which has 2"),
        ({"points": [np.ones((4, 2)), np.ones((3, 2))]}, r"points\[1\]=\(3, 2\) .*\(4, d\), as there are 4 labels"),
        ({"points": [np.ones((4, 2)), np.full((4, 2), np.nan)]}, r"points\[1\]=nan"),
        ({"points": [np.ones((4, 2)), np.ones((4, 1))]}, r"columns=\(0, 1\) .*points\[1\], which has shape \(4, 1\)"),
        ({"columns": (0, 2)}, r"columns=\(0, 2\) .*shape \(4, 2\)"),
        ({"columns": (-1, 0)}, r"columns=\(-1, 0\) "),
        ({"columns": (0,)}, r"columns=\(0,\) "),
        ({"columns": 1}, "columns=1 "),
        ({"kernel_matrices": [np.eye(4), np.eye(3)]}, r"kernel_matrices\[1\]=\(3, 3\) .*\(4, 4\), as there are 4"),
        ({"affinities": [np.ones((4, 3))] * 2}, r"affinities\[0\]=\(4, 3\) .*\(n, n\)"),
        ({"affinities": [np.eye(4), np.zeros((4, 4))]}, r"affinities\[1\]=0.0 .*different from zero"),
        ({"labels": [[0], [1], [1], [0]]}, r"labels=\(4, 1\) "),
    ],
)
def test_evolution_names_what_is_wrong(changes, message):
    arguments = {
        "points": [np.ones((4, 2))] * 2,
        "kernel_matrices": [np.eye(4)] * 2,
        "affinities": [np.eye(4)] * 2,
        "labels": [0, 0, 1, 1],
        **changes,
    }
    with pytest.raises(InvalidParameterError, match=message):
        EvolutionDisplay(**arguments)


# eigengap


def test_eigengap_marks_the_gap_after_the_clusters():
    values = [0.0, 0.01, 0.05, 0.4, 0.45, 0.5]
    display = EigengapDisplay(values, 3).plot()
    ax = display.ax_
    assert display.gap == pytest.approx(0.35)
    band, (line, inside, beyond) = ax.patches[0], ax.lines
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((0.05, 0.4))
    assert list(line.get_xdata()) == [3.5, 3.5]
    np.testing.assert_array_equal(inside.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(inside.get_ydata(), values[:3])
    np.testing.assert_array_equal(beyond.get_xdata(), [4, 5, 6])
    np.testing.assert_array_equal(beyond.get_ydata(), values[3:])
    assert inside.get_color() != beyond.get_color()
    assert ax.get_title() == "gap of 0.35 after 3 clusters"
    assert ax.get_ylim()[0] < 0
    assert ax.get_ylim()[1] > 0.5
    assert_readable(display.figure_)


def test_eigengap_says_where_the_largest_gap_is():
    values = [0.5, 0.0, 0.4, 0.05, 0.01]
    before = list(values)
    display = EigengapDisplay(values, 4)
    assert values == before
    np.testing.assert_array_equal(display.eigenvalues, sorted(values))
    assert (display.n_clusters, display.best) == (4, 3)
    assert display.plot().ax_.get_title() == "gap of 0.1 after 4 clusters\nthe largest is 0.35, after 3 clusters"
    chosen = EigengapDisplay(values).plot()
    assert chosen.n_clusters == 3
    assert chosen.ax_.get_title() == "gap of 0.35 after 3 clusters"
    assert EigengapDisplay([0.0, 0.7, 0.8]).plot().ax_.get_title() == "gap of 0.7 after 1 cluster"
    # Of equal gaps none is larger.
    assert EigengapDisplay([0, 0.25, 0.5], 2).plot().ax_.get_title() == "gap of 0.25 after 2 clusters"
    assert EigengapDisplay([0.0, 0.25, 0.5]).n_clusters == 1


def test_separate_blocks_have_as_many_eigenvalues_of_zero():
    """The figure finds the number of blocks in the Laplacian that its docstring has."""
    labels = np.repeat(np.arange(4), 10)
    W = affinity_of(labels, noise=0.01)
    degrees = W.sum(axis=1)
    laplacian = np.eye(40) - W / np.sqrt(np.outer(degrees, degrees))
    assert EigengapDisplay(np.linalg.eigvalsh(laplacian)[:10]).n_clusters == 4


@pytest.mark.parametrize("m", [2, 60, 400])
def test_eigengap_of_any_length_fits(m):
    display = EigengapDisplay(np.linspace(0, 1, m) ** 2, m // 2).plot()
    assert_readable(display.figure_)
    left, right = display.ax_.get_xlim()
    assert 0 < left < 1
    assert m < right < m + 1


def test_eigengap_of_zeros_and_on_given_axes():
    figure, axes = plt.subplots(1, 2)
    assert EigengapDisplay([0, 0, 0], 2).plot(axes[1]).figure_ is figure
    assert axes[1].get_title() == "gap of 0 after 2 clusters"
    assert axes[1].get_ylim() == (-1, 1)
    assert not axes[0].lines
    figure.canvas.draw()


def test_eigengap_of_an_estimator():
    model = SimpleNamespace(eigenvalues_=np.array([0, 0.1, 0.8, 0.9]), n_clusters_=2)
    _, ax = plt.subplots()
    display = EigengapDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert display.gap == pytest.approx(0.7)
    assert EigengapDisplay.from_estimator(SimpleNamespace(**{**vars(model), "n_clusters_": 3})).n_clusters == 3
    for missing in vars(model):
        unfitted = SimpleNamespace(**{name: value for name, value in vars(model).items() if name != missing})
        with pytest.raises(InvalidParameterError, match="model=.*eigenvalues_ and n_clusters_"):
            EigengapDisplay.from_estimator(unfitted)


@pytest.mark.parametrize(
    ("eigenvalues", "n_clusters", "message"),
    [
        ([0.0], None, r"eigenvalues=\(1,\) .*at least two numbers"),
        ([[0.0, 1.0]], None, r"eigenvalues=\(1, 2\) .*\(m,\)"),
        ([0.0, np.nan], None, "eigenvalues=nan .*finite"),
        ("abc", None, "eigenvalues='abc' .*numbers"),
        ([0.0, 0.5, 1.0], 3, "n_clusters=3 .*at most 2 .one less than the 3 eigenvalues"),
        ([0.0, 0.5, 1.0], 0, "n_clusters=0 .*at least 1"),
        ([0.0, 0.5, 1.0], 1.5, "n_clusters=1.5 .*whole number"),
    ],
)
def test_eigengap_names_what_is_wrong(eigenvalues, n_clusters, message):
    with pytest.raises(InvalidParameterError, match=message):
        EigengapDisplay(eigenvalues, n_clusters)
