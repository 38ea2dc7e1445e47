"""Reading the results: means over splits, ranks over sets, coverage, Figure 1's scale, differences split by split."""

import math
import statistics
from collections.abc import Sequence

import numpy as np

from experiments import MissingResult, Results
from mercer.metrics import mean_ranks
from mercer.plots.scores import normalized_scores

from .cases import SEVEN, on

OURS = "GPRegressor()"
# Who is ranked: CatBoost has its own loss for each of the two figures.
RANKED = {
    "rmse": (OURS, "xRFM", "CatBoost", "NGBoost", "LightGBM", "scikit-learn GPR", "GPyTorch"),
    "nll": (OURS, "CatBoost (uncertainty)", "NGBoost", "scikit-learn GPR", "GPyTorch"),
}
# Figure 1's methods besides GP-RFM-Laplace, which stands there by the paper's protocol or by leave-one-out.
FIGURE_1 = ("GP-ARD-Laplace", "GP-ARD-RBF", "GP-Laplace", "GP-RBF", "NGBoost", "CatBoost (uncertainty)")


def means(results: Results, contestant: str, measure: str) -> dict[str, float]:
    """Set -> mean over splits, on the seven."""
    return {data: results.mean(on(data, contestant), measure) for data in SEVEN}


def ranks(results: Results, measure: str) -> dict[str, float]:
    """Mean rank over the seven sets of ours and the peers, 1 the best."""
    return mean_ranks({name: means(results, name, measure) for name in RANKED[measure]})


def places(results: Results, measure: str) -> list[float]:
    """Our rank among the peers on each of the seven; their mean is our mean rank."""
    table = {name: means(results, name, measure) for name in RANKED[measure]}
    return [mean_ranks({name: {data: row[data]} for name, row in table.items()})[OURS] for data in SEVEN]


def is_among_first(results: Results, measure: str, count: int) -> bool:
    """Whether fewer than `count` peers have a mean rank as low as ours: ties count against us."""
    found = ranks(results, measure)
    return sum(found[name] <= found[OURS] for name in RANKED[measure] if name != OURS) < count


def coverage(results: Results, case: str) -> float:
    """Share of test rows inside 90 % intervals, over all splits of a case."""
    return sum(results.values(case, "inside 90 %")) / sum(results.values(case, "rows"))


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; splits overlap, so it is a yardstick and no test."""
    if len(values) < 2:
        raise MissingResult("a standard error needs two splits at least")
    return statistics.stdev(values) / math.sqrt(len(values))


def behind_the_best(results: Results, measure: str) -> list[float]:
    """On each of the seven, our mean minus the best peer's, in standard errors of the latter (negative: ahead)."""
    gaps = []
    for data in SEVEN:
        cases = [on(data, name) for name in RANKED[measure] if name != OURS]
        best = min(cases, key=lambda case: results.mean(case, measure))
        gap = results.mean(on(data, OURS), measure) - results.mean(best, measure)
        gaps.append(gap / standard_error(results.values(best, measure)))
    return gaps


def normalised(results: Results, methods: Sequence[str], measure: str) -> dict[str, np.ndarray]:
    """Figure 1's scores: on each set 0 is the best run of all methods and splits and 1 the worst; one row a set.

    A row holds the median and the mean over splits, so that sets with 5 splits weigh as much as those with 20.
    """
    table = {name: {data: results.values(on(data, name), measure) for data in SEVEN} for name in methods}
    return {
        name: np.array([[np.median(row), np.mean(row)] for row in rows.values()])
        for name, rows in normalized_scores(table).items()
    }


def figure_1_places(results: Results, rfm: str, measure: str) -> list[float]:
    """Places of GP-RFM-Laplace and of GP-ARD-Laplace among Figure 1's methods, by mean normalised score."""
    found = {name: rows[:, 1].mean() for name, rows in normalised(results, (rfm, *FIGURE_1), measure).items()}
    order = sorted(found, key=lambda name: found[name])
    return [order.index(name) + 1.0 for name in (rfm, "GP-ARD-Laplace")]


def gains(results: Results, better: str, worse: str, measure: str = "rmse") -> list[float]:
    """By how much one case is ahead of another, split by split."""
    pairs = zip(results.values(better, measure), results.values(worse, measure), strict=True)
    return [b - a for a, b in pairs]


def is_clear(differences: Sequence[float]) -> bool:
    """Whether the mean of paired differences is above two of its standard errors."""
    return statistics.fmean(differences) > 2 * standard_error(differences)
