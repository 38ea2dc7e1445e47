"""Take the README's picture of a report: diabetes progression, fitted and reported by the commands, in Chromium.

`python docs/make_screenshot.py` writes docs/figures/report.png, which is part of the repository. It needs Chromium and
Pillow.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_diabetes

OUT = Path(__file__).resolve().parent / "figures" / "report.png"
# The names of the data's description in place of bmi, bp, s1 to s6.
COLUMNS = (
    "age",
    "sex",
    "body mass",
    "blood pressure",
    "cholesterol",
    "ldl",
    "hdl",
    "cholesterol / hdl",
    "triglycerides",
    "blood sugar",
    "progression",
)
WIDTH, HEIGHT = 1000, 1250
COLORS = 128


def main() -> None:
    """Fit, report, take the picture."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load_diabetes(as_frame=True, scaled=False).frame.set_axis(COLUMNS, axis=1).to_csv(folder / "p.csv", index=False)
        mercer = [sys.executable, "-m", "mercer"]
        for command in (
            [*mercer, "fit", "p.csv", "--target", "progression", "--out", "p.mercer"],
            [*mercer, "report", "p.mercer", "p.csv", "--out", "p.html"],
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--window-size={WIDTH},{HEIGHT}",
                "--screenshot=page.png",
                "p.html",
            ],
        ):
            subprocess.run(command, cwd=folder, check=True)
        Image.open(folder / "page.png").convert("RGB").quantize(COLORS).save(OUT, optimize=True)


if __name__ == "__main__":
    main()
