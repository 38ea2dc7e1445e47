"""The peers as their own documentation uses them, each a function `fit(X, y, seed)` that returns `predict(X)`.

All run on one thread, so that fit times can be compared: `runs.py` limits the thread pools of NumPy and PyTorch, and
CatBoost and LightGBM, which have their own pools, get a parameter. The libraries are imported inside the functions, so
that the experiment can be loaded without them.
"""

import importlib
import warnings
from importlib import metadata
from typing import Any

import numpy as np

from .data import Fit, Predict, Prediction, standardized


def gpytorch_steps(n: int) -> int:
    """Return the number of steps of Adam; GPyTorch's tutorial takes 50, which is not enough here.

    The RMSE of yacht is .60 after 50 steps, .34 after 100 and .30 after 200. The loss of concrete, with 927 rows, is
    within .003 of the final one after 100 steps. With 3000 rows a step takes 6 s.
    """
    return 200 if n <= 1000 else 100


def fit_xrfm(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit xRFM with the defaults of its README: standardized columns, and a fifth of the rows to choose the iterate."""
    import torch
    from sklearn.model_selection import train_test_split
    from xrfm import xRFM

    X, X_val, y, y_val = train_test_split(X.astype(np.float32), y.astype(np.float32), test_size=0.2, random_state=seed)
    model = xRFM(device=torch.device("cpu"), tuning_metric="mse", random_state=seed, verbose=False)
    model.fit(X, y, X_val, y_val)
    return lambda rows: Prediction(np.asarray(model.predict(rows.astype(np.float32)), dtype=float).ravel())


def fit_catboost(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit CatBoost with its defaults: a thousand trees for the squared error."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False).fit(X, y)
    return lambda rows: Prediction(model.predict(rows))


def fit_catboost_uncertainty(X: Any, y: np.ndarray, seed: int, cat_features: list[str] | None = None) -> Predict:
    """Fit CatBoost's densities as documented: Gaussian loss, posterior sampling, ten virtual ensembles.

    The variance is the sum of both uncertainties. If `cat_features` is given, rows are data frames. Without posterior
    sampling, which is off by default, the NLL is higher: on energy 14.1 instead of 9.7 (3 splits).
    """
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        cat_features=cat_features,
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ).fit(X, y)

    def predict(rows: Any) -> Prediction:
        mean, knowledge, data = model.virtual_ensembles_predict(
            rows, prediction_type="TotalUncertainty", virtual_ensembles_count=10, thread_count=1
        ).T
        return Prediction(mean, np.sqrt(knowledge + data))

    return predict


# The search for CatBoost: the number of settings, which are the same for all sets and splits, and of trees.
TUNED_SETTINGS, TUNED_TREES = 20, 300


def tuned_settings() -> list[dict[str, float]]:
    """Return the settings that are tried: learning rate, depth and penalty of the leaves, from their usual ranges."""
    random = np.random.default_rng(0)
    return [
        {
            "learning_rate": float(10 ** random.uniform(-2, -0.5)),
            "depth": int(random.integers(3, 9)),
            "l2_leaf_reg": float(10 ** random.uniform(-0.5, 1.5)),
        }
        for _ in range(TUNED_SETTINGS)
    ]


def fit_catboost_tuned(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Choose among twenty settings by the paper's protocol: the error on 30 % of the rows, then a fit on all."""
    from catboost import CatBoostRegressor
    from sklearn.model_selection import train_test_split

    def fit(settings: dict[str, float], X: np.ndarray, y: np.ndarray) -> Any:
        model = CatBoostRegressor(
            iterations=TUNED_TREES,
            random_seed=seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
            **settings,
        )
        return model.fit(X, y)

    X_fit, X_out, y_fit, y_out = train_test_split(X, y, test_size=0.3, random_state=seed)
    errors = [np.mean((fit(s, X_fit, y_fit).predict(X_out) - y_out) ** 2) for s in tuned_settings()]
    best = tuned_settings()[int(np.argmin(errors))]
    model = fit(best, X, y)
    note = ", ".join(f"{name} {value:.3g}" for name, value in best.items())
    return lambda rows: Prediction(model.predict(rows), note=note)


def fit_ngboost(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit NGBoost with its defaults: 500 stages and a Gaussian for each row."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(X, y)

    def predict(rows: np.ndarray) -> Prediction:
        density = model.pred_dist(rows)
        return Prediction(density.loc, density.scale)

    return predict


def fit_lightgbm(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit LightGBM with its defaults: 100 trees."""
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(random_state=seed, n_jobs=1, verbose=-1).fit(X, y)
    return lambda rows: Prediction(np.asarray(model.predict(rows)))


def fit_sklearn_gpr(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit a Gaussian kernel with one length for each column, scale and noise by maximum likelihood from one start."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=0, random_state=seed)
    with warnings.catch_warnings():
        # The lengths of useless columns reach their bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return lambda rows: Prediction(*model.predict(rows, return_std=True))


def fit_gpytorch(X: np.ndarray, y: np.ndarray, seed: int) -> Predict:
    """Fit the exact GP of GPyTorch's regression tutorial by Adam at rate 0.1, with one length for each column.

    It uses float64 and Cholesky factors. Above 800 rows GPyTorch's default is conjugate gradients with random probes;
    Cholesky factors are exact, which is in its favor.
    """
    import gpytorch
    import torch

    class ExactGP(gpytorch.models.ExactGP):
        def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: gpytorch.likelihoods.Likelihood) -> None:
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    rows, targets = torch.as_tensor(X), torch.as_tensor(y)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = ExactGP(rows, targets, likelihood).double()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with gpytorch.settings.max_cholesky_size(len(X) + 1):
        for _ in range(gpytorch_steps(len(X))):
            optimizer.zero_grad()
            (-loss(model(rows), targets)).backward()
            optimizer.step()
    model.eval()
    likelihood.eval()

    def predict(X_test: np.ndarray) -> Prediction:
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(len(X) + len(X_test) + 1):
            density = likelihood(model(torch.as_tensor(X_test)))
            return Prediction(density.mean.numpy(), density.variance.sqrt().numpy())

    return predict


# For each name: the library and the function that fits; the fast ones come first.
PEERS: dict[str, tuple[str, Fit]] = {
    "xRFM": ("xrfm", standardized(fit_xrfm)),
    "LightGBM": ("lightgbm", fit_lightgbm),
    "CatBoost": ("catboost", fit_catboost),
    "CatBoost (uncertainty)": ("catboost", fit_catboost_uncertainty),
    "NGBoost": ("ngboost", fit_ngboost),
    "GPyTorch": ("gpytorch", standardized(fit_gpytorch)),
    "scikit-learn GPR": ("sklearn", standardized(fit_sklearn_gpr)),
}


MORE_PEERS: dict[str, tuple[str, Fit]] = {
    "CatBoost (tuned)": ("catboost", fit_catboost_tuned),
}
BOOSTING = ("xRFM", "LightGBM", "CatBoost", "CatBoost (uncertainty)", "NGBoost")


def peer(name: str) -> tuple[Fit, str]:
    """Return a peer and the version of its library, which is imported here so that the import is not timed."""
    library, fit = {**PEERS, **MORE_PEERS}[name]
    importlib.import_module(library)
    return fit, f"{library} {metadata.version('scikit-learn' if library == 'sklearn' else library)}"
