"""Recursive feature machines: kernel ridge regression whose metric is learned from its own gradients."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.blocks import WORKING_MEMORY
from mercer.checks import (
    all_or_nothing,
    answers_without_nan,
    check_number,
    finite_answers,
)
from mercer.rows import Cluster, wherever_rows_are
from mercer.tabular_models.all_rows import Summed
from mercer.tabular_models.calibration import Calibration, fit_calibration
from mercer.tabular_models.fitters import ClassFitter, Fitter, RidgeFitter
from mercer.tabular_models.learned import Learned
from mercer.tabular_models.table import Deadline, Table
from mercer.tabular_models.table_classifier import TableClassifier
from mercer.tabular_models.table_model import TableModel
from mercer.tabular_models.target_outliers import without_outliers

PARAMETERS = """
    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        "linear", "laplace", "gaussian", "matern32", "matern52", "product_laplace", "product_matern32", any kernel
        object, or "auto" to choose among "linear", "matern32", "laplace",
        "gaussian" and "product_laplace", and "product_matern32" of at most 400 or more than 20 000 rows.
    metric : {"auto", "identity", "diagonal", "full", "ard"} or object, default="auto"
        How the metric is learned: "diagonal" and "full" by average gradient outer products, "ard" as one length scale
        a column by maximum likelihood. The identity is the start of each, and compared too. `AverageGradients` of
        `mercer.tabular_models.learned_on_all_rows` learns it on all rows, as the paper prints it: nothing is searched,
        and `bandwidth`, `ridge`, `n_iter` and the like have no say (`mercer.papers.rfm`).
    warp : {"auto", "none", "log", "rank"} or sequence of these, default="auto"
        How columns are bent before they are standardized (see `ColumnWarp`): one for all, or one a column.
    bandwidth : float, "median", "auto" or None, default="auto"
        "auto" climbs over multiples of the median distance at every step; a number or "median" is kept; None keeps the
        kernel's own.
    ridge : float or "auto", default="auto"
        "auto" chooses it with the bandwidth.
    n_iter : int, default=2
        Steps of the recursion; all are compared.
    average : bool, default=True
        Whether to average the best machines, with the shares under which the squared errors of left-out rows are
        smallest; False takes the simplest of those that are not clearly worse than the best.
    iterate : {"auto", "last"}, default="auto"
        Which step of the recursion is kept: the best on left-out rows, or the last.
    standardize : bool, default=True
        Whether to standardize the columns after the warp.
    shared_noise : float, default=0.0
        The part of the noise that identical rows share, below 1. With 0, copies of a row are independent measurements.
    n_landmarks : int, None or "auto", default="auto"
        None solves one machine of all distinct rows: O(n^2) memory and O(n^3) time. "auto" does so up to 4000 rows,
        and beyond cuts the rows into leaves of at most 1500, with a machine in each. A number m uses m landmarks,
        O(n m^2) time; beyond 4000 by conjugate gradients of O(n m) a step, with the ridge and the left-out errors of
        2000.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        How landmarks are drawn: with equal chances, far from each other, or by ridge leverage scores, in two estimates
        (`mercer.landmarks.choose_landmarks`).
    time_limit : float or None, default=None
        Seconds that a fit may take, about. The limit is checked between steps, so a running step is completed first.
    n_jobs : int or None, default=None
        Threads that try settings side by side; None is 1 and -1 one for each processor. The result is the same.
    random_state : int, RandomState instance or None, default=None
        Draws rows for the search, and landmarks.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    device : str, torch.device or None, default=None
        Where the work is done; None is the CPU.
