"""Judge the rows of a table before anything is learned: how to split them, and what could make scores misleading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercer.app.files.tables import check_columns
from mercer.app.projects.copies import find_copies
from mercer.app.projects.identifiers import find_groups, find_identifiers
from mercer.app.projects.leaks import find_leaks
from mercer.app.projects.row_order import find_time_order, times_of
from mercer.app.projects.table_split import SplitPlan
from mercer.exceptions import DataFileError, invalid_parameter
from mercer.tables.frames import optional

# Copies are reported if at least this share of the rows are copies. Fewer are kept on one side of the split, too.
LEAST_COPIES = 0.02
SPLITS = ("auto", "random", "time", "group")


class Finding(NamedTuple):
    """Something that a person should know before trusting a score.

    Attributes
    ----------
    kind : {"identifier", "group", "copies", "time", "leak"}
    column : str
        "" if the finding is about rows.
    text : str
    """

    kind: str
    column: str
    text: str


@dataclass(frozen=True, eq=False)
class RowJudgment:
    """How to split the rows, which columns to leave out, and everything that was found.

    Attributes
    ----------
    plan : SplitPlan
    left_out : list of str
        Identifiers of rows and of groups. Nothing can be learned from them for new rows.
    findings : list of Finding
    """

    plan: SplitPlan
    left_out: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def check_split(split: str) -> tuple[str, str | None]:
    """Return the kind of split and its column, from texts such as "random", "time", "time:day" or "group:patient"."""
    kind, _, column = split.partition(":") if isinstance(split, str) else ("", "", "")
    if kind not in SPLITS or (column and kind not in ("time", "group")) or (kind == "group" and not column):
        raise invalid_parameter("split", split, "'auto', 'random', 'time', 'time:COLUMN' or 'group:COLUMN'")
    return kind, column or None


def judge_rows(
    split: str,
    frame: Any,
    kinds: Mapping[str, str],
    y: np.ndarray,
    *,
    is_class: bool,
    asked: frozenset[str] = frozenset(),
) -> RowJudgment:
    """Find identifiers, groups, copies, an order in time and leaks, and decide how to split the rows.

    Parameters
    ----------
    split : str
        See `check_split`. "auto" splits by groups if a column names them, otherwise by time if the rows are in its
        order, and otherwise at random with all copies of a row on one side.
    frame : data frame
        The rows to learn from and to score on, with all columns by which they may be split.
    kinds : dict of str
        The kinds of the inputs.
    y : ndarray of shape (n,)
    is_class : bool
        Whether y holds classes.
    asked : set of str
        Columns whose kinds the user has given. They are not taken for identifiers.
    """
    how, column = check_split(split)
    if column is not None:
        check_columns(frame.columns, [column], "column to split by")
    open_kinds = {name: kind for name, kind in kinds.items() if name not in asked}
    identifiers = find_identifiers(frame, open_kinds)
    groups = {} if how in ("random", "time") else find_groups(frame, open_kinds)
    if column is not None and how == "group":
        groups = {column: "asked for"}
    rest = {name: kind for name, kind in kinds.items() if name not in identifiers and name not in groups}
    if not rest:  # keep all columns, since there must be some to learn from
        identifiers, groups, rest = {}, {column: "asked for"} if how == "group" and column else {}, dict(kinds)
    findings = [
        Finding("identifier", name, f"column {name!r} is an identifier and left out: {reason}.")
        for name, reason in identifiers.items()
    ]
    copies = find_copies(frame[list(rest)])
    if copies is not None:
        n_copies = len(copies) - len(np.unique(copies))
        if n_copies >= LEAST_COPIES * len(copies):
            counted = f"{n_copies} of {len(copies)} rows are copies of others in all inputs"
            text = f"{counted}: a row and its copies stay on one side of the split."
            findings.append(Finding("copies", "", text))
    numbers = _one_column_a_class(y) if is_class else y.astype(np.float64)
    plan = _plan(how, column, frame, kinds, numbers, groups, copies, set(identifiers))
    if plan.kind == "time" and how == "auto":
        findings.append(Finding("time", plan.column or "", f"{plan.reason}: the last ones are left out."))
    if plan.kind == "group" and how == "auto":
        text = f"column {plan.column!r} names groups of rows and is left out as an input: {plan.reason}."
        findings.append(Finding("group", plan.column or "", text))
    for name, reason in find_leaks(frame, rest, numbers).items():
        findings.append(Finding("leak", name, f"column {name!r} may give the target away: {reason}"))
    out = [*identifiers, *([plan.column] if plan.kind == "group" and plan.column in kinds else [])]
    return RowJudgment(plan, list(dict.fromkeys(str(name) for name in out)), findings)


def _plan(
    how: str,
    column: str | None,
    frame: Any,
    kinds: Mapping[str, str],
    numbers: np.ndarray,
    groups: Mapping[str, str],
    copies: np.ndarray | None,
    identifiers: set[str],
) -> SplitPlan:
    if groups:
        name, reason = next(iter(groups.items()))
        codes, _ = optional("pandas", "a table").factorize(frame[name], use_na_sentinel=False)
        return SplitPlan("group", name, reason, groups=np.asarray(codes))
    if how == "time" and column is not None:
        if frame[column].dtype.kind not in "iufM":
            raise DataFileError(f"--split time:{column}: the column holds neither dates nor numbers.")
        return SplitPlan("time", column, "asked for", times=times_of(frame[column]))
    order = find_time_order(frame, kinds, numbers, identifiers) if how in ("auto", "time") else None
    if order is not None:
        return SplitPlan("time", order.column, order.reason if how == "auto" else "asked for", times=order.times)
    if how == "time":
        return SplitPlan("time", None, "asked for", times=np.arange(len(frame), dtype=np.float64))
    if copies is not None:
        return SplitPlan("random", None, "copies of a row are on one side", groups=copies)
    return SplitPlan(
        "random", None, "asked for" if how == "random" else "no groups, copies or order in time were found"
    )


def _one_column_a_class(y: np.ndarray) -> np.ndarray:
    _, codes = np.unique(y, return_inverse=True)
    return np.eye(codes.max() + 1)[codes]
