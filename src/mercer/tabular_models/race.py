"""Which setting a table wants: many are tried on few rows, the best are judged on rows that had no part in them.

The screen compares all settings on a few hundred rows by the cost of their own rows, which is quick and flatters those
that learn much. So the finalists learn their metric anew on a part of the rows, and are judged on the others: with the
metric fixed, a leave-one-out prediction is honest, and it is known in closed form.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from mercer.linalg import in_parallel, ridge_leave_one_out, threads_for
from mercer.tabular_models.fitters import Fitter, LeftOut, is_clearly_better
from mercer.tabular_models.metric_learning import ARD_STEPS, advanced, relearned, with_length_scales
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Deadline, Table
from mercer.tabular_models.tuning import Freedom, Iterate, tuned
from mercer.tabular_models.warp_choice import warp_by_column

# Rows on which all settings are tried, and rows on which the finalists are judged.
SCREEN_ROWS, JUDGE_ROWS = 400, 1500
# Pairs of a kernel and a warp that learn gradient outer products on the screen, and settings that are judged.
LEADERS, FINALISTS = 3, 6
# Steps that length scales follow the evidence before the best go on.
FIRST_STEPS = 5
# Standard errors by which a setting must be behind the best to leave the race.
FAR_BEHIND = 4.0
FIRST_RIDGE = 1e-2
# Up to so many rows, metrics are learned anew in so many folds; beyond, on one half for the other half.
FOLDS = ((400, 5), (700, 3))


class Plan(NamedTuple):
    """A setting with the bandwidth and the ridge of every step on the way to its metric."""

    setting: Setting
    iterates: list[Iterate]

    @property
    def cost(self) -> float:
        """How bad the last step was on the rows of the screen, which it was tuned on."""
        return self.iterates[-1].cost


class Judgment(NamedTuple):
    """A kernel and a ridge whose metric has not seen the rows that it is judged on.

    Attributes
    ----------
    iterate : Iterate
    rows : ndarray of shape (m,)
        The rows of the table that a machine of them stands on.
    judged : ndarray of int
        Which of those had no part in the metric.
    """

    iterate: Iterate
    rows: np.ndarray
    judged: np.ndarray


class Trial(NamedTuple):
    """A plan and its predictions of rows that had no part in its metric.

    Attributes
    ----------
    plan : Plan
    left_out : LeftOut
    scores : ndarray of shape (n,)
        How good each prediction is.
    rows : ndarray of shape (n,)
        Which rows of the table of the race they are.
    judgments : list of Judgment
        The machines that the predictions are of.
    """

    plan: Plan
    left_out: LeftOut
    scores: np.ndarray
    rows: np.ndarray
    judgments: list[Judgment]

    @property
    def score(self) -> float:
        """The mean score of the rows."""
        return float(self.left_out.weights @ self.scores / self.left_out.weights.sum())


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
    """

    fitter: Fitter
    freedom: Freedom
    ridge: float
    n_iter: int
    last_iterate: bool
    deadline: Deadline
    n_jobs: int | None = None


class Breadth(NamedTuple):
    """How many settings learn length scales on the screen: so many warps of each kernel begin, so many of all go on."""

    warps: int
    leaders: int


# Few rows cannot tell many settings apart. Of many rows, those of the screen lie too far from each other to say which
# kernel and warp is right: all of them learn length scales, and are judged where rows are dense.
USUAL, OF_MANY_ROWS = Breadth(2, 4), Breadth(3, 12)


