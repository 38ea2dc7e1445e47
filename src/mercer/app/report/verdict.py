"""The verdict on a fit in three sentences: how good the model is, against what, and whether it may be trusted."""

from typing import Any, NamedTuple

from mercer.app.projects import TablePrediction
from mercer.app.projects.metrics_of_draws import HIGHER_IS_BETTER
from mercer.app.report.words import HEADINGS, count, listed, percent, significant

# With fewer rows left out than this, the verdict says that they are few.
FEW_ROWS = 30
# Measured data have errors. A score that is better than these is suspected to come from a leak.
GOOD_R2, GOOD_ACCURACY, GOOD_LOG_LOSS = 0.999, 0.999, 0.01
# 90 % intervals are called too narrow or too wide if their coverage is off by more than COVERAGE_OFF plus this many
# standard deviations of chance.
COVERAGE_OFF, DEVIATIONS = 0.03, 2.0
# A guess counts as beaten only if its error is lowered by at least the share LEAST_GAIN. A model whose gain is at least
# NOT_USELESS, but may be due to chance, is not called useless: too few rows were left out to tell.
LEAST_GAIN, NOT_USELESS = 0.01, 0.1


class Verdict(NamedTuple):
    """The verdict on a fit.

    Attributes
    ----------
    kind : {"good", "no better than a simple model", "useless", "too good to be true", "not known"}
    good, against, trust : str
        One text each: how good the model is, against what, and whether to trust it.
    """

    kind: str
    good: str
    against: str
    trust: str


def verdict_of(workflow: TablePrediction) -> Verdict:
    """Return the verdict on a fitted workflow."""
    if not workflow.scores_:
        return Verdict(
            "not known",
            f"How well {workflow.target_} is predicted is not known: no rows were left out to score on.",
            "It was compared with nothing.",
            "Do not trust it before it has been scored: fit with a --test-size above 0.",
        )
    kind = _kind(workflow)
    return Verdict(kind, _good(workflow), _against(workflow), _trust(workflow, kind))


def _kind(workflow: TablePrediction) -> str:
    guess, best = workflow.compared_with_guess_, workflow.compared_with_
    is_better = _guess_is_beaten(workflow)
    if is_better and (_leaks(workflow) or any(_has_no_error(workflow, entry) for entry in workflow.scores_)):
        return "too good to be true"
    if not is_better:
        return "useless" if guess and _gain_over_guess(workflow) < NOT_USELESS else "not known"
    return "no better than a simple model" if best and best["high"] < 0 else "good"


def _guess_is_beaten(workflow: TablePrediction) -> bool:
    """Return whether the model beats a guess by more than chance explains, and by at least a hundredth of its error."""
    guess = workflow.compared_with_guess_
    return bool(guess) and guess["low"] > 0 and _gain_over_guess(workflow) >= LEAST_GAIN


def _gain_over_guess(workflow: TablePrediction) -> float:
    """Return how much the model is better than a guess, as a share of the guess's error (or of 1 minus its score)."""
    guess = workflow.compared_with_guess_
    theirs = next(entry[guess["score"]] for entry in workflow.scores_ if entry["name"] == guess["baseline"])
    error = 1.0 - theirs if guess["score"] in HIGHER_IS_BETTER else abs(theirs)
    return float(guess["better_by"] / max(error, 1e-300))


def _leaks(workflow: TablePrediction) -> list[str]:
    return [finding["column"] for finding in workflow.findings_ if finding["kind"] == "leak"]


def _has_no_error(workflow: TablePrediction, entry: dict[str, Any]) -> bool:
    """Return whether the score of a model, simple ones included, is better than measured data ordinarily allow."""
    if workflow.n_test_ < FEW_ROWS:
        return False
    if workflow.task_ == "regression":
        return entry["r2"] is not None and entry["r2"] >= GOOD_R2
    return entry["accuracy"] >= GOOD_ACCURACY and entry["log_loss"] <= GOOD_LOG_LOSS


def _good(workflow: TablePrediction) -> str:
    own, where = workflow.scores_[0], f"On {count(workflow.n_test_, 'row')} left out of the fit"
    if workflow.task_ == "classification":
        said = (
            f"{where}, the model names the right class for {percent(own['accuracy'])}"
            f"{_between(workflow, 'accuracy', percent)}"
        )
        return said + (f"; its AUC is {significant(own['auc'])}." if own.get("auc") is not None else ".")
    unit = workflow.readings_[workflow.target_]["unit"]
    off = f"{significant(own['mae'])} {unit}".strip()
    said = f"{where}, the model's predictions of {workflow.target_} are off by {off} on average"
    if own["r2"] is not None:
        shares = f"{percent(max(own['r2'], 0.0))} of the differences between rows"
        said += f", and explain {shares}" if own["r2"] > 0 else ", and explain none of the differences between rows"
    return f"{said} (RMSE {significant(own['rmse'])}{_between(workflow, 'rmse', significant, ', ')})."


