"""The tables of the experiment: contestants by sets, Table 5 with the paper's numbers, and landmarks."""

from experiments import Results, Table, or_empty

from .cases import CONTESTANTS, DEFAULT, FULL, QUICK, on, row_of_table_5
from .concept_cases import concept_tables
from .paper import LANDMARKS, LOSSES, SETTINGS, TABLE_5
from .step_tables import shown, step_tables


def tables(results: Results) -> list[Table]:
    """Return all tables; cells with missing runs are empty."""
    return [
        set_table(results, "accuracy", "Accuracy of the probe, 10 % of the labels"),
        set_table(results, "balanced accuracy", "Balanced accuracy of the probe"),
        set_table(results, "fit seconds", "Fit, seconds"),
        table_5(results),
        settings_table(),
        *step_tables(results),
        landmark_table(results),
        *concept_tables(results),
    ]


def set_table(results: Results, measure: str, title: str) -> Table:
    """Return a table of a measure, with a row for each contestant and a column for each set."""
    sets = [data for data in (*FULL, *QUICK) if on(data, DEFAULT) in results.seeds]
    rows = [[name, *(or_empty(shown, results, on(data, name), measure) for data in sets)] for name in CONTESTANTS]
    return Table(title, ("contestant", *sets), rows)


def table_5(results: Results) -> Table:
    """Return the accuracy by loss and landmarks on MNIST (quick: digits), with the paper's in brackets."""
    data = "mnist" if on("mnist", DEFAULT) in results.seeds else "digits"
    rows = []
    for loss in LOSSES:
        cases = [on(data, row_of_table_5(loss, landmarks)) for landmarks in LANDMARKS]
        ours = [or_empty(shown, results, case, "accuracy") for case in cases]
        theirs = [f"[{TABLE_5[loss, landmarks]}]" for landmarks in LANDMARKS]
        rows.append([loss, *(f"{own} {paper}".strip() for own, paper in zip(ours, theirs, strict=True))])
    return Table(f"Table 5: accuracy on {data}, the paper's on mnist in brackets", ("loss", *LANDMARKS), rows)


def settings_table() -> Table:
    rows = [[name, *both] for name, both in SETTINGS.items()]
    return Table("Table 5: what must be settled", ("setting", "the paper, on mnist", "here"), rows)


def landmark_table(results: Results) -> Table:
    """Return the measures of the landmarks of every embedding."""
    measures = ("kappa", "kappa of a random order", "top 3 of the class", "top 3 by the kernel alone")
    rows = [[case, *(or_empty(shown, results, case, measure) for measure in measures)] for case in results.seeds]
    return Table("Landmarks", ("embedding", *measures), [row for row in rows if any(row[1:])])
