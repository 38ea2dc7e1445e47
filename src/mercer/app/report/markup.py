"""Functions that build HTML. Everything but `Html` is escaped, so that names and values of a table are never markup."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mercer.app.report.words import text_of

# The elements in use that have no content.
VOID = ("img", "source")
IS_NUMBER = re.compile(r"[-+−]?[\d,.]+(e[-+]?\d+)?%?|–")


class Html(str):
    """Text that is markup. Only the functions of this module, and the package's own files, may make it."""


def escape(value: Any) -> Html:
    """Return a value as markup: `Html` is unchanged, and special characters of anything else are escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(parts: Iterable[Any]) -> Html:
    """Return the parts joined to one, each escaped unless it is markup."""
    return Html("".join(escape(part) for part in parts))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
    *children : Html, or anything to be escaped
    **attributes : values
        True writes the name alone, and None leaves it out. An underscore at the end of a name is dropped (`class_`),
        and others become hyphens (`aria_label`).
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>" if name in VOID else f"<{name}{written}>{join(children)}</{name}>")


def paragraph(*children: Any, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return tag("p", *children, class_=class_)


def table(headings: Sequence[Any], rows: Iterable[Sequence[Any]], *, label: str, strong: int | None = None) -> Html:
    """Return a table that scrolls if it is wider than the page.

    Parameters
    ----------
    headings : sequence
    rows : iterable of sequences
        The first cell of each is the heading of its row. Cells that are not strings are written by `text_of`.
    label : str
        What the table shows, for readers who do not see it.
    strong : int or None, default=None
        The row to be emphasized.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    # Columns of numbers, and their headings, are aligned to the right.
    sides = ["number" if all(map(IS_NUMBER.fullmatch, column)) else None for column in zip(*cells, strict=True)]
    sides = sides or [None] * len(headings)
    head = tag("tr", *(tag("th", text, scope="col", class_=side) for text, side in zip(headings, sides, strict=True)))
    body = [
        tag(
            "tr",
            tag("th", first, scope="row", class_=sides[0]),
            *(tag("td", cell, class_=side) for cell, side in zip(rest, sides[1:], strict=True)),
            class_="strong" if i == strong else None,
        )
        for i, (first, *rest) in enumerate(cells)
    ]
    written = tag("table", tag("thead", head), tag("tbody", *body))
    # The table can have the focus, so that the keyboard can scroll it.
    return tag("div", written, class_="scroll", role="region", aria_label=label, tabindex="0")


def facts(pairs: Iterable[tuple[Any, Any]]) -> Html:
    """Return a list of names, each with its value."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", _cell(value))) for name, value in pairs))


def json_block(id_: str, value: Any) -> Html:
    """Return data for the script of the page. They are escaped so that no text in them can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(id_)}">{text}</script>')


def _cell(value: Any) -> Any:
    return value if isinstance(value, str) else text_of(value)
