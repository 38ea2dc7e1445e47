"""`mercer fit`: learn to predict a column of a table, say how well and by which inputs, and save the model."""

import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from mercer.app.cli.errors import STOPPED
from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import bar, indented, new_table, notes, number, out_console, phases, print_json
from mercer.app.files.column import in_words
from mercer.app.files.description import Table
from mercer.app.files.reading import read_described, warn_of
from mercer.app.files.tables import check_columns, check_model_output
from mercer.app.projects.origin import hashes_of
from mercer.app.projects.stages import CTRL_C, TIME_LIMIT
from mercer.app.projects.table_prediction import TablePrediction
from mercer.app.projects.watch import Watch
from mercer.app.report.further import curve_in_words, repeats_in_words
from mercer.app.report.verdict import Verdict, verdict_of
from mercer.app.report.words import HEADINGS, score_texts
from mercer.exceptions import DataFileError
from mercer.io import save

MOST_INPUTS = 10


def run(
    data: list[Path],
    target: str,
    out: Path,
    model: str,
    task: str,
    ignore: tuple[str, ...],
    split: str,
    test_size: float,
    time_limit: float | None,
    seed: int,
    as_json: bool,
    tables: TableOptions = PLAIN,
    metric: str = "auto",
    repeats: int = 1,
    learning_curve: bool = False,
) -> None:
    """Read the table, fit, save the model, and print what was found."""
    check_model_output(out, read=data)
    workflow = TablePrediction(
        model,
        task=task,
        ignore=ignore,
        split=split,
        test_size=test_size,
        time_limit=time_limit,
        metric=metric,
        repeats=repeats,
        learning_curve=learning_curve,
        random_state=seed,
    )
    with notes(), phases() as tell:
        watch = Watch(time_limit, tell)  # the time for reading counts too
        watch.begin(f"reading {named(data)}")
        table = read_described(data, tables.reading(), names=[target])
        warn_of(table.notes)
        check_columns(table.frame.columns, [target], "target column")
        workflow.fit(table, target, watch, {"command": shlex.join(["mercer", *sys.argv[1:]]), "data": hashes_of(data)})
    save(workflow, out)
    if as_json:
        print_json(document(workflow, data, table, out))
    else:
        show(out_console(), workflow, data, len(table), out)
    if workflow.stopped_ == CTRL_C:
        raise typer.Exit(STOPPED)


def default_out(data: list[Path], target: str, *, force: bool) -> Path:
    """Return the default file of a model, such as rents-price.mercer in the current folder.

    It is an error if the file exists and `force` is not set.
    """
    table = "table" if str(data[0]) == "-" else data[0].name.split(".")[0]
    plain_names = ("".join(letter if letter.isalnum() else "_" for letter in text[:40]) for text in (table, target))
    words = (name.strip("_") for name in plain_names)
    out = Path("-".join(word for word in words if word) + ".mercer")
    if out.exists() and not force:
        raise DataFileError(f"{str(out)!r} exists: give another name with --out, or replace it with --force.")
    return out


def document(workflow: TablePrediction, data: list[Path], table: Table, out: Path) -> dict[str, Any]:
    """Return everything that `show` prints as a dictionary, for programs."""
    return {
        "verdict": verdict_of(workflow)._asdict(),
        "data": for_programs(data),
        "rows": len(table),
        "reading": table.describe(),
        "dropped_rows": workflow.dropped_rows_,
        "target": workflow.target_,
        "task": workflow.task_,
        "metric": workflow.metric_,
        "inputs": workflow.kinds_,
        "split": workflow.split_,
        "findings": workflow.findings_,
        "n_train": workflow.n_train_,
        "n_test": workflow.n_test_,
        "n_learned": workflow.n_learned_,
        "stopped": workflow.stopped_,
        "scores": workflow.scores_,
        "intervals": workflow.intervals_,
        "compared_with": workflow.compared_with_,
        "compared_with_guess": workflow.compared_with_guess_,
        "recalls": workflow.recalls_,
        "repeats": workflow.repeats_,
        "learning_curve": workflow.curve_,
        "needs": workflow.needs_,
        "wrong": workflow.wrong_,
        "compared": workflow.compared_,
        "settings": workflow.settings_,
        "importances": workflow.importances_,
        "combinations": workflow.combinations_,
        "out": out,
    }


def show(console: Console, workflow: TablePrediction, data: list[Path], n_rows: int, out: Path) -> None:
    """Print the verdict, what was read, the scores, the chosen settings, and which inputs count."""
    show_verdict(console, verdict_of(workflow))
    kinds = Counter(workflow.kinds_.values())
    listed = ", ".join(f"{count} {in_words(kind, count)}" for kind, count in kinds.most_common())
    console.print(f"Read {n_rows} rows and {len(workflow.kinds_)} inputs ({listed}) from {named(data)}", soft_wrap=True)
    console.print(f"Predicting {workflow.target_}: {workflow.task_}\n", soft_wrap=True)
    show_findings(console, workflow)
    if workflow.scores_:
        show_scores(console, workflow)
        show_recalls(console, workflow)
        show_further(console, workflow)
    show_settings(console, workflow)
    show_importances(console, workflow)
    show_combinations(console, workflow)
    console.print(f"{saved_in_words(workflow)} saved to {out}", soft_wrap=True)


