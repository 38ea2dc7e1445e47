"""What the fitted state of each class must be for a file to be loaded; sizes are letters, the same within a class.

A new fitted attribute that a method reads belongs here: a test finds one that is missing.
"""

from typing import Any

import numpy as np

from mercer.clustering.manifold.memberships import AFFINITIES
from mercer.exceptions import ModelFileError
from mercer.io.objects import (
    SCHEMAS,
    Schema,
    check_model,
    fitted,
    kernel,
    loosely,
    metric,
    network,
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
    either,
    entries,
    flag,
    labels,
    mapping,
    maybe,
    number,
    numbers,
    one_of,
    sparse_numbers,
    text,
    texts,
    values,
    whole,
)

__all__ = ["SCHEMAS", "check_model"]

D: dict[str, Check] = {"n_features_in_": count("d", at_least=1)}
HISTORY: dict[str, Check] = {"history_": each("?", mapping(text, plain))}


# ---- models of tables -------------------------------------------------------------------------------------------


def check_warps(warp: Any, place: Place) -> None:
    """Each warp has the parameters that it needs."""
    shapes = {"none": (0,), "log": (3,)}
    for i, (name, given) in enumerate(zip(warp.warps_, warp.parameters_, strict=True)):
        is_rank = name == "rank" and given.ndim == 2 and given.shape[0] == 2 and given.shape[1] > 1
        if not is_rank and given.shape != shapes.get(name):
            place.at("parameters_").at(i).refuse(given, f"what the warp {name!r} needs")


def check_machine(machine: Any, place: Place) -> None:
    """Leaves and partition belong together, and so do the triangle and the rows."""
    m = place.sizes["m"]
    if (machine.partition is None) != (machine.leaves is None):
        place.at("leaves").refuse(machine.leaves, "there if and only if there is a partition")
    if machine.partition is not None and set(np.unique(machine.leaves)) != set(range(machine.partition.n_leaves)):
        place.at("leaves").refuse(machine.leaves, f"all of the {machine.partition.n_leaves} leaves")
    if machine.posterior_root is not None and len(machine.posterior_root) != m * (m + 1) // 2:
        place.at("posterior_root").refuse(machine.posterior_root, f"a triangle of {m} rows")


def check_tree(partition: Any, place: Place) -> None:
    """From the first cut every other one, and every leaf, is reached once: no way is endless."""
    k, seen = len(partition.thresholds), [0]
    for child in partition.children.ravel().tolist():
        seen.append(child)
    if k and sorted(seen) != [*range(-k - 1, 0), *range(k)]:
        place.at("children").refuse(partition.children, "a tree of cuts")
    # Cuts are numbered as they were made, each after the one above it.
    for cut, children in enumerate(partition.children.tolist()):
        if any(0 <= child <= cut for child in children):
            place.at("children").refuse(partition.children, "a tree of cuts")


MACHINE: dict[str, Check] = {
    "rows": numbers("m d"),
    "kernel": kernel("d"),
    "columns": fitted("ColumnWarp", d="d"),
    "alpha": numbers("m c"),
    "ridge": number(at_least=0.0),
    "share": number(at_least=0.0),
    "output_scales": numbers("c", at_least=0.0),
    "weights": maybe(numbers("m", at_least=0.0)),
    "partition": maybe(fitted("Partition", d="d")),
    "leaves": maybe(whole("m")),
    "posterior_root": maybe(numbers("?")),
}


def table_model(*machines: str) -> dict[str, Check]:
    """Return what all models of a table have, of machines of these classes."""
    return {
        **D,
        "machines_": each("s", fitted(*machines, d="d", c="c"), at_least=1),
        "center_": numbers("c"),
        "kernel_": kernel("d"),
        "columns_": fitted("ColumnWarp", d="d"),
        "metric_": metric("d"),
        "ridge_": number(at_least=0.0),
        "row_index_": whole("?"),
        "machine_rows_": each("s", whole("?")),
        "feature_importances_": numbers("d"),
        "directions_": numbers("? ?"),
        "direction_shares_": numbers("?"),
        **HISTORY,
    }