"""

FITTED = """
    kernel_ : Kernel
        Of the machine with the largest share, as are the attributes down to `direction_shares_`: with the learned
        metric and a number for the bandwidth, on the columns that `columns_` warps.
    columns_ : ColumnWarp
    metric_ : Mahalanobis
    ridge_ : float
    directions_ : ndarray of shape (k, d)
        The principal directions of the metric, in rows; at most 100.
    direction_shares_ : ndarray of shape (k,)
        The share of each in the metric.
    feature_importances_ : ndarray of shape (d,)
        The total effect of each column, summing to 1: the mean squared change of the prediction when the column gets
        the value of another row. They say what the model uses; `mercer.explain.permutation_importances` says, with
        intervals, what rows that were left out bear out. Where errors have no pattern left, the growth of the squared
        error there is twice the total effect, and both are in one order.
    machines_ : list of Machine
        The machines that are averaged, the largest share first.
    history_ : list of dict
        Everything that was tried: kernel, warp, metric, iterate, bandwidth, ridge, the cost on the rows it was tuned
        on, and the score on left-out rows where it was judged.
    row_index_ : ndarray of shape (m,)
        Rows of the training table that machines stand on.
    machine_rows_ : list of ndarray
        Which of those the rows of each machine are.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names
"""


class LeftOutAverage(NamedTuple):
    """The average prediction of rows that had no part in the metrics, with their targets and weights; all centered."""

    prediction: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def from_learned(cls, learned: Learned) -> "LeftOutAverage":
        """Return the average by the machines' shares."""
        first = learned.fits[0].left_out
        apart = [fit.machine.share * (fit.left_out.mean - first.trend) for fit in learned.fits]
        return cls(first.trend + np.sum(apart, axis=0), first.y, first.weights)


