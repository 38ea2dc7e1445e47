"""The samples nearest to each principal direction of each cluster, which show what it means (Figure 5, MLC)."""

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.clustering.manifold.principal_samples import principal_samples
from mercer.exceptions import invalid_parameter
from mercer.metrics import as_numbers, check_matrix
from mercer.plots.clusters import features_and_labels
from mercer.plots.importances import check_names
from mercer.plots.labels import shorten
from mercer.plots.spread import divisors
from mercer.plots.style import CATEGORIES, DIVERGING, pyplot
from mercer.plots.top_landmarks import check_image_shape

OTHER_SIDE = CATEGORIES[5]
# Sizes in inches: of an image, of a row of a table, and of the margins of a panel.
IMAGE, ROW, AROUND = 0.3, 0.12, 0.55
# The largest width of panels side by side, in inches.
WIDEST = 12.0
# The number of standard deviations at which the colors of tables end.
FARTHEST = 3.0


class PrincipalSamplesDisplay:
    """A panel for each cluster, with a row for each principal direction and the samples nearest to it.

    Samples are shown as images if they are images. Otherwise they are lines of a heat map, in standard deviations of
    each input from its mean. The numbers on the left are the direction and its share of the cluster's squared lengths.
    The sign of a direction is arbitrary. Samples on the side opposite to that of the nearest one have an orange mark.
    `mercer.clustering.manifold.principal_samples` defines the directions.

    Parameters
    ----------
    samples : array-like of shape (n, d), (n, height, width) or (n, height, width, channels)
    features : array-like of shape (n, h)
    labels : array-like of shape (n,)
        The clusters.
    n_directions : int, default=8
        The largest number of directions of a cluster.
    n_samples : int, optional
        The largest number of samples for a direction; by default 8 images or 3 lines of a table.
    image_shape : tuple of int, optional
        (height, width), or (height, width, 3) for colors, of images that are given as flat rows.
    feature_names : sequence of str, optional
        The names of the columns of a table; x0, x1, ... by default.

    Attributes
    ----------
    found : dict from label to PrincipalSamples
        The result of `principal_samples`.
    sizes : dict from label to int
        The number of samples of each cluster.
    axes_ : ndarray of matplotlib Axes
        The shape is (rows, columns). If there are fewer clusters than axes, the last axes are empty.
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        samples: Any,
        features: Any,
        labels: Any,
        *,
        n_directions: int = 8,
        n_samples: int | None = None,
        image_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.samples, self.image_shape = _check_samples(samples, image_shape)
        self.feature_names = check_names(feature_names, self.samples.shape[1])
        if n_samples is None:
            n_samples = 3 if self.image_shape is None else 8
        self.found = principal_samples(features, labels, n_directions=n_directions, n_samples=n_samples)
        if len(labels) != len(self.samples):
            raise invalid_parameter("samples", self.samples.shape, f"{len(labels)} rows, as there are features")
        names, counts = np.unique(np.asarray(labels), return_counts=True)
        self.sizes = dict(zip(names.tolist(), counts.tolist(), strict=True))

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        labels: Any = None,
        *,
        n_directions: int = 8,
        n_samples: int | None = None,
        image_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "PrincipalSamplesDisplay":
        """Draw samples X by the features of a fitted clustering, with its own clusters or the given `labels`."""
        features, labels = features_and_labels(model, X, labels)
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        display = cls(
            X,
            features,
            labels,
            n_directions=n_directions,
            n_samples=n_samples,
            image_shape=image_shape,
            feature_names=feature_names,
        )
        return display.plot()

    def plot(self, *, max_clusters: int = 12, max_features: int = 12) -> "PrincipalSamplesDisplay":
        """Draw onto a new figure, with at most the `max_clusters` largest clusters.

        Of a table, at most `max_features` inputs are drawn: those in which the samples are farthest from the mean.
        """
        check_count("max_features", max_features)
        shown = self._largest(check_count("max_clusters", max_clusters))
        if self.image_shape is None:
            self._plot_tables(shown, max_features)
        else:
            self._plot_images(shown, self.image_shape)
        return self

    def _largest(self, most: int) -> list[Any]:
        """Return the labels of the largest clusters in their order; of clusters of equal size, the first ones."""
        kept = set(sorted(self.found, key=lambda name: -self.sizes[name])[:most])
        return [name for name in self.found if name in kept]

    def _plot_images(self, shown: list[Any], shape: tuple[int, ...]) -> None:
        height = min(2.0, max(0.5, shape[0] / shape[1]))
        across = max(self.found[name].rows.shape[1] for name in shown)
        down = max(1, *(len(self.found[name].rows) for name in shown))
        # Images keep their proportions; the "compressed" layout moves their panels together.
        self._new_figure(shown, IMAGE * across, IMAGE * height * down, "compressed")
        # All images have the same scale, so that similar images look similar.
        low = self.samples.min()
        images = ((self.samples - low) / (self.samples.max() - low or 1.0)).reshape(len(self.samples), *shape)
        for ax, name in zip(self.axes_.flat, shown, strict=False):
            found = self.found[name]
            r, s = found.rows.shape
            if r:
                ax.imshow(mosaic(images[found.rows]), extent=(0, s, r, 0), aspect=height, interpolation="nearest")
            # Marks are below an image, closer to it than to the next one.
            i, j = np.nonzero(found.cosines < 0)
            below, beside = gaps(*shape[:2])
            ax.hlines(
                i + 1 - 0.65 * below / (shape[0] + below),
                j,
                j + shape[1] / (shape[1] + beside),
                color=OTHER_SIDE,
                linewidth=1.4,
            )
            ax.set(xlim=(0, across), ylim=(down, 0), aspect=height)
            self._name_directions(ax, name, 1)
        self._explain(shown, "")

    def _plot_tables(self, shown: list[Any], max_features: int) -> None:
        center, spread = self.samples.mean(axis=0), self.samples.std(axis=0)
        z = (self.samples - center) / divisors(center, spread)
        drawn = np.concatenate([self.found[name].rows.ravel() for name in shown])
        far = np.abs(z[drawn]).mean(axis=0) if len(drawn) else spread
        inputs = np.sort(np.argsort(-far, kind="stable")[:max_features])
        lines = max(1, *(self.found[name].rows.size for name in shown))
        names = [shorten(self.feature_names[j], 16) for j in inputs]
        # About 15 characters fit on one inch.
        below = max(map(len, names)) / 15
        self._new_figure(shown, max(1.3, 0.2 * len(inputs)), ROW * lines, "constrained", below)
        for place, (ax, name) in enumerate(zip(self.axes_.flat, shown, strict=False)):
            found = self.found[name]
            r, s = found.rows.shape
            if r:
                image = ax.imshow(
                    z[found.rows.ravel()][:, inputs],
                    extent=(0, len(inputs), r * s, 0),
                    aspect="auto",
                    cmap=DIVERGING,
                    vmin=-FARTHEST,
                    vmax=FARTHEST,
                    interpolation="nearest",
                )
            ax.hlines(s * np.arange(1, r), 0, len(inputs), color="black", linewidth=0.8)
            other = np.flatnonzero(found.cosines < 0)
            ax.vlines(np.full(len(other), len(inputs)), other, other + 1, color=OTHER_SIDE, linewidth=4, clip_on=False)
            ax.set(xlim=(0, len(inputs)), ylim=(lines, 0))
            self._name_directions(ax, name, s)
            # The names of the inputs are below the lowest panel of each column.
            if place + self.axes_.shape[1] >= len(shown):
                ax.set_xticks(np.arange(len(inputs)) + 0.5, names, fontsize=7, rotation=90)
                ax.tick_params(axis="x", length=0)
        if len(drawn):
            bar = self.figure_.colorbar(image, ax=self.axes_, extend="both", shrink=0.6, pad=0.02)
            bar.ax.tick_params(labelsize=7)
        d = self.samples.shape[1]
        chosen = f"; {len(inputs)} of {d} inputs" if len(inputs) < d else ""
        self._explain(shown, f"; colors: standard deviations from the mean{chosen}")

    def _new_figure(self, shown: list[Any], width: float, height: float, layout: str, below: float = 0.0) -> None:
        """Make axes for the clusters, each `width` by `height` inches plus margins, with `below` inches for names."""
        width, height = max(width, 0.9) + AROUND, height + AROUND
        down = math.ceil(len(shown) / max(1, int(WIDEST / width)))
        across = math.ceil(len(shown) / down)
        # If the last row is not full, the lowest panels of the columns are in two rows.
        lowest = 1 if across * down == len(shown) else 2
        size = (max(3.2, width * across + 0.3), height * down + 0.5 + lowest * below)
        self.figure_, self.axes_ = pyplot().subplots(down, across, figsize=size, layout=layout, squeeze=False)
        for ax in self.axes_.flat:
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_visible(False)

    def _name_directions(self, ax: Any, name: Any, lines: int) -> None:
        """Write the number and the share of each direction on the left of its lines, and the name of the cluster."""
        shares = self.found[name].shares
        names = [f"{i}: {'<1%' if share < 0.005 else f'{share:.0%}'}" for i, share in enumerate(shares, start=1)]
        ax.set_yticks(lines * (np.arange(len(shares)) + 0.5), names, fontsize=7)
        ax.tick_params(axis="y", length=0, pad=2)
        if not len(shares):
            ax.text(0.5, 0.5, "features of zero", transform=ax.transAxes, ha="center", va="center", fontsize=7)
        size = self.sizes[name]
        title = shorten(name, 20) if isinstance(name, str) else f"cluster {name}"
        ax.set_title(f"{title}\n{size:,} {'sample' if size == 1 else 'samples'}", fontsize=8)

    def _explain(self, shown: list[Any], more: str) -> None:
        text = f"each row: a direction, its share, and the samples nearest to it; orange: on its opposite side{more}"
        if len(shown) < len(self.found):
            text += f"; the {len(shown)} largest of {len(self.found)} clusters"
        # About 15 characters of this size fit on one inch.
        self.figure_.supxlabel(fill(text, int(15 * self.figure_.get_figwidth())), fontsize=8)


def gaps(height: int, width: int) -> tuple[int, int]:
    """Return the number of white pixels below and beside each image of a mosaic."""
    return max(1, round(0.12 * height)), max(1, round(0.06 * width))


def mosaic(images: np.ndarray) -> np.ndarray:
    """Return images of shape (r, s, height, width[, 3]), from 0 to 1, as one colored image, with white gaps."""
    if images.ndim == 4:
        images = np.repeat(images[..., None], 3, axis=-1)
    r, s, height, width, _ = images.shape
    below, beside = gaps(height, width)
    canvas = np.ones((r, height + below, s, width + beside, 3))
    canvas[:, :height, :, :width] = images.transpose(0, 2, 1, 3, 4)
    return canvas.reshape(r * (height + below), s * (width + beside), 3)


def _check_samples(samples: Any, image_shape: Any) -> tuple[np.ndarray, tuple[int, ...] | None]:
    """Return samples as flat rows, and the shape of one of them if they are images."""
    values = as_numbers("samples", samples)
    if values.ndim in (3, 4) and image_shape is None:
        image_shape = values.shape[1:]
    rows = check_matrix("samples", values.reshape(len(values), -1) if values.ndim in (3, 4) else values)
    if image_shape is not None and np.shape(image_shape) == (3,) and image_shape[2] == 1:
        image_shape = image_shape[:2]
    return rows, None if image_shape is None else check_image_shape(image_shape, rows.shape[1])
