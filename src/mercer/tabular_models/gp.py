"""Gaussian process regression whose kernel, warp, metric and noise are learned from the table."""

import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mercer.blocks import WORKING_MEMORY
from mercer.checks import check_count, check_number
from mercer.exceptions import DataWarning, invalid_parameter
from mercer.kernels import Kernel, check_kernel
from mercer.selection import Candidate, best, stacking_weights
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.gp_core import (
    STEPS_ARD,
    STEPS_SCREEN,
    EvidenceFit,
    Fitted,
    bandwidth_is_free,
    exact_component,
    landmark_component,
    scored,
)
from mercer.tabular_models.mixture import covariance_of, draw, log_density_of, means_of, variance_of
from mercer.tabular_models.recursion import METRICS
from mercer.tabular_models.search import (
    SCREEN_ROWS,
    TUNE_ROWS,
    Recipe,
    finalists,
    history_entry,
    refine_warp,
    try_recipe,
)
from mercer.tabular_models.table import Clock, Table
from mercer.tabular_models.table_model import AUTO_METRICS_OF_PROCESSES, TableModel

# Candidates that are fitted on all rows and averaged; fewer where each costs a factorisation of many rows.
FINALISTS, FINALISTS_OF_MANY_ROWS, MANY_ROWS = 6, 3, 4000
# A candidate with a smaller share of the average is left out of it.
SMALLEST_SHARE = 0.02
# Steps of the metric's recursion on the few rows of the screen.
MOST_STEPS_OF_SCREEN = 2


