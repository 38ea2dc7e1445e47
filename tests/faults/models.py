"""A small fitted model of every class that is saved, and all that can be asked of it."""

import functools
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler

import mercer
from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.embedding import Steps
from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.training import Recipe
from tests.faults.more_models import MORE_MAKERS, MORE_ROWS

N = 30
_random = np.random.RandomState(0)
X = _random.randn(N, 3)
Y = X[:, 0] + 0.1 * _random.randn(N)
CLASSES = np.array(["a", "b", "c"])[(Y > 0).astype(int) + (Y > 1)]
PAIR = Y > 0
FRAME = pd.DataFrame(
    {
        "n": np.where(np.arange(N) % 7, X[:, 0], np.nan),
        "c": CLASSES,
        "d": pd.date_range("2020-01-01", periods=N).astype(str),
        "l": [f"level {i % 12}" for i in range(N)],
        "t": [f"word{i} some text {i % 7} and more {i * 37 % 101}" for i in range(N)],
    }
)
TABLE = FRAME.assign(y=Y)
IMAGES = _random.rand(N, 4, 4)
ONE = {"kernel": "laplace", "metric": "full", "warp": "none", "n_iter": 1, "random_state": 0}
FEW = Recipe(n_epochs=2, keep="last")


MAKERS = {
    "kernel": lambda: Gaussian(2.0, metric=[1.0, 2.0, 3.0]) + 2.0 * Polynomial(2) * Linear(),
    "ColumnWarp": lambda: mercer.ColumnWarp(["log", "rank", "none"]).fit(X),
    "GPRegressor": lambda: mercer.GPRegressor(**ONE, interval_folds=2, target_warp="yeo-johnson").fit(X, Y),
    "GPRegressor-two": lambda: mercer.GPRegressor(**ONE, n_landmarks=8).fit(X, np.stack([Y, -Y], axis=1)),
    "GPClassifier": lambda: mercer.GPClassifier(**ONE).fit(X, CLASSES),
    "RFMRegressor": lambda: mercer.RFMRegressor(**{**ONE, "warp": "rank"}, n_landmarks=8).fit(X, Y),
    "RFMRegressor-averaged": lambda: mercer.RFMRegressor(random_state=0, n_iter=1).fit(X, Y),
    "RFMClassifier": lambda: mercer.RFMClassifier(**ONE).fit(X, PAIR),
    "KernelDiscriminant": lambda: mercer.KernelDiscriminant(random_state=0).fit(X, CLASSES),
    "KernelDiscriminant-given": lambda: mercer.KernelDiscriminant("precomputed").fit(Gaussian(1.0)(X), CLASSES),
    "KernelEmbedding": lambda: mercer.KernelEmbedding(n_components=3, random_state=0).fit(X),
    "KernelEmbedding-trained": lambda: mercer.KernelEmbedding(
        n_components=3, loss="vicreg", solver=Steps(2), n_landmarks=10, random_state=0
    ).fit(X),
    "KernelEmbedding-decoded": lambda: mercer.KernelEmbedding(
        n_components=2, loss="kernel_autoencoder", n_landmarks=10, random_state=0
    ).fit(X),
    "KernelEmbedding-batches": lambda: mercer.KernelEmbedding(
        n_components=2, n_landmarks=10, random_state=0
    ).partial_fit(X),
    "KernelEmbedding-images": lambda: mercer.KernelEmbedding(n_components=2, random_state=0).fit(IMAGES),
    "MCR2": lambda: mercer.MCR2(hidden=6, recipe=FEW, random_state=0).fit(X, CLASSES),
    "MCR2-mlp": lambda: mercer.MCR2(hidden=6, backbone="mlp", recipe=FEW, random_state=0).fit(X[:, :1], CLASSES),
    "ManifoldClustering": lambda: mercer.ManifoldClustering(
        2, eta=0.175, hidden=6, n_components=4, start_recipe=FEW, recipe=FEW, random_state=0
    ).fit(X),
    "NMCE": lambda: mercer.NMCE(
        2, hidden=6, n_components=4, n_init=2, start_recipe=FEW, recipe=FEW, random_state=0
    ).fit(X),
    "Nystrom": lambda: mercer.Nystrom(Laplace(1.0), n_landmarks=8, random_state=np.random.RandomState(1)).fit(X),
    "Nystrom-given": lambda: mercer.Nystrom("precomputed", n_landmarks=8, random_state=0).fit(Gaussian(1.0)(X)),
    "SubspaceClustering": lambda: mercer.SubspaceClustering(2, n_iter=1, random_state=0).fit(X),
    "SubspaceClustering-sparse": lambda: mercer.SubspaceClustering(
        2, n_iter=0, self_expression="elastic_net", n_landmarks=12, random_state=0
    ).fit(X),
    "TableEncoder": lambda: mercer.TableEncoder(n_components=3, cardinality_threshold=8).fit(FRAME, Y),
    "TabularModel": lambda: mercer.tabular(mercer.KernelDiscriminant(random_state=0)).fit(FRAME[["n", "c"]], CLASSES),
    "TablePrediction": lambda: TablePrediction("rfm", time_limit=0.5, random_state=0).fit(TABLE[["n", "c", "y"]], "y"),
    "TablePrediction-classes": lambda: TablePrediction("discriminant", random_state=0).fit(TABLE[["n", "d", "c"]], "c"),
    "TablePrediction-all": lambda: TablePrediction(
        "rfm", repeats=2, learning_curve=True, split="group:l", time_limit=3.0, random_state=0
    ).fit(TABLE[["n", "c", "l", "y"]], "y"),
    "Pipeline-table": lambda: make_pipeline(
        make_pipeline("passthrough", MinMaxScaler()), mercer.tabular(mercer.KernelDiscriminant(random_state=0))
    ).fit(X, CLASSES),
    "DataEmbedding": lambda: DataEmbedding(2, random_state=0).fit(FRAME[["n", "c"]]),
    "DataClustering": lambda: DataClustering(2, random_state=0).fit(FRAME[["n", "c"]]),
    **MORE_MAKERS,
}
# What each is asked about: two rows like those of the fit.
GIVEN = Gaussian(1.0)(X[:2], X)
ROWS = {
    "KernelDiscriminant-given": GIVEN,
    "Nystrom-given": GIVEN,
    "KernelEmbedding-images": IMAGES[:2],
    "MCR2-mlp": X[:2, :1],
    "TableEncoder": FRAME[:2],
    "TabularModel": FRAME[["n", "c"]][:2],
    "TablePrediction": FRAME[["n", "c"]][:2],
    "TablePrediction-all": FRAME[["n", "c", "l"]][:2],
    "TablePrediction-classes": FRAME[["n", "d"]][:2],
    "DataEmbedding": FRAME[["n", "c"]][:2],
    "DataClustering": FRAME[["n", "c"]][:2],
    **MORE_ROWS,
}


