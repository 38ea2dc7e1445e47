"""Claims of papers, the measures of our runs, and the verdicts on whether the measures support the claims."""

import difflib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HELD, NOT_HELD, NOT_RUN, REPORTED, BROKEN = "held", "not held", "not run", "reported", "error"


class MissingResult(LookupError):
    """Raised if a claim asks for a measure that no finished run has; the report shows the claim as not run."""


@dataclass(frozen=True)
class Results:
    """The runs of one experiment, as its claims read them.

    `seeds` is the number of seeds that each case must have. `records` holds one journal line for each (case, seed) that
    was tried. A case counts only when all its seeds have finished: the mean over some of them would be a different
    number, and paired comparisons would pair different seeds.
    """

    seeds: Mapping[str, int]
    records: Mapping[tuple[str, int], Mapping[str, Any]]

    def values(self, case: str, measure: str) -> list[float]:
        """Return the measure of a case for seeds 0, 1, ... in this order, so that two cases can be paired."""
        found = self._measured(case, measure)
        for value in found:
            if isinstance(value, str):
                raise TypeError(f"measure {measure!r} of case {case!r} is no number: {value!r}")
        return found

    def texts(self, case: str, measure: str) -> list[str]:
        """Return a measure that is text, for seeds 0, 1, ... in this order."""
        return [str(value) for value in self._measured(case, measure)]

    def _measured(self, case: str, measure: str) -> list[Any]:
        if case not in self.seeds:
            near = difflib.get_close_matches(case, self.seeds, 2)
            raise MissingResult(f"no case {case!r} in this mode" + (f"; there is {' and '.join(near)}" if near else ""))
        return [self._value(case, seed, measure) for seed in range(self.seeds[case])]

    def mean(self, case: str, measure: str) -> float:
        """Return the mean of a measure over the seeds."""
        return average(self.values(case, measure))

    def _value(self, case: str, seed: int, measure: str) -> Any:
        record = self.records.get((case, seed))
        if record is None:
            raise MissingResult(f"case {case!r} has no result for seed {seed}")
        if "error" in record:
            raise MissingResult(f"case {case!r} failed with seed {seed}: {record['error']}")
        measures = record["measures"]
        if measure not in measures:
            raise MissingResult(f"case {case!r} has no measure {measure!r}; it has {sorted(measures)}")
        return measures[measure]


@dataclass(frozen=True)
class Claim:
    """A statement of a paper that can turn out to be wrong.

    `paper` is the number, or the words, that the paper prints. `measure` returns our values, one for each seed. `holds`
    decides whether the claim holds; with None the numbers are shown side by side and nothing is decided. `why` is the
    known reason if the claim does not hold, and `if_not_run` says why runs that it needs may be missing.
    """

    text: str
    paper: float | str | None
    measure: Callable[[Results], Sequence[float]]
    holds: Callable[[Results], bool] | None = None
    why: str = ""
    if_not_run: str = ""


@dataclass(frozen=True)
class Table:
    """A table that an experiment adds to its report, after the claims; its cells are text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def or_empty(cell: Callable[..., str], *arguments: object) -> str:
    """Return the text of a table cell; empty if runs that it needs are missing."""
    try:
        return cell(*arguments)
    except MissingResult:
        return ""


@dataclass(frozen=True)
class Verdict:
    """A claim with our values; `status` is held, not held, not run, reported (nothing was decided) or error."""

    claim: Claim
    status: str
    reason: str = ""
    values: tuple[float, ...] = ()

    @property
    def mean(self) -> float | None:
        return average(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        return spread(self.values)


def average(values: Sequence[float]) -> float:
    """Return the mean; for infinities of both signs it is nan, where statistics.fmean raises."""
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over the seeds: None for fewer than two values, nan if one is not finite."""
    if len(values) < 2:
        return None
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def gap(paper: float | str | None, values: Sequence[float]) -> str:
    """Return the reason shown for a claim that does not hold and has no known reason: the distance to the paper."""
    if paper is None or isinstance(paper, str):
        return "no reason known yet"
    return f"no reason known yet; {average(values) - paper:+.3g} from the paper's number"


def judge(claim: Claim, results: Results) -> Verdict:
    """Decide one claim. If the claim itself raises, the verdict says so, so that the report is still written."""
    values: tuple[float, ...] = ()
    try:
        values = tuple(float(value) for value in claim.measure(results))
        if not values:
            raise ValueError("its measure gave no values")
        if claim.holds is None:
            return Verdict(claim, REPORTED, values=values)
        if claim.holds(results):
            return Verdict(claim, HELD, values=values)
        return Verdict(claim, NOT_HELD, claim.why or gap(claim.paper, values), values)
    except MissingResult as missing:
        return Verdict(claim, NOT_RUN, "; ".join(filter(None, (str(missing), claim.if_not_run))), values)
    except Exception as error:
        return Verdict(claim, BROKEN, f"the claim raised {type(error).__name__}: {error}", values)
