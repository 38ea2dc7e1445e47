"""Gaussian process regression whose kernel, warp, metric and noise are learned from the table."""

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import check_random_state

from mercer.blocks import WORKING_MEMORY
from mercer.checks import (
    all_or_nothing,
    check_choice,
    check_count,
    check_flag,
    check_number,
)
from mercer.exceptions import DataWarning, MercerWarning, ignored, invalid_parameter, warn_user
from mercer.tabular_models.cv_plus import FoldScores, balanced_folds
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.distribution import learn_distribution
from mercer.tabular_models.fitters import SMALLEST_RIDGE, ProcessFitter
from mercer.tabular_models.learned import Fit, Learned
from mercer.tabular_models.process_predictions import ProcessPredictions
from mercer.tabular_models.rfm import FITTED
from mercer.tabular_models.support import seen_variances
from mercer.tabular_models.table import Table
from mercer.tabular_models.target_outliers import without_outliers
from mercer.tabular_models.target_warp import forward_of, inverse_of, log_slopes_of
from mercer.tabular_models.target_warp_choice import chosen_warps


class GPRegressor(MultiOutputMixin, RegressorMixin, ProcessPredictions):
    __doc__ = f"""Predict with a Gaussian process y ~ N(mean, s (k(x, x') + noise)) whose metric is learned.

    The metric M of the kernel is learned by average gradient outer products ("diagonal", "full"; rfm-and-ard, section
    2.3), or as one length scale for each column by maximum likelihood ("ard"). Parameters that are "auto" are chosen by
    the density of left-out rows. The best machines are averaged, with the weights that maximize this density.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        The kernel: "linear", "gaussian", "laplace", "matern32", "matern52", "product_laplace", "product_matern32", any
        kernel object, or "auto". "auto" chooses among "linear", "matern32", "laplace", "gaussian" and
        "product_laplace", and also "product_matern32" if there are at most 400 or more than 20 000 rows.
    metric : {{"auto", "identity", "diagonal", "full", "ard"}} or object, default="auto"
        How the metric is learned: "diagonal" and "full" by average gradient outer products, "ard" by maximum likelihood
        with one length scale for each column. "auto" tries all of them. An `AverageGradients` or `MaximumLikelihood`
        object of `mercer.tabular_models.learned_on_all_rows` learns the metric on all rows, exactly as in the paper.
        Nothing is searched then, and the parameters of the search, such as `bandwidth` and `n_iter`, have no effect
        (see `mercer.papers.gp_rfm`).
    warp : {{"auto", "none", "log", "rank"}} or sequence of these, default="auto"
        The monotone transformation of the columns before they are standardized (see `ColumnWarp`): one for all columns,
        or a sequence with one for each column. "auto" compares them.
    target_warp : {{"none", "auto", "log", "yeo-johnson"}}, default="none"
        The transformation of the targets before they are predicted. "log" is log(y), or log(y + half the smallest
        positive target) if some targets are 0; its predictions are never negative. "yeo-johnson" is a power
        transformation. "auto" uses a warp if it clearly raises the likelihood of left-out rows and does not raise their
        errors. Quantiles, intervals, densities and draws are in units of y, and the mean and its standard deviation are
        found by quadrature. Quantities of the machines themselves (`contributions`, `gradients`, `noise_`,
        `output_scale_`, `center_`) are in units of the warped target.
    average : bool, default=True
        Whether to average the best machines. False keeps one machine: the simplest of those that are not clearly worse
        than the best.
    calibrate : bool, default=True
        Whether to calibrate the predictive distribution on left-out rows. The output scale then maximizes the
        likelihood of these rows and not the marginal likelihood. Their errors determine how wide and how heavy-tailed
        the distribution is (`spread_`), and whether the noise depends on x (`noise_levels_`).
    criterion : {{"left_out", "evidence"}}, default="left_out"
        What the length scale and the noise minimize or maximize under a given metric: the errors of left-out rows, or
        the evidence (the marginal likelihood), as in the paper.
    bandwidth : float, "median", "auto" or None, default="auto"
        The length scale of the kernel. "auto" learns it. A number or "median" is used as given. None keeps the
        bandwidth of the kernel object.
    noise : float or "auto", default="auto"
        The variance of the noise, in the squared units of y. A number needs a number for `output_scale`; "auto" learns
        both.
    output_scale : float or "auto", default="auto"
        The variance of the prior.
    noise_floor : float, default=1e-08
        The smallest noise variance that is allowed, relative to the output scale.
    n_iter : int, default=2
        Number of steps of the recursion that learns the metric. The metrics of all steps are compared.
    iterate : {{"auto", "last"}}, default="auto"
        Which step of the recursion is kept: the best on left-out rows, or the last.
    standardize : bool, default=True
        Whether to standardize the columns after the warp.
    shared_noise : float, default=0.0
        The part of the noise that identical rows share, below 1. With 0, copies of a row are independent measurements.
    n_landmarks : int, None or "auto", default="auto"
        None fits one machine on all distinct rows, in O(n^2) memory and O(n^3) time. "auto" does the same for up to
        4000 rows; more rows are partitioned into leaves of at most 1500 rows, with a machine in each leaf. A number m
        uses m landmarks, in O(n m^2) time.
    landmarks : {{"uniform", "kmeans++", "leverage", "leverage_hutchinson"}}, default="uniform"
        How landmarks are drawn from the rows: with equal probabilities, far from each other, or by one of two estimates
        of the ridge leverage scores (see `mercer.landmarks.choose_landmarks`).
    interval_folds : int or None, default=None
        With a number K, everything is learned K more times, each time without one of K folds. This gives intervals with
        guaranteed coverage: `predict_interval(X, method="cv+")`. A fit then takes about K times longer.
    time_limit : float or None, default=None
        Approximate time limit for `fit`, in seconds; with `interval_folds`, for all of its fits together. The limit is
        checked between steps, so a running step is completed first.
    n_jobs : int or None, default=None
        Number of threads that try settings in parallel. None means 1, and -1 means one for each processor. The result
        does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Determines which rows the search uses, and which rows are landmarks.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    noise_ : float or ndarray of shape (c,)
        The noise variance of the machine with the largest share, in the squared units of y.
    output_scale_ : float or ndarray of shape (c,)
        The prior variance of the same machine.
    log_marginal_likelihood_ : float
        The log marginal likelihood of the same machine at the output scale that maximizes it, or at the given one. With
        landmarks it is the lower bound.
    loo_log_density_ : float
        The mean log density of left-out rows.
    spread_ : Spread
        How the errors of left-out rows correct the predictive distribution: a factor and an exponent for its standard
        deviations, and the degrees of freedom of a Student-t, infinite for a Gaussian.
    target_warps_ : list of TargetWarp
        The transformation of each target.
    noise_levels_ : list of (NoiseLevel or None)
        How the noise of each target depends on x; None if left-out rows do not clearly show that it does.
    seen_variances_ : list of ndarray
        For each machine, the variances of the function at left-out rows for an output scale of 1, in ascending order.
    fold_models_ : list of GPRegressor
        With `interval_folds`, the models that were each fitted without one fold; otherwise empty.
    fold_scores_ : FoldScores or None
        With `interval_folds`, the fold of each row, and its error under the model that was fitted without that fold.
    center_ : ndarray of shape (c,)
        The mean of the targets.
    {FITTED.strip()}

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GPRegressor
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> model = GPRegressor(kernel="gaussian", metric="identity", warp="none", random_state=0).fit(X, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 2 * std[0])
    True
    """

    def __init__(
        self,
        kernel: Any = "auto",
        metric: Any = "auto",
        *,
        warp: Any = "auto",
        target_warp: str = "none",
        average: bool = True,
        calibrate: bool = True,
        criterion: str = "left_out",
        bandwidth: Any = "auto",
        noise: Any = "auto",
        output_scale: Any = "auto",
        noise_floor: float = SMALLEST_RIDGE,
        n_iter: int = 2,
        iterate: str = "auto",
        standardize: bool = True,
        shared_noise: float = 0.0,
        n_landmarks: Any = "auto",
        landmarks: str = "uniform",
        interval_folds: int | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.warp = warp
        self.target_warp = target_warp
        self.average = average
        self.calibrate = calibrate
        self.criterion = criterion
        self.bandwidth = bandwidth
        self.noise = noise
        self.output_scale = output_scale
        self.noise_floor = noise_floor
        self.n_iter = n_iter
        self.iterate = iterate
        self.standardize = standardize
        self.shared_noise = shared_noise
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.interval_folds = interval_folds
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPRegressor":
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
        deadline, X, y = Deadline(self._seconds_of_a_fit()), some.X, some.y
        warps = chosen_warps(self.target_warp, X, targets, weights, check_random_state(self.random_state))
        bent = forward_of(warps, targets)
        table, rows = self._table(X, bent, without_outliers(bent, weights, targets))
        given = None if self.noise == "auto" else self.noise / self.output_scale
        fitter = ProcessFitter(self.noise_floor, self.criterion == "evidence")
        summed = some.of_numbers(warps, table.center, self.shared_noise)
        learned = self._learn(table, fitter, given, deadline, summed, some.workers)
        learned = learned._replace(fits=[self._with_output_scale(fit) for fit in learned.fits])
        leader = learned.machines[0]
        self._publish(learned, table, rows, some.numbers)
        self._single = y.ndim == 1
        self.target_warps_ = warps
        self._publish_distribution(learned, table)
        self.log_marginal_likelihood_ = self._log_evidence(learned.fits[0])
        self.output_scale_ = self._like_y(leader.output_scales)
        self.noise_ = self._like_y(leader.ridge * leader.output_scales)
        self._warn_about_bounds(learned.fits[0])
        self._publish_folds(X, y, some.weights)
        return self

    def _seconds_of_a_fit(self) -> float | None:
        """Return the time limit of one fit: the fit of all rows and those without one fold get equal parts."""
        if self.time_limit is None or self.interval_folds is None:
            return self.time_limit
        return self.time_limit / (self.interval_folds + 1)

    def _publish_folds(self, X: np.ndarray, y: np.ndarray, sample_weight: Any) -> None:
        """Learn everything again without each fold, and keep the errors of the predictions of its rows."""
        self.fold_models_: list[GPRegressor] = []
        self.fold_scores_: FoldScores | None = None
        if self.interval_folds is None:
            return
        random = check_random_state(self.random_state)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        used = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)
        fold = balanced_folds(len(used), self.interval_folds, random)
        targets = y.reshape(len(y), -1)
        score = np.empty((len(used), targets.shape[1]))
        for k in range(fold.max() + 1):
            inside, outside = used[fold == k], used[fold != k]
            seed = int(random.randint(2**31 - 1))
            model = clone(self).set_params(interval_folds=None, random_state=seed, time_limit=self._seconds_of_a_fit())
            # The fit of all rows has already given these warnings.
            with ignored(MercerWarning):
                model.fit(X[outside], y[outside], None if weights is None else weights[outside])
            mean, std = (part.reshape(len(inside), -1) for part in model.predict(X[inside], return_std=True))
            score[fold == k] = np.abs(targets[inside] - mean) / std
            self.fold_models_.append(model)
        self.fold_scores_ = FoldScores(fold, score)

    def _with_output_scale(self, fit: Fit) -> Fit:
        """Return the machine with its output scale: from left-out rows, from the evidence, or as it was given."""
        machine = fit.machine
        if self.noise != "auto":
            machine = machine.changed(output_scales=np.full(machine.alpha.shape[1], float(self.output_scale)))
        elif self.calibrate:
            machine = machine.changed(output_scales=fit.left_out.density_scales())
        return fit._replace(machine=machine)

    def _publish_distribution(self, learned: Learned, table: Table) -> None:
        """Learn from left-out rows how to correct the predictive distribution, and set the attributes this needs."""
        found = learn_distribution(learned.fits, table.X, calibrate=self.calibrate and self.noise == "auto")
        self.spread_, self.noise_levels_ = found.distribution.spread, list(found.distribution.noise_levels)
        self.seen_variances_ = [seen_variances(fit.machine, fit.left_out) for fit in learned.fits]
        left_out = learned.fits[0].left_out
        slopes = log_slopes_of(self.target_warps_, inverse_of(self.target_warps_, left_out.y + table.center))
        self.loo_log_density_ = found.log_density + float(np.average(slopes.mean(axis=1), weights=left_out.weights))

    def _log_evidence(self, fit: Fit) -> float:
        """Return the log evidence at the given output scale, or otherwise at the best one."""
        given = self.noise != "auto" or not isinstance(self.metric, str)
        return fit.evidence.log_evidence(fit.machine.output_scales if given else fit.evidence.best_scales())

    # ---- checks -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._check_common()
        check_choice("target_warp", self.target_warp, ("none", "auto", "log", "yeo-johnson"))
        check_choice("criterion", self.criterion, ("left_out", "evidence"))
        check_flag("calibrate", self.calibrate)
        if self.interval_folds is not None:
            check_count("interval_folds", self.interval_folds, at_least=2)
        check_number("noise_floor", self.noise_floor, above=0.0, at_most=1.0)
        for name in ("noise", "output_scale"):
            if getattr(self, name) != "auto":
                check_number(name, getattr(self, name), above=0.0)
        if (self.noise == "auto") != (self.output_scale == "auto"):
            raise invalid_parameter(
                "noise",
                self.noise,
                "'auto' with output_scale='auto', or a number with a number",
                f"output_scale={self.output_scale!r}.",
            )

    def _warn_about_bounds(self, fit: Fit) -> None:
        """Warn if the noise is at its floor and left-out rows are predicted as if there were no noise."""
        targets, errors = fit.left_out.y, fit.left_out.y - fit.left_out.mean
        spread = np.square(targets).mean(axis=0)
        without_noise = np.all(np.square(errors).mean(axis=0) < 1e-3 * spread)
        if self.noise == "auto" and fit.machine.ridge <= 1.001 * self.noise_floor and without_noise:
            warn_user(
                f"the noise is at its floor, noise_floor={self.noise_floor} of the output scale: y looks like a "
                "function of X without noise. If it has noise, look for rows that are copies of others.",
                DataWarning,
            )
