"""Run the commands of the pages and write their output below them: python docs/make_transcript.py [MERCER].

A block that begins with "$ mercer ..." is a command with its output. The tables are generated here, in a new folder.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

DOCS = Path(__file__).resolve().parent
PAGES = ("own-file.md", "start.md")
COLUMNS = "100"
COMMAND = re.compile(r"```(?:text)?\n\$ mercer (?P<typed>[^\n]*)\n.*?```", re.DOTALL)


def make_tables(folder):
    """Write the tables of the pages: flats with rents as people write them, and the patients of scikit-learn."""
    flats(400, 0).to_csv(folder / "rents.csv", sep=";", index=False)
    flats(8, 1).drop(columns="rent").to_csv(folder / "new.csv", sep=";", index=False)
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X.assign(sex=X["sex"].map({1.0: "a", 2.0: "b"}), progression=y).to_csv(folder / "patients.csv", index=False)


def flats(n, seed):
    """Return a table of flats: an area with its unit, rooms with missing values, and a rent in euros."""
    random = np.random.default_rng(seed)
    area = random.uniform(20.0, 150.0, n).round(1)
    city = random.choice(["Paris", "Oslo", "Lima", "Graz"], n, p=[0.3, 0.25, 0.25, 0.2])
    rooms = np.clip(np.round(area / 28 + random.normal(scale=0.7, size=n)), 1, 6)
    built = random.integers(1930, 2020, n)
    per_area = pd.Series(city).map({"Paris": 10.0, "Oslo": 8.5, "Lima": 6.0, "Graz": 7.0}).to_numpy()
    rent = np.maximum(90.0, area * per_area + 0.8 * (built - 1970) + random.normal(scale=40.0, size=n))
    told = pd.Series(rooms.astype(int).astype(str)).where(random.random(n) > 0.04, "n/a")
    return pd.DataFrame(
        {
            "flat": [f"F{seed * 1000 + i:04}" for i in range(n)],
            "area": [f"{value} m²" for value in area],
            "city": city,
            "rooms": told,
            "built": built,
            "rent": [f"{value:.0f} €" for value in rent],
        }
    )


def main():
    command = sys.argv[1:] or [sys.executable, "-m", "mercer"]
    environment = os.environ | {"COLUMNS": COLUMNS, "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tables(folder)

        def typed_again(block):
            typed = block["typed"]
            # Commands run in a shell, since some have pipes.
            line = " ".join([*map(str, command), typed])
            done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"$ mercer {typed}\n{done.stderr}")
            printed = "\n".join(text.rstrip() for text in (done.stderr + done.stdout).splitlines())
            return f"```\n$ mercer {typed}\n{printed}\n```"

        for page in PAGES:
            path = DOCS / page
            path.write_text(COMMAND.sub(typed_again, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
