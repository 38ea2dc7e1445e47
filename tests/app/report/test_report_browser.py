"""Reports in a browser: the map answers to pointer and keyboard, nothing fails, nothing foreign runs, phones fit."""

import json
import re
import shutil
import subprocess
from html import unescape
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tests.app.projects.test_unlabelled import digits, people, some

from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.app.report import build_report
from tests.app.projects.test_table_prediction import NUMBERS, SIMPLE, flats
from tests.app.report.test_report import NASTY, Read

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

# What every script can use, and how it hands over what it found: to the page around it, if there is one.
HELPERS = """
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
const byId = (id) => document.getElementById(id);
const press = (key) => {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  byId("map-canvas").dispatchEvent(event);
  return event.defaultPrevented;
};
const at = (kind, x, y) => {
  const { left, top } = byId("map-canvas").getBoundingClientRect();
  const event = new PointerEvent(kind, { clientX: left + x, clientY: top + y, bubbles: true });
  byId("map-canvas").dispatchEvent(event);
};
const hand = (found) => parent.postMessage({ ...found, errors }, "*");
const show = (event) => {
  const written = document.createElement("pre");
  written.id = "results";
  written.textContent = JSON.stringify(event.data);
  document.body.append(written);
};
"""


def dumped(folder, page, width=1280, dark=False):
    """Return the document as it is once its scripts have run."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"]
    options += [f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    options += ["--blink-settings=preferredColorScheme=0"] if dark else []
    command = [BROWSER, *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def browse(folder, page, script, width=None, dark=False):
    """Run a script in a page and return what it hands over; with a width, the page is in a frame of so many pixels."""
    page = re.sub(r"<meta http-equiv=[^>]*>", f"<script>{HELPERS}</script>", page)
    page = page.replace("</body>", f"<script>setTimeout(() => {{{script}}}, 500)</script></body>")
    if width is None:
        page = page.replace("</body>", '<script>addEventListener("message", show)</script></body>')
    else:
        (folder / "inner.html").write_text(page, encoding="utf-8")
        frame = f'<iframe src="inner.html" width="{width}" height="800"></iframe>'
        page = f'<body>{frame}<script>{HELPERS}addEventListener("message", show)</script></body>'
    dom = dumped(folder, page, dark=dark)
    found = json.loads(unescape(re.search(r'<pre id="results">(.*?)</pre>', dom, re.DOTALL)[1]))
    assert found["errors"] == []
    return found


@pytest.fixture(scope="module")
def pages():
    table, _ = people(60)
    table = table.rename(columns={"city": NASTY})
    images, _ = digits(40)
    frame = flats(60)
    return {
        "rows": build_report(DataEmbedding(3, ignore=("id",), random_state=0).fit(table), table),
        "groups": build_report(DataClustering(3, ignore=("id",), random_state=0).fit(table), table),
        # Not all of the fit, so that samples and landmarks are not the same.
        "images": build_report(DataEmbedding(3, random_state=0).fit(images), some(images, range(10, 40))),
        "prediction": build_report(TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent"), frame),
        "nasty": nasty_page(),
    }


def nasty_page():
    """The report on a table whose names, values and own name are markup; of classes, with all that can be asked for."""
    frame = flats(120).rename(columns={"size": NASTY, "dear": f"<b>dear</b> {NASTY}"})
    frame["city"] = frame["city"].map({"Oslo": f"<i>Oslo</i>{NASTY}", "Rome": "Rome", "Paris": "Paris"})
    frame[f"<b>dear</b> {NASTY}"] = np.where(frame[f"<b>dear</b> {NASTY}"] == "yes", NASTY, "no")
    further = {"repeats": 2, "learning_curve": True}
    workflow = TablePrediction("rfm", options=SIMPLE, ignore=("id", "rent"), random_state=0, **further)
    workflow.fit(frame, f"<b>dear</b> {NASTY}", origin={"command": NASTY, "data": {NASTY: "0" * 64}})
    return build_report(workflow, frame, data_name=NASTY)


def test_the_own_script_runs_and_no_other(pages, tmp_path):
    page = pages["rows"].replace("</body>", '<script>document.title = "foreign"</script></body>')
    dom = dumped(tmp_path, page)
    assert "<title>foreign" not in dom
    assert re.search(r'<div class="map" id="map">', dom)
    assert re.search(r'<figure class="figure still" hidden="">', dom)
    assert dom.count("<option") == 4


def test_the_keyboard_moves_chooses_and_lets_go(pages, tmp_path):
    found = browse(
        tmp_path,
        pages["rows"],
        """
        const said = [], places = JSON.parse(byId("map-data").textContent);
        const step = (key) => { const held = press(key); said.push([key, byId("map-said").textContent, held]); };
        byId("map-canvas").focus();
        for (const key of ["ArrowRight", "PageDown", "PageDown", "PageUp", "End", "PageDown", "ArrowRight", "ArrowLeft",
          "ArrowUp", "ArrowDown", "x", "Enter"]) step(key);
        const chosen = byId("map-chosen").textContent, tip = byId("map-tip").textContent;
        const headings = [...document.querySelectorAll("#map-chosen thead th")].map((cell) => cell.textContent);
        const focused = document.activeElement.id;
        step("Escape");
        hand({ said, chosen, tip, headings, focused, x: places.x, y: places.y, left: byId("map-chosen").textContent,
          hidden: byId("map-tip").hidden, top: places.landmarks, names: places.names });
        """,
    )
    said = [text for _, text, _ in found["said"]]
    assert [text.split(",")[0] for text in said[:6]] == ["row 0", "row 1", "row 2", "row 1", "row 59", "row 0"]
    assert [held for key, _, held in found["said"]] == [key != "x" for key, _, _ in found["said"]]
    rows = [int(re.match(r"row (\d+)", text)[1]) for text in said[5:11]]
    x, y = found["x"], found["y"]
    # Each arrow goes that way, or stays where nothing is.
    assert rows[1] == rows[0] or x[rows[1]] > x[rows[0]]
    assert rows[2] == rows[1] or x[rows[2]] < x[rows[1]]
    assert rows[3] == rows[2] or y[rows[3]] > y[rows[2]]
    assert rows[4] == rows[3] or y[rows[4]] < y[rows[3]]
    assert len(set(rows)) > 1
    assert rows[5] == rows[4]
    row = rows[5]
    like = [found["top"]["names"][k] for k in found["top"]["top"][row]]
    assert said[11].startswith(f"Chosen: row {row}, age: ")
    assert said[11].endswith(f"most like {', '.join(like)}")
    assert [heading.split(",")[0] for heading in found["headings"]] == ["", f"row {row}", *like]
    assert "age" in found["chosen"]
    assert NASTY in found["tip"]
    assert found["focused"] == "map-canvas"
    assert (found["left"], found["hidden"], said[12]) == ("", True, "")


def test_keys_of_the_browser_are_left_to_it(pages, tmp_path):
    found = browse(
        tmp_path,
        pages["rows"],
        """
        const held = {};
        for (const modifier of ["altKey", "ctrlKey", "metaKey"]) {
          const options = { key: "ArrowLeft", bubbles: true, cancelable: true, [modifier]: true };
          const event = new KeyboardEvent("keydown", options);
          byId("map-canvas").dispatchEvent(event);
          held[modifier] = event.defaultPrevented;
        }
        hand({ held, alone: press("ArrowLeft") });
        """,
    )
    assert found["held"] == {"altKey": False, "ctrlKey": False, "metaKey": False}
    assert found["alone"]


def test_a_table_of_texts_colors_nothing_and_long_ones_stay_in_their_box(tmp_path):
    words = [f"a comment, number {i}, that goes on for a while and says little" for i in range(40)]
    table = pd.DataFrame({"comment": words, "reply": words[::-1]})
    page = build_report(DataEmbedding(3, random_state=0).fit(table), table)
    found = browse(
        tmp_path,
        page,
        """
        byId("map-canvas").focus();
        press("End");
        const tip = byId("map-tip").getBoundingClientRect();
        const inner = byId("map-tip").querySelector("table").getBoundingClientRect();
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        hand({ said: byId("map-said").textContent, out: inner.right - tip.right, wide });
        """,
        width=500,
    )
    assert "comment:" not in found["said"]
    assert found["out"] <= 1
    assert found["wide"] <= 0


def test_the_pointer_shows_and_chooses(pages, tmp_path):
    found = browse(
        tmp_path,
        pages["images"],
        """
        const { x, y, names, landmarks } = JSON.parse(byId("map-data").textContent), canvas = byId("map-canvas");
        const w = Math.max(...x), h = Math.max(...y);
        const scale = Math.min((canvas.clientWidth - 36) / w, (canvas.clientHeight - 36) / h);
        const place = (i) => [
          canvas.clientWidth / 2 + (x[i] - w / 2) * scale, canvas.clientHeight / 2 - (y[i] - h / 2) * scale];
        at("pointermove", ...place(7));
        const over = { hidden: byId("map-tip").hidden, text: byId("map-tip").textContent };
        const painted = (made) => made.getContext("2d").getImageData(0, 0, made.width, made.height).data.some(
          (value, k) => k % 4 < 3 && value > 0);
        const shades = (made) =>
          Array.from(made.getContext("2d").getImageData(0, 0, 8, 8).data).filter((_, k) => k % 4 === 0);
        const picture = painted(document.querySelector("#map-tip canvas"));
        at("pointerleave", 0, 0);
        const gone = byId("map-tip").hidden;
        at("click", ...place(7));
        const pictures = [...document.querySelectorAll("#map-chosen .sample")];
        hand({ over, picture, gone, said: byId("map-said").textContent, name: names[7],
          captions: pictures.map((one) => one.textContent),
          all: pictures.every((one) => painted(one.querySelector("canvas"))),
          pixels: pictures.map((one) => shades(one.querySelector("canvas"))),
          like: landmarks.top[7].map((k) => landmarks.names[k]), live: byId("map-said").getAttribute("aria-live"),
          drawn: painted(canvas), select: getComputedStyle(document.querySelector(".controls")).display });
        """,
    )
    # Nothing to color by, so no choice is offered.
    assert found["select"] == "none"
    assert found["over"] == {"hidden": False, "text": found["name"]}
    assert found["picture"]
    assert found["all"]
    assert found["drawn"]
    assert found["gone"]
    assert found["live"] == "polite"
    assert found["said"] == f"Chosen: {found['name']}; most like {', '.join(found['like'])}"
    assert found["captions"][0] == found["name"]
    assert [re.sub(r"likeness [\d.]+", "", text) for text in found["captions"][1:]] == found["like"]
    images, _ = digits(40)
    for name, pixels in zip([found["name"], *found["like"]], found["pixels"], strict=True):
        expected = 255.0 * images.X[images.names.index(name)].ravel()
        np.testing.assert_allclose(pixels, expected, atol=0.51)


def test_colors_follow_the_choice_and_dark_screens(pages, tmp_path):
    script = """
        const legends = [], select = byId("map-color");
        for (const option of select.options) {
          select.value = option.value;
          select.dispatchEvent(new Event("change"));
          legends.push([option.textContent, byId("map-legend").textContent]);
        }
        hand({ legends, dark: matchMedia("(prefers-color-scheme: dark)").matches,
          ground: getComputedStyle(document.body).backgroundColor, text: getComputedStyle(document.body).color,
          images: document.images.length, shown: document.images[0].currentSrc !== document.images[0].src });
        """
    found = browse(tmp_path, pages["groups"], script, dark=True)
    legends = dict(found["legends"])
    assert legends["group"] == "012"
    assert list(legends) == ["group", "confidence", "age", "income", NASTY, "id"]
    assert sorted(re.findall("Oslo|Rome|Lima|missing", legends[NASTY])) == ["Lima", "Oslo", "Rome", "missing"]
    low, high = re.fullmatch(r"([\d.]+?)(\d\d\.\d+|\d\d)missing", legends["age"]).groups()
    assert 15 < float(low) < 25 < float(high) < 75
    assert found["dark"]
    assert found["shown"]
    assert brightness(found["ground"]) < 50 < 200 < brightness(found["text"])


def brightness(color):
    return pd.Series(re.findall(r"\d+", color)[:3]).astype(int).mean()


@pytest.mark.parametrize("name", ["rows", "images", "prediction", "nasty"])
def test_a_phone_is_wide_enough(pages, tmp_path, name):
    found = browse(
        tmp_path,
        pages[name],
        """
        if (byId("map-canvas")) { press("End"); press("Enter"); }
        for (const one of document.querySelectorAll("details")) one.open = true;
        const root = document.documentElement;
        hand({ room: root.clientWidth, wide: root.scrollWidth, inner: innerWidth,
          light: getComputedStyle(document.body).backgroundColor,
          loaded: [...document.images].every((one) => one.complete && (one.naturalWidth > 0 || !one.offsetWidth)) });
        """,
        width=360,
    )
    assert found["inner"] == 360
    assert found["wide"] <= found["room"]
    assert found["loaded"]
    assert brightness(found["light"]) > 200


def test_markup_in_names_and_values_is_text(pages, tmp_path):
    found = browse(
        tmp_path,
        pages["nasty"],
        """
        hand({ title: document.querySelector("h1").textContent,
          foreign: document.querySelectorAll("img[onerror]").length,
          bold: document.querySelectorAll("b, i, u").length, scripts: document.scripts.length,
          verdict: document.querySelector(".verdict").textContent, footer: document.querySelector("footer").textContent,
          cells: [...document.querySelectorAll("th, td")].map((cell) => cell.textContent) });
        """,
    )
    assert found["title"] == f"Predicting <b>dear</b> {NASTY}"
    assert found["foreign"] == found["bold"] == 0
    assert found["scripts"] == 3  # all of this test
    assert NASTY in found["cells"]
    assert NASTY in found["footer"]
    assert found["verdict"].count(".") >= 3


@pytest.mark.parametrize("name", ["prediction", "nasty", "rows", "groups"])
def test_headings_go_down_one_at_a_time_and_pages_are_small(pages, name):
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", pages[name])]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(pages[name].encode()) < 2_000_000
    assert '<html lang="en">' in pages[name]


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(pages, tmp_path, dark):
    """By WCAG 2.1: 4.5 to 1 at least, for every text that is shown."""
    found = browse(
        tmp_path,
        pages["prediction"],
        """
        for (const one of document.querySelectorAll("details")) one.open = true;
        const ground = (node) => {
          for (; node; node = node.parentElement) {
            const color = getComputedStyle(node).backgroundColor;
            if (color !== "rgba(0, 0, 0, 0)") return color;
          }
        };
        const texts = [...document.querySelectorAll("p, h1, h2, h3, td, th, dt, dd, a, li, figcaption, summary")];
        hand({ pairs: [...new Set(texts.map((one) => `${getComputedStyle(one).color}|${ground(one)}`))] });
        """,
        dark=dark,
    )
    assert len(found["pairs"]) >= 3
    for pair in found["pairs"]:
        light, deep = sorted((luminance(color) for color in pair.split("|")), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, pair


def luminance(color):
    shares = np.array([int(part) for part in re.findall(r"\d+", color)[:3]]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_printed_pages_have_no_contents_and_no_dark_ground(pages, tmp_path):
    page = pages["prediction"].replace("@media print", "@media all").replace("(prefers-color-scheme: dark)", "print")
    found = browse(
        tmp_path,
        page,
        """
        hand({ nav: getComputedStyle(document.querySelector("nav")).display,
          ground: getComputedStyle(document.body).backgroundColor,
          broken: getComputedStyle(document.querySelector("figure")).breakInside });
        """,
        dark=True,
    )
    assert found["nav"] == "none"
    assert brightness(found["ground"]) > 200
    assert found["broken"] == "avoid"


def test_pages_are_read_without_scripts(pages):
    """The map is a figure until the script takes its place."""
    for name in ("rows", "groups", "images"):
        assert re.search(r'<figure class="figure still"><picture>', pages[name])
        assert re.search(r'<div class="map" id="map" hidden>', pages[name])
        assert Read(pages[name]).data is not None
