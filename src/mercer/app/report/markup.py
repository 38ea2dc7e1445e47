"""HTML made of functions: what is not markup by its type is escaped, so that no name or value of a table can act."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mercer.app.report.words import text_of

# Tags that have no content, of those in use.
VOID = ("img", "source")
IS_NUMBER = re.compile(r"[-+−]?[\d,.]+(e[-+]?\d+)?%?|–")


class Html(str):
    """Text that is markup already. Made by the functions of this module, and of the package's own files."""


def escape(value: Any) -> Html:
    """Return a value as markup: `Html` as it is, anything else as text with its special characters escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(parts: Iterable[Any]) -> Html:
    """Return parts after one another, each escaped unless it is markup."""
    return Html("".join(escape(part) for part in parts))


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
    *children : Html, or anything to be escaped
    **attributes : values
        Or True for a name without one; None leaves it out. An underscore at the end is dropped (`class_`), others are
        hyphens (`aria_label`).
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
    """Return a table that scrolls by itself where it is wider than the page.

    Parameters
    ----------
    headings : sequence
    rows : iterable of sequences
        The first cell of each names its row. Cells that are not text are written by `text_of`.
    label : str
        What the table is, for those who do not see it.
    strong : int or None, default=None
        The row to be stressed.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    # Numbers stand under one another, and their heading with them.
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
    # Focusable, so that the keyboard can scroll it.
    return tag("div", written, class_="scroll", role="region", aria_label=label, tabindex="0")


def facts(pairs: Iterable[tuple[Any, Any]]) -> Html:
    """Return names with what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", _cell(value))) for name, value in pairs))


def json_block(id_: str, value: Any) -> Html:
    """Return data for the page's script; no text in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escape(id_)}">{text}</script>')


def _cell(value: Any) -> Any:
    return value if isinstance(value, str) else text_of(value)
