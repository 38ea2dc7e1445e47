"""Which kernel, warp, metric and iterate a table wants: many recipes tried on few rows, the best of them on more."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.kernels import Kernel
from mercer.selection import Candidate, best
from mercer.tabular_models.recursion import METRICS, recursive_features
from mercer.tabular_models.table import Clock, Table

# All recipes are tried on this many rows: enough to tell good from bad, quick enough to try all.
SCREEN_ROWS = 300
# The finalists are tuned on at most this many rows.
TUNE_ROWS = 1500

Fit = Callable[[Kernel, Table, Any], Candidate]
"""(kernel, table, warp) -> the kernel with its bandwidth and ridge chosen, fitted and scored."""


class Recipe(NamedTuple):
    """One way to set a model up; `warp` is one name, or one a column."""

    kernel: Kernel
    warp: Any
    metric: str

    def named(self) -> dict[str, Any]:
        """Return the recipe in words."""
        warp = self.warp if isinstance(self.warp, str) else ",".join(self.warp)
        return {"kernel": type(self.kernel).__name__, "warp": warp, "metric": self.metric}


def recipes(kernels: Sequence[Kernel], warps: Sequence[Any], metrics: Sequence[str]) -> list[Recipe]:
    """Return all combinations, the simplest first: on equal scores the first wins."""
    return [Recipe(k, w, m) for m, w, k in itertools.product(metrics, warps, kernels)]


def distinct_warps(table: Table, warps: Sequence[str]) -> list[str]:
    """Return the warps that differ on this table: where no column can be bent, all are one."""
    kept: list[str] = []
    seen: set[tuple[str, ...]] = set()
    for warp in warps:
        made = tuple(table.columns(warp).warps_)
        if made not in seen:
            seen.add(made)
            kept.append(warp)
    return kept


def try_recipe(
    recipe: Recipe,
    table: Table,
    fit: Fit,
    *,
    n_iter: int,
    working_memory: float,
    clock: Clock,
    start: Kernel | None = None,
) -> list[Candidate]:
    """Return the candidates of one recipe: every iterate of the recursion, or the one fit of any other metric.

    `start` is the kernel to begin from, such as one that was tuned on fewer rows.
    """
    Z = table.warped(recipe.warp)
    kernel = start if start is not None else recipe.kernel.resolved(Z, 0)
    found = []
    if recipe.metric in METRICS:
        iterates: Iterable[Candidate] = recursive_features(
            kernel,
            Z,
            lambda k: fit(k, table, recipe.warp),
            metric=recipe.metric,
            n_iter=n_iter,
            weights=table.weights,
            working_memory=working_memory,
        )
    else:
        iterates = [fit(kernel, table, recipe.warp)]
    for candidate in iterates:
        candidate.about.update(recipe=recipe)
        found.append(candidate)
        if clock.is_over():
            break
    return found


def finalists(candidates: Sequence[Candidate], n_finalists: int) -> list[Candidate]:
    """Return the best candidate of each of the best recipes, the best of every metric among them.

    A metric with many parameters needs rows to show what it can do: few rows alone must not rule it out.
    """
    by_recipe: dict[int, Candidate] = {}
    for candidate in sorted(candidates, key=lambda c: -c.score):
        by_recipe.setdefault(id(candidate.about["recipe"]), candidate)
    ranked = sorted(by_recipe.values(), key=lambda c: -c.score)
    chosen = ranked[:n_finalists]
    for metric in dict.fromkeys(c.about["recipe"].metric for c in ranked):
        if all(c.about["recipe"].metric != metric for c in chosen):
            chosen.append(next(c for c in ranked if c.about["recipe"].metric == metric))
    return chosen


def refine_warp(candidate: Candidate, table: Table, warps: Sequence[str], fit: Fit, clock: Clock) -> Candidate:
    """Return the candidate with the warp of each column chosen for itself, column by column, by its score.

    The kernel stays as it is: columns are standardised under every warp, so that its length scales still fit.
    """
    recipe: Recipe = candidate.about["recipe"]
    d = table.X.shape[1]
    current = [recipe.warp] * d if isinstance(recipe.warp, str) else list(recipe.warp)
    leader = candidate
    for k, warp in itertools.product(range(d), warps):
        if warp == current[k] or table.columns(warp).warps_[k] != warp:
            continue
        if clock.is_over():
            break
        tried = [*current[:k], warp, *current[k + 1 :]]
        challenger = fit(leader.kernel_used(), table, tuple(tried))
        if is_clearly_better(challenger, leader, table):
            leader, current = challenger, tried
    if leader is not candidate:
        made = recipe._replace(warp=tuple(current))
        leader.about.update(recipe=made, iterate=candidate.about.get("iterate", 0))
    return leader


def is_clearly_better(challenger: Candidate, leader: Candidate, table: Table) -> bool:
    """Whether the challenger's mean score is above the leader's by more than the standard error of their difference.

    Of many changes that are tried some look better by chance: those are not taken.
    """
    gains = challenger.about["row_scores"] - leader.about["row_scores"]
    weights = table.observations.weights
    mean = weights @ gains / weights.sum()
    error = np.sqrt(weights @ (gains - mean) ** 2 / weights.sum() / len(gains))
    return bool(mean > error)


def climb(evaluate: Callable[[float], Candidate], step: float = 2.0, most: int = 8) -> Candidate:
    """Return the best candidate over factors 1, step, 1/step, ..., following the better side while it gets better."""
    leader = evaluate(1.0)
    for direction in (step, 1.0 / step):
        factor, last = direction, leader
        for _ in range(most):
            candidate = evaluate(factor)
            if candidate.score <= last.score:
                break
            last = candidate
            factor *= direction
        if last is not leader:
            return best([leader, last])
    return leader


def history_entry(candidate: Candidate, n_rows: int) -> dict[str, Any]:
    """Return what is worth remembering of a candidate: plain values that can be saved."""
    recipe: Recipe = candidate.about["recipe"]
    bandwidths = [float(leaf.scale()) for leaf in candidate.kernel_used().leaves() if hasattr(leaf, "bandwidth")]  # type: ignore[attr-defined]
    return {
        **recipe.named(),
        "iterate": int(candidate.about.get("iterate", 0)),
        "bandwidth": bandwidths[0] if len(bandwidths) == 1 else bandwidths,
        "ridge": float(candidate.ridge),
        "score": float(candidate.score),
        "rows": int(n_rows),
    }
