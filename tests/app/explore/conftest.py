"""What the tests of the page share."""

import warnings

import pytest
from sklearn.datasets import load_digits

import mercer
from mercer.training import Recipe


@pytest.fixture(scope="session")
def tree():
    """A clustering with a tree, and its rows."""
    X, _ = load_digits(n_class=3, return_X_y=True)
    few = Recipe(n_epochs=2, keep="last")
    options = {"eta": 0.175, "hidden": 8, "start_recipe": few, "recipe": few, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mercer.ManifoldClustering(3, **options).fit(X[:120] / 16.0), X[:120] / 16.0
