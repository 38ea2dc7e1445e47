"""What the documents show runs as it stands, and the files that they name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{i}")
    for path in DOCUMENTS
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_code_blocks_run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
    missing = [t for t in targets if "://" not in t and not (path.parent / t).exists()]
    assert not missing


def test_the_readme_has_code():
    assert any("README" in block.id for block in BLOCKS)
