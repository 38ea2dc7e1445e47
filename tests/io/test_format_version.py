"""What a file of this version may hold, listed beside the version: where the list changes, the version is to be raised.

`python -m tests.io.test_format_version` writes the list anew; CONTRIBUTING says when the version is to be raised.
"""

import functools
from collections.abc import Mapping
from pathlib import Path

from mercer.io import FORMAT_VERSION
from mercer.io.classes import addresses, is_allowed, is_result, resolve, result_fields
from mercer.io.networks import NETWORKS
from mercer.io.objects import SCHEMAS, Schema
from mercer.io.schema import each, maybe, number, numbers
from mercer.io.vocabulary import NAMED_TYPES, NUMPY_TYPES, TENSOR_TYPES

LISTS = Path(__file__).parent / "formats"


def words(check):
    """What a check takes, in words: its name, and the sizes, bounds and checks that it was made with."""
    if isinstance(check, Mapping):
        return "{" + ", ".join(f"{name}: {words(item)}" for name, item in check.items()) + "}"
    if isinstance(check, (list, tuple)):
        return "[" + ", ".join(map(words, check)) + "]"
    if not callable(check):
        return repr(check)
    name = check.__qualname__.partition(".<locals>")[0]
    inside = dict(
        zip(check.__code__.co_freevars, (cell.cell_contents for cell in check.__closure__ or ()), strict=True)
    )
    return name + (f"({', '.join(f'{key}={words(value)}' for key, value in inside.items())})" if inside else "")


def lines_of(name, kind):
    """What is listed of one class: its parameters or fields, and what its schema takes."""
    if is_result(kind):
        yield f"{name} {' '.join(result_fields(kind))}"
    else:
        yield f"{name} {' '.join(kind._get_param_names())}"
    schema = SCHEMAS.get(kind.__name__)
    if schema is not None:
        for title in ("fields", "optional", "parameters"):
            for field, check in getattr(schema, title).items():
                yield f"    {title} {field}: {words(check)}"


def listed():
    """The whole list as text."""
    lines = []
    for name, address in sorted(addresses().items()):
        kind = resolve(address)
        if isinstance(kind, type) and is_allowed(name, kind):
            lines += lines_of(name, kind)
    lines += [
        f"types {' '.join(sorted({*NAMED_TYPES, *NUMPY_TYPES, *TENSOR_TYPES}))}",
        f"networks {' '.join(NETWORKS)}",
    ]
    return "\n".join(lines) + "\n"


def test_a_change_of_what_files_hold_comes_with_a_higher_version():
    kept = {path.stem for path in LISTS.glob("*.txt")}
    assert kept == {f"version_{FORMAT_VERSION}"}, "One list is kept, that of the present version."
    expected = (LISTS / f"version_{FORMAT_VERSION}.txt").read_text()
    found = listed()
    changed = sorted(set(found.splitlines()) ^ set(expected.splitlines()))
    assert found == expected, (
        f"What model files hold has changed: {changed[:6]}. Raise FORMAT_VERSION in mercer.io, unless every "
        "file of before still loads and means the same; then list anew: python -m tests.io.test_format_version."
    )


def test_every_change_of_a_schema_is_seen():
    found = [
        words(check) for check in (numbers("n d"), numbers("n c"), numbers("n d", finite=False), number(above=0.0))
    ]
    found += [words(maybe(numbers("n d"))), words(each("n", numbers("n d"))), words(each("m", numbers("n d")))]
    assert len(set(found)) == len(found)
    assert all("0x" not in text for text in found)
    schema = functools.partial(Schema, {"alpha": numbers("n")})
    assert words(schema().fields) != words({"beta": numbers("n")})
    assert "0x" not in listed()


if __name__ == "__main__":
    LISTS.mkdir(exist_ok=True)
    for old in LISTS.glob("*.txt"):
        old.unlink()
    (LISTS / f"version_{FORMAT_VERSION}.txt").write_text(listed())
