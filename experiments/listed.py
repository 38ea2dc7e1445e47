"""Every claim of the five papers, with what decides it and what came of it: read from results, nothing is run."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.claims import HELD, NOT_HELD, NOT_RUN
from experiments.kept import kept_report
from experiments.runner import ROOT, discover

LIST = ROOT / "claims_of_the_papers.toml"
IN_PART = "in part"
BY_TEST = "by test"


@dataclass(frozen=True)
class ListedClaim:
    """A claim of a paper: where it stands, what it says, what is printed, and what decides it.

    `by` are parts of the texts of an experiment's claims ("name|text": of another experiment than the paper's own),
    `tests` are tests of the library, `reason` says why there is no verdict, in case there is none.
    """

    paper: str
    place: str
    says: str
    printed: str = ""
    by: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    reason: str = ""

    def parts(self) -> list[tuple[str, str]]:
        """The experiments and the texts that decide."""
        pairs = [text.partition("|") if "|" in text else (self.paper, "|", text) for text in self.by]
        return [(name, text) for name, _, text in pairs]


@dataclass(frozen=True)
class ListedVerdict:
    """What came of a claim: its status, our figure or how many of how many held, and why if it did not hold."""

    claim: ListedClaim
    status: str
    ours: str = ""
    reason: str = ""


def listed_claims(path: Path = LIST) -> list[ListedClaim]:
    """Read the list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    return [
        ListedClaim(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
        for entry in entries
    ]


@dataclass(frozen=True)
class LeftOut:
    """What a paper does not say, and what is taken in its place."""

    paper: str
    what: str
    taken: str


def left_out(path: Path = LIST) -> list[LeftOut]:
    """Read what the papers leave out."""
    return [LeftOut(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["left_out"]]


def kept_reports(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """The reports that the repository keeps, by experiment."""
    found = {name: kept_report(name) for name in discover(root)}
    return {name: report for name, report in found.items() if report is not None}


def deciding(claim: ListedClaim, reports: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The claims of experiments' reports that decide a listed one."""
    return [
        each for name, text in claim.parts() for each in reports.get(name, {}).get("claims", ()) if text in each["text"]
    ]


def decided(claim: ListedClaim, reports: Mapping[str, Mapping[str, Any]]) -> ListedVerdict:
    """Judge a listed claim: by the experiments' verdicts, or else by its tests, or else not run."""
    found = [each for each in deciding(claim, reports) if each["status"] in (HELD, NOT_HELD)]
    if not found:
        if claim.tests:
            return ListedVerdict(claim, HELD, BY_TEST, claim.reason)
        return ListedVerdict(claim, NOT_RUN, "", claim.reason)
    held = sum(each["status"] == HELD for each in found)
    status = HELD if held == len(found) else NOT_HELD if held == 0 else IN_PART
    reasons = dict.fromkeys(each["reason"] for each in found if each["status"] == NOT_HELD)
    return ListedVerdict(claim, status, shown(found, held), "; ".join(filter(None, reasons)))


def shown(found: list[Mapping[str, Any]], held: int) -> str:
    """Our mean where one claim decides, else how many of them held."""
    if len(found) > 1:
        return f"{held} of {len(found)}"
    mean = found[0]["mean"]
    return "" if mean is None else mean if isinstance(mean, str) else f"{mean:.3g}"


def verdicts(reports: Mapping[str, Mapping[str, Any]] | None = None) -> list[ListedVerdict]:
    """All claims of the list with what came of them, by the reports that the repository keeps if none are given."""
    reports = kept_reports() if reports is None else reports
    return [decided(claim, reports) for claim in listed_claims()]
