"""Values of tables and scores as text."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.plots.labels import shorten

NONE = "–"
# How pandas and NumPy write what is missing, and scores that are not finite.
MISSING = ("nan", "NaT", "<NA>", "inf", "-inf")
LONGEST = 60
# Whole numbers from here on are no amounts.
LARGEST_AMOUNT = 10**15
HEADINGS = {
    "rmse": "RMSE",
    "r2": "R²",
    "mae": "MAE",
    "nll": "NLL",
    "coverage": "90% coverage",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "log_loss": "log loss",
    "auc": "AUC",
    "average_precision": "average precision",
}
# The others are in units of the target.
SHARES, PLAIN = ("coverage", "accuracy", "balanced_accuracy"), ("r2", "nll", "log_loss", "auc", "average_precision")


def text_of(value: Any) -> str:
    """Return a value of a table: numbers with four digits that count, what is missing as a dash, the rest shortened."""
    if value is None or (not isinstance(value, str) and str(value) in MISSING):
        return NONE
    if hasattr(value, "strftime"):  # a day is written without the midnight that it begins at
        day = value.strftime("%Y-%m-%d")
        return day if getattr(value, "hour", 0) == getattr(value, "minute", 0) == 0 else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return shorten(" ".join(str(value).split()), LONGEST)
    if isinstance(value, (int, np.integer)) and abs(int(value)) >= LARGEST_AMOUNT:
        return shorten(str(value), LONGEST)  # an identifier, of which every digit counts
    number = float(value) + 0.0  # a zero has no sign
    if number.is_integer() and abs(number) < LARGEST_AMOUNT:
        # A year or the number of a house has no comma; large amounts are read more easily with them.
        return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:.0f}"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e12 else f"{number:.4g}"


def texts_of(values: Sequence[Any], smallest: bool = False) -> list[str]:
    """Return the values of one column: fractions with as many decimals for all as four digits of the largest need.

    Where the smallest is far from the largest, each has its own.

    Parameters
    ----------
    values : sequence
    smallest : bool, default=False
        Whether three digits of the smallest count, not four of the largest: for scores.
    """
    are_numbers = all(isinstance(value, (float, np.floating)) for value in values)
    sizes = [abs(value) for value in values if are_numbers and math.isfinite(value) and value != 0]
    if not sizes or max(sizes) > 1e4 * min(sizes) or all(float(size).is_integer() for size in sizes):
        return [text_of(value) for value in values]
    decimals = (2 if smallest else 3) - math.floor(math.log10(min(sizes) if smallest else max(sizes)))
    if not 0 <= decimals <= 6:
        return [text_of(value) for value in values]
    return [NONE if not math.isfinite(value) else _decimals(value, decimals) for value in values]


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number with so many digits that count, without powers of ten where it can be read without them."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - size) + 0.0
    size = math.floor(math.log10(abs(rounded)))  # 9.996 is 10.0
    if not -4 <= size < 12:
        return f"{value:.{digits}g}"
    return (
        f"{rounded:,.{max(digits - 1 - size, 0)}f}"
        if abs(rounded) >= 1e4
        else f"{rounded:.{max(digits - 1 - size, 0)}f}"
    )


def percent(share: float | None) -> str:
    """Return a share in percent."""
    return NONE if share is None or not math.isfinite(share) else f"{100 * share:.1f}%"


def score_texts(name: str, values: Sequence[float | None]) -> list[str]:
    """Return the scores of one name as they stand in a column."""
    if name in SHARES:
        return [percent(value) for value in values]
    if name in PLAIN:
        return [NONE if value is None else _decimals(value, 3) for value in values]
    return texts_of([math.nan if value is None else value for value in values], smallest=True)


def _decimals(value: float, decimals: int) -> str:
    # Adding 0 makes a zero of a negative one.
    rounded = round(value, decimals) + 0.0
    return f"{rounded:,.{decimals}f}" if abs(rounded) >= 1e4 else f"{rounded:.{decimals}f}"


def count(number: int, noun: str) -> str:
    """Return a number of things, such as `1 row` or `12,000 rows`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return several of a noun."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def listed(names: Sequence[str]) -> str:
    """Return names with commas, and `and` before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
