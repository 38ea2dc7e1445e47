"""An encoder that turns a table into a matrix of numbers; its fitted state consists of plain values."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mercer.checks import (
    all_or_nothing,
    check_choice,
    check_count,
    check_flag,
    finite_answers,
    refuse_sparse,
    refuse_too_large,
    validated,
)
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.tables.choice import find_readers
from mercer.tables.columns import EncodedColumn, Reader, unreadable_values
from mercer.tables.frames import as_frame, column_names, listed, optional, positions
from mercer.tables.kinds import KINDS
from mercer.tables.level_means import LevelMeans, Target
from mercer.tables.readers import Numbers, Reading, infinity_in, without_null_strings
from mercer.tables.target import check_target

TARGETS = ("auto", "numbers", "classes")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn numbers, categories, dates and text with missing values into a matrix of numbers without missing values.

    The kind of a column follows from its dtype, or skrub finds it in the values. Numbers stay numbers, also if they are
    written as strings. A category becomes one column for each level or, if it has many levels and there is a target,
    the mean of the target at each level. Dates become year, month, day, weekday, time of day and the seconds since
    1970, with months, weekdays and the time of day on a circle. Text becomes coordinates along the leading singular
    directions of its character n-grams. A missing number is replaced by the median, and an additional column marks
    missing numbers if there are more than a few. A missing category is a category of its own. Each column of the table
    has the same weight at first: see `scale`.

    Parameters
    ----------
    kinds : dict of str or None, default=None
        The kinds of columns that should not be found automatically: "number", "date", "category" or "text". Post
        codes, for instance, are categories that look like numbers.
    cardinality_threshold : int, default=40
        Strings with fewer different values are categories with one column for each level. Others are text, unless
        there is a target and most rows share their value with another row: ids, post codes and cities are then
        categories with many levels, and so are those that `kinds` names.
    n_components : int, default=30
        The largest number of columns that encode a text.
    scale : bool, default=True
        Whether to center and scale, so that the variances of the columns that encode one column sum to 1. Text is
        scaled as a whole. Categories and marks of missing values stay 0 and 1, so that two rows with different
        categories are sqrt(2) apart. False leaves numbers in their units, for estimators that scale columns themselves.
    target_type : {"auto", "numbers", "classes"}, default="auto"
        The type of y, for the means of categories with many levels. "auto" treats floats, and integers with more than
        20 different values, as numbers, and everything else as classes. `tabular` takes the type from its estimator.

    Attributes
    ----------
    columns_ : list of EncodedColumn
        How each column of the table is encoded, except those that were dropped. A category with many levels has one
        entry for its means, and one for its frequent levels or its text if these add information.
    kinds_ : dict of str
        The kind of each column of the table; "constant" and "missing" ones were dropped.
    origins_ : ndarray of shape (n_encoded,)
        Which column of the table each encoded one comes from.
    variances_ : ndarray of shape (n_encoded,)
        The variances of the encoded columns over the rows of the fit.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    The mean of a level is shrunk towards the mean of all rows, and more so if few rows have the level. `fit_transform`
    gives each row a mean that does not use its own target, and `transform` the mean over all rows of the fit, so that
    the two differ on the rows of the fit. Levels that at least 2 % of the rows have also get a column of their own. If
    the table would have more than 3 d + 50 columns, the categories with the most levels are encoded by means.

    Columns are found by name, in any order, and columns that were not in the fit are ignored. A value that was not in
    the fit belongs to no category. Strings such as "N/A" and "?" are missing values. A value that cannot be read as the
    column's kind is missing too, with a warning. Once fitted, only pandas is needed; arrays of numbers need neither
    pandas nor skrub. Time and memory are O(n) for each encoded column, and the fit of text needs a sparse decomposition
    of its distinct values.

    Examples
    --------
    >>> import pandas as pd
    >>> from mercer import TableEncoder
    >>> table = pd.DataFrame({"age": [31.0, None, 52.0, 47.0], "city": ["Oslo", "Rome", "Oslo", "N/A"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.kinds_
    {'age': 'number', 'city': 'category'}
    >>> list(encoder.get_feature_names_out())
    ['age', 'age is missing', 'city=Oslo', 'city=Rome', 'city is missing']
    """

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        cardinality_threshold: int = 40,
        n_components: int = 30,
        scale: bool = True,
        target_type: str = "auto",
    ) -> None:
        self.kinds = kinds
        self.cardinality_threshold = cardinality_threshold
        self.n_components = n_components
        self.scale = scale
        self.target_type = target_type

    def fit(self, X: Any, y: Any = None) -> "TableEncoder":
        """Find the kind of each column and how to encode it.

        Parameters
        ----------
        X : data frame or array-like of shape (n, d)
        y : array-like of shape (n,) or (n, n_outputs), optional
            The target. Without it, categories with many levels become text, or one column for each level.

        Returns
        -------
        self
        """
        self._fit(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit and return the encoded rows. The means of levels do not use the row's own target.

        Parameters
        ----------
        X : data frame or array-like of shape (n, d)
        y : array-like of shape (n,) or (n, n_outputs), optional
            The target.
        """
        return self._fit(X, y)

    @finite_answers
    def transform(self, X: Any) -> np.ndarray:
        """Return the encoded rows, of shape (n, n_encoded).

        Parameters
        ----------
        X : data frame or array-like of shape (n, d)
            With the columns of the fit, in any order if they have names.
        """
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        blocks, unreadable = [], []
        for encoded in self.columns_:
            raw, lost = encoded.reader.read(columns[encoded.name])
            if lost.any():
                unreadable.append(unreadable_values(columns[encoded.name], lost))
            blocks.append(encoded.encode(raw))
        _warn_unreadable(unreadable)
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the encoded columns: `age`, `age is missing`, `city=Oslo`, `joined: year`.

        Parameters
        ----------
        input_features : ignored
            Ignored; the names are those of the fit.
        """
        check_is_fitted(self)
        names: dict[str, None] = {}
        for name in (name for encoded in self.columns_ for name in encoded.names()):
            unique, count = name, 1
            while unique in names:  # a column of the table may be called "city=Oslo"
                count += 1
                unique = f"{name} ({count})"
            names[unique] = None
        return np.array(list(names), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    # ---- fit ---------------------------------------------------------------------------------------------------

    @all_or_nothing
    def _fit(self, X: Any, y: Any) -> np.ndarray:
        columns = self._columns(X, reset=True)
        given = self._check_parameters(columns)
        target = self._target(y, n_rows=len(next(iter(columns.values()))))
        present = {name: column for name, column in columns.items() if _has_values(column)}
        readers = find_readers(present, given, self.cardinality_threshold, self.n_components, target)
        fitted, blocks, unreadable = [], [], []
        kinds = dict.fromkeys(columns, "missing")
        for name, reader in ((name, reader) for name, own in readers.items() for reader in own):
            raw, lost = _read_in_fit(reader, columns[name], target)
            if lost.any():
                unreadable.append(unreadable_values(columns[name], lost))
            if np.isnan(raw).all():
                continue
            encoded = EncodedColumn.fit(name, reader, raw, self.scale)
            if len(encoded.kept) > 0 or encoded.marked:
                kinds[name] = reader.kind if kinds[name] in ("missing", "constant") else kinds[name]
                fitted.append(encoded)
                blocks.append(encoded.encode(raw))
            elif kinds[name] == "missing":
                kinds[name] = "constant"
        self._check_outcome(kinds, fitted, unreadable, n_rows=len(next(iter(columns.values()))))
        self.columns_, self.kinds_ = fitted, kinds
        place = {name: i for i, name in enumerate(columns)}
        widths = [block.shape[1] for block in blocks]
        self.origins_ = np.repeat([place[encoded.name] for encoded in fitted], widths)
        values = np.hstack(blocks)
        self.variances_ = values.var(axis=0)
        return values

    def _target(self, y: Any, n_rows: int) -> Target | None:
        check_choice("target_type", self.target_type, TARGETS)
        values = check_target(y)
        if values is None:
            return None
        if values.ndim == 0 or len(values) != n_rows:
            raise ValueError(f"X has {n_rows} rows and y has the shape {values.shape}: y must have a value a row.")
        make = {"auto": Target.guessed, "numbers": Target.numbers, "classes": Target.classes}[self.target_type]
        return make(values)

    def _check_parameters(self, columns: Mapping[str, Any]) -> Mapping[str, str]:
        check_count("cardinality_threshold", self.cardinality_threshold)
        check_count("n_components", self.n_components)
        check_flag("scale", self.scale)
        if self.kinds is None:
            return {}
        if not isinstance(self.kinds, Mapping):
            raise invalid_parameter("kinds", self.kinds, "None or a dictionary of column names and kinds")
        for name, kind in self.kinds.items():
            if name not in columns:
                raise invalid_parameter("kinds", self.kinds, f"about columns of X: {listed(list(columns))}")
            if kind not in KINDS:
                raise invalid_parameter(f"kinds[{name!r}]", kind, KINDS)
        return self.kinds

    @staticmethod
    def _check_outcome(
        kinds: Mapping[str, str], fitted: list[EncodedColumn], unreadable: list[str], n_rows: int
    ) -> None:
        if not fitted:
            raise ValueError(
                f"no column of X varies (n_samples={n_rows}): all are constant or missing, so nothing can be learned."
            )
        _warn_unreadable(unreadable)
        missing = [name for name, kind in kinds.items() if kind == "missing"]
        if missing:
            warn_user(f"X has no value in {listed(missing)}: dropped.", DataWarning)

    # ---- the table ---------------------------------------------------------------------------------------------

    def _columns(self, X: Any, reset: bool) -> dict[str, Any]:
        """Return the columns of X by name, in the order of the fit: Series, or arrays if X is an array of numbers."""
        frame = as_frame(X)
        if frame is not None:
            return self._columns_of_frame(frame, reset)
        refuse_sparse(self, X)
        array = validated(self, X, dtype=None, ensure_all_finite="allow-nan", reset=reset)
        names = [f"x{i}" for i in range(array.shape[1])] if reset else self._names()
        plain = array.dtype.kind in "biuf"
        if plain and (not self.kinds if reset else all(isinstance(c.reader, Numbers) for c in self.columns_)):
            return dict(zip(names, array.T, strict=True))
        frame = optional("pandas", "an array of strings or objects").DataFrame(array, columns=names)
        return {name: frame[name].infer_objects() for name in names}

    def _columns_of_frame(self, frame: Any, reset: bool) -> dict[str, Any]:
        names = column_names(frame)
        if 0 in frame.shape:
            what = "sample" if frame.shape[0] == 0 else "feature"
            raise ValueError(f"Found table with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 is required.")
        if reset:
            self.feature_names_in_ = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
        if hasattr(self, "feature_names_in_"):
            places = positions(names, self._names())
        elif len(names) == self.n_features_in_:
            places = list(range(len(names)))  # the fit saw an array
        else:
            raise ValueError(
                f"X has {len(names)} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                "as input."
            )
        read_as_numbers = self._read_as_numbers(reset)
        columns: dict[str, Any] = {}
        for name, place, dtype in zip(self._names(), places, frame.dtypes.iloc[places], strict=True):
            # For a wide table with few rows, a Series takes a hundred times the memory of the numbers in it.
            if name in read_as_numbers and isinstance(dtype, np.dtype) and dtype.kind in "biuf":
                columns[name] = frame.iloc[:, place].to_numpy()
                if np.isinf(columns[name]).any():
                    raise infinity_in(name)
                refuse_too_large(columns[name][:, None], "X", [name])
            else:
                columns[name] = frame.iloc[:, place].rename(name)
        return columns

    def _read_as_numbers(self, reset: bool) -> set[str]:
        """Return the columns that are read as numbers if they have a numeric dtype."""
        if reset:
            return set(self._names()) - set(self.kinds if isinstance(self.kinds, Mapping) else ())
        others = {encoded.name for encoded in self.columns_ if not isinstance(encoded.reader, Numbers)}
        return set(self._names()) - others

    def _names(self) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if known is None else list(known)


def _read_in_fit(reader: Reader, column: Any, target: Target | None) -> Reading:
    if isinstance(reader, LevelMeans) and target is not None:
        return reader.read_left_out(column, target)
    return reader.read(column)


def _has_values(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return not np.isnan(column.astype(np.float64)).all()
    return bool((column if column.dtype.kind in "biufcmM" else without_null_strings(column)).notna().any())


def _warn_unreadable(unreadable: list[str]) -> None:
    if unreadable:
        warn_user(
            f"X has values that cannot be read as the kind of their column and count as missing: "
            f"{', '.join(unreadable)}.",
            DataWarning,
        )
