"""Schemas of what scikit-learn puts before Mercer's estimators in a pipeline."""

from mercer.io.objects import SCHEMAS, Schema
from mercer.io.schema import anything, count, maybe, number, numbers

D = {"n_features_in_": count("d", at_least=1)}
SCHEMAS["StandardScaler"] = Schema(
    {**D, "mean_": maybe(numbers("d")), "scale_": maybe(numbers("d")), "var_": maybe(numbers("d"))},
    {"n_samples_seen_": anything},
)
SCHEMAS["MinMaxScaler"] = Schema(
    {**D, **{name: numbers("d") for name in ("min_", "scale_", "data_min_", "data_max_", "data_range_")}},
    {"n_samples_seen_": count()},
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
)
