"""Take the screenshots of the page of `mercer explore`: a table with reasons, and digits with a concept.

`PYTHONPATH=. python docs/make_explore_screenshots.py` writes docs/figures/explore-table.png and explore-concept.png,
which are part of the repository. It needs Chromium and Pillow.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_diabetes, load_digits

from mercer import GPRegressor
from mercer.app.explore import Exploration, Server
from mercer.app.files.images import ImageFolder
from mercer.app.projects import DataEmbedding
from tests.app.browser import Browser

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
FIGURES = Path(__file__).resolve().parent / "figures"
PLACE = (
    "(() => { const canvas = document.getElementById('points'), box = canvas.getBoundingClientRect(),"
    " [x, y] = canvas.pointMap.toScreen(%d); return [box.left + x, box.top + y]; })()"
)


def main() -> None:
    """Open both pages, use them like a person, and take the screenshots."""
    with tempfile.TemporaryDirectory() as name, Browser(Path(name), 1200, 760) as browser:
        browser.send("Emulation.setScrollbarsHidden", hidden=True)
        table = load_diabetes(as_frame=True, scaled=False).frame.set_axis(COLUMNS, axis=1)
        X, y = table.drop(columns="progression"), table["progression"]
        model = GPRegressor("laplace", "full", warp="none", random_state=0).fit(X, y)
        with_page(browser, Exploration(model, X, y, title="diabetes"), explain_a_row, "explore-table")
        X, y = load_digits(return_X_y=True)
        names = tuple(f"{label}/{i:04d}.png" for i, label in enumerate(y))
        folder = ImageFolder((X / 16.0).reshape(-1, 8, 8).astype(np.float32), names, (8, 8))
        embedding = DataEmbedding(16, random_state=0).fit(folder)
        with_page(browser, Exploration(embedding, folder, title="digits"), name_a_concept, "explore-concept", y)


def with_page(browser: Browser, exploration: Exploration, act, name: str, *given) -> None:
    """Serve a page, act on it, and take its screenshot."""
    server = Server(exploration).start()
    browser.open(server.address)
    browser.wait("document.body?.dataset.ready === 'yes'")
    act(browser, *given)
    path = FIGURES / f"{name}.png"
    browser.picture(path)
    server.stop()
    Image.open(path).convert("RGB").save(path, optimize=True)


def explain_a_row(browser: Browser) -> None:
    """Click a row and wait for its reasons."""
    browser.click(*browser.run(PLACE % 9))
    browser.wait("document.querySelector('#effects svg') !== null")
    browser.run("document.getElementById('row').remove()")  # its values are in the box at the pointer
    time.sleep(1)


def name_a_concept(browser: Browser, y: np.ndarray) -> None:
    """Color by the folder, draw around the zeros, name them."""
    choose = "[...document.getElementById('%s').options].find((each) => each.textContent === 'folder').value"
    for select in ("color", "groups"):
        browser.run(
            f"(() => {{ const select = document.getElementById('{select}'); select.value = {choose % select};"
            " select.dispatchEvent(new Event('change')); })()"
        )
    time.sleep(1)
    places = np.array([browser.run(PLACE % i) for i in np.flatnonzero(y == 0)])
    middle = np.median(places, axis=0)
    near = places[np.linalg.norm(places - middle, axis=1) < 90]
    turns = np.linspace(0, 2 * np.pi, 40)
    reach = np.abs(near - middle).max(axis=0) + 14
    loop = middle + reach * np.column_stack([np.cos(turns), np.sin(turns)])
    browser.drag([tuple(map(float, place)) for place in loop], modifiers=8)
    browser.wait("!document.getElementById('selection').hidden")
    browser.run("document.getElementById('concept-name').value = 'round'")
    browser.run("document.getElementById('name-concept').requestSubmit()")
    browser.wait("!document.getElementById('concepts').hidden")
    time.sleep(1)


if __name__ == "__main__":
    main()