def screen(
    search: Search,
    table: Table,
    identities: Sequence[Setting],
    metrics: Sequence[Sequence[str]],
    breadth: Breadth = USUAL,
) -> list[Plan]:
    """Try settings on a few rows, in three rounds: the identity, length scales by evidence, gradient outer products.

    Parameters
    ----------
    search : Search
    table : Table
        The rows of the screen.
    identities : sequence of Setting
        A kernel and a warp each.
    metrics : sequence of sequences of str
        Which metrics each of them may learn.
    breadth : Breadth

    Returns
    -------
    list of Plan, the best on these rows first
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
            return [] if search.deadline.is_over(0.35) else with_gradients(search, task[0].plan, task[1], table)

        plans += [plan for found in in_parallel(followed, wanted, search.n_jobs) for plan in found]
        if len({start.plan.setting.warp for start in begun}) > 1 and not search.deadline.is_over(0.35):
            plans += with_warps_by_column(search, plans, table)
    return sorted(plans, key=lambda plan: plan.cost)


class Start(NamedTuple):
    """A plan under the identity, and the metrics that suit its kernel."""

    plan: Plan
    metrics: Sequence[str]


def under_the_identity(
    search: Search, table: Table, identities: Sequence[Setting], metrics: Sequence[Sequence[str]]
) -> list[Start]:
    """Return every kernel and warp with its bandwidth and ridge, as many as there is time for."""
    warps = list(dict.fromkeys(setting.warp for setting in identities))

    def of_warp(warp: Any) -> list[Start]:
        Z, ridge = table.warped(warp), search.ridge
        found: list[Start] = []
        for setting, suitable in zip(identities, metrics, strict=True):
            if setting.warp != warp:
                continue
            if search.deadline.is_over(0.2) and (found or warp != warps[0]):
                break
            # The ridge of the last kernel is nearly right for the next under the same warp.
            first = tuned(setting.kernel.resolved(Z, 0), ridge, [(table, Z)], search.fitter, search.freedom)
            ridge = first.ridge if search.freedom.ridge else search.ridge
            found.append(Start(Plan(setting, [first]), suitable))
        return found

    return [start for found in in_parallel(of_warp, warps, search.n_jobs) for start in found]


def with_evidence(search: Search, begun: Sequence[Start], table: Table, breadth: Breadth) -> list[tuple[Start, Plan]]:
    """Return the plans with a length scale a column by evidence: many follow it for a few steps, the best go on.

    The best warps of every kernel take part. A kernel shows what it can do only once its columns are weighed, so that
    none is ruled out by the identity.
    """
    counts: dict[type, int] = {}
    first: list[Start] = []
    for start in sorted((start for start in begun if "ard" in start.metrics), key=lambda start: start.plan.cost):
        kind = type(start.plan.setting.kernel)
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= breadth.warps:
            first.append(start)

    def a_few_steps(start: Start) -> list[tuple[Start, Iterate]]:
        if search.deadline.is_over(0.35):
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
    # The best of every kernel goes on before the second of any: after few steps kernels do not compare.
    kinds = [type(start.plan.setting.kernel) for start, _ in followed]
    is_first = [kind not in kinds[:i] for i, kind in enumerate(kinds)]
    order = sorted(range(len(followed)), key=lambda i: not is_first[i])
    return in_parallel(to_the_end, [followed[i] for i in order[: breadth.leaders]], search.n_jobs)


def by_evidence(search: Search, iterate: Iterate, table: Table, Z: Tensor, steps: int) -> Iterate:
    """Return an iterate with its length scales, one a column, some steps further up the evidence."""
    floor = search.fitter.smallest_ridge
    return with_length_scales(iterate, table, Z, noise_floor=floor, freedom=search.freedom, steps=steps)


def with_gradients(search: Search, plan: Plan, metric: str, table: Table) -> list[Plan]:
    """Return the plans that go on from one under the identity by gradient outer products: one for every step."""
    Z, iterates, plans = table.warped(plan.setting.warp), plan.iterates, []
    for step in range(1, search.n_iter + 1):
        kernel = advanced(iterates[-1], table, Z, metric)
        iterates = [*iterates, tuned(kernel, iterates[-1].ridge, [(table, Z)], search.fitter, search.freedom)]
        if step == search.n_iter or not search.last_iterate:
            plans.append(Plan(plan.setting._replace(metric=metric, steps=step), iterates))
    return plans


def with_warps_by_column(search: Search, plans: Sequence[Plan], table: Table) -> list[Plan]:
    """Return the best plan with a warp for each column, begun anew under those warps; nothing if one serves all."""
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


def finalists(plans: Sequence[Plan], most: int = FINALISTS) -> list[Plan]:
    """Return the best plans, the best of every way to learn a metric among them.

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
    """Return the finalists, and the best plan of every kernel under every warp: at most so many.

    Which kernel and warp is right changes with the number of rows: rough ones show what they can do where rows are
    dense.
    """
    chosen = finalists(plans)
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


Split = tuple[np.ndarray, np.ndarray]
"""Rows that metrics are learned on, and rows that they are judged on."""


