"""Permutation importances with intervals: how much the loss on new rows grows when a column is permuted."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t
from sklearn.utils import check_random_state

from mercer.checks import check_count
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.explain.inputs import check_coverage, check_rows, taken
from mercer.explain.row_losses import Loss, loss_of, row_losses
from mercer.metrics import as_numbers
from mercer.tables import TabularModel
from mercer.tables.frames import nearest
from mercer.tables.target import check_target


class PermutationImportances(NamedTuple):
    """The growth of the mean loss of rows when a column, or a group of columns, is permuted.

    Attributes
    ----------
    names : list of str
        The groups, followed by the columns outside all groups in the order of the table.
    mean : ndarray of shape (len(names),)
        The growth of the mean loss in the units of the loss: y squared, nats, or the share of wrong classes.
    lower, upper : ndarray of shape (len(names),)
        The ends of the interval for each.
    loss : float
        The mean loss of the rows before any column is permuted.
    loss_name : str
    coverage : float
        The coverage of each single interval.
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
    """Return how much the loss of a fitted model on new rows grows when each column is permuted.

    Each row gets the value that another row has in the column, the other columns stay, and the model predicts again.
    The estimated quantity is the mean over new rows of l(y, f(x with the column of another row)) minus that of
    l(y, f(x)), for this model as it was fitted. The intervals say how precisely the given rows determine it.

    Parameters
    ----------
    model : fitted estimator
        Any estimator that predicts: of Mercer, wrapped by `mercer.tabular`, or of scikit-learn.
    X : data frame or array-like of shape (n, d)
        Rows that the model has not seen. On training rows, columns that the model only memorized seem important. There
        is a DataWarning if the model keeps its training rows and most of these, or most rows of X, are in both.
    y : array-like of shape (n,) or (n, c)
        The targets of these rows.
    loss : {"auto", "squared_error", "log_loss", "zero_one_loss"} or callable, default="auto"
        The loss of a row. "auto" is the squared error for regressors (its mean over several targets), the log loss for
        classifiers with `predict_proba`, and the zero-one loss for other classifiers. A callable gets (model, X, y) and
        returns the losses of the rows, of shape (n,), such as `lambda model, X, y: -model.log_density(X, y)` for a
        GPRegressor.
    groups : dict of name and columns, optional
        Columns that are permuted together, by name or position, such as those of one category,
        `{"color": ["red", "green", "blue"]}`. Columns outside all groups are permuted alone. Columns with the same
        information seem to matter little when each is permuted alone; as a group they show their joint importance.
    n_repeats : int, default=5
        The number of other rows whose values each row gets in turn; at most n - 1.
    coverage : float, default=0.9
        The probability with which an interval contains the quantity that it estimates.
    sample_weight : array-like of shape (n,), optional
        The weight of each row, both when it is predicted and when it lends its values to another row.
    feature_names : sequence of str, optional
        By default those of the data frame, or x0, x1, ...
    random_state : int, RandomState instance or None, default=None
        Draws which row lends its values to which.

    Returns
    -------
    PermutationImportances

    See Also
    --------
    mercer.plots.PermutationImportancesDisplay : The figure.

    Notes
    -----
    The n rows are predicted once, and then n_repeats times for each column or group.

    For the squared error of a model with f(x) = E(y | x), the importance is E(f(x') - f(x))^2, where x' has the column
    of another row. This is twice the total effect from which `feature_importances_` are made. If a column is larger
    there than here, the model uses it more than the rows justify.

    Intervals use Student's t and the standard error of `mean_and_error`. They are about new rows for the given model,
    not about the models that other training rows would have given. If losses have long tails, some fifty rows are too
    few for reliable intervals.

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

    # The rows are put in random order. In repeat r, each row borrows from the row r places further on: every row
    # borrows once and lends once, and never to itself.
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
    """Return the mean of g(i, k), the growth of the loss of row i with the value of row k, and its standard error.

    Each row enters the mean twice: where it borrows a value and where it lends its own. Both vary from sample to sample
    of rows, so the standard error is that of a U-statistic (Hoeffding 1948). Let a_i be the mean of g over the rows
    that i borrows from, and b_i the mean over the rows that it lends to. The standard error is the standard deviation
    of a_i + b_i divided by sqrt(n). With a_i alone, intervals of 90 % for a column that matters would cover in only
    60 to 80 % of cases.

    With few repeats, a_i + b_i are noisy themselves. The error is then slightly too large on average, by 15 % at five
    repeats for a column that hardly matters.

    Parameters
    ----------
    growth : ndarray of shape (n_repeats, n)
        g(i, k): in repeat r = 1, 2, ... row i borrows from row k = (i + r) mod n.
    pairs : ndarray of shape (n_repeats, n)
        The weight of each entry of `growth`.
    """
    n = growth.shape[1]
    shares = pairs / pairs.mean()
    mean = float((shares * growth).mean())
    apart = shares * (growth - mean)
    borrowing = apart.mean(axis=0)
    lending = np.mean([np.roll(each, repeat) for repeat, each in enumerate(apart, 1)], axis=0)
    return mean, float(np.sqrt(((borrowing + lending) ** 2).sum() / (n - 1) / n))


# ---- rows and columns --------------------------------------------------------------------------------------------


def permuted_together(groups: Mapping[str, Sequence[Any]] | None, names: list[str]) -> dict[str, list[int]]:
    """Return the positions of the columns of each group, followed by each column outside all groups."""
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


def exchanged(X: Any, columns: Sequence[int], lenders: np.ndarray) -> Any:
    """Return X with values of other rows, the lenders, in some columns; each column keeps its dtype."""
    changed = X.copy()
    for column in columns:
        if isinstance(X, np.ndarray):
            changed[:, column] = X[lenders, column]
        else:
            changed.isetitem(column, X.iloc[lenders, column].array)
    return changed


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return the weights of n rows; all are 1 if none are given."""
    weights = np.ones(n) if sample_weight is None else as_numbers("sample_weight", sample_weight)
    if weights.shape != (n,) or not np.isfinite(weights).all() or weights.min() < 0 or np.count_nonzero(weights) < 2:
        raise invalid_parameter("sample_weight", sample_weight, f"{n} numbers, none negative and two above 0 at least")
    return weights


def warn_about_training_rows(model: Any, X: Any) -> None:
    """Warn if most of the training rows that a model keeps are in X, or most rows of X are among these."""
    if isinstance(model, TabularModel):
        model, X = model.estimator_, model.encoder_.transform(X)
    kept = model.machines_[0].rows if hasattr(model, "machines_") else getattr(model, "basis_", None)
    if kept is None:
        return
    # Adding 0 turns -0.0 into 0.0: the two are equal but have different bytes.
    learned, new = ({(row + 0).tobytes() for row in np.asarray(rows, dtype=kept.dtype)} for rows in (kept, X))
    shared = len(learned & new)
    if 2 * shared > min(len(learned), len(new)):
        warn_user(
            f"{shared} of the {len(new)} different rows of X are rows that the model was fitted on: columns that it "
            "only memorized seem to matter. Give rows that it has not seen.",
            DataWarning,
        )
