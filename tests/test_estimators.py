"""What holds for every public estimator: scikit-learn's checks, cloning, pickling, searches, names, docstrings."""

import ast
import importlib
import inspect
import pickle
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import NumpyDocString
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import blocks
from mercer.embedding import Exact
from mercer.kernels import Gaussian
from mercer.rows import loop
from mercer.training import Recipe

# Defaults, but for counts of epochs, starts and iterations. Models of tables try eighteen kernels and warps by default,
# which takes minutes over all checks: here they try one; test_gp.py and test_rfm.py have the defaults.
ONE = {"kernel": "laplace", "metric": "full", "warp": "none", "n_iter": 1, "random_state": 0}
# By default manifold clustering trains twice, and finds eight clusters for each of eight memberships three times.
FEW = Recipe(n_epochs=2, keep="last")
SOME = Recipe(n_epochs=20, learning_rate=1e-2)
ESTIMATORS = [
    mercer.ColumnWarp(),
    mercer.GPClassifier(**ONE),
    mercer.GPRegressor(**ONE),
    mercer.KernelDiscriminant(random_state=0),
    mercer.KernelEmbedding(random_state=0),
    mercer.MCR2(hidden=50, recipe=Recipe(n_epochs=30, learning_rate=1e-2), random_state=0),
    mercer.ManifoldClustering(3, eta=0.175, hidden=8, start_recipe=FEW, recipe=FEW, random_state=0),
    mercer.NMCE(3, hidden=20, n_init=1, start_recipe=SOME, recipe=FEW, random_state=0),
    mercer.Nystrom(random_state=0),
    mercer.RFMClassifier(**ONE),
    mercer.RFMRegressor(**ONE),
    mercer.SubspaceClustering(n_iter=1, random_state=0),
    mercer.TableEncoder(),
    mercer.TabularModel(mercer.KernelDiscriminant(random_state=0)),
]
TRANSFORMERS = [estimator for estimator in ESTIMATORS if hasattr(estimator, "transform")]
ON_TABLES = (mercer.TableEncoder, mercer.TabularModel)


def having(parameter, estimators=ESTIMATORS):
    return [estimator for estimator in estimators if parameter in estimator.get_params(deep=False)]


def parametrized(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda estimator: type(estimator).__name__)


by_name = parametrized(ESTIMATORS)
by_transformer = parametrized(TRANSFORMERS)
by_transformer_with_kernel = parametrized(having("kernel", TRANSFORMERS))
by_name_with_blocks = parametrized(having("working_memory"))
# One fit for each parameter takes networks half a minute.
SLOW_OUTCOMES = ("ManifoldClustering", "NMCE")
by_name_quick_or_slow = pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(e, id=type(e).__name__, marks=[pytest.mark.slow] if type(e).__name__ in SLOW_OUTCOMES else [])
        for e in ESTIMATORS
    ],
)


def digits(n=60):
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


def answer(fitted, X):
    """What a fitted estimator says of rows: probabilities, a map or predictions."""
    for method in ("predict_proba", "transform", "predict"):
        if hasattr(fitted, method):
            return getattr(fitted, method)(X)
    raise AssertionError(f"{fitted!r} says nothing.")


def public_objects():
    """Every public class and function of the package, with its qualified name."""
    for module in pkgutil.walk_packages(mercer.__path__, "mercer."):
        if ".cli" in module.name:
            continue
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            defined_here = getattr(value, "__module__", None) == module.name
            if defined_here and (inspect.isclass(value) or inspect.isfunction(value)) and not name.startswith("_"):
                yield f"{module.name}.{name}", value


def test_every_name_is_there_and_no_estimator_is_missing():
    assert set(mercer.__all__) == set(mercer._HOMES)
    public = {name: getattr(mercer, name) for name in mercer.__all__}
    estimators = {name for name, value in public.items() if inspect.isclass(value) and hasattr(value, "fit")}
    assert estimators == {type(estimator).__name__ for estimator in ESTIMATORS}
    defined = {
        name.split(".")[-1]
        for name, value in public_objects()
        if inspect.isclass(value)
        and issubclass(value, BaseEstimator)
        and hasattr(value, "fit")
        # Workflows take data frames and folders, not arrays; tests of their own know them.
        and not value.__module__.startswith("mercer.app.projects")
    }
    assert defined == estimators
    assert set(mercer.__all__) <= set(dir(mercer))
    with pytest.raises(AttributeError, match="no attribute 'Nystroem'; it has .*Nystrom"):
        _ = mercer.Nystroem


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@by_name
def test_clones_and_pickles(estimator):
    X, y = digits()
    fitted = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(answer(again, X), answer(fitted, X))
    assert clone(fitted).get_params().keys() == estimator.get_params().keys()


