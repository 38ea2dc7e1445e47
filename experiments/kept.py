"""Results that the repository keeps (docs/results): what was measured, so that nobody has to run it to read it."""

import json
from pathlib import Path
from typing import Any

from experiments.runner import ROOT, Record, mode, settings_key

KEPT = ROOT.parent / "docs" / "results"


def kept_report(name: str, folder: Path = KEPT) -> dict[str, Any] | None:
    """The report of an experiment's full runs, if the repository keeps one."""
    path = folder / f"{name}-{mode(quick=False)}.json"
    return json.loads(path.read_text()) if path.exists() else None


def records_of(report: dict[str, Any]) -> list[Record]:
    """The lines of a journal that a report was made of; of a case with seeds missing, those whose seed is known."""
    made: list[Record] = []
    for case in report["cases"]:
        seeds = case.get("seeds done", list(range(case["done"])) if case["done"] == case["seeds"] else [])
        shared = {"case": case["case"], "key": settings_key(case["settings"]), "settings": case["settings"]}
        for place, seed in enumerate(seeds):
            measures = {name: values[place] for name, values in case["measures"].items() if len(values) == len(seeds)}
            made.append(
                {
                    **shared,
                    "seed": seed,
                    "measures": {name: as_number(value) for name, value in measures.items()},
                    "seconds": round(case["seconds"] / len(seeds), 3),
                    **provenance(case, report),
                }
            )
    return made


def as_number(value: Any) -> Any:
    """A measure as it was: reports write nan and infinities, which JSON lacks, as text."""
    return float(value) if value in ("nan", "inf", "-inf") else value


def provenance(case: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Versions, commit and machine of a case; of several in a report that did not tell cases apart, the last."""
    versions = {library: found[-1] for library, found in report["versions"].items()}
    return {"versions": versions, **{name: case[name] for name in ("commit", "machine") if case.get(name)}}