class GPRegressor(MultiOutputMixin, RegressorMixin, TableModel):
    """Predict with a Gaussian process y ~ N(mean, s (k(x, x') + noise)) whose metric is learned.

    The metric M of the kernel comes from average gradient outer products ("diagonal", "full"; rfm-and-ard, section
    2.3) with length scale, output scale and noise by maximum likelihood under M, or is one length scale a column by
    maximum likelihood ("ard"). What is "auto" is chosen by leave-one-out predictive density in closed form, on all
    rows: no validation set is needed. The best candidates are averaged with the weights under which the rows left
    out are likeliest.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        "gaussian", "laplace", "matern32", "matern52", "product_laplace", "product_matern32", any kernel object, or
        "auto" to choose among these six.
    metric : {"auto", "identity", "diagonal", "full", "ard"}, default="auto"
        How the metric is learned; "auto" tries "full" ("diagonal" for products over columns) and "ard", and the
        identity as the start of both.
    warp : {"auto", "none", "log", "rank"} or sequence of these, default="auto"
        How columns are bent before they are standardised (see `ColumnWarp`): one for all, or one a column. "auto"
        chooses, for each column in the end.
    average : bool, default=True
        Average the best candidates by stacking; False keeps the best alone.
    calibrate : bool, default=True
        Take the output scale under which the rows left out are likeliest, in place of the likelihood's own.
    bandwidth : float, "median", "auto" or None, default="auto"
        "auto" learns the length scale; a number or "median" keeps it; None keeps the kernel's own.
    noise : float or "auto", default="auto"
        The variance of the noise in units of y; needs an `output_scale`. "auto" learns both.
    output_scale : float or "auto", default="auto"
        The variance of the prior.
    noise_floor : float, default=1e-06
        The smallest noise variance relative to the output scale.
    n_iter : int, default=3
        Steps of the metric's recursion; every one is a candidate.
    n_starts : int, default=2
        Starts of the maximum likelihood with a length scale a column.
    standardize : bool, default=True
        Whether to standardise the columns after the warp.
    n_landmarks : int, None or "auto", default="auto"
        None uses every distinct row as a centre: exact, O(n^2) memory and O(n^3) time. A number m uses m landmarks,
        O(n m^2) time. "auto" is None up to 10 000 distinct rows, and 2000 beyond.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        How landmarks are drawn: with equal chances, far from each other, or by ridge leverage scores, in two estimates
        (`mercer.landmarks.choose_landmarks`).
    time_limit : float or None, default=None
        Seconds after which the search for better candidates ends, with a warning. A step that has begun is finished.
    random_state : int, RandomState instance or None, default=None
        Draws rows for the search, further starts, and landmarks.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    device : str, torch.device or None, default=None
        Where the work is done; None is the CPU.

    Attributes
    ----------
    components_ : list of Component
        The processes that are averaged, each with its kernel, warp, centres, coefficients and weight.
    kernel_ : Kernel
        Of the component of largest weight: on the columns that `columns_` warps.
    columns_ : ColumnWarp
    metric_ : Mahalanobis
    ridge_ : float
        The noise variance relative to the output scale.
    noise_ : float or ndarray of shape (c,)
        The noise variance in units of y.
    output_scale_ : float or ndarray of shape (c,)
    log_marginal_likelihood_ : float
        Of the component of largest weight, at its own output scale; of the means of rows that are identical. With
        landmarks, the lower bound on it.
    loo_log_density_ : float
        The mean log density of a row predicted without it (without its copies).
    feature_importances_ : ndarray of shape (d,)
        How much each column counts, summing to 1; averaged over the components.
    directions_ : ndarray of shape (d, d)
        The principal directions of the metric, in rows.
    direction_shares_ : ndarray of shape (d,)
        The share of each in the metric.
    center_ : ndarray of shape (c,)
        The mean of the targets.
    history_ : list of dict
        Every candidate that was tried: kernel, warp, metric, iterate, bandwidth, ridge, score, rows.
    row_index_ : ndarray of shape (m,)
        Rows of the training table that are centres.
    basis_index_ : list of ndarray
        Which of those the centres of each component are.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

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
        metric: str = "auto",
        *,
        warp: Any = "auto",
        average: bool = True,
        calibrate: bool = True,
        bandwidth: Any = "auto",
        noise: Any = "auto",
        output_scale: Any = "auto",
        noise_floor: float = 1e-6,
        n_iter: int = 3,
        n_starts: int = 2,
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
        self.average = average
        self.calibrate = calibrate
        self.bandwidth = bandwidth
        self.noise = noise
        self.output_scale = output_scale
        self.noise_floor = noise_floor
        self.n_iter = n_iter
        self.n_starts = n_starts
        self.standardize = standardize
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.time_limit = time_limit
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    # ---- fit --------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "GPRegressor":
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
        self._clock, self._random = Clock(self.time_limit), check_random_state(self.random_state)
        table = self._table(X, y, sample_weight)
        self._single = y.ndim == 1
        self.history_: list[dict[str, Any]] = []
        chosen = self._search(table)
        self._fit_all_rows(chosen, table)
        self._warn_about_bounds(table.y.square().mean(dim=0).cpu().numpy())
        self._warn_if_cut_short(self._clock)
        del self._clock, self._random, self._begun
        return self

    def _search(self, table: Table) -> list[Candidate]:
        """Return the candidates to be averaged: all recipes on few rows, the best of them on more."""
        self._begun: dict[Any, Candidate] = {}
        todo = self._recipes(table, AUTO_METRICS_OF_PROCESSES)
        if self._is_given():
            return [self._given(recipe, table) for recipe in todo]
        if len(todo) > 1:
            tried = self._try_all(todo, table.sample(SCREEN_ROWS, self._random))
            few_finalists = FINALISTS if len(table) <= MANY_ROWS else FINALISTS_OF_MANY_ROWS
            leaders = finalists(tried, few_finalists)
        else:
            leaders = [Candidate(None, 0.0, {"recipe": recipe}) for recipe in todo]
        rows = table.sample(TUNE_ROWS, self._random)
        tuned: list[Candidate] = []
        for leader in leaders:
            if tuned and self._clock.is_over():
                break
            tuned.append(best(self._try(leader.about["recipe"], rows, leader)))
        tuned.sort(key=lambda candidate: -candidate.score)
        if isinstance(self.warp, str) and self.warp == "auto":
            tuned[0] = self._refine_warp(tuned[0], rows)
        return tuned

    def _try_all(self, todo: list[Recipe], rows: Table) -> list[Candidate]:
        found: list[Candidate] = []
        for recipe in todo:
            found += self._try(recipe, rows, quick=True)
            if self._clock.is_over():
                break
        return found

    def _try(
        self, recipe: Recipe, rows: Table, leader: Candidate | None = None, quick: bool = False
    ) -> list[Candidate]:
        """Return the candidates of a recipe on these rows, begun from the leader on fewer rows if there is one."""
        n_iter, begin = min(self.n_iter, MOST_STEPS_OF_SCREEN) if quick else self.n_iter, None
        if leader is not None and leader.kernel is not None:
            # One more step than fewer rows wanted: more rows may bear it.
            n_iter = min(self.n_iter, leader.about.get("iterate", 0) + 1)
            begin = leader if recipe.metric == "ard" else None
            quick = True
        elif recipe.metric == "ard":
            # The fit under the identity is where both metrics begin: it is done once.
            begin = self._begun.get((type(recipe.kernel), recipe.warp, len(rows)))
        start = None if begin is None else begin.kernel
        fit = self._fit_of(recipe, quick, None if begin is None else math.log(begin.ridge))
        found = try_recipe(
            recipe, rows, fit, n_iter=n_iter, working_memory=self.working_memory, clock=self._clock, start=start
        )
        if recipe.metric != "ard":
            self._begun[(type(recipe.kernel), recipe.warp, len(rows))] = found[0]
        self.history_ += [history_entry(candidate, len(rows)) for candidate in found]
        return found

    def _fit_of(self, recipe: Recipe, quick: bool, log_noise: float | None = None) -> EvidenceFit:
        return EvidenceFit(
            ard=recipe.metric == "ard",
            noise_floor=self.noise_floor,
            n_starts=1 if quick else self.n_starts,
            max_iter=STEPS_SCREEN if quick else STEPS_ARD,
            clock=self._clock,
            random=self._random,
            tune_bandwidth=self.bandwidth == "auto" and bandwidth_is_free(recipe.kernel),
            log_noise=log_noise,
        )

    def _refine_warp(self, leader: Candidate, rows: Table) -> Candidate:
        """Return the leader with a warp a column, tuned again if any was changed."""

        def fixed(kernel: Kernel, table: Table, warp: Any) -> Candidate:
            return scored(kernel, leader.ridge, table, warp)

        refined = refine_warp(leader, rows, WARPS, fixed, self._clock)
        if refined is leader:
            return leader
        recipe: Recipe = refined.about["recipe"]
        fit = self._fit_of(recipe, True, math.log(leader.ridge))
        again = fit(refined.kernel_used(), rows, recipe.warp)
        again.about.update(refined.about)
        self.history_.append(history_entry(again, len(rows)))
        return best([leader, again])

    def _fit_all_rows(self, candidates: list[Candidate], table: Table) -> None:
        """Fit the candidates on all rows, and average them with the weights under which rows left out are likeliest."""
        m, seed = self._number_of_landmarks(table), int(self._random.randint(2**31 - 1))
        fitted: list[Fitted] = []
        for candidate in candidates if self.average else candidates[:1]:
            fitted.append(self._component(candidate, table, m, seed))
            if self._clock.is_over():
                break
        shares = stacking_weights(np.stack([f.log_densities for f in fitted], axis=1), fitted[0].weights)
        kept = [i for i in np.argsort(-shares, kind="stable") if shares[i] >= SMALLEST_SHARE]
        shares = shares / shares[kept].sum()
        components = [fitted[i].component._replace(weight=float(shares[i])) for i in kept]
        self._publish(components, [fitted[i].basis_index for i in kept], table)
        densities = sum(shares[i] * np.exp(fitted[i].log_densities) for i in kept)
        weights = fitted[0].weights
        with np.errstate(divide="ignore"):
            self.loo_log_density_ = float(weights @ np.log(densities) / weights.sum())
        self.log_marginal_likelihood_ = fitted[kept[0]].log_evidence
        self.output_scale_ = self._like_y(components[0].output_scales)
        self.noise_ = self._like_y(components[0].ridge * components[0].output_scales)

    def _component(self, candidate: Candidate, table: Table, n_landmarks: int | None, seed: int) -> Fitted:
        warp = candidate.about["recipe"].warp
        if n_landmarks is None:
            fitted = exact_component(candidate, table, warp, self._given_scales(table))
        else:
            options = (self.landmarks, self.noise_floor, seed, self.working_memory, self._given_scales(table))
            fitted = landmark_component(candidate, table, warp, n_landmarks, *options)
        if not self.calibrate and not self._is_given():
            fitted = fitted._replace(component=fitted.component._replace(output_scales=fitted.evidence_scales))
        return fitted

    # ---- checks -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        self._check_common((*METRICS, "ard"))
        check_number("noise_floor", self.noise_floor, above=0.0, at_most=1.0)
        check_count("n_starts", self.n_starts)
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

    def _is_given(self) -> bool:
        return self.noise != "auto"

    def _given(self, recipe: Recipe, table: Table) -> Candidate:
        """Return the candidate of parameters that are all given: nothing is learned but the coefficients."""
        # Nothing would be learned from the median on: the kernel's own bandwidth is what was given.
        kernel = check_kernel(self.kernel) if self.bandwidth == "auto" and self.kernel != "auto" else recipe.kernel
        kernel = kernel.resolved(table.warped(recipe.warp), self._random)
        return Candidate(kernel, self.noise / self.output_scale, {"recipe": recipe})

    def _given_scales(self, table: Table) -> np.ndarray | None:
        return np.full(table.y.shape[1], float(self.output_scale)) if self._is_given() else None

    def _warn_about_bounds(self, spread: np.ndarray) -> None:
        leader = self.components_[0]
        # Where y is smooth the output scale is far above its variance, and so may be the floor: that is no news.
        without_noise = np.any(leader.ridge * leader.output_scales < 1e-4 * spread) and np.all(spread > 0)
        if not self._is_given() and leader.ridge <= 1.001 * self.noise_floor and without_noise:
            warnings.warn(
                f"the noise is at its floor, noise_floor={self.noise_floor} of the output scale: y looks like a "
                "function of X without noise. If it has noise, look for rows that are copies of others.",
                DataWarning,
                stacklevel=3,
            )

    # ---- use --------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean, and the uncertainty of an observation: noise included.

        Parameters
        ----------
        X : array-like of shape (n, d)
        return_std : bool, default=False
            Return the standard deviation of an observation at each row as well.
        return_cov : bool, default=False
            Return the covariance of observations at the rows as well.

        Returns
        -------
        mean of shape (n,) or (n, c); with it, if asked for, the standard deviation of the same shape, or the covariance
        of shape (n, n) or (n, n, c)
        """
        if return_std and return_cov:
            raise invalid_parameter("return_cov", return_cov, "False if return_std=True")
        X = self._validated(X)
        mean, _ = means_of(self.components_, X, self.working_memory, self.device)
        answer = self._like_y(mean + self.center_)
        if return_std:
            variance = variance_of(self.components_, X, self.working_memory, self.device)
            return answer, self._like_y(np.sqrt(variance))
        return (answer, self._like_y(covariance_of(self.components_, X, self.device))) if return_cov else answer

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw observations at the rows of X from the posterior: from a component, drawn by its weight, each time.

        Parameters
        ----------
        X : array-like of shape (n, d)
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        ndarray of shape (n, n_samples), or (n, c, n_samples)
        """
        X = self._validated(X)
        n_samples = check_count("n_samples", n_samples)
        drawn = draw(self.components_, X, n_samples, check_random_state(random_state), self.device)
        return self.center_[0] + drawn[:, 0] if self._single else self.center_[:, None] + drawn

    def log_density(self, X: Any, y: Any) -> np.ndarray:
        """Return the log density of y at each row under the average of the processes, of shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, c)
            Of several targets the densities are multiplied.
        """
        X = self._validated(X)
        y = np.asarray(y, dtype=np.float64).reshape(len(X), -1) - self.center_
        return log_density_of(self.components_, X, y, self.working_memory, self.device)

    def _like_y(self, values: np.ndarray) -> Any:
        """Return values with the outputs as y had them: without that axis if y had one dimension."""
        if not self._single:
            return values
        return float(values[0]) if values.ndim == 1 else values[..., 0]
