"""Benchmarks of table models: made tables, fresh processes, journals, verdicts, and every command in its small size."""

import json
import os
import subprocess
import time
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from benchmarks import (
    bounds,
    busy_neighbor,
    contestants,
    distributions,
    fit_time,
    fresh_process,
    gp_classifier,
    importances,
    large_table,
    made_tables,
    table_models,
    time_limits,
    toys,
)
from benchmarks.__main__ import main
from benchmarks.journal import Journal


def statuses(claims):
    return [claim["status"] for claim in claims]


@pytest.fixture
def in_this_process(monkeypatch):
    """Calls in fresh processes are made here: the start of Python and torch takes longer than the small fits."""

    def call(module, function, /, *, default_threads=False, **arguments):
        answer = getattr(import_module(f"benchmarks.{module}"), function)(**json.loads(json.dumps(arguments)))
        return json.loads(json.dumps(answer))

    monkeypatch.setattr(fresh_process, "call", call)


def kept(folder, name):
    return json.loads((folder / f"{name}-quick.json").read_text())


# ---- made tables ----------------------------------------------------------------------------------------------------


def test_friedmans_function_is_that_of_its_paper():
    x = np.array([[0.5, 1.0, 0.0, 0.2, 0.4, 0.9, 0.3]])
    friedman = 10 * np.sin(np.pi * 0.5) + 20 * 0.25 + 10 * 0.2 + 5 * 0.4
    assert_allclose(made_tables.friedman(x), friedman)
    assert_allclose(made_tables.friedman_and_a_wave(x), friedman + np.sin(8 * 0.9) * 0.3)


def test_uniform_rows_have_unit_noise_and_fresh_rows_are_others():
    rows = made_tables.uniform_rows("friedman", 4000, 6, 3)
    again, fresh = (made_tables.uniform_rows("friedman", 4000, 6, 3, fresh=new) for new in (False, True))
    assert_array_equal(rows.X, again.X)
    assert_array_equal(rows.y, again.y)
    assert not np.isin(rows.X[:, 0], fresh.X[:, 0]).any()
    assert (rows.y - rows.truth).std() == pytest.approx(1.0, abs=0.05)
    assert rows.truth.std() == pytest.approx(4.9, abs=0.2)


def test_large_tables_are_never_in_double_precision():
    rows = made_tables.uniform_rows("friedman_and_a_wave", 50, 8, 0, dtype="float32")
    assert {part.dtype for part in rows} == {np.dtype("float32")}


@pytest.mark.parametrize("name", made_tables.TOYS)
def test_toys_have_unit_spread_and_a_tenth_of_noise(name):
    train, test = made_tables.toy_rows(name, 0)
    assert train.X.shape == (200, 15)
    assert len(test.truth) == 1000
    truth = np.concatenate([train.truth, test.truth])
    assert truth.std() == pytest.approx(1.0)
    assert np.concatenate([train.y, test.y]) - truth == pytest.approx(0.0, abs=0.6)
    assert (test.y - test.truth).std() == pytest.approx(0.1, rel=0.15)


# ---- processes, contestants, journals -------------------------------------------------------------------------------


def test_a_call_in_a_fresh_process_returns_its_answer_or_fails():
    assert fresh_process.call("made_tables", "rmse", prediction=[1.0, 3.0], truth=[1.0, 1.0]) == np.sqrt(2.0)
    with pytest.raises(subprocess.CalledProcessError):
        fresh_process.call("made_tables", "rmse", prediction=[1.0, 3.0])


def test_default_threads_hide_what_the_environment_says(monkeypatch):
    class Done:
        stdout = "a library prints this\n1\n"

    seen = []
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: seen.append(options["env"]) or Done())
    assert [fresh_process.call("toys", "fit", default_threads=default) for default in (False, True)] == [1, 1]
    assert ["OMP_NUM_THREADS" in environment for environment in seen] == [True, False]


def test_peers_that_are_not_installed_are_left_out_with_a_word(monkeypatch, capsys):
    monkeypatch.setattr(contestants, "find_spec", lambda package: None)
    assert contestants.installed(["RFMRegressor", "CatBoost"]) == ["RFMRegressor"]
    assert "not installed, and left out: CatBoost" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="unknown contestants \\['XGBoost'\\]"):
        contestants.installed(["XGBoost"])


def test_one_thread_is_for_the_block_alone():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with contestants.one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_fit_is_measured_with_its_table_and_judged_by_the_truth():
    found = contestants.fit_of(
        "RFMRegressor", "friedman", 200, 6, n_fresh=50, options={"kernel": "linear", "metric": "identity"}
    )
    fresh = made_tables.uniform_rows("friedman", 50, 6, 0, fresh=True)
    assert found["seconds"] > 0
    assert 0.3 * fresh.truth.std() < found["rmse"] < fresh.truth.std()


