"""`mercer cluster`: the groups in rows or images, how many there are, and what tells them apart."""

from pathlib import Path
from typing import Any

from rich.console import Console

from mercer.app.cli.embed import about_data, check_outputs, show_files, show_settings, write_answers
from mercer.app.cli.options import PLAIN, TableOptions, for_programs, named
from mercer.app.cli.output import new_table, number, out_console, print_json
from mercer.app.projects.clustering import DataClustering

# The table of groups names this many distinguishing columns and typical files of each group.
MOST_COLUMNS, MOST_FILES = 3, 3


def run(
    data: list[Path],
    out: Path,
    n_clusters: str,
    ignore: tuple[str, ...],
    save: Path | None,
    seed: int,
    as_json: bool,
    tables: TableOptions = PLAIN,
) -> None:
    """Read the data, find the groups, write them, and print what was found."""
    check_outputs(data, out, save)
    # DataClustering itself accepts or refuses anything that is not a whole number.
    wanted = int(n_clusters) if n_clusters.lstrip("+-").isdecimal() else n_clusters
    workflow = DataClustering(wanted, ignore=ignore, random_state=seed)
    workflow.check_parameters()
    write_answers(workflow, data, out, save, tables)
    if as_json:
        print_json(document(workflow, data, out, save))
        return
    console = out_console()
    console.print(f"Read {workflow.describe()} from {named(data)}", soft_wrap=True)
    console.print(f"{how_many(workflow)}\n", soft_wrap=True)
    show_groups(console, workflow)
    show_settings(console, workflow.settings_)
    show_files(console, out, save)


def document(workflow: DataClustering, data: list[Path], out: Path, save: Path | None) -> dict[str, Any]:
    """Return all that is printed, for programs."""
    clusters = []
    for cluster, size in enumerate(workflow.sizes_):
        own = workflow.labels_ == cluster
        clusters.append(
            {
                "cluster": cluster,
                "size": size,
                "confidence": workflow.confidence_[own].mean(),
                "typical": workflow.names_of(workflow.typical_[cluster]),
                "border": workflow.names_of(workflow.border_[cluster]),
                "columns": None if workflow.profiles_ is None else workflow.profiles_[cluster],
            }
        )
    return {
        "data": for_programs(data),
        **about_data(workflow),
        "n_clusters": workflow.n_clusters_,
        "modularity": workflow.modularity_,
        "candidates": workflow.candidates_,
        "clusters": clusters,
        "settings": workflow.settings_,
        "out": out,
        "model": save,
    }


def how_many(workflow: DataClustering) -> str:
    """Return how many groups there are and, if the number was not given, how it was chosen."""
    apart = f"{workflow.modularity_:.2f} (0: not separated, near 1: separated)"
    found = f"Found {workflow.n_clusters_} groups; their modularity is {apart}"
    if not workflow.candidates_:
        return found
    tried = [entry["n_clusters"] for entry in workflow.candidates_]
    (chosen,) = (entry for entry in workflow.candidates_ if entry["chosen"])
    how = (
        f"silhouette {number(chosen['silhouette'])}"
        if chosen["stability"] is None
        else f"groups in two halves of the data agree to {chosen['stability']:.0%}"
    )
    return f"{found}\nTried {tried[0]} to {tried[-1]}: {chosen['n_clusters']} fits best ({how})"


def show_groups(console: Console, workflow: DataClustering) -> None:
    """Print a line for each group: its size, the mean confidence of its members, and what it is like."""
    is_table = workflow.profiles_ is not None
    table = new_table("group", "size", "share", "confidence", "differs most in" if is_table else "typical images")
    table.columns[-1].justify = "left"
    for cluster, size in enumerate(workflow.sizes_):
        confidence = workflow.confidence_[workflow.labels_ == cluster].mean()
        if workflow.profiles_ is not None:
            like = "\n".join(told(entry) for entry in workflow.profiles_[cluster][:MOST_COLUMNS])
        else:
            like = "\n".join(map(str, workflow.names_of(workflow.typical_[cluster][:MOST_FILES])))
        table.add_row(str(cluster), str(size), f"{size / workflow.n_rows_:.1%}", f"{confidence:.1%}", like)
    console.print(table)
    if is_table:
        console.print(
            "Numbers are means of the group; in brackets are the mean of all rows and the difference in standard "
            "deviations."
        )
    console.print()


def told(entry: dict[str, Any]) -> str:
    """Return how a group differs in one column, such as `age 61.2 (48.9, +1.1)`."""
    difference = f"{entry['difference']:+.1f}"
    if entry["kind"] == "other":
        return f"{entry['what']} ({difference})"
    show = "{:.0%}".format if entry["kind"] == "share" else number
    return f"{entry['what']} {show(entry['in_cluster'])} ({show(entry['overall'])}, {difference})"
