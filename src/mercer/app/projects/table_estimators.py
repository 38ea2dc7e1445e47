"""Make the estimator for a task, a name and a number of rows, and compare which of several suits a table best."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mercer.app.projects.table_split import split
from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.exceptions import invalid_parameter
from mercer.tabular_models.gp import GPRegressor
from mercer.tabular_models.gp_classifier import GPClassifier
from mercer.tabular_models.rfm import RFMClassifier, RFMRegressor

MODELS = ("auto", "rfm", "gp", "discriminant")
# The estimators for each task. "auto" takes the first for numbers, since it alone predicts how sure it is. For classes
# it compares COMPARED_MODELS, neither of which is better everywhere.
ESTIMATORS: dict[str, dict[str, type]] = {
    "regression": {"gp": GPRegressor, "rfm": RFMRegressor},
    "classification": {"rfm": RFMClassifier, "discriminant": KernelDiscriminant, "gp": GPClassifier},
}
# A Gaussian process of classes takes O(c n^3), and is used only if it is asked for.
COMPARED_MODELS = ("rfm", "discriminant")
# A discriminant of more rows uses landmarks, since its exact eigenproblem takes O(n^3), and 3 GB for 20 000 rows. The
# other estimators choose landmarks by themselves.
MOST_EXACT_ROWS, LANDMARKS = 4000, 2000
# "auto" draws at most this many training rows, and compares models by their scores on this share of them.
COMPARED, MOST_COMPARED_ROWS = 0.25, 5000
# With fewer rows for each class, on average, models are not compared.
FEWEST_ROWS_A_CLASS = 20


def allowed_models(model: str, task: str, options: Mapping[str, Any] | None = None) -> list[str]:
    """Return the models that a name stands for in a task, in the order of preference; raise if there are none.

    "auto" stands for several. It leaves out models that do not have one of the options.
    """
    known = list(ESTIMATORS[task])
    if model != "auto" and model not in known:
        raise invalid_parameter("model", model, ["auto", *known], f"The task is {task}.")
    if model != "auto":
        return [model]
    if task == "regression":
        return known[:1]
    knowing = [name for name in COMPARED_MODELS if set(options or ()) <= set(ESTIMATORS[task][name]().get_params())]
    return knowing or known[:1]


def compare(
    names: list[str],
    losses: Callable[[str, np.ndarray, np.ndarray], float],
    y: np.ndarray,
    random: np.random.RandomState,
) -> dict[str, float]:
    """Return the loss of each model on a part of the rows, after learning from the others; the best model is first.

    Parameters
    ----------
    names : list of str
    losses : callable of (name, rows to learn from, rows to score on)
        Returns the loss of a model, for which lower is better.
    y : ndarray of shape (n,)
        Classes.
    random : RandomState
    """
    if len(names) == 1 or len(y) < FEWEST_ROWS_A_CLASS * len(np.unique(y)):
        return {names[0]: float("nan")}
    some = random.permutation(len(y))[:MOST_COMPARED_ROWS]
    train, test = (some[part] for part in split(y[some], "classification", COMPARED, random))
    found = {name: losses(name, train, test) for name in names}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def make(
    name: str,
    task: str,
    n_rows: int,
    random_state: int,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
) -> Any:
    """Return an unfitted estimator. The user's `options` take precedence over all other parameters."""
    own: dict[str, Any] = {"random_state": random_state}
    if name == "discriminant":
        own |= {"bandwidth": "auto", "n_landmarks": LANDMARKS if n_rows > MOST_EXACT_ROWS else None}
    else:
        own |= {"time_limit": time_limit}
    kind = ESTIMATORS[task][name]
    given = dict(options or {})
    unknown = sorted(set(given) - set(kind().get_params()))
    if unknown:
        raise invalid_parameter("options", unknown[0], f"a parameter of {kind.__name__}")
    return kind(**own | given)
