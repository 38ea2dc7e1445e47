"""Schemas of maps on landmarks and of discriminants."""

from typing import Any

import numpy as np

from mercer.io.objects import (
    SCHEMAS,
    Schema,
    fitted,
    kernel,
    loosely,
    shape,
)
from mercer.io.schema import (
    Place,
    any_number,
    count,
    each,
    labels,
    maybe,
    number,
    numbers,
    whole,
)
from mercer.io.schemas.shared import HISTORY, D


def check_discriminant(model: Any, place: Place) -> None:
    """Check that the covariance is positive semi-definite, that the priors sum to more than 0, and the basis."""
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
    """Check that there are both a kernel and the rows that it is evaluated with, or a precomputed matrix."""
    if (model.kernel_ is None) != (isinstance(model.kernel, str) and model.kernel == "precomputed"):
        place.at("kernel_").refuse(model.kernel_, "None if and only if kernel='precomputed'")
    if model.kernel_ is not None and basis is None:
        place.refuse(None, "a model with the rows that its kernel is taken with")
    if model.kernel_ is None and hasattr(model, "basis_") and place.sizes["m"] != place.sizes["d"]:
        place.at("coefficients_").refuse(model.coefficients_, "of as many rows as there are columns")


def check_nystrom(model: Any, place: Place) -> None:
    """Check the basis, and that the columns of the landmarks in a precomputed matrix are known."""
    check_basis(model, model.landmarks_, place)
    index = model.landmark_indices_
    if model.kernel_ is None and (index is None or index.max(initial=0) >= place.sizes["d"]):
        place.at("landmark_indices_").refuse(index, "columns of the given matrix")


def check_embedding(model: Any, place: Place) -> None:
    """Check that a fit would accept the parameters."""
    from mercer.embedding.parameters import check_parameters

    check_parameters(model, n_given=9)  # how many views were given is not saved; a fit checks it


def check_decoder(decoder: Any, place: Place) -> None:
    """Check that the weights have a row for each coordinate of the code and of the features of the kernel."""
    if place.sizes["w"] != place.sizes["h"] + place.sizes["s"]:
        place.at("weights").refuse(decoder.weights, f"of {place.sizes['h'] + place.sizes['s']} rows")


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
        "center_": maybe(numbers("?")),
        "decoder_": maybe(fitted("Decoder", d="d", h="h")),
        "n_landmark_sets_": count(at_least=1),
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
SCHEMAS["Decoder"] = Schema(
    {
        "bandwidth": number(above=0.0),
        "centers": numbers("q h"),
        "basis": numbers("q s"),
        "scale": number(above=0.0),
        "weights": numbers("w d"),
        "mean": numbers("d"),
        "rows_mean": numbers("d"),
    },
    together=check_decoder,
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
