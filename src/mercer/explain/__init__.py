"""Explain a model: the rows behind an answer, the columns it depends on, and the concepts in a representation."""

from mercer.explain.concept_files import read_concepts, write_concepts
from mercer.explain.concepts import (
    Concept,
    ConceptProfile,
    concept_influence,
    concept_profile,
    concept_scores,
    concept_vector,
    find_concept,
)
from mercer.explain.coverage import Coverage, coverage
from mercer.explain.effects import EffectCurve, effect_curve, effect_curves
from mercer.explain.expansion import Expansion, expansion
from mercer.explain.local import Reasons, reasons
from mercer.explain.neighbors import Neighbors, neighbors, seen_by
from mercer.explain.pair_effects import PairEffect, pair_effect, suggested_pairs
from mercer.explain.permutation import PermutationImportances, permutation_importances

__all__ = [
    "Concept",
    "ConceptProfile",
    "Coverage",
    "EffectCurve",
    "Expansion",
    "Neighbors",
    "PairEffect",
    "PermutationImportances",
    "Reasons",
    "concept_influence",
    "concept_profile",
    "concept_scores",
    "concept_vector",
    "coverage",
    "effect_curve",
    "effect_curves",
    "expansion",
    "find_concept",
    "neighbors",
    "pair_effect",
    "permutation_importances",
    "read_concepts",
    "reasons",
    "seen_by",
    "suggested_pairs",
    "write_concepts",
]
