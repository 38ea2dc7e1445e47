"""Checks of parameters and arrays, each with an error that names the parameter, the value and what is allowed."""

import functools
import math
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from mercer.exceptions import NumericalError, TooLargeError, invalid_parameter

Choice = TypeVar("Choice", bound=str)
Fit = TypeVar("Fit", bound=Callable[..., Any])
Answer = TypeVar("Answer", bound=Callable[..., Any])

# The precisions in which estimators compute; arrays of other kinds are converted to the first.
PRECISIONS = [np.float64, np.float32]
# Larger numbers are refused, since squared distances, or squared kernel values that are sums over landmarks, could
# overflow. For float64 it is the fourth root of the largest number. For float32 that root would allow too few numbers,
# so it is nearly the square root.
LARGEST_NUMBERS = {np.dtype(np.float64): 1e75, np.dtype(np.float32): 1e17}
# A symmetric matrix may differ from its transpose by about this share of its largest entry. Rounding errors of inner
# products in float32 are smaller.
ASYMMETRY = 1e-5


def all_or_nothing(fit: Fit) -> Fit:
    """Decorate a `fit` so that the estimator, and an earlier fit of it, stay as they were if it fails or is stopped."""

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **options)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


def finite_answers(method: Answer) -> Answer:
    """Decorate a method so that it raises a NumericalError instead of returning NaN or infinite numbers.

    Rows and fitted numbers may be finite, and yet so large that what is computed from them is not. A user should not
    continue with such a result without noticing.
    """
    return _guarded(method, np.isfinite, "NaN or infinite numbers")


def answers_without_nan(method: Answer) -> Answer:
    """As `finite_answers`, but infinite numbers are allowed, as for the logarithm of 0 or an unbounded interval."""
    return _guarded(method, lambda values: ~np.isnan(values), "NaN")


def _guarded(method: Answer, is_right: Callable[[np.ndarray], np.ndarray], what: str) -> Answer:
    """Return a method that raises a NumericalError if a number of its result is not right; `what` says what it is."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **options: Any) -> Any:
        try:
            answer = method(self, *args, **options)
        except (torch.linalg.LinAlgError, np.linalg.LinAlgError, OverflowError, ZeroDivisionError) as error:
            raise NumericalError(f"{type(self).__name__}.{method.__name__} cannot be computed: {error}") from error
        for part in answer if isinstance(answer, tuple) else (answer,):
            values = part.select_dtypes("number").to_numpy() if hasattr(part, "select_dtypes") else np.asarray(part)
            if values.dtype.kind == "f" and not is_right(values).all():
                raise NumericalError(
                    f"{type(self).__name__}.{method.__name__} gives {what}: numbers of X, or of the model, are too "
                    "large or too small to compute with. Bring the columns to a common scale, or leave such rows out."
                )
        return answer

    return guarded  # type: ignore[return-value]


def refuse_sparse(estimator: Any, X: Any) -> None:
    """Raise if X is a sparse matrix, and say how to make it dense.

    Kernels of distances learn little from sparse columns, such as one column for each word of a text.
    """
    if issparse(X):
        name = type(estimator).__name__
        raise TypeError(
            f"Sparse data was passed for X, of shape {X.shape}, and {name} needs dense rows. Put a step that makes few "
            f"dense columns of it before {name} in a pipeline: sklearn.decomposition.TruncatedSVD(100), or the "
            "landmarks of sklearn.kernel_approximation.Nystroem. If X has few columns, pass X.toarray()."
        )


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return X, or X and y, checked by scikit-learn's `validate_data` and by `refuse_too_large`."""
    try:
        found = validate_data(estimator, X, y, **options)
    except ValueError as error:
        if "Input X contains NaN" not in str(error):
            raise
        name = type(estimator).__name__
        raise ValueError(
            f"Input X contains NaN, which {name} does not take: mercer.tabular({name}(...)) fills missing values, and "
            "encodes categories and dates."
        ) from error
    has_target = not (isinstance(y, str) and y == "no_validation") and y is not None
    rows, target = found if has_target else (found, None)
    names = getattr(estimator, "feature_names_in_", None)
    refuse_too_large(rows, "X", names)
    if target is not None:
        refuse_too_large(target, "y")
    return found