def check_outputs(model: Any, place: Place) -> None:
    """All machines have as many outputs, and as many as there are classes, if there are."""
    outputs = {machine.alpha.shape[1] for machine in model.machines_} | {len(model.center_)}
    if len(outputs) > 1:
        place.at("machines_").refuse(sorted(outputs), "machines of as many outputs each")
    for i, (machine, rows) in enumerate(zip(model.machines_, model.machine_rows_, strict=True)):
        if len(rows) != len(machine.rows) or rows.max(initial=-1) >= len(model.row_index_):
            place.at("machine_rows_").at(i).refuse(rows, f"which of row_index_ each of {len(machine.rows)} rows is")
    n_classes = len(getattr(model, "classes_", [])) or None
    if n_classes is not None and outputs != {n_classes} and (n_classes, outputs) != (2, {1}):
        place.at("classes_").refuse(model.classes_, f"classes for {outputs.pop()} outputs")


def check_gp(model: Any, place: Place) -> None:
    """The parts of a Gaussian process are of its outputs and machines."""
    check_outputs(model, place)
    if model._single and len(model.center_) != 1:
        place.at("_single").refuse(model._single, "False where there are several outputs")
    if len(model.noise_levels_) not in (0, len(model.center_)):
        place.at("noise_levels_").refuse(len(model.noise_levels_), "one for each output")
    scores = model.fold_scores_
    if (scores is None) != (not model.fold_models_):
        place.at("fold_scores_").refuse(scores, "there if and only if there are fold_models_")
    if scores is not None and scores.fold.max(initial=0) >= len(model.fold_models_):
        place.at("fold_scores_").refuse(scores.fold, f"of {len(model.fold_models_)} folds")


def check_level(level: Any, place: Place) -> None:
    """A level of noise depends on the warped columns, or on one number, the mean."""
    u, d = place.sizes["u"], place.sizes.get("d")
    if u != (1 if level.columns is None else d):
        place.at("inputs").refuse(level.inputs, "of as many columns as the level depends on")


def single(model: Any, place: Place) -> None:
    """A model of one output says so."""
    check_outputs(model, place)
    if model._single and len(model.center_) != 1:
        place.at("_single").refuse(model._single, "False where there are several outputs")


REGRESSOR = table_model("Machine")
SCHEMAS["ColumnWarp"] = Schema(
    {
        **D,
        "warps_": each("d", one_of("none", "log", "rank")),
        "parameters_": each("d", either(numbers("?"), numbers("2 ?"))),
        "mean_": numbers("d"),
        "scale_": numbers("d", above=0.0),
    },
    together=check_warps,
)
SCHEMAS["Partition"] = Schema(
    {
        "columns": fitted("ColumnWarp", d="d"),
        "directions": numbers("k d"),
        "thresholds": numbers("k"),
        "children": whole("k 2", at_least=-(2**31)),
    },
    together=check_tree,
)
SCHEMAS["Machine"] = Schema(MACHINE, together=check_machine)
SCHEMAS["LatentMachine"] = Schema(
    {**MACHINE, "offsets": numbers("c"), "sharpness": number(), "spread": number(at_least=0.0)},
    together=check_machine,
)
SCHEMAS["RFMRegressor"] = Schema({**REGRESSOR, "_single": flag}, {"loo_score_": any_number}, together=single)
SCHEMAS["RFMClassifier"] = Schema(
    {**REGRESSOR, "classes_": labels("k"), "calibration_": fitted("Calibration", k="k")},
    {"loo_score_": any_number},
    together=check_outputs,
)
SCHEMAS["Calibration"] = Schema({"scale": number(), "offsets": numbers("k")})
SCHEMAS["GPClassifier"] = Schema(
    {**table_model("LatentMachine"), "classes_": labels("c")}, {"loo_score_": any_number}, together=check_outputs
)
SCHEMAS["GPRegressor"] = Schema(
    {
        **REGRESSOR,
        "_single": flag,
        "target_warps_": each("c", fitted("TargetWarp")),
        "spread_": fitted("Spread", c="c", s="s"),
        "noise_levels_": each("?", maybe(fitted("NoiseLevel", d="d"))),
        "seen_variances_": each("s", numbers("?", at_least=0.0)),
        "fold_models_": each("?", fitted("GPRegressor", d="d", c="c")),
        "fold_scores_": maybe(fitted("FoldScores", c="c")),
        **{name: either(number(), numbers("c")) for name in ("output_scale_", "noise_")},
        **dict.fromkeys(("loo_log_density_", "log_marginal_likelihood_"), any_number),
    },
    together=check_gp,
)
SCHEMAS["TargetWarp"] = Schema(
    {
        "name": one_of("none", "log", "yeo-johnson"),
        "shift": number(),
        "scale": number(above=0.0),
        "exponent": number(at_least=-10.0, at_most=10.0),
        "smallest": any_number,
    }
)
SCHEMAS["Spread"] = Schema(
    {
        "scale": numbers("c", above=0.0),
        "exponent": numbers("c"),
        "tails": numbers("c", finite=False, above=0.0),
        "reference": numbers("s c", above=0.0),
        "smallest": numbers("s c"),
        "largest": numbers("s c"),
    }
)
SCHEMAS["NoiseLevel"] = Schema(
    {
        "inputs": numbers("i u"),
        "alpha": numbers("i"),
        "kernel": kernel("u"),
        "columns": maybe(fitted("ColumnWarp", d="d")),
    },
    together=check_level,
)
SCHEMAS["FoldScores"] = Schema({"fold": whole("n"), "score": numbers("n c", at_least=0.0)})


