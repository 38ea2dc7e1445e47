"""Numbers as people write them: with thousands apart, a decimal comma, a unit, a sign of money or of percent."""

import re
from collections import Counter
from typing import NamedTuple

import numpy as np

# What may stand between thousands, beside the mark that is not the decimal one.
GAPS = "'’_ \u00a0\u2009\u202f"
MINUS = str.maketrans({"−": "-", "–": "-"})
MONEY = "$€£¥₹₽₩₪฿₫₴₺¢"
CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL|US\\$|R\\$|kr"
UNIT = rf"[%‰°µμ{MONEY}a-zA-ZΩÅ](?:[%‰°µμ/²³·^. {MONEY}-]|[^\W\d_]){{0,14}}[23]?"
# Beyond these digits neighbors have one float: the text is an identifier.
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
        NaN where a text is no number.
    units : list of str
        What was taken off each text: a unit, "%" or a sign of money; "" where there was nothing.
    grouped : ndarray of bool
        Where a mark stood between thousands that is the decimal mark elsewhere.
    """

    values: np.ndarray
    units: list[str]
    grouped: np.ndarray

    @property
    def readable(self) -> np.ndarray:
        """Which texts are numbers."""
        return ~np.isnan(self.values)


def is_plain_number(text: str) -> bool:
    """Whether a text is a number as programs write it."""
    return PLAIN.fullmatch(text.strip()) is not None


def plain_numbers(texts: list[str]) -> np.ndarray | None:
    """Return the numbers if all texts are such as programs write them, or None; this is the quick way."""
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
        Without spaces around them.
    decimal : {".", ","}
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
    """Return the one unit that the numbers have, "" for none; None where units differ and nothing can be said."""
    units = Counter(unit for unit, is_number in zip(numbers.units, numbers.readable, strict=True) if is_number and unit)
    folded = {unit.casefold().rstrip(".") for unit in units}
    return "" if not units else units.most_common(1)[0][0] if len(folded) == 1 else None


def is_code(text: str) -> bool:
    """Whether digits are a code, not an amount: a leading zero, or more digits than a number keeps."""
    digits = text.lstrip("+-")
    return digits.isdigit() and ((digits[0] == "0" and len(digits) > 1) or len(digits.lstrip("0")) > MOST_DIGITS)