@functools.cache
def saved(name):
    """Return the bytes of the file of a model, fitted once."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.mercer"
        mercer.save(MAKERS[name](), path)
        return path.read_bytes()


# Of answers in which an infinite number says something: a probability of 0, an interval without an end.
MAY_BE_INFINITE = ("predict_interval", "predict_log_proba", "decision_function", "log_density", "predict_quantiles")
METHODS = {
    "predict": {},
    "predict_proba": {},
    "predict_log_proba": {},
    "decision_function": {},
    "transform": {},
    "get_feature_names_out": None,
    "predict_interval": {},
    "predict_quantiles": {"q": 0.3},
    "latent_std": {},
    "support": {},
    "sample_y": {},
    "gradients": {},
    "contributions": {},
    "influence": {},
    "membership": {},
    "slopes": {},
    "predict_frame": {},
    "describe": None,
    "matrix": {},
    "diagonal": {},
}


def answers(model, rows):
    """Yield the name and the answer of every method that a model has, with how to call it."""
    yield "repr", lambda: repr(model)
    yield "params", lambda: model.get_params()
    for name, options in METHODS.items():
        if isinstance(model, Pipeline) and name == "get_feature_names_out":
            continue  # there only where all steps transform, which scikit-learn says in an error of its own
        try:
            method = getattr(model, name)
        except AttributeError:
            continue
        if name == "get_feature_names_out" and isinstance(model, Pipeline) and not hasattr(model[-1], name):
            continue  # a pipeline has the method whatever its last step is
        yield name, (lambda method=method: method()) if options is None else functools.partial(method, rows, **options)
    if hasattr(model, "log_density"):
        y = Y[:2] if getattr(model, "_single", True) is True else np.stack([Y[:2], -Y[:2]], axis=1)
        yield "log_density", lambda: model.log_density(rows, y)
    if hasattr(model, "fold_models_") and model.fold_models_:
        yield "predict_interval", lambda: model.predict_interval(rows, method="cv+")


def is_right(name, answer):
    """Whether an answer has no NaN, and no infinite number where it should not."""
    for part in answer if isinstance(answer, tuple) else [answer]:
        values = part.select_dtypes("number").to_numpy(float) if isinstance(part, pd.DataFrame) else part
        if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
            continue
        if np.isnan(values).any() or (name not in MAY_BE_INFINITE and np.isinf(values).any()):
            return False
    return True


def report_of(model, rows, folder):
    """Write the report of a workflow."""
    from mercer.app.report import write_report

    buffer = io.StringIO()
    write_report(model, rows, folder / "page.html", data_name="data", random_state=0)
    return buffer
