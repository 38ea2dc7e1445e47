"""Do points of one label hang together? A matrix between points, sorted by label, as an image."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.metrics import block_mass, check_labels, check_square
from mercer.plots.labels import settle_layout, shorten
from mercer.plots.style import DIVERGING, SEQUENTIAL, axes_or_new

# With more blocks than this, lines between them would hide what is in them.
MOST_LINES = 100
# Of the cells inside the blocks, those beyond this percentile share one color: a few strong pairs of points would
# leave the rest dark.
BRIGHTEST = 95
NAME_SIZES = (9, 8, 7, 6)


class Blocks(NamedTuple):
    """The order that sorts points by label, and where in it the block of each label begins and ends.

    Block k, of label names[k], has the points order[edges[k] : edges[k + 1]].
    """

    names: np.ndarray
    order: np.ndarray
    edges: np.ndarray


class AffinityDisplay:
    """An image of a matrix between n points, sorted by label: good affinities are bright in the blocks alone.

    The title has the share of the mass inside the blocks, `mercer.metrics.block_mass`. Colors begin at zero, or are
    diverging about it where there are negative entries, and end at the 95th percentile inside the blocks. Beyond
    `most_points` points neighbors in the order share a cell, which shows the mean of the sizes of its entries with
    the sign of their mean. The cost is that of reading the entries: a sparse matrix is never made dense.

    Parameters
    ----------
    affinity : array-like or scipy sparse matrix of shape (n, n)
        Affinities, or any other matrix between points: a kernel matrix, cosines, coefficients of self-expression.
    labels : array-like of shape (n,)
        The classes, or the clusters.
    most_points : int, default=500
        The most cells a side; the default is about as many as a figure on a page has pixels.
    by : str, default="label"
        What to call a label on the axis, such as "class" or "cluster".

    Attributes
    ----------
    blocks : Blocks
        The order of the points, and the blocks in it.
    image : ndarray of shape (min(n, most_points), min(n, most_points))
        What is drawn.
    share : float
        The share of the absolute mass that is inside the blocks.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, affinity: Any, labels: Any, *, most_points: int = 500, by: str = "label") -> None:
        affinity = check_pairs("affinity", affinity)
        self.blocks = sort_by_label(labels, affinity.shape[0])
        self.image = block_image(affinity, self.blocks, check_count("most_points", most_points))
        self.share = block_mass(affinity, labels)
        self.by = by

    @classmethod
    def from_estimator(
        cls, model: Any, labels: Any = None, *, most_points: int = 500, ax: Any = None
    ) -> "AffinityDisplay":
        """Draw `affinity_matrix_` of a fitted clustering, by its own clusters or by the `labels` given."""
        if getattr(model, "affinity_matrix_", None) is None or not hasattr(model, "labels_"):
            raise invalid_parameter(
                "model",
                model,
                "a fitted clustering with affinity_matrix_ and labels_",
                "A clustering through landmarks forms no affinities between points.",
            )
        own = labels is None
        display = cls(
            model.affinity_matrix_,
            model.labels_ if own else labels,
            most_points=most_points,
            by="cluster" if own else "label",
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None, *, title: str = "affinity") -> "AffinityDisplay":
        """Draw onto `ax`, or onto a new figure; blocks that there is no room for have no name."""
        names = _short_names(self.blocks)
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2 + 0.07 * max(map(len, names)), 4.7))
        self.figure_ = ax.figure
        drawn = draw_blocks(ax, self.image, self.blocks)
        self.figure_.colorbar(drawn, ax=ax, shrink=0.85, extend=_beyond(drawn)).ax.tick_params(labelsize=8)
        n, k = len(self.blocks.order), len(self.blocks.names)
        ax.set_xlabel(f"{n:,} points in {k:,} {'block' if k == 1 else 'blocks'}, by {self.by}", fontsize=9)
        ax.set_title(f"{title}: {self.share:.1%} of the mass in the blocks", fontsize=10)
        _name_blocks(ax, names, self.blocks)
        return self


def check_pairs(name: str, values: Any) -> Any:
    """Return a matrix between points as `check_square` does, if it is not zero throughout."""
    matrix = check_square(name, values)
    if not _entries(matrix).any():
        raise invalid_parameter(name, 0.0, "different from zero somewhere")
    return matrix


def sort_by_label(labels: Any, n: int | None = None) -> Blocks:
    """Return points, n if given, sorted by label, those of one label in the order given."""
    check_labels("labels", labels, n)
    names, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return Blocks(names, np.argsort(codes, kind="stable"), np.append(0, np.cumsum(counts)))


