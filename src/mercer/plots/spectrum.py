"""The eigenvalues of A^T A of embeddings, which show how many directions they use (Figure 1 of krepes)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.metrics import check_matrix, effective_rank, numerical_rank
from mercer.plots.labels import shorten
from mercer.plots.style import axes_or_new, legend_below, series_style, tidy

# With more eigenvalues than this, marks would overlap.
MOST_MARKS = 40


class SpectrumDisplay:
    """A line for each embedding with the eigenvalues of A^T A, relative to the largest, on a log scale.

    A flat line means that an embedding uses many directions, and a steep line that it uses few. Lines end at the
    numerical rank, after which there are only rounding errors. The legend gives this rank, the number h of components,
    and the effective rank.

    Parameters
    ----------
    coefficients : dict from str to array-like of shape (m, h)
        A of each embedding, by name.

    Attributes
    ----------
    eigenvalues : dict from str to ndarray of shape (h,)
        In descending order, divided by the largest.
    numerical_ranks : dict from str to int
        See `mercer.metrics.numerical_rank`.
    effective_ranks : dict from str to float
        See `mercer.metrics.effective_rank`.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, coefficients: Mapping[str, Any]) -> None:
        if not isinstance(coefficients, Mapping) or not coefficients:
            raise invalid_parameter("coefficients", coefficients, "a dict from name to coefficients, not empty")
        self.eigenvalues: dict[str, np.ndarray] = {}
        self.numerical_ranks: dict[str, int] = {}
        self.effective_ranks: dict[str, float] = {}
        for name, values in coefficients.items():
            A = check_matrix(f"coefficients[{name!r}]", values)
            # Singular values of A are more accurate: half of the digits of small eigenvalues of A^T A are rounding.
            singular = np.linalg.svd(A, compute_uv=False)
            if singular[0] == 0:
                raise invalid_parameter(f"coefficients[{name!r}]", 0.0, "different from zero somewhere")
            self.eigenvalues[name] = np.zeros(A.shape[1])
            self.eigenvalues[name][: len(singular)] = (singular / singular[0]) ** 2
            self.numerical_ranks[name] = numerical_rank(values)
            self.effective_ranks[name] = effective_rank(A)

    @classmethod
    def from_estimators(cls, models: Mapping[str, Any], *, ax: Any = None) -> "SpectrumDisplay":
        """Draw fitted embeddings by name, each with `coefficients_`."""
        if not isinstance(models, Mapping) or not models:
            raise invalid_parameter("models", models, "a dict from name to fitted embedding, not empty")
        for name, model in models.items():
            if not hasattr(model, "coefficients_"):
                raise invalid_parameter(f"models[{name!r}]", model, "a fitted embedding, with coefficients_")
        return cls({name: model.coefficients_ for name, model in models.items()}).plot(ax=ax)

    def plot(self, ax: Any = None) -> "SpectrumDisplay":
        """Draw onto `ax`, or onto a new figure."""
        self.ax_ = ax = axes_or_new(ax, figsize=(5.6, 3.8 + 0.2 * len(self.eigenvalues)))
        self.figure_ = ax.figure
        widest = max(map(len, self.eigenvalues.values()))
        for i, (name, values) in enumerate(self.eigenvalues.items()):
            rank = self.numerical_ranks[name]
            style = series_style(i)
            if widest > MOST_MARKS:
                style["marker"] = "none" if rank > 1 else "o"
            label = f"{shorten(name, 24)}: rank {rank} of {len(values)}, effective {self.effective_ranks[name]:.1f}"
            ax.plot(np.arange(1, rank + 1), values[:rank], label=label, linewidth=1.5, markersize=3.5, **style)
        ax.set_yscale("log")
        # The axis spans at least a factor of ten, so that a flat line looks flat.
        lowest = min(values[self.numerical_ranks[name] - 1] for name, values in self.eigenvalues.items())
        ax.set_ylim(min(0.08, 0.6 * lowest), 1.5)
        ax.set_xlim(1 - 0.02 * widest, widest * 1.02)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel("eigenvalue, from the largest")
        ax.set_ylabel("relative to the largest")
        ax.set_title("spectrum of $A^T A$", fontsize=10)
        tidy(ax)
        legend_below(ax)
        return self