def test_a_journal_goes_on_after_a_line_that_was_cut_off(tmp_path, capsys):
    def measured(table, fold):
        return {"value": table * fold}

    def never(table, fold):
        raise AssertionError("it was there")

    journal = Journal(tmp_path / "new" / "j.jsonl", "table", "fold")
    assert journal.entry(measured, "{table} {value}", table=2, fold=3) == {"table": 2, "fold": 3, "value": 6}
    assert capsys.readouterr().out == "2 6\n"
    with journal.path.open("a") as file:
        file.write('{"table": 2, "fo')
    again = Journal(journal.path, "table", "fold")
    assert again.entry(never, "{value}", fold=3, table=2)["value"] == 6
    assert again.entry(measured, "{value}", table=2, fold=4)["value"] == 8
    assert set(Journal(journal.path, "table", "fold").entries) == {(2, 3), (2, 4)}


# ---- verdicts -------------------------------------------------------------------------------------------------------


def test_bounds_are_from_above_or_from_below_or_not_measured(capsys):
    claims = [
        bounds.verdict("low enough", 1.0, 1.0),
        bounds.verdict("too low", 0.7, at_least=0.8),
        bounds.verdict("no peer", bounds.ratio(1.0, None), 2.0),
        bounds.verdict("no number", float("nan"), at_least=0.8),
        bounds.verdict("nothing at all", 0.1, 0.0),
    ]
    assert statuses(claims) == ["held", "not held", "not measured", "not held", "not held"]
    bounds.print_claims(claims)
    assert "at least 0.8" in capsys.readouterr().out


def test_fit_times_go_by_medians_over_those_of_catboost():
    def fits(method, *seconds):
        common = {"method": method, "n": 200, "d": 10, "cpu_seconds": 1.0, "peak_mb": None, "rmse": 3.0}
        return [{**common, "seconds": each} for each in seconds]

    sizes = (fit_time.Size(200, 10, 1.0),)
    ours = fits("RFMRegressor", 1, 1, 9) + fits("GPRegressor", 2, 5, 2)
    found = fit_time.medians(ours + fits("CatBoost", 1, 1, 0.5))
    assert statuses(fit_time.judge(found, sizes)) == ["held", "not held"]
    assert found["GPRegressor", 200, 10]["peak_mb"] is None
    assert found["GPRegressor", 200, 10]["rmse"] == pytest.approx(3.0)
    assert statuses(fit_time.judge(fit_time.medians(ours), sizes)) == ["not measured"] * 2


def test_large_tables_are_judged_by_time_error_and_memory():
    ours = {"method": "RFMRegressor", "n": 9, "seconds": 40.0, "rmse": 0.2, "peak_mb": 4100.0}
    base = {"method": "CatBoost", "n": 9, "seconds": 10.0, "rmse": 0.1, "peak_mb": 9000.0}
    assert statuses(large_table.judge([ours, base])) == ["held", "not held", "not held"]


def test_toys_are_judged_by_the_best_single_metric_of_the_rfm():
    errors = dict.fromkeys([("t", method, setting) for method in contestants.OURS for setting in toys.SETTINGS], 1.0)
    errors["t", "RFMRegressor", "full"] = 0.5
    errors["t", "GPRegressor", "ard"] = 0.1
    errors["t", "RFMRegressor", "default"], errors["t", "GPRegressor", "default"] = 0.514, 0.516
    claims = toys.judge(errors)
    assert statuses(claims) == ["held", "not held"]
    assert "full" in claims[0]["claim"]


def test_time_limits_are_judged_by_seconds_ridge_and_repetition():
    fit = {"method": "RFMRegressor", "n": 5, "limit": 10.0, "seconds": 15.0, "rmse": 1.1, "ridge_rmse": 1.0}
    pair = {"method": "RFMRegressor", "n": 5, "difference": 1e-12}
    assert statuses(time_limits.judge([fit], [pair])) == ["held", "not held", "not held"]


def test_models_are_judged_by_file_seconds_and_memory():
    common = {"n": 9, "predicted": 5, "machines": 2, "file_mb": 6.0, "first_seconds": 0.5, "peak_mb": 600.0}
    found = [
        {**common, "size": size, "method": method, "std": std}
        for size in ("small", "large")
        for method, std in (("RFMRegressor", False), ("GPRegressor", False), ("GPRegressor", True), ("CatBoost", False))
    ]
    assert statuses(table_models.judge(found)) == ["not held"] * 2 + ["held", "not held"] * 2


