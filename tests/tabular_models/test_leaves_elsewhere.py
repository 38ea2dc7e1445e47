"""Models in leaves learn from files and from Dask what they learn from an array; leaves are the tasks of workers."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import GPClassifier, GPRegressor, RFMClassifier, RFMRegressor
from mercer.exceptions import InvalidParameterError
from mercer.rows import Cluster, open_rows
from mercer.tabular_models.finish import solved
from mercer.tabular_models.learned_on_all_rows import AverageGradients
from mercer.tabular_models.tuning import Iterate
from tests.examples_of import numbers
from tests.tabular_models.test_finish import KERNEL, RIDGE, in_leaves, naive_alpha, plan_of, weighted_table

X = numbers(211, 3)
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
LABELS = np.where(Y > 0.3, "high", np.where(Y > -0.5, "middle", "low"))
UNEVEN = (100, 3, 0, 7, 101)
SETTINGS = {"metric": "ard", "warp": "none", "random_state": 0}
MODELS = {
    "rfm": (RFMRegressor("laplace", **SETTINGS), Y, "predict"),
    "outputs": (RFMRegressor("laplace", **SETTINGS), np.column_stack([Y, X[:, 2]]), "predict"),
    "process": (GPRegressor("laplace", target_warp="none", **SETTINGS), Y, "predict"),
    "classes": (RFMClassifier("laplace", class_weight="balanced", **SETTINGS), LABELS, "predict_proba"),
    "classes of a process": (GPClassifier("laplace", **SETTINGS), LABELS, "predict_proba"),
}


@pytest.fixture
def small_tables(few_rows, monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.all_rows.MOST_TABLE_ROWS", 80)


@pytest.mark.parametrize("name", MODELS)
def test_leaves_of_rows_elsewhere_are_those_in_memory(name, small_tables, client, tmp_path, monkeypatch):
    model, y, asked = MODELS[name]
    sent, each = [], Cluster.each
    monkeypatch.setattr(Cluster, "each", lambda self, *args: (sent.append(args[0].__name__), each(self, *args))[1])
    rows, targets = (da.from_array(part, chunks=(UNEVEN, *part.shape[1:])) for part in (X, y))
    here, there = clone(model).fit(X, y), clone(model).fit(rows, targets)
    assert here.machines_[0].partition.n_leaves > 4
    assert_allclose(getattr(there, asked)(rows).compute(), getattr(here, asked)(X), rtol=1e-8, atol=1e-8)
    known = "log_marginal_likelihood_" if name == "process" else "loo_score_"
    assert getattr(there, known) == pytest.approx(getattr(here, known), rel=1e-8)
    assert_array_equal(there.row_index_, here.row_index_)
    # Classes of a process are found by another likelihood, in this process.
    assert set(sent) == (set() if name == "classes of a process" else {"solved_piece"})
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=25)
    read = clone(model).fit(open_rows(tmp_path), y)
    assert_allclose(getattr(read, asked)(frame), getattr(here, asked)(X), rtol=1e-8, atol=1e-8)
    assert list(read.feature_names_in_) == ["a", "b", "c"]


@pytest.mark.parametrize("most_sent", [1, 500, 2**20])
def test_leaves_that_workers_solve(client, most_sent, monkeypatch):
    """Sent one by one, some together, and all together; each against the system of its rows."""
    monkeypatch.setattr("mercer.rows.cluster.MOST_SENT", most_sent)
    table = weighted_table()
    leaves, iterate = in_leaves(table), Iterate(KERNEL, RIDGE)
    here = solved(iterate, plan_of(), table, leaves, variances=True)
    there = solved(iterate, plan_of(), table, leaves, variances=True, workers=Cluster(client))
    assert_allclose(there.machine.alpha, here.machine.alpha, rtol=1e-10)
    assert_allclose(there.left_out_variances, here.left_out_variances, rtol=1e-10)
    assert_allclose(there.evidence.q, here.evidence.q, rtol=1e-10)
    assert there.evidence.n == here.evidence.n
    for own in leaves.pieces():
        assert_allclose(there.machine.alpha[own], naive_alpha(table, own), atol=1e-8)


def test_what_one_machine_cannot_hold_is_refused(small_tables, monkeypatch):
    rows = da.from_array(X, chunks=(50, 3))
    with pytest.raises(
        InvalidParameterError, match=r"n_landmarks=None is not allowed.*'auto' or a number for more than"
    ):
        RFMRegressor(n_landmarks=None).fit(rows, Y)
    with pytest.raises(InvalidParameterError, match=r"metric=AverageGradients.*a name for more than 80 rows"):
        RFMRegressor("laplace", AverageGradients(), warp="none").fit(rows, Y)
    monkeypatch.setattr("mercer.tabular_models.all_rows.memory_of_this_machine", lambda: 200 * 8 * 8 * 3.0)
    with pytest.raises(InvalidParameterError, match=r"X=\(211, 3\).*at most 200 rows.*A number for n_landmarks has no"):
        RFMRegressor().fit(rows, Y)
    with pytest.raises(InvalidParameterError, match=r"at most 200 rows.*machine has 0 GiB. Or learn from some rows"):
        GPClassifier().fit(rows, LABELS)
