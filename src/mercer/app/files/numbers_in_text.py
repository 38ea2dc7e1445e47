"""Read numbers as people write them: with separated thousands, a decimal comma, a unit, a currency or a percent."""

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

# Characters that may separate thousands, beside the mark that is not the decimal one.
GAPS = "'’_ \u00a0\u2009\u202f"
MINUS = str.maketrans({"−": "-", "–": "-"})
MONEY = "$€£¥₹₽₩₪฿₫₴₺¢"
CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL|US\\$|R\\$|kr"
UNIT = rf"[%‰°µμ{MONEY}a-zA-ZΩÅ](?:[%‰°µμ/²³·^. {MONEY}-]|[^\W\d_]){{0,14}}[23]?"
# With more digits, different numbers have the same float, so that a text is an identifier.
MOST_DIGITS = 15
PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def _pattern(decimal: str, group: str) -> re.Pattern[str]:
    apart = f"[{re.escape(group)}{GAPS}]"
    return re.compile(
        rf"(?P<open>\()?(?P<sign>[-+])?\s*(?P<money>[{MONEY}]|(?:{CODES})(?=[\s\d-]))?\s*(?P<late>-)?"
        rf"(?P<number>(?:[1-9]\d{{0,2}}(?:(?P<apart>{apart})\d{{3}})(?:(?P=apart)\d{{3}})*|\d+)(?:{re.escape(decimal)}\d*)?"
        rf"|{re.escape(decimal)}\d+)"
        rf"(?P<power>[eE][-+]?\d+)?\s*(?P<unit>{UNIT})?(?P<close>\))?"
    )


PATTERNS = {".": _pattern(".", ","), ",": _pattern(",", ".")}


class Numbers(NamedTuple):
    """Texts as numbers.

    Attributes
    ----------
    values : ndarray of float
        NaN for a text that is no number.
    units : list of str
        What was removed from each text: a unit, "%" or a currency; "" if there was none.
    grouped : ndarray of bool
        Whether thousands were separated by the mark that could also be the decimal mark.
    """

    values: np.ndarray
    units: list[str]
    grouped: np.ndarray

    @property
    def readable(self) -> np.ndarray:
        """Whether each text is a number."""
        return ~np.isnan(self.values)


def is_plain_number(text: str) -> bool:
    """Return whether a text is a number as programs write it."""
    return PLAIN.fullmatch(text.strip()) is not None


def plain_numbers(texts: list[str]) -> np.ndarray | None:
    """Return the numbers if all texts are numbers as programs write them, else None. Faster than `read_numbers`."""
    try:
        values = np.array(texts, dtype=object).astype(np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None


def read_numbers(texts: list[str], decimal: str) -> Numbers:
    """Read each text as a number.

    Parameters
    ----------
    texts : list of str
        Texts without spaces around them.
    decimal : {".", ","}
        The decimal mark.
    """
    values = np.full(len(texts), np.nan)
    units, grouped = [""] * len(texts), np.zeros(len(texts), dtype=bool)
    other = "," if decimal == "." else "."
    for i, text in enumerate(texts):
        match = PATTERNS[decimal].fullmatch(text.translate(MINUS))
        if match is None or (match["open"] is None) != (match["close"] is None):
            continue
        digits = match["number"].replace(match["apart"], "") if match["apart"] else match["number"]
        value = float(digits.replace(decimal, ".") + (match["power"] or ""))
        if not np.isfinite(value):
            continue
        negative = (match["sign"] == "-") + (match["late"] is not None) + (match["open"] is not None)
        values[i] = -value if negative == 1 else value
        units[i] = (match["money"] or match["unit"] or "").strip()
        grouped[i] = match["apart"] == other
    return Numbers(values, units, grouped)


def unit_of(numbers: Numbers) -> str | None:
    """Return the unit of the numbers: "" if they have none, and None if they have different ones."""
    units = Counter(unit for unit, is_number in zip(numbers.units, numbers.readable, strict=True) if is_number and unit)
    folded = {unit.casefold().rstrip(".") for unit in units}
    return "" if not units else units.most_common(1)[0][0] if len(folded) == 1 else None


def is_code(text: str) -> bool:
    """Return whether digits are a code, not an amount: a leading zero, or more digits than a float can keep."""
    digits = text.lstrip("+-")
    return digits.isdigit() and ((digits[0] == "0" and len(digits) > 1) or len(digits.lstrip("0")) > MOST_DIGITS)
