"""Sphinx's settings for these pages. `make docs` builds them without network access."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent))
from plain_docstrings import as_restructured_text

import mercer

project = "Mercer"
author = copyright = "The Mercer developers"
version = release = mercer.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"Mercer {version}"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "github-dark"
# Blocks without a language are formulas and the output of commands.
highlight_language = "none"
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7fb8e0", "color-brand-content": "#7fb8e0"},
}

# The docstrings give types in words. Annotations would repeat them, and most of them are Any.
autodoc_typehints = "none"
# Methods are documented in full on the page of their class.
numpydoc_show_class_members = False
# `name` in a docstring is code, and a link if it is a name of the reference.
default_role = "py:obj"


def plain_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring to reStructuredText before numpydoc reads its sections."""
    lines[:] = as_restructured_text(lines)


def short_reference(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Let `Nystrom` in a docstring, and `mercer.Nystrom` anywhere, link to mercer.Nystrom."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or target.split(".")[0] not in mercer.__all__:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", f"mercer.{target}", node, content)


def link_names(app: Any, doctree: nodes.document, page: str) -> None:
    """Let the code `Nystrom` on a page link to its page of the reference."""
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext().removeprefix("mercer.")
        if name not in mercer.__all__ or page == f"api/{name}" or isinstance(code.parent, nodes.reference):
            continue
        link = nodes.reference("", "", internal=True, refuri=app.builder.get_relative_uri(page, f"api/{name}"))
        code.replace_self(link)
        link += code


def setup(app: Any) -> None:
    """Connect the three functions above; the priority of numpydoc is 500."""
    app.connect("autodoc-process-docstring", plain_docstring, priority=400)
    app.connect("missing-reference", short_reference)
    app.connect("doctree-resolved", link_names)