def refuse_too_large(values: np.ndarray, name: str, columns: Any = None) -> None:
    """Raise if a number is so large that its square may overflow; the error names its row and column and what to do.

    One such number would make a distance infinite, and differences of infinite distances are NaN. NaN is not refused.
    """
    largest = LARGEST_NUMBERS.get(np.asarray(values).dtype)
    if largest is None or values.size == 0:
        return
    if (np.fmax.reduce(values, axis=None) <= largest) and (np.fmin.reduce(values, axis=None) >= -largest):
        return
    place = np.argwhere(np.abs(values) > largest)
    if not len(place):
        return
    row, column = int(place[0][0]), int(place[0][1]) if values.ndim > 1 else None
    where = "" if column is None else f" in column {column if columns is None else repr(str(columns[column]))}"
    raise TooLargeError(
        f"{name} has the number {values[tuple(place[0])]:.3g}{where} of row {row} (counted from 0), and "
        f"{len(place)} beyond {largest:g} in all: in {values.dtype} they are too large to be squared and added. "
        "Correct them, mark them as missing, or take the logarithm of the column."
    )


def distinct_classes(y: np.ndarray, **wanted: bool) -> Any:
    """Return the classes in y as `np.unique` does, sorted; raise if they cannot be compared with each other."""
    try:
        return np.unique(y, **wanted)  # type: ignore[call-overload]
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in y.ravel().tolist()}))
        raise ValueError(
            f"y has classes of kinds that do not compare ({kinds}): all must be of one kind, and none may be None."
        ) from None


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a float if it is a finite number within the bounds; else raise."""
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("above", above), ("at least", at_least), ("at most", at_most))
        if bound is not None
    ]
    allowed = "a finite number" + (f" {' and '.join(bounds)}" if bounds else "")
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise invalid_parameter(name, value, allowed)
    number = float(value)
    if (
        (above is not None and number <= above)
        or (at_least is not None and number < at_least)
        or (at_most is not None and number > at_most)
    ):
        raise invalid_parameter(name, value, allowed)
    return number


def check_probability(name: str, value: Any) -> float:
    """Return `value` as a float if it is a number above 0 and below 1; else raise."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise invalid_parameter(name, value, "a number above 0 and below 1")
    return float(value)


def check_count(name: str, value: Any, *, at_least: int = 1, at_most: int | None = None, why: str = "") -> int:
    """Return `value` as an int if it is a whole number within the bounds; in the error, `why` explains `at_most`."""
    allowed = f"a whole number, at least {at_least}"
    if at_most is not None:
        allowed += f" and at most {at_most}" + (f" ({why})" if why else "")
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise invalid_parameter(name, value, allowed)
    count = int(value)
    if count < at_least or (at_most is not None and count > at_most):
        raise invalid_parameter(name, value, allowed)
    return count


def check_choice(name: str, value: Any, choices: Collection[Choice]) -> Choice:
    """Return `value` if it is one of the strings in `choices`; else raise."""
    if not isinstance(value, str) or value not in choices:
        raise invalid_parameter(name, value, choices)
    return value  # type: ignore[return-value]


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool if it is a bool of Python or NumPy; else raise."""
    if not isinstance(value, (bool, np.bool_)):
        raise invalid_parameter(name, value, "True or False")
    return bool(value)


def check_sample_shape(name: str, value: Any, *, only_images: bool = False, or_none: bool = False) -> tuple[int, ...]:
    """Return the shape of one sample, (d,), (height, width) or (height, width, channels), as ints; else raise.

    `only_images` refuses (d,). `or_none` changes the error alone: it says that the parameter may also be None.
    """
    if not isinstance(value, (list, tuple)) or len(value) not in ((2, 3) if only_images else (1, 2, 3)):
        images = "(height, width) or (height, width, channels)"
        allowed = images if only_images else f"that of one sample: (d,), {images}"
        raise invalid_parameter(name, value, f"None, {allowed}" if or_none else allowed)
    return tuple(check_count(f"{name}[{i}]", size) for i, size in enumerate(value))


def check_bandwidth(value: Any) -> None:
    """Raise unless `value` is a bandwidth that a searching estimator allows: a number, "median", "auto" or None."""
    if value is not None and not isinstance(value, str):
        check_number("bandwidth", value, above=0.0)
    elif value not in (None, "auto", "median"):
        raise invalid_parameter("bandwidth", value, "a number above 0, 'median', 'auto' or None")
