"""Values of tables, scores and counts as text."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.plots.labels import shorten

NONE = "–"
# How pandas and NumPy write missing values and numbers that are not finite.
MISSING = ("nan", "NaT", "<NA>", "inf", "-inf")
LONGEST = 60
# Whole numbers of at least this size are identifiers, not amounts.
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
# Scores that are shares, and scores without a unit. All others are in units of the target.
SHARES, PLAIN = ("coverage", "accuracy", "balanced_accuracy"), ("r2", "nll", "log_loss", "auc", "average_precision")


def text_of(value: Any) -> str:
    """Return a value of a table as text: four significant digits for numbers, a dash for what is missing."""
    if value is None or (not isinstance(value, str) and str(value) in MISSING):
        return NONE
    if hasattr(value, "strftime"):  # a date at midnight is written without the time
        day = value.strftime("%Y-%m-%d")
        return day if getattr(value, "hour", 0) == getattr(value, "minute", 0) == 0 else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return shorten(" ".join(str(value).split()), LONGEST)
    if isinstance(value, (int, np.integer)) and abs(int(value)) >= LARGEST_AMOUNT:
        return shorten(str(value), LONGEST)  # every digit of an identifier counts
    number = float(value) + 0.0  # turns -0.0 into 0.0
    if number.is_integer() and abs(number) < LARGEST_AMOUNT:
        # Years and house numbers have no comma; large amounts are easier to read with commas.
        return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:.0f}"
    return f"{number:,.0f}" if 1e4 <= abs(number) < 1e12 else f"{number:.4g}"


def texts_of(values: Sequence[Any], smallest: bool = False) -> list[str]:
    """Return the values of one column as text, with the same number of decimals for all fractions.

    The largest fraction has four significant digits. If the smallest is far from the largest, the number of decimals is
    chosen for each value.

    Parameters
    ----------
    values : sequence
    smallest : bool, default=False
        Whether the smallest fraction gets three significant digits, instead of four for the largest, as for scores.
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
    """Return a number with this many significant digits, without a power of ten unless it is very large or small."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - size) + 0.0
    size = math.floor(math.log10(abs(rounded)))  # rounding may add a digit: 9.996 becomes 10.0
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
    """Return the scores of one name as texts of a column."""
    if name in SHARES:
        return [percent(value) for value in values]
    if name in PLAIN:
        return [NONE if value is None else _decimals(value, 3) for value in values]
    return texts_of([math.nan if value is None else value for value in values], smallest=True)


def _decimals(value: float, decimals: int) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    rounded = round(value, decimals) + 0.0
    return f"{rounded:,.{decimals}f}" if abs(rounded) >= 1e4 else f"{rounded:.{decimals}f}"


def count(number: int, noun: str) -> str:
    """Return a number of things, such as `1 row` or `12,000 rows`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, with `and` before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
