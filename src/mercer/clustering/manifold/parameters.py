"""Checks of the parameters of manifold clusterings, and the values of those that are left to "auto" or None."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.checks import check_choice, check_count, check_flag, check_number
from mercer.clustering.distinct_rows import check_n_clusters
from mercer.clustering.manifold.choice import CLUSTERINGS
from mercer.clustering.manifold.memberships import AFFINITIES
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.projections import PROJECTIONS
from mercer.clustering.manifold.training import MIN_BATCH
from mercer.exceptions import invalid_parameter
from mercer.losses.mlc import REGULARIZERS
from mercer.networks.backbones import weights_of
from mercer.training import Recipe, check_recipe, data_digest, settings_of
from mercer.views.sources import ViewSource, given_arrays

RESULTS = ("auto", "start", "final")
# The number of steps of the default recipes, for any number of rows.
START_STEPS, STEPS = 600, 75
# The first stage ends when its loss has not fallen by more than this share of λ for this many steps.
IDLE_STEPS, GAIN = 50, 1e-4
START = Recipe(n_epochs=1, batch_size=512, optimizer="adam", learning_rate=3e-3, weight_decay=1e-4)
SECOND = Recipe(n_epochs=1, batch_size=512, optimizer="sgd", learning_rate=1e-2, momentum=0.9, weight_decay=5e-4)
# The parameters on which a stage depends, beside the network, the recipe, the seed and the data. The trainer compares
# these four by itself when it resumes from a checkpoint.
OF_START = (
    "epsilon_start",
    "agreement",
    "augment",
    "n_views",
    "standardize",
    "sample_shape_",
    "backbone",
    "start_recipe",
)
OF_FINAL = (*OF_START, "epsilon", "gamma", "regularizer", "affinity", "projection", "freeze")


def check_shared(model: Any, X: np.ndarray) -> None:
    """Raise if a parameter that all manifold clusterings share is not allowed for the samples X."""
    check_n_clusters(model.n_clusters, X)
    if model.n_components is not None:
        check_count("n_components", model.n_components)
    check_count("hidden", model.hidden)
    check_count("n_views", model.n_views, at_least=2)
    for name in ("epsilon_start", "epsilon"):
        check_number(name, getattr(model, name), above=0.0)
    if model.agreement != "auto":
        check_number("agreement", model.agreement, at_least=0.0)
    check_flag("standardize", model.standardize)
    for name in ("start_recipe", "recipe"):
        check_recipe(name, getattr(model, name))


def check_memberships(model: Any) -> None:
    """Raise if a parameter that only `ManifoldClustering` has is not allowed."""
    if check_count("max_rows", model.max_rows, at_least=2) < model.n_clusters:
        raise invalid_parameter("max_rows", model.max_rows, f"at least n_clusters={model.n_clusters}")
    check_choice("affinity", model.affinity, AFFINITIES)
    check_choice("projection", model.projection, tuple(PROJECTIONS))
    check_choice("regularizer", model.regularizer, REGULARIZERS)
    check_choice("assign_labels", model.assign_labels, tuple(CLUSTERINGS))
    check_choice("result", model.result, RESULTS)
    if model.eta != "auto":
        check_number("eta", model.eta, above=0.0)
    check_number("gamma", model.gamma, at_least=0.0)
    check_flag("freeze", model.freeze)


def agreement_of(model: Any, network: ManifoldNetwork) -> float:
    """Return λ: the given value, or for "auto" the largest possible value of R."""
    if model.agreement != "auto":
        return float(model.agreement)
    return network.n_components * math.log1p(model.epsilon_start**-2)


def start_recipe_of(model: Any, n: int, agreement: float) -> Recipe:
    """Return the recipe of the first stage for n rows and the given λ."""
    if model.start_recipe is not None:
        return model.start_recipe
    recipe = START.lasting(START_STEPS, n, MIN_BATCH)
    patience = START.lasting(IDLE_STEPS, n, MIN_BATCH).n_epochs
    return replace(recipe, patience=patience, tolerance=GAIN * agreement)


def second_recipe_of(model: Any, n: int) -> Recipe:
    """Return the recipe of the second stage for n rows."""
    return SECOND.lasting(STEPS, n, MIN_BATCH) if model.recipe is None else model.recipe


def checkpoint_of(model: Any, stage: str, data: str) -> dict[str, Any]:
    """Return the arguments by which `train` keeps the state of a stage; none without a checkpoint.

    The stage is "start", or a name that begins with "final", such as "final-0.12".
    """
    if model.checkpoint is None:
        return {}
    settings = settings_of(model, OF_START if stage == "start" else OF_FINAL) | {"stage": stage}
    return {"checkpoint": f"{model.checkpoint}.{stage}", "settings": settings, "data": data}


def digest_of(model: Any, X: np.ndarray, source: ViewSource) -> str:
    """Return a digest of the input of a training: rows, given views, and the weights of a user's backbone."""
    return data_digest(X, *given_arrays(source), *weights_of(model.backbone))
