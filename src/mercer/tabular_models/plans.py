"""Plans: settings with bandwidths and ridges that were tuned on some rows, and the choice of those to judge."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mercer.rows import Cluster
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.fitters import Fitter
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Freedom, Iterate

# Number of settings that advance from the screen and are judged on left-out rows.
FINALISTS = 6


class Search(NamedTuple):
    """The options of a search.

    Attributes
    ----------
    fitter : Fitter
    freedom : Freedom
        Whether bandwidth and ridge may be tuned.
    ridge : float
        The ridge at which tuning begins, or the given ridge.
    n_iter : int
        The largest number of steps of a recursion.
    last_iterate : bool
        Whether only the last step of a recursion is considered.
    deadline : Deadline
    n_jobs : int or None
        Number of Python threads that try settings in parallel, counted as in scikit-learn.
    workers : Cluster or None
        The workers that solve the leaves of all rows; None is this process.
    """

    fitter: Fitter
    freedom: Freedom
    ridge: float
    n_iter: int
    last_iterate: bool
    deadline: Deadline
    n_jobs: int | None = None
    workers: Cluster | None = None


class Plan(NamedTuple):
    """A setting, with the tuned bandwidth and ridge of every step of the recursion that learns its metric."""

    setting: Setting
    iterates: list[Iterate]

    @property
    def cost(self) -> float:
        """The cost of the last step on the rows of the screen, on which it was tuned."""
        return self.iterates[-1].cost


def finalists(plans: Sequence[Plan], most: int = FINALISTS) -> list[Plan]:
    """Return the best plans, including the best one for each way to learn a metric, and one plan of a further kernel.

    Machines of different kernels make different errors, so averaging them gains most: also judging the best plan of
    the next kernel lowered the errors by 2 % on energy (12 splits) and on a toy table of few columns (20 seeds).
    """
    chosen = best_of_every_kind(plans, most)
    best_of_kernels = {type(plan.setting.kernel): plan for plan in reversed(plans)}
    leaders = sorted(best_of_kernels.values(), key=lambda plan: plan.cost)
    chosen += [plan for plan in leaders if all(plan is not other for other in chosen)][:1]
    return sorted(chosen, key=lambda plan: plan.cost)


def best_of_every_kind(plans: Sequence[Plan], most: int) -> list[Plan]:
    """Return the best plans, with the best of each way to learn a metric, of warps by column and of linear kernels.

    The costs of the screen are too optimistic for flexible metrics, so the others must not be excluded by cost alone.
    """
    chosen: list[Plan] = []
    for metric in dict.fromkeys(plan.setting.metric for plan in plans):
        chosen.append(next(plan for plan in plans if plan.setting.metric == metric))
    # Warps by column were chosen on these same rows, so they must still be compared with one warp for all columns.
    mixed = [plan for plan in plans if not isinstance(plan.setting.warp, str)]
    chosen += [plan for plan in mixed[:1] if all(plan is not other for other in chosen)]
    linear = [plan for plan in plans if not hasattr(plan.setting.kernel, "bandwidth")]
    chosen += [plan for plan in linear[:1] if all(plan is not other for other in chosen)]
    for plan in plans:
        if len(chosen) >= most:
            break
        if not any(is_alike(plan.setting, other.setting) for other in chosen):
            chosen.append(plan)
    return sorted(chosen, key=lambda plan: plan.cost)


def contenders(plans: Sequence[Plan], most: int) -> list[Plan]:
    """Return the best plan of every kind, and the best of every pair of kernel and warp: at most `most` plans.

    The best kernel and warp depend on the number of rows: the quality of rough kernels shows only where rows are
    dense.
    """
    chosen = best_of_every_kind(plans, FINALISTS)
    seen = {(type(plan.setting.kernel), plan.setting.warp) for plan in chosen}
    for plan in plans:
        pair = (type(plan.setting.kernel), plan.setting.warp)
        if pair not in seen and hasattr(plan.setting.kernel, "bandwidth"):
            seen.add(pair)
            chosen.append(plan)
    return sorted(chosen[:most], key=lambda plan: plan.cost)


def is_alike(setting: Setting, other: Setting) -> bool:
    """Return whether two settings are equal except for the number of steps."""
    return setting._replace(steps=0) == other._replace(steps=0)


def history_entry(plan: Plan, n_rows: int, score: float | None = None) -> dict[str, Any]:
    """Return the entry of a plan in `history_`: plain values that can be saved."""
    last = plan.iterates[-1]
    bandwidths = [float(leaf.scale()) for leaf in last.kernel.leaves() if hasattr(leaf, "bandwidth")]  # type: ignore[attr-defined]
    return {
        **plan.setting.named(),
        "bandwidth": bandwidths[0] if len(bandwidths) == 1 else bandwidths,
        "ridge": float(last.ridge),
        "cost": float(last.cost) if math.isfinite(last.cost) else None,
        "score": score,
        "rows": int(n_rows),
    }