# ---- maps on landmarks and discriminants ------------------------------------------------------------------------


def check_discriminant(model: Any, place: Place) -> None:
    """The covariance is one; without a kernel, the coefficients are of the columns of a given matrix."""
    covariance = model.covariance_
    with np.errstate(all="ignore"):
        is_even = np.allclose(covariance, covariance.T, rtol=1e-6, atol=0.0)
        smallest = np.linalg.eigvalsh(covariance).min(initial=0.0) if is_even else -np.inf
    if smallest < -1e-6 * np.abs(covariance).max(initial=0.0):
        place.at("covariance_").refuse(covariance, "symmetric and positive semi-definite")
    if model.priors_.sum() <= 0:
        place.at("priors_").refuse(model.priors_, "of a sum above 0")
    check_basis(model, model.basis_, place)


def check_basis(model: Any, basis: Any, place: Place) -> None:
    """A kernel and the rows that it is taken with are there, or neither is."""
    if (model.kernel_ is None) != (isinstance(model.kernel, str) and model.kernel == "precomputed"):
        place.at("kernel_").refuse(model.kernel_, "None if and only if kernel='precomputed'")
    if model.kernel_ is not None and basis is None:
        place.refuse(None, "a model with the rows that its kernel is taken with")
    if model.kernel_ is None and hasattr(model, "basis_") and place.sizes["m"] != place.sizes["d"]:
        place.at("coefficients_").refuse(model.coefficients_, "of as many rows as there are columns")


def check_nystrom(model: Any, place: Place) -> None:
    """Of a given matrix, the columns of the landmarks are known."""
    check_basis(model, model.landmarks_, place)
    index = model.landmark_indices_
    if model.kernel_ is None and (index is None or index.max(initial=0) >= place.sizes["d"]):
        place.at("landmark_indices_").refuse(index, "columns of the given matrix")


def check_embedding(model: Any, place: Place) -> None:
    """Parameters are what a fit would take."""
    from mercer.embedding.parameters import check_parameters

    check_parameters(model, n_given=9)  # that views were given is not known any more; a fit sees to it


