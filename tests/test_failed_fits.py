"""Every public estimator: a fit that fails or is interrupted, wherever it is, leaves the old fit as it was."""

import sys
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from mercer.app.projects import DataClustering, DataEmbedding
from tests.test_estimators import answer
from tests.test_threads_and_state import LISTED, rows

# Where a fit is interrupted, as shares of the calls that it makes.
PLACES = (0.0, 0.3, 0.6, 0.9, 1.0)
# What scikit-learn's callbacks leave on an estimator serves a running fit, not the model.
OF_CALLBACKS = ("_skl_callbacks", "_callback_fit_ctx", "_parent_callback_ctx")


@contextmanager
def counted(stop_at=None):
    """Count the calls of Mercer's functions in this thread; interrupt, as Ctrl-C does, at one of them."""
    made = [0]

    def count(frame, event, _):
        if event == "call" and "/mercer/" in frame.f_code.co_filename:
            made[0] += 1
            if made[0] == stop_at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield made
    finally:
        sys.setprofile(before)


def other_rows():
    """Rows of a fit that is not to leave a trace: of other columns, names and classes."""
    X, y = rows()
    names = [f"column {i}" for i in range(5)]
    return pd.DataFrame(np.hstack([X, X[:, :2] ** 2])[::-1], columns=names), y[::-1] + 7


def state_of(fitted):
    """All that an estimator holds, by name and identity."""
    return {name: id(value) for name, value in vars(fitted).items() if not name.startswith(OF_CALLBACKS)}


LEARNING = ("fit", "partial_fit", "add_classes", "fit_transform", "fit_predict")
METHODS = [
    pytest.param(name, method, marks=[pytest.mark.slow] if method.startswith("fit_") else [])
    for name in LISTED
    for method in LEARNING
    # Batches are for exact optima.
    if hasattr(LISTED[name], method) and (name, method) != ("KernelEmbedding by gradient", "partial_fit")
]
WORKFLOWS = [DataClustering(2, random_state=0), DataEmbedding(2, random_state=0)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "method"), METHODS)
def test_an_interrupted_fit_leaves_the_old_one(name, method):
    X, y = rows()
    fitted = clone(LISTED[name]).fit(X, y)
    if method == "partial_fit":
        other = X[::-1], y
        run = lambda model: model.partial_fit(*other)  # noqa: E731
    elif method == "add_classes":
        other = X[::-1], y + 7
        run = lambda model: model.add_classes(*other)  # noqa: E731
    else:
        # A network of one's own has a width.
        other = other_rows() if "dropout" not in name else (X[::-1], y[::-1])
        run = lambda model: getattr(model, method)(*other)  # noqa: E731
    expected, before = answer(fitted, X), state_of(fitted)
    fresh = clone(LISTED[name]).fit(X, y) if method in ("partial_fit", "add_classes") else clone(LISTED[name])
    with counted() as made:
        run(fresh)
    interrupted = 0
    for place in sorted({1 + int(share * (made[0] - 1)) for share in PLACES}):
        try:
            with counted(place):
                run(fitted)
        except KeyboardInterrupt:
            if method in ("fit_transform", "fit_predict") and state_of(fitted) != before:
                # Interrupted in what comes after the fit: that one is whole.
                np.testing.assert_array_equal(answer(fitted, other[0]), answer(fresh, other[0]))
                fitted.fit(X, y)
                before = state_of(fitted)
            assert state_of(fitted) == before, f"call {place} of {made[0]}"
            np.testing.assert_array_equal(answer(fitted, X), expected)
            interrupted += 1
        else:
            # A call less than the first time; or it was the end of a generator, where Python swallows what is raised.
            fitted = clone(LISTED[name]).fit(X, y)
            expected, before = answer(fitted, X), state_of(fitted)
    assert interrupted >= len(PLACES) // 2


@pytest.mark.parametrize("name", LISTED)
def test_a_fit_on_bad_rows_leaves_the_old_one(name):
    X, y = rows()
    fitted = clone(LISTED[name]).fit(X, y)
    expected, before = answer(fitted, X), state_of(fitted)
    bad, labels = other_rows()
    bad.iloc[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted.fit(bad, labels)
    assert state_of(fitted) == before
    np.testing.assert_array_equal(answer(fitted, X), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: type(workflow).__name__)
def test_an_interrupted_workflow_leaves_the_old_one(workflow):
    X, _ = rows()
    frame, other = pd.DataFrame(X, columns=list("abc")), other_rows()[0]
    fitted = clone(workflow).fit(frame)
    before, interrupted = state_of(fitted), 0
    with counted() as made:
        clone(workflow).fit(other)
    for share in PLACES[:-1]:
        try:
            with counted(1 + int(share * (made[0] - 1))):
                fitted.fit(other)
        except KeyboardInterrupt:
            interrupted += 1
            assert state_of(fitted) == before
        else:  # where Python swallows what is raised
            before = state_of(fitted.fit(frame))
    assert interrupted >= 2


def test_there_is_an_interrupt_at_every_place():
    X, y = rows()
    model = mercer.RFMRegressor("gaussian", "identity", warp="none", random_state=0)
    with counted() as made:
        model.fit(X, y)
    assert made[0] > 100
    for place in (1, made[0] // 2, made[0]):
        with pytest.raises(KeyboardInterrupt), counted(place):
            model.fit(X, y)
