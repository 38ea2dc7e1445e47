"""Damaged files are read or refused in a line. `python -m tests.app.files.test_mutated_files N` tries N of them."""

import random
import sys
import tempfile
from pathlib import Path

import pytest

from mercer.app.files.reading import ReadOptions, read_described
from mercer.exceptions import DataFileError, InvalidParameterError
from tests.app.files.nasty_files import NASTY

PIECES = [
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b"\r",
    b"\n",
    b"\0",
    b"\\",
    b"\xff\xfe",
    b"1e999",
    b"-",
    b"%",
    b"(",
    b"\xe9",
    b"inf",
]


def mutated(content, draw):
    """Return bytes with a few changes: others in their place, some more, some less, some twice, an end."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        kind, place = draw.randrange(6), draw.randrange(len(data) + 1)
        if kind == 0 and data:
            data[place % len(data)] = draw.randrange(256)
        elif kind == 1:
            data[place:place] = draw.randbytes(draw.randint(1, 8))
        elif kind == 2:
            del data[place : place + draw.randint(1, 10)]
        elif kind == 3:
            data[place:place] = draw.choice(PIECES)
        elif kind == 4:
            data[place:place] = data[place : place + draw.randint(1, 200)]
        else:
            del data[place:]
    return bytes(data)


def try_one(seed, folder):
    """Mutate one of the nasty files and read it, twice if it can be read; return what is said if it is refused."""
    draw = random.Random(seed)
    nasty = draw.choice(NASTY)
    content = nasty.content if isinstance(nasty.content, bytes) else nasty.content.encode()
    path = Path(folder) / nasty.name
    path.write_bytes(mutated(content, draw))
    options = ReadOptions(**nasty.options)
    try:
        table = read_described(path, options)
        table.describe()
        read_described(path, options._replace(kinds=None), readings=table.readings)
    except (DataFileError, InvalidParameterError) as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("error::pandas.errors.ParserWarning")
def test_damaged_files_are_read_or_refused(tmp_path):
    messages = [try_one(seed, tmp_path) for seed in range(150)]
    assert 30 < sum(not message for message in messages) < 120
    assert not any("\n" in message for message in messages)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        n = int(sys.argv[1])
        print(f"{sum(not try_one(seed, folder) for seed in range(n))} of {n} read, the others refused")
