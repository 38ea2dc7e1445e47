"""Comparison of methods over data sets whose scores have different scales."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

from mercer.checks import check_number
from mercer.exceptions import invalid_parameter


def common_data_sets(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the data sets of `scores[method][data set]`; raise unless all methods have the same ones.

    Otherwise a method without scores on the data sets where it is bad would look better than it is.
    """
    if not isinstance(scores, Mapping) or not scores:
        raise invalid_parameter("scores", scores, "a dict from method to a dict from data set to scores, not empty")
    for method, of_method in scores.items():
        if not isinstance(of_method, Mapping) or not of_method:
            raise invalid_parameter(f"scores[{method!r}]", of_method, "a dict from data set to scores, not empty")
    first = next(iter(scores))
    for method, of_method in scores.items():
        if set(of_method) != set(scores[first]):
            raise invalid_parameter(
                f"scores[{method!r}]",
                sorted(map(str, of_method)),
                f"scores on the data sets of {first!r}, {sorted(map(str, scores[first]))}",
            )
    return list(scores[first])


def mean_ranks(scores: Mapping[str, Mapping[str, float]], *, lower_is_better: bool = True) -> dict[str, float]:
    """Which method is best over data sets of different scales? Return the mean rank of each method.

    A method that is best on all data sets has a mean rank of 1.

    Parameters
    ----------
    scores : dict from method to dict from data set to float
        All methods must have the same data sets. Methods with equal scores all get the mean of their ranks.
    lower_is_better : bool, default=True
        Whether the lowest score gets rank 1, or the highest.

    Examples
    --------
    >>> from mercer.metrics import mean_ranks
    >>> mean_ranks({"a": {"wine": 0.6, "power": 3.8}, "b": {"wine": 0.7, "power": 3.8}})
    {'a': 1.25, 'b': 1.75}
    """
    data_sets = common_data_sets(scores)
    table = np.array(
        [
            [check_number(f"scores[{method!r}][{data_set!r}]", of_method[data_set]) for data_set in data_sets]
            for method, of_method in scores.items()
        ]
    )
    ranks = rankdata(table if lower_is_better else -table, axis=0).mean(axis=1)
    return dict(zip(scores, ranks.tolist(), strict=True))
