"""Training of torch modules with gradients, by a loop that can be killed at any moment and continued later."""

from mercer.training.checkpoint import data_digest
from mercer.training.lars import LARS
from mercer.training.loop import Training, train
from mercer.training.optimizers import OPTIMIZERS, make_optimizer
from mercer.training.progress import fit_progress
from mercer.training.recipe import Recipe, check_recipe
from mercer.training.settings import settings_of
from mercer.training.values import SGD, Adam, Cosine

__all__ = [
    "LARS",
    "OPTIMIZERS",
    "SGD",
    "Adam",
    "Cosine",
    "Recipe",
    "Training",
    "check_recipe",
    "data_digest",
    "fit_progress",
    "make_optimizer",
    "settings_of",
    "train",
]
