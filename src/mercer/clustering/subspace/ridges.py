"""The ridges that are tried, for self-expression and for line 3 of Algorithm 1."""

from typing import Any, NamedTuple

import numpy as np

from mercer.checks import check_number
from mercer.clustering.expression import RidgeExpression, SelfExpression, check_expression

# The grid of ridge="auto", as shares of the largest eigenvalue, and the position from which the search starts.
SHARES, FIRST = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3), 3
# The ridge of line 3 if self-expression has no ridge.
LINE_3_RIDGE = 1e-3


class Ridges(NamedTuple):
    """A grid of ridges in ascending order, with the self-expression that they are for.

    Attributes
    ----------
    values : tuple of float
    start : int
        The position of the grid that is tried first.
    given : SelfExpression
        The self-expression that was asked for.
    is_free : bool
        Whether the self-expression uses the ridges of the grid, instead of one of its own or none.
    """

    values: tuple[float, ...]
    start: int
    given: SelfExpression
    is_free: bool

    def expression(self, place: int) -> SelfExpression:
        """Return the self-expression with the ridge at a position of the grid."""
        return self.given.with_params(ridge=self.values[place]) if self.is_free else self.given

    def absolute(self, place: int, largest: float) -> float:
        """Return the ridge of line 3 as an absolute number, for a kernel matrix with the given largest eigenvalue."""
        ridge = check_number("ridge", self.values[place], above=0.0)
        is_absolute = isinstance(self.given, RidgeExpression) and not self.given.relative
        return ridge if is_absolute else ridge * max(largest, float(np.finfo(np.float64).tiny))

    def solved(self, place: int, largest: float) -> SelfExpression:
        """Return the self-expression with an absolute ridge, so that the eigenvalue is not computed for every ridge."""
        expression = self.expression(place)
        if not isinstance(expression, RidgeExpression):
            return expression
        return expression.with_params(ridge=self.absolute(place, largest), relative=False)


def ridges_of(self_expression: Any, ridge: float | str) -> Ridges:
    """Return the ridges to try: a grid for "auto", or one: that of an object, the given one, or that of line 3."""
    given = check_expression(self_expression)
    if not isinstance(given, RidgeExpression):
        return Ridges((LINE_3_RIDGE if ridge == "auto" else float(ridge),), 0, given, is_free=False)
    if not isinstance(self_expression, str):
        return Ridges((given.ridge,), 0, given, is_free=False)
    if ridge == "auto":
        return Ridges(SHARES, FIRST, given, is_free=True)
    return Ridges((float(ridge),), 0, given, is_free=True)
