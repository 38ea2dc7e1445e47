"""The settings that a search compares: which kernels, warps and metrics are tried, and which of them are simpler."""

import numpy as np
import pytest

from mercer.exceptions import InvalidParameterError
from mercer.kernels import Custom, Gaussian, Laplace, Linear, ProductLaplace, ProductMatern32
from mercer.tabular_models import settings
from mercer.tabular_models.settings import AUTO_KERNELS, Setting, kernels_of, metrics_of, warps_of, with_intercept
from tests.examples_of import KERNELS, numbers, rational
from tests.tabular_models.test_table import table_of


def table(d=3, n=20):
    return table_of(numbers(n, d), numbers(n))


def test_a_setting_is_named_in_words():
    made = Setting(Gaussian(1.0), "none", "full", 2)
    assert made.named() == {"kernel": "Gaussian", "warp": "none", "metric": "full", "iterate": 2}
    assert made._replace(warp=("log", "none")).named()["warp"] == "log,none"
    assert Setting(Laplace(), "log").named() == {"kernel": "Laplace", "warp": "log", "metric": "identity", "iterate": 0}


def test_simpler_settings_learn_less():
    def setting(metric, steps):
        return Setting(Gaussian(), "none", metric, steps)

    in_order = [
        setting("identity", 0),
        setting("diagonal", 1),
        setting("diagonal", 2),
        setting("full", 1),
        setting("full", 3),
    ]
    assert sorted([in_order[i] for i in (3, 0, 4, 2, 1)], key=Setting.complexity) == in_order
    assert min([setting("ard", 1), setting("identity", 0)], key=Setting.complexity).metric == "identity"


@pytest.mark.parametrize("bandwidth", ["auto", "median"])
def test_auto_tries_several_kernels_with_a_linear_one_among_them(bandwidth):
    made = kernels_of("auto", bandwidth, 1000, 3)
    assert len(made) == len(AUTO_KERNELS) == len({type(kernel) for kernel in made})
    assert any(isinstance(kernel, Linear) for kernel in made)
    assert all(kernel.bandwidth == "median" for kernel in made if hasattr(kernel, "bandwidth"))


@pytest.mark.parametrize(
    ("rows", "columns", "tried"), [(400, 3, True), (401, 3, False), (30_000, 3, True), (90, 51, False)]
)
def test_smooth_products_are_tried_where_they_cost_little(rows, columns, tried):
    assert any(isinstance(kernel, ProductMatern32) for kernel in kernels_of("auto", "auto", rows, columns)) == tried


def test_a_kernel_that_is_given_is_the_only_one_and_has_the_bandwidth_that_is_asked_for():
    assert kernels_of("gaussian", 2.5, 1000, 3) == [Gaussian(2.5)]
    assert kernels_of(Gaussian(1.3), None, 1000, 3) == [Gaussian(1.3)]
    assert kernels_of(Gaussian(1.3), "auto", 1000, 3) == [Gaussian("median")]
    assert kernels_of(rational, "auto", 1000, 3) == [Custom(rational)]
    with pytest.raises(InvalidParameterError, match="kernel='rbf' "):
        kernels_of("rbf", "auto", 1000, 3)


def test_what_is_linear_gets_an_intercept_unless_it_has_one():
    assert with_intercept(Gaussian(1.3) + Linear()) == Gaussian(1.3) + Linear(offset="mean")
    assert with_intercept(Linear(offset=2.0)) == Linear(offset=2.0)
    assert with_intercept(Gaussian(1.3)) == Gaussian(1.3)


def test_metrics_suit_the_kernel_and_the_number_of_columns(monkeypatch):
    assert set(metrics_of("auto", Gaussian(), table())) == {"ard", "full", "diagonal"}
    # A product over columns has a meaning for the columns as they are: turned by a full metric it would not.
    assert set(metrics_of("auto", ProductLaplace(), table())) == {"ard", "diagonal"}
    # Nothing is learned for a kernel without a bandwidth, nor for one whose derivatives are not known.
    assert metrics_of("auto", Linear(), table()) == []
    assert metrics_of("auto", Custom(rational), table()) == []
    # Of one column only the length scale is to be learned.
    assert metrics_of("auto", Gaussian(), table(d=1)) == ["ard"]
    monkeypatch.setattr(settings, "MOST_FULL_COLUMNS", 2)
    assert set(metrics_of("auto", Gaussian(), table())) == {"ard", "diagonal"}
    monkeypatch.setattr(settings, "MOST_ARD_COLUMNS", 2)
    assert metrics_of("auto", Gaussian(), table()) == ["diagonal"]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_a_metric_that_is_asked_for_is_the_only_one(kernel):
    assert metrics_of("identity", kernel, table()) == []
    for metric in ("diagonal", "full", "ard"):
        assert metrics_of(metric, kernel, table()) == [metric]


def test_warps_that_bend_nothing_are_one():
    binary, mixed = table_of((numbers(20, 2) > 0).astype(float), numbers(20)), table(2)
    assert warps_of("auto", binary, ["none", "log", "rank"]) == ["none"]
    assert warps_of("auto", binary, ["rank", "none"]) == ["rank"]
    assert warps_of("auto", mixed, ["none", "log", "rank"]) == ["none", "log", "rank"]


def test_a_warp_that_is_given_is_the_only_one_and_an_unknown_one_is_named():
    assert warps_of("log", table(), ["none", "log"]) == ["log"]
    assert warps_of(["log", "none", "rank"], table(), ["none"]) == [("log", "none", "rank")]
    assert warps_of(np.array(["log", "none", "rank"]), table(), ["none"]) == [("log", "none", "rank")]
    with pytest.raises(InvalidParameterError, match="warp='sqrt' .*'none', 'log', 'rank'"):
        warps_of("sqrt", table(), ["none"])
