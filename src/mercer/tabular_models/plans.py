"""Plans: settings with the bandwidths and ridges that some rows gave them, and which of many are worth judging."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mercer.rows import Cluster
from mercer.tabular_models.fitters import Fitter
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Deadline
from mercer.tabular_models.tuning import Freedom, Iterate

# Settings that are judged.
FINALISTS = 6


class Search(NamedTuple):
    """What a search must know.

    Attributes
    ----------
    fitter : Fitter
    freedom : Freedom
        What may be tuned.
    ridge : float
        Where tuning begins, or the ridge that was given.
    n_iter : int
        Most steps of a recursion.
    last_iterate : bool
        Whether only the last step of a recursion counts.
    deadline : Deadline
    n_jobs : int or None
        Python threads over settings, as scikit-learn counts them.
    workers : Cluster or None
        Who solves the leaves of all rows; None is this process.
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
    """A setting with the bandwidth and the ridge of every step on the way to its metric."""

    setting: Setting
    iterates: list[Iterate]

    @property
    def cost(self) -> float:
        """How bad the last step was on the rows of the screen, which it was tuned on."""
        return self.iterates[-1].cost


def finalists(plans: Sequence[Plan], most: int = FINALISTS) -> list[Plan]:
    """Return the best plans, the best of every way to learn a metric among them, and the best of one more kernel.

    Machines of different kernels err in different places, so that their average gains most: judging the best plan of
    the next kernel too took 2 % off the errors on energy (12 splits) and on a toy of few columns (20 seeds).
    """
    chosen = best_of_every_kind(plans, most)
    best_of_kernels = {type(plan.setting.kernel): plan for plan in reversed(plans)}
    leaders = sorted(best_of_kernels.values(), key=lambda plan: plan.cost)
    chosen += [plan for plan in leaders if all(plan is not other for other in chosen)][:1]
    return sorted(chosen, key=lambda plan: plan.cost)


def best_of_every_kind(plans: Sequence[Plan], most: int) -> list[Plan]:
    """Return the best plans, the best of every way to learn a metric, of warps by column and of lines among them.

    The screen's costs flatter metrics that learn much, so that they alone must not rule the others out.
    """
    chosen: list[Plan] = []
    for metric in dict.fromkeys(plan.setting.metric for plan in plans):
        chosen.append(next(plan for plan in plans if plan.setting.metric == metric))
    # What is chosen column by column was chosen on these rows, so that it must show itself beside one warp for all.
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
    """Return the best of every kind, and the best plan of every kernel under every warp: at most so many.

    Which kernel and warp is right changes with the number of rows: rough ones show what they can do where rows are
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
    """Return whether two settings differ in their steps alone."""
    return setting._replace(steps=0) == other._replace(steps=0)


def history_entry(plan: Plan, n_rows: int, score: float | None = None) -> dict[str, Any]:
    """Return what is worth remembering of a plan: plain values that can be saved."""
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
