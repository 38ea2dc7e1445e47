"""The page as one HTML document: title, contents, sections, style and script. The browser may load nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from mercer.app.report.markup import Html, escape, facts, join, json_block, tag


class Section(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    id : str
        A word for links to the section.
    title : str
        The question that the section answers.
    parts : sequence of Html
    """

    id: str
    title: str
    parts: Sequence[Html]


class Page(NamedTuple):
    """The content of a page.

    Attributes
    ----------
    title : str
    lead : sequence of str or Html
        Paragraphs under the title, which summarize the page.
    sections : sequence of Section
    map_data : dict or None
        The data of the map, if there is one; see `maps.map_data`.
    verdict : sequence of str
        Sentences that are emphasized before the lead.
    origin : sequence of (name, value)
        Where the model comes from, shown in the footer.
    """

    title: str
    lead: Sequence[Any]
    sections: Sequence[Section]
    map_data: dict[str, Any] | None = None
    verdict: Sequence[str] = ()
    origin: Sequence[tuple[str, str]] = ()


def render(page: Page) -> str:
    """Return the HTML document."""
    script = _own("script.js") if page.map_data is not None else Html("")
    data = Html("") if page.map_data is None else json_block("map-data", page.map_data)
    return Template(_own("page.html")).substitute(
        policy=escape(_policy(script)),
        title=escape(page.title),
        style=_own("style.css"),
        verdict=tag("div", *(tag("p", part) for part in page.verdict), class_="verdict") if page.verdict else Html(""),
        origin=facts(page.origin) if page.origin else Html(""),
        lead=join(tag("p", part) for part in page.lead),
        contents=join(tag("li", tag("a", section.title, href=f"#{section.id}")) for section in page.sections),
        sections=join(_section(section) for section in page.sections),
        data=data,
        script=Html(f"<script>{script}</script>") if script else "",
    )


def _section(section: Section) -> Html:
    heading = tag("h2", section.title, id=f"{section.id}-title")
    return tag("section", heading, *section.parts, id=section.id, aria_labeledby=f"{section.id}-title")


def _policy(script: str) -> str:
    """Return the content security policy: only images of the page itself and the page's own script are allowed."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def _own(name: str) -> Html:
    """Return a file of this package as markup."""
    return Html(files("mercer.app.report").joinpath(name).read_text(encoding="utf-8"))
