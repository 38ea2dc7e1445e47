"""Check the objects of a model file against the schemas of their classes, from the outermost inwards."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from mercer.exceptions import ModelFileError
from mercer.io.schema import Check, Place, anything, count, described, entries, number, numbers, one_of
from mercer.kernels import Kernel
from mercer.kernels.custom import Custom
from mercer.kernels.neural_tangent import NeuralTangent
from mercer.mahalanobis import Mahalanobis, check_metric


@dataclass(frozen=True)
class Schema:
    """What the fitted state of a class must be.

    Attributes
    ----------
    fields : dict
        A check for each attribute that every fitted object has.
    optional : dict
        Checks for attributes that only some fitted objects have.
    parameters : dict
        Checks for constructor parameters that are used after the fit and have no other check.
    together : callable or None
        A function of the object and its place that checks how its attributes fit together. It is called last.
    """

    fields: Mapping[str, Check]
    optional: Mapping[str, Check] = field(default_factory=dict)
    parameters: Mapping[str, Check] = field(default_factory=dict)
    together: Callable[[Any, Place], None] | None = None


SCHEMAS: dict[str, Schema] = {}
"""The schema of each class by its name, filled by `mercer.io.schemas`."""


def names(value: Any, place: Place) -> None:
    """Accept names of columns, as in scikit-learn's `feature_names_in_`."""
    if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
        place.refuse(value, "an array of names")
    if not all(isinstance(name, str) for name in value):
        place.refuse(value, "an array of texts")
    place.agree("d", len(value), value)


# Attributes that scikit-learn adds to estimators, and parameters with the same meaning in all classes.
OF_ALL: dict[str, Check] = {
    "feature_names_in_": names,
    "_sklearn_output_config": entries({}, one_of("default", "pandas", "polars")),
}
PARAMETERS_OF_ALL: dict[str, Check] = {"working_memory": number(above=0.0)}


def check_model(model: Any) -> None:
    """Raise a ModelFileError that names the field if the parts of a fitted model do not fit together."""
    check_object(model, Place(""))


def check_object(value: Any, place: Place) -> None:
    """Check a fitted estimator, or a result, by the schema of its class; classes without a schema pass."""
    if isinstance(value, Kernel):
        check_unfitted_kernel(value, place)
    if isinstance(value, Pipeline):
        check_pipeline(value, place)
        return
    schema = SCHEMAS.get(type(value).__name__)
    if schema is None:
        return
    if isinstance(value, BaseEstimator):
        own = vars(value)
        if not any(name.endswith("_") or name in schema.fields for name in own if name not in value.get_params(False)):
            return
        check_parameters(value, schema, place)
        optional = {**OF_ALL, **schema.optional}
    else:
        own, optional = {name: getattr(value, name) for name in schema.fields}, {}
    for name, check in schema.fields.items():
        if name not in own:
            raise ModelFileError(f"is malformed: {place.at(name).name} is missing in a fitted {type(value).__name__}")
        check(own[name], place.at(name))
    for name, check in optional.items():
        if name in own:
            check(own[name], place.at(name))
    if schema.together is not None:
        schema.together(value, place)


def check_pipeline(value: Pipeline, place: Place) -> None:
    """Check that the steps of a pipeline are named and valid, and that it keeps no results in a folder."""
    if value.memory is not None:  # joblib would unpickle files in this folder, which runs code
        place.at("memory").refuse(value.memory, "None: results that are kept in a folder are not loaded")
    if not isinstance(value.steps, list) or not value.steps:
        place.at("steps").refuse(value.steps, "a list of names with estimators")
    names = set[str]()
    for i, step in enumerate(value.steps):
        own = place.at("steps").at(i)
        if not (isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str)):
            own.refuse(step, "a name and an estimator")
        if step[0] in names:
            own.refuse(step[0], "a name that no other step has")
        names.add(step[0])
        if step[1] not in (None, "passthrough"):
            if not isinstance(step[1], BaseEstimator):
                own.refuse(step[1], "an estimator")
            if i < len(value.steps) - 1 and not hasattr(step[1], "transform"):
                own.refuse(step[1], "an estimator with `transform`, as all steps but the last have")
            check_object(step[1], Place(place.at(step[0][:40]).name))


def check_parameters(model: Any, schema: Schema, place: Place) -> None:
    """Check the constructor parameters of a fitted estimator as its own fit does, as far as this needs no data."""
    given = model.get_params(deep=False)
    for name, check in {**PARAMETERS_OF_ALL, **schema.parameters}.items():
        if name in given:
            check(given[name], place.at(name))
    own_check = getattr(model, "_check_parameters", None)
    if own_check is not None and not inspect.signature(own_check).parameters:
        own_check()


def fitted(*classes: str, **links: str) -> Check:
    """Accept a fitted object of one of these classes, whose size `d` equals the size `links["d"]` here."""

    def check(value: Any, place: Place) -> None:
        if type(value).__name__ not in classes or type(value).__name__ not in SCHEMAS:
            place.refuse(value, f"a {' or a '.join(classes)}")
        if isinstance(value, BaseEstimator) and not any(name.endswith("_") for name in vars(value)):
            place.refuse(value, "fitted")
        known = {own: place.sizes[outer] for own, outer in links.items() if outer in place.sizes}
        inner = Place(place.name, known)
        check_object(value, inner)
        for own, outer in links.items():
            if own in inner.sizes:
                place.agree(outer, inner.sizes[own], value)

    return check