@by_name
def test_any_layout_of_the_memory_will_do_and_rows_are_not_shared(estimator):
    X, y = digits(40)
    expected = answer(clone(estimator).fit(X, y), X)
    backwards = np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    locked = np.asfortranarray(X)
    locked.flags.writeable = False
    for rows in (backwards, locked):
        found = clone(estimator).fit(rows, y)
        np.testing.assert_allclose(answer(found, rows), expected, atol=1e-6)
    found = clone(estimator).fit(mine := X.copy(), y)
    mine[:] = 0.0  # the caller goes on with an array of theirs
    np.testing.assert_array_equal(answer(found, X), expected)


@by_transformer_with_kernel
def test_grid_search_in_two_processes(estimator):
    X, y = digits(90)
    search = GridSearchCV(
        make_pipeline(clone(estimator).set_params(kernel=Gaussian(1.0)), Ridge()),
        {f"{type(estimator).__name__.lower()}__kernel__bandwidth": [0.5, 2.0]},
        n_jobs=2,
        cv=3,
        error_score="raise",
    )
    search.fit(X, y)
    assert search.best_params_[f"{type(estimator).__name__.lower()}__kernel__bandwidth"] == 2.0


@by_transformer
def test_names_and_pandas_output(estimator):
    X, y = digits()
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    fitted = clone(estimator).set_output(transform="pandas").fit(frame, y)
    out = fitted.transform(frame)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert list(out.columns) == list(fitted.get_feature_names_out())
    if isinstance(estimator, ClassNamePrefixFeaturesOutMixin):
        assert out.columns[0] == f"{type(estimator).__name__.lower()}0"
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame.rename(columns={"pixel 0": "other"}))


# name -> X, what the error says, and the tag of an estimator that takes it
BAD_INPUT = {
    "nan": (np.full((20, 3), np.nan), "NaN", "allow_nan"),
    "infinity": (np.full((20, 3), np.inf), "infinity", None),
    "no rows": (np.zeros((0, 3)), "0 sample", None),
    "no columns": (np.zeros((20, 0)), r"0 feature|at least one", None),
    "one dimension": (np.zeros(20), "Expected 2D array", None),
    "strings": (np.array([["a", "b"], ["c", "d"]]), "could not convert|numeric", "string"),
    "sparse": (sparse.csr_matrix(np.eye(20)), "Sparse data .* shape .20, 20.*TruncatedSVD", "sparse"),
}


