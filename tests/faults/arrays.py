"""Bad arrays for every estimator and method: python -m tests.faults.arrays --count 2000 [--seed 0] [--extreme]."""

import argparse
import collections
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

import mercer
from mercer.training import Recipe
from tests.faults.models import CLASSES, FEW, ONE, N, X, Y, is_right
from tests.faults.mutations import dice_of
from tests.faults.outcomes import NAMED, Hang, within_seconds

ESTIMATORS = {
    "ColumnWarp": mercer.ColumnWarp("rank"),
    "GPClassifier": mercer.GPClassifier(**ONE),
    "GPRegressor": mercer.GPRegressor(**ONE),
    "KernelDiscriminant": mercer.KernelDiscriminant(random_state=0),
    "KernelEmbedding": mercer.KernelEmbedding(n_components=2, random_state=0),
    "MCR2": mercer.MCR2(hidden=5, recipe=Recipe(n_epochs=1), random_state=0),
    "ManifoldClustering": mercer.ManifoldClustering(
        2, eta=0.175, hidden=5, start_recipe=FEW, recipe=FEW, random_state=0
    ),
    "NMCE": mercer.NMCE(2, hidden=5, n_init=1, start_recipe=FEW, recipe=FEW, random_state=0),
    "Nystrom": mercer.Nystrom(random_state=0),
    "RFMClassifier": mercer.RFMClassifier(**ONE),
    "RFMRegressor": mercer.RFMRegressor(**ONE),
    "SubspaceClustering": mercer.SubspaceClustering(2, n_iter=1, random_state=0),
    "TableEncoder": mercer.TableEncoder(),
    "TabularModel": mercer.TabularModel(mercer.KernelDiscriminant(random_state=0)),
}
OF_CLASSES = ("GPClassifier", "KernelDiscriminant", "MCR2", "RFMClassifier", "TabularModel")
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "predict_interval")
METHODS += (
    "latent_std",
    "support",
    "sample_y",
    "gradients",
    "contributions",
    "influence",
    "membership",
    "slopes",
    "score",
)
METHODS += ("log_density", "add_classes", "fit_transform", "partial_fit", "top_landmarks")
WITH_Y = ("score", "log_density", "add_classes", "fit_transform")

CELLS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-12, 1e12, 1.5]
EXTREME = [1e155, -1e155, 1e300, 1.7e308]
TYPES = [
    np.float64,
    np.float32,
    np.float16,
    np.int8,
    np.int64,
    np.uint8,
    bool,
    object,
    str,
    complex,
    "S3",
    "M8[s]",
    "m8[s]",
]
TYPES += [">f8", np.longdouble]


@st.composite
def bad_rows(draw, extreme=False):
    """Draw what somebody may hand over as X: of odd shape, type, memory, values or kind."""
    kind = draw(st.sampled_from(["cells", "cells", "shape", "type", "memory", "equal", "odd"]))
    rows = X.copy()
    if kind == "cells":
        for _ in range(draw(st.integers(1, 3))):
            place = draw(st.integers(0, N - 1)), draw(st.integers(0, 2))
            rows[place] = draw(st.sampled_from(EXTREME if extreme else CELLS))
        return rows
    if kind == "shape":
        shapes = [(0, 3), (1, 3), (2, 3), (N, 0), (N, 2), (N, 4), (N,), (N, 3, 1), (N, 1, 1, 3), (), (3,), (N, 2, 2)]
        return np.resize(rows, draw(st.sampled_from(shapes)))
    if kind == "type":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dtype = draw(st.sampled_from(TYPES))
            return (rows.astype(np.int64) if str(dtype)[:2] in ("M8", "m8") else rows).astype(dtype)
    if kind == "memory":
        frozen = rows.copy()
        frozen.flags.writeable = False
        odd = [
            np.asfortranarray(rows),
            rows[::-1],
            np.repeat(rows, 2, axis=1)[:, ::2],
            frozen,
            np.ma.array(rows, mask=rows > 1),
        ]
        return draw(st.sampled_from(odd))
    if kind == "equal":
        value = draw(st.sampled_from([0.0, 1.0, -1.0, 1e6, 1e-300]))
        equal = np.full_like(rows, value)
        equal[: draw(st.integers(0, 2))] = rows[0]
        return equal
    frame = pd.DataFrame(rows, columns=list("abc"))
    odd = [None, 3.0, "text", b"bytes", {}, [], [[]], [[1, 2], [3]], rows.tolist(), [None] * N, sparse.csr_array(rows)]
    odd += [
        frame,
        frame.rename(columns={"a": "b"}),
        frame.astype("Float64"),
        frame.assign(a=None),
        frame.assign(a="x"),
        object(),
    ]
    odd += [np.matrix(rows), pd.DataFrame(), frame.iloc[:0], rows > 0, frame["a"], iter(rows), range(N), np.array(None)]
    return draw(st.sampled_from(odd))


