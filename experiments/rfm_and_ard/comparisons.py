"""Statistics of the results: means over splits, ranks over sets, coverage, Figure 1's scale, paired differences."""

import math
import statistics
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from experiments import MissingResult, Results
from mercer.metrics import mean_ranks
from mercer.plots.agreement import correlate
from mercer.plots.scores import normalized_scores

from .cases import SEVEN, on

OURS = "GPRegressor()"
# The contestants that are ranked. CatBoost has a loss of its own for each of the two measures.
RANKED = {
    "rmse": (OURS, "xRFM", "CatBoost", "NGBoost", "LightGBM", "scikit-learn GPR", "GPyTorch"),
    "nll": (OURS, "CatBoost (uncertainty)", "NGBoost", "scikit-learn GPR", "GPyTorch"),
}
FIGURE_1 = (
    "GP-RFM-Laplace",
    "GP-ARD-Laplace",
    "GP-ARD-RBF",
    "GP-Laplace",
    "GP-RBF",
    "NGBoost",
    "CatBoost (uncertainty)",
)
# The methods of Figure 2, by their names there.
FIGURE_2 = {"RFM": "GP-RFM-Laplace", "RFM-diag": "GP-RFM-diag-Laplace", "ARD-Laplace": "GP-ARD-Laplace"}
PAIRS = tuple(combinations(FIGURE_2, 2))


def means(results: Results, contestant: str, measure: str) -> dict[str, float]:
    """Return the mean over splits for each of the seven sets."""
    return {data: results.mean(on(data, contestant), measure) for data in SEVEN}


def ranks(results: Results, measure: str) -> dict[str, float]:
    """Return the mean ranks of our estimator and of the peers over the seven sets; 1 is the best."""
    return mean_ranks({name: means(results, name, measure) for name in RANKED[measure]})


def places(results: Results, measure: str) -> list[float]:
    """Return our rank among the peers on each of the seven sets; the mean of these is our mean rank."""
    table = {name: means(results, name, measure) for name in RANKED[measure]}
    return [mean_ranks({name: {data: row[data]} for name, row in table.items()})[OURS] for data in SEVEN]


def is_among_first(results: Results, measure: str, count: int) -> bool:
    """Whether fewer than `count` peers have a mean rank as low as ours: ties count against us."""
    found = ranks(results, measure)
    return sum(found[name] <= found[OURS] for name in RANKED[measure] if name != OURS) < count


def coverage(results: Results, case: str) -> float:
    """Return the share of test rows inside 90 % intervals, over all splits of a case."""
    return sum(results.values(case, "inside 90 %")) / sum(results.values(case, "rows"))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean. Since splits overlap, it is only a rough measure and not a test."""
    if len(values) < 2:
        raise MissingResult("a standard error needs two splits at least")
    return statistics.stdev(values) / math.sqrt(len(values))


def behind_the_best(results: Results, measure: str) -> list[float]:
    """Return, for each of the seven sets, our mean minus the best peer's, in standard errors of the peer's.

    Negative values mean that we are ahead.
    """
    gaps = []
    for data in SEVEN:
        cases = [on(data, name) for name in RANKED[measure] if name != OURS]
        best = min(cases, key=lambda case: results.mean(case, measure))
        gap = results.mean(on(data, OURS), measure) - results.mean(best, measure)
        gaps.append(gap / standard_error(results.values(best, measure)))
    return gaps


def normalized(results: Results, methods: Sequence[str], measure: str) -> dict[str, np.ndarray]:
    """Return the scores of Figure 1: on each set 0 is the best run of all methods and splits, and 1 the worst.

    Only the splits that all methods have are used. Each set gives one row with the median and the mean over its splits,
    so that sets with 3 splits have the same weight as those with 10.
    """
    splits = {data: min(results.seeds.get(on(data, name), 0) for name in methods) for data in SEVEN}
    table = {
        name: {data: results.values(on(data, name), measure)[: splits[data]] for data in SEVEN} for name in methods
    }
    return {
        name: np.array([[np.median(row), np.mean(row)] for row in rows.values()])
        for name, rows in normalized_scores(table).items()
    }


def figure_1_places(results: Results, measure: str) -> list[float]:
    """Return the places of GP-RFM-Laplace and GP-ARD-Laplace among Figure 1's methods, by mean normalized score."""
    found = {name: rows[:, 1].mean() for name, rows in normalized(results, FIGURE_1, measure).items()}
    order = sorted(found, key=lambda name: found[name])
    return [order.index(name) + 1.0 for name in ("GP-RFM-Laplace", "GP-ARD-Laplace")]


def importances(results: Results, data: str, label: str) -> np.ndarray:
    """Return the diagonals of the metric of one of Figure 2's methods, one row for each split."""
    return np.array(
        [[float(w) for w in text.split()] for text in results.texts(on(data, FIGURE_2[label]), "importances")]
    )


def correlations(results: Results, data: str, pair: tuple[str, str], kind: str) -> list[float]:
    """Return the correlations of the diagonals of two methods on a set, split by split.

    `kind` is "pearson" or "spearman".
    """
    rows = zip(*(importances(results, data, label) for label in pair), strict=True)
    return [float(getattr(correlate(p, q), kind)) for p, q in rows]


def median_correlations(results: Results, pair: tuple[str, str], kind: str) -> list[float]:
    """Return the medians of these correlations over splits, for each of the seven sets."""
    return [float(np.median(correlations(results, data, pair, kind))) for data in SEVEN]


def gains(results: Results, better: str, worse: str, measure: str = "rmse") -> list[float]:
    """Return how much smaller a measure is for one case than for another, split by split."""
    pairs = zip(results.values(better, measure), results.values(worse, measure), strict=True)
    return [b - a for a, b in pairs]


def is_clear(differences: Sequence[float]) -> bool:
    """Whether the mean of paired differences is above two of its standard errors."""
    return statistics.fmean(differences) > 2 * standard_error(differences)
