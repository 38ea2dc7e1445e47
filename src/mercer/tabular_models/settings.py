"""The settings that a search compares: a kernel, a warp of the columns, and how the metric is learned."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mercer.kernels import CoordinatewiseKernel, Kernel, Linear, check_kernel
from mercer.tabular_models.table import Table

METRICS = ("identity", "diagonal", "full", "ard")
# What kernel="auto" tries, the simplest first. A linear function is one of them, so that no search ends below it.
AUTO_KERNELS = ("linear", "matern32", "laplace", "gaussian", "product_laplace")
# A product of smooth kernels has a pass over all pairs for every column. It is tried as well where this costs little
# beside the rest: on few rows, where it errs by a third less on functions of few columns, and in leaves of very many.
SLOW_KERNELS = ("product_matern32",)
FEW_ROWS, VERY_MANY_ROWS, MOST_SLOW_COLUMNS = 400, 20_000, 50
# A full metric has d^2 numbers, a diagonal one by evidence d: beyond these columns rows are too few to learn them.
MOST_FULL_COLUMNS, MOST_ARD_COLUMNS, MOST_PRODUCT_COLUMNS = 100, 200, 200


class Setting(NamedTuple):
    """One way to set a machine up.

    Attributes
    ----------
    kernel : Kernel
        As it was given: its bandwidth may be "median".
    warp : str or tuple of str
        One for all columns, or one a column.
    metric : {"identity", "diagonal", "full", "ard"}
    steps : int
        Steps of the recursion behind a diagonal or full metric, 1 for "ard" and 0 for the identity.
    """

    kernel: Kernel
    warp: Any
    metric: str = "identity"
    steps: int = 0

    def named(self) -> dict[str, Any]:
        """Return the setting in words."""
        warp = self.warp if isinstance(self.warp, str) else ",".join(self.warp)
        return {"kernel": type(self.kernel).__name__, "warp": warp, "metric": self.metric, "iterate": self.steps}

    def complexity(self) -> tuple[int, int]:
        """Return a rank by which simpler settings come first."""
        return METRICS.index(self.metric), self.steps


def kernels_of(kernel: Any, bandwidth: Any, n_rows: int, n_columns: int) -> list[Kernel]:
    """Return the kernels to try, with the bandwidth that was asked for; a search begins at the median.

    Products over columns have a gradient term for each of them, and are not tried where these are many.
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
    """Return the kernel with an intercept in what is linear in it.

    Columns and targets are centered. A left-out row is then minus the sum of the others, and so is its target: where
    columns are as many as rows, a linear function without an intercept knows the target of every row that is left out.
    The intercept's own coefficient is 0 on centered targets, so that predictions are the same.
    """
    return kernel.map_leaves(
        lambda leaf: leaf.with_params(offset="mean") if isinstance(leaf, Linear) and leaf.offset == 0.0 else leaf
    )


def metrics_of(metric: str, kernel: Kernel, table: Table) -> list[str]:
    """Return the ways to learn a metric that suit a kernel and a table, beside the identity that all begin with."""
    if metric != "auto":
        return [] if metric == "identity" else [metric]
    d, is_radial = table.n_columns, kernel.has_gradient_weights and kernel.has_closed_form_gradient
    if not kernel.has_closed_form_gradient or not any(hasattr(leaf, "bandwidth") for leaf in kernel.leaves()):
        return []
    wanted = ["ard"] if d <= MOST_ARD_COLUMNS else []
    wanted += ["full"] if is_radial and 1 < d <= MOST_FULL_COLUMNS else []
    return [*wanted, "diagonal"] if d > 1 else wanted


def warps_of(warp: Any, table: Table, warps: Sequence[str]) -> list[Any]:
    """Return the warps to try: those that differ on this table, or the one that was given."""
    if not (isinstance(warp, str) and warp == "auto"):
        given = warp if isinstance(warp, str) else tuple(warp)
        table.columns(given)  # an unknown warp is named before anything is fitted
        return [given]
    distinct: dict[tuple[str, ...], str] = {}
    for name in warps:
        distinct.setdefault(tuple(table.columns(name).warps_), name)
    return list(distinct.values())
