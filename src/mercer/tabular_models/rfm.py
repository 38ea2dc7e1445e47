"""Recursive feature machines: kernel ridge regression whose metric is learned from its own gradients."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from mercer.blocks import WORKING_MEMORY
from mercer.checks import check_number
from mercer.exceptions import invalid_parameter
from mercer.kernels import BandwidthKernel, Kernel
from mercer.selection import Candidate, best
from mercer.tabular_models.calibration import Calibration, fit_calibration
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.recursion import METRICS
from mercer.tabular_models.rfm_core import (
    RIDGES,
    FittedRFM,
    RidgeFit,
    at,
    exact_rfm,
    landmark_rfm,
    left_out,
    shares_of,
)
from mercer.tabular_models.search import (
    SCREEN_ROWS,
    TUNE_ROWS,
    Recipe,
    finalists,
    history_entry,
    refine_warp,
    try_recipe,
)
from mercer.tabular_models.table import Clock, Observations, Table
from mercer.tabular_models.table_model import AUTO_METRICS, TableModel

# Recipes that are tried on more rows than the screen's.
FINALISTS = 4
# Steps of the recursion on the few rows of the screen.
MOST_STEPS_OF_SCREEN = 2
# With landmarks the metric is learned on at most this many rows.
MOST_METRIC_ROWS = 5000

PARAMETERS = """
    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        "laplace", "gaussian", "matern32", "matern52", "product_laplace", "product_matern32", any kernel object, or
        "auto" to choose among these six.
    metric : {"auto", "identity", "diagonal", "full"}, default="auto"
        What the metric may be; "auto" tries both "diagonal" and "full", and the identity as the start of both.
    warp : {"auto", "none", "log", "rank"} or sequence of these, default="auto"
        How columns are bent before they are standardised (see `ColumnWarp`): one for all, or one a column. "auto"
        chooses, for each column in the end.
    bandwidth : float, "median", "auto" or None, default="auto"
        "auto" climbs over multiples of the median distance at every step; a number or "median" is kept; None keeps the
        kernel's own.
    ridge : float or "auto", default="auto"
        "auto" chooses among powers of ten and their halves.
    n_iter : int, default=3
        Steps of the recursion; every one is a candidate, t = 0 included.
    average : bool, default=True
        Whether to average the best candidates, with the shares under which squared leave-one-out errors are smallest;
        False takes the best alone.
    iterate : {"auto", "last"}, default="auto"
        Which iterate is kept: the best by leave-one-out, or the last.
    standardize : bool, default=True
        Whether to standardise the columns after the warp.
    n_landmarks : int, None or "auto", default="auto"
        None uses every distinct row as a centre: exact, O(n^2) memory and O(n^3) time. A number m uses m landmarks,
        O(n m^2) time; beyond 4000 by conjugate gradients of O(n m) a step, with the ridge and the errors left out
        of 2000. "auto" is None up to 10 000 distinct rows, and 2000 beyond.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        How landmarks are drawn: with equal chances, far from each other, or by ridge leverage scores, in two estimates
        (`mercer.landmarks.choose_landmarks`).
    time_limit : float or None, default=None
        Seconds after which the search for better candidates ends, with a warning. A step that has begun is finished.
    random_state : int, RandomState instance or None, default=None
        Draws rows for the search, and landmarks.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    device : str, torch.device or None, default=None
        Where the work is done; None is the CPU.
