"""The base class of RFMs and Gaussian processes on tables: parameters, their checks, and the fitted attributes."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from mercer.checks import (
    PRECISIONS,
    check_bandwidth,
    check_choice,
    check_count,
    check_flag,
    check_number,
    finite_answers,
    refuse_sparse,
    validated,
)
from mercer.exceptions import ConvergenceWarning, DataWarning, invalid_parameter, warn_user
from mercer.landmarks import METHODS
from mercer.mahalanobis import check_metric
from mercer.rows import Cluster
from mercer.tabular_models.all_rows import SomeRows, Summed, some_rows
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.fitters import Fitter
from mercer.tabular_models.grouped_rows import GroupedRows, collapse
from mercer.tabular_models.importances import shares_of_effects, total_effects
from mercer.tabular_models.landmark_table import Landmarks
from mercer.tabular_models.learned import Learned, Space
from mercer.tabular_models.learned_on_all_rows import (
    AverageGradients,
    MaximumLikelihood,
    check_alone,
    learned_on_all_rows,
)
from mercer.tabular_models.learning import learn
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.plans import Search
from mercer.tabular_models.screen import FIRST_RIDGE
from mercer.tabular_models.settings import METRICS, kernels_of, with_intercept
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Freedom

# The largest number of directions of the metric in `directions_`.
MOST_DIRECTIONS = 100


class TableModel(BaseEstimator):
    """The base class of models of tables; see `RFMRegressor` and `GPRegressor` for the parameters."""

    kernel: Any
    metric: Any
    warp: Any
    bandwidth: Any
    n_iter: int
    average: bool
    iterate: str
    standardize: bool
    shared_noise: float
    n_landmarks: Any
    landmarks: str
    time_limit: float | None
    n_jobs: int | None
    random_state: Any
    working_memory: float
    device: Any
    machines_: list[Machine]
    trend_: list[Machine]
    # Whether coefficients of landmarks follow from sums over all rows, so that the table may be a draw of the rows.
    _sums_over_all_rows = True
    # Whether a trend on landmarks may be subtracted from the targets if there are very many rows.
    _follows_trends = True
    # The classes of objects that may be given as `metric` instead of a name.
    _learners: tuple[type, ...] = (AverageGradients, MaximumLikelihood)

    # ---- before the fit ---------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._check_common()

    def _check_common(self) -> None:
        if not isinstance(self.metric, self._learners):
            check_choice("metric", self.metric, ("auto", *METRICS))
        check_choice("iterate", self.iterate, ("auto", "last"))
        check_count("n_iter", self.n_iter, at_least=0)
        check_choice("landmarks", self.landmarks, METHODS)
        check_number("working_memory", self.working_memory, above=0.0)
        check_number("shared_noise", self.shared_noise, at_least=0.0, at_most=0.999)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, above=0.0)
        if not (self.n_landmarks is None or self.n_landmarks == "auto"):
            check_count("n_landmarks", self.n_landmarks)
        if self.n_jobs is not None and (not isinstance(self.n_jobs, int | np.integer) or self.n_jobs == 0):
            raise invalid_parameter("n_jobs", self.n_jobs, "None, or a number of threads other than 0")
        check_flag("standardize", self.standardize)
        check_flag("average", self.average)
        check_bandwidth(self.bandwidth)

    def _rows_with_numbers(self, X: Any, y: Any, sample_weight: Any) -> tuple[SomeRows, np.ndarray, np.ndarray]:
        """Validate the input; return the rows to learn from, their targets of shape (n, c), and their weights."""
        refuse_sparse(self, X)
        some = some_rows(self, X, y, sample_weight, multi_output=True, y_numeric=True)
        self._check_parameters()
        targets = some.y.reshape(len(some.y), -1).astype(np.float64)
        if some.weights is None:
            return some, targets, np.ones(len(targets))
        return some, targets, _check_sample_weight(some.weights, some.X, dtype=np.float64)

    def _table(self, X: np.ndarray, y: np.ndarray, sample_weight: Any) -> tuple[Table, GroupedRows]:
        """Return the table of the distinct rows with centered targets, and the groups of identical rows."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.sum() > 0:
            raise invalid_parameter("sample_weight", sample_weight, "weights with a sum above 0")
        targets = y.reshape(len(y), -1).astype(np.float64)
        rows = collapse(X, targets, weights)
        if (rows.X[0] == rows.X).all():
            warn_user(
                f"all {len(X)} rows of X are equal: there is nothing to learn from them, and the mean of y is "
                "predicted everywhere.",
                DataWarning,
            )
        used = rows.group >= 0
        apart = targets[used] - rows.y[rows.group[used]]
        # A row that occurs again with the same target is a copy, and only adds to the weight: counted as a measurement,
        # it would be evidence of no noise. A row that occurs again with another target is a further measurement.
        measured = np.unique(np.column_stack([rows.group[used], targets[used]]), axis=0)
        table = Table.from_rows(
            rows,
            scatter=weights[used] @ apart**2,
            further=len(measured) - len(rows.X),
            shared_noise=self.shared_noise,
            standardize=self.standardize,
            device=self.device,
        )
        return table, rows

    def _learn(
        self,
        table: Table,
        fitter: Fitter,
        ridge: float | None,
        deadline: Deadline,
        summed: Summed | None = None,
        workers: Cluster | None = None,
    ) -> Learned:
        """Search for the best settings and fit their machines on all rows; a given `ridge` is kept.

        `summed` are all rows if the table is a draw of them, and `workers` solve leaves.
        """
        kernels = kernels_of(self.kernel, self.bandwidth, *table.X.shape)
        if isinstance(self.metric, AverageGradients | MaximumLikelihood):
            kernel = check_alone(kernels, self.warp, self.n_landmarks)
            return learned_on_all_rows(self.metric, kernel, self.warp, table)
        if self.metric not in ("auto", "identity"):
            check_metric(kernels[0].single_metric())
        if ridge is None or len(kernels) > 1:
            kernels = [with_intercept(kernel) for kernel in kernels]
        search = Search(
            fitter,
            Freedom(bandwidth=self.bandwidth == "auto", ridge=ridge is None),
            FIRST_RIDGE if ridge is None else ridge,
            self.n_iter,
            self.iterate == "last",
            deadline,
            self.n_jobs,
            workers,
        )
        random = check_random_state(self.random_state)
        landmarks, exact = None, self.n_landmarks != "auto"
        if self.n_landmarks not in (None, "auto") and self.n_landmarks < len(table):
            seed = int(random.randint(2**31 - 1))
            landmarks = Landmarks(int(self.n_landmarks), self.landmarks, seed, self.working_memory, rows=summed)
        space = Space(kernels, self.warp, self.metric, self.average, self._follows_trends)
        learned = learn(search, space, table, landmarks, exact, random)
        if not learned.is_complete:
            self._warn_about_time("all settings were tried: the best so far are kept", "lets the search end")
        return learned

    def _warn_about_time(self, before_what: str, remedy: str) -> None:
        warn_user(
            f"time_limit={self.time_limit} s was reached before {before_what}. "
            f"A larger time_limit, or a fixed kernel, warp or metric, {remedy}.",
            ConvergenceWarning,
        )

    # ---- after the fit ----------------------------------------------------------------------------------------

    def _publish(self, learned: Learned, table: Table, rows: GroupedRows, drawn: np.ndarray | None = None) -> None:
        """Set the fitted attributes; those of a single kernel are those of the machine with the largest share.

        `drawn` are the indices of the rows of the table among all rows, if the table is a draw of them.
        """
        machines, index = learned.machines, [fit.row_index for fit in [*learned.trend, *learned.fits]]
        self.machines_, self.history_ = machines, learned.history
        # The variance of a trend is not needed: it is far smaller than that of the other machines.
        self.trend_ = [fit.machine.changed(posterior_root=None) for fit in learned.trend]
        group = rows.group
        first = np.full(len(table), len(group))
        np.minimum.at(first, group[group >= 0], np.flatnonzero(group >= 0))
        used = np.unique(np.concatenate(index))
        self.row_index_ = first[used] if drawn is None else drawn[first[used]]
        self.machine_rows_ = [np.searchsorted(used, each) for each in index]
        leader = machines[0]
        self.kernel_, self.columns_, self.ridge_ = leader.kernel, leader.columns, leader.ridge
        self.metric_ = leader.kernel.common_metric()
        self.center_ = table.center
        effects = total_effects(self._summed(), table.X, np.random.RandomState(0), self.working_memory)
        self.feature_importances_ = shares_of_effects(effects)
        metric = check_metric(self.metric_)
        directions = metric.directions(MOST_DIRECTIONS, n_features=table.X.shape[1])
        self.directions_, self.direction_shares_ = directions

    def _summed(self) -> list[Machine]:
        """Return the machines whose values, weighted by their shares, add up to the prediction without the mean."""
        return [*self.trend_, *self.machines_]

    def _mean(self, X: np.ndarray) -> np.ndarray:
        """Return the prediction of the mean: the offset plus the average of the machines, of shape (n, c)."""
        return self._offset(X) + self._sum(self.machines_, X)

    def _offset(self, X: np.ndarray) -> np.ndarray:
        """Return the mean of the targets plus the trend, of shape (n, c)."""
        return self.center_ + self._sum(self.trend_, X)

    def _sum(self, machines: list[Machine], X: np.ndarray) -> np.ndarray:
        """Return the sum of the values of machines, weighted by their shares, of shape (n, c)."""
        total = np.zeros((len(X), len(self.center_)))
        for machine in machines:
            total += machine.share * machine.mean(X, self.working_memory, self.device)
        return total

    def _validated(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validated(self, X, dtype=PRECISIONS, reset=False)

    @finite_answers
    def gradients(self, X: Any) -> np.ndarray:
        """Return the gradient of the prediction with respect to the columns, in their units, at each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, d), or (n, c, d) for c targets or classes
        """
        X = self._validated(X)
        total = np.sum([m.share * m.gradients(X, self.working_memory) for m in self._summed()], axis=0)
        return total[:, 0] if self._is_single_output() else total

    @finite_answers
    def contributions(self, X: Any) -> np.ndarray:
        """Return the term of each training row (or landmark) in the prediction without the mean, at each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, m), or (n, m, c) for c targets or classes
            Entry j on the second axis belongs to the row `row_index_[j]` of the training table.
        """
        X = self._validated(X)
        total = np.zeros((len(X), len(self.row_index_), len(self.center_)))
        for machine, rows in zip(self._summed(), self.machine_rows_, strict=True):
            total[:, rows] += machine.share * machine.contributions(X)
        return total[:, :, 0] if self._is_single_output() else total

    def _is_single_output(self) -> bool:
        return len(self.center_) == 1
