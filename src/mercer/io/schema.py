"""Checks of which schemas are made: kinds of values, and shapes of arrays that agree with each other.

A check is a function of a value and its place that raises a ModelFileError naming the field. Sizes are letters, as in
docstrings: `numbers("n d")` and `numbers("n c")` in one schema say that two arrays have the same number of rows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from torch import Tensor

from mercer.exceptions import ModelFileError, shown

LARGEST_SIZE = 2**48


@dataclass(frozen=True)
class Place:
    """The place of a value in a model, by its name, and the sizes that are known there."""

    name: str
    sizes: dict[str, int] = field(default_factory=dict)

    def at(self, step: object) -> "Place":
        """Return the place of a part of the value."""
        text = f"[{step}]" if isinstance(step, int) else str(step) if not self.name else f".{step}"
        return Place(self.name + text, self.sizes)

    def refuse(self, value: Any, allowed: str) -> NoReturn:
        """Raise the error that says what the value is and what it must be."""
        raise ModelFileError(f"is malformed: {self.name} is {described(value)}, and must be {allowed}")

    def agree(self, size: str, number: int, value: Any) -> None:
        """Set a size to a number, or raise an error if it has another one already; "?" may be any number."""
        known = int(size) if size.isdigit() else self.sizes.setdefault(size, number) if size != "?" else number
        if known != number:
            self.refuse(value, f"of the length {known}, as the rest of the model is, where it has {number}")


Check = Callable[[Any, Place], None]


def described(value: Any) -> str:
    """Return a short description of a value; for an array, its dtype and shape."""
    if isinstance(value, (np.ndarray, Tensor)) or sparse.issparse(value):
        return f"an array of {value.dtype} of shape {tuple(value.shape)}"
    return shown(value, 100)


# ---- single values ----------------------------------------------------------------------------------------------


def anything(value: Any, place: Place) -> None:
    """Accept any value: nothing is computed with it."""


def text(value: Any, place: Place) -> None:
    """Accept a string."""
    if not isinstance(value, str):
        place.refuse(value, "a text")


def flag(value: Any, place: Place) -> None:
    """Accept a boolean."""
    if not isinstance(value, (bool, np.bool_)):
        place.refuse(value, "True or False")


def number(*, above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf) -> Check:
    """Accept a finite number within bounds."""

    def check(value: Any, place: Place) -> None:
        is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
        if not is_number or not math.isfinite(value) or not (above < value and at_least <= value <= at_most):
            bounds = f" above {above:g}" * (above > -math.inf) + f" at least {at_least:g}" * (at_least > -math.inf)
            place.refuse(value, f"a finite number{bounds}" + f" at most {at_most:g}" * (at_most < math.inf))

    return check


def any_number(value: Any, place: Place) -> None:
    """Accept any number, also an infinite one or NaN."""
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        place.refuse(value, "a number")


def count(size: str = "?", *, at_least: int = 0) -> Check:
    """Accept a whole number, which becomes the value of a size."""

    def check(value: Any, place: Place) -> None:
        is_count = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
        if not is_count or not at_least <= value < LARGEST_SIZE:
            place.refuse(value, f"a whole number, at least {at_least}")
        place.agree(size, int(value), value)

    return check


def one_of(*choices: Any) -> Check:
    """Accept one of several strings."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, str) or value not in choices:
            place.refuse(value, "one of " + ", ".join(map(repr, choices)))

    return check


def maybe(check: Check) -> Check:
    """Accept None, or what the check accepts."""
    return lambda value, place: None if value is None else check(value, place)


# ---- arrays -----------------------------------------------------------------------------------------------------


def numbers(sizes: str, *, finite: bool = True, above: float = -math.inf, at_least: float = -math.inf) -> Check:
    """Accept an array or a tensor of floats of this shape, all finite and within bounds."""

    def check(value: Any, place: Place) -> None:
        _check_shape(value, sizes, place, "floating-point numbers")
        kind = value.dtype.kind if isinstance(value, np.ndarray) else "f" * value.is_floating_point()
        array = np.asarray(value) if kind == "f" else None
        if array is None or array.dtype.itemsize < 4:
            place.refuse(value, "an array of floating-point numbers")
        if finite and not np.isfinite(array).all():
            place.refuse(value, "finite: it has NaN or infinite numbers")
        if not finite and np.isnan(array).any():
            place.refuse(value, "without NaN")
        if array.size and not (above < array.min() and at_least <= array.min()):
            place.refuse(value, f"of numbers above {max(above, at_least):g}")

    return check


