"""The classes that a concept supports, compared with random concepts of the same size."""

from typing import Any

import numpy as np

from mercer.checks import check_count, check_probability
from mercer.exceptions import invalid_parameter
from mercer.explain import ConceptProfile, concept_profile
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, tidy


class ConceptProfileDisplay:
    """A bar for each class with the influence of a concept, minus the mean over all rows.

    Bars are filled if the influence is significantly larger than that of random concepts.

    Parameters
    ----------
    profile : ConceptProfile
        The result of `mercer.explain.concept_profile`.
    name : str, optional
        The name of the concept, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, profile: ConceptProfile, name: str | None = None) -> None:
        if not isinstance(profile, ConceptProfile):
            raise invalid_parameter("profile", profile, "what mercer.explain.concept_profile returns")
        self.profile = profile
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        embedding: Any,
        X: Any,
        groups: Any,
        examples: Any,
        others: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> "ConceptProfileDisplay":
        """Draw the profile of the concept that separates `examples` from `others`.

        `options` are those of `mercer.explain.concept_profile`.
        """
        return cls(concept_profile(embedding, X, groups, examples, others, **options), name).plot(ax=ax)

    def plot(self, ax: Any = None, *, level: float = 0.05, max_groups: int = 30) -> "ConceptProfileDisplay":
        """Draw onto `ax`, or onto a new figure. Only the `max_groups` strongest groups are drawn.

        Bars are filled if the p-value is at most `level`.
        """
        found, level = self.profile, check_probability("level", level)
        order = np.argsort(-found.mean, kind="stable")
        drawn = order[np.sort(np.argsort(-np.abs(found.mean[order]))[: check_count("max_groups", max_groups)])]
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 1.3 + 0.27 * len(drawn)))
        self.figure_ = ax.figure
        places, beyond = np.arange(len(drawn)), found.p_value[drawn] <= level
        faces = np.where(beyond, CATEGORIES[0], "white")
        ax.barh(places, found.mean[drawn], color=faces, edgecolor=CATEGORIES[0], height=0.66, zorder=3)
        ax.axvline(0.0, color="0.6", linewidth=0.9, zorder=1)
        for place, k in enumerate(drawn):  # p-values are outside the axes, where they cover no bar
            ax.annotate(
                f"p {found.p_value[k]:.2g}",
                (1.0, place),
                xycoords=("axes fraction", "data"),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                fontweight="bold" if beyond[place] else "normal",
            )
        ax.set_yticks(places, [shorten(found.groups[k]) for k in drawn], fontsize=9)
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel(f"influence of the concept, minus the mean\n(filled: beyond {found.n_random} random concepts)")
        title = "" if self.name is None else shorten(self.name, 36)
        ax.set_title(f"{title}\n{len(drawn)} of {len(order)} groups" if len(drawn) < len(order) else title, fontsize=10)
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        return self
