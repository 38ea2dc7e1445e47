"""The commands and their options. The work of each command is in a module that is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from mercer.app.cli.comparisons import compare, leaderboard
from mercer.app.cli.completion import complete_papers, complete_sets
from mercer.app.cli.errors import for_people
from mercer.app.cli.options import PLAIN, TableOptions
from mercer.app.cli.parameters import (
    Data,
    Debug,
    Ignore,
    Json,
    MetricName,
    Model,
    ModelName,
    Out,
    Save,
    Seed,
    Table,
    TaskName,
)
from mercer.app.cli.reading_options import reads_tables

EXIT_CODES = (
    "Exit codes: 0 done, 1 it could not be done and the message says why, 2 the command was called wrongly, "
    "70 a defect in Mercer itself, 130 stopped by Ctrl-C."
)
app = typer.Typer(
    help="Mercer: kernel machines that learn their features.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        import mercer as package

        print(f"mercer {package.__version__}")
        raise typer.Exit


@app.callback()
def mercer(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Mercer: kernel machines that learn their features."""


@app.command()
@reads_tables()
def fit(
    context: typer.Context,
    data: Table,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    out: Annotated[
        Path | None, typer.Option(help="The file that the model is saved to.", show_default="TABLE-TARGET.mercer")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace that file if it exists and --out was not given.")
    ] = False,
    model: Annotated[
        ModelName, typer.Option(help="auto: gp for numbers, the better of rfm and discriminant for classes.")
    ] = ModelName.auto,
    task: Annotated[TaskName, typer.Option(help="auto: decided by the values of the target.")] = TaskName.auto,
    ignore: Ignore = None,
    split: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="How the rows to score on are chosen: auto, random, time, time:COLUMN or group:COLUMN."
        ),
    ] = "auto",
    test_size: Annotated[float, typer.Option(help="The share of rows to score on.", min=0.0, max=0.9)] = 0.2,
    time_limit: Annotated[
        float, typer.Option(help="Seconds that the whole command may take; 0: no limit.", min=0)
    ] = 120.0,
    metric: Annotated[MetricName, typer.Option(help="The score to judge by.")] = MetricName.auto,
    repeats: Annotated[int, typer.Option(help="Score on this many splits, with a new fit for each.", min=1)] = 1,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Also measure whether more rows would help.")
    ] = False,
    seed: Seed = 0,
    landmarks: Annotated[
        int | None,
        typer.Option(help="For Parquet files larger than memory: how many rows stand for all in the model.", min=2),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="With --landmarks: processes that share the work.", min=1)] = None,
    cluster: Annotated[str | None, typer.Option(help="With --landmarks: a Dask scheduler, tcp://host:8786.")] = None,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Learn to predict a column of a table, say how well and by which inputs, and save the model."""
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.fit import default_out, run

        out = out or default_out(data, target, force=force)
        if landmarks is not None or workers is not None or cluster is not None:
            from mercer.app.cli import fit_rows

            limit, ignored = time_limit or None, tuple(ignore or ())
            fit_rows.check_options(context)
            who, m = fit_rows.Workers(workers, cluster), landmarks or fit_rows.LANDMARKS
            fit_rows.run(data, target, out, model.value, task.value, ignored, test_size, limit, seed, as_json, m, who)
            return

        run(
            data,
            target,
            out,
            model.value,
            task.value,
            tuple(ignore or ()),
            split,
            test_size,
            time_limit or None,
            seed,
            as_json,
            tables,
            metric.value,
            repeats,
            learning_curve,
        )


@app.command()
@reads_tables()
def inspect(
    data: Table,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show how a table is read: its format, the kind of each column and why, what is missing and what is odd."""
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.inspect import run

        run(data, as_json, tables)