@pytest.mark.parametrize(
    ("estimator", "X", "message"),
    [
        pytest.param(estimator, X, message, id=f"{type(estimator).__name__}-{name}")
        for estimator in ESTIMATORS
        for name, (X, message, tag) in BAD_INPUT.items()
        if not (tag and getattr(get_tags(estimator).input_tags, tag))
    ],
)
def test_bad_input_is_named(estimator, X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(estimator).fit(X, np.zeros(X.shape[0]))


@by_transformer
def test_wrong_feature_count_is_named(estimator):
    X, y = digits()
    with pytest.raises(ValueError, match="X has 63 features, but .* is expecting 64 features"):
        clone(estimator).fit(X, y).transform(X[:, :63])


def documented_defaults(value):
    """The defaults that a docstring states, parameter by parameter."""
    for parameter in NumpyDocString(inspect.getdoc(value) or "")["Parameters"]:
        match = re.search(r"default=(.+)$", parameter.type)
        if match:
            for name in parameter.name.split(", "):
                yield name, match.group(1).strip()


DOCUMENTED = {name: value for name, value in public_objects() if any(documented_defaults(value))}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_state_the_defaults_of_the_signature(name):
    parameters = inspect.signature(DOCUMENTED[name]).parameters
    for parameter, stated in documented_defaults(DOCUMENTED[name]):
        assert parameter in parameters, f"{name} documents {parameter!r}, which it does not take."
        default = parameters[parameter].default
        assert ast.literal_eval(stated) == default, f"{name}: {parameter} is {default!r}, not {stated}."


def test_defaults_are_documented_at_all():
    assert "mercer.embedding.nystrom.Nystrom" in DOCUMENTED


@by_name
def test_every_parameter_is_documented(estimator):
    documented = {p.name for p in NumpyDocString(inspect.getdoc(type(estimator)))["Parameters"]}
    assert set(estimator.get_params(deep=False)) == documented


# A value for each parameter under which the fit must come out differently than on the base settings.
class Beside(dict):
    """A value of a parameter that matters beside others, which both fits are given."""


def beside(value, **others):
    return Beside(value=value, others=others)


OF_TABLES = {
    "kernel": "gaussian",
    "metric": "diagonal",
    "warp": "log",
    "bandwidth": 3.0,
    "n_iter": 2,
    "standardize": False,
    "shared_noise": 0.5,
    "n_landmarks": 30,
    "landmarks": "kmeans++",
    "time_limit": beside(1e-9, n_iter=2, iterate="last"),
    "random_state": 7,
}
LANDMARKS = ("n_landmarks", "landmarks")
CHANGES = {
    "ColumnWarp": ({}, {"warp": "log", "standardize": False}),
    "GPRegressor": (
        {"n_landmarks": 20},
        {
            **OF_TABLES,
            "average": beside(False, warp="auto"),
            "calibrate": False,
            "noise": beside(0.1, output_scale=1.0),
            "output_scale": beside(2.0, noise=0.1, n_landmarks=None),
            "noise_floor": 0.9,
            "criterion": "evidence",
            "target_warp": "yeo-johnson",
            "interval_folds": 2,
            "iterate": beside("last", n_iter=6, metric="diagonal", bandwidth=2.0),
        },
    ),
    "RFMClassifier": (
        {"n_landmarks": 20},
        {
            **OF_TABLES,
            "ridge": 5.0,
            "average": beside(False, kernel="auto", metric="diagonal", n_landmarks=None),
            "iterate": beside("last", n_iter=6, metric="diagonal", bandwidth=2.0),
            "class_weight": {0: 5.0},
        },
    ),
    "GPClassifier": (
        {},
        {
            **{name: value for name, value in OF_TABLES.items() if name not in ("shared_noise", *LANDMARKS)},
            "output_scale": 2.0,
            "average": beside(False, kernel="auto", metric="diagonal"),
            "iterate": beside("last", n_iter=6, metric="diagonal", bandwidth=2.0),
            "class_weight": {0: 5.0},
        },
    ),
    "RFMRegressor": (
        {"n_landmarks": 20},
        {
            **OF_TABLES,
            "ridge": 5.0,
            "average": beside(False, kernel="auto", n_landmarks=None),
            "iterate": beside("last", n_iter=6, metric="diagonal", bandwidth=2.0),
        },
    ),
    "KernelDiscriminant": (
        {"n_landmarks": 20, "bandwidth": 2.0},
        {
            "kernel": "polynomial",
            "metric": "diagonal",
            "n_components": 3,
            "ridge": 5.0,
            "regularizer": "identity",
            "center": False,
            "n_landmarks": 30,
            "priors": np.arange(1.0, 11.0),
            "class_weight": {0: 9.0},
            "bandwidth": 0.5,
            "landmarks": "kmeans++",
            "random_state": 7,
        },
    ),
    "KernelEmbedding": (
        {"n_landmarks": 20, "n_components": 4},
        {
            "loss": "simple_contrastive",
            "kernel": "laplace",
            "n_components": 3,
            "n_landmarks": 30,
            "landmarks": "kmeans++",
            "landmark_tuples": "by_view",
            "augment": "swapping",
            "n_views": 3,
            "image_shape": (8, 8),
            "ridge": 1.0,
            "bias": "none",
            "bandwidth": 0.5,
            "solver": Exact("tikhonov"),
            "random_state": 7,
        },
    ),
    "MCR2": (
        {"recipe": Recipe(n_epochs=3, keep="last")},
        {
            "n_components": 3,
            "backbone": "mlp",
            "hidden": 9,
            "epsilon": 1.0,
            "augment": "auto",
            "image_shape": (8, 8),
            "standardize": False,
            "recipe": Recipe(n_epochs=1),
            "random_state": 7,
        },
    ),
    "ManifoldClustering": (
        {"result": "final", "recipe": Recipe(n_epochs=3, keep="last")},
        {
            "n_clusters": 5,
            "n_components": 3,
            "backbone": "mlp",
            "hidden": 9,
            "affinity": "inner",
            "projection": beside("squares", eta=0.5),
            "eta": 0.5,
            "epsilon_start": 1.0,
            "epsilon": 1.0,
            "agreement": 1.0,
            "gamma": 1.0,
            "regularizer": "entropy",
            "augment": "swapping",
            "n_views": 3,
            "image_shape": (8, 8),
            "standardize": False,
            "freeze": beside(False, backbone="mlp"),
            "start_recipe": Recipe(n_epochs=1),
            "recipe": Recipe(n_epochs=1),
            "assign_labels": "spectral",
            "result": "start",
            "max_rows": 50,
            "random_state": 7,
        },
    ),
    "NMCE": (
        {"recipe": Recipe(n_epochs=3, keep="last")},
        {
            "n_clusters": 5,
            "n_components": 3,
            "backbone": "mlp",
            "hidden": 9,
            "epsilon_start": 1.0,
            "epsilon": 1.0,
            "agreement": 1.0,
            "augment": "swapping",
            "n_views": 3,
            "image_shape": (8, 8),
            "standardize": False,
            "freeze": beside(False, backbone="mlp"),
            "n_init": 3,
            "start_recipe": Recipe(n_epochs=1),
            "recipe": Recipe(n_epochs=1),
            "random_state": 7,
        },
    ),
    "Nystrom": (
        {"n_landmarks": 20, "bandwidth": 2.0},
        {
            "kernel": "laplace",
            "n_landmarks": 30,
            "n_components": 3,
            "landmarks": "kmeans++",
            "bandwidth": 0.5,
            "random_state": 7,
        },
    ),
    "SubspaceClustering": (
        {"ridge": 0.01},
        {
            "n_clusters": 5,
            "self_expression": "omp",
            "kernel": "laplace",
            "feature_learning": beside("covariance", iterate="last"),
            "n_iter": beside(3, iterate="last"),
            "iterate": "last",
            "ridge": 0.3,
            "truncate": 3,
            "affinity": "plain",
            "normalize": False,
            "assign_labels": "cluster_qr",
            "max_clusters": beside(3, n_clusters="auto"),
            "energy": 0.5,
            "n_landmarks": 30,
            "random_state": beside(7, n_landmarks=30),
        },
    ),
    "TableEncoder": (
        {},
        {
            "kinds": {"pixel": "category"},
            "cardinality_threshold": 101,
            "n_components": 3,
            "scale": False,
            "target_type": beside("numbers", kinds={"text": "category"}),
        },
    ),
    "TabularModel": (
        {},
        {"estimator": mercer.KernelDiscriminant("matern52"), "encoder": mercer.TableEncoder(scale=False)},
    ),
}
# These change where and how the work is done, not what comes out.
MEANS = {"working_memory", "device", "checkpoint", "n_jobs"}


def outcome(estimator):
    X, y = digits(100)
    if isinstance(estimator, ON_TABLES):  # all kinds of columns, so that each parameter has some to act on
        X = pd.DataFrame({"pixel": 16 * X[:, 20], "brightness": X.sum(axis=1), "text": [str(row[2:6]) for row in X]})
    if "shared_noise" in estimator.get_params():  # some rows come twice, with other targets
        X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[20:40]])
    fitted = estimator.fit(X, y)
    if hasattr(fitted, "sample_y"):
        predicted = np.column_stack(fitted.predict(X, return_std=True))
        return (
            np.column_stack([predicted, fitted.predict_interval(X, method="cv+")]) if fitted.fold_models_ else predicted
        )
    if hasattr(fitted, "modularity_"):
        return np.r_[fitted.modularity_, abs(fitted.coef_).sum(), fitted.dimensions_.sum(), fitted.eigenvalues_]
    if hasattr(fitted, "membership"):
        return np.r_[fitted.transform(X).ravel(), fitted.labels_, getattr(fitted, "eigenvalues_", [])]
    return answer(fitted, X)


