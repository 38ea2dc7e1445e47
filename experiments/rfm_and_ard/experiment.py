"""Recursive feature machines, ARD and GPs on the UCI tables, against xRFM, boosting and two GP libraries.

The seven sets on their 20 fixed splits of 90 : 10; kin8nm and power on the first 5, with 3000 training rows drawn for
everyone. Of the 1599 rows of wine_red 240 repeat an earlier one in all inputs and the target, many of them across a
split: it is run as given, which is what counts, and once more without the repeated rows ("wine_red unique").

The paper's methods are run twice where there is something to choose: by leave-one-out inside the estimator, and by the
paper's protocol ("70/30": a grid by the NLL of 30 % of the training rows, then a fit on all). Peers run on their own
defaults or tutorials (see `peers.py`), everyone on one thread: two processes with a results folder each keep two cores
busy, and their journals can be put together with `cat`. Scores are in the units of y; an NLL is the mean over the test
rows of a split, and intervals are the central 90 % of a Gaussian.
"""

from collections.abc import Callable

from experiments import Claim, Experiment, Results

from .cases import SEVEN, cases, on, toy
from .comparisons import (
    OURS,
    behind_the_best,
    coverage,
    figure_1_places,
    gains,
    is_among_first,
    is_clear,
    places,
)
from .tables import tables


def coverages(results: Results) -> list[float]:
    return [coverage(results, on(data, OURS)) for data in SEVEN]


def lead_over_xrfm(results: Results) -> list[float]:
    """xRFM's mean RMSE over that of RFMRegressor(), on each of the seven."""
    return [results.mean(on(data, "xRFM"), "rmse") / results.mean(on(data, "RFMRegressor()"), "rmse") for data in SEVEN]


def block_found(results: Results) -> list[float]:
    return results.values(toy("square", "RFM", 50), "correlation")


def rank_claim(text: str, measure: str, count: int) -> Claim:
    return Claim(
        text, None, lambda results: places(results, measure), lambda results: is_among_first(results, measure, count)
    )


def near_the_best(measure: str, label: str) -> Claim:
    return Claim(
        f"GPRegressor(): within one standard error of the best peer's {label} on five of seven sets (to reach for)",
        None,
        lambda results: behind_the_best(results, measure),
        lambda results: sum(gap <= 1 for gap in behind_the_best(results, measure)) >= 5,
    )


def metric_claim(task: str, name: Callable[[str], str], other: str) -> Claim:
    """The full metric's gain in RMSE over another metric in the same GP, paired over splits or seeds."""

    def measure(results: Results) -> list[float]:
        return gains(results, name("GP-RFM-Laplace"), name(other))

    text = f"{task}: GP-RFM-Laplace predicts better than {other} (gain in RMSE, paired)"
    return Claim(text, None, measure, lambda results: is_clear(measure(results)))


def figure_1_claim(rfm: str, measure: str) -> Claim:
    return Claim(
        f"Figure 1: {rfm} and GP-ARD-Laplace take the first two places in normalised {measure.upper()}",
        1.5,
        lambda results: figure_1_places(results, rfm, measure),
        lambda results: max(figure_1_places(results, rfm, measure)) <= 2,
    )


CLAIMS = [
    rank_claim("GPRegressor(): first in mean rank on NLL over the seven sets", "nll", 1),
    rank_claim("GPRegressor(): first or second in mean rank on RMSE over the seven sets", "rmse", 2),
    rank_claim("GPRegressor(): first in mean rank on RMSE (to reach for)", "rmse", 1),
    near_the_best("rmse", "RMSE"),
    near_the_best("nll", "NLL"),
    Claim(
        "GPRegressor(): 90 % intervals hold between 86 and 94 % of the test rows on each set",
        None,
        coverages,
        lambda results: all(0.86 <= share <= 0.94 for share in coverages(results)),
    ),
    Claim(
        "RFMRegressor(): lower mean RMSE than xRFM's defaults on every set (ratio)",
        None,
        lead_over_xrfm,
        lambda results: min(lead_over_xrfm(results)) > 1,
    ),
    Claim(
        "toy, d = 50, n = 2000: correlation of the learned metric with the true block above .98",
        None,
        block_found,
        lambda results: sum(block_found(results)) / len(block_found(results)) > 0.98,
    ),
    *[
        metric_claim(f"toy {function}, d = {d}", lambda name, f=function, d=d: toy(f, name, d), other)
        for function in ("square", "wave")
        for d in (20, 50)
        for other in ("GP-RFM-diag-Laplace", "GP-ARD-Laplace")
    ],
    *[
        metric_claim("kin8nm", lambda name: on("kin8nm", name), other)
        for other in ("GP-RFM-diag-Laplace", "GP-ARD-Laplace")
    ],
    *[
        figure_1_claim(rfm, measure)
        for rfm in ("GP-RFM-Laplace (70/30)", "GP-RFM-Laplace")
        for measure in ("rmse", "nll")
    ],
]

EXPERIMENT = Experiment("rfm_and_ard", "Recursive feature machines and ARD", cases, CLAIMS, tables)