def _between(workflow: TablePrediction, name: str, text: Any, before: str = " (") -> str:
    """Return the interval of a score in words; "" if there is none."""
    if name not in workflow.intervals_:
        return ""
    low, high = (text(end) for end in workflow.intervals_[name])
    return f"{before}90% interval {low} to {high}" + (")" if before.endswith("(") else "")


def _against(workflow: TablePrediction) -> str:
    guess, best = workflow.compared_with_guess_, workflow.compared_with_
    if not guess or not best:
        return "Too few rows were left out to compare it with simple models."
    name = guess["score"]
    entries = {entry["name"]: entry for entry in workflow.scores_}
    own, theirs = workflow.scores_[0][name], entries[guess["baseline"]][name]
    beaten = "cannot be told from" if guess["high"] >= 0 else "is worse than"
    beaten = "beats" if _guess_is_beaten(workflow) else beaten
    scores = f"{HEADINGS[name]} {significant(theirs)}; the model has {significant(own)}"
    said = f"It {beaten} a guess, the {guess['baseline']} ({scores})"
    if best["baseline"] == guess["baseline"]:
        return f"{said}; no simple model does better than that."
    difference = significant(abs(best["better_by"]))
    if best["low"] > 0:
        return f"{said}, and the best simple model, {best['baseline']}, by {difference} in {HEADINGS[name]}."
    if best["high"] < 0:
        return f"{said}, but {best['baseline']} is better by {difference} in {HEADINGS[name]}."
    return f"{said}, and is as good as the best simple model, {best['baseline']}, as far as these rows can tell."


def _trust(workflow: TablePrediction, kind: str) -> str:
    if kind == "useless":
        few = ""
        if workflow.n_test_ < FEW_ROWS:
            few = f" Only {count(workflow.n_test_, 'row')} were left out, so this may change with more."
        return f"Do not use it: nothing was learned that holds for rows it has not seen.{few}"
    if kind == "not known":
        if workflow.compared_with_guess_:
            return (
                "Do not trust it yet: on these rows it looks better than a guess, but they are too few to be sure. Fit "
                "with more rows, or with --repeats 5 to see the scores on other rows."
            )
        return "Do not trust the score yet: too few rows were left out."
    if kind == "too good to be true":
        names = _leaks(workflow)
        if names:
            column = "column" if len(names) == 1 else "columns"
            return (
                f"It is too good to be true: the {column} {listed([repr(name) for name in names])} may give the target "
                "away. If it is not known when you predict, leave it out with --ignore and fit again."
            )
        top = next(iter(workflow.importances_), None)
        look = f", beginning with {top!r}" if top is not None else ""
        return (
            "It looks too good to be true: measured data are rarely predicted without error. See whether a column is "
            f"made from the target or known only afterwards{look}, and leave such a column out with --ignore. If there "
            "is none, the rows left out were easy, and the score may stand."
        )
    if kind == "no better than a simple model":
        return f"Take {workflow.compared_with_['baseline']} instead: it is simpler and does better here."
    if workflow.n_test_ < FEW_ROWS:
        return f"Trust it with care: {count(workflow.n_test_, 'row')} left out are few, and its score is uncertain."
    return f"It may be trusted for rows like these: {_how_judged(workflow)}{_coverage(workflow)}."


def _how_judged(workflow: TablePrediction) -> str:
    kind, column = workflow.split_["kind"], workflow.split_["column"]
    if kind == "time":
        return "it was scored on rows later than those it has learned from"
    if kind == "group":
        return f"it was scored on groups of {column!r} that it has not seen"
    return "it was scored on rows drawn at random, so new ones must come as these did"


def _coverage(workflow: TablePrediction) -> str:
    """Return what the verdict says about the intervals; "" if there are none."""
    share, n = workflow.scores_[0].get("coverage"), workflow.n_test_
    if share is None:
        return ""
    chance = DEVIATIONS * (0.9 * 0.1 / n) ** 0.5
    if share < 0.9 - COVERAGE_OFF - chance:
        return f"; but its 90% intervals hold only {percent(share)} of them, so they are too narrow"
    if share > 0.9 + COVERAGE_OFF + chance:
        return f"; its 90% intervals hold {percent(share)} of them, so they are wider than needed"
    return f"; its 90% intervals hold {percent(share)} of them"