def test_importances_are_ranked_over_columns_that_count():
    noise = np.array([1.0, -1.0] * 5)
    means, sizes = np.array([4.0, 3.0, 2.0, 0.1]), np.array([0.1, 0.1, 0.1, 1.0])
    permuted = means[:, None] + sizes[:, None] * noise
    assert_array_equal(importances.compared(permuted), [True, True, True, False])
    assert importances.rank_correlation(np.array([0.5, 0.3, 0.2, 0.9]), permuted) == (1.0, 3)
    assert importances.rank_correlation(np.array([0.2, 0.3, 0.5, 0.9]), permuted) == (-1.0, 3)
    assert importances.rank_correlation(np.ones(2), permuted[:2]) == (None, 2)
    found = [{"method": "RFMRegressor", "correlation": value} for value in (0.7, 0.9, None, 0.85)]
    claims = importances.judge([*found, {"method": "GPRegressor", "correlation": None}])
    assert [claim["value"] for claim in claims] == [0.85, None]
    assert statuses(claims) == ["held", "not measured"]


def test_neighbors_are_judged_by_medians_and_threads_by_cores():
    fits = [
        {"method": "RFMRegressor", "busy": busy, "seconds": seconds}
        for busy, all_seconds in ((False, (1, 1, 5)), (True, (1.4, 9, 1.4)))
        for seconds in all_seconds
    ]
    claims = busy_neighbor.judge(fits, {"torch": 2, "pools": 1, "workers": 2, "cores": 2})
    assert statuses(claims) == ["held", "not held", "held"]


# ---- the commands, small --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fit_time_measures_draws_and_keeps(in_this_process, tmp_path, capsys):
    assert main(["fit_time", "--quick", "--out", str(tmp_path)]) == 0
    found = kept(tmp_path, "fit_time")
    assert {fit["method"] for fit in found["fits"]} >= set(contestants.OURS)
    assert len(found["claims"]) == 4
    assert found["machine"]["cores"] >= 1
    assert (tmp_path / "fit_time-quick.png").stat().st_size > 5000
    assert "GPRegressor" in capsys.readouterr().out


def test_large_table_runs_the_methods_asked_for(in_this_process, tmp_path):
    assert main(["large_table", "--quick", "--methods", "RFMRegressor", "--out", str(tmp_path)]) == 0
    assert [fit["method"] for fit in kept(tmp_path, "large_table")["fits"]] == ["RFMRegressor"]


@pytest.mark.slow
def test_toys_go_on_where_they_were(tmp_path, monkeypatch, capsys):
    assert main(["toys", "--quick", "--out", str(tmp_path)]) == 0
    first = kept(tmp_path, "toys")
    assert len(first["fits"]) == 10
    monkeypatch.setattr(toys, "fit", lambda **key: pytest.fail("it was measured before"))
    assert main(["toys", "--quick", "--out", str(tmp_path)]) == 0
    assert kept(tmp_path, "toys")["fits"] == first["fits"]
    assert "10 entries were measured before" in capsys.readouterr().err


@pytest.mark.slow
def test_time_limits_are_tried_and_fits_repeated(in_this_process, tmp_path):
    assert main(["time_limits", "--quick", "--out", str(tmp_path)]) == 0
    found = kept(tmp_path, "time_limits")
    assert [pair["difference"] for pair in found["repeated"]] == [0.0, 0.0]
    assert len(found["claims"]) == 6


@pytest.mark.slow
def test_table_models_are_saved_loaded_and_asked(in_this_process, tmp_path):
    assert main(["table_models", "--quick", "--out", str(tmp_path)]) == 0
    found = kept(tmp_path, "table_models")["models"]
    assert [each["std"] for each in found if each["method"] == "GPRegressor"] == [False, True] * 2
    assert all(each["file_mb"] > 0 for each in found)


