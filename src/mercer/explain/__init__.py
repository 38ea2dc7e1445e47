"""Reasons: how one prediction moves and the training rows that drove it, and what a model's predictions need."""

from mercer.explain.local import Reasons, reasons
from mercer.explain.permutation import PermutationImportances, permutation_importances

__all__ = ["PermutationImportances", "Reasons", "permutation_importances", "reasons"]
