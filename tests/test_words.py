"""One word for one thing: what CONTRIBUTING calls a row is a row in every docstring, message and document."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "mercer"

# What a machine can tell: the word that is not ours, and the one that is.
EVERYWHERE = {
    r"data[- ]points?": "row",
    r"observations?": "row (or target)",
    r"covariates?": "column",
    r"anchors?": "landmark",
    r"inducing (points?|inputs?)": "landmark",
    r"centroids?": "center",
    r"hyper-?parameters?": "parameter, or setting",
    r"configurations?": "setting",
    r"candidates?": "setting, or what is compared",
    r"(held|holds|hold)[- ]out|holdout": "left out",
    r"LOO": "leave-one-out, or left out",
}
# In what people without Python read, and in the pages for those who use it, a table has rows and columns.
FOR_PEOPLE = {
    r"samples?": "row",
    r"variables?": "column",
    r"attributes?": "column",
}


def prose_of_python(text):
    """Yield (line, text) of the docstrings, messages and comments of a module; names of keys and options are code."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            for number, line in enumerate(node.value.splitlines()):
                yield node.lineno + number, line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def prose_of_markdown(text):
    """Yield (line, text) of a page, without blocks of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def without_code(line):
    """A line without code: backticks, quoted names, underscores, targets of links, parameters and their headings."""
    line = re.sub(r"^\s*(Attributes$|\*{0,2}\w+(, \w+)*( : |$))|environment variable", " ", line)
    return re.sub(r"`[^`]*`|\"[^\" ]*\"|'[^' ]*'|\w*_\w*|\]\([^)]*\)", " ", line)


def wrong_words(path, banned):
    """Return the lines of a file that use another word than ours."""
    text = path.read_text()
    lines = prose_of_python(text) if path.suffix == ".py" else prose_of_markdown(text)
    found = []
    for number, line in lines:
        for word, ours in banned.items():
            match = re.search(rf"\b({word})\b", without_code(line), re.IGNORECASE)
            if match:
                found.append(f"{path.relative_to(ROOT)}:{number}: {match[0]!r}, which is {ours!r} here: {line.strip()}")
    return found


MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_use_one_word_for_one_thing(path):
    for_people = FOR_PEOPLE if path.is_relative_to(SOURCE / "app") else {}
    assert not wrong_words(path, EVERYWHERE | for_people)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_one_word_for_one_thing(path):
    assert not wrong_words(path, EVERYWHERE | FOR_PEOPLE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"""A held-out row."""', 1),
        ("x = 'held out of it'  # an observation", 2),
        ('"""A row left out; `n_candidates` and "candidates" are code."""\nobservation = 1', 0),
    ],
)
def test_prose_is_told_from_code(tmp_path, monkeypatch, text, expected):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(text)
    assert len(wrong_words(path, EVERYWHERE)) == expected
