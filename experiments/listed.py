"""The list of all claims of the five papers, each with what decides it and its verdict; no experiment is run."""

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
    """A claim of a paper: its place there, what it says, the printed number, and what decides it.

    `by` holds parts of the texts of the claims that decide it, in the experiment of the paper; "name|text" names
    another experiment. `tests` are tests of the library that decide it. `reason` says why there is no verdict.
    """

    paper: str
    place: str
    says: str
    printed: str = ""
    by: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    reason: str = ""

    def parts(self) -> list[tuple[str, str]]:
        """Return (experiment, part of the text) for each of the deciding claims."""
        pairs = [text.partition("|") if "|" in text else (self.paper, "|", text) for text in self.by]
        return [(name, text) for name, _, text in pairs]


@dataclass(frozen=True)
class ListedVerdict:
    """The verdict on a listed claim: its status, our number or how many claims held, and the reason if it did not."""

    claim: ListedClaim
    status: str
    ours: str = ""
    reason: str = ""


def listed_claims(path: Path = LIST) -> list[ListedClaim]:
    """Return the claims of the list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    return [
        ListedClaim(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
        for entry in entries
    ]


@dataclass(frozen=True)
class LeftOut:
    """A detail that a paper does not give, and the choice that was made for it."""

    paper: str
    what: str
    taken: str


def left_out(path: Path = LIST) -> list[LeftOut]:
    """Return the details that the papers leave out, from the same file."""
    return [LeftOut(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["left_out"]]


def kept_reports(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Return the reports that the repository keeps, by the name of the experiment."""
    found = {name: kept_report(name) for name in discover(root)}
    return {name: report for name, report in found.items() if report is not None}


def deciding(claim: ListedClaim, reports: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the claims in the reports of experiments that decide a listed claim."""
    return [
        each for name, text in claim.parts() for each in reports.get(name, {}).get("claims", ()) if text in each["text"]
    ]


def decided(claim: ListedClaim, reports: Mapping[str, Mapping[str, Any]]) -> ListedVerdict:
    """Judge a listed claim by the verdicts of experiments; without any, by its tests; without either it is not run."""
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
    """Return our mean if a single claim decides, otherwise how many of the deciding claims held."""
    if len(found) > 1:
        return f"{held} of {len(found)}"
    mean = found[0]["mean"]
    return "" if mean is None else mean if isinstance(mean, str) else f"{mean:.3g}"


def verdicts(reports: Mapping[str, Mapping[str, Any]] | None = None) -> list[ListedVerdict]:
    """Return the verdicts on all claims of the list, by the reports that the repository keeps if none are given."""
    reports = kept_reports() if reports is None else reports
    return [decided(claim, reports) for claim in listed_claims()]
