"""The verdict in three sentences, on planted cases: good, useless, too good to be true, and what lies between."""

import numpy as np
import pandas as pd
import pytest

from mercer.app.projects import TablePrediction
from mercer.app.report.verdict import verdict_of
from mercer.app.report.words import significant
from tests.app.projects.test_table_prediction import SIMPLE

KINDS = ("good", "useless", "too good to be true", "made from the target")


def planted(case, n=200, seed=0):
    """A table whose target follows from two columns, from none, is given away by one, or is made of two."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n, 4)), columns=["dose", "age", "weight", "height"])
    noise = random.normal(size=n)
    if case == "good":
        target = 3.0 * frame["dose"] + 2.0 * np.sin(2.0 * frame["age"]) + 0.5 * noise
    elif case == "useless":
        target = noise
    elif case == "too good to be true":
        target = frame["dose"] + noise
        frame["settled"] = 1.2 * target + 0.02 * random.normal(size=n)
    else:  # no column gives it away alone
        target = frame["dose"] + frame["weight"]
    return frame.assign(effect=target)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("case", "task"),
    # Classes of a sum are as hard to tell near the border as any.
    [*((case, "regression") for case in KINDS), *((case, "classification") for case in KINDS[:3])],
)
def test_planted_cases(case, task, seed):
    frame = planted(case, seed=seed)
    if task == "classification":
        frame["effect"] = np.where(frame["effect"] > frame["effect"].median(), "up", "down")
    workflow = TablePrediction("rfm", options=SIMPLE, test_size=0.3, random_state=seed).fit(frame, "effect")
    verdict = verdict_of(workflow)
    expected = "too good to be true" if case == "made from the target" else case
    assert verdict.kind == expected
    assert verdict.good.startswith("On 60 rows left out")
    main = "rmse" if task == "regression" else "accuracy"
    shown = significant(workflow.scores_[0][main]) if main == "rmse" else f"{100 * workflow.scores_[0][main]:.1f}%"
    assert shown in verdict.good
    assert ("beats a guess" in verdict.against) == (case != "useless")
    if case == "good":
        assert verdict.trust.startswith("It may be trusted for rows like these: it was scored on rows drawn at random")
    elif case == "useless":
        assert verdict.trust.startswith("Do not use it")
    elif case == "too good to be true":
        assert "too good to be true" in verdict.trust
        assert "'settled'" in verdict.trust
    else:
        assert "measured data are rarely predicted without error" in verdict.trust


def test_a_simple_model_that_does_better_is_recommended():
    workflow = TablePrediction(options=SIMPLE, random_state=0).fit(planted("good"), "effect")
    workflow.compared_with_ |= {"baseline": "ridge regression", "better_by": -0.4, "low": -0.5, "high": -0.3}
    verdict = verdict_of(workflow)
    assert verdict.kind == "no better than a simple model"
    assert "but ridge regression is better by 0.400 in RMSE" in verdict.against
    assert verdict.trust.startswith("Take ridge regression instead")


def test_a_gain_that_may_be_chance_is_not_called_useless():
    workflow = TablePrediction(options=SIMPLE, random_state=0).fit(planted("good"), "effect")
    guess = workflow.scores_[1]
    for score, own, better_by, kind in (
        ("rmse", guess["rmse"], 0.2 * guess["rmse"], "not known"),
        ("rmse", guess["rmse"], 0.05 * guess["rmse"], "useless"),
        ("r2", 0.0, 0.2, "not known"),
        ("r2", 0.0, 0.05, "useless"),
    ):
        guess[score] = own
        workflow.compared_with_guess_ |= {"score": score, "better_by": better_by, "low": -0.1, "high": 1.0}
        verdict = verdict_of(workflow)
        assert verdict.kind == kind
        assert ("they are too few to be sure" in verdict.trust) == (kind == "not known")


def test_too_few_rows_and_none_at_all():
    frame = planted("good", n=60)
    few = verdict_of(TablePrediction(options=SIMPLE, random_state=0).fit(frame, "effect"))
    assert few.trust == "Trust it with care: 12 rows left out are few, and its score is uncertain."
    none = verdict_of(TablePrediction(options=SIMPLE, test_size=0.0, random_state=0).fit(frame, "effect"))
    assert (none.kind, none.trust[:29]) == ("not known", "Do not trust it before it has")
    least = verdict_of(TablePrediction(options=SIMPLE, test_size=0.1, random_state=0).fit(frame, "effect"))
    assert least.kind == "not known"
    assert "Too few rows were left out to compare" in least.against


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (21.631, "21.6"), (267.04, "267"), (1234.6, "1230"), (123456.0, "123,000"), (0.00123456, "0.00123"),
     (-0.5, "-0.500"), (9.996, "10.0"), (None, "–"), (float("nan"), "–"), (1e-9, "1e-09"), (2.34e15, "2.34e+15")],
)  # fmt: skip
def test_three_digits_that_count(value, text):
    assert significant(value) == text


def test_intervals_that_are_too_narrow_are_spoken_of():
    workflow = TablePrediction(options=SIMPLE, random_state=0).fit(planted("good"), "effect")
    for share, words in ((0.6, "hold only 60.0% of them"), (0.9, "hold 90.0% of them"), (1.0, "hold 90.0% of them")):
        workflow.scores_[0]["coverage"] = share
        expected = words if share < 1.0 else "hold 100.0%"
        assert expected in verdict_of(workflow).trust
