"""The screen: many settings are tried quickly, on a few hundred rows, and ranked by their cost on the same rows.

This cost is too optimistic for flexible settings. The screen only proposes; left-out rows then decide (`race.py`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from mercer.linalg import in_parallel, threads_for
from mercer.tabular_models.deadline import IDENTITIES_UNTIL, METRICS_UNTIL
from mercer.tabular_models.metric_learning import ARD_STEPS, advanced, with_length_scales
from mercer.tabular_models.plans import Plan, Search
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate, tuned
from mercer.tabular_models.warp_choice import warp_by_column

# Number of rows on which all settings are tried.
SCREEN_ROWS = 400
# Number of pairs of a kernel and a warp whose metric is learned by average gradient outer products.
LEADERS = 3
# Number of steps by which length scales first climb the evidence; only the best settings continue.
FIRST_STEPS = 5
FIRST_RIDGE = 1e-2


class Breadth(NamedTuple):
    """How many settings learn length scales: the warps that start for each kernel, and how many continue in total."""

    warps: int
    leaders: int


# Few rows cannot distinguish many settings. If the table has many rows, those of the screen lie too far apart to decide
# on a kernel and a warp: all pairs then learn length scales, and they are judged later, where rows are dense.
USUAL, OF_MANY_ROWS = Breadth(2, 4), Breadth(3, 12)


def screen(
    search: Search,
    table: Table,
    identities: Sequence[Setting],
    metrics: Sequence[Sequence[str]],
    breadth: Breadth = USUAL,
) -> list[Plan]:
    """Try settings on a few rows in three rounds: identity metric, length scales by evidence, gradient outer products.

    Parameters
    ----------
    search : Search
    table : Table
        The rows of the screen.
    identities : sequence of Setting
        Pairs of a kernel and a warp, with the identity as metric.
    metrics : sequence of sequences of str
        For each pair, the metrics that it may learn.
    breadth : Breadth

    Returns
    -------
    list of Plan, in increasing order of their cost on these rows
    """
    with threads_for(len(table)):
        begun = under_the_identity(search, table, identities, metrics)
        with_scales = with_evidence(search, begun, table, breadth)
        best = {id(start): min(start.plan.cost, plan.cost) for start, plan in with_scales}
        by_gradients = [start for start in begun if {"full", "diagonal"} & set(start.metrics)]
        by_gradients.sort(key=lambda start: best.get(id(start), start.plan.cost))
        plans = [start.plan for start in begun] + [plan for _, plan in with_scales]
        wanted = [(s, metric) for s in by_gradients[:LEADERS] for metric in ("full", "diagonal") if metric in s.metrics]

        def followed(task: tuple[Start, str]) -> list[Plan]:
            (start, metric), is_late = task, search.deadline.is_over(METRICS_UNTIL)
            return [] if is_late else with_gradients(search, start.plan, metric, table)

        plans += [plan for found in in_parallel(followed, wanted, search.n_jobs) for plan in found]
        if len({start.plan.setting.warp for start in begun}) > 1 and not search.deadline.is_over(METRICS_UNTIL):
            plans += with_warps_by_column(search, plans, table)
    return sorted(plans, key=lambda plan: plan.cost)


class Start(NamedTuple):
    """A plan with the identity as metric, and the metrics that suit its kernel."""

    plan: Plan
    metrics: Sequence[str]


def under_the_identity(
    search: Search, table: Table, identities: Sequence[Setting], metrics: Sequence[Sequence[str]]
) -> list[Start]:
    """Return every pair of kernel and warp with tuned bandwidth and ridge, or as many as the time limit allows."""
    warps = list(dict.fromkeys(setting.warp for setting in identities))

    def of_warp(warp: Any) -> list[Start]:
        Z, ridge = table.warped(warp), search.ridge
        found: list[Start] = []
        for setting, suitable in zip(identities, metrics, strict=True):
            if setting.warp != warp:
                continue
            if search.deadline.is_over(IDENTITIES_UNTIL) and (found or warp != warps[0]):
                break
            # Under the same warp, the ridge of one kernel is a good start for the next.
            first = tuned(setting.kernel.resolved(Z, 0), ridge, [(table, Z)], search.fitter, search.freedom)
            ridge = first.ridge if search.freedom.ridge else search.ridge
            found.append(Start(Plan(setting, [first]), suitable))
        return found

    return [start for found in in_parallel(of_warp, warps, search.n_jobs) for start in found]


def with_evidence(search: Search, begun: Sequence[Start], table: Table, breadth: Breadth) -> list[tuple[Start, Plan]]:
    """Return plans whose length scales, one for each column, climb the evidence: many make a few steps, the best more.

    Every kernel takes part with its best warps. None is excluded for its cost under the identity, since a kernel shows
    its quality only after the columns are weighted.
    """
    counts: dict[type, int] = {}
    first: list[Start] = []
    for start in sorted((start for start in begun if "ard" in start.metrics), key=lambda start: start.plan.cost):
        kind = type(start.plan.setting.kernel)
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= breadth.warps:
            first.append(start)

    def a_few_steps(start: Start) -> list[tuple[Start, Iterate]]:
        if search.deadline.is_over(METRICS_UNTIL):
            return []
        Z = table.warped(start.plan.setting.warp)
        return [(start, by_evidence(search, start.plan.iterates[0], table, Z, FIRST_STEPS))]

    def to_the_end(pair: tuple[Start, Iterate]) -> tuple[Start, Plan]:
        (start, iterate), Z = pair, table.warped(pair[0].plan.setting.warp)
        iterate = by_evidence(search, iterate, table, Z, ARD_STEPS - FIRST_STEPS)
        last = tuned(iterate.kernel, iterate.ridge, [(table, Z)], search.fitter, search.freedom)
        setting = start.plan.setting._replace(metric="ard", steps=1)
        return start, Plan(setting, [*start.plan.iterates, last])

    followed = [pair for found in in_parallel(a_few_steps, first, search.n_jobs) for pair in found]
    followed.sort(key=lambda pair: pair[1].cost)
    # The best plan of every kernel precedes the second of any: after few steps, kernels cannot yet be compared.
    kinds = [type(start.plan.setting.kernel) for start, _ in followed]
    is_first = [kind not in kinds[:i] for i, kind in enumerate(kinds)]
    order = sorted(range(len(followed)), key=lambda i: not is_first[i])
    return in_parallel(to_the_end, [followed[i] for i in order[: breadth.leaders]], search.n_jobs)


def by_evidence(search: Search, iterate: Iterate, table: Table, Z: Tensor, steps: int) -> Iterate:
    """Return an iterate whose length scales, one for each column, have climbed the evidence by some more steps."""
    floor, out_of_time = search.fitter.smallest_ridge, search.deadline.is_over
    return with_length_scales(
        iterate, table, Z, noise_floor=floor, freedom=search.freedom, steps=steps, out_of_time=out_of_time
    )


def with_gradients(search: Search, plan: Plan, metric: str, table: Table) -> list[Plan]:
    """Return plans that continue one under the identity by gradient outer products: one plan for each step."""
    Z, iterates, plans = table.warped(plan.setting.warp), plan.iterates, []
    for step in range(1, search.n_iter + 1):
        kernel = advanced(iterates[-1], table, Z, metric)
        iterates = [*iterates, tuned(kernel, iterates[-1].ridge, [(table, Z)], search.fitter, search.freedom)]
        if step == search.n_iter or not search.last_iterate:
            plans.append(Plan(plan.setting._replace(metric=metric, steps=step), iterates))
    return plans


def with_warps_by_column(search: Search, plans: Sequence[Plan], table: Table) -> list[Plan]:
    """Return the best plan repeated with a warp for each column; an empty list if one warp is best for all columns."""
    able = [plan for plan in plans if plan.iterates[-1].kernel.common_metric() is not None]
    if not able:
        return []
    leader = min(able, key=lambda plan: plan.cost)
    setting, last = leader.setting, leader.iterates[-1]
    warp = warp_by_column(last, setting.warp, table, search.fitter)
    if warp == setting.warp:
        return []
    Z, first = table.warped(warp), leader.iterates[0]
    first = tuned(first.kernel, first.ridge, [(table, Z)], search.fitter, search.freedom)
    begun = Plan(setting._replace(warp=warp, metric="identity", steps=0), [first])
    if setting.metric == "identity":
        return [begun]
    if setting.metric != "ard":
        return with_gradients(search, begun, setting.metric, table)
    found = by_evidence(search, last, table, Z, ARD_STEPS - FIRST_STEPS)
    last = tuned(found.kernel, found.ridge, [(table, Z)], search.fitter, search.freedom)
    return [Plan(setting._replace(warp=warp), [first, last])]
