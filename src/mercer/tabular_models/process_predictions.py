"""Predictions of fitted Gaussian processes: means, deviations, quantiles, intervals, densities and draws."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state

from mercer.checks import answers_without_nan, check_choice, check_count, check_probability, finite_answers
from mercer.exceptions import invalid_parameter
from mercer.rows import wherever_rows_are
from mercer.tabular_models.cv_plus import FoldScores, cv_plus_interval
from mercer.tabular_models.distribution import Distribution
from mercer.tabular_models.mixture import covariance_of, draw, function_variance, means_of, predictive_of
from mercer.tabular_models.noise_level import NoiseLevel
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import Spread
from mercer.tabular_models.support import support_of
from mercer.tabular_models.table_model import TableModel
from mercer.tabular_models.target_warp import TargetWarp, forward_of, inverse_of, log_slopes_of, moments_of


class ProcessPredictions(TableModel):
    """The predictive distribution of fitted processes, averaged by their shares; `GPRegressor` fits them.

    The processes model warped targets. Quantiles are transformed back directly, moments by quadrature.
    """

    # Attributes that `fit` sets, in addition to those of every model of a table.
    target_warps_: list[TargetWarp]
    spread_: Spread
    noise_levels_: list[NoiseLevel | None]
    seen_variances_: list[np.ndarray]
    fold_models_: list[Any]
    fold_scores_: FoldScores | None
    _single: bool

    @wherever_rows_are
    @finite_answers
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict the mean of new targets and, if requested, their standard deviation or covariance with the noise.

        Parameters
        ----------
        X : array-like of shape (n, d)
        return_std : bool, default=False
            Whether to return also the standard deviation of a new target at each row.
        return_cov : bool, default=False
            Whether to return also the covariance of new targets at the rows. At most one of the two can be requested.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, c)
        std : ndarray of shape (n,) or (n, c)
            Only if `return_std` is True.
        cov : ndarray of shape (n, n) or (n, n, c)
            Only if `return_cov` is True.
        """
        if return_std and return_cov:
            raise invalid_parameter("return_cov", return_cov, "False if return_std=True")
        X = self._validated(X)
        is_plain = all(warp.name == "none" for warp in self.target_warps_)
        if is_plain and not return_std:
            mean, _ = means_of(self.machines_, X, self.working_memory, self.device)
            mean += self._offset(X)
        else:
            mean, std = moments_of(self._predictive(X), self.target_warps_)
        answer = self._like_y(mean)
        if return_std:
            return answer, self._like_y(std)
        if not return_cov:
            return answer
        covariance = covariance_of(self.machines_, X, self._factors(X), self.device)
        if not is_plain:
            # The correlations are those of the warped targets, the standard deviations those of the targets themselves.
            own = std / np.sqrt(np.einsum("iic->ic", covariance))
            covariance *= own[:, None] * own[None, :]
        return answer, self._like_y(covariance)

    @finite_answers
    def latent_std(self, X: Any) -> np.ndarray:
        """Return the standard deviation of the function, without the noise.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, c)
        """
        return self._like_y(self._function_deviations(self._validated(X)))

    def _function_deviations(self, X: np.ndarray) -> np.ndarray:
        """Return the standard deviation of the function at validated rows, of shape (n, c)."""
        raw = predictive_of(self.machines_, X, self.working_memory, self.device)
        factors = self._distribution.factors(raw, X, self.working_memory)
        function = raw._replace(deviations=factors * np.sqrt(function_variance(self.machines_, raw.deviations)))
        function = function._replace(means=function.means + self._offset(X))
        return moments_of(function, self.target_warps_)[1]

    @finite_answers
    def latent_cov(self, X: Any) -> np.ndarray:
        """Return the covariance of the function between the rows of X, without the noise.

        Its diagonal is the square of `latent_std`. If a target is warped, the correlations are those of the warped
        target.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, n) or (n, n, c)
        """
        X = self._validated(X)
        covariance = covariance_of(self.machines_, X, self._factors(X), self.device, of_function=True)
        variances = np.maximum(np.einsum("iic->ic", covariance), np.finfo(np.float64).tiny)
        scale = self._function_deviations(X) / np.sqrt(variances)
        return self._like_y(covariance * scale[:, None] * scale[None, :])

    @answers_without_nan
    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """Return quantiles of a new target at each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        q : float or sequence of float
            The probability of a smaller target, between 0 and 1.

        Returns
        -------
        ndarray of shape (n,) or (n, c)
            If q is a sequence, there is one more axis at the end, for the elements of q.
        """
        X = self._validated(X)
        predictive = self._predictive(X)
        if np.ndim(q) == 0:
            return self._like_y(inverse_of(self.target_warps_, predictive.quantiles(check_probability("q", q))))
        found = [predictive.quantiles(check_probability("q", each)) for each in q]
        return np.stack([self._like_y(inverse_of(self.target_warps_, each)) for each in found], axis=-1)

    @answers_without_nan
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "model") -> np.ndarray:
        """Return the central interval that contains a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
        coverage : float, default=0.9
            The probability.
        method : {"model", "cv+"}, default="model"
            "model" uses quantiles of the predictive distribution. "cv+" uses the errors of rows under models that were
            fitted without their folds, and needs a fit with `interval_folds`. If rows are exchangeable, these intervals
            contain a new target with probability at least 1 - 2 (1 - coverage), up to a term of the order of
            sqrt(2 / n), for any distribution. In practice the probability is `coverage` or somewhat more.

        Returns
        -------
        ndarray of shape (n, 2) or (n, c, 2)
            The lower and the upper end.
        """
        outside = 1.0 - check_probability("coverage", coverage)
        if check_choice("method", method, ("model", "cv+")) == "cv+":
            return self._cv_plus_interval(self._validated(X), coverage)
        return self.predict_quantiles(X, (0.5 * outside, 1.0 - 0.5 * outside))

    def _cv_plus_interval(self, X: np.ndarray, coverage: float) -> np.ndarray:
        if self.fold_scores_ is None:
            raise invalid_parameter("method", "cv+", "'model' unless the model was fitted with interval_folds=K")
        predicted = [model.predict(X, return_std=True) for model in self.fold_models_]
        means, deviations = (
            np.stack([part.reshape(len(X), -1) for part in parts]) for parts in zip(*predicted, strict=True)
        )
        found = cv_plus_interval(means, deviations, self.fold_scores_, coverage, self.working_memory)
        return found[:, 0] if self._single else found

    @finite_answers
    def support(self, X: Any) -> np.ndarray:
        """Return how well the training rows support the prediction of each row; near 0 it is an extrapolation.

        The support is the share of left-out training rows at which the variance of the function is at least as large. A
        row from the same distribution as the training rows has a support below u with probability about u, so a value
        below .01 is a reason to check the row. Columns that do not affect the prediction do not affect the support.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            Values between 0 and 1.
        """
        X = self._validated(X)
        variances = [machine.unit_variance(X, self.working_memory, self.device) for machine in self.machines_]
        return support_of(variances, self.seen_variances_, np.array([machine.share for machine in self.machines_]))

    @property
    def _distribution(self) -> Distribution:
        """The correction of the predictive distribution."""
        return Distribution(self.spread_, self.noise_levels_)

    def _predictive(self, X: np.ndarray) -> Predictive:
        """Return the distribution of new warped targets at validated rows."""
        raw = predictive_of(self.machines_, X, self.working_memory, self.device)
        corrected = self._distribution.corrected(raw, X, self.working_memory)
        return corrected._replace(means=corrected.means + self._offset(X))

    def _factors(self, X: np.ndarray) -> np.ndarray:
        """Return the factors that correct the deviations of each machine, of shape (k, n, c)."""
        raw = predictive_of(self.machines_, X, self.working_memory, self.device)
        return self._distribution.factors(raw, X, self.working_memory)

    @finite_answers
    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw new targets at the rows of X from the posterior; each draw is from a machine that is drawn by its share.

        Parameters
        ----------
        X : array-like of shape (n, d)
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Determines the draws.

        Returns
        -------
        ndarray of shape (n, n_samples), or (n, c, n_samples)
        """
        X = self._validated(X)
        n_samples = check_count("n_samples", n_samples)
        random = check_random_state(random_state)
        drawn = draw(self.machines_, X, n_samples, random, self._factors(X), self.spread_.tails, self.device)
        drawn = inverse_of(self.target_warps_, self._offset(X)[:, :, None] + drawn)
        return drawn[:, 0] if self._single else drawn

    @answers_without_nan
    def log_density(self, X: Any, y: Any) -> np.ndarray:
        """Return the log density of y at each row under the average of the processes, of shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, c)
            The targets. If there are several, their joint density is returned.
        """
        X = self._validated(X)
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        wanted = (len(X),) if self._single else (len(X), len(self.center_))
        if y.shape not in (wanted, (*wanted, 1)[:2]):
            raise ValueError(f"y has shape {y.shape}: it must have a target for each row of X, {wanted}.")
        y = y.reshape(len(X), -1)
        bent, slopes = forward_of(self.target_warps_, y), log_slopes_of(self.target_warps_, y).sum(axis=1)
        possible = np.isfinite(bent).all(axis=1)
        densities = self._predictive(X).joint_log_densities(np.where(possible[:, None], bent, 0.0))
        return np.where(possible, densities + np.where(possible, slopes, 0.0), -np.inf)

    def _like_y(self, values: np.ndarray) -> Any:
        """Return values without the last axis, that of the targets, if y had one dimension."""
        if not self._single:
            return values
        return float(values[0]) if values.ndim == 1 else values[..., 0]
