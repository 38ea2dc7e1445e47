"""Bandwidth and ridge of a kernel for a fixed metric, by local search on a grid from a good starting value."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mercer.kernels import BandwidthKernel, Kernel
from mercer.selection import climb
from mercer.tabular_models.fitters import Fitter
from mercer.tabular_models.table import Table

# A step of the search multiplies or divides the bandwidth or the ridge by these; the last steps by their square roots.
BANDWIDTH_STEP, RIDGE_STEP = 2.0, 10.0
# A step must lower the cost by at least this much, in nats for each row.
SMALLEST_GAIN = 1e-3
LARGEST_RIDGE = 1e3


class Iterate(NamedTuple):
    """A kernel with numbers for its bandwidth and its metric, a ridge, and their cost on the rows used for tuning."""

    kernel: Kernel
    ridge: float
    cost: float = math.inf


class Freedom(NamedTuple):
    """Whether a search may change the bandwidth and the ridge; values given by the user are kept."""

    bandwidth: bool = True
    ridge: bool = True


FREE = Freedom()


def tuned(
    kernel: Kernel,
    ridge: float,
    parts: Sequence[tuple[Table, Tensor]],
    fitter: Fitter,
    freedom: Freedom,
    *,
    fine: bool = False,
) -> Iterate:
    """Return the kernel and the ridge with the lowest cost, found by local search from a starting value.

    Parameters
    ----------
    kernel : Kernel
        With a number for the bandwidth.
    ridge : float
    parts : sequence of (Table, tensor of shape (n, d))
        Rows, and the same rows warped. A machine is solved in each part separately, and their costs are averaged.
    fitter : Fitter
        Defines the cost of a bandwidth and a ridge.
    freedom : Freedom
    fine : bool, default=False
        Whether the search ends with smaller steps.

    Notes
    -----
    Each pair that is tried costs O(n^3); there are about ten. The distances of radial kernels are computed only once.
    """
    sizes = [len(table) for table, _ in parts]
    matrix = [kernel.matrices(Z) for _, Z in parts]
    has_bandwidth = freedom.bandwidth and any(isinstance(leaf, BandwidthKernel) for leaf in kernel.leaves())
    begin = min(max(ridge, fitter.smallest_ridge), LARGEST_RIDGE) if freedom.ridge else ridge
    matrices: dict[int, list[Tensor]] = {}

    def cost(place: tuple[int, int]) -> float:
        i, j = place
        if i not in matrices:
            # Two bandwidths are kept, which is enough: the search moves along one axis at a time.
            while len(matrices) > 1:
                matrices.pop(next(iter(matrices)))
            matrices[i] = [of_part(BANDWIDTH_STEP ** (i / 2)) for of_part in matrix]
        costs = [fitter.cost(K, table, ridge_at(j)) for K, (table, _) in zip(matrices[i], parts, strict=True)]
        return sum(size * value for size, value in zip(sizes, costs, strict=True)) / sum(sizes)

    def ridge_at(j: int) -> float:
        return begin * RIDGE_STEP ** (j / 2)

    def is_allowed(place: tuple[int, int]) -> bool:
        return (
            (has_bandwidth or place[0] == 0)
            and (freedom.ridge or place[1] == 0)
            and fitter.smallest_ridge * 0.999 <= ridge_at(place[1]) <= LARGEST_RIDGE * 1.001
        ) or place == (0, 0)

    (i, j), lowest = climb(cost, is_allowed, smallest_gain=SMALLEST_GAIN, fine=fine)
    return Iterate(kernel.rescaled(BANDWIDTH_STEP ** (i / 2)), ridge_at(j), lowest)
