"""Gedon, Abedsoltan, Schön, Belkin: On Feature Learning of Recursive Feature Machines and ARD. As printed."""

from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, ShuffleSplit

from mercer.kernels import check_kernel
from mercer.metrics import negative_log_likelihood
from mercer.tabular_models.gp import GPRegressor
from mercer.tabular_models.learned_on_all_rows import AverageGradients, MaximumLikelihood
from mercer.tabular_models.rfm import RFMRegressor

ITERATIONS = 5
RIDGE = 1e-8
# The grid of the protocol. The paper says that there is one, and not which: this one was written down before any of
# its settings was run on the UCI sets, and was not changed after.
GRID_ITERATIONS, GRID_RIDGES = (1, 3, 5), (1e-8, 1e-2)


def rfm(
    kind: str = "full", *, n_iter: int = ITERATIONS, ridge: float = RIDGE, bandwidth: Any = "median", **changed: Any
) -> RFMRegressor:
    """Return the recursive feature machine of section 2.3: RFM, or RFM-diag with `kind="diagonal"`.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    2.3: k_M(x, z) = exp(-|x - z|_M / l), the Laplace kernel          `kernel="laplace"`, `bandwidth`
    2.3: M(0) = I_d                                                   always
    2.3: alpha = k_M(X, X)^-1 y                                       `AverageGradients(ridge=1e-8)`
    2.3: M = (1/n) sum_i grad f(x_i) grad f(x_i)^T, not scaled        `AverageGradients("full")`, of all rows
    2.3: M restricted to be diagonal, RFM-diag                        `AverageGradients("diagonal")`
    2.3: f_M(x) = k_M(x, X) alpha, after the last step                one machine: `average=False`, `warp="none"`
    ================================================================  ==================================================

    What the paper leaves open, and what is taken: how often M is renewed (5 times); l, the median distance of the rows,
    which stays; columns, and targets for the size of M, are standardized on the training rows. What the paper forces:
    alpha has a ridge of 1e-8 in place of none, since rows that come twice make K singular; ours are collapsed to one
    with the mean of their targets and their count as a weight, which is the same fit. Our default differs by a metric
    of trace d, every step compared with the others, and kernel, warp, bandwidth and ridge by rows left out.

    Parameters
    ----------
    kind : {"full", "diagonal"}, default="full"
    n_iter : int, default=5
    ridge : float, default=1e-08
    bandwidth : float or "median", default="median"
        l.
    **changed
        Parameters of `RFMRegressor`.

    Examples
    --------
    >>> from mercer.papers import rfm
    >>> rfm().metric.n_iter
    5
    """
    metric = AverageGradients(kind, n_iter, ridge)
    printed = {"warp": "none", "average": False, "bandwidth": None, "n_landmarks": None}
    return RFMRegressor(check_kernel("laplace", bandwidth), metric, **{**printed, **changed})


def gp(kernel: str = "laplace", *, rows: int | None = None, **changed: Any) -> GPRegressor:
    """Return the Gaussian process of section 2.2 with one length scale: GP-Laplace, or GP-RBF with "gaussian".

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    2.2: f ~ GP(0, k), k = exp(g): no scale of the output             `MaximumLikelihood`: the prior's variance is y's
    2.2: g = -|x - z| / l, the Laplace kernel                         `kernel="laplace"`
    2.2: g = -|x - z|^2 / (2 l^2), the RBF kernel                     `kernel="gaussian"`
    2.2: sigma and l minimize -log p(y | X, theta)                    `MaximumLikelihood("identity")`, on all rows
    2.2: V[f] = k(x, x) - k^T (K + sigma^2 I)^-1 k                    `latent_std`; `calibrate=False`, `average=False`
    ================================================================  ==================================================

    What the paper leaves open, and what is taken: the optimizer (L-BFGS-B with the gradient in closed form, at most 50
    steps) and its start (the median distance; a noise of a tenth). With m = 0 and k(x, x) = 1, targets must have been
    standardized: columns and targets are, on the training rows. What our estimator adds: copies of a row with one
    target are one measurement of that weight in the likelihood, and a target 20 times as far out as all others is left
    out with a warning. Our default has a scale, four more kernels, warps, and choices by rows left out.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default="laplace"
    rows : int or None, default=None
        As in `MaximumLikelihood`: the likelihood of so many rows. The paper has all.
    **changed
        Parameters of `GPRegressor`.

    Examples
    --------
    >>> from mercer.papers import gp
    >>> gp("gaussian").metric.metric
    'identity'
    """
    return _process(kernel, MaximumLikelihood("identity", rows), changed)


