"""Find columns that name rows or groups of rows instead of describing them."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

# Nothing is looked for in fewer rows than this.
FEWEST_ROWS = 20
# A column of texts is an identifier of rows if it has at least this share of different values, at least this share of
# which has the same shape, with at most this many words (in the median).
SHARE_DISTINCT, SHARE_OF_SHAPE, MOST_WORDS = 0.95, 0.8, 3
# Groups have at least two rows on average. There must be at least ten of them, and at least this share of the rows.
ROWS_A_GROUP, FEWEST_GROUPS, SHARE_OF_GROUPS = 2.0, 10, 0.03
ID_NAME = re.compile(r"(?i:(?:^|[\W_])(?:id|ids|uuid|guid|idx|rownum)$|^(?:index|row|rowid|key|nr|no)\W*$)|[a-z]I[Dd]$")
WHO = "patient|subject|person|participant|user|customer|client|member|player|student|household|family|device|session"
GROUP_NAME = re.compile(rf"^(?:{WHO})(?:[\W_]*(?:id|no|nr|number|name|key|code))?$", re.IGNORECASE)
TIME_NAME = re.compile(
    r"(?:^|[\W_])(?:year|month|week|day|hour|date|time|timestamp|period|quarter|step|t)s?$|^(?:date|time|year)\b",
    re.IGNORECASE,
)


def find_identifiers(frame: Any, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that name each row, with the reasons. Nothing can be learned from them for new rows.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    """
    found = {}
    for name, kind in kinds.items():
        present = frame[name].dropna()
        if len(present) < FEWEST_ROWS or kind == "date" or is_time(name):
            continue
        if kind == "number":
            reason = _numbers_of_rows(name, present)
        else:
            reason = _names_of_rows([str(value) for value in present])
        if reason is not None:
            found[name] = reason
    return found


def find_groups(frame: Any, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that say to which person or thing several rows belong, with the reasons.

    Parameters
    ----------
    frame : data frame
    kinds : dict of str
        The kinds of the inputs.
    """
    found = {}
    for name, kind in kinds.items():
        if kind == "date" or not (GROUP_NAME.search(name) or ID_NAME.search(name)):
            continue
        present = frame[name].dropna()
        if len(present) < FEWEST_ROWS or (kind == "number" and not _are_whole(present)):
            continue
        distinct = int(present.nunique())
        if distinct >= max(FEWEST_GROUPS, SHARE_OF_GROUPS * len(present)) and len(present) >= ROWS_A_GROUP * distinct:
            found[name] = (
                f"it has {distinct} different values in {len(present)} rows and the name of a person or a thing"
            )
    return found


def is_time(name: str) -> bool:
    """Return whether the name of a column is that of a time."""
    return TIME_NAME.search(name) is not None


def _numbers_of_rows(name: str, present: Any) -> str | None:
    if not _are_whole(present) or present.dtype.kind == "b":
        return None
    values = np.sort(present.to_numpy(dtype=np.float64))
    if len(np.unique(values)) < len(values):
        return None
    if values[-1] - values[0] == len(values) - 1:
        return "it counts the rows"
    return "every row has a different number, and its name is that of an identifier" if ID_NAME.search(name) else None


def _names_of_rows(texts: list[str]) -> str | None:
    if len(set(texts)) < SHARE_DISTINCT * len(texts):
        return None
    shapes = Counter(re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text)) for text in texts)
    words = float(np.median([len(text.split()) for text in texts]))
    coded = float(np.mean([bool(re.fullmatch(r"[0-9a-fA-F-]{8,}", text)) for text in texts]))
    alike = shapes.most_common(1)[0][1] / len(texts)
    if words <= MOST_WORDS and max(alike, coded) >= SHARE_OF_SHAPE:
        return f"every row has a different value, such as {texts[0]!r}"
    return None


def _are_whole(present: Any) -> bool:
    if present.dtype.kind not in "iuf":
        return False
    values = present.to_numpy(dtype=np.float64)
    return bool(np.all(values == np.round(values)))
