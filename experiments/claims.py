"""What a paper says, what was measured, and whether the one bears out the other."""

import difflib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HELD, NOT_HELD, NOT_RUN, REPORTED, BROKEN = "held", "not held", "not run", "reported", "error"


class MissingResult(LookupError):
    """A claim asked for a measure that no finished run gives; the report shows the claim as not run."""


@dataclass(frozen=True)
class Results:
    """The finished runs of one experiment, seen by its claims.

    `seeds` says how many seeds each case has to have; `records` holds one journal line for each
    (case, seed) that was tried. A case counts only once all its seeds are there: a mean over those that
    happened to finish would be another number, and paired comparisons would pair different seeds.
    """

    seeds: Mapping[str, int]
    records: Mapping[tuple[str, int], Mapping[str, Any]]

    def values(self, case: str, measure: str) -> list[float]:
        """The measure for seeds 0, 1, ... of a case, in that order, so that two cases can be paired."""
        found = self._measured(case, measure)
        for value in found:
            if isinstance(value, str):
                raise TypeError(f"measure {measure!r} of case {case!r} is no number: {value!r}")
        return found

    def texts(self, case: str, measure: str) -> list[str]:
        """The same for a measure that is text."""
        return [str(value) for value in self._measured(case, measure)]

    def _measured(self, case: str, measure: str) -> list[Any]:
        if case not in self.seeds:
            near = difflib.get_close_matches(case, self.seeds, 2)
            raise MissingResult(f"no case {case!r} in this mode" + (f"; there is {' and '.join(near)}" if near else ""))
        return [self._value(case, seed, measure) for seed in range(self.seeds[case])]

    def mean(self, case: str, measure: str) -> float:
        """The mean of `values` over the seeds."""
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
    """One sentence of a paper that can turn out wrong.

    `paper` is the number (or words) printed there, `measure` gives ours, one value a seed, `holds` decides
    (None: the numbers are shown side by side and nothing is decided), `why` is the known reason in case
    it does not hold, and `if_not_run` why runs that it needs may be missing.
    """

    text: str
    paper: float | str | None
    measure: Callable[[Results], Sequence[float]]
    holds: Callable[[Results], bool] | None = None
    why: str = ""
    if_not_run: str = ""


@dataclass(frozen=True)
class Table:
    """An overview of an experiment's own, shown after the claims; cells are text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def or_empty(cell: Callable[..., str], *arguments: object) -> str:
    """The text of a cell of a table; empty where runs that it needs are not there."""
    try:
        return cell(*arguments)
    except MissingResult:
        return ""


@dataclass(frozen=True)
class Verdict:
    """A claim with our numbers; `status` is held, not held, not run, reported (nothing decides) or error."""

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
    """The mean; unlike statistics.fmean it gives nan, and does not raise, for infinities of both signs."""
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float | None:
    """Standard deviation over the seeds; None for fewer than two values, nan where one is not finite."""
    if len(values) < 2:
        return None
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def gap(paper: float | str | None, values: Sequence[float]) -> str:
    """What is said of a claim that does not hold for no reason that is known: how far from the paper's number."""
    if paper is None or isinstance(paper, str):
        return "no reason known yet"
    return f"no reason known yet; {average(values) - paper:+.3g} from the paper's number"


def judge(claim: Claim, results: Results) -> Verdict:
    """Decide one claim. A claim that is itself faulty must not cost the report of hours of runs."""
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
