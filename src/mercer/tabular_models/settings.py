"""The settings that a search compares: a kernel, a warp of the columns, and how the metric is learned."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mercer.kernels import CoordinatewiseKernel, Kernel, Linear, check_kernel
from mercer.tabular_models.table import Table

METRICS = ("identity", "diagonal", "full", "ard")
# The kernels that kernel="auto" tries, the simplest first. The linear kernel is included, so that no search ends with a
# result worse than a linear function.
AUTO_KERNELS = ("linear", "matern32", "laplace", "gaussian", "product_laplace")
# A product of smooth kernels needs a pass over all pairs of rows for every column. It is also tried if this costs
# little compared with the rest: on few rows, where it lowers the errors by a third for functions of few columns, and
# on very many rows, which are solved in leaves.
SLOW_KERNELS = ("product_matern32",)
FEW_ROWS, VERY_MANY_ROWS, MOST_SLOW_COLUMNS = 400, 20_000, 50
# A full metric has d^2 entries, and one length scale for each column makes d. For tables with more columns than these,
# there are too few rows to learn them.
MOST_FULL_COLUMNS, MOST_ARD_COLUMNS, MOST_PRODUCT_COLUMNS = 100, 200, 200


class Setting(NamedTuple):
    """A kernel, a warp of the columns, and the way in which the metric is learned.

    Attributes
    ----------
    kernel : Kernel
        The kernel as given, whose bandwidth may be "median".
    warp : str or tuple of str
        The warp of all columns, or one warp for each column.
    metric : {"identity", "diagonal", "full", "ard"}
    steps : int
        Number of steps of the recursion for a diagonal or full metric, 1 for "ard" and 0 for the identity.
    """

    kernel: Kernel
    warp: Any
    metric: str = "identity"
    steps: int = 0

    def named(self) -> dict[str, Any]:
        """Return the setting as a dictionary of names and numbers."""
        warp = self.warp if isinstance(self.warp, str) else ",".join(self.warp)
        return {"kernel": type(self.kernel).__name__, "warp": warp, "metric": self.metric, "iterate": self.steps}

    def complexity(self) -> tuple[int, int]:
        """Return a key by which simpler settings are sorted first."""
        return METRICS.index(self.metric), self.steps


def kernels_of(kernel: Any, bandwidth: Any, n_rows: int, n_columns: int) -> list[Kernel]:
    """Return the kernels to try, with the requested bandwidth; if it is "auto", the search starts at the median.

    Products over columns have a gradient term for each column, and are not tried if there are many columns.
    """
    own = "median" if bandwidth == "auto" else bandwidth
    if not (isinstance(kernel, str) and kernel == "auto"):
        return [check_kernel(kernel, own)]
    names: tuple[str, ...] = AUTO_KERNELS
    if n_columns <= MOST_SLOW_COLUMNS and not FEW_ROWS < n_rows <= VERY_MANY_ROWS:
        names += SLOW_KERNELS
    made = [check_kernel(name, own) for name in names]
    return [k for k in made if n_columns <= MOST_PRODUCT_COLUMNS or not isinstance(k, CoordinatewiseKernel)]


def with_intercept(kernel: Kernel) -> Kernel:
    """Return the kernel with an intercept in its linear parts.

    Columns and targets are centered, so each row is minus the sum of the others, and so is its target. If there are as
    many columns as rows, a linear function without an intercept would predict every left-out target exactly. The
    coefficient of the intercept is 0 for centered targets, so that predictions do not change.
    """
    return kernel.map_leaves(
        lambda leaf: leaf.with_params(offset="mean") if isinstance(leaf, Linear) and leaf.offset == 0.0 else leaf
    )


def metrics_of(metric: str, kernel: Kernel, table: Table) -> list[str]:
    """Return the ways to learn a metric that suit a kernel and a table, in addition to the identity."""
    if metric != "auto":
        return [] if metric == "identity" else [metric]
    d, is_radial = table.n_columns, kernel.has_gradient_weights and kernel.has_closed_form_gradient
    if not kernel.has_closed_form_gradient or not any(hasattr(leaf, "bandwidth") for leaf in kernel.leaves()):
        return []
    wanted = ["ard"] if d <= MOST_ARD_COLUMNS else []
    wanted += ["full"] if is_radial and 1 < d <= MOST_FULL_COLUMNS else []
    return [*wanted, "diagonal"] if d > 1 else wanted


def warps_of(warp: Any, table: Table, warps: Sequence[str]) -> list[Any]:
    """Return the warps to try: those that differ on this table, or only the one that was given."""
    if not (isinstance(warp, str) and warp == "auto"):
        given = warp if isinstance(warp, str) else tuple(warp)
        table.columns(given)  # raises an error for an unknown warp before anything is fitted
        return [given]
    distinct: dict[tuple[str, ...], str] = {}
    for name in warps:
        distinct.setdefault(tuple(table.columns(name).warps_), name)
    return list(distinct.values())
