"""Figures as display classes with `from_...`, `plot`, and the attributes `figure_` and `ax_`, as in scikit-learn."""

from mercer.plots.affinity import AffinityDisplay
from mercer.plots.agreement import AgreementDisplay
from mercer.plots.concept_profile import ConceptProfileDisplay
from mercer.plots.contributions import ContributionsDisplay
from mercer.plots.correlation import CorrelationDisplay
from mercer.plots.coverage import CoverageDisplay
from mercer.plots.discriminant import DiscriminantDisplay
from mercer.plots.effects import EffectDisplay
from mercer.plots.eigengap import EigengapDisplay
from mercer.plots.embedding import EmbeddingDisplay
from mercer.plots.evolution import EvolutionDisplay
from mercer.plots.importances import ImportancesDisplay
from mercer.plots.intervals import IntervalDisplay
from mercer.plots.metric import MetricDisplay
from mercer.plots.neighbors import NeighborsDisplay
from mercer.plots.permutation_importances import PermutationImportancesDisplay
from mercer.plots.principal_samples import PrincipalSamplesDisplay
from mercer.plots.rates import RatesDisplay
from mercer.plots.reliability import ReliabilityDisplay
from mercer.plots.scores import ScoresDisplay, normalized_scores
from mercer.plots.similarity import SimilarityDisplay
from mercer.plots.spectrum import SpectrumDisplay
from mercer.plots.sphere import SphereDisplay
from mercer.plots.top_landmarks import TopLandmarksDisplay

__all__ = [
    "AffinityDisplay",
    "AgreementDisplay",
    "ConceptProfileDisplay",
    "ContributionsDisplay",
    "CorrelationDisplay",
    "CoverageDisplay",
    "DiscriminantDisplay",
    "EffectDisplay",
    "EigengapDisplay",
    "EmbeddingDisplay",
    "EvolutionDisplay",
    "ImportancesDisplay",
    "IntervalDisplay",
    "MetricDisplay",
    "NeighborsDisplay",
    "PermutationImportancesDisplay",
    "PrincipalSamplesDisplay",
    "RatesDisplay",
    "ReliabilityDisplay",
    "ScoresDisplay",
    "SimilarityDisplay",
    "SpectrumDisplay",
    "SphereDisplay",
    "TopLandmarksDisplay",
    "normalized_scores",
]