@by_name_quick_or_slow
@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
def test_no_parameter_is_dead(estimator):
    base, changes = CHANGES[type(estimator).__name__]
    known = set(estimator.get_params(deep=False))
    assert set(changes) | (MEANS & known) == known
    usual = outcome(clone(estimator).set_params(**base))
    for name, value in changes.items():
        before = usual
        others = {}
        if isinstance(value, Beside):
            value, others = value["value"], value["others"]
            if name not in ("noise", "output_scale"):  # the two are given together, or not at all
                before = outcome(clone(estimator).set_params(**{**base, **others}))
        after = outcome(clone(estimator).set_params(**{**base, **others, name: value}))
        assert after.shape != before.shape or np.abs(after - before).max() > 1e-9, f"{name} changes nothing."
    if "device" in estimator.get_params():
        with pytest.raises(RuntimeError, match="no_such_device"):
            outcome(clone(estimator).set_params(device="no_such_device"))


@by_name_with_blocks
def test_working_memory_sets_the_size_of_the_blocks(estimator, monkeypatch):
    sizes = []
    whole = blocks.rows_per_block

    def spy(*args):
        sizes.append(whole(*args))
        return sizes[-1]

    for module in (blocks, loop):
        monkeypatch.setattr(module, "rows_per_block", spy)
    X, _ = digits(100)
    fitted = clone(estimator).fit(*digits(100)).set_params(working_memory=0.01)
    sizes.clear()
    answer(fitted, X)
    small = sizes[-1]
    answer(fitted.set_params(working_memory=64.0), X)
    assert small < sizes[-1] == 100
