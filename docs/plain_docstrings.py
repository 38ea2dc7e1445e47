"""Convert Mercer's docstrings, plain text with `code` and formulas, to reStructuredText."""

import re
from collections.abc import Iterator

# Parts of formulas that reStructuredText would read as markup: |a|, a*b, x_ and [1]_.
MARKUP = re.compile(r"[|*]|(?<=\w)_(?!\w)")
CODE = re.compile(r"(``?[^`]+``?)")


def as_restructured_text(lines: list[str]) -> list[str]:
    """Return the lines of a docstring with formulas escaped, and indented formulas as literal blocks."""
    return list(_with_literal_blocks(_escaped(lines)))


def _escaped(lines: list[str]) -> Iterator[str]:
    """Escape markup, except in examples, which end at an empty line, and in `code`."""
    in_example = False
    for line in lines:
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example:
            yield line
        else:
            # Parts with an odd index are code.
            parts = CODE.split(line)
            parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
            yield "".join(parts)


def _with_literal_blocks(lines: Iterator[str]) -> Iterator[str]:
    """Mark a block as literal if it is indented more than the paragraph before it and follows an empty line."""
    indent, literal = 0, None
    empty = False
    for line in lines:
        if not line.strip():
            empty = True
            yield line
            continue
        depth = len(line) - len(line.lstrip())
        if literal is not None and depth < literal:
            literal = None
        if literal is None and empty and depth > indent and not line.lstrip().startswith(("- ", ">>>")):
            literal = depth
            yield " " * indent + "::"
            yield ""
        yield line.replace("\\", "") if literal is not None else line
        if literal is None:
            indent = depth
        empty = False
