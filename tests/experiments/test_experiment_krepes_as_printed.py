"""KREPES by appendix B.3: every method has the same search, and claims can hold and fail."""

import numpy as np
import pytest

from experiments import Results
from experiments.claims import judge
from experiments.krepes_as_printed import cases as all_cases
from experiments.krepes_as_printed import experiment, runs
from experiments.runner import cases_of, load
from mercer.embedding import Alternate
from mercer.embedding.preconditioners import GaussNewton, Identity


@pytest.mark.parametrize("quick", [True, False])
def test_cases_are_consistent(quick):
    found = cases_of(load("krepes_as_printed"), quick, None)
    assert all(case.key for case in found)
    if not quick:
        table_5 = [case for case in found if case.settings.get("data", {}).get("name") == "mnist"]
        assert len(table_5) == 8 * 3
        assert {case.settings["landmarks"] for case in table_5} == {"uniform", "kmeans++", "leverage_hutchinson"}


def small(**changes):
    data = {"name": "digits", "n_train": None, "n_test": None, "image_shape": None}
    return {"data": data, "landmarks": "uniform", "m": 30, "h": 5, "epochs": 1, "draws": 2, **changes}


def digits(name, n_train, n_test, seed):
    from sklearn.datasets import load_digits

    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:200] / 16, y[:200], X[200:300] / 16, y[200:300]


def test_settings_become_options_of_the_preset():
    options = runs.options_of(small(loss="simclr", start="random", preconditioner="gauss_newton"))
    assert (options["solver"].start, options["solver"].preconditioner) == ("random", GaussNewton())
    assert options["solver"].epochs == 1
    assert runs.options_of(small(loss="simclr"))["solver"].preconditioner == Identity()
    assert runs.options_of(small(loss="kernel_autoencoder"))["solver"] == Alternate(rounds=1, iterations=1, guard=False)


def test_runs_from_end_to_end(monkeypatch):
    monkeypatch.setattr(runs, "prepared", digits)
    kernel = runs.run_embedding(small(loss="barlow_twins"), 0)
    network = runs.run_network(small(loss="barlow_twins"), 0)
    assert min(kernel["accuracy"], network["accuracy"]) > 0.5
    assert "rate" in kernel["chosen"]
    assert network["parameters"] > kernel["parameters"]


def fake_results(changed=None):
    """Everything as the paper says: better landmarks, starts, preconditioners, and losses in the paper's order."""
    records, seeds = {}, {}
    for case in all_cases.cases(False):
        settings = case.settings
        value = 0.8
        if settings.get("data", {}).get("name") == "mnist":
            value = experiment.printed(settings["loss"], settings["landmarks"])
        value -= 0.1 * (settings.get("start") == "random")
        value += {"general": 0.01, "gauss_newton": 0.02}.get(settings.get("preconditioner"), 0.0)
        if case.name.startswith("mnist, "):
            value = 1 - 1 / settings["landmarks"]
        measures = {"accuracy": value, "balanced accuracy": value, "effective rank": 100 * value, "fit seconds": 1.0}
        seeds[case.name] = case.seeds
        for seed in range(case.seeds):
            records[case.name, seed] = {"measures": measures | (changed or {}).get(case.name, {})}
    return Results(seeds, records)


def statuses(results):
    return {claim.text: judge(claim, results).status for claim in experiment.CLAIMS}


def test_claims_hold_on_results_made_to_bear_them_out_and_tables_are_filled():
    assert set(statuses(fake_results()).values()) == {"held"}
    for table in experiment.tables(fake_results()):
        assert all(all(row) and len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize(
    ("case", "accuracy", "claim"),
    [
        ("adult: byol, the network", 0.9, "Table 1: adult, byol"),
        ("covtype: simclr, uniform, start random", 0.9, "Table 4: covtype, simclr"),
        ("adult: simclr, uniform, preconditioner general", 0.7, "Table 2: adult, simclr with preconditioner general"),
        ("mnist, 1000 rows: 25 landmarks", 1.0, "O(log n)"),
        ("mnist: kernel_pca, kmeans++", -2.0, "Table 5: kmeans++"),
    ],
)
def test_each_claim_can_fail(case, accuracy, claim):
    found = statuses(fake_results({case: {"accuracy": accuracy, "balanced accuracy": accuracy}}))
    assert any(claim in text for text, status in found.items() if status == "not held")


def test_landmarks_needed_are_the_first_within_a_point():
    np.testing.assert_array_equal(experiment.landmarks_needed(fake_results()), [100, 100, 100])
