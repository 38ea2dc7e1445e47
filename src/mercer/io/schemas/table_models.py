"""Schemas of models of tables: machines, their parts, and the estimators that hold them."""

from typing import Any

import numpy as np

from mercer.io.objects import (
    SCHEMAS,
    Schema,
    fitted,
    kernel,
    metric,
)
from mercer.io.schema import (
    Check,
    Place,
    any_number,
    each,
    either,
    flag,
    labels,
    maybe,
    number,
    numbers,
    one_of,
    whole,
)
from mercer.io.schemas.shared import HISTORY, D


def check_warps(warp: Any, place: Place) -> None:
    """Check that each warp has the parameters that it needs."""
    shapes = {"none": (0,), "log": (3,)}
    for i, (name, given) in enumerate(zip(warp.warps_, warp.parameters_, strict=True)):
        is_rank = name == "rank" and given.ndim == 2 and given.shape[0] == 2 and given.shape[1] > 1
        if not is_rank and given.shape != shapes.get(name):
            place.at("parameters_").at(i).refuse(given, f"what the warp {name!r} needs")


def check_machine(machine: Any, place: Place) -> None:
    """Check that the leaves are those of the partition, and that the triangle of the root has the size of the rows."""
    m = place.sizes["m"]
    if (machine.partition is None) != (machine.leaves is None):
        place.at("leaves").refuse(machine.leaves, "there if and only if there is a partition")
    if machine.partition is not None and set(np.unique(machine.leaves)) != set(range(machine.partition.n_leaves)):
        place.at("leaves").refuse(machine.leaves, f"all of the {machine.partition.n_leaves} leaves")
    if machine.posterior_root is not None and len(machine.posterior_root) != m * (m + 1) // 2:
        place.at("posterior_root").refuse(machine.posterior_root, f"a triangle of {m} rows")


def check_tree(partition: Any, place: Place) -> None:
    """Check that the cuts are a tree: each other cut and each leaf is the child of exactly one cut, without cycles."""
    k, seen = len(partition.thresholds), [0]
    for child in partition.children.ravel().tolist():
        seen.append(child)
    if k and sorted(seen) != [*range(-k - 1, 0), *range(k)]:
        place.at("children").refuse(partition.children, "a tree of cuts")
    # Cuts are numbered in the order in which they were made, so that a child has a larger number than its parent.
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
    """Return the checks that all models of tables share, for machines of these classes."""
    return {
        **D,
        "machines_": each("s", fitted(*machines, d="d", c="c"), at_least=1),
        "trend_": each("t", fitted("Machine", d="d", c="c")),
        "center_": numbers("c"),
        "kernel_": kernel("d"),
        "columns_": fitted("ColumnWarp", d="d"),
        "metric_": metric("d"),
        "ridge_": number(at_least=0.0),
        "row_index_": whole("?"),
        "machine_rows_": each("p", whole("?")),
        "feature_importances_": numbers("d"),
        "directions_": numbers("? ?"),
        "direction_shares_": numbers("?"),
        **HISTORY,
    }


def check_outputs(model: Any, place: Place) -> None:
    """Check that all machines have the same outputs, which fit the classes, and that shares and rows fit together."""
    # The sum may be below 1: the mean of the targets can have a share as well.
    if sum(machine.share for machine in model.machines_) > 1.001:
        shares = [machine.share for machine in model.machines_]
        place.at("machines_").refuse(shares, "machines whose shares sum to at most 1")
    parts = [*model.trend_, *model.machines_]
    outputs = {machine.alpha.shape[1] for machine in parts} | {len(model.center_)}
    if len(outputs) > 1:
        place.at("machines_").refuse(sorted(outputs), "machines of as many outputs each")
    if len(model.machine_rows_) != len(parts):
        place.at("machine_rows_").refuse(model.machine_rows_, f"a list of {len(parts)}, those of the trend among them")
    for i, (machine, rows) in enumerate(zip(parts, model.machine_rows_, strict=True)):
        if len(rows) != len(machine.rows) or rows.max(initial=-1) >= len(model.row_index_):
            place.at("machine_rows_").at(i).refuse(rows, f"which of row_index_ each of {len(machine.rows)} rows is")
    n_classes = len(getattr(model, "classes_", [])) or None
    if n_classes is not None and outputs != {n_classes} and (n_classes, outputs) != (2, {1}):
        place.at("classes_").refuse(model.classes_, f"classes for {outputs.pop()} outputs")


def check_gp(model: Any, place: Place) -> None:
    """Check that the parts of a Gaussian process fit its outputs, machines and folds."""
    check_outputs(model, place)
    if sum(machine.share for machine in model.machines_) < 0.999:
        place.at("machines_").refuse([machine.share for machine in model.machines_], "machines whose shares sum to 1")
    check_single(model, place)
    if len(model.noise_levels_) not in (0, len(model.center_)):
        place.at("noise_levels_").refuse(len(model.noise_levels_), "one for each output")
    scores = model.fold_scores_
    if (scores is None) != (not model.fold_models_):
        place.at("fold_scores_").refuse(scores, "there if and only if there are fold_models_")
    if scores is not None and scores.fold.max(initial=0) >= len(model.fold_models_):
        place.at("fold_scores_").refuse(scores.fold, f"of {len(model.fold_models_)} folds")


def check_level(level: Any, place: Place) -> None:
    """Check that a noise level has as many inputs as it depends on: the warped columns, or one number, the mean."""
    u, d = place.sizes["u"], place.sizes.get("d")
    if u != (1 if level.columns is None else d):
        place.at("inputs").refuse(level.inputs, "of as many columns as the level depends on")


def check_single(model: Any, place: Place) -> None:
    """Check that a model which predicts a vector, not a matrix, has one output."""
    if model._single and len(model.center_) != 1:
        place.at("_single").refuse(model._single, "False where there are several outputs")


def check_regressor(model: Any, place: Place) -> None:
    """Check the outputs of a regressor."""
    check_outputs(model, place)
    check_single(model, place)


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
SCHEMAS["RFMRegressor"] = Schema({**REGRESSOR, "_single": flag}, {"loo_score_": any_number}, together=check_regressor)
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
        "tails": numbers("c", finite=False, above=2.0),
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
