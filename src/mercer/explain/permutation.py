"""How much worse new rows are predicted when a column says nothing: permutation importances with intervals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t
from sklearn.utils import check_random_state

from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.metrics import as_numbers
from mercer.tables import TabularModel
from mercer.tables.frames import as_frame, column_names, nearest, positions
from mercer.tables.target import check_target

# From a fitted model, rows and their targets to the loss of each row.
Loss = Callable[[Any, Any, np.ndarray], np.ndarray]


class PermutationImportances(NamedTuple):
    """By how much the mean loss of rows grows when a column, or a group of columns, is permuted.

    Attributes
    ----------
    names : list of str
        The groups, then the columns that are in none, in the order of the table.
    mean : ndarray of shape (len(names),)
        The growth of the mean loss, in the units of the loss: y squared, nats, or a share of wrong classes.
    lower, upper : ndarray of shape (len(names),)
        The interval of each.
    loss : float
        The mean loss of the rows as they are.
    loss_name : str
    coverage : float
        Of the intervals, one at a time.
    n_rows : int
    """

    names: list[str]
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    loss: float
    loss_name: str
    coverage: float
    n_rows: int

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [
            f"{self.loss_name} of {self.n_rows} rows: {self.loss:.4g}",
            f"its growth when a column is permuted, with intervals of {100 * self.coverage:.4g} %",
        ]
        for k in np.argsort(-self.mean, kind="stable"):
            lines.append(
                f"  {self.names[k]:<{width}}  {self.mean[k]:+.4g}  ({self.lower[k]:+.4g} to {self.upper[k]:+.4g})"
            )
        return "\n".join(lines)


def permutation_importances(
    model: Any,
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "auto",
    groups: Mapping[str, Sequence[Any]] | None = None,
    n_repeats: int = 5,
    coverage: float = 0.9,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    random_state: Any = None,
) -> PermutationImportances:
    """Say how much a fitted model needs each column: by how much its loss on new rows grows when it is permuted.

    Each row gets the value that another row has in the column, the other columns stay, and the model predicts again.
    What is estimated is the difference of two expectations over new rows, of l(y, f(x with the column of another row))
    and of l(y, f(x)), for this model as it was fitted; the intervals say how far some rows can tell it.

    Parameters
    ----------
    model : fitted estimator
        Anything that predicts: a model of Mercer, one wrapped by `mercer.tabular`, an estimator of scikit-learn.
    X : data frame or array-like of shape (n, d)
        Rows that the model has not seen. On rows that it was fitted on, columns seem to matter that the model learned
        by heart, and there is a DataWarning where the model keeps its rows and most of them are in X.
    y : array-like of shape (n,) or (n, c)
        Their targets.
    loss : {"auto", "squared_error", "log_loss", "zero_one_loss"} or callable, default="auto"
        Of a row. "auto" is the squared error for numbers (its mean over several targets), minus the logarithm of the
        probability of the class where the model has `predict_proba`, and else whether the class is wrong. A callable
        gets (model, X, y) and returns the losses of the rows, of shape (n,), such as
        `lambda model, X, y: -model.log_density(X, y)` for a GPRegressor.
    groups : dict of name and columns, optional
        Columns that are permuted together, by name or position, such as those of one category,
        `{"color": ["red", "green", "blue"]}`. Columns in no group are permuted alone. Columns that say the same as
        others seem to matter little alone; together they show what they are worth.
    n_repeats : int, default=5
        How many other rows lend each row their value; at most n - 1 do.
    coverage : float, default=0.9
        The probability with which an interval holds what it estimates.
    sample_weight : array-like of shape (n,), optional
        How much each row counts, both where it is predicted and where it lends its values.
    feature_names : sequence of str, optional
        Those of the data frame, or x0, x1, ..., by default.
    random_state : int, RandomState instance or None, default=None
        Draws which rows lend their values to which.

    Returns
    -------
    PermutationImportances

    See Also
    --------
    mercer.plots.PermutationImportancesDisplay : The figure.

    Notes
    -----
    n rows are predicted once, and n_repeats times for each column or group.

    For the squared error of a model whose errors have no pattern left, E(y | x) = f(x), the importance is
    E(f(x') - f(x))^2, twice the total effect from which `feature_importances_` are made. A column that is larger there
    than here is one that the model uses more than the rows bear out.

    Intervals are of Student's t, with the standard error of `mean_and_error`. They are about new rows for the model at
    hand, not about other models that other training rows would have given. Where losses have long tails, some fifty
    rows are too few for them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from mercer.explain import permutation_importances
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> y = 2 * X[:, 0] + X[:, 1] + np.random.default_rng(1).normal(size=600)
    >>> model = LinearRegression().fit(X[:300], y[:300])
    >>> found = permutation_importances(model, X[300:], y[300:], random_state=0)  # 2 beta^2 var(x): 8, 2 and 0
    >>> print(found)
    squared_error of 300 rows: 0.9576
    its growth when a column is permuted, with intervals of 90 %
      x0  +8.529  (+7.137 to +9.921)
      x1  +1.955  (+1.517 to +2.392)
      x2  +0.004573  (-0.000461 to +0.009607)
    """
    losses = loss_of(model, loss)
    coverage = check_coverage(coverage)
    rows, names = check_rows(model, X, feature_names)
    columns = permuted_together(groups, names)
    target = check_target(y)
    n = len(rows)
    if target is None or np.ndim(target) == 0 or len(target) != n:
        raise invalid_parameter("y", np.shape(target), f"the targets of the {n} rows of X")
    if n < 2:
        raise invalid_parameter("X", np.shape(rows), "rows of which one can lend another its value, 2 at least")
    n_repeats = min(check_count("n_repeats", n_repeats), n - 1)
    weights = check_weights(sample_weight, n)

    # In random order each row borrows from the next, then from the one after that: in every repeat each row borrows
    # once and lends once, never with itself.
    order = check_random_state(random_state).permutation(n)
    rows, target, weights = taken(rows, order), target[order], weights[order]
    before = row_losses(losses, model, rows, target)
    warn_about_training_rows(model, rows)
    pairs = np.stack([weights * np.roll(weights, -repeat) for repeat in range(1, n_repeats + 1)])
    found = []
    for together in columns.values():
        growth = [
            row_losses(losses, model, exchanged(rows, together, np.roll(np.arange(n), -repeat)), target) - before
            for repeat in range(1, n_repeats + 1)
        ]
        found.append(mean_and_error(np.stack(growth), pairs))
    mean, error = np.array(found).T
    reach = t.ppf((1 + coverage) / 2, max(int(np.count_nonzero(weights)) - 1, 1)) * error
    baseline, name = float(np.average(before, weights=weights)), getattr(losses, "__name__", "loss")
    return PermutationImportances(list(columns), mean, mean - reach, mean + reach, baseline, name, coverage, n)


def mean_and_error(growth: np.ndarray, pairs: np.ndarray) -> tuple[float, float]:
    """Return the weighted mean of g(i, k), the growth of the loss of row i with the value of row k, and its error.

    Each row has a part in the mean twice, where it borrows and where it lends, and both move it from sample to sample:
    a column matters by chance more to these rows, and the values that are lent are by chance more apart. The standard
    error is therefore that of a U-statistic (Hoeffding 1948): with a_i the mean of g over the rows that i borrows from,
    and b_i the mean over those that it lends to, it is the standard deviation of a_i + b_i over sqrt(n). By a_i alone,
    intervals of 90 % for a column that matters would hold in 60 to 80 % of cases.

    With few repeats a_i + b_i have noise of their own, and the error is on average a little too large, by 15 % at five
    repeats for a column that hardly matters.

    Parameters
    ----------
    growth : ndarray of shape (n_repeats, n)
        In repeat r = 1, 2, ... row i borrows from row i + r, counted around.
    pairs : ndarray of shape (n_repeats, n)
        The weight of each.
    """
    n = growth.shape[1]
    shares = pairs / pairs.mean()
    mean = float((shares * growth).mean())
    apart = shares * (growth - mean)
    borrowing = apart.mean(axis=0)
    lending = np.mean([np.roll(each, repeat) for repeat, each in enumerate(apart, 1)], axis=0)
    return mean, float(np.sqrt(((borrowing + lending) ** 2).sum() / (n - 1) / n))


# ---- losses of rows ----------------------------------------------------------------------------------------------


def squared_error(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return (y - f(x))^2, the mean over several targets."""
    predicted = np.asarray(model.predict(X), dtype=np.float64).reshape(len(y), -1)
    targets = as_numbers("y", y).reshape(len(y), -1)
    if predicted.shape != targets.shape:
        raise invalid_parameter("y", y.shape, f"of {predicted.shape[1]} targets, which the model predicts")
    return ((targets - predicted) ** 2).mean(axis=1)


def log_loss(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return minus the logarithm of the probability of each row's class; a probability of 0 counts as 2e-16."""
    probabilities = np.asarray(model.predict_proba(X), dtype=np.float64)
    place = {label: k for k, label in enumerate(np.asarray(model.classes_).tolist())}
    unknown = [label for label in y.tolist() if label not in place] if y.ndim == 1 else [y.shape]
    if unknown:
        raise invalid_parameter(
            "y", unknown[0], f"one of the model's classes, {list(place)}", "Leave rows of other classes out."
        )
    of_class = probabilities[np.arange(len(y)), [place[label] for label in y.tolist()]]
    return -np.log(np.maximum(of_class, np.finfo(np.float64).eps))


def zero_one_loss(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return 1 for each row whose class is wrong, and 0 for the others."""
    wrong = np.asarray(model.predict(X)).reshape(y.shape) != y
    return wrong.reshape(len(y), -1).mean(axis=1)


LOSSES: dict[str, Loss] = {"squared_error": squared_error, "log_loss": log_loss, "zero_one_loss": zero_one_loss}


def loss_of(model: Any, loss: Any) -> Loss:
    """Return the loss of that name, or the usual one of the model's kind."""
    if not hasattr(model, "predict"):
        raise invalid_parameter("model", model, "a fitted estimator with predict")
    if callable(loss):
        return loss
    check_choice("loss", loss, ("auto", *LOSSES))
    if loss == "auto":
        of_classes = "log_loss" if hasattr(model, "predict_proba") else "zero_one_loss"
        return LOSSES[of_classes if hasattr(model, "classes_") else "squared_error"]
    if loss == "log_loss" and not hasattr(model, "predict_proba"):
        raise invalid_parameter("loss", loss, "'zero_one_loss' for a model without predict_proba")
    return LOSSES[loss]


def row_losses(loss: Loss, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Return the loss of each row, or say what is wrong with a loss that a user has given."""
    values = as_numbers("loss", loss(model, X, y))
    if values.shape != (len(y),):
        raise invalid_parameter("loss", values.shape, f"a function that returns one loss a row, of shape ({len(y)},)")
    if not np.isfinite(values).all():
        raise invalid_parameter("loss", float(values[~np.isfinite(values)][0]), "finite for every row")
    return values


# ---- rows and columns --------------------------------------------------------------------------------------------


def check_rows(model: Any, X: Any, feature_names: Sequence[str] | None) -> tuple[Any, list[str]]:
    """Return X as a data frame or an array, with the columns that the model was fitted on, and their names."""
    frame = as_frame(X)
    if frame is None:
        rows = np.asarray(X)
        if rows.ndim != 2 or not rows.shape[1]:
            raise invalid_parameter("X", rows.shape, "a data frame or an array of shape (n, d)")
        names = [f"x{k}" for k in range(rows.shape[1])]
    else:
        names = column_names(frame)
        # A model of a table passes over columns that it does not know.
        wanted = [str(name) for name in getattr(model, "feature_names_in_", names)]
        rows, names = frame.iloc[:, positions(names, wanted)], wanted
    if feature_names is None:
        return rows, names
    if len(feature_names) != len(names):
        raise invalid_parameter("feature_names", feature_names, f"a sequence of {len(names)} names")
    return rows, [str(name) for name in feature_names]


def permuted_together(groups: Mapping[str, Sequence[Any]] | None, names: list[str]) -> dict[str, list[int]]:
    """Return the positions of the columns of each group, then of each column that is in none."""
    if groups is not None and not isinstance(groups, Mapping):
        raise invalid_parameter("groups", groups, "a dictionary of names and lists of columns")
    place, together = {name: k for k, name in enumerate(names)}, {}
    for group, columns in (groups or {}).items():
        if isinstance(columns, str) or not isinstance(columns, Iterable) or not len(columns):
            raise invalid_parameter(f"groups[{group!r}]", columns, "a list of columns, one at least")
        for column in columns:
            if column not in (range(len(names)) if isinstance(column, Integral) else place):
                hint = "" if isinstance(column, Integral) else nearest(str(column), names)
                raise invalid_parameter(
                    f"groups[{group!r}]",
                    columns,
                    f"made of columns of X, by name or position, and not {column!r}{hint}",
                )
        together[str(group)] = [int(c) if isinstance(c, Integral) else place[c] for c in columns]
    grouped = {column for columns in together.values() for column in columns}
    alone = {name: [k] for name, k in place.items() if k not in grouped}
    both = sorted(together.keys() & alone.keys())
    if both:
        raise invalid_parameter("groups", both[0], "names that are not those of columns which are permuted alone")
    return together | alone


def taken(X: Any, order: np.ndarray) -> Any:
    """Return rows of a data frame or an array in that order."""
    return X[order] if isinstance(X, np.ndarray) else X.iloc[order]


def exchanged(X: Any, columns: Sequence[int], lenders: np.ndarray) -> Any:
    """Return X with the values of other rows in some columns, each column of the type that it had."""
    changed = X.copy()
    for column in columns:
        if isinstance(X, np.ndarray):
            changed[:, column] = X[lenders, column]
        else:
            changed.isetitem(column, X.iloc[lenders, column].array)
    return changed


def check_coverage(coverage: Any) -> float:
    """Return the probability of an interval if it lies strictly between 0 and 1."""
    number = check_number("coverage", coverage, above=0.0)
    if number >= 1:
        raise invalid_parameter("coverage", coverage, "a finite number above 0 and below 1")
    return number


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the weights of n rows, 1 where none are given."""
    weights = np.ones(n) if sample_weight is None else as_numbers("sample_weight", sample_weight)
    if weights.shape != (n,) or not np.isfinite(weights).all() or weights.min() < 0 or np.count_nonzero(weights) < 2:
        raise invalid_parameter("sample_weight", sample_weight, f"{n} numbers, none negative and two above 0 at least")
    return weights


def warn_about_training_rows(model: Any, X: Any) -> None:
    """Say so where most of the rows that a model was fitted on, as far as it keeps them, are in X, or the reverse."""
    if isinstance(model, TabularModel):
        model, X = model.estimator_, model.encoder_.transform(X)
    kept = model.machines_[0].rows if hasattr(model, "machines_") else getattr(model, "basis_", None)
    if kept is None:
        return
    # Zeros are added, as there are two of them that are equal and have other bytes.
    learned, new = ({(row + 0).tobytes() for row in np.asarray(rows, dtype=kept.dtype)} for rows in (kept, X))
    shared = len(learned & new)
    if 2 * shared > min(len(learned), len(new)):
        warn_user(
            f"{shared} of the {len(new)} different rows of X are rows that the model was fitted on: what it learned by "
            "heart seems to matter. Give rows that it has not seen.",
            DataWarning,
        )