"""


class LeftOut(NamedTuple):
    """Observations, and what machines that were fitted without each of them predict; both centred."""

    predictions: np.ndarray
    observations: Observations


class RecursiveFeatureMachine(TableModel):
    """The fit that regressor and classifier share: y of shape (n, c), squared errors."""

    ridge: Any
    average: bool
    iterate: str
    random_state: Any

    def __init__(
        self,
        kernel: Any = "auto",
        metric: str = "auto",
        *,
        warp: Any = "auto",
        bandwidth: Any = "auto",
        ridge: Any = "auto",
        n_iter: int = 3,
        average: bool = True,
        iterate: str = "auto",
        standardize: bool = True,
        n_landmarks: Any = "auto",
        landmarks: str = "uniform",
        time_limit: float | None = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.warp = warp
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_iter = n_iter
        self.average = average
        self.iterate = iterate
        self.standardize = standardize
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.time_limit = time_limit
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    def _fit(self, table: Table) -> LeftOut:
        """Choose recipes on few rows, iterates and shares on more, and fit on all of them; return rows left out."""
        random, clock = check_random_state(self.random_state), Clock(self.time_limit)
        self.history_: list[dict[str, Any]] = []
        self._fit_one = RidgeFit(self._ridges(), self._tunes_bandwidth(), int(random.randint(2**31 - 1)))
        rows = table.sample(TUNE_ROWS, random)
        chosen = self._search(table, rows, random, clock)
        if len(chosen) > 1:
            shares = shares_of([left_out(candidate, rows) for candidate in chosen], rows.observations)
            chosen = [candidate for candidate, share in zip(chosen, shares, strict=True) if share > 0]
        fitted = self._on_all_rows(chosen, rows, table, random, clock)
        predictions = [f.left_out() for f in fitted]
        shares = shares_of(predictions, fitted[0].rows.observations)
        kept = [i for i in np.argsort(-shares, kind="stable") if shares[i] > 0]
        components = [fitted[i].component._replace(weight=float(shares[i])) for i in kept]
        self._publish(components, [fitted[i].basis_index for i in kept], table)
        self._warn_if_cut_short(clock)
        del self._fit_one
        return LeftOut(np.tensordot(shares, predictions, axes=1), fitted[0].rows.observations)

    def _on_all_rows(
        self, chosen: list[Candidate], rows: Table, table: Table, random: np.random.RandomState, clock: Clock
    ) -> list[FittedRFM]:
        """Return the machines of candidates that were chosen on some rows, fitted on the table."""
        n_landmarks = self._number_of_landmarks(table)
        if n_landmarks is None:
            if rows is not table:
                chosen = [self._on_more_rows(candidate, table, clock) for candidate in chosen]
            return [exact_rfm(candidate, table) for candidate in chosen]
        more = table.sample(MOST_METRIC_ROWS, random)
        options = (self._ridges(), n_landmarks, self.landmarks, int(random.randint(2**31 - 1)), self.working_memory)
        fitted = [landmark_rfm(self._on_more_rows(candidate, more, clock), table, *options) for candidate in chosen]
        self.history_ += [history_entry(f.candidate, len(table)) for f in fitted]
        return fitted

    def _search(self, table: Table, rows: Table, random: np.random.RandomState, clock: Clock) -> list[Candidate]:
        """Return the candidates to be averaged, the best first, each tuned on the rows."""
        todo = self._recipes(table, AUTO_METRICS)
        if len(todo) > 1:
            few = table.sample(SCREEN_ROWS, random)
            tried: list[Candidate] = []
            for recipe in todo:
                tried += self._try(recipe, few, min(self.n_iter, MOST_STEPS_OF_SCREEN), clock)
                if clock.is_over():
                    break
            leaders = finalists(tried, FINALISTS)
        else:
            leaders = [Candidate(None, 0.0, {"recipe": todo[0], "iterate": self.n_iter})]
        found: list[Candidate] = []
        for leader in leaders:
            # One more step than fewer rows wanted: more rows may bear it.
            n_iter = self.n_iter if self.iterate == "last" else min(self.n_iter, leader.about["iterate"] + 1)
            found.append(self._best(self._try(leader.about["recipe"], rows, n_iter, clock)))
            if clock.is_over():
                break
        found.sort(key=lambda candidate: -candidate.score)
        if isinstance(self.warp, str) and self.warp == "auto":
            found[0] = self._refine_warp(found[0], rows, clock)
        return found if self.average else found[:1]

    def _try(self, recipe: Recipe, rows: Table, n_iter: int, clock: Clock) -> list[Candidate]:
        found = try_recipe(recipe, rows, self._fit_one, n_iter=n_iter, working_memory=self.working_memory, clock=clock)
        self.history_ += [history_entry(candidate, len(rows)) for candidate in found]
        return found

    def _best(self, iterates: Sequence[Candidate]) -> Candidate:
        return iterates[-1] if self.iterate == "last" else best(iterates)

    def _on_more_rows(self, chosen: Candidate, table: Table, clock: Clock) -> Candidate:
        """Return the recipe of a candidate run again, to its iterate, on these rows."""
        return self._best(self._try(chosen.about["recipe"], table, chosen.about.get("iterate", 0), clock))

    def _refine_warp(self, leader: Candidate, rows: Table, clock: Clock) -> Candidate:
        def fixed(kernel: Kernel, table: Table, warp: Any) -> Candidate:
            return at(kernel, table, warp, [leader.ridge])

        refined = refine_warp(leader, rows, WARPS, fixed, clock)
        if refined is not leader:
            self.history_.append(history_entry(refined, len(rows)))
        return refined

    def _ridges(self) -> Sequence[float]:
        return RIDGES if self.ridge == "auto" else [float(self.ridge)]

    def _tunes_bandwidth(self) -> bool:
        from mercer.kernels import check_kernel

        if self.bandwidth != "auto":
            return False
        if isinstance(self.kernel, str) and self.kernel == "auto":
            return True
        return any(isinstance(leaf, BandwidthKernel) for leaf in check_kernel(self.kernel).leaves())

    def _check_parameters(self) -> None:
        self._check_common(METRICS)
        if self.ridge != "auto":
            check_number("ridge", self.ridge, above=0.0)
        if self.iterate not in ("auto", "last"):
            raise invalid_parameter("iterate", self.iterate, ("auto", "last"))


class RFMRegressor(MultiOutputMixin, RegressorMixin, RecursiveFeatureMachine):
    __doc__ = f"""Predict by kernel ridge regression under a metric learned by average gradient outer products.

    Fit f = sum_j alpha_j k_M(x_j, .) by min sum_i (y_i - f(x_i))^2 + ridge |f|^2, set M to the average outer product of
    its gradients, and fit again (rfm-and-ard, section 2.3). Kernel, warp of the columns, bandwidth, ridge and iterate
    are chosen by squared leave-one-out errors in closed form: no validation set is needed, and no row is wasted.
    Identical rows are collapsed first.
{PARAMETERS}
    Attributes
    ----------
    kernel_ : Kernel
        Of the machine with the largest share, as are the attributes down to `ridge_`: with the learned metric and a
        number for the bandwidth, on the columns that `columns_` warps.
    columns_ : ColumnWarp
    metric_ : Mahalanobis
    ridge_ : float
    feature_importances_ : ndarray of shape (d,)
        The diagonal of the metric, summing to 1; of the gradients' outer product where the identity was kept.
    directions_ : ndarray of shape (d, d)
        The principal directions of the metric, in rows.
    direction_shares_ : ndarray of shape (d,)
        The share of each in the metric.
    loo_score_ : float
        R^2 of the leave-one-out predictions.
    components_ : list of Component
        The machines that are averaged, the largest share first: centres, coefficients, kernel, warp, weight.
    center_ : ndarray of shape (c,)
        The mean of the targets.
    history_ : list of dict
        Every candidate that was tried: kernel, warp, metric, iterate, bandwidth, ridge, score, rows.
    row_index_ : ndarray of shape (m,)
        Rows of the training table that are centres.
    basis_index_ : list of ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import RFMRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = (X[:, 0] + X[:, 1]) ** 2
    >>> model = RFMRegressor("laplace", "full", warp="none", random_state=0).fit(X, y)
    >>> bool(model.direction_shares_[0] > 0.9)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RFMRegressor":
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, c)
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two identical rows.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True)
        self._check_parameters()
        self._single = y.ndim == 1
        predictions, (targets, _, weights) = self._fit(self._table(X, y, sample_weight))
        spread = np.average(np.mean(targets**2, axis=1), weights=weights)
        error = np.average(np.mean((targets - predictions) ** 2, axis=1), weights=weights)
        self.loo_score_ = float(1.0 - error / spread) if spread > 0 else 0.0
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of the rows of X, of shape (n,) or (n, c)."""
        mean = self._mean(self._validated(X))
        return mean[:, 0] if self._single else mean


class RFMClassifier(ClassifierMixin, RecursiveFeatureMachine):
    __doc__ = f"""Classify by a recursive feature machine on class indicators, with calibrated probabilities.

    One output a class, 1 for its rows and 0 for the others, is fitted as in `RFMRegressor`. Probabilities are a softmax
    of the outputs, whose scale and offsets maximise the likelihood of the leave-one-out outputs: they are as sure as
    the machine is right on rows that it has not seen.
{PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : Calibration
        The scale and the offsets of the softmax.
    kernel_ : Kernel
        Of the machine with the largest share, as are the attributes down to `ridge_`: with the learned metric and a
        number for the bandwidth, on the columns that `columns_` warps.
    columns_ : ColumnWarp
    metric_ : Mahalanobis
    ridge_ : float
    feature_importances_ : ndarray of shape (d,)
        The diagonal of the metric, summing to 1; of the gradients' outer product where the identity was kept.
    directions_ : ndarray of shape (d, d)
        The principal directions of the metric, in rows.
    direction_shares_ : ndarray of shape (d,)
        The share of each in the metric.
    loo_score_ : float
        The accuracy of the leave-one-out predictions.
    components_ : list of Component
        The machines that are averaged, the largest share first: centres, coefficients, kernel, warp, weight.
    center_ : ndarray of shape (n_classes,)
        The shares of the classes.
    history_ : list of dict
        Every candidate that was tried: kernel, warp, metric, iterate, bandwidth, ridge, score, rows.
    row_index_ : ndarray of shape (m,)
        Rows of the training table that are centres.
    basis_index_ : list of ndarray
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RFMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RFMClassifier("laplace", "full", warp="none", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RFMClassifier":
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Classes, of any type.
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two identical rows.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            # A class without weight is no class: it has no share.
            X, y, sample_weight = X[sample_weight > 0], y[sample_weight > 0], sample_weight[sample_weight > 0]
            if not len(y):
                raise invalid_parameter("sample_weight", sample_weight, "weights with a sum above 0")
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}: a classifier needs two or more.")
        self._check_parameters()
        table = self._table(X, np.eye(len(self.classes_))[index], sample_weight)
        outputs, (targets, _, weights) = self._fit(table)
        labels = (targets + table.center).argmax(axis=1)
        self.calibration_ = fit_calibration(outputs, labels, weights, np.log(table.center))
        right = self.calibration_.log_probabilities(outputs).argmax(axis=1) == labels
        self.loo_score_ = float(np.average(right, weights=weights))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        return np.exp(self._log_probabilities(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        most_probable = self._log_probabilities(X).argmax(axis=1)
        return self.classes_[most_probable]

    def _log_probabilities(self, X: Any) -> np.ndarray:
        outputs = self._mean(self._validated(X)) - self.center_
        calibration: Calibration = self.calibration_
        return calibration.log_probabilities(outputs)

    def _is_single_output(self) -> bool:
        return False
