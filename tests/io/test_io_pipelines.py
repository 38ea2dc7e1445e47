"""Pipelines of scikit-learn with Mercer's estimators are saved and loaded as the estimators are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer.exceptions import ModelFileError
from mercer.io.objects import check_model

MACHINE = mercer.RFMRegressor("gaussian", "identity", warp="none", n_iter=1, random_state=0)


def rows(n=40):
    X = np.random.default_rng(0).normal(size=(n, 4))
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.1 * X[:, 2]


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(StandardScaler(), MACHINE),
        make_pipeline(MinMaxScaler(), PCA(3), MACHINE),
        make_pipeline(mercer.Nystrom(n_landmarks=10, random_state=0), MACHINE),
        Pipeline([("nothing", "passthrough"), ("inner", make_pipeline(StandardScaler(), MACHINE))]),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), mercer.tabular(MACHINE)),
    ],
    ids=str,
)
def test_there_and_back(pipeline, tmp_path):
    X, y = rows()
    pipeline.fit(X, y)
    mercer.save(pipeline, tmp_path / "p.mercer")
    loaded = mercer.load(tmp_path / "p.mercer")
    assert type(loaded) is Pipeline
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


def test_frames_keep_their_names(tmp_path):
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), MACHINE).set_output(transform="pandas").fit(frame, y)
    mercer.save(pipeline, tmp_path / "p.mercer")
    loaded = mercer.load(tmp_path / "p.mercer")
    assert list(loaded[0].transform(frame).columns) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_what_cannot_be_saved_is_named(tmp_path):
    X, y = rows()
    with pytest.raises(TypeError, match=r"steps\.1\.1 is a .*Ridge, which cannot be saved"):
        mercer.save(make_pipeline(StandardScaler(), Ridge()).fit(X, y), tmp_path / "p.mercer")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.set_params(memory="folder"), "memory is 'folder'"),
        (lambda p: setattr(p, "steps", []), "steps"),
        (lambda p: setattr(p, "steps", [("a", 3.0)]), "an estimator"),
        (lambda p: setattr(p, "steps", ["a"]), "a name and an estimator"),
        (lambda p: p.steps.append(("again", p[-1])), "`transform`, as all steps but the last have"),
        (lambda p: p.steps.append(p.steps[-1]), "`transform`, as all steps but the last have"),
        (lambda p: p.steps.insert(0, p.steps[0]), "a name that no other step has"),
        (lambda p: setattr(p[0], "mean_", np.zeros(9)), "mean_"),
        (lambda p: setattr(p[0], "scale_", np.full(4, np.nan)), "scale_"),
        (lambda p: setattr(p[0], "scale_", np.full(4, 1e-320)), "makes finite numbers of finite ones"),
        (lambda p: setattr(p[0], "mean_", np.full(4, 1e308)), "makes finite numbers of finite ones"),
    ],
)
def test_pipelines_that_do_not_fit_together_are_refused(change, message):
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), MACHINE).fit(X, y)
    check_model(pipeline)
    change(pipeline)
    with pytest.raises(ModelFileError, match=message):
        check_model(pipeline)
