"""Effect curves for the page, computed when they are first asked for, and the place of a row on each."""

import warnings
from typing import Any

import numpy as np

from mercer.app.explore.columns import days_of, is_missing
from mercer.app.explore.subject import Subject
from mercer.exceptions import DataWarning
from mercer.explain import EffectCurve, effect_curve, reasons

# The most curves that are drawn, the rows over which they are averaged, and their points: few, to keep the page fast.
N_CURVES, CURVE_ROWS, CURVE_POINTS = 12, 300, 12
# No curves are drawn if there are more columns than this.
MOST_COLUMNS = 200


class Curves:
    """The effect curves of one model.

    Parameters
    ----------
    subject : Subject
    of_images : bool
        Whether the rows are images. There are no curves for single pixels.
    """

    def __init__(self, subject: Subject, of_images: bool) -> None:
        self.subject, self.of_images = subject, of_images
        self._known: dict[int, EffectCurve | None] = {}

    def at(self, row: int) -> dict[str, Any]:
        """Return the curves and the place of a row on each, with the strongest effect at that row first.

        Parameters
        ----------
        row : int
        """
        if not self.subject.predicts:
            return {"curves": [], "words": "Effect curves show predictions, but this model makes none."}
        if self.of_images or self.subject.X.shape[1] > MOST_COLUMNS:
            return {"curves": [], "words": "Effect curves of single pixels, or of very many columns, say little."}
        x = self.subject.some([row])
        found = [(k, self._curve(k)) for k in self._columns(x)]
        drawn = [_curve_at(curve, x, k) for k, curve in found if curve is not None]
        drawn.sort(key=lambda curve: -abs(curve["at"] or 0.0))
        return {"curves": drawn, "words": ""}

    def _columns(self, x: Any) -> list[int]:
        """Return the columns to draw: all if they are few, else those that matter most for the answer about the row."""
        d = self.subject.X.shape[1]
        if d <= N_CURVES or self.subject.places is None:
            return list(range(min(d, N_CURVES)))
        names = [str(name) for name in x.columns] if hasattr(x, "columns") else [f"x{k}" for k in range(d)]
        strongest = reasons(self.subject.model, x, n_rows=1).feature_names
        return [names.index(name) for name in strongest if name in names][:N_CURVES]

    def _curve(self, k: int) -> EffectCurve | None:
        if k not in self._known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                try:
                    self._known[k] = effect_curve(
                        self.subject.model,
                        self.subject.X,
                        k,
                        n_points=CURVE_POINTS,
                        max_rows=CURVE_ROWS,
                        random_state=0,
                    )
                except ValueError:  # a column of one value, or of very many categories, has no curve
                    self._known[k] = None
        return self._known[k]


def _curve_at(curve: EffectCurve, x: Any, k: int) -> dict[str, Any]:
    value = x.iloc[0, k] if hasattr(x, "iloc") else np.asarray(x)[0, k]
    place: float | None = None
    if curve.column == "category":
        along = np.arange(len(curve.values), dtype=float)
        words = ["(missing)" if is_missing(each) else str(each) for each in curve.values]
        own = "(missing)" if is_missing(value) else str(value)
        place = float(words.index(own)) if own in words else None
    elif curve.column == "number":
        along = curve.values.astype(np.float64)
        place = None if is_missing(value) else float(value)
    else:
        along = days_of(curve.values)
        place = None if is_missing(value) else float(days_of(value))
    return {
        "name": curve.name,
        "kind": curve.column,
        "output": curve.output,
        "x": along,
        "labels": curve.labels,
        "effect": curve.effect,
        "lower": curve.lower,
        "upper": curve.upper,
        "place": place,
        "at": None if place is None else float(np.interp(place, along, curve.effect)),
    }