@st.composite
def bad_targets(draw, classes, extreme=False):
    """Draw what somebody may hand over as y."""
    y = CLASSES if classes else Y
    odd = [None, y[:-1], y[:0], np.full(N, np.nan), np.zeros(N), np.full(N, None), y[:, None], np.stack([y, y], axis=1)]
    odd += [
        np.where(np.arange(N) == 3, np.nan, Y),
        np.where(np.arange(N) == 3, np.inf, Y),
        Y.astype(complex),
        Y * 1e12,
        Y * 1e-12,
    ]
    odd += [
        list(y),
        pd.Series(y),
        np.array(["a"] * N),
        np.arange(N),
        np.arange(N) % 2 == 0,
        3,
        "text",
        [[1], [2, 3]],
        Y > 0,
    ]
    odd += [
        np.array([*y[:-1], None], dtype=object),
        np.arange("2020-01-01", N, dtype="M8[D]") if False else Y.astype(str),
    ]
    return draw(st.sampled_from(odd + ([Y * 1e155, Y * 1e300] if extreme else [])))


def is_plain(error):
    """Whether an error is one of ours, or one that scikit-learn or we raise on purpose, with words on what is wrong."""
    if isinstance(error, (*NAMED, AttributeError)) and isinstance(error, NAMED):
        return True
    if not isinstance(error, (ValueError, TypeError)) or not str(error):
        return False
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = "/mercer/" in frame.filename or "/sklearn/" in frame.filename
    if "Expected unique column names" in str(error):  # of the library by which scikit-learn reads names
        return True
    converted = "sklearn/utils" in frame.filename or "could not convert" in str(error) or "Complex data" in str(error)
    return converted or (ours and "raise" in (frame.line or ""))


def judged(name, rows, target, method):
    """Return the outcome of a fit on bad rows or targets, or of a method of a good fit on bad rows."""
    estimator = clone(ESTIMATORS[name])
    y = CLASSES if name in OF_CLASSES else Y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with within_seconds():
                if method == "fit":
                    bad_y = target is not None and not isinstance(target, type(NotImplemented))
                    estimator.fit(X if bad_y else rows, target if bad_y else y)
                    answer = getattr(estimator, "predict" if hasattr(estimator, "predict") else "transform")(
                        X if bad_y else rows
                    )
                else:
                    fitted = _fitted(name)
                    if not hasattr(fitted, method):
                        return "none"
                    fitted = _copy(fitted) if method in ("add_classes", "fit_transform", "partial_fit") else fitted
                    options = {"y": y} if method in WITH_Y else {}
                    answer = getattr(fitted, method)(rows, **options)
        except (Exception, Hang) as error:
            if isinstance(error, Exception) and is_plain(error):
                return "refused"
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"bad: {type(error).__name__}: {str(error)[:120]} ({where.filename.split('/')[-1]}:{where.lineno})"
    return "works" if is_right(method, answer) else "bad: NaN or infinite numbers"


_FITTED = {}


def _fitted(name):
    if name not in _FITTED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _FITTED[name] = clone(ESTIMATORS[name]).fit(X, CLASSES if name in OF_CLASSES else Y)
    return _FITTED[name]


def _copy(fitted):
    import copy

    return copy.deepcopy(fitted)


def outcome_of(seed, extreme=False):
    """Return what was tried for a seed, and what came of it."""
    dice = dice_of(seed)
    name = list(ESTIMATORS)[seed % len(ESTIMATORS)]
    draw = _Drawn(dice)
    method = dice.choice(["fit", "fit", *[m for m in METHODS if hasattr(_fitted(name), m)]])
    rows = draw(bad_rows(extreme))
    target = draw(bad_targets(name in OF_CLASSES, extreme)) if method == "fit" and dice.random() < 0.4 else None
    return f"{name}.{method}", judged(name, rows, target, method)


class _Drawn:
    """Draws from a strategy by dice of our own, so that a seed says what was drawn."""

    def __init__(self, dice):
        self.dice = dice

    def __call__(self, strategy):
        from hypothesis import HealthCheck, Phase, given, seed, settings

        found = []

        @settings(
            max_examples=3,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @seed(self.dice.randrange(2**32))
        @given(strategy)
        def collect(value):
            found.append(value)

        collect()
        return found[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--extreme", action="store_true", help="with cells of 1e155 and more")
    options = parser.parse_args()
    found, bad = collections.Counter(), 0
    for seed in range(options.seed, options.seed + options.count):
        what, outcome = outcome_of(seed, options.extreme)
        found[outcome.split(":")[0]] += 1
        if outcome.startswith("bad"):
            bad += 1
            print(f"seed {seed}, {what}: {outcome}", flush=True)
    print(f"{options.count} bad arrays: {dict(found)}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
