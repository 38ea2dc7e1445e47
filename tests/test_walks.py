"""The walks of CONTRIBUTING: every hop names a file and the line where a function begins; five hops at most."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WALKS = [line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("- From ")]


def test_there_are_four():
    assert len(WALKS) == 4


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.split(":")[0][2:])
def test_a_walk_is_short_and_its_lines_are_where_it_says(walk):
    hops = re.findall(r"`([\w/]+\.py):(\d+)` \(`(\w+)`\)", walk)
    assert 2 <= len(hops) <= 6
    for file, line, name in hops:
        text = (ROOT / "src" / "mercer" / file).read_text().splitlines()[int(line) - 1]
        assert re.match(rf"\s*def {name}\(", text), f"{name} does not begin at {file}:{line}: {text.strip()!r}."