def saved_in_words(workflow: TablePrediction) -> str:
    """Return the beginning of the last line: which rows the model that is saved has learned from."""
    if not workflow.stopped_:
        return "The model was fitted on all rows and"
    ended = "The time limit" if workflow.stopped_ == TIME_LIMIT else workflow.stopped_
    return f"{ended} ended the fit. The best model so far, which has learned from {workflow.n_learned_} rows, was"


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print the verdict: how good the model is, against what, and whether to trust it."""
    for sentence in (verdict.good, verdict.against, verdict.trust):
        console.print(sentence, style="bold")
    console.print()


def show_scores(console: Console, workflow: TablePrediction) -> None:
    """Print the scores on the rows left out beside those of the baselines."""
    names = [name for name in workflow.scores_[0] if name != "name"]
    names = [name for name in names if any(row[name] is not None for row in workflow.scores_)]
    title = (
        f"Scores on {workflow.n_test_} rows left out ({how_split(workflow)}), after learning from {workflow.n_train_}"
    )
    table = new_table("model", *(HEADINGS[name] for name in names), title=title)
    columns = [score_texts(name, [row[name] for row in workflow.scores_]) for name in names]
    for row, *values in zip(workflow.scores_, *columns, strict=True):
        table.add_row(row["name"], *values, style="bold" if row is workflow.scores_[0] else None)
    console.print(table)
    console.print()


def how_split(workflow: TablePrediction) -> str:
    """Return in words how the rows left out were chosen."""
    kind, column = workflow.split_["kind"], workflow.split_["column"]
    if kind == "random":
        return "at random"
    return f"whole groups of {column!r}" if kind == "group" else "the last" + (f" by {column!r}" if column else "")


def show_findings(console: Console, workflow: TablePrediction) -> None:
    """Print what to know before a score is trusted. Columns left out are not repeated: a note has named them."""
    told = [finding["text"] for finding in workflow.findings_ if finding["kind"] not in ("identifier", "group")]
    if told:
        console.print("Worth a look", style="bold")
        for text in told:
            console.print(indented(text[:1].upper() + text[1:]))
        console.print()


def show_recalls(console: Console, workflow: TablePrediction) -> None:
    """Print what share of the rows of each class was recognized."""
    if workflow.recalls_:
        found = "; ".join(f"{row['class']}: {row['recall']:.0%} of {row['rows']}" for row in workflow.recalls_)
        console.print(f"Rows of each class that were recognized: {found}.")
        console.print()


def show_further(console: Console, workflow: TablePrediction) -> None:
    """Print the scores on further splits, and whether more rows would help, if these were asked for."""
    told = [text for text in (repeats_in_words(workflow), curve_in_words(workflow)) if text]
    for text in told:
        console.print(text)
    if told:
        console.print()


def show_settings(console: Console, workflow: TablePrediction) -> None:
    """Print the model and the settings that were chosen."""
    console.print("Chosen", style="bold")
    if len(workflow.compared_) > 1:
        scores = ", ".join(f"{name} {number(score)}" for name, score in workflow.compared_.items())
        by = HEADINGS[workflow.metric_]
        console.print(indented(f"model: {workflow.chosen_}, by the {by} on a part of the training rows: {scores}"))
    for name, value in workflow.settings_.items():
        text = number(value) if isinstance(value, float) else str(value)
        console.print(indented(f"{name}: {text}"))
    console.print()


def show_importances(console: Console, workflow: TablePrediction) -> None:
    """Print the inputs that count most, with bars."""
    top = list(workflow.importances_.items())[:MOST_INPUTS]
    if not top:
        return
    console.print("Inputs, by how much they count", style="bold")
    table = new_table("input", "share", "", box=None, pad_edge=False)
    table.columns[2].justify = "left"
    for name, share in top:
        table.add_row(name, f"{share:.1%}", bar(share, console))
    rest = len(workflow.importances_) - len(top)
    if rest:
        share = 1.0 - sum(share for _, share in top)
        table.add_row(f"{rest} more", f"{max(share, 0.0):.1%}", bar(max(share, 0.0), console))
    console.print(indented(table))
    console.print()


def show_combinations(console: Console, workflow: TablePrediction) -> None:
    """Print the combinations of inputs that count most in the learned metric."""
    if not workflow.combinations_:
        return
    console.print(
        "Combinations of inputs that the model looks at, with their share; inputs are on one scale", style="bold"
    )
    for combination in workflow.combinations_:
        terms = " ".join(f"{weight:+.2f} {name}" for name, weight in combination["terms"])
        console.print(indented(f"{combination['share']:.1%}: {terms}"))
    console.print()
