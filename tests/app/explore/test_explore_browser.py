"""The page in a browser: it draws, colors, tells, lassos, exports and names; nothing leaves the machine."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from tests.app.projects.test_unlabelled import digits

import mercer
from mercer.app.explore import Exploration, Server
from mercer.app.files.images import ImageFolder
from mercer.app.projects import DataEmbedding
from tests.app.browser import BROWSER, Browser
from tests.app.report.test_report import NASTY

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
READY = "document.body?.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    X = pd.DataFrame({NASTY: random.normal(size=80), "b": random.normal(size=80)})
    X["word"] = np.where(X["b"] > 0, f"<b>{NASTY}</b>", "=1+1")
    y = X[NASTY] + (X["b"] > 0) + 0.1 * random.normal(size=80)
    options = {"kernel": "gaussian", "metric": "ard", "warp": "none", "average": False, "random_state": 0}
    return mercer.tabular(mercer.GPRegressor(**options)).fit(X, y), X


@pytest.fixture(scope="module")
def explored(table):
    return Exploration(*table, other=table[0], names=("one", NASTY), title=NASTY)


@pytest.fixture
def of_table(browser, explored):
    """The page of a table, opened anew."""
    yield from opened(browser, explored)


@pytest.fixture(scope="module")
def image_model():
    folder, y = digits(120)
    # The names of files say the class by their folder, and one is nasty.
    names = [f"{label}/{name}" for label, name in zip(y, folder.names, strict=True)]
    names[7] = f"{y[7]}/{NASTY}.png".replace("</script>", "<script>")
    folder = ImageFolder(folder.X, tuple(names), folder.shape)
    return DataEmbedding(4, random_state=0).fit(folder), folder, y


@pytest.fixture
def of_images(browser, image_model):
    yield from opened(browser, Exploration(*image_model[:2], title="digits"))


def opened(browser, exploration):
    server = Server(exploration).start()
    browser.open("about:blank")  # what another page still asks for is not this one's
    browser.wait("document.body !== null && location.href === 'about:blank'")
    browser.requests.clear()
    browser.problems.clear()
    browser.open(server.address)
    browser.wait(READY)
    yield server
    foreign = [each for each in browser.requests if not each.startswith((server.address, "blob:"))]
    server.stop()
    assert foreign == []
    assert browser.requests
    assert browser.problems == []


def place(browser, i):
    """Where a point is in the window."""
    return browser.run(
        f"(() => {{ const canvas = document.getElementById('points'), box = canvas.getBoundingClientRect(),"
        f" [x, y] = canvas.pointMap.toScreen({i}); return [box.left + x, box.top + y]; }})()"
    )


def shade(browser, i):
    """The color that is drawn where a point is: the map is drawn, and read before the browser clears it."""
    return browser.run(
        f"(() => {{ const canvas = document.getElementById('points'), map = canvas.pointMap; map.draw();"
        f" const [x, y] = map.toScreen({i}), gl = map.gl, found = new Uint8Array(4);"
        f" gl.readPixels(Math.round(x), canvas.height - Math.round(y), 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, found);"
        f" return [...found]; }})()"
    )


def text(browser, id_):
    return browser.run(f"document.getElementById('{id_}').textContent")


def choose_option(browser, id_, label):
    found = browser.run(
        f"(() => {{ const select = document.getElementById('{id_}'), option = [...select.options].find("
        f"(each) => each.textContent === {json.dumps(label)}); if (!option) return false; select.value = option.value;"
        f" select.dispatchEvent(new Event('change')); return true; }})()"
    )
    assert found, label


def press(browser, id_):
    browser.run(f"document.getElementById('{id_}').click()")


def lasso_around(browser, rows, button=False):
    """Draw a line around the places of rows, with Shift held or by the button; return the rows that lie inside."""
    places = np.array([place(browser, i) for i in rows])
    (left, top), (right, bottom) = places.min(axis=0) - 12, places.max(axis=0) + 12
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    if button:
        press(browser, "lasso")
    browser.drag([tuple(map(float, corner)) for corner in [*corners, corners[0]]], modifiers=0 if button else 8)
    return (left, right, top, bottom)


def inside(browser, n, box):
    found = np.array([place(browser, i) for i in range(n)])
    left, right, top, bottom = box
    within = (found[:, 0] > left) & (found[:, 0] < right) & (found[:, 1] > top) & (found[:, 1] < bottom)
    return np.flatnonzero(within).tolist()


def test_points_are_drawn_and_colored_by_what_is_chosen(browser, of_table, table):
    _, X = table
    assert browser.run("document.querySelectorAll('#color option').length") >= 8
    high, low = int(X[NASTY].argmax()), int(X[NASTY].argmin())
    choose_option(browser, "color", NASTY)
    browser.wait(f"document.getElementById('colored').textContent === {json.dumps(NASTY)}")
    red, _, blue, alpha = shade(browser, high)
    assert red > 180 > blue  # yellow
    assert alpha > 150
    assert shade(browser, low)[2] > shade(browser, low)[0]  # violet
    choose_option(browser, "color", "word")
    browser.wait("document.getElementById('colored').textContent === 'word'")
    words = browser.run("[...document.querySelectorAll('#legend button')].map((each) => each.textContent)")
    assert sorted(words) == sorted([f"<b>{NASTY}</b>", "=1+1"])
    other, own = (int(np.flatnonzero(X["word"] == word)[0]) for word in words)
    assert shade(browser, other)[:3] != shade(browser, own)[:3]
    # The first level is taken out of the map.
    browser.run("document.querySelector('#legend button').click()")
    assert browser.run(f"document.getElementById('points').pointMap.looks[{other}]") == 0
    assert browser.run(f"document.getElementById('points').pointMap.looks[{own}]") == 2


def test_a_map_that_moves_slowly_draws_a_part_and_all_when_it_rests(browser, of_table):
    script = """(() => {
      const map = document.getElementById("points").pointMap, counts = [], gl = map.gl;
      map.gl = new Proxy(gl, { get: (target, key) => {
        const value = target[key];
        if (key === "drawElements") return (kind, count, ...rest) => {
          counts.push(count);
          gl.drawElements(kind, count, ...rest);
        };
        return typeof value === "function" ? value.bind(target) : value;
      } });
      map.pan(1, 0);
      map.last = performance.now() - 500;  // the frame before was half a second ago
      map.adapt();
      map.draw();
      const moving = counts.at(-1);
      clearTimeout(map.moving);
      map.moving = null;
      map.draw();
      map.gl = gl;
      return [moving, counts.at(-1), map.n];
    })()"""
    moving, resting, n = browser.run(script)
    assert 0 < moving < n
    assert resting == n == 80


def test_pointing_shows_the_row_and_a_click_says_why(browser, of_table, table):
    _, X = table
    row = 11
    browser.pointer("mouseMoved", *place(browser, row))
    browser.wait("!document.getElementById('tip').hidden")
    tip = text(browser, "tip")
    assert tip.startswith(f"row {row}{NASTY}")
    assert X["word"][row] in tip
    browser.click(*place(browser, row))
    browser.wait("document.querySelector('#effects svg') !== null")
    why = text(browser, "why")
    assert f"prediction {of_table.exploration.row(row)['values'][3][1]}"[:14] in why
    bars = browser.run("document.querySelectorAll('#why .bar').length")
    assert bars == 10 + 1 + 3  # ten rows, the others, three columns
    assert NASTY in text(browser, "effects")
    assert browser.run("document.querySelectorAll('img, #why script, #row b, #effects b, #tip b, h1 img').length") == 0
    # A reason leads to its row, and colors follow what it rests on.
    reason = browser.run("document.querySelector('#why button.name').textContent")
    choose_option(browser, "color", f"influence on row {row}")
    browser.wait(f"document.getElementById('colored').textContent === 'influence on row {row}'")
    browser.run("document.querySelector('#why button.name').click()")
    browser.wait(f"document.getElementById('chosen-name').textContent === '{reason}'")
    browser.wait(f"document.getElementById('colored').textContent === 'influence on {reason}'")


def test_a_lasso_is_exported_row_for_row(browser, of_table, table):
    _, X = table
    expected = inside(browser, len(X), lasso_around(browser, [3, 20]))
    assert {3, 20} <= set(expected)
    browser.wait("!document.getElementById('selection').hidden")
    assert text(browser, "count") == f"{len(expected)} rows selected"
    press(browser, "export")
    written = browser.downloaded("selection.csv").read_text(encoding="utf-8")
    found = pd.read_csv(io.StringIO(written))
    assert found["row"].tolist() == expected
    pd.testing.assert_frame_equal(found[list(X.columns)], X.iloc[expected].reset_index(drop=True))
    press(browser, "only")
    looks = browser.run("[...document.getElementById('points').pointMap.looks]")
    assert np.flatnonzero(looks).tolist() == expected
    press(browser, "clear")
    assert browser.run("document.getElementById('selection').hidden")


def test_search_keys_zoom_and_the_other_model(browser, of_table, table):
    _, X = table
    browser.run("document.getElementById('text').value = '<B>'")
    browser.run("document.getElementById('search').requestSubmit()")
    n = int((X["word"] != "=1+1").sum())
    browser.wait(f"document.getElementById('count').textContent === '{n} rows selected'")
    before = place(browser, 0)
    browser.send("Input.dispatchMouseEvent", type="mouseWheel", x=300, y=300, deltaX=0, deltaY=-400)
    browser.wait(f"document.getElementById('points').pointMap.toScreen(0)[0] + 0 !== {before[0]}")
    press(browser, "fit")
    np.testing.assert_allclose(place(browser, 0), before, atol=1)
    browser.run("document.getElementById('points').focus()")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        browser.run(
            "document.getElementById('points').dispatchEvent(new KeyboardEvent('keydown',"
            f" {{ key: '{key}', bubbles: true }}))"
        )
    browser.wait("!document.getElementById('chosen').hidden")
    choose_option(browser, "model", NASTY)
    browser.wait(f"document.getElementById('said').textContent.includes({json.dumps('Chosen')})")
    assert browser.run("document.getElementById('model').selectedOptions[0].textContent") == NASTY


def test_a_selection_is_named_and_its_profile_shown(browser, of_images, image_model):
    _, folder, y = image_model
    zeros = np.flatnonzero(y == 0)
    browser.run("document.getElementById('text').value = '0/'")
    browser.run("document.getElementById('search').requestSubmit()")
    expected = [i for i, name in enumerate(folder.names) if "0/" in name]
    browser.wait(f"document.getElementById('count').textContent === '{len(expected)} images selected'")
    assert set(zeros) == set(expected)
    choose_option(browser, "groups", "folder")
    browser.run(f"document.getElementById('concept-name').value = {json.dumps(NASTY)}")
    browser.run("document.getElementById('name-concept').requestSubmit()")
    browser.wait("!document.getElementById('concepts').hidden")
    profile = text(browser, "profiles")
    assert NASTY in profile
    strong = browser.run("[...document.querySelectorAll('#profiles tr.strong th')].map((each) => each.textContent)")
    assert strong == ["0"]
    choose_option(browser, "color", f"concept {NASTY}")
    browser.wait(f"document.getElementById('colored').textContent === {json.dumps(f'concept {NASTY}')}")
    press(browser, "save-concepts")
    saved = json.loads(browser.downloaded("concepts.json").read_text(encoding="utf-8"))
    assert saved["concepts"][0]["name"] == NASTY
    assert np.linalg.norm(saved["concepts"][0]["vector"]) == pytest.approx(1.0)
    # An image is shown, and its nasty name as text.
    browser.click(*place(browser, 7))
    browser.wait("document.querySelector('#row img')?.naturalWidth === 8")
    assert text(browser, "chosen-name") == folder.names[7]
    browser.wait("document.querySelector('#why img')?.naturalWidth === 8")


def test_what_cannot_be_a_concept_is_said_in_words(browser, of_table):
    lasso_around(browser, range(80), button=True)
    browser.wait("!document.getElementById('selection').hidden")
    browser.run("document.getElementById('concept-name').value = 'all'")
    browser.run("document.getElementById('name-concept').requestSubmit()")
    browser.wait("!document.getElementById('failed').hidden")
    assert "an embedding on landmarks" in text(browser, "failed")
    browser.problems.clear()  # the browser logs the refusal


def test_a_slider_cuts_the_tree_of_clusters(browser, tree):
    pages = opened(browser, Exploration(*tree))
    next(pages)
    assert not browser.run("document.getElementById('tree').hidden")
    browser.run(
        "(() => { const slider = document.getElementById('level'); slider.value = 2;"
        " slider.dispatchEvent(new Event('input')); })()"
    )
    browser.wait("document.getElementById('colored').textContent === '2 clusters'")
    assert browser.run("[...document.querySelectorAll('#legend button')].map((each) => each.textContent)") == ["0", "1"]
    assert next(pages, None) is None


def test_the_page_without_its_token_is_not_there(browser, explored):
    server = Server(explored).start()
    browser.open(server.address.replace(server.token, "x" * len(server.token)))
    browser.wait("document.body?.textContent.startsWith('Forbidden')")
    server.stop()
