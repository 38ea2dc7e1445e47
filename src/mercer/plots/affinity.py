"""A matrix between points as an image, sorted by label, which shows whether points of one label are linked."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.metrics import block_mass, check_labels, check_square
from mercer.plots.labels import settle_layout, shorten
from mercer.plots.style import DIVERGING, SEQUENTIAL, axes_or_new

# With more blocks than this, the lines between them would cover the blocks.
MOST_LINES = 100
# The colors end at this percentile of the cells inside the blocks. Otherwise a few pairs with large entries would make
# all others dark.
BRIGHTEST = 95
NAME_SIZES = (9, 8, 7, 6)


class Blocks(NamedTuple):
    """The order that sorts points by label, and the positions in it at which the block of each label begins and ends.

    Block k belongs to the label names[k] and has the points order[edges[k] : edges[k + 1]].
    """

    names: np.ndarray
    order: np.ndarray
    edges: np.ndarray


class AffinityDisplay:
    """An image of a matrix between n points, sorted by label. Good affinities are bright only inside the blocks.

    The title gives the share of the mass inside the blocks (`mercer.metrics.block_mass`). Colors begin at zero, or
    diverge around zero if there are negative entries, and end at the 95th percentile inside the blocks. If there are
    more than `most_points` points, neighbors in the order share a cell. It shows the mean of the absolute entries, with
    the sign of their mean. The time is that of reading the entries, and a sparse matrix is never made dense.

    Parameters
    ----------
    affinity : array-like or scipy sparse matrix of shape (n, n)
        Affinities, or any other matrix between points: a kernel matrix, cosines, coefficients of self-expression.
    labels : array-like of shape (n,)
        The classes, or the clusters.
    most_points : int, default=500
        The largest number of cells on a side. The default is about the number of pixels of a figure on a page.
    by : str, default="label"
        The word for a label on the axis, such as "class" or "cluster".

    Attributes
    ----------
    blocks : Blocks
        The order of the points, and the blocks in it.
    image : ndarray of shape (min(n, most_points), min(n, most_points))
        The image that is drawn.
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
        """Draw `affinity_matrix_` of a fitted clustering, sorted by its own clusters or by the given `labels`."""
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
        """Draw onto `ax`, or onto a new figure. Blocks without enough room have no name."""
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
    """Return a matrix between points as `check_square` does; raise if all of its entries are zero."""
    matrix = check_square(name, values)
    if not _entries(matrix).any():
        raise invalid_parameter(name, 0.0, "different from zero somewhere")
    return matrix


def sort_by_label(labels: Any, n: int | None = None) -> Blocks:
    """Return the blocks of points sorted by label; points of one label keep their order. n checks their number."""
    check_labels("labels", labels, n)
    names, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return Blocks(names, np.argsort(codes, kind="stable"), np.append(0, np.cumsum(counts)))


def block_image(matrix: Any, blocks: Blocks, most_points: int) -> np.ndarray:
    """Return the sorted matrix on a grid with at most `most_points` cells on a side.

    A cell has the mean of the absolute entries, with the sign of their mean. Inside a subspace, cosines are negative as
    often as positive, so plain means would show no block.
    """
    n = len(blocks.order)
    cell = np.arange(n) * min(n, most_points) // n
    # Row c of P has ones at the points of cell c, so P W P^T sums over pairs of cells, for sparse W too.
    P = csr_array((np.ones(n), (cell, blocks.order)))
    sums = _dense(P @ matrix @ P.T)
    if most_points < n and _entries(matrix).min() < 0:
        sums = np.copysign(_dense(P @ abs(matrix) @ P.T), sums)
    sizes = np.bincount(cell)
    return sums / np.outer(sizes, sizes)


def draw_blocks(ax: Any, image: np.ndarray, blocks: Blocks) -> Any:
    """Draw the result of `block_image` with lines between the blocks, in coordinates of points; return the image."""
    n, limit = len(blocks.order), _color_limit(image, blocks)
    # Negative entries smaller than one step of the colors are rounding.
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
    """Return the entries of a matrix; of a sparse one, those that it stores."""
    return np.asarray(matrix.data if issparse(matrix) else matrix)


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if issparse(matrix) else matrix)


def _color_limit(image: np.ndarray, blocks: Blocks) -> float:
    """Return the value at which the colors end, from the pairs inside the blocks, which may be a small part of all.

    The diagonal is left out. It says nothing about the blocks, and has the largest entries of a kernel matrix.
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
    """Return the ends of the colors beyond which there are entries, as the option `extend` of a color bar."""
    image, (low, high) = drawn.get_array(), drawn.get_clim()
    below, above = image.min() < low, image.max() > high
    return "both" if below and above else "min" if below else "max" if above else "neither"


def _short_names(blocks: Blocks) -> list[str]:
    return [shorten(name, 16 if len(blocks.names) <= 12 else 10) for name in blocks.names]


def _name_blocks(ax: Any, names: list[str], blocks: Blocks) -> None:
    """Write the names of the blocks on the left, in the largest size with room for all; otherwise only some of them."""
    n = len(blocks.order)
    middles = (blocks.edges[:-1] + blocks.edges[1:]) / 2
    widest = max(range(len(names)), key=lambda k: len(names[k]))
    # The number of names that fit depends on the height, which depends on the room that names need. The widest name is
    # set first, since a layout of square axes hardly changes after it has been computed once.
    ax.set_yticks(middles[[widest]], [names[widest]], fontsize=NAME_SIZES[0])
    ax.tick_params(axis="y", length=0)
    settle_layout(ax)
    # The height is in points, as font sizes are.
    height = ax.get_window_extent().height * 72 / ax.figure.dpi
    for size in NAME_SIZES:
        kept = _apart(middles, 1.25 * size * n / height)
        if len(kept) == len(names):
            break
    ax.set_yticks(middles[kept], [names[k] for k in kept], fontsize=size)


def _apart(places: np.ndarray, least: float) -> list[int]:
    """Return the positions of the ascending places to keep, from the first on, so that gaps are at least `least`."""
    kept: list[int] = []
    for i, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= least:
            kept.append(i)
    return kept
