"""The results of full runs that the repository keeps in docs/results, so that they can be read without a run."""

import json
from pathlib import Path
from typing import Any

from experiments.runner import ROOT, Record, mode, settings_key

KEPT = ROOT.parent / "docs" / "results"


def kept_report(name: str, folder: Path = KEPT) -> dict[str, Any] | None:
    """Return the report of the full runs of an experiment; None if the repository keeps none."""
    path = folder / f"{name}-{mode(quick=False)}.json"
    return json.loads(path.read_text()) if path.exists() else None


def records_of(report: dict[str, Any]) -> list[Record]:
    """Return the journal lines from which a report was made; for incomplete cases only those whose seed is known."""
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
    """Convert "nan", "inf" and "-inf" back to numbers; reports write these as text, since JSON does not have them."""
    return float(value) if value in ("nan", "inf", "-inf") else value


def provenance(case: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Return versions, commit and machine of a case; if the report has several versions of a library, the last one."""
    versions = {library: found[-1] for library, found in report["versions"].items()}
    return {"versions": versions, **{name: case[name] for name in ("commit", "machine") if case.get(name)}}
