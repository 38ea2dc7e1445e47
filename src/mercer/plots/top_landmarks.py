"""Samples with the landmarks of largest influence on them, as images or as tables (Figure 2 of krepes)."""

import math
from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.landmarks.features import landmark_influence
from mercer.metrics import check_matrix
from mercer.plots.importances import check_names
from mercer.plots.labels import shorten
from mercer.plots.spread import divisors
from mercer.plots.style import CATEGORIES, pyplot, tidy

SAMPLE, LANDMARK, OTHER_CLASS = CATEGORIES[0], CATEGORIES[4], CATEGORIES[5]
# The number of letters that fit below an image.
LONGEST = 16


class TopLandmarksDisplay:
    """Each sample beside the landmarks with the largest influence k(x, x_l) ||A_l|| on it (krepes, section 5.1).

    With `image_shape`, samples are images: there is a column for each sample, with the sample at the top. Otherwise
    they are rows of a table: there is a row of panels for each sample, with the sample on the left and a bar for each
    input. A bar is the distance from the mean of all landmarks, in their standard deviations, and the number on its
    right is the value. A black mark at the bar of a landmark shows the sample. Landmarks of another class than that of
    the sample have titles in another color.

    Parameters
    ----------
    samples : array-like of shape (n, d)
    landmarks : array-like of shape (m, d)
    influence : array-like of shape (n, m)
    labels : array-like of shape (n,), optional
        The class of each sample.
    landmark_labels : array-like of shape (m,), optional
        The class of each landmark.
    image_shape : tuple of int, optional
        (height, width), or (height, width, 3) for colors.
    feature_names : sequence of str, optional
        The names of the columns of a table; x0, x1, ... by default.

    Attributes
    ----------
    order : ndarray of shape (n, m)
        The landmarks for each sample, with the most influential first.
    axes_ : ndarray of matplotlib Axes
        The shape is (1 + n_top, n) for images and (n, 1 + n_top) for tables.
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        samples: Any,
        landmarks: Any,
        influence: Any,
        *,
        labels: Any = None,
        landmark_labels: Any = None,
        image_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.samples = check_matrix("samples", samples)
        self.landmarks = check_matrix("landmarks", landmarks)
        self.influence = check_matrix("influence", influence)
        (n, d), m = self.samples.shape, len(self.landmarks)
        if self.landmarks.shape[1] != d:
            raise invalid_parameter(
                "landmarks", self.landmarks.shape, f"of shape (m, {d}), with the columns of samples"
            )
        if self.influence.shape != (n, m):
            raise invalid_parameter("influence", self.influence.shape, f"of shape {(n, m)}, samples by landmarks")
        self.labels = _check_labels("labels", labels, n)
        self.landmark_labels = _check_labels("landmark_labels", landmark_labels, m)
        self.image_shape = None if image_shape is None else check_image_shape(image_shape, d)
        self.feature_names = check_names(feature_names, d)
        # Landmarks with equal influences keep their order, so that the figure is reproducible.
        self.order = np.argsort(-self.influence, axis=1, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        n_top: int = 3,
        landmark_labels: Any = None,
        image_shape: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> "TopLandmarksDisplay":
        """Draw the rows X, with classes y, beside their landmarks in a fitted embedding.

        The embedding has `landmarks_`, and `influence(X)` or `kernel_` and `coefficients_`. If landmarks are training
        rows, use `y_train[model.landmark_indices_]` as `landmark_labels`.
        """
        influence = influence_of(model, X)
        if feature_names is None:
            feature_names = getattr(model, "feature_names_in_", None)
        display = cls(
            X,
            model.landmarks_,
            influence,
            labels=y,
            landmark_labels=landmark_labels,
            image_shape=image_shape,
            feature_names=feature_names,
        )
        return display.plot(n_top=n_top)

    def plot(self, *, n_top: int = 3, max_features: int = 12) -> "TopLandmarksDisplay":
        """Draw the `n_top` most influential landmarks of each sample onto a new figure.

        Of a table, at most `max_features` inputs are drawn: those in which the sample is farthest from the mean.
        """
        check_count("n_top", n_top, at_most=len(self.landmarks), why="the number of landmarks")
        check_count("max_features", max_features)
        if self.image_shape is None:
            self._plot_tables(n_top, max_features)
        else:
            self._plot_images(n_top, self.image_shape)
        return self

    def _plot_images(self, n_top: int, shape: tuple[int, ...]) -> None:
        n = len(self.samples)
        # Long names of classes are on a separate line.
        names = [] if self.landmark_labels is None else [str(name) for name in self.landmark_labels]
        break_or_colon = "\n" if max(map(len, names), default=0) > LONGEST - 6 else ": "
        height = 1.25 * min(2.0, max(0.5, shape[0] / shape[1])) + (0.4 if break_or_colon == "\n" else 0.25)
        self.figure_, self.axes_ = pyplot().subplots(
            1 + n_top, n, figsize=(0.9 + 1.3 * n, height * (1 + n_top)), layout="constrained", squeeze=False
        )
        # All images have the same scale, so that similar images look similar.
        low = min(self.samples.min(), self.landmarks.min())
        spread = max(self.samples.max(), self.landmarks.max()) - low or 1.0
        for i, column in enumerate(self.axes_.T):
            top = self.order[i, :n_top]
            for ax, row in zip(column, (self.samples[i], *self.landmarks[top]), strict=True):
                ax.imshow(((row - low) / spread).reshape(shape), cmap="gray", vmin=0, vmax=1)
                ax.set_xticks([])
                ax.set_yticks([])
                ax.spines[:].set(color=SAMPLE if ax is column[0] else "0.8", linewidth=2.5 if ax is column[0] else 0.8)
            column[0].set_xlabel(
                "" if self.labels is None else shorten(self.labels[i], LONGEST), fontsize=9, color=SAMPLE
            )
            for ax, landmark in zip(column[1:], top, strict=True):
                text = _as_text(self.influence[i, landmark], zeros=True)
                if self.landmark_labels is not None:
                    text = f"{shorten(self.landmark_labels[landmark], LONGEST)}{break_or_colon}{text}"
                ax.set_xlabel(text, fontsize=9, color=self._color(i, landmark))
        rows = ["sample", *(f"top {k}" for k in range(1, n_top + 1))]
        for ax, name in zip(self.axes_[:, 0], rows, strict=True):
            ax.set_ylabel(name, fontsize=9, rotation=0, ha="right", va="center")
        known = "class and " if self.landmark_labels is not None else ""
        self._explain(f"below a landmark: its {known}influence{self._color_note()}")

    def _plot_tables(self, n_top: int, max_features: int) -> None:
        n, d = self.samples.shape
        shown = min(d, max_features)
        self.figure_, self.axes_ = pyplot().subplots(
            n,
            1 + n_top,
            figsize=(1.4 + 1.75 * (1 + n_top), 0.5 + n * (0.55 + 0.22 * shown)),
            layout="constrained",
            squeeze=False,
            sharex=True,
            sharey="row",
        )
        center = self.landmarks.mean(axis=0)
        spread = divisors(center, self.landmarks.std(axis=0))
        largest = 0.0
        for i, panels in enumerate(self.axes_):
            z = (self.samples[i] - center) / spread
            inputs = np.sort(np.argsort(-np.abs(z), kind="stable")[:shown])
            top = self.order[i, :n_top]
            for ax, row in zip(panels, (self.samples[i], *self.landmarks[top]), strict=True):
                bars = ((row - center) / spread)[inputs]
                largest = max(largest, float(np.abs(bars).max()))
                ax.barh(range(shown), bars, height=0.7, color=SAMPLE if ax is panels[0] else LANDMARK)
                ax.axvline(0.0, color="0.4", linewidth=0.8)
                for place, value in enumerate(row[inputs]):
                    # Values are in a separate column, which bars and ticks do not reach.
                    ax.text(
                        1.0,
                        place,
                        _as_text(value),
                        transform=ax.get_yaxis_transform(),
                        ha="right",
                        va="center",
                        fontsize=7,
                    )
                if ax is not panels[0]:
                    ax.vlines(z[inputs], np.arange(shown) - 0.35, np.arange(shown) + 0.35, color="black", linewidth=1.2)
                ax.tick_params(axis="y", length=0)
                ax.spines["left"].set_visible(False)
                tidy(ax)
            panels[0].set_yticks(range(shown), [shorten(self.feature_names[j], 24) for j in inputs], fontsize=8)
            panels[0].set_ylim(shown - 0.4, -0.6)
            known = "" if self.labels is None else f": {shorten(self.labels[i], 16)}"
            panels[0].set_title(f"sample {i + 1}{known}", fontsize=9, color=SAMPLE)
            for ax, landmark in zip(panels[1:], top, strict=True):
                known = "" if self.landmark_labels is None else f"{shorten(self.landmark_labels[landmark], 16)}, "
                text = f"landmark {landmark}\n{known}influence {_as_text(self.influence[i, landmark], zeros=True)}"
                ax.set_title(text, fontsize=8, color=self._color(i, landmark))
        largest = largest or 1.0
        # The right half of the axes is for the values.
        self.axes_[0, 0].set_xlim(-1.1 * largest, 2.2 * largest)
        step = float(f"{0.8 * largest:.1g}")
        self.axes_[0, 0].set_xticks([-step, 0, step], [f"{-step:g}", "0", f"{step:g}"])
        known = self._color_note().replace("in orange", "titles in orange")
        self._explain(f"standard deviations from the mean of the landmarks; black: the sample{known}")

    def _explain(self, text: str) -> None:
        # About 15 characters of this size fit on one inch.
        self.figure_.supxlabel(fill(text, int(15 * self.figure_.get_figwidth())), fontsize=8)

    def _color_note(self) -> str:
        both = self.labels is not None and self.landmark_labels is not None
        return "; in orange: of another class than the sample" if both else ""

    def _color(self, sample: int, landmark: int) -> str:
        if self.labels is None or self.landmark_labels is None:
            return "black"
        return "black" if self.labels[sample] == self.landmark_labels[landmark] else OTHER_CLASS


def influence_of(model: Any, X: Any) -> np.ndarray:
    """Return the influence of each landmark of a fitted embedding on each row of X."""
    needed = ("landmarks_",) if hasattr(model, "influence") else ("landmarks_", "kernel_", "coefficients_")
    if any(getattr(model, name, None) is None for name in needed):
        raise invalid_parameter("model", model, f"a fitted embedding with {', '.join(needed)}")
    if hasattr(model, "influence"):
        return np.asarray(model.influence(X))
    return np.asarray(landmark_influence(model.kernel_, np.asarray(X), model.landmarks_, model.coefficients_))


def _as_text(value: float, zeros: bool = False) -> str:
    """Return a number with three digits, or all digits from 1000 on; `zeros` keeps zeros at the end, for alignment."""
    if 1e3 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".") if zeros else f"{value:.3g}"


def _check_labels(name: str, labels: Any, n: int) -> np.ndarray | None:
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise invalid_parameter(name, labels.shape, f"one class each, of shape ({n},)")
    return labels


def check_image_shape(image_shape: Any, d: int) -> tuple[int, ...]:
    """Return `image_shape` as a tuple; raise if it is not that of gray or colored images of d numbers."""
    try:
        shape = tuple(int(size) for size in image_shape)
    except (TypeError, ValueError):
        shape = ()
    if len(shape) not in (2, 3) or shape[2:] not in ((), (3,)) or min(shape) < 1 or math.prod(shape) != d:
        raise invalid_parameter(
            "image_shape", image_shape, f"(height, width) or (height, width, 3) of {d} numbers in all"
        )
    return shape