def gp_ard(kernel: str = "laplace", *, rows: int | None = None, **changed: Any) -> GPRegressor:
    """Return the Gaussian process with one length scale for each column: GP-ARD-Laplace, or GP-ARD-RBF with "gaussian".

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    2.2: M^-1 = diag(l_1^2, ..., l_d^2), by maximum likelihood        `MaximumLikelihood("ard")`, on all rows
    2.2: l could be incorporated into M                               it is: the bandwidth is 1
    all else                                                          as in `gp`
    ================================================================  ==================================================

    The paper's RBF with ARD has exp(-|x - z|_M^2) where the one without has a half in it; the lengths take that up.

    Parameters
    ----------
    kernel : {"laplace", "gaussian"}, default="laplace"
    rows : int or None, default=None
        As in `MaximumLikelihood`: the likelihood of so many rows. The paper has all.
    **changed
        Parameters of `GPRegressor`.

    Examples
    --------
    >>> from mercer.papers import gp_ard
    >>> gp_ard().metric.metric
    'ard'
    """
    return _process(kernel, MaximumLikelihood("ard", rows), changed)


def gp_rfm(
    kind: str = "full",
    *,
    n_iter: int = ITERATIONS,
    ridge: float = RIDGE,
    rows: int | None = None,
    **changed: Any,
) -> GPRegressor:
    """Return GP-RFM-Laplace: M by the recursion of `rfm` first, then sigma and l once by maximum likelihood under it.

    ================================================================  ==================================================
    line of the paper                                                 our parameter
    ================================================================  ==================================================
    2.3: first learn M by the recursive AGOP iteration                `MaximumLikelihood(AverageGradients(...))`
    2.3: second learn theta by MLE with fixed M                       the same, in this order and once
    2.3: RFM-diag in the process (section 3.2)                        `kind="diagonal"`
    3: grid by the NLL of 30 % of the rows, then a fit on all         `seventy_thirty(gp_rfm())`
    all else                                                          as in `rfm` and `gp`
    ================================================================  ==================================================

    Parameters
    ----------
    kind : {"full", "diagonal"}, default="full"
    n_iter : int, default=5
    ridge : float, default=1e-08
    rows : int or None, default=None
        As in `gp`.
    **changed
        Parameters of `GPRegressor`.

    Examples
    --------
    >>> from mercer.papers import gp_rfm
    >>> gp_rfm("diagonal").metric.metric.kind
    'diagonal'
    """
    return _process("laplace", MaximumLikelihood(AverageGradients(kind, n_iter, ridge), rows), changed)


def seventy_thirty(model: Any, random_state: Any = None) -> Any:
    """Return a model that chooses by the paper's protocol (section 3), ready to be fitted on the training rows.

    70 % of the rows are fitted with every combination of the grid, the NLL of the other 30 % chooses, and the chosen
    one is fitted on all. A process without a recursion has all of its parameters by maximum likelihood: there is
    nothing to choose, and it comes back as it is. A recursive feature machine has no density; it is chosen by its
    squared error, which orders settings as a Gaussian with the variance of their errors does.

    Parameters
    ----------
    model : RFMRegressor or GPRegressor
        One of `rfm`, `gp`, `gp_ard` and `gp_rfm`.
    random_state : int, RandomState instance or None, default=None
        Draws the rows.

    Returns
    -------
    GridSearchCV over iterations (1, 3, 5) and ridges (1e-8, 1e-2); or the model itself
    """
    candidates = _candidates(model.metric)
    if len(candidates) == 1:
        return model
    rows = ShuffleSplit(1, test_size=0.3, random_state=random_state)
    return GridSearchCV(model, {"metric": candidates}, scoring=_fit_to_left_out_rows, cv=rows)


def _candidates(metric: AverageGradients | MaximumLikelihood) -> list[Any]:
    if isinstance(metric, MaximumLikelihood):
        first = metric.metric
        inner = _candidates(first) if isinstance(first, AverageGradients) else [first]
        return [MaximumLikelihood(each, metric.rows) for each in inner]
    return [
        AverageGradients(metric.kind, n_iter, ridge, metric.bandwidth)
        for n_iter in GRID_ITERATIONS
        for ridge in GRID_RIDGES
    ]


def _fit_to_left_out_rows(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    if isinstance(model, GPRegressor):
        return -negative_log_likelihood(y, *model.predict(X, return_std=True))
    return -float(np.mean((y - model.predict(X)) ** 2))


def _process(kernel: str, metric: MaximumLikelihood, changed: dict[str, Any]) -> GPRegressor:
    """Return what the processes share: no search, no average, no calibration."""
    printed = {"warp": "none", "average": False, "calibrate": False, "bandwidth": None, "n_landmarks": None}
    return GPRegressor(check_kernel(kernel), metric, **{**printed, **changed})
