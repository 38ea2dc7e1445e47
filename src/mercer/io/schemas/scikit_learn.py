"""Schemas of the steps of scikit-learn that may precede Mercer's estimators in a pipeline."""

import warnings
from typing import Any

import numpy as np

from mercer.checks import LARGEST_NUMBERS
from mercer.io.objects import SCHEMAS, Schema
from mercer.io.schema import Place, anything, count, maybe, number, numbers

# Numbers of this size, and 0, must be transformed to numbers that can be computed with.
LARGE = 1e12


def check_transform(step: Any, place: Place) -> None:
    """Check that a step returns finite numbers: a scale of 1e-320 would turn valid rows into infinite ones."""
    rows = LARGE * np.array([[0.0], [1.0], [-1.0]]) * np.ones(place.sizes["d"])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about names of columns, which these rows lack
        made = np.asarray(step.transform(rows), dtype=float)
    # Steps follow each other: nearly infinite numbers would be infinite after the next step.
    if not (np.abs(made) < LARGEST_NUMBERS[made.dtype]).all():
        place.refuse(step, "a step that makes finite numbers of finite ones")


D = {"n_features_in_": count("d", at_least=1)}
SCHEMAS["StandardScaler"] = Schema(
    {**D, "mean_": maybe(numbers("d")), "scale_": maybe(numbers("d")), "var_": maybe(numbers("d"))},
    {"n_samples_seen_": anything},
    together=check_transform,
)
SCHEMAS["MinMaxScaler"] = Schema(
    {**D, **{name: numbers("d") for name in ("min_", "scale_", "data_min_", "data_max_", "data_range_")}},
    {"n_samples_seen_": count()},
    together=check_transform,
)
SCHEMAS["PCA"] = Schema(
    {
        **D,
        "mean_": numbers("d"),
        "components_": numbers("h d"),
        "explained_variance_": numbers("h", at_least=0.0),
        "explained_variance_ratio_": numbers("h"),
        "singular_values_": numbers("h"),
        "n_components_": count("h", at_least=1),
        "n_samples_": count(at_least=1),
        "noise_variance_": number(at_least=0.0),
    },
    together=check_transform,
)
