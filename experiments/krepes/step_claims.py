"""The claims about embeddings trained by steps: gains over the start, and the directions of Tables 1, 2 and 4."""

import statistics
from collections.abc import Callable

from experiments import Claim, Results
from experiments.paired import is_above_zero

from .cases import FULL, on
from .paper import TABLE_1_LOSSES, TABLE_2, TABLE_4_GAINS
from .step_cases import (
    BESIDE,
    BY_STEPS,
    DRAWS,
    GAUSSIAN,
    PRECONDITIONERS,
    STARTED,
    UNTRAINED,
    beside_networks,
    by_steps,
    network_of,
    preconditioned,
)

OTHER_KERNELS = "the paper has tangent kernels of networks with a million and more rows, and no seeds"
# Kernel and network are "comparable" if the kernel is behind by no more than this.
COMPARABLE = 0.01


def gains(better: str, worse: str, measure: str = "accuracy") -> Callable[[Results], list[float]]:
    """Return the function that reads the differences of two cases, paired over seeds."""

    def read(results: Results) -> list[float]:
        pairs = zip(results.values(better, measure), results.values(worse, measure), strict=True)
        return [a - b for a, b in pairs]

    return read


def gain_claim(text: str, paper: float | None, read: Callable[[Results], list[float]], why: str = "") -> Claim:
    """Return the claim that a gain is above 0, by the interval of its mean over seeds."""
    return Claim(text, paper, read, lambda results: is_above_zero(read(results)), why)


def above_the_start(count: int) -> Claim:
    """Return the claim that `count` losses are above the untrained start by more than the spread over seeds."""
    cases = [on(STARTED, by_steps(loss, "principal")) for loss in BY_STEPS]

    def read(results: Results) -> list[float]:
        start = results.mean(on(STARTED, UNTRAINED), "accuracy")
        return [results.mean(case, "accuracy") - start for case in cases]

    def holds(results: Results) -> bool:
        spread_of_start = statistics.stdev(results.values(on(STARTED, UNTRAINED), "accuracy"))
        spreads = [max(spread_of_start, statistics.stdev(results.values(case, "accuracy"))) for case in cases]
        return sum(gain > spread for gain, spread in zip(read(results), spreads, strict=True)) >= count

    text = f"{STARTED}: {count} of {len(BY_STEPS)} losses by steps above their start by more than the spread (gains)"
    return Claim(text, None, read, holds)


def start_claim(loss: str) -> Claim:
    """Return the claim that principal components are a better start than random numbers."""
    read = gains(*[on(STARTED, by_steps(loss, start)) for start in ("principal", "random")])
    text = f"Table 4: {loss} from principal components above a random start (gain; the paper's on CoverType)"
    return gain_claim(text, TABLE_4_GAINS[loss][1], read, f"{OTHER_KERNELS}; this is {STARTED}")


def preconditioner_claim(data: str, loss: str, name: str) -> Claim:
    """Return the claim that a preconditioner leads to better embeddings than none."""
    none, *others = TABLE_2[DRAWS[data].name, loss]
    paper = dict(zip(PRECONDITIONERS[1:], others, strict=False))[name] - none
    read = gains(*[on(data, preconditioned(loss, other)) for other in (name, "identity")])
    text = f"Table 2: {data}, {loss} with preconditioner {name} above none (gain)"
    return gain_claim(text, paper, read, OTHER_KERNELS)


def rank_claim(data: str, name: str) -> Claim:
    """Return the claim that a preconditioner flattens the spectrum of A^T A."""
    cases = [on(data, preconditioned("barlow_twins", other)) for other in (name, "identity")]
    text = f"Figure 1: {data}, effective rank of A under barlow_twins with preconditioner {name} above none (gain)"
    return gain_claim(text, None, gains(*cases, measure="effective rank"), OTHER_KERNELS)


def network_claim(data: str, loss: str) -> Claim:
    """Return the claim that the kernel is behind the network by no more than COMPARABLE."""
    read = gains(*[on(data, beside_networks(loss, name)) for name in (GAUSSIAN, network_of(FULL[data]))])
    text = f"Table 1: {data}, {loss}: a kernel above the network, or no more than {COMPARABLE} behind (gain)"
    return Claim(text, None, read, lambda results: statistics.fmean(read(results)) >= -COMPARABLE)


# The draws on which preconditioners are compared, in the order of the paper.
PRECONDITIONED = {data.name: label for label, data in DRAWS.items() if label != STARTED}

STEP_CLAIMS = [
    above_the_start(3),
    *[start_claim(loss) for loss in TABLE_4_GAINS],
    *[
        preconditioner_claim(PRECONDITIONED[data], loss, name)
        for data, loss in TABLE_2
        for name in ("kernel", "gauss_newton")
    ],
    *[rank_claim(label, name) for label in PRECONDITIONED.values() for name in ("kernel", "gauss_newton")],
    *[network_claim(data, loss) for data in BESIDE for loss in TABLE_1_LOSSES],
]
