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
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.fitters import ClassFitter, Fitter, RidgeFitter
from mercer.tabular_models.learned import Learned
from mercer.tabular_models.table import Table
from mercer.tabular_models.table_classifier import TableClassifier
from mercer.tabular_models.table_model import TableModel
from mercer.tabular_models.target_outliers import without_outliers

PARAMETERS = """
    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        The kernel: "linear", "laplace", "gaussian", "matern32", "matern52", "product_laplace", "product_matern32", any
        kernel object, or "auto". "auto" chooses among "linear", "matern32", "laplace", "gaussian" and
        "product_laplace", and also "product_matern32" if there are at most 400 or more than 20 000 rows.
    metric : {"auto", "identity", "diagonal", "full", "ard"} or object, default="auto"
        How the metric is learned: "diagonal" and "full" by average gradient outer products, "ard" by maximum likelihood
        with one length scale for each column. Each starts from the identity, which is compared as well. "auto" compares
        all those that suit the kernel. An `AverageGradients` object of `mercer.tabular_models.learned_on_all_rows`
        learns the metric on all rows, exactly as in the paper. Nothing is searched then, and the parameters of the
        search, such as `bandwidth`, `ridge` and `n_iter`, have no effect (see `mercer.papers.rfm`).
    warp : {"auto", "none", "log", "rank"} or sequence of these, default="auto"
        The monotone transformation of the columns before they are standardized (see `ColumnWarp`): one for all columns,
        or a sequence with one for each column. "auto" compares them.
    bandwidth : float, "median", "auto" or None, default="auto"
        The bandwidth of the kernel. "auto" searches multiples of the median distance at every step of the recursion. A
        number or "median" is used as given. None keeps the bandwidth of the kernel object.
    ridge : float or "auto", default="auto"
        The weight of the penalty |f|^2. "auto" chooses it together with the bandwidth.
    n_iter : int, default=2
        Number of steps of the recursion. The metrics of all steps are compared.
    average : bool, default=True
        Whether to average the best machines, with the weights that minimize the squared error on left-out rows. False
        keeps one machine: the simplest of those that are not clearly worse than the best.
    iterate : {"auto", "last"}, default="auto"
        Which step of the recursion is kept: the best on left-out rows, or the last.
    standardize : bool, default=True
        Whether to standardize the columns after the warp.
    shared_noise : float, default=0.0
        The part of the noise that identical rows share, below 1. With 0, copies of a row are independent measurements.
    n_landmarks : int, None or "auto", default="auto"
        None fits one machine on all distinct rows, in O(n^2) memory and O(n^3) time. "auto" does the same for up to
        4000 rows; more rows are partitioned into leaves of at most 1500 rows, with a machine in each leaf. A number m
        uses m landmarks, in O(n m^2) time. More than 4000 landmarks are solved for by conjugate gradients, in O(n m)
        time a step; the ridge and the left-out errors are then those of 2000 landmarks.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        How landmarks are drawn from the rows: with equal probabilities, far from each other, or by one of two estimates
        of the ridge leverage scores (see `mercer.landmarks.choose_landmarks`).
    time_limit : float or None, default=None
        Approximate time limit for `fit`, in seconds. The limit is checked between steps, so a running step is completed
        first.
    n_jobs : int or None, default=None
        Number of threads that try settings in parallel. None means 1, and -1 means one for each processor. The result
        does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Determines which rows the search uses, and which rows are landmarks.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.
"""

FITTED = """
    kernel_ : Kernel
        The kernel with the learned metric and a number for the bandwidth. It acts on the columns that `columns_` has
        warped. This attribute and those down to `direction_shares_` describe the machine with the largest share.
    columns_ : ColumnWarp
        The fitted transformation of the columns.
    metric_ : Mahalanobis
        The learned metric.
    ridge_ : float
        The ridge that was used.
    directions_ : ndarray of shape (k, d)
        The principal directions of the metric, one in each row; at most 100.
    direction_shares_ : ndarray of shape (k,)
        The share of each direction in the metric.
    feature_importances_ : ndarray of shape (d,)
        The total effect of each column: the mean squared change of the prediction when the column gets the value of
        another row. They sum to 1. They show what the model uses, whereas `mercer.explain.permutation_importances`
        shows, with intervals, what left-out rows confirm. Where the errors have no pattern left, the squared error
        on left-out rows grows by twice the total effect, so that both rank the columns in the same order.
    machines_ : list of Machine
        The machines that are averaged, in decreasing order of their shares.
    history_ : list of dict
        All settings that were tried: kernel, warp, metric, iterate, bandwidth, ridge, the cost on the rows that were
        used for tuning and, if the setting was judged, its score on left-out rows.
    row_index_ : ndarray of shape (m,)
        Indices of the training rows that the machines keep.
    machine_rows_ : list of ndarray
        For each machine, the positions of its rows in `row_index_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names
"""


class LeftOutAverage(NamedTuple):
    """Averaged predictions of rows that no metric was learned from, with their targets and weights; all centered."""

    prediction: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @classmethod
    def from_learned(cls, learned: Learned) -> "LeftOutAverage":
        """Return the average of the machines, weighted by their shares."""
        first = learned.fits[0].left_out
        apart = [fit.machine.share * (fit.left_out.mean - first.trend) for fit in learned.fits]
        return cls(first.trend + np.sum(apart, axis=0), first.y, first.weights)


class RecursiveFeatureMachine(TableModel):
    """The base class of the regressor and the classifier: parameters, and a fit of y (n, c) by squared errors."""

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

    The prediction f = sum_j alpha_j k_M(x_j, .) minimizes sum_i (y_i - f(x_i))^2 + ridge |f|^2. The metric M is then
    set to the average outer product of the gradients of f, and f is fitted again (rfm-and-ard, section 2.3). Kernel,
    warp of the columns, bandwidth, ridge and number of steps are chosen by the squared errors of left-out rows. A
    metric is judged on rows that it was not learned from. Identical rows are merged into one weighted row first.
{PARAMETERS}
    Attributes
    ----------
    loo_score_ : float
        The R^2 of the predictions of left-out rows.
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
            The rows. Without a number for `n_landmarks` the model keeps all of them, and loads them into memory.
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

    Each class has one output, which is 1 for the rows of the class and 0 for all others, and is fitted as in
    `RFMRegressor`. Probabilities are a softmax of the outputs. Its scale and offsets maximize the likelihood of
    left-out rows, so that the probabilities match how often the machine is right on new rows. Settings are compared,
    and machines are averaged, by the log loss of left-out rows.
{PARAMETERS.rstrip()}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by which the weights of their rows are multiplied. "balanced" gives all classes the same
        total weight. The probabilities are then those of a population with these weights.

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
            The rows. Without a number for `n_landmarks` the model keeps all of them, and loads them into memory.
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
        """Return the logits of the classes, (n, n_classes); for two classes the second minus the first, (n,)."""
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