def whole(sizes: str, *, below: str | None = None, at_least: int = 0) -> Check:
    """Accept an array of integers of this shape, all of them `at_least` and below the size `below` if it is given."""

    def check(value: Any, place: Place) -> None:
        _check_shape(value, sizes, place, "whole numbers")
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            place.refuse(value, "an array of whole numbers")
        most = place.sizes.get(below, LARGEST_SIZE) if below else LARGEST_SIZE
        if value.size and not (at_least <= value.min() and value.max() < most):
            place.refuse(value, f"of numbers from {at_least} to {most - 1}")

    return check


def labels(sizes: str) -> Check:
    """Accept an array of different classes: numbers, booleans or strings."""

    def check(value: Any, place: Place) -> None:
        _check_shape(value, sizes, place, "classes")
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufUO":
            place.refuse(value, "an array of classes")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            place.refuse(value, "finite: it has NaN or infinite numbers")
        if value.dtype.kind == "O" and not all(isinstance(item, (str, int, float)) for item in value.ravel()):
            place.refuse(value, "an array of classes: texts or numbers")
        if value.dtype.kind == "O" and len({type(item) for item in value.ravel()}) > 1:
            place.refuse(value, "an array of classes of one kind")
        if len(set(value.ravel().tolist())) != value.size:
            place.refuse(value, "an array of different classes")

    return check


def values(sizes: str) -> Check:
    """Accept an array of this shape, of any dtype."""
    return lambda value, place: _check_shape(value, sizes, place, "values")


def sparse_numbers(sizes: str) -> Check:
    """Accept a sparse array of finite numbers."""

    def check(value: Any, place: Place) -> None:
        if not sparse.issparse(value):
            place.refuse(value, "a sparse array")
        _check_sizes(value, sizes, place)
        numbers("?")(value.data, place)

    return check


def _check_shape(value: Any, sizes: str, place: Place, what: str) -> None:
    if not isinstance(value, (np.ndarray, Tensor)):
        place.refuse(value, f"an array of {what}")
    _check_sizes(value, sizes, place)


def _check_sizes(value: Any, sizes: str, place: Place) -> None:
    wanted = sizes.split()
    if len(value.shape) != len(wanted):
        place.refuse(value, f"of shape ({', '.join(wanted)})")
    for size, length in zip(wanted, value.shape, strict=True):
        place.agree(size, int(length), value)


# ---- lists and dicts --------------------------------------------------------------------------------------------


def each(size: str, check: Check, *, at_least: int = 0) -> Check:
    """Accept a list of this size, of whose items the check accepts each."""

    def check_each(value: Any, place: Place) -> None:
        if not isinstance(value, (list, tuple)) or len(value) < at_least:
            place.refuse(value, "a list" + f" of {at_least} or more" * (at_least > 0))
        place.agree(size, len(value), value)
        for i, item in enumerate(value):
            # A size that is first set by an item holds for this item alone.
            check(item, Place(place.at(i).name, dict(place.sizes)))

    return check_each


def texts(size: str) -> Check:
    """Accept a list of different strings, of this size."""

    def check(value: Any, place: Place) -> None:
        each(size, text)(value, place)
        if len(set(value)) != len(value):
            place.refuse(value, "a list of different texts")

    return check


def mapping(keys: Check, items: Check) -> Check:
    """Accept a dict whose keys and items pass these checks."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, dict):
            place.refuse(value, "a dictionary")
        for key, item in value.items():
            keys(key, place.at(f"key {shown(key, 40)}"))
            items(item, place.at(shown(key, 40)))

    return check


def entries(needed: Mapping[str, Check], others: Check = anything) -> Check:
    """Accept a dict that has the needed keys; each item is checked by its key."""

    def check(value: Any, place: Place) -> None:
        if not isinstance(value, dict) or not needed.keys() <= value.keys():
            place.refuse(value, f"a dictionary with {', '.join(needed)}")
        for key, item in value.items():
            if not isinstance(key, str):
                place.refuse(key, "a dictionary of names")
            needed.get(key, others)(item, place.at(shown(key, 40)))

    return check


def either(*checks: Check) -> Check:
    """Accept what at least one of the checks accepts; if none does, the error is that of the last."""

    def check(value: Any, place: Place) -> None:
        for one in checks[:-1]:
            try:
                return one(value, Place(place.name, dict(place.sizes)))
            except ModelFileError:
                continue
        return checks[-1](value, place)

    return check
