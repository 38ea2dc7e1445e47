"""Every paper's method says in a table which line of the paper is which parameter, and the pages show it as a table."""

import inspect
import sys
from io import StringIO
from pathlib import Path

import pytest

from mercer import papers

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
METHODS = [name for name in papers.__all__ if name != "seventy_thirty"]


@pytest.mark.parametrize("name", METHODS)
def test_the_table_of_a_method_has_two_columns(name, monkeypatch):
    core, nodes = pytest.importorskip("docutils.core"), pytest.importorskip("docutils.nodes")
    monkeypatch.syspath_prepend(str(DOCS))
    from plain_docstrings import as_restructured_text

    sys.modules.pop("plain_docstrings")
    text = inspect.getdoc(getattr(papers, name)).partition("\nParameters\n---")[0]
    complaints = StringIO()
    document = core.publish_doctree(
        "\n".join(as_restructured_text(text.splitlines())),
        settings_overrides={"warning_stream": complaints, "report_level": 1},
    )
    assert not complaints.getvalue()
    (table,) = document.findall(nodes.table)
    head, *rows = ([cell.astext() for cell in row.findall(nodes.entry)] for row in table.findall(nodes.row))
    assert head in (["line of the paper", "our parameter"], ["line of the note", "our parameter"])
    assert rows
    assert all(len(row) == 2 and all(row) and "\n" not in "".join(row) for row in rows)
