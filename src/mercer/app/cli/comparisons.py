"""`mercer compare` scores two saved models on the same rows; `mercer leaderboard` ranks many models on one split."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.app.cli.errors import for_people
from mercer.app.cli.options import PLAIN, TableOptions
from mercer.app.cli.parameters import (
    Debug,
    Ignore,
    Json,
    MetricName,
    Seed,
    Table,
    TaskName,
)
from mercer.app.cli.reading_options import reads_tables


@reads_tables()
def compare(
    first: Annotated[Path, typer.Argument(help="A model that `mercer fit` saved.")],
    second: Annotated[Path, typer.Argument(help="Another one, of the same target.")],
    data: Table,
    metric: Annotated[MetricName, typer.Option(help="The score to compare by.")] = MetricName.auto,
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score two saved models on the same rows, and say whether one is better by more than chance.

    If TABLE is the one that both were fitted on, and both left out the same rows, they are scored on those rows.
    """
    with for_people(debug=debug, as_json=as_json):
        _compare(first, second, data, metric.value, seed, as_json, tables)


@reads_tables()
def leaderboard(
    data: Table,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    task: Annotated[TaskName, typer.Option(help="auto: decided by the values of the target.")] = TaskName.auto,
    ignore: Ignore = None,
    split: Annotated[str, typer.Option(metavar="HOW", help="As in mercer fit.")] = "auto",
    test_size: Annotated[float, typer.Option(help="The share of rows to score on.", min=0.01, max=0.9)] = 0.2,
    time_limit: Annotated[
        float, typer.Option(help="Seconds that the whole command may take; 0: no limit.", min=0)
    ] = 300.0,
    metric: Annotated[MetricName, typer.Option(help="The score to rank by.")] = MetricName.auto,
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Rank Mercer's models, simple ones and those of other installed libraries on one split, each with its seconds."""
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.output import notes, phases, print_json
        from mercer.app.files.reading import read_described, warn_of
        from mercer.app.projects.leaderboard import leaderboard as rank
        from mercer.app.projects.watch import Watch

        with notes(), phases() as tell:
            watch = Watch(time_limit or None, tell)
            table = read_described(data, tables.reading(), names=[target])
            warn_of(table.notes)
            found = rank(
                table,
                target,
                task=task.value,
                ignore=tuple(ignore or ()),
                split=split,
                test_size=test_size,
                metric=metric.value,
                random_state=seed,
                watch=watch,
            )
        if as_json:
            print_json(found)
        else:
            _show_leaderboard(found)


def _compare(
    first: Path, second: Path, data: list[Path], metric: str, seed: int, as_json: bool, tables: TableOptions
) -> None:
    from mercer.app.cli.output import notes, number, out_console, print_json
    from mercer.app.files.reading import read_described, warn_of
    from mercer.app.projects.new_rows import readings_of
    from mercer.app.projects.table_prediction import TablePrediction
    from mercer.app.projects.two_models import compare_models
    from mercer.app.report.words import HEADINGS
    from mercer.exceptions import ModelFileError
    from mercer.io import load

    models = [load(path) for path in (first, second)]
    for path, model in zip((first, second), models, strict=True):
        if not isinstance(model, TablePrediction):
            raise ModelFileError(f"{str(path)!r} holds a {type(model).__name__}: give two models of `mercer fit`.")
    with notes():
        target = models[0].target_
        table = read_described(data, tables.reading(), names=[target], readings=readings_of(models[0].readings_))
        warn_of(table.notes)
        names = (str(first), str(second))
        found = compare_models(models[0], models[1], table, names, metric, seed)
    if as_json:
        print_json(found._asdict())
        return
    console = out_console()
    if found.difference:
        gain = found.difference
        by = f"{number(abs(gain['better_by']))} in {HEADINGS[found.metric]}"
        # Only the user knows whether a model has learned from rows that are not among those it left out.
        on_new = "" if found.are_left_out else "If neither model has learned from these rows: "
        ends = f"90% interval {number(gain['low'])} to {number(gain['high'])}"
        if gain["low"] > 0 or gain["high"] < 0:
            better, worse = names if gain["low"] > 0 else names[::-1]
            console.print(
                f"{on_new}{better} is better than {worse} by {by}, more than chance explains ({ends}).", style="bold"
            )
        else:
            console.print(f"Which is better cannot be told: they differ by {by} ({ends}).", style="bold")
    else:
        console.print("There are too few rows to tell which is better.", style="bold")
    what = "rows that both fits have left out" if found.are_left_out else "rows of the data with a target"
    _print_scores(console, found.scores, f"On {found.rows} {what}")
    if not found.are_left_out:
        console.print(
            "A model looks better than it is on rows that it has learned from. To compare fairly, give rows that are "
            "new to both models, or fit both on the same table with the same --seed and --split."
        )


def _show_leaderboard(found: dict[str, Any]) -> None:
    from mercer.app.cli.output import out_console
    from mercer.app.report.words import HEADINGS

    console = out_console()
    fitted = [entry for entry in found["models"] if "error" not in entry]
    scored = f"On {found['n_test']} rows left out, learned from {found['n_train']}"
    title = f"{scored}; ranked by {HEADINGS[found['metric']]}"
    _print_scores(console, fitted, title)
    for entry in found["models"]:
        if "error" in entry:
            console.print(f"{entry['name']} could not be fitted: {entry['error']}", soft_wrap=True)


def _print_scores(console: Any, entries: list[dict[str, Any]], title: str) -> None:
    from mercer.app.cli.output import new_table
    from mercer.app.report.words import HEADINGS, score_texts

    names = [name for name in HEADINGS if any(entry.get(name) is not None for entry in entries)]
    timed = any("seconds" in entry for entry in entries)
    table = new_table("model", *(HEADINGS[name] for name in names), *(["seconds"] if timed else []), title=title)
    columns = [score_texts(name, [entry.get(name) for entry in entries]) for name in names]
    columns += [[f"{entry['seconds']:.2f}" for entry in entries]] if timed else []
    for entry, *values in zip(entries, *columns, strict=True):
        table.add_row(entry["name"], *values)
    console.print(table)