SCHEMAS["KernelDiscriminant"] = Schema(
    {
        **D,
        "classes_": labels("c"),
        "basis_": maybe(numbers("m d")),
        "coefficients_": numbers("m h"),
        "bias_": maybe(numbers("h")),
        "kernel_": maybe(kernel("d")),
        "ridge_": number(at_least=0.0),
        "ratios_": numbers("h", finite=False),
        "variance_ratios_": numbers("h", finite=False),
        "centroids_": numbers("c h"),
        "covariance_": numbers("h h"),
        "priors_": numbers("c", at_least=0.0),
        "temperature_": number(above=0.0),
    },
    together=check_discriminant,
)
SCHEMAS["Nystrom"] = Schema(
    {
        **D,
        "landmarks_": numbers("m d"),
        "kernel_": maybe(kernel("d")),
        "landmark_indices_": maybe(whole("m")),
        "coefficients_": numbers("m h"),
    },
    together=check_nystrom,
)
SCHEMAS["KernelEmbedding"] = Schema(
    {
        **D,
        "sample_shape_": shape("d"),
        "landmarks_": numbers("m d"),
        "landmark_indices_": maybe(whole("?")),
        "kernel_": kernel("d"),
        "coefficients_": numbers("m h"),
        "bias_": numbers("h"),
        "eigenvalues_": numbers("?"),
        "seed_": count(),
        "augmented_": maybe(fitted("Augmented", d="d")),
        "ridge_": number(at_least=0.0),
        "loss_": any_number,
        **HISTORY,
    },
    {"moments_": each("?", fitted("Moments", m="m"))},
    together=check_embedding,
)
SCHEMAS["Augmented"] = Schema(
    {"augment": loosely, "shape": shape("d"), "center": maybe(numbers("d")), "scale": maybe(numbers("d", above=0.0))}
)
SCHEMAS["Moments"] = Schema(
    {
        "n_rows": count(),
        "total": numbers("m"),
        "second": numbers("m m"),
        "cross": numbers("m m"),
        "diagonal": numbers(""),
    }
)


# ---- networks and clusters --------------------------------------------------------------------------------------


def check_network(model: Any, place: Place) -> None:
    """Parameters that choose the sizes of a network agree with its weights, and labels with each other."""
    h = place.sizes["h"]
    if model.hidden != place.sizes["hidden"]:
        place.at("hidden").refuse(model.hidden, f"{place.sizes['hidden']}, as weights_ have it")
    if model.n_components not in (None, h):
        place.at("n_components").refuse(model.n_components, f"None or {h}, as weights_ have it")
    if model.n_components is None and getattr(model, "n_clusters", 1) > h:
        place.at("n_clusters").refuse(model.n_clusters, f"at most {h}, by which the network has so many features")
    if model.backbone is None and place.sizes["width"] != place.sizes["d"]:
        place.at("weights_").refuse(model.weights_["feature_head.0.weight"], "of the columns of a sample")
    if model.backbone is not None and not any(name.startswith("backbone.") for name in model.weights_):
        place.at("weights_").refuse(sorted(model.weights_), "the weights of the backbone too")


def check_subspaces(model: Any, place: Place) -> None:
    """Labels are of the clusters, and there is one at least."""
    k = place.sizes["k"]
    if not len(model.labels_) or model.labels_.max() >= k:
        place.at("labels_").refuse(model.labels_, f"of {k} clusters")
    if model.expression_ is None or not hasattr(model.expression_, "solver"):
        place.at("expression_").refuse(model.expression_, "a kind of self-expression")
    from torch import eye

    model.expression_.solver(eye(2).double())  # which checks its parameters


SCHEMAS["MCR2"] = Schema(
    {
        **D,
        "sample_shape_": shape("d"),
        "classes_": labels("c"),
        "seed_": count(),
        "weights_": network("d", "h"),
        "bases_": each("c", numbers("h ?")),
        **HISTORY,
    },
    together=check_network,
)
SCHEMAS["ManifoldClustering"] = Schema(
    {
        **D,
        "sample_shape_": shape("d"),
        "seed_": count(),
        "stage_": one_of("start", "final"),
        "weights_": network("d", "h", ("cluster_head.", "steps"), n_others=5),
        "eta_": number(above=0.0),
        "eigenvalues_": numbers("?"),
        "codes_": numbers("m h"),
        "code_labels_": whole("m", below="m"),
        "code_scales_": numbers("m"),
        "labels_": whole("n"),
        "start_labels_": maybe(whole("n")),
        "final_labels_": maybe(whole("n")),
        "candidates_": each("?", mapping(text, plain)),
        **HISTORY,
    },
    parameters={"affinity": one_of(*AFFINITIES), "n_clusters": count(at_least=1)},
    together=check_network,
)
SCHEMAS["SubspaceClustering"] = Schema(
    {
        **D,
        "n_clusters_": count("k", at_least=1),
        "labels_": whole("n"),
        "coef_": sparse_numbers("l n"),
        "affinity_matrix_": maybe(sparse_numbers("n n")),
        "eigenvalues_": numbers("?"),
        "metric_": metric("d", "r"),
        "n_iter_": count(),
        "ridge_": number(at_least=0.0),
        "modularity_": any_number,
        "bases_": each("k", numbers("? d")),
        "dimensions_": whole("k"),
        "landmark_indices_": whole("l", below="n"),
        "dictionary_": numbers("l r"),
        "kernel_": kernel("r"),
        "expression_": anything,
        **HISTORY,
    },
    parameters={"truncate": maybe(either(one_of("auto"), count(at_least=1))), "normalize": flag},
    together=check_subspaces,
)


