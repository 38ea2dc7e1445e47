"""Fit in three stages, on few rows, on a part and on all. If the fit is stopped, the best model so far is kept."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.app.projects.watch import Watch, rows_of_trial, seconds_of_fit
from mercer.exceptions import DataWarning, warn_user
from mercer.tables import TabularModel

# The search of each stage gets this part of the time that is left.
TRIAL_PART, PART_PART, ALL_PART = 0.05, 0.4, 0.9
# The expected time for scoring, with simple models and permuted columns, as a multiple of the time of the fit before.
# Measured: .4 and .5 for fits of 1200 and 2400 rows, and 1.2 for one of 8000.
SCORING = 0.6
TIME_LIMIT, CTRL_C = "time limit", "Ctrl-C"

# A function of the rows to learn from and the seconds for the search, which returns a fitted model.
Fit = Callable[[np.ndarray, float | None], TabularModel]


NO_ROWS = np.arange(0)


class Best(NamedTuple):
    """The best model so far.

    Attributes
    ----------
    model : TabularModel or None
        None before the first stage.
    rows : ndarray of int
        The rows that it has learned from.
    seconds : float
        How long its fit took.
    stopped : {"", "time limit", "Ctrl-C"}
        Why no further stage is started.
    """

    model: TabularModel | None = None
    rows: np.ndarray = NO_ROWS
    seconds: float = 0.0
    stopped: str = ""

    def fitted(self) -> TabularModel:
        """Return the model; raise if no stage has been fitted yet."""
        if self.model is None:
            raise RuntimeError("no stage has been fitted yet.")
        return self.model


def fit_few(fit: Fit, y: np.ndarray, train: np.ndarray, n_columns: int, watch: Watch, *, is_class: bool) -> Best:
    """Fit on a few rows, to estimate how long all stages will take, and to have a model if the fit is stopped early.

    Parameters
    ----------
    fit : callable of (rows, seconds)
    y : ndarray of shape (n,)
    train : ndarray of int
        The rows of the next stage.
    n_columns : int
        There is no trial for tables of few values, nor for a target of which the few rows lack a class.
    watch : Watch
    is_class : bool
        Whether y holds classes.
    """
    n_few = rows_of_trial(len(train), n_columns)
    few = train[np.linspace(0, len(train) - 1, n_few).round().astype(int)]
    if n_few < 2 or (is_class and len(np.unique(y[few])) < len(np.unique(y))):
        return Best()
    watch.begin(f"a trial with {n_few} rows")
    before = watch.passed()
    model = fit(few, watch.share(TRIAL_PART))
    seconds = watch.passed() - before
    part = seconds_of_fit(seconds, n_few, len(train))
    watch.expect({name_of_stage(len(train), len(y)): part} | seconds_after_part(part, len(train), len(y)))
    return Best(model, few, seconds)


def fit_part(fit: Fit, best: Best, train: np.ndarray, n: int, watch: Watch) -> Best:
    """Fit on the training rows only, before scoring; see `fit_few`. `n` is the number of training and left-out rows."""
    best = _next_stage(fit, best, train, n, PART_PART, watch)
    if not best.stopped:
        watch.expect(seconds_after_part(best.seconds, len(train), n))
    return best


def fit_all(fit: Fit, best: Best, n: int, watch: Watch) -> Best:
    """Fit on all n rows, unless less time is left than the stage before has taken; see `fit_few`."""
    if not best.stopped and best.model is not None and not watch.allows(best.seconds):
        best = best._replace(stopped=TIME_LIMIT)
    best = best if best.stopped else _next_stage(fit, best, np.arange(n), n, ALL_PART, watch)
    if best.stopped:
        what = "the time limit was reached" if best.stopped == TIME_LIMIT else "stopped by Ctrl-C"
        warn_user(
            f"{what}: the best model so far is kept, which has learned from {len(best.rows)} of {n} rows.", DataWarning
        )
    return best


def seconds_after_part(seconds: float, n_train: int, n: int) -> dict[str, float]:
    """Return the expected seconds of each phase after the fit on the training rows, from the seconds of that fit."""
    if n_train == n:
        return {}
    return {name_of_scoring(n - n_train): SCORING * seconds, name_of_stage(n, n): seconds_of_fit(seconds, n_train, n)}


def name_of_scoring(n_rows: int) -> str:
    """Return the name of the phase in which this many rows are scored."""
    return f"scoring on {n_rows:,} rows"


def name_of_stage(n_rows: int, n: int) -> str:
    """Return the name of the phase in which a model learns from n_rows of n rows."""
    return f"learning from {'all ' if n_rows == n else ''}{n_rows:,} rows"


def _next_stage(fit: Fit, best: Best, rows: np.ndarray, n: int, part: float, watch: Watch) -> Best:
    watch.begin(name_of_stage(len(rows), n))
    before = watch.passed()
    try:
        return Best(fit(rows, watch.share(part)), rows, watch.passed() - before)
    except KeyboardInterrupt:
        if best.model is None:
            raise
        return best._replace(stopped=CTRL_C)
