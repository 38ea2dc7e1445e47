"""Our contestants: two estimators with their defaults, and the presets of `mercer.papers` by the paper's protocol."""

from typing import Any

import numpy as np

from mercer import papers

from .data import Fit, Predict, Prediction

Settings = dict[str, Any]


def defaults(estimator: str) -> Settings:
    """Return the settings of an estimator with its defaults; they are part of the key of its results."""
    return {"estimator": estimator, "options": {}, "grid": {}}


def printed(preset: str, **options: Any) -> Settings:
    """Return the settings of a preset of `mercer.papers` with options."""
    return {"preset": preset, "options": options}


DEFAULTS = {"GPRegressor()": defaults("GPRegressor"), "RFMRegressor()": defaults("RFMRegressor")}
PRESETS = {
    "GP-RFM-Laplace": printed("gp_rfm", kind="full"),
    "GP-RFM-diag-Laplace": printed("gp_rfm", kind="diagonal"),
    "GP-ARD-Laplace": printed("gp_ard", kernel="laplace"),
    "GP-ARD-RBF": printed("gp_ard", kernel="gaussian"),
    "GP-Laplace": printed("gp", kernel="laplace"),
    "GP-RBF": printed("gp", kernel="gaussian"),
    "RFM": printed("rfm", kind="full"),
    "RFM-diag": printed("rfm", kind="diagonal"),
}
OURS: dict[str, Settings] = {**DEFAULTS, **PRESETS}


def with_likelihood_of(settings: Settings, rows: int) -> Settings:
    """Return settings with the likelihood optimized on this many rows; those without a likelihood are unchanged."""
    if settings.get("preset", "rfm") == "rfm":
        return settings
    return {**settings, "options": {**settings["options"], "rows": rows}}


def fitted(settings: Settings, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Fit one of our contestants; a preset by the paper's protocol, a grid by 30 % of the rows and a fit on all."""
    if "preset" in settings:
        model = getattr(papers, settings["preset"])(**settings["options"], random_state=seed)
        found = papers.seventy_thirty(model, random_state=seed).fit(X, y)
        return getattr(found, "best_estimator_", found)
    import mercer

    return getattr(mercer, settings["estimator"])(**settings["options"], random_state=seed).fit(X, y)


def contestant(settings: Settings) -> Fit:
    """Return the function `fit(X, y, seed)` for the settings of one of our contestants."""

    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
        model = fitted(settings, X, y, seed)
        weights = importances(model, X.shape[1]) if "preset" in settings else ""
        return lambda rows: Prediction(*predicted(model, rows), describe(model), weights)

    return fit


def predicted(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return means, and standard deviations for GPs, which have a likelihood here; RFMs have none."""
    if hasattr(model, "log_marginal_likelihood_"):
        return model.predict(X, return_std=True)
    return model.predict(X), None


def importances(model: Any, d: int) -> str:
    """Return the diagonal of the metric, divided by its sum, as text; Figure 2 is made from these."""
    diagonal = model.metric_.matrix(d).diagonal()
    return " ".join(f"{weight:.6g}" for weight in diagonal / diagonal.sum())


def describe(model: Any) -> str:
    """Return what was chosen as text: steps and ridge of the recursion, or kernel, kind of metric and machines."""
    learned = getattr(model.metric, "metric", model.metric)
    if hasattr(learned, "n_iter"):
        return f"{learned.n_iter} steps, ridge {learned.ridge:g}"
    kind = getattr(model.metric_, "kind", "no one metric")
    return f"{type(model.kernel_).__name__} {kind} ({len(model.machines_)})"