# ---- tables -----------------------------------------------------------------------------------------------------


def check_column(column: Any, place: Place) -> None:
    """What is kept are numbers that the reader gives: it is let read one missing value."""
    from mercer.tables.frames import optional

    if type(column.reader).__name__ == "Numbers":
        width = 1
    else:
        missing = optional("pandas", "a table").Series([None], dtype=object, name="x")
        try:
            width = column.reader.read(missing).raw.shape[1]
            named = len(column.reader.names("x"))
        except Exception as error:  # a format or a time zone that there is not, or whatever else
            raise ModelFileError(f"is malformed: {place.at('reader').name} reads nothing: {error}") from error
        if named != width:
            place.at("reader").refuse(named, f"a reader with {width} names")
    if column.kept.max(initial=-1) >= width:
        place.at("kept").refuse(column.kept, f"numbers below {width}")


def check_levels(reader: Any, place: Place) -> None:
    """There is a mean for each level."""
    if len(reader.means) != len(reader.levels) + bool(reader.missing):
        place.at("means").refuse(reader.means, f"of {len(reader.levels) + bool(reader.missing)} levels")


def check_encoder(encoder: Any, place: Place) -> None:
    """As many columns come out as are said to, of columns that are known by name."""
    made = sum(len(column.kept) + bool(column.marked) for column in encoder.columns_)
    if made != place.sizes["o"]:
        place.at("origins_").refuse(encoder.origins_, f"of the {made} columns that are made")
    if len(encoder.kinds_) != place.sizes["d"]:
        place.at("kinds_").refuse(encoder.kinds_, f"the kinds of {place.sizes['d']} columns")
    unnamed = [f"x{i}" for i in range(place.sizes["d"])]
    if list(encoder.kinds_) != list(getattr(encoder, "feature_names_in_", unnamed)):
        place.at("kinds_").refuse(list(encoder.kinds_), "the kinds of feature_names_in_")
    for i, column in enumerate(encoder.columns_):
        if column.name not in encoder.kinds_:
            place.at("columns_").at(i).refuse(column.name, "one of the columns of the table")


def check_tabular(model: Any, place: Place) -> None:
    """The estimator takes what the encoder makes."""
    encoder, estimator = model.encoder_, model.estimator_
    made, taken = len(getattr(encoder, "origins_", [])), getattr(estimator, "n_features_in_", None)
    if type(encoder).__name__ == "TableEncoder" and taken != made:
        place.at("estimator_").refuse(taken, f"fitted on the {made} columns that the encoder makes")


READERS = fitted("Numbers", "Dates", "Categories", "LevelMeans", "Texts")
KINDS = mapping(text, one_of("number", "category", "date", "text", "constant", "missing"))
SCHEMAS["Numbers"] = Schema({})
SCHEMAS["Dates"] = Schema({"form": maybe(text), "zone": maybe(text)})
SCHEMAS["Categories"] = Schema({"levels": texts("l"), "missing": flag})
SCHEMAS["LevelMeans"] = Schema(
    {
        "levels": texts("l"),
        "missing": flag,
        "means": numbers("? c"),
        "mean": numbers("c"),
        "weight": number(at_least=0.0),
        "titles": each("c", text),
    },
    together=check_levels,
)
SCHEMAS["Texts"] = Schema({"ngrams": texts("g"), "idf": numbers("g"), "directions": numbers("k g")})
SCHEMAS["EncodedColumn"] = Schema(
    {
        "name": text,
        "reader": READERS,
        "kept": whole("k"),
        "fill": numbers("k"),
        "center": numbers("k"),
        "factor": numbers("k"),
        "marked": flag,
    },
    together=check_column,
)
SCHEMAS["TableEncoder"] = Schema(
    {
        **D,
        "columns_": each("?", fitted("EncodedColumn")),
        "kinds_": KINDS,
        "origins_": whole("o", below="d"),
        "variances_": numbers("o", at_least=0.0),
    },
    together=check_encoder,
)
ESTIMATORS = fitted(
    "GPClassifier",
    "GPRegressor",
    "KernelDiscriminant",
    "KernelEmbedding",
    "MCR2",
    "ManifoldClustering",
    "Nystrom",
    "RFMClassifier",
    "RFMRegressor",
    "SubspaceClustering",
    "ColumnWarp",
)
SCHEMAS["TabularModel"] = Schema(
    {**D, "encoder_": fitted("TableEncoder", d="d"), "estimator_": ESTIMATORS}, together=check_tabular
)