@app.command()
@reads_tables(writes_csv=True)
def predict(
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write: CSV, TSV, Parquet, Feather or Excel.", show_default="standard output"),
    ] = None,
    why: Annotated[
        int | None, typer.Option(metavar="ROW", help="Explain the prediction of one row; the first is 0.", min=0)
    ] = None,
    level: Annotated[float, typer.Option(help="The share of targets that intervals cover.", min=0.01, max=0.999)] = 0.9,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict for new rows: numbers with intervals, classes with probabilities, coordinates or clusters."""
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.predict import run

        run(model, data, out, level, as_json, tables, why, context)


@app.command()
@reads_tables(writes_csv=True)
def embed(
    data: Data,
    out: Out,
    n_components: Annotated[int, typer.Option(help="How many coordinates.", min=1)] = 32,
    ignore: Ignore = None,
    save: Save = None,
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Learn coordinates of rows or images without labels, and a map of them in two dimensions.

    The output has a line for each row or image, in the same order: `row` (from 0) or `name`, `map_1`, `map_2`,
    `component_1` and so on. The columns of the input are not repeated.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.embed import run

        run(
            data,
            out,
            n_components,
            tuple(ignore or ()),
            save,
            seed,
            as_json,
            tables,
        )


@app.command()
@reads_tables(writes_csv=True)
def cluster(
    data: Data,
    out: Out,
    n_clusters: Annotated[str, typer.Option(help="How many clusters, or auto.")] = "auto",
    ignore: Ignore = None,
    save: Save = None,
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Find the groups in rows or images.

    The output has a line for each row or image, in the same order: `row` (from 0) or `name`, `cluster` (0 is the
    largest) and `confidence`. The columns of the input are not repeated.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.cluster import run

        run(
            data,
            out,
            n_clusters,
            tuple(ignore or ()),
            save,
            seed,
            as_json,
            tables,
        )


@app.command()
def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(help="An experiment, or all; without it, all are listed.", autocompletion=complete_papers),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small settings that take minutes; all papers if none is named.")
    ] = False,
    seeds: Annotated[int | None, typer.Option(help="Seeds per case, instead of each case's own.", min=1)] = None,
    only: Annotated[str, typer.Option(metavar="TEXT", help="Only the cases whose name contains TEXT.")] = "",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard earlier results (with --only, of those cases).")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Start nothing new after this time.", min=0.0)
    ] = None,
    results: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder for journals and reports.")] = None,
    kept: Annotated[
        bool, typer.Option("--kept", help="Count the full runs that the repository keeps as done.")
    ] = False,
    not_run: Annotated[bool, typer.Option("--not-run", help="Also list claims that were not run.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Test the papers' claims: the paper's number, ours, its spread, whether the claim held and, if not, why.

    This works in a checkout of Mercer's repository. Results are kept, so that a stopped run continues when it is
    called again. The exit code is 0 whether claims held or not, and 1 if a run failed.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.reproduce import run

        run(paper, quick, seeds, only, fresh, time_limit, results, kept, not_run, as_json)


data_app = typer.Typer(help="List the data sets of the experiments, and fetch them.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@data_app.command("list")
def list_data(as_json: Json = False, debug: Debug = False) -> None:
    """List the data sets and where each is found. Nothing is fetched or read."""
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.data import show_list

        show_list(as_json)


@data_app.command("get")
def get_data(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Data sets; uci for seven, or all.", autocompletion=complete_sets),
    ],
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Put them here, not in the cache.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Fetch them again if they are there.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fetch data sets from their public sources, and verify those that are there already.

    They go into the folder that the environment variable MERCER_DATA names, or else into Mercer's cache.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.data import fetch

        fetch(names, out, fresh, as_json)


@app.command()
@reads_tables()
def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="The page to write; its name ends in .html.")],
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write what a model has found as one HTML page: how good and how sure it is, and why; or a map to explore.

    DATA is best the data of the fit: the rows that it left out are then shown with their inputs. Other data are
    predicted anew. The page is one file, and loads nothing from elsewhere.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.report import run

        run(
            model,
            data,
            out,
            seed,
            as_json,
            tables,
        )


@app.command()
@reads_tables(writes_csv=True)
def explore(
    model: Model,
    data: Data,
    other: Annotated[
        Path | None, typer.Option("--with", metavar="MODEL", help="Another model to compare on the same rows.")
    ] = None,
    concepts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the concepts that you name here, and show those saved before."),
    ] = None,
    port: Annotated[int, typer.Option(help="The port on this machine; 0: any free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    seed: Seed = 0,
    tables: TableOptions = PLAIN,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Explore what a model has learned: a map of the rows, the reasons for each answer, concepts drawn with a lasso.

    The page is served on this machine until Ctrl-C, to those who have its address with the token. Nothing is sent
    elsewhere. Only what you export on the page, and concepts if --concepts names a file, are written.
    """
    with for_people(debug=debug, as_json=as_json):
        from mercer.app.cli.explore import run

        run(
            model,
            data,
            other,
            concepts,
            port,
            browser,
            seed,
            as_json,
            tables,
        )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figures; made if need be.")] = Path("mercer-demo"),
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Take a tour on data that scikit-learn ships: tables, embeddings, a map of classes, clusters; a minute or so."""
    with for_people(debug=debug):
        from mercer.app.cli.demo import run

        run(out, seed)


app.command()(compare)
app.command()(leaderboard)
