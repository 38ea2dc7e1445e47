"""Run the code of the pages, and keep the figure that the last block of each page saves as docs/_generated/<page>.png.

The blocks of a page run in their order, in one namespace and in an empty folder, as a reader would run them.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
DOCS = Path(__file__).resolve().parent
FIGURES = DOCS / "_generated"
FIGURE = "figure.png"


def code_blocks(text: str) -> list[str]:
    """Return the python blocks of a page, in order."""
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_page(path: Path) -> str:
    """Run all blocks of a page in the current folder, and return what they print."""
    printed, namespace = StringIO(), {"__name__": path.stem}
    with redirect_stdout(printed):
        for number, block in enumerate(code_blocks(path.read_text()), start=1):
            exec(compile(block, f"{path.name}, block {number}", "exec"), namespace)
    return printed.getvalue()


def make_figure(path: Path) -> None:
    """Run a page and keep its figure."""
    import matplotlib.pyplot as plt

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with chdir(folder):
            printed = run_page(path)
            plt.close("all")
        shutil.copyfile(Path(folder) / FIGURE, FIGURES / f"{path.stem}.png")
    print(f"{path.name}: {time.perf_counter() - start:.1f} s")
    if "--show" in sys.argv:
        print(printed)


def main() -> None:
    """Make the figures of all pages that save one, or of the named pages; --show also prints their output."""
    FIGURES.mkdir(exist_ok=True)
    wanted = [name for name in sys.argv[1:] if not name.startswith("-")]
    for path in sorted(DOCS.glob("*.md")):
        if FIGURE in "".join(code_blocks(path.read_text())) and (not wanted or path.stem in wanted):
            make_figure(path)


if __name__ == "__main__":
    main()
