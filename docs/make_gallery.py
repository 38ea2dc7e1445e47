"""Run the scripts of examples/ and write a page for each into docs/gallery/: title, prose, code, figure.

The docstring of a script has its title, which is a question, and its introduction. A comment of whole lines at the
beginning of a block, after an empty line, is prose; everything else is code. `--keep` also writes small copies of the
figures to docs/figures/gallery/. The README shows these, and they are part of the repository.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
PAGES = DOCS / "gallery"
SMALL = DOCS / "figures" / "gallery"
SMALL_HEIGHT = 360


def parts_of(source: str) -> list[tuple[str, str]]:
    """Return ("prose" or "code", text) of each part of a script in order, without the docstring."""
    body = source.split('"""', 2)[2]
    parts: list[tuple[str, str]] = []
    for block in re.split(r"\n\s*\n(?=# )", body):
        lines = block.strip("\n").split("\n")
        n_prose = next((i for i, line in enumerate(lines) if not line.startswith("# ")), len(lines))
        parts.append(("prose", "\n".join(line[2:] for line in lines[:n_prose])))
        parts.append(("code", "\n".join(lines[n_prose:]).strip("\n")))
    return [(kind, text) for kind, text in parts if text.strip()]


def run(script: Path, folder: Path) -> str:
    """Run a script in a folder, where it leaves its figure, and return what it prints."""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{script.name} failed:\n{done.stderr}")
    return done.stdout


def page(script: Path, printed: str) -> str:
    """Return the page of a script, with what it printed."""
    source = script.read_text()
    title, _, introduction = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    text = [f"# {title}", introduction.strip()]
    for kind, part in parts_of(source):
        text.append(part if kind == "prose" else f"```python\n{part}\n```")
    if printed.strip():
        text.append(f"It prints:\n\n```text\n{printed.rstrip()}\n```")
    text.append(f"![The figure of this example]({script.stem}.png)")
    text.append(f"*From `examples/{script.name}`.*")
    return "\n\n".join(text) + "\n"


def keep_small(figure: Path) -> None:
    """Write a small copy of a figure, with fewer pixels and colors."""
    from PIL import Image

    image = Image.open(figure).convert("RGB")
    image.thumbnail((10 * SMALL_HEIGHT, SMALL_HEIGHT))
    SMALL.mkdir(exist_ok=True)
    image.quantize(64).save(SMALL / figure.name, optimize=True)


def main() -> None:
    """Make all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir()
    for script in sorted(EXAMPLES.glob("*.py")):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            printed = run(script, Path(folder))
            figure = Path(folder) / f"{script.stem}.png"
            shutil.copyfile(figure, PAGES / figure.name)
            if "--keep" in sys.argv:
                keep_small(figure)
        (PAGES / f"{script.stem}.md").write_text(page(script, printed))
        print(f"{script.name}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
