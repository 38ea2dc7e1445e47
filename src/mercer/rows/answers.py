"""Methods such as `predict` for rows in files or with Dask, made from methods that take an array."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from mercer.blocks import Rows, row_slices
from mercer.exceptions import DataFileError, invalid_parameter
from mercer.rows.dask_collections import DaskRows, is_dask
from mercer.rows.validation import is_elsewhere, validated_rows

Method = TypeVar("Method", bound=Callable[..., Any])

# How many rows a method is called with at once; it divides them into blocks of its own.
ROWS_AN_ANSWER = 65_536
# Options that make a result depend on pairs of rows. They are refused for rows that are read in parts.
OF_PAIRS = ("return_cov",)


def wherever_rows_are(method: Method) -> Method:
    """Decorate a method that has one result for each row of an array, so that it also takes rows that are elsewhere.

    For a Dask array or frame, the result is a Dask array with the same partitions. It is computed when Dask is asked
    for it, and the model is sent along with the tasks. For rows of files, the result is an array: the method is called
    with one part of the rows after another, and its results are concatenated.
    """

    @functools.wraps(method)
    def answered(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_elsewhere(X):
            return method(self, X, *args, **options)
        for name in OF_PAIRS:
            if options.get(name):
                raise invalid_parameter(name, options[name], "False where rows are in files or with Dask")
        asked = _Asked(self, method.__name__, args, options)
        if is_dask(X) or isinstance(X, DaskRows):
            return _of_dask(asked, X)
        parts = list(answers(asked, validated_rows(self, X, reset=False)))
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
        return np.concatenate(parts)

    return answered  # type: ignore[return-value]


class _Asked:
    """A call of a method of a model, as an object that can be sent to a worker: all but the rows is given."""

    def __init__(self, model: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.model, self.name, self.args, self.options = model, name, args, options

    def __call__(self, rows: np.ndarray) -> Any:
        names = getattr(self.model, "feature_names_in_", None)
        if names is not None:
            # The names of the columns were compared before, for all rows. If the parts came without names, scikit-learn
            # would warn for each of them.
            import pandas as pd

            rows = pd.DataFrame(rows, columns=names, copy=False)
        return getattr(self.model, self.name)(rows, *self.args, **self.options)


def answers(asked: Callable[[np.ndarray], Any], rows: Rows, rows_an_answer: int = ROWS_AN_ANSWER) -> Iterator[Any]:
    """Yield the results of a function for one part of the rows after another."""
    for part in rows.blocks(list(row_slices(len(rows), rows_an_answer))):
        yield asked(part)


def _of_dask(asked: _Asked, X: Any) -> Any:
    """Return the results as a Dask array, with one partition for each partition of X."""
    import dask.array

    model = asked.model
    if isinstance(X, DaskRows):
        array = X.array
    elif isinstance(X, dask.array.Array):
        array = X.rechunk({1: -1})
    else:
        validated_rows_of_frame(model, X)
        array = X.to_dask_array()
    if array.ndim != 2 or array.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {array.shape}, and {type(model).__name__} expects {model.n_features_in_} features."
        )
    # One row of zeros shows the shape and the dtype of the results.
    example = asked(np.zeros((1, array.shape[1]), array.dtype if array.dtype == np.float32 else np.float64))
    if isinstance(example, tuple):
        return tuple(_partitions(asked, array, part, place) for place, part in enumerate(example))
    return _partitions(asked, array, np.asarray(example), None)


def validated_rows_of_frame(model: Any, X: Any) -> None:
    """Raise if a Dask frame has other columns than the model was fitted with."""
    known, names = getattr(model, "feature_names_in_", None), [str(name) for name in X.columns]
    if known is not None and list(known) != names:
        raise ValueError(f"X has the columns {names}, and {type(model).__name__} was fitted with {list(known)}.")


def _partitions(asked: _Asked, array: Any, example: np.ndarray, place: int | None) -> Any:
    """Return the Dask array of the results; of tuples, of the part at `place`. `example` has the result of one row."""
    further = example.shape[1:]
    chunks = (array.chunks[0], *((size,) for size in further))
    dropped = [1] if not further else None
    added = list(range(2, 1 + len(further))) or None
    return array.map_blocks(
        _answered,
        asked,
        example[:0],
        place,
        dtype=example.dtype,
        chunks=chunks,
        drop_axis=dropped,
        new_axis=added,
        meta=example[:0],
    )


def _answered(
    rows: np.ndarray, asked: _Asked, none: np.ndarray, place: int | None, block_info: Any = None
) -> np.ndarray:
    """Return the results for a partition, or `none` if it has no rows; an error names the partition."""
    if not len(rows):
        return none
    try:
        answer = asked(np.asarray(rows))
    except ValueError as error:
        number = block_info[0]["chunk-location"][0] if block_info else "?"
        raise DataFileError(f"partition {number} of X: {error}") from error
    return np.asarray(answer if place is None else answer[place])