class RecursiveFeatureMachine(TableModel):
    """The fit that regressor and classifier share: y of shape (n, c), squared errors."""

    ridge: Any
    average: bool
    iterate: str
    random_state: Any

    def __init__(
        self,
        kernel: Any = "auto",
        metric: Any = "auto",
        *,
        warp: Any = "auto",
        bandwidth: Any = "auto",
        ridge: Any = "auto",
        n_iter: int = 2,
        average: bool = True,
        iterate: str = "auto",
        standardize: bool = True,
        shared_noise: float = 0.0,
        n_landmarks: Any = "auto",
        landmarks: str = "uniform",
        time_limit: float | None = None,
        n_jobs: int | None = None,
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
        self.shared_noise = shared_noise
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    def _learn_ridge(self, table: Table, fitter: Fitter, summed: Summed | None, workers: Cluster | None) -> Learned:
        ridge = None if self.ridge == "auto" else float(self.ridge)
        return self._learn(table, fitter, ridge, Deadline(self.time_limit), summed, workers)

    def _check_parameters(self) -> None:
        self._check_common()
        if self.ridge != "auto":
            check_number("ridge", self.ridge, above=0.0)


class RFMRegressor(MultiOutputMixin, RegressorMixin, RecursiveFeatureMachine):
    __doc__ = f"""Predict by kernel ridge regression under a metric learned by average gradient outer products.

    Fit f = sum_j alpha_j k_M(x_j, .) by min sum_i (y_i - f(x_i))^2 + ridge |f|^2, set M to the average outer product of
    its gradients, and fit again (rfm-and-ard, section 2.3). Kernel, warp of the columns, bandwidth, ridge and iterate
    are chosen by squared errors of left-out rows: those of the metric on rows that had no part in learning it.
    Identical rows are collapsed first.
{PARAMETERS}
    Attributes
    ----------
    loo_score_ : float
        R^2 of the predictions of left-out rows.
{FITTED.strip()}

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

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RFMRegressor":
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n, d), or rows of files or of Dask (`mercer.rows`)
            Without a number for `n_landmarks` the model keeps all rows: those that are elsewhere come into memory.
        y : array-like of shape (n,) or (n, c)
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two identical rows.

        Returns
        -------
        self
        """
        some, targets, weights = self._rows_with_numbers(X, y, sample_weight)
        table, rows = self._table(some.X, targets, without_outliers(targets, weights))
        summed = some.of_numbers(None, table.center, self.shared_noise)
        learned = self._learn_ridge(table, RidgeFitter(), summed, some.workers)
        prediction, targets, weights = LeftOutAverage.from_learned(learned)
        spread = np.average(np.mean(targets**2, axis=1), weights=weights)
        error = np.average(np.mean((targets - prediction) ** 2, axis=1), weights=weights)
        self._publish(learned, table, rows, some.numbers)
        self.loo_score_ = float(1.0 - error / spread) if spread > 0 else 0.0
        self._single = some.y.ndim == 1
        return self

    @wherever_rows_are
    @finite_answers
    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of the rows of X, of shape (n,) or (n, c)."""
        mean = self._mean(self._validated(X))
        return mean[:, 0] if self._single else mean


class RFMClassifier(TableClassifier, RecursiveFeatureMachine):
    __doc__ = f"""Classify by a recursive feature machine on class indicators, with calibrated probabilities.

    One output a class, 1 for its rows and 0 for the others, is fitted as in `RFMRegressor`. Probabilities are a softmax
    of the outputs, whose scale and offsets maximize the likelihood of left-out rows: they are as sure as the machine is
    right on rows that it has not seen. Settings are compared, and machines averaged, by the log loss of such rows.
{PARAMETERS.rstrip()}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which those of their rows are multiplied; "balanced" lets all classes weigh alike.
        Probabilities are then those of a population with these weights.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : Calibration
        The scale and the offsets of the softmax.
    loo_score_ : float
        The accuracy of the predictions of left-out rows.
{FITTED.strip()}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import RFMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RFMClassifier("laplace", "full", warp="none", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernel: Any = "auto",
        metric: Any = "auto",
        *,
        warp: Any = "auto",
        bandwidth: Any = "auto",
        ridge: Any = "auto",
        n_iter: int = 2,
        average: bool = True,
        iterate: str = "auto",
        standardize: bool = True,
        shared_noise: float = 0.0,
        n_landmarks: Any = "auto",
        landmarks: str = "uniform",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            kernel,
            metric,
            warp=warp,
            bandwidth=bandwidth,
            ridge=ridge,
            n_iter=n_iter,
            average=average,
            iterate=iterate,
            standardize=standardize,
            shared_noise=shared_noise,
            n_landmarks=n_landmarks,
            landmarks=landmarks,
            time_limit=time_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            working_memory=working_memory,
            device=device,
        )
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RFMClassifier":
        """Learn from the rows of a table.

        Parameters
        ----------
        X : array-like of shape (n, d), or rows of files or of Dask (`mercer.rows`)
            Without a number for `n_landmarks` the model keeps all rows: those that are elsewhere come into memory.
        y : array-like of shape (n,)
            Classes, of any type.
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two identical rows.

        Returns
        -------
        self
        """
        some = self._some_rows(X, y, sample_weight)
        classes, table, rows = self._table_of_classes(some)
        summed = some.of_classes(table.center, self.shared_noise)
        learned = self._learn_ridge(table, ClassFitter(table.center), summed, some.workers)
        outputs, targets, weights = LeftOutAverage.from_learned(learned)
        truth = targets + table.center
        calibration = fit_calibration(outputs, truth, weights, np.log(table.center))
        predicted = calibration.log_probabilities(outputs).argmax(axis=1)
        right = truth[np.arange(len(outputs)), predicted]
        self._publish(learned, table, rows, some.numbers)
        self.classes_, self.calibration_ = classes, calibration
        self.loo_score_ = float(np.average(right, weights=weights))
        return self

    @wherever_rows_are
    @answers_without_nan
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the logits of the classes, of shape (n, n_classes); of two classes the second's over the first's."""
        outputs = self._mean(self._validated(X)) - self.center_
        calibration: Calibration = self.calibration_
        logits = calibration.logits(outputs)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    @wherever_rows_are
    @answers_without_nan
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities of the classes, of shape (n, n_classes)."""
        logits = self.decision_function(X)
        return log_softmax(np.column_stack([np.zeros(len(logits)), logits]) if logits.ndim == 1 else logits, axis=1)