def splits(n: int) -> list[Split]:
    """Return which rows metrics are learned on and which rows they are judged on, for n rows in random order."""
    folds = next((folds for most, folds in FOLDS if n <= most), None)
    if folds is None:
        half = n // 2
        return [(np.arange(half), np.arange(half, n))]
    if n == 1:
        return [(np.arange(1), np.arange(1))]
    folds = min(folds, n)
    place = np.arange(n) % folds
    return [(np.flatnonzero(place != fold), np.flatnonzero(place == fold)) for fold in range(folds)]


def judged(search: Search, plan: Plan, table: Table, split: tuple[np.ndarray, np.ndarray]) -> tuple[LeftOut, Judgment]:
    """Predict rows that had no part in the metric of a plan.

    The metric is learned anew on one part of the rows. Under that metric the machine of all rows is solved, and its
    leave-one-out predictions of the other part are returned.
    """
    learn, judge = split
    Z, part, floor = table.warped(plan.setting.warp), table.take(learn), search.fitter.smallest_ridge
    last = relearned(plan.iterates, plan.setting.metric, part, Z[learn], floor, search.freedom)[-1]
    if len(learn) > 2 * SCREEN_ROWS:
        last = tuned(last.kernel, last.ridge, [(part, Z[learn])], search.fitter, search.freedom)
    solution = ridge_leave_one_out(last.kernel.matrix(Z), table.y, last.ridge, table.weights)
    return LeftOut.from_solution(solution, table).rows(judge), Judgment(last, np.arange(len(table)), judge)


class Running(NamedTuple):
    """A plan in the race, with its predictions so far."""

    plan: Plan
    parts: list[LeftOut]
    judgments: list[Judgment]


def race(search: Search, table: Table, plans: Sequence[Plan]) -> list[Trial]:
    """Judge plans on rows that had no part in their metrics; return those that reached the end, the best first.

    After each split, plans that are far behind the best leave: they would have no share in an average.
    """
    running = [Running(plan, [], []) for plan in plans]
    judged_rows: list[np.ndarray] = []
    with threads_for(len(table)):
        for split in splits(len(table)):
            if judged_rows and search.deadline.is_over(0.6):
                break
            running = near_the_best(search.fitter, over_a_split(search, table, running, split))
            judged_rows.append(split[1])
    rows = np.concatenate(judged_rows)
    trials = []
    for plan, parts, judgments in running:
        left_out = LeftOut.joined(parts).rows(np.argsort(rows))
        trials.append(Trial(plan, left_out, search.fitter.row_scores(left_out), np.sort(rows), judgments))
    return sorted(trials, key=lambda trial: -trial.score)


def over_a_split(search: Search, table: Table, running: list[Running], split: Split) -> list[Running]:
    """Return the plans with their predictions of one more part of the rows: the first, and others while time lasts."""

    def gone_on(place: int) -> list[Running]:
        if place > 0 and search.deadline.is_over(0.7):
            return []
        plan, parts, judgments = running[place]
        part, judgment = judged(search, plan, table, split)
        return [Running(plan, [*parts, part], [*judgments, judgment])]

    found = in_parallel(gone_on, range(len(running)), search.n_jobs)
    return [entry for entries in found for entry in entries]


def near_the_best(fitter: Fitter, running: list[Running]) -> list[Running]:
    """Return the plans whose scores so far are within some standard errors of the best, paired row by row."""
    if len(running) == 1:
        return running
    joined = [LeftOut.joined(entry.parts) for entry in running]
    scores = [fitter.row_scores(left_out) for left_out in joined]
    weights = joined[0].weights
    best = scores[int(np.argmax([weights @ score for score in scores]))]
    return [
        entry
        for entry, score in zip(running, scores, strict=True)
        if not is_clearly_better(best, score, weights, errors=FAR_BEHIND)
    ]


def simplest_of_the_best(trials: Sequence[Trial]) -> Trial:
    """Return the simplest trial that the best one does not clearly beat on the judged rows."""
    best = max(trials, key=lambda trial: trial.score)
    near = [
        trial
        for trial in trials
        if trial is best or not is_clearly_better(best.scores, trial.scores, best.left_out.weights)
    ]
    return min(near, key=lambda trial: trial.plan.setting.complexity())


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
