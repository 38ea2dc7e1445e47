"""Which ridges are tried: those of self-expression, which line 3 of Algorithm 1 takes too."""

from typing import Any, NamedTuple

import numpy as np

from mercer.checks import check_number
from mercer.clustering.expression import RidgeExpression, SelfExpression, check_expression

# ridge="auto" climbs on these shares of the largest eigenvalue, from the one at this place.
SHARES, FIRST = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3), 3
# Line 3's where self-expression has no ridge of its own.
LINE_3_RIDGE = 1e-3


class Ridges(NamedTuple):
    """A grid of ridges, rising, with the self-expression that takes them.

    Attributes
    ----------
    values : tuple of float
    start : int
        The place of the grid that is tried first.
    given : SelfExpression
        As it was asked for.
    is_free : bool
        Whether it takes the ridges of the grid, and has none of its own.
    """

    values: tuple[float, ...]
    start: int
    given: SelfExpression
    is_free: bool

    def expression(self, place: int) -> SelfExpression:
        """Return the self-expression at a place of the grid."""
        return self.given.with_params(ridge=self.values[place]) if self.is_free else self.given

    def absolute(self, place: int, largest: float) -> float:
        """Return the ridge of line 3 for a kernel matrix of that largest eigenvalue."""
        ridge = check_number("ridge", self.values[place], above=0.0)
        is_absolute = isinstance(self.given, RidgeExpression) and not self.given.relative
        return ridge if is_absolute else ridge * max(largest, float(np.finfo(np.float64).tiny))

    def solved(self, place: int, largest: float) -> SelfExpression:
        """Return the same self-expression with an absolute ridge: the eigenvalue is not worked out again for each."""
        expression = self.expression(place)
        if not isinstance(expression, RidgeExpression):
            return expression
        return expression.with_params(ridge=self.absolute(place, largest), relative=False)


def ridges_of(self_expression: Any, ridge: float | str) -> Ridges:
    """Return the ridges to try: several for "auto"; an object's own; the one of line 3 where there is no other."""
    given = check_expression(self_expression)
    if not isinstance(given, RidgeExpression):
        return Ridges((LINE_3_RIDGE if ridge == "auto" else float(ridge),), 0, given, is_free=False)
    if not isinstance(self_expression, str):
        return Ridges((given.ridge,), 0, given, is_free=False)
    if ridge == "auto":
        return Ridges(SHARES, FIRST, given, is_free=True)
    return Ridges((float(ridge),), 0, given, is_free=True)
