"""The time limit of a whole fit, its phases and what is left, and what is kept when it is stopped."""

import numpy as np
import pytest

from mercer.app.projects import TablePrediction, table_prediction
from mercer.app.projects.stages import SCORING, Best, fit_all, fit_few, fit_part, name_of_scoring
from mercer.app.projects.table_estimators import make
from mercer.app.projects.watch import POWER, TRIAL_ROWS, Watch, rows_of_trial, seconds_of_fit
from mercer.exceptions import DataWarning
from tests.app.projects.test_table_prediction import NUMBERS, SIMPLE, flats


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time


def fits(clock, seconds, seen):
    """Return a fit that takes so many seconds a row and notes what it was given."""

    def fit(rows, limit):
        seen.append((len(rows), limit))
        clock.time += seconds * len(rows)
        return f"model of {len(rows)} rows"

    return fit


def test_a_watch_shares_out_what_is_left_and_says_so():
    clock, heard = Clock(), []
    watch = Watch(10.0, lambda phase, left: heard.append((phase, left)), clock)
    watch.begin("reading")
    clock.time += 4.0
    assert (watch.passed(), watch.left(), watch.share(0.5), watch.allows(6.0), watch.allows(6.1)) == (
        4.0,
        6.0,
        3.0,
        True,
        False,
    )
    watch.expect({"a": 3.0, "b": 2.0})
    watch.begin("a")
    watch.begin("b")
    clock.time += 5.0
    watch.expect({"c": 9.0})
    watch.begin("c")  # no more is left than the limit allows
    assert heard == [("reading", None), ("a", 5.0), ("b", 2.0), ("c", 1.0)]
    clock.time += 50.0
    assert watch.left() == 0.0
    assert watch.share(0.5) > 0.0  # a search is always begun
    endless = Watch(now=clock)
    assert (endless.left(), endless.share(0.5), endless.allows(1e9)) == (None, None, True)


def test_a_trial_of_few_rows_says_how_long_all_will_take():
    clock, heard, seen = Clock(), [], []
    watch = Watch(None, lambda phase, left: heard.append((phase, left)), clock)
    y, train = np.arange(10_000.0), np.arange(8000)
    best = fit_few(fits(clock, 0.01, seen), y, train, 10, watch, is_class=False)
    assert (best.model, len(best.rows), best.seconds) == (f"model of {TRIAL_ROWS} rows", TRIAL_ROWS, pytest.approx(2.0))
    best = fit_part(fits(clock, 0.01, seen), best, train, len(y), watch)
    watch.begin(name_of_scoring(2000))
    best = fit_all(fits(clock, 0.01, seen), best, len(y), watch)
    assert [n for n, _ in seen] == [TRIAL_ROWS, 8000, 10_000]
    part = seconds_of_fit(2.0, TRIAL_ROWS, 8000)
    assert part == pytest.approx(2.0 * 40**POWER)
    assert [phase for phase, _ in heard] == [
        f"a trial with {TRIAL_ROWS} rows",
        "learning from 8,000 rows",
        "scoring on 2,000 rows",
        "learning from all 10,000 rows",
    ]
    assert heard[0][1] is None
    assert heard[1][1] == pytest.approx(part + SCORING * part + part * 1.25**POWER)
    # The fit that was scored took 80 s, and says more than the trial.
    assert heard[2][1] == pytest.approx(80 * SCORING + 80 * 1.25**POWER)
    assert heard[3][1] == pytest.approx(80 * 1.25**POWER)
    assert rows_of_trial(150, 5) == 0
    assert rows_of_trial(40, 10_000) == 10
    # A class that few rows lack is none to be scored without.
    rare = np.arange(10_000) == 5
    assert fit_few(fits(clock, 0.01, seen), rare, train, 10, Watch(now=clock), is_class=True).model is None


def test_where_too_little_time_is_left_the_scored_model_is_kept():
    clock, seen = Clock(), []
    watch = Watch(10.0, now=clock)
    best = fit_part(fits(clock, 0.08, seen), Best(), np.arange(80), 100, watch)
    with pytest.warns(DataWarning, match="the time limit was reached: the best model so far is kept, .* 80 of 100"):
        best = fit_all(fits(clock, 0.08, seen), best, 100, watch)
    assert (best.model, len(best.rows), best.stopped) == ("model of 80 rows", 80, "time limit")
    assert seen == [(80, 4.0)]
    # With time enough the last fit gets what is left, but for a tenth.
    watch, seen = Watch(20.0, now=clock), []
    best = fit_part(fits(clock, 0.08, seen), Best(), np.arange(80), 100, watch)
    assert fit_all(fits(clock, 0.08, seen), best, 100, watch).stopped == ""
    assert seen == [(80, 8.0), (100, pytest.approx(0.9 * (20.0 - 6.4)))]


@pytest.mark.parametrize("stop_at", [1, 2, 3])
def test_ctrl_c_keeps_the_best_so_far(monkeypatch, stop_at, tmp_path):
    """A trial of 30 rows, then 96, then 120: the fit that is stopped leaves the one before it."""
    count = []

    def stop(name, task, n_rows, seed, options, time_limit):
        count.append(n_rows)
        if len(count) == stop_at:
            raise KeyboardInterrupt
        return make(name, task, n_rows, seed, options, time_limit)

    monkeypatch.setattr(table_prediction, "make", stop)
    monkeypatch.setattr("mercer.app.projects.watch.TRIAL_VALUES", 100)
    monkeypatch.setattr("mercer.app.projects.watch.TRIAL_ROWS", 30)
    frame, workflow = flats(120), TablePrediction(options=SIMPLE, **NUMBERS)
    if stop_at == 1:
        with pytest.raises(KeyboardInterrupt):
            workflow.fit(frame, "rent")
        return
    learned = {2: 24, 3: 96}[stop_at]
    with pytest.warns(DataWarning, match=f"stopped by Ctrl-C: the best model so far is kept, .* {learned} of 120 rows"):
        workflow.fit(frame, "rent")
    assert (workflow.stopped_, workflow.n_learned_, workflow.n_train_, workflow.n_test_) == (
        "Ctrl-C",
        learned,
        learned,
        24,
    )
    # The scores are of the model that is kept.
    expected = workflow.model_.predict(frame.iloc[workflow.held_out_["rows"]][workflow.columns_])
    np.testing.assert_allclose(workflow.held_out_["predicted"], expected)
    import mercer
    from mercer.app.report import build_report

    mercer.save(workflow, tmp_path / "m.mercer")
    assert "<h1" in build_report(mercer.load(tmp_path / "m.mercer"), frame)
