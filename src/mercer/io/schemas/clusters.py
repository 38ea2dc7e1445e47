"""Schemas of networks and of clusterings."""

from typing import Any

from mercer.clustering.manifold.memberships import AFFINITIES
from mercer.io.objects import (
    SCHEMAS,
    Schema,
    kernel,
    metric,
    network,
    perceptron,
    plain,
    shape,
)
from mercer.io.schema import (
    Place,
    any_number,
    anything,
    count,
    each,
    either,
    flag,
    labels,
    mapping,
    maybe,
    number,
    numbers,
    one_of,
    sparse_numbers,
    text,
    whole,
)
from mercer.io.schemas.shared import HISTORY, D


def check_network(model: Any, place: Place) -> None:
    """Check that the parameters that set the sizes of a network agree with its weights."""
    h = place.sizes["h"]
    if model.hidden != place.sizes["hidden"]:
        place.at("hidden").refuse(model.hidden, f"{place.sizes['hidden']}, as weights_ have it")
    if model.n_components not in (None, h):
        place.at("n_components").refuse(model.n_components, f"None or {h}, as weights_ have it")
    if model.n_components is None and getattr(model, "n_clusters", 1) > h:
        place.at("n_clusters").refuse(model.n_clusters, f"at most {h}, by which the network has so many features")
    if model.backbone is None and place.sizes["width"] != place.sizes.get("seen", place.sizes["d"]):
        place.at("weights_").refuse(model.weights_["feature_head.0.weight"], "of the columns of a sample")
    if "span" in model.weights_ and model.backbone not in (None, "mlp"):
        place.at("weights_").refuse(sorted(model.weights_), "without a span: the backbone sees samples as they are")
    if model.backbone is not None and not any(name.startswith("backbone.") for name in model.weights_):
        place.at("weights_").refuse(sorted(model.weights_), "the weights of the backbone too")


def check_manifolds(model: Any, place: Place) -> None:
    """Check that the network is as its parameters say, and that a fit would accept those of the memberships."""
    from mercer.clustering.manifold.parameters import check_memberships

    check_network(model, place)
    check_memberships(model)


def check_memberships_by_softmax(model: Any, place: Place) -> None:
    """Check that the network is as its parameters say, with one output for each cluster."""
    check_network(model, place)
    if model.n_clusters != place.sizes["k"]:
        place.at("n_clusters").refuse(model.n_clusters, f"{place.sizes['k']}, as weights_ have it")
    model._check_own()


def check_subspaces(model: Any, place: Place) -> None:
    """Check that there are labels, all of known clusters, and a valid kind of self-expression."""
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
        "weights_": network("d", "h", perceptron("cluster_head", "h")),
        "eta_": number(above=0.0),
        "eigenvalues_": numbers("?"),
        "codes_": numbers("m h"),
        "code_labels_": whole("m", below="m"),
        "code_scales_": numbers("m"),
        "labels_": whole("n"),
        "drawn_rows_": maybe(whole("n")),
        "start_labels_": maybe(whole("n")),
        "final_labels_": maybe(whole("n")),
        "candidates_": each("?", mapping(text, plain)),
        **HISTORY,
    },
    parameters={"affinity": one_of(*AFFINITIES), "n_clusters": count(at_least=1)},
    together=check_manifolds,
)
SCHEMAS["NMCE"] = Schema(
    {
        **D,
        "sample_shape_": shape("d"),
        "seed_": count(),
        "weights_": network("d", "h", {"cluster_head.weight": numbers("k h"), "cluster_head.bias": numbers("k")}),
        "labels_": whole("n", below="k"),
        "drawn_rows_": maybe(whole("n")),
        "start_labels_": whole("n", below="k"),
        **HISTORY,
    },
    parameters={"n_clusters": count(at_least=1)},
    together=check_memberships_by_softmax,
)
SCHEMAS["SubspaceClustering"] = Schema(
    {
        **D,
        "n_clusters_": count("k", at_least=1),
        "labels_": whole("n"),
        "drawn_rows_": maybe(whole("n")),
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
