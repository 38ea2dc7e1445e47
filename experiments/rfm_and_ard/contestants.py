"""Ours: the paper's methods as settings of two estimators, chosen by leave-one-out inside or by the paper's 70/30."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, train_test_split

from mercer.metrics import negative_log_likelihood

from .data import Fit, Predict, Prediction

Settings = dict[str, Any]


def settings_of(estimator: str, options: Settings, grid: dict[str, list[Any]] | None = None) -> Settings:
    """Settings of a case, and so part of the key of its results."""
    return {"estimator": estimator, "options": options, "grid": grid or {}}


def paper(estimator: str, kernel: str, metric: str) -> Settings:
    """As the paper has it: one kernel, one kind of metric, inputs standardised and not warped, nothing averaged."""
    options: Settings = {"kernel": kernel, "metric": metric, "warp": "none"}
    if metric in ("full", "diagonal"):
        options["n_iter"] = 5
    if estimator == "GPRegressor":
        options |= {"average": False, "calibrate": False, "criterion": "evidence"}
    return settings_of(estimator, options)


DEFAULTS = {"GPRegressor()": settings_of("GPRegressor", {}), "RFMRegressor()": settings_of("RFMRegressor", {})}
PAPER = {
    "GP-RFM-Laplace": paper("GPRegressor", "laplace", "full"),
    "GP-RFM-diag-Laplace": paper("GPRegressor", "laplace", "diagonal"),
    "GP-ARD-Laplace": paper("GPRegressor", "laplace", "ard"),
    "GP-ARD-RBF": paper("GPRegressor", "gaussian", "ard"),
    "GP-Laplace": paper("GPRegressor", "laplace", "identity"),
    "GP-RBF": paper("GPRegressor", "gaussian", "identity"),
    "RFM": paper("RFMRegressor", "laplace", "full"),
    "RFM-diag": paper("RFMRegressor", "laplace", "diagonal"),
}
# What the paper's protocol has to choose. A GP finds lengths, scale and noise by maximum likelihood, so the number of
# iterates alone is left, and nothing at all without AGOP: there both protocols are one. The paper does not print its
# grid. `n_iter` is the last iterate that may be taken: within it the estimator chooses by leave-one-out still.
# Bandwidths are multiples of the median distance.
ITERATES = {"n_iter": [0, 1, 2, 3, 5]}
RIDGE_GRID = {"n_iter": [0, 1, 2, 5], "bandwidth": [0.5, 2.0, 8.0], "ridge": [1e-3, 1e-2, 1e-1]}
BY_VALIDATION = {
    f"{name} (70/30)": {**PAPER[name], "grid": grid}
    for name, grid in {
        "GP-RFM-Laplace": ITERATES,
        "GP-RFM-diag-Laplace": ITERATES,
        "RFM": RIDGE_GRID,
        "RFM-diag": RIDGE_GRID,
    }.items()
}
OURS: dict[str, Settings] = {**DEFAULTS, **PAPER, **BY_VALIDATION}


def contestant(settings: Settings) -> Fit:
    """Return `fit(X, y, seed)` for the settings of one of ours; the seed is all that defaults are given besides."""
    import mercer

    estimator = getattr(mercer, settings["estimator"])

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
        def make(**chosen: Any) -> Any:
            return estimator(**{**settings["options"], **chosen}, random_state=seed)

        if settings["grid"]:
            grid = ParameterGrid(in_units_of_the_rows(settings["grid"], X.shape[1]))
            model, chosen = fit_by_validation(make, list(grid), X, y, seed)
            note = ", ".join(f"{name} {value:.3g}" for name, value in chosen.items())
        else:
            model = make().fit(X, y)
            note = describe(model)
        return lambda rows: Prediction(*predicted(model, rows), note)

    return fit


def in_units_of_the_rows(grid: dict[str, list[Any]], d: int) -> dict[str, list[Any]]:
    """Bandwidths for multiples of the median distance: it is about √(2d) for standardised rows, and trace(M) = d."""
    return {
        name: [float(np.sqrt(2 * d)) * value for value in values] if name == "bandwidth" else values
        for name, values in grid.items()
    }


def fit_by_validation(
    make: Callable[..., Any], grid: Sequence[Settings], X: np.ndarray, y: np.ndarray, seed: int
) -> tuple[Any, Settings]:
    """The paper's protocol: fit on 70 % of the rows, choose by the NLL of the other 30 %, fit again on all.

    Returns the model and what was chosen of the grid; the first of equals.
    """
    X_fit, X_val, y_fit, y_val = train_test_split(X, y, test_size=0.3, random_state=seed)
    losses = [validation_loss(make(**chosen).fit(X_fit, y_fit), X_val, y_val) for chosen in grid]
    best = grid[int(np.argmin(losses))]
    return make(**best).fit(X, y), best


def validation_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The NLL; without a density that of a Gaussian with the residuals' own variance, which orders as the RMSE does."""
    mean, std = predicted(model, X)
    if std is None:
        std = np.full(len(y), np.sqrt(np.mean((y - mean) ** 2)))
    return negative_log_likelihood(y, mean, std)


def predicted(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Means, and standard deviations of those that have them (GPs here have a likelihood, RFMs have none)."""
    if hasattr(model, "log_marginal_likelihood_"):
        return model.predict(X, return_std=True)
    return model.predict(X), None


def describe(model: Any) -> str:
    """What the estimator chose: kernel and kind of metric of its first machine, and how many are averaged."""
    kind = getattr(model.metric_, "kind", "no one metric")
    return f"{type(model.kernel_).__name__} {kind} ({len(model.machines_)})"
