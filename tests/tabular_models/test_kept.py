"""Results that are kept between calls stay within their bound."""

import numpy as np

from mercer import GPRegressor
from mercer.tabular_models.kept import MOST_KEPT, Kept


def test_results_are_worked_out_once_while_there_is_room():
    known, asked = Kept[int](size=lambda result: 10, most=25), []

    def result(key):
        return known.get(key, lambda: asked.append(key) or key * key)

    for _ in range(2):
        assert [result(key) for key in range(4)] == [0, 1, 4, 9]
    # Two results have room; the other two are worked out at every call.
    assert asked == [0, 1, 2, 3, 2, 3]


def test_the_first_result_is_kept_whatever_its_size():
    known, asked = Kept[int](size=lambda result: 1000, most=1), []
    for _ in range(3):
        known.get("only", lambda: asked.append(1) or 7)
    assert len(asked) == 1


def test_spreads_of_leaves_do_not_depend_on_what_is_kept(few_rows):
    g = np.random.default_rng(0)
    X = g.uniform(size=(150, 2))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * g.normal(size=150)
    machine = GPRegressor("laplace", "identity", warp="none", random_state=0).fit(X, y).machines_[0]
    assert machine.partition.n_leaves > 2
    forgetful = machine.changed()
    # Each factor takes all the room there is, so that only that of the first leaf is kept.
    vars(forgetful)["_known_factors"] = Kept(lambda factors: MOST_KEPT)
    for _ in range(2):
        assert np.array_equal(machine.unit_variance(X), forgetful.unit_variance(X))