def block_image(matrix: Any, blocks: Blocks, most_points: int) -> np.ndarray:
    """Return the sorted matrix on a grid of at most `most_points` cells a side: mean sizes, with the signs of means.

    Inside a subspace cosines are as often negative as positive: of their plain means no block would be left.
    """
    n = len(blocks.order)
    cell = np.arange(n) * min(n, most_points) // n
    # Row c of P has ones at the points of cell c, so that P W P^T sums over pairs of cells, sparse or not.
    P = csr_array((np.ones(n), (cell, blocks.order)))
    sums = _dense(P @ matrix @ P.T)
    if most_points < n and _entries(matrix).min() < 0:
        sums = np.copysign(_dense(P @ abs(matrix) @ P.T), sums)
    sizes = np.bincount(cell)
    return sums / np.outer(sizes, sizes)


def draw_blocks(ax: Any, image: np.ndarray, blocks: Blocks) -> Any:
    """Draw what `block_image` returned with lines between the blocks, in coordinates of points; return the image."""
    n, limit = len(blocks.order), _color_limit(image, blocks)
    # Less than a color below zero is rounding.
    signed = image.min() < -limit / 256
    drawn = ax.imshow(
        image, cmap=DIVERGING if signed else SEQUENTIAL, vmin=-limit if signed else 0.0, vmax=limit, extent=(0, n, n, 0)
    )
    inner = blocks.edges[1:-1]
    if len(inner) < MOST_LINES:
        few = len(inner) <= 12
        style = {
            "color": "0.25" if signed else "white",
            "alpha": 0.7 if few else 0.4,
            "linewidth": 0.8 if few else 0.35,
        }
        ax.hlines(inner, 0, n, **style)
        ax.vlines(inner, 0, n, **style)
    ax.set_xlim(0, n)
    ax.set_ylim(n, 0)
    ax.set_xticks([])
    ax.set_yticks([])
    return drawn


def _entries(matrix: Any) -> np.ndarray:
    """Return the entries of a matrix, of a sparse one those that it has."""
    return np.asarray(matrix.data if issparse(matrix) else matrix)


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)


def _color_limit(image: np.ndarray, blocks: Blocks) -> float:
    """Return where colors end: by the pairs inside the blocks, which may be few among all.

    A point with itself says nothing of its block, and in kernel matrices stands out from all else.
    """
    n = len(blocks.order)
    middles = (np.arange(len(image)) + 0.5) * n / len(image)
    block = np.searchsorted(blocks.edges, middles, side="right")
    size = np.abs(image)
    inside = block[:, None] == block
    np.fill_diagonal(inside, False)
    inside &= size > 0
    if not inside.any():
        inside = size > 0
    return float(np.percentile(size[inside], BRIGHTEST))


def _beyond(drawn: Any) -> str:
    """Return at which ends of the colors there are entries beyond, as a color bar wants to know it."""
    image, (low, high) = drawn.get_array(), drawn.get_clim()
    below, above = image.min() < low, image.max() > high
    return "both" if below and above else "min" if below else "max" if above else "neither"


def _short_names(blocks: Blocks) -> list[str]:
    return [shorten(name, 16 if len(blocks.names) <= 12 else 10) for name in blocks.names]


def _name_blocks(ax: Any, names: list[str], blocks: Blocks) -> None:
    """Write the names of the blocks on the left, in the largest size that leaves room for all, or else some of them."""
    n = len(blocks.order)
    middles = (blocks.edges[:-1] + blocks.edges[1:]) / 2
    widest = max(range(len(names)), key=lambda k: len(names[k]))
    # How many names fit depends on the height, and that on the room that names take: first the widest, since a layout
    # of square axes that is settled once hardly makes room for more.
    ax.set_yticks(middles[[widest]], [names[widest]], fontsize=NAME_SIZES[0])
    ax.tick_params(axis="y", length=0)
    settle_layout(ax)
    # In units of type, 1/72 inch.
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    for size in NAME_SIZES:
        kept = _apart(middles, 1.25 * size * n / height)
        if len(kept) == len(names):
            break
    ax.set_yticks(middles[kept], [names[k] for k in kept], fontsize=size)


def _apart(places: np.ndarray, least: float) -> list[int]:
    """Return which of the ascending places to keep so that they are at least so far apart, from the first on."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= least:
            kept.append(i)
    return kept