# ---- workflows --------------------------------------------------------------------------------------------------


def check_prediction(workflow: Any, place: Place) -> None:
    """Numbers are predicted by what predicts numbers, classes by what has classes; held-out rows are of their kind."""
    estimator, held_out = workflow.model_.estimator_, workflow.held_out_
    if (workflow.task_ == "classification") != hasattr(estimator, "classes_"):
        place.at("task_").refuse(workflow.task_, f"what a {type(estimator).__name__} can do")
    if not set(workflow.columns_) == set(workflow.kinds_) == set(workflow.model_.encoder_.kinds_):
        place.at("columns_").refuse(workflow.columns_, "the columns whose kinds are known")
    if not held_out:
        return
    if workflow.task_ == "regression":
        check = {"true": numbers("n"), "predicted": numbers("n"), "std": maybe(numbers("n", at_least=0.0))}
    else:
        check = {"true": values("n"), "predicted": values("n"), "classes": labels("c"), "probabilities": numbers("n c")}
    inner = Place(place.at("held_out_").name)
    entries({"rows": whole("n"), **check, "encoded": numbers("? ?", finite=False)})(held_out, inner)


def check_order(workflow: Any, place: Place) -> None:
    """The order is one of the clusters that were found."""
    maybe(count(at_least=1))(workflow.clustering_.truncate, place.at("clustering_").at("truncate"))
    most = int(workflow.clustering_.labels_.max()) + 1
    if workflow.order_.max(initial=0) >= most or len(set(workflow.order_.tolist())) != len(workflow.order_):
        place.at("order_").refuse(workflow.order_, f"an order of {most} clusters")
    check_unlabelled(workflow, place)


def check_unlabelled(workflow: Any, place: Place) -> None:
    """Images have a shape and names, tables an encoder and columns."""
    is_table = workflow.reads == "table"
    if is_table != (workflow.encoder_ is not None) or is_table != (workflow.image_shape_ is None):
        place.at("reads").refuse(workflow.reads, "what the model was fitted on")
    if is_table and set(workflow.columns_) != set(workflow.encoder_.kinds_):
        place.at("columns_").refuse(workflow.columns_, "the columns of the encoder")
    if is_table != (workflow.names_ is None):
        place.at("names_").refuse(workflow.names_, "there for images alone")
    model = getattr(workflow, "embedding_", None) or getattr(workflow, "clustering_", None)
    made = len(workflow.encoder_.origins_) if is_table else int(np.prod(workflow.image_shape_))
    if getattr(model, "n_features_in_", made) != made:
        place.refuse(model.n_features_in_, f"a model of the {made} numbers that a row is")


UNLABELLED: dict[str, Check] = {
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
        "dropped_rows_": count(),
        "n_train_": count(),
        "n_test_": count(),
        "scores_": each("?", entries({"name": text}, maybe(any_number))),
        "held_out_": mapping(text, anything),
        "compared_": mapping(text, maybe(any_number)),
        "chosen_": text,
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
        **UNLABELLED,
        "embedding_": fitted("KernelEmbedding", h="h"),
        "n_components_": count("h"),
        "map_rows_": whole("m", below="n"),
        "map_coordinates_": numbers("m h"),
        "map_positions_": numbers("m 2"),
        "map_": numbers("n 2"),
        "effective_rank_": number(at_least=0.0),
    },
    together=check_unlabelled,
)
SCHEMAS["DataClustering"] = Schema(
    {
        **UNLABELLED,
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
