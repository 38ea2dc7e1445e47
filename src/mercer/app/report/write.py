"""Write the report on a fitted workflow as a page in a file."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mercer.app.files.description import Table
from mercer.app.files.tables import check_output
from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.app.report.clustering import report_clustering
from mercer.app.report.embedding import report_embedding
from mercer.app.report.page import Page, render
from mercer.app.report.prediction import report_prediction
from mercer.exceptions import DataFileError, invalid_parameter
from mercer.storage.atomic import check_path, check_target, write_atomically

REPORTED: dict[type, Callable[..., Page]] = {
    TablePrediction: report_prediction,
    DataEmbedding: report_embedding,
    DataClustering: report_clustering,
}
ENDINGS = (".html", ".htm")


def build_report(workflow: Any, data: Any, *, data_name: str = "the data", random_state: Any = 0) -> str:
    """Return a report on a workflow, with examples from data, as one HTML document that needs no other file.

    Parameters
    ----------
    workflow : fitted TablePrediction, DataEmbedding or DataClustering
    data : data frame, Table or ImageFolder
        The data of the fit, or new data of the same kind.
    data_name : str, default="the data"
        The name of the data on the page.
    random_state : int, RandomState instance or None, default=0
        Draws the rows that are shown if there are too many.

    Notes
    -----
    At most 5000 rows are used, beside those that the fit has kept.
    """
    if isinstance(data, Table) and not isinstance(workflow, TablePrediction):
        data = data.frame
    for kind, report in REPORTED.items():
        if isinstance(workflow, kind):
            return render(report(workflow, data, data_name, random_state))
    raise invalid_parameter(
        "workflow", type(workflow).__name__, [kind.__name__ for kind in REPORTED], "Reports are made for these."
    )


def write_report(
    workflow: Any,
    data: Any,
    path: str | os.PathLike[str],
    *,
    data_name: str = "the data",
    random_state: Any = 0,
) -> None:
    """Write the page of `build_report` to a file. The file is written whole or not at all.

    Parameters
    ----------
    workflow : fitted TablePrediction, DataEmbedding or DataClustering
    data : data frame or ImageFolder
    path : str or path
        Ends in .html.
    data_name : str, default="the data"
    random_state : int, RandomState instance or None, default=0
    """
    check_page(path)
    page = build_report(workflow, data, data_name=data_name, random_state=random_state)
    # Names of files may contain bytes that are not valid text.
    write_atomically(check_target(path, "out"), [page.encode("utf-8", "replace")])


def check_page(path: str | os.PathLike[str], *, read: Iterable[Path] = ()) -> None:
    """Raise if no page can be written to a path, or if it would replace a file that is read.

    Parameters
    ----------
    path : str or path
    read : iterable of paths, default=()
    """
    if check_path(path, "out").suffix.lower() not in ENDINGS:
        raise DataFileError(f"out={str(path)!r} does not end in '.html', as the name of a page must.")
    check_output(path, read=read)
