"""Kinds of self-expression, one per file; each needs only the inner products of points."""

from typing import Any

from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.clustering.expression.elastic_net import ElasticNetExpression, LassoExpression
from mercer.clustering.expression.low_rank import LowRankExpression
from mercer.clustering.expression.matching_pursuit import MatchingPursuitExpression
from mercer.clustering.expression.ridge import LeastSquaresExpression, RidgeExpression
from mercer.exceptions import invalid_parameter

__all__ = [
    "ElasticNetExpression",
    "LassoExpression",
    "LeastSquaresExpression",
    "LowRankExpression",
    "MatchingPursuitExpression",
    "RidgeExpression",
    "SelfExpression",
    "Solver",
    "check_expression",
]

SHORTHANDS: dict[str, type[SelfExpression]] = {
    "ridge": RidgeExpression,
    "least_squares": LeastSquaresExpression,
    "lasso": LassoExpression,
    "elastic_net": ElasticNetExpression,
    "omp": MatchingPursuitExpression,
    "low_rank": LowRankExpression,
}


def check_expression(expression: Any) -> SelfExpression:
    """Return `expression` as a SelfExpression; a name such as "ridge" stands for that kind with its defaults."""
    if isinstance(expression, str) and expression in SHORTHANDS:
        return SHORTHANDS[expression]()
    if not isinstance(expression, SelfExpression):
        raise invalid_parameter("self_expression", expression, [*SHORTHANDS], "A SelfExpression is also allowed.")
    return expression