@pytest.mark.slow
def test_importances_are_measured_on_tables_with_categories(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    random = np.random.default_rng(0)
    n = 80
    frame = pd.DataFrame({"a": random.random(n), "b": random.random(n), "kind": random.choice(["x", "y"], n)})
    frame["target"] = 4 * frame.a + 2 * frame.b + (frame.kind == "x") + 0.1 * random.standard_normal(n)
    frame["fold"] = np.arange(n) % 2
    (tmp_path / "tables").mkdir()
    frame.to_parquet(tmp_path / "tables" / "number_made.parquet")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    assert main(["importances", "--quick", "--only", "number_made", "--out", str(tmp_path)]) == 0
    found = kept(tmp_path, "importances")
    assert [each["columns"] for each in found["tables"]] == [["a", "b", "kind"]] * 2
    assert [each["correlation"] for each in found["tables"]] == [1.0, 1.0]


linux = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")


@linux
def test_running_threads_of_children_are_counted():
    with busy_neighbor.looks_at_children() as counts, busy_neighbor.busy_process():
        spinning = busy_neighbor.children(os.getpid())
        while len(counts) < 20:
            time.sleep(0.01)
    assert max(counts) >= 1
    assert sum(map(busy_neighbor.running_threads, spinning)) == 0  # it has ended


@linux
@pytest.mark.slow
def test_busy_neighbor_fits_and_searches(tmp_path):
    assert main(["busy_neighbor", "--quick", "--out", str(tmp_path)]) == 0
    found = kept(tmp_path, "busy_neighbor")
    assert [fit["busy"] for fit in found["fits"]] == [False, True] * 2
    assert found["grid_search"]["looks"] > 0
    assert statuses(found["claims"])[-2:] == ["held", "held"]


def made_classes(folder, name, n):
    pytest.importorskip("pyarrow")
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(n, 2)), columns=["a", "b"])
    frame["target"] = np.where(frame.a + 0.3 * random.normal(size=n) > 0, "up", "down")
    (folder / "tables").mkdir(exist_ok=True)
    frame.assign(fold=np.arange(n) % 10).to_parquet(folder / "tables" / f"{name}.parquet")


@pytest.mark.slow
def test_gaussian_process_classifiers_are_compared_on_small_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    made_classes(tmp_path, "class_many", 600)
    made_classes(tmp_path, "class_small", 50)
    assert main(["gp_classifier", "--quick", "--out", str(tmp_path)]) == 0
    runs = kept(tmp_path, "gp_classifier")["runs"]
    assert [run["table"] for run in runs] == ["class_small"] * 5
    assert all(run["seconds"] > 0 and run["log_loss"] < 0.6 for run in runs)


def test_the_verdicts_on_gaussian_process_classifiers():
    ours, same = gp_classifier.OURS
    theirs, restarted, by_column = gp_classifier.THEIRS
    seconds = {ours: 2.0, same: 0.1, theirs: 1.0, restarted: 3.0, by_column: None}
    losses = {ours: 0.3, same: 0.5, theirs: 0.4, restarted: 0.4, by_column: None}
    lines = [{"table": "t", "method": m, "seconds": seconds[m], "log_loss": losses[m]} for m in seconds]
    held, missed, unknown = "held", "not held", "not measured"
    expected = [held, missed, missed, unknown, missed, held, held, unknown]
    assert statuses(gp_classifier.judge(lines)) == expected


@pytest.mark.slow
def test_distributions_are_compared_by_density_and_coverage(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("ngboost")
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.random(60), "kind": random.choice(["x", "y"], 60)})
    frame["target"] = 4 * frame.a + (frame.kind == "x") + 0.1 * random.standard_normal(60)
    (tmp_path / "tables").mkdir()
    frame.assign(fold=np.arange(60) % 2).to_parquet(tmp_path / "tables" / "number_made.parquet")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    methods = "GPRegressor,NGBoost,scikit-learn GPR"
    assert main(["distributions", "--folds", "one", "--methods", methods, "--out", str(tmp_path)]) == 0
    runs = json.loads((tmp_path / "distributions-2000.json").read_text())["runs"]
    assert [sum(run["rows"]) for run in runs] == [30] * 3
    assert_allclose([run["coverage"] for run in runs], [sum(run["covered"]) / 30 for run in runs])
    assert runs[0]["coverage"] > 0.5
    assert runs[0]["nll"] < 0.0


def test_coverage_is_pooled_over_rows_and_thirds_apart():
    few = {"method": "GPRegressor", "table": "few", "n": 100, "nll": 1.0, "covered": [1, 2, 4], "rows": [2, 4, 4]}
    many = {**few, "table": "many", "n": 900, "covered": [18, 18, 18], "rows": [20, 20, 20]}
    assert_allclose(distributions.coverage_of([few, many]), [61 / 70, 19 / 22, 20 / 24, 22 / 24])
    peer = [{**line, "method": "NGBoost", "nll": 2.0} for line in (few, many)]
    claims = {claim["claim"]: claim for claim in distributions.judge([few, many, *peer])}
    assert claims["mean rank of the NLL: the best peer's less ours"]["value"] == 1.0
    assert claims["coverage, below 600 rows, pooled: no less than 0.87"]["status"] == "not held"
    assert claims["coverage, from 600 rows, pooled: no less than 0.87"]["status"] == "held"
    assert claims["coverage, below 600 rows, wide: no more than 0.96"]["status"] == "not held"
