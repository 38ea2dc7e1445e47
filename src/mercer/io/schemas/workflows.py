"""Schemas of workflows on the files of users."""

from typing import Any

import numpy as np

from mercer.io.objects import (
    SCHEMAS,
    Schema,
    fitted,
    plain,
    shape,
)
from mercer.io.schema import (
    Check,
    Place,
    any_number,
    anything,
    count,
    each,
    entries,
    labels,
    mapping,
    maybe,
    number,
    numbers,
    one_of,
    text,
    texts,
    values,
    whole,
)
from mercer.io.schemas.tables import KINDS


def check_prediction(workflow: Any, place: Place) -> None:
    """Check that the estimator fits the task, that all columns have a kind, and that left-out rows fit the task."""
    estimator, held_out = workflow.model_.estimator_, workflow.held_out_
    if (workflow.task_ == "classification") != hasattr(estimator, "classes_"):
        place.at("task_").refuse(workflow.task_, f"what a {type(estimator).__name__} can do")
    if not set(workflow.columns_) == set(workflow.kinds_) == set(workflow.model_.encoder_.kinds_):
        place.at("columns_").refuse(workflow.columns_, "the columns whose kinds are known")
    if not held_out:
        return
    if workflow.task_ == "regression":
        check = {"true": numbers("n"), "predicted": numbers("n"), "std": maybe(numbers("n", at_least=0.0))}
        # Intervals from few folds may be infinite.
        check |= {name: maybe(numbers("n", finite=False)) for name in ("lower", "upper", "narrowest")}
    else:
        check = {"true": values("n"), "predicted": values("n"), "classes": labels("c"), "probabilities": numbers("n c")}
    inner = Place(place.at("held_out_").name)
    entries({"rows": whole("n"), **check, "encoded": numbers("? ?", finite=False)})(held_out, inner)


def check_order(workflow: Any, place: Place) -> None:
    """Check that the order is an order of the clusters that were found."""
    maybe(count(at_least=1))(workflow.clustering_.truncate, place.at("clustering_").at("truncate"))
    most = int(workflow.clustering_.labels_.max()) + 1
    if workflow.order_.max(initial=0) >= most or len(set(workflow.order_.tolist())) != len(workflow.order_):
        place.at("order_").refuse(workflow.order_, f"an order of {most} clusters")
    check_unlabeled(workflow, place)


def check_unlabeled(workflow: Any, place: Place) -> None:
    """Check that images have a shape and names, and that a table has an encoder and columns."""
    is_table = workflow.reads == "table"
    if is_table != (workflow.encoder_ is not None) or is_table != (workflow.image_shape_ is None):
        place.at("reads").refuse(workflow.reads, "what the model was fitted on")
    if is_table and set(workflow.columns_) != set(workflow.encoder_.kinds_):
        place.at("columns_").refuse(workflow.columns_, "the columns of the encoder")
    if is_table != (workflow.names_ is None):
        place.at("names_").refuse(workflow.names_, "there for images alone")
    model = workflow.embedding_ if hasattr(workflow, "embedding_") else workflow.clustering_
    made = len(workflow.encoder_.origins_) if is_table else int(np.prod(workflow.image_shape_))
    if model.n_features_in_ != made:
        place.refuse(model.n_features_in_, f"a model of the {made} numbers that a row is")


READINGS = mapping(
    text,
    entries(
        {
            "kind": one_of("number", "category", "date", "text", "missing"),
            "formats": each("?", text),
            "unit": text,
            "decimal": one_of(".", ","),
        }
    ),
)
UNLABELED: dict[str, Check] = {
    "readings_": READINGS,
    "reads": one_of("table", "images"),
    "n_rows_": count("n", at_least=1),
    "encoder_": maybe(fitted("TableEncoder")),
    "image_shape_": maybe(shape("?")),
    "columns_": texts("?"),
    "names_": maybe(each("n", text)),
    "settings_": mapping(text, plain),
}
SCHEMAS["TablePrediction"] = Schema(
    {
        "task_": one_of("regression", "classification"),
        "target_": text,
        "columns_": texts("d"),
        "readings_": READINGS,
        "encoder_kinds_": KINDS,
        "dropped_rows_": count(),
        "n_rows_": count(),
        "n_train_": count(),
        "n_test_": count(),
        "n_learned_": count(),
        "stopped_": one_of("", "time limit", "Ctrl-C"),
        "scores_": each("?", entries({"name": text}, maybe(any_number))),
        "held_out_": mapping(text, anything),
        "origin_": entries({"command": text, "data": mapping(text, text), "versions": mapping(text, text)}),
        "split_": entries({"kind": one_of("random", "time", "group"), "column": maybe(text), "reason": text}),
        "findings_": each("?", entries({"kind": text, "column": text, "text": text})),
        "intervals_": mapping(text, each("2", any_number)),
        "compared_with_": mapping(text, plain),
        "compared_with_guess_": mapping(text, plain),
        "recalls_": each("?", entries({"class": text, "rows": count(), "recall": number(at_least=0.0, at_most=1.0)})),
        "repeats_": each("?", mapping(text, any_number)),
        "curve_": each("?", entries({"rows": count()}, any_number)),
        "needs_": each("?", entries({"column": text}, any_number)),
        "wrong_": each("?", mapping(text, plain)),
        "typical_values_": mapping(text, plain),
        "compared_": mapping(text, maybe(any_number)),
        "chosen_": text,
        "metric_": text,
        "model_": fitted("TabularModel", d="d"),
        "kinds_": KINDS,
        "settings_": mapping(text, plain),
        "importances_": mapping(text, number()),
        "combinations_": each("?", entries({"share": number(), "terms": each("?", plain)})),
    },
    together=check_prediction,
)
SCHEMAS["DataEmbedding"] = Schema(
    {
        **UNLABELED,
        "embedding_": fitted("KernelEmbedding", h="h"),
        "n_components_": count("h"),
        "map_rows_": whole("m", below="n"),
        "map_coordinates_": numbers("m h"),
        "map_positions_": numbers("m 2"),
        "map_": numbers("n 2"),
        "effective_rank_": number(at_least=0.0),
    },
    together=check_unlabeled,
)
SCHEMAS["DataClustering"] = Schema(
    {
        **UNLABELED,
        "clustering_": fitted("SubspaceClustering"),
        "n_clusters_": count("k", at_least=1),
        "order_": whole("k"),
        "labels_": whole("n", below="k"),
        "confidence_": numbers("n"),
        "sizes_": whole("k"),
        "typical_": each("k", whole("?", below="n")),
        "border_": each("k", whole("?", below="n")),
        "profiles_": maybe(each("k", each("?", mapping(text, plain)))),
        "candidates_": each("?", mapping(text, plain)),
        "modularity_": any_number,
    },
    together=check_order,
)
