"""A warning points at the line of the user's code that called, through however many of our functions and decorators."""

import ast
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch import nn

import mercer
from mercer.exceptions import MercerWarning
from mercer.linalg import cholesky
from mercer.training import Recipe
from tests.examples_of import numbers

X = numbers(30, 2)
LAST = {"kernel": "laplace", "metric": "identity", "warp": "none", "random_state": 0}
SRC = Path(mercer.__file__).parent


def an_encoder():
    return mercer.TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]}))


def a_gp():
    return mercer.GPRegressor(**LAST)


def hurried(model):
    return model(time_limit=1e-6, random_state=0)


class Breaking(nn.Module):
    """Gives NaN after some batches, so that a training ends early."""

    def __init__(self):
        super().__init__()
        self.layer, self.left = nn.Linear(2, 2), 4

    def forward(self, x):
        self.left -= self.training
        return self.layer(x) * (1.0 if self.left > 0 or not self.training else math.nan)


AN_OUTLIER = np.where(np.arange(30) == 3, 1e12, X[:, 0])
CASES = {
    "a target far out": lambda: a_gp().fit(X, AN_OUTLIER),
    "in a pipeline": lambda: make_pipeline(mercer.ColumnWarp(), a_gp()).fit(X, AN_OUTLIER),
    "in a cross-validation": lambda: cross_val_score(hurried(mercer.RFMRegressor), X, X[:, 0], cv=2),
    "a time limit": lambda: hurried(mercer.RFMClassifier).fit(X, X[:, 0] > 0),
    "texts where numbers were": lambda: an_encoder().transform(pd.DataFrame({"a": ["word", "1"], "b": ["x", "y"]})),
    "a column without values": lambda: mercer.TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]})),
    "a training that ends early": lambda: mercer.MCR2(
        hidden=4, backbone=Breaking(), recipe=Recipe(n_epochs=6, batch_size=30), random_state=0
    ).fit(X, X[:, 0] > 0),
    "fewer components": lambda: mercer.Nystrom("linear", n_landmarks=10, n_components=5, random_state=0).fit(X),
    "copies of rows": lambda: mercer.SubspaceClustering(4, n_iter=0, random_state=0).fit(np.repeat(X[:3], 4, axis=0)),
    "a function": lambda: cholesky(torch.ones(2, 2, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_points_at_the_line_of_the_caller(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[name]()
    ours = [warning for warning in caught if issubclass(warning.category, MercerWarning)]
    assert ours
    assert {warning.filename for warning in ours} == {__file__}


def test_no_module_counts_the_calls_between_itself_and_the_user():
    """`mercer.exceptions.warn_user` finds the line; a count is wrong as soon as a decorator comes between."""
    for path in SRC.rglob("*.py"):
        if path.relative_to(SRC).parts[0] != "app" and path.name != "exceptions.py":
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            assert not [call for call in calls if ast.unparse(call.func) == "warnings.warn"], path