def metric(d: str, r: str = "?") -> Check:
    """Accept a metric on rows of d columns that maps these to r coordinates."""

    def check(value: Any, place: Place) -> None:
        if type(value) is not Mahalanobis:
            place.refuse(value, "a Mahalanobis")
        if value.factor is None:
            place.agree(r, place.sizes.get(d, 0), value)
            return
        shape = np.shape(value.factor)
        numbers(d if len(shape) == 1 else f"{d} {r}")(value.factor, place.at("factor"))
        if len(shape) == 1:
            place.agree(r, shape[0], value)

    return check


def check_composition(value: Kernel, place: Place) -> None:
    """Check that the parts of sums, products and multiples of kernels are kernels."""
    for name in ("left", "right", "kernel"):
        if hasattr(value, name):
            if not isinstance(getattr(value, name), Kernel):
                place.at(name).refuse(getattr(value, name), "a kernel")
            check_composition(getattr(value, name), place.at(name))


def check_unfitted_kernel(value: Kernel, place: Place) -> None:
    """Check that the metrics of a kernel have the same columns; evaluate it on one row if its bandwidth is known."""
    check_composition(value, place)
    leaves = value.leaves()
    for leaf in leaves:
        if getattr(leaf, "metric", None) is not None:
            metric("d")(check_metric(leaf.metric), place.at("metric"))
    if not any(getattr(leaf, "bandwidth", None) == "median" for leaf in leaves):
        place.sizes.setdefault("d", 1)
        kernel("d")(value, Place(place.name or "kernel", place.sizes))


def kernel(d: str) -> Check:
    """Accept a kernel on rows of d columns that can be evaluated: its parameters are known and valid."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, Kernel):
            place.refuse(value, "a kernel")
        check_composition(value, place)
        leaves = value.leaves()
        for leaf in leaves:
            own = getattr(leaf, "metric", None)
            if own is not None:
                metric(d)(check_metric(own), place.at("metric"))
        # Evaluating one row shows whether all parameters are valid. A user's function or network is not called before
        # it is needed, and a network has its own number of columns.
        if not any(isinstance(leaf, (Custom, NeuralTangent)) for leaf in leaves) and d in place.sizes:
            try:
                with np.errstate(all="ignore"):
                    one = value.matrix(np.ones((1, place.sizes[d])))
            except (ValueError, TypeError, ArithmeticError, RuntimeError, AttributeError) as error:
                raise ModelFileError(f"is malformed: {place.name} is no kernel that works: {error}") from error
            if not np.isfinite(one).all():
                place.refuse(value, "a kernel with finite values")

    return check


def shape(d: str) -> Check:
    """Accept the shape of one row, which has d numbers in all."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, tuple) or not 1 <= len(value) <= 3:
            place.refuse(value, "a tuple of one to three sizes")
        for i, size in enumerate(value):
            count(at_least=1)(size, place.at(i))
        place.agree(d, prod(int(size) for size in value), value)

    return check


def perceptron(name: str, h: str) -> dict[str, Check]:
    """Return checks for the weights of a head of that name: an affine map, a ReLU and an affine map to h features."""
    return {
        f"{name}.0.weight": numbers("hidden width"),
        f"{name}.0.bias": numbers("hidden"),
        f"{name}.2.weight": numbers(f"{h} hidden"),
        f"{name}.2.bias": numbers(h),
    }


def network(d: str, h: str, others: Mapping[str, Check] | None = None) -> Check:
    """Accept the weights of a `FeatureNetwork` from rows of d numbers to h features, and those in `others`."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, dict):
            place.refuse(value, "a dictionary of arrays")
        parts = {"center": numbers(d), "scale": numbers(d), **perceptron("feature_head", h), **(others or {})}
        if "span" in value:  # a network for few rows with many columns has one
            parts["span"] = numbers(f"{d} seen")
        entries(parts, weight)(value, place)
        for name, array in value.items():
            if name not in parts and not name.startswith("backbone."):
                place.at(name).refuse(array, "a part of the network")
        if (value["scale"] == 0).any():
            place.at("scale").refuse(value["scale"], "without zeros")

    return check


def weight(value: Any, place: Place) -> None:
    """Accept an array of finite numbers of any shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        place.refuse(value, "an array of numbers")
    if not np.isfinite(value).all():
        place.refuse(value, "finite: it has NaN or infinite numbers")


def plain(value: Any, place: Place) -> None:
    """Accept what is only printed, not computed with: strings, numbers, None, and lists and dicts of these."""
    if isinstance(value, dict):
        for key, item in value.items():
            plain(key, place)
            plain(item, place.at(str(key)[:40]))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            plain(item, place.at(i))
    elif value is not None and not isinstance(value, (str, bool, int, float, np.generic, np.ndarray)):
        raise ModelFileError(f"is malformed: {place.name} is {described(value)}, and must be a text or a number")


def loosely(value: Any, place: Place) -> None:
    """Accept an object of any class, and check it by the schema of its class if there is one."""
    check_object(value, Place(place.name))


__all__ = ["SCHEMAS", "Schema", "anything", "check_model", "fitted", "kernel", "metric", "network", "shape"]
