"""Reports: what the pages say, that nothing in the data can act in them, and that they need nothing from elsewhere."""

import json
import re
from copy import copy
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

import mercer
from mercer.app.cli.app import app
from mercer.app.files.images import ImageFolder
from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.app.report import build_report, evidence, figures, maps, write_report
from mercer.app.report import clustering as report_clustering
from mercer.app.report import where_rows_lie as where_rows_lie_module
from mercer.app.report.embedding import most_like
from mercer.app.report.evidence import held_out, is_table_of_fit, sample, scored_anew
from mercer.app.report.maps import draw_samples, encode_column, folders_of, map_data
from mercer.app.report.markup import Html, escape, json_block, table, tag
from mercer.app.report.model_map import map_of
from mercer.app.report.prediction_figures import (
    _reliability_of_intervals,
    answers_figure,
    calibration_figure,
    importances_figure,
    metric_figure,
)
from mercer.app.report.thumbnails import SIDE, sheet, thumbnail
from mercer.app.report.verdict import verdict_of
from mercer.app.report.what_matters import what_matters
from mercer.app.report.words import count, listed, percent, score_texts, significant, text_of, texts_of
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError
from mercer.kernels import Gaussian
from tests.app.projects.test_table_prediction import CLASSES, NUMBERS, SIMPLE, flats
from tests.app.projects.test_unlabeled import digits, people

REAL_SVG = figures._svg
NASTY = "</script><img src=x onerror=alert(1)> & \"'"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Figures are made but not rendered, which takes most of the time; one test renders them."""
    monkeypatch.setattr(figures, "_svg", lambda drawn: b"<svg/>")


class Read(HTMLParser):
    """A page as a test looks at it: elements, their ids and addresses, the text of each section, the data."""

    VOID = ("meta", "img", "source", "br")

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids, self.addresses, self.scripts = [], [], [], [], []
        self.sections, self.data, self.text, self.alts = {}, None, "", []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        self.tags.append(name)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [value for key, value in attributes.items() if key in ("src", "href", "srcset", "action")]
        self.alts += [attributes["alt"]] if "alt" in attributes else []
        if name not in self.VOID:
            self.open.append((name, attributes))

    def handle_endtag(self, name):
        assert self.open.pop()[0] == name

    def handle_data(self, text):
        name, attributes = self.open[-1] if self.open else ("", {})
        if name == "script" and attributes.get("type") == "application/json":
            self.data = json.loads(text)
        elif name == "script":
            self.scripts.append(text)
        elif name != "style":
            self.text += text
            section = next((own["id"] for tag, own in self.open if tag == "section"), None)
            self.sections[section] = self.sections.get(section, "") + text + " "


def read(page):
    """Return a page that is whole: every element closed, ids used once, no address but inside the page."""
    found = Read(page)
    assert len(set(found.ids)) == len(found.ids)
    assert all(re.fullmatch(r"[a-z][a-z-]*", one) for one in found.ids)
    for address in found.addresses:
        assert address.startswith(("data:image/", "#"))
        assert not address.startswith("#") or address[1:] in found.ids
    assert "http://" not in re.sub(r"data:[^\"]*", "", page)
    assert "https://" not in page
    assert "Content-Security-Policy" in page
    assert "default-src 'none'" in page.replace("&#x27;", "'")
    assert len(found.alts) == found.tags.count("img")
    return found


@pytest.fixture(scope="module")
def flat_models():
    frame = flats()
    return frame, {
        "gp": TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent"),
        "rfm": TablePrediction("rfm", options=SIMPLE, **NUMBERS).fit(frame, "rent"),
        "classes": TablePrediction(options=SIMPLE, **CLASSES).fit(frame, "dear"),
        "discriminant": TablePrediction("discriminant", **CLASSES).fit(frame, "dear"),
    }


@pytest.fixture(scope="module")
def image_models():
    folder, _ = digits(60)
    return folder, DataEmbedding(3, random_state=0).fit(folder), DataClustering(3, random_state=0).fit(folder)


@pytest.fixture(scope="module")
def people_models():
    frame, _ = people(90)
    return (
        frame,
        DataEmbedding(3, ignore=("id",), random_state=0).fit(frame),
        DataClustering(ignore=("id",), random_state=0).fit(frame),
    )


# ---- markup ------------------------------------------------------------------------------------------------------


def test_only_markup_is_not_escaped():
    assert escape("<b>") == "&lt;b&gt;"
    assert escape(Html("<b>")) == "<b>"
    written = tag("p", NASTY, Html("<i></i>"), title=NASTY, class_="a", aria_label="b", hidden=True, id=None)
    assert written.count("<") == 4
    assert written.endswith("<i></i></p>")
    assert 'class="a" aria-label="b" hidden>' in written
    assert Read(written).open == []
    assert tag("img", alt='"') == '<img alt="&quot;">'


def test_data_for_the_script_cannot_end_it():
    written = json_block("d", {NASTY: [1, None]})
    assert written.count("<") == 2
    assert Read(written).data == {NASTY: [1, None]}
    with pytest.raises(ValueError):
        json_block("d", float("nan"))


def test_columns_of_numbers_stand_under_one_another():
    written = table(["a", "b", "c"], [["x", "1.5%", NASTY], ["y", None, 2]], label="l", strong=1)
    assert written.count('class="number"') == 3
    assert written.count('<tr class="strong"><th scope="row">y</th><td class="number">–</td><td>2</td>') == 1
    assert "<img" not in written
    assert table(["a"], [], label="l").count("<th") == 2  # thead, th


# ---- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (pd.NA, "–"),
        (pd.NaT, "–"),
        (np.inf, "–"),
        ("nan", "nan"),
        (True, "True"),
        (np.bool_(False), "False"),
        (2021, "2021"),
        (12345, "12,345"),
        (3.0, "3"),
        (0.123456, "0.1235"),
        (-0.0, "0"),
        (123456.7, "123,457"),
        (np.float32(1.5), "1.5"),
        (1e20, "1e+20"),
        ("a\n  b", "a b"),
        ("x" * 99, 60),
        (1234567890123456, "1234567890123456"),
        (10**400, 60),
    ],
)
def test_values_as_text(value, text):
    written = text_of(value)
    assert len(written) == text if isinstance(text, int) else written == text


def test_values_of_a_column_have_as_many_decimals():
    assert texts_of([12.345678, 1.0, -0.001, float("nan")]) == ["12.35", "1", "-0.001", "–"]
    assert texts_of([12.345678, 1.0, -0.5]) == ["12.35", "1.00", "-0.50"]
    assert texts_of([12.345678, 1.0, -0.5], smallest=True) == ["12.346", "1.000", "-0.500"]
    assert texts_of([1.0, 2.0]) == ["1", "2"]
    assert texts_of(["a", 1.5, None]) == ["a", "1.5", "–"]
    assert texts_of([1e-9, 2e-9]) == ["1e-09", "2e-09"]
    assert score_texts("rmse", [21.631, 267.0, None]) == ["21.6", "267.0", "–"]
    assert score_texts("r2", [-1e-5, None]) == ["0.000", "–"]
    assert score_texts("accuracy", [0.5]) == ["50.0%"]
    assert (percent(None), percent(0.125), count(1, "row"), count(2000, "category")) == (
        "–",
        "12.5%",
        "1 row",
        "2,000 categories",
    )
    assert (listed(["a"]), listed(["a", "b", "c"])) == ("a", "a, b and c")


# ---- figures -----------------------------------------------------------------------------------------------------


def test_figures_are_turned_dark_and_nothing_is_left_open(monkeypatch):
    import matplotlib.pyplot as plt
    from matplotlib.colors import to_rgb

    fig, ax = plt.subplots()
    (black,) = ax.plot([0, 1], color="0.0")
    (blue,) = ax.plot([0, 1], color="#0072B2")
    dots = ax.scatter([0, 1], [0, 1], color=["white", "#E69F00"])
    mapped = ax.scatter([0, 1], [0, 1], c=[0.0, 1.0], cmap="gray")
    fig.canvas.draw()
    before = mapped.get_facecolor().copy()
    figures._turn_dark(fig)
    fig.canvas.draw()
    assert to_rgb(black.get_color()) == pytest.approx((figures.TEXT,) * 3)
    assert to_rgb(blue.get_color()) == to_rgb("#0072B2")
    np.testing.assert_allclose(dots.get_facecolor()[0, :3], figures.GROUND)
    assert to_rgb(dots.get_facecolor()[1]) == to_rgb("#E69F00")
    np.testing.assert_array_equal(mapped.get_facecolor(), before)
    assert to_rgb(ax.xaxis.label.get_color()) == pytest.approx((figures.TEXT,) * 3)
    plt.close(fig)

    class Drawn:
        def __init__(self):
            self.figure_, ax = plt.subplots()
            ax.set_title("$\\no formula$")

    monkeypatch.setattr(figures, "_svg", REAL_SVG)
    open_before = plt.get_fignums()
    once, twice = (figures.figure(Drawn, "a caption <") for _ in range(2))
    assert plt.get_fignums() == open_before
    assert once == twice
    light, dark = re.findall(r"data:image/svg\+xml;base64,[^\"]*", once)
    assert light != dark
    assert 'media="screen and (prefers-color-scheme: dark)"' in once
    assert once.count("a caption &lt;") == 2
    assert plt.rcParams["text.parse_math"]


def test_every_figure_is_rendered(flat_models, monkeypatch):
    monkeypatch.setattr(figures, "_svg", REAL_SVG)
    monkeypatch.setattr(figures, "MOST_SHAPES", 50)
    frame, models = flat_models
    numbers, classes = (held_out(models[name], frame) for name in ("gp", "classes"))
    drawn = [draw(judged) for judged in (numbers, classes) for draw in (answers_figure, calibration_figure)]
    drawn += [importances_figure(models["gp"].importances_), *metric_figure(models["gp"].model_)]
    drawn.append(
        maps.map_parts(draw_samples("table", frame, 0), np.random.default_rng(0).normal(size=(150, 2)), None, "")[0]
    )
    for page in drawn:
        light, dark = [address for address in Read(page).addresses if "svg" in address]
        assert light != dark
        assert all(address.startswith("data:image/svg+xml;base64,PD94bWwg") for address in (light, dark))


# ---- predictions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gp", "rfm", "classes", "discriminant"])
def test_a_prediction_on_the_table_of_the_fit(flat_models, name):
    frame, models = flat_models
    model = models[name]
    found = read(build_report(model, frame, data_name="flats.csv"))
    assert [name for name in found.sections if name] == [
        *("data", "good", "looks", "wrong", "sure", "map", "why", "fitted")
    ]
    assert "flats.csv is the table of the fit: its left-out rows" in found.text
    good = found.sections["good"]
    for entry in model.scores_:
        assert entry["name"] in good
    assert "These are scores on 30 left-out rows, of models that have learned from the other 120." in good
    assert all(f" {word} " in found.sections["fitted"] for word in ("estimator", "kernel"))
    assert all(f" {word} " in found.sections["data"] for word in ("city", "category", "constant"))
    verdict = verdict_of(model)
    assert all(sentence in found.text for sentence in verdict[1:])
    assert found.text.index(verdict.good) < found.text.index("About your data")
    assert "How predictions move with a column" in found.sections["looks"]
    assert f"Row {model.wrong_[0]['row']}" in found.sections["why"]
    assert f"mercer {mercer.__version__}" in found.text
    assert found.data is None
    assert found.scripts == []
    assert "script-src 'none'" in build_report(model, frame).replace("&#x27;", "'")
    if name != "discriminant":
        assert "size" in found.sections["looks"]
        assert percent(next(iter(model.importances_.values()))) in found.sections["looks"]
        assert "Combinations that count" in found.sections["looks"]
        assert "The learned metric" in found.sections["looks"]
    else:
        assert "weighs all inputs alike" in found.sections["looks"]


@pytest.mark.parametrize("name", ["gp", "rfm", "classes", "discriminant"])
def test_rows_lie_on_a_still_map(flat_models, name, monkeypatch):
    """The map of `mercer explore`, thinned: points are where the page has them, in the colors of the predictions."""
    frame, models = flat_models
    monkeypatch.setattr(where_rows_lie_module, "MOST_ROWS", 40)
    drawn = []
    monkeypatch.setattr(where_rows_lie_module, "figure", lambda draw, caption: drawn.append(draw().figure_) or Html())
    section = where_rows_lie_module.where_rows_lie(models[name], frame, 0)
    assert "40 rows of 150, drawn at random" in str(section.parts[0])
    rows = sample(np.arange(150), 40, np.random.RandomState(0))
    answer = models[name].predict_frame(frame.iloc[rows])
    left, *right = [ax for ax in drawn[0].axes if ax.get_title()]
    placed = np.concatenate([np.asarray(part.get_offsets()) for part in left.collections])
    assert len(placed) == 40
    if name in ("gp", "rfm"):
        np.testing.assert_allclose(left.collections[0].get_array(), answer["prediction"])
        inputs = frame.iloc[rows].reindex(columns=models[name].columns_)
        page = map_of(models[name].model_, inputs, np.random.RandomState(0))
        np.testing.assert_allclose(placed, page.places, atol=1e-6 * np.ptp(page.places))
    else:
        named = [text.get_text() for text in left.get_legend().get_texts()]
        sizes = [len(part.get_offsets()) for part in left.collections]
        assert dict(zip(named, sizes, strict=True)) == answer["prediction"].value_counts().to_dict()
    doubt = {"gp": answer.get("std"), "rfm": None}.get(name, 1.0 - answer.iloc[:, 1:3].max(axis=1))
    assert len(right) == (doubt is not None)
    if right:
        np.testing.assert_allclose(right[0].collections[0].get_array(), doubt)
    assert where_rows_lie_module.where_rows_lie(models[name], frame[:4], 0) is None


def test_the_page_names_the_columns_that_are_needed_or_says_that_none_is(flat_models):
    frame, models = flat_models
    workflow = copy(models["gp"])
    entry = {"column": "size", "grows_by": 0.5, "low": 0.1, "high": 0.9}
    workflow.needs_ = [entry, entry | {"column": "city", "low": -0.1}]
    said = escape("The model needs 'size' most. Whether it needs 'city' cannot be told from these rows.")
    assert said in "".join(what_matters(workflow, frame, 0).parts)
    workflow.needs_ = [entry | {"low": 0.0}, entry | {"column": "city", "low": -0.1}]
    said = (
        "For no column is this growth clearly above 0, so these rows do not show that the model needs any one of them."
    )
    assert said in "".join(what_matters(workflow, frame, 0).parts)


def test_the_worst_and_the_least_sure_rows_come_with_their_inputs(flat_models):
    frame, models = flat_models
    kept = models["gp"].held_out_
    found = read(build_report(models["gp"], frame))
    errors = np.abs(kept["true"] - kept["predicted"])
    for section, order in (("wrong", np.argsort(-errors)), ("sure", np.argsort(-kept["std"]))):
        rows = kept["rows"][order[:10]]
        text = found.sections[section]
        places = [text.index(f" {row} ") for row in rows]
        assert places == sorted(places)
        assert f" {kept['rows'][order[10]]} " not in text
        for row, following in pairwise(rows):
            line = text[text.index(f" {row} ") : text.index(f" {following} ")]
            assert frame["built"][row] in line
            assert "always" not in line
        assert "always" not in text
    assert "ReliabilityDisplay" not in found.text
    assert "too narrow" in found.sections["sure"]


def test_wrong_classes_are_the_worst_rows(flat_models):
    frame, models = flat_models
    kept = models["classes"].held_out_
    found = held_out(models["classes"], frame)
    true, predicted = kept["true"], kept["predicted"]
    right = kept["probabilities"][np.arange(len(true)), np.searchsorted(kept["classes"], true)]
    np.testing.assert_allclose(found.badness(), 1.0 - right)
    np.testing.assert_allclose(found.doubt(), 1.0 - kept["probabilities"].max(axis=1))
    assert found.inputs["dear"].tolist() == list(true)
    wrong = kept["rows"][true != predicted]
    page = read(build_report(models["classes"], frame))
    section = page.sections["wrong"]
    assert 0 < len(wrong) <= 10
    assert all(f" {row} " in section for row in wrong)
    assert section.count("2020-") + section.count("2021-") + section.count("2022-") == len(wrong)
    assert "the model is too sure" in page.sections["sure"]


def test_a_model_without_a_spread_says_how_far_it_was_off(flat_models):
    frame, models = flat_models
    found = read(build_report(models["rfm"], frame))
    kept = models["rfm"].held_out_
    width = np.sort(np.abs(kept["true"] - kept["predicted"]))[int(np.ceil(31 * 0.9)) - 1]
    assert f"off by at most {text_of(float(width))}" in found.sections["sure"]
    assert "img" in found.tags
    assert "least sure" not in found.text


@pytest.mark.parametrize("name", ["gp", "rfm", "classes"])
def test_other_rows_are_scored_anew(flat_models, name):
    _, models = flat_models
    model, new = models[name], flats(40, seed=3)
    new.loc[7, ["rent", "dear"]] = np.nan
    found = read(build_report(model, new, data_name="new.csv"))
    assert "predicted and scored anew" in found.text
    assert "These are scores of the model on 39 rows of the data in new.csv." in found.sections["good"]
    answer = model.predict_frame(new).drop(index=7)
    true = new[model.target_].drop(index=7)
    if name == "classes":
        expected = percent((answer["prediction"] == true).mean())
    else:
        expected = significant(float(np.sqrt(np.mean((answer["prediction"] - true) ** 2))))
    assert expected in found.sections["good"]
    judged = scored_anew(model, new, 0)
    assert 7 not in judged.rows
    if name == "gp":
        scores = judged.scores()
        inside = (answer["lower"] <= true) & (true <= answer["upper"])
        density = model.model_.log_density(new.drop(index=7).reindex(columns=model.columns_), true.to_numpy())
        assert scores["coverage"] == pytest.approx(inside.mean())
        assert scores["nll"] == pytest.approx(-density.mean())
        np.testing.assert_array_equal(judged.narrowest <= 0.9 + 1e-9, inside)


def test_intervals_of_a_report_are_those_of_the_model(flat_models):
    frame, models = flat_models
    kept = models["gp"].held_out_
    worst = np.argsort(-np.abs(kept["true"] - kept["predicted"]))[:10]
    found = read(build_report(models["gp"], frame)).sections["wrong"]
    assert "90%: from" in found
    for end in ("lower", "upper"):
        assert all(f" {text} " in found for text in texts_of(kept[end][worst].tolist()))
    display = _reliability_of_intervals(held_out(models["gp"]))
    at_90 = np.isclose(display.levels, 0.9)
    inside = (kept["lower"] <= kept["true"]) & (kept["true"] <= kept["upper"])
    assert display.observed[at_90] == display.coverage_90 == pytest.approx(inside.mean())
    assert np.all(np.diff(display.observed) >= 0)


def test_classes_that_the_fit_has_not_seen_are_wrong(flat_models):
    _, models = flat_models
    new = flats(40, seed=3)
    new.loc[:4, "dear"] = "perhaps"
    judged = scored_anew(models["classes"], new, 0)
    np.testing.assert_array_equal(judged.badness()[:5], 1.0)
    assert judged.scores()["accuracy"] <= 35 / 40
    assert "not seen" in read(build_report(models["classes"], new)).sections["wrong"]


def test_rows_without_a_target_are_predicted(flat_models):
    _, models = flat_models
    new = flats(40, seed=3).drop(columns=["rent", "dear"])
    for name, model in models.items():
        found = read(build_report(model, new, data_name="new.csv"))
        assert "new.csv has no target" in found.text
        assert ("least sure of" in found.sections["predicted"]) == (name != "rfm")
        first = model.predict_frame(new)["prediction"][0]
        assert (first if isinstance(first, str) else f"{first:.0f}") in found.sections["predicted"]
        # What the fit has kept is still told, without inputs that are not there.
        assert "Give the table of the fit" in found.sections["wrong"]
        assert "worst rows" not in found.text


def test_the_table_of_the_fit_is_known_by_its_held_out_rows(flat_models):
    frame, models = flat_models
    for model in models.values():
        assert is_table_of_fit(model, frame)
        assert not is_table_of_fit(model, frame.iloc[::-1])
        assert not is_table_of_fit(model, pd.concat([frame, frame]))
        assert not is_table_of_fit(model, frame.iloc[:-1])
        assert not is_table_of_fit(model, frame.drop(columns=model.target_))
        changed = frame.copy()
        row, target = int(model.held_out_["rows"][0]), model.target_
        changed.loc[row, target] = "other" if target == "dear" else 0.0
        assert not is_table_of_fit(model, changed)


def test_other_inputs_with_the_targets_of_the_fit_are_another_table(flat_models):
    frame, models = flat_models
    measured_again = frame.assign(size=frame["size"] + 1.0)
    for model in models.values():
        assert not is_table_of_fit(model, measured_again)
        assert is_table_of_fit(model, frame.assign(more=1.0)[["more", *frame.columns[::-1]]])


def test_targets_are_known_again_however_they_are_stored(flat_models):
    frame, models = flat_models
    for as_stored in (str, lambda value: Decimal(str(value))):
        assert is_table_of_fit(models["gp"], frame.assign(rent=frame["rent"].map(as_stored).astype(object)))
    assert not is_table_of_fit(models["gp"], frame.assign(rent="dear"))


def test_classes_that_are_fractions():
    frame = flats(120)
    frame["dear"] = np.select([frame["rent"] < q for q in frame["rent"].quantile([0.3, 0.6])], [0.5, 1.0], 1.5)
    model = TablePrediction(task="classification", options=SIMPLE, **CLASSES).fit(frame, "dear")
    assert is_table_of_fit(model, frame)
    found = read(build_report(model, frame)).text
    assert "not seen" not in found
    assert scored_anew(model, frame, 0).scores()["accuracy"] > 0.7


def test_without_held_out_rows_there_are_no_scores():
    frame = flats(60)
    model = TablePrediction(options=SIMPLE, test_size=0, **NUMBERS).fit(frame, "rent")
    found = read(build_report(model, frame))
    assert "No rows were left out" in found.text
    assert "scored anew" in found.text
    found = read(build_report(model, frame.drop(columns="rent")))
    assert "wrong" not in found.ids
    assert "predicted" in found.ids


def test_ten_rows_are_enough():
    noise = np.random.default_rng(0).normal(size=10)
    frame = pd.DataFrame({"a": np.arange(10.0), "b": list("xyxyxyxyxy"), "y": np.arange(10.0) + noise})
    read(build_report(TablePrediction(options=SIMPLE, random_state=0).fit(frame, "y"), frame))
    rfm = TablePrediction("rfm", options=SIMPLE, random_state=0).fit(frame, "y")
    with pytest.warns(DataWarning, match="too few for intervals"):
        assert "too few rows were left out" in read(build_report(rfm, frame)).text
    read(build_report(TablePrediction(options=SIMPLE, random_state=0).fit(frame, "b"), frame))
    inputs = frame[["a", "b"]]
    assert len(read(build_report(DataEmbedding(2, random_state=0).fit(inputs), frame)).data["x"]) == 10
    assert len(read(build_report(DataClustering(2, random_state=0).fit(inputs), frame)).data["x"]) == 10


def test_a_table_scored_anew_is_sampled(flat_models, monkeypatch):
    _, models = flat_models
    monkeypatch.setattr(evidence, "MOST_ROWS", 15)
    found = read(build_report(models["gp"], flats(40, seed=3)))
    assert "40 rows of the data, of which 15 were drawn at random and predicted" in found.text
    assert len(scored_anew(models["gp"], flats(40, seed=3), 0).rows) == 15
    again, other = (scored_anew(models["gp"], flats(40, seed=3), seed).rows.tolist() for seed in (0, 1))
    assert again == scored_anew(models["gp"], flats(40, seed=3), 0).rows.tolist()
    assert again == sorted(again)
    assert again != other


# ---- maps --------------------------------------------------------------------------------------------------------


def test_the_map_of_a_table_has_its_rows(people_models):
    frame, model, _ = people_models
    found = read(build_report(model, frame, data_name="people.csv"))
    data = found.data
    assert data["names"] == [f"row {i}" for i in range(90)]
    assert [column["name"] for column in data["columns"]] == ["age", "income", "city", "id"]
    expected = model.map_ - model.map_.min(axis=0)
    np.testing.assert_allclose(
        np.transpose([data["x"], data["y"]]), expected / np.ptp(expected, axis=0).max(), atol=1e-4
    )
    ages = [np.nan if value is None else value for value in data["columns"][0]["values"]]
    np.testing.assert_allclose(ages, frame["age"], rtol=1e-4)
    city = data["columns"][2]
    assert [None if code is None else city["levels"][code] for code in city["codes"]] == [
        None if pd.isna(value) else value for value in frame["city"]
    ]
    landmarks = data["landmarks"]
    likeness = model.embedding_.kernel_(*[model.encoder_.transform(frame)] * 2)
    for i in (0, 40):
        names = [landmarks["names"][k] for k in landmarks["top"][i]]
        places = [int(name.split()[1]) for name in names]
        others = [j for j in np.argsort(-likeness[i], kind="stable") if j != i]
        assert len(names) == 3
        assert likeness[i, places].min() >= likeness[i, others[2]] - 1e-9
        assert landmarks["columns"][1]["values"][landmarks["top"][i][0]] == pytest.approx(
            frame["income"][places[0]], rel=1e-4
        )
    assert "shown by number only" not in found.text
    assert found.scripts
    assert "canvas" in found.tags
    assert "select" in found.tags


def test_landmarks_of_another_table_are_numbers_only(people_models):
    _, model, _ = people_models
    found = read(build_report(model, people(90, seed=5)[0]))
    assert found.data["landmarks"]["columns"] is None
    assert "shown by number only" in found.text


def test_the_map_of_images_has_their_pictures(image_models):
    folder, model, _ = image_models
    found = read(build_report(model, folder, data_name="digits"))
    data = found.data
    assert data["names"] == list(folder.names)
    assert data["columns"] == []
    assert data["color"] is None
    columns, width, height = (data["sprite"][key] for key in ("columns", "width", "height"))
    assert (width, height) == (8, 8)
    n_landmarks = len(data["landmarks"]["names"])
    assert set(data["landmarks"]["names"]) <= set(folder.names)
    assert columns * columns >= 60 + n_landmarks
    assert "A map of digits" in found.text


def test_rows_are_most_like_other_landmarks():
    random = np.random.default_rng(0)
    X = random.normal(size=(6, 3))
    landmarks = np.vstack([X[:2], random.normal(size=(5, 3))])
    kernel = 2.0 * Gaussian(1.0)
    top, likeness = most_like(kernel, X, landmarks)
    for i, x in enumerate(X):
        naive = np.exp(-np.square(landmarks - x).sum(axis=1) / 2.0)
        naive[(landmarks == x).all(axis=1)] = -1.0
        assert top[i].tolist() == np.argsort(-naive)[:3].tolist()
        np.testing.assert_allclose(likeness[i], np.sort(naive)[::-1][:3], rtol=1e-6)
    assert most_like(kernel, X, landmarks[:1])[0].shape == (6, 1)


def test_samples_are_drawn_and_the_page_says_so(people_models, monkeypatch):
    frame, embedding, clustering = people_models
    monkeypatch.setitem(maps.MOST_POINTS, "table", 20)
    monkeypatch.setattr(report_clustering, "MOST_SAMPLES", 30)
    monkeypatch.setattr(report_clustering, "MAP_ROWS", 12)
    for model, n in ((embedding, 20), (clustering, 30)):
        found = read(build_report(model, frame))
        assert f"{n} of 90 rows, drawn at random" in found.text
        assert (
            len(found.data["x"])
            == len(found.data["names"])
            == len(found.data["columns"][0].get("values", "x" * n))
            == n
        )
        assert build_report(model, frame) == build_report(model, frame)
        assert build_report(model, frame) != build_report(model, frame, random_state=1)
    row = int(found.data["names"][3].split()[1])
    assert found.data["columns"][2]["values"][3] == pytest.approx(frame["age"][row], rel=1e-4)


def test_columns_become_numbers_levels_or_text():
    assert encode_column("a", pd.Series([1.23456789, np.nan, 1e9 + 1])) == {
        "name": "a",
        "kind": "number",
        "values": [1.2346, None, 1000000001],
    }
    assert encode_column("a", pd.Series(["x", "y", "y", None])) == {
        "name": "a",
        "kind": "category",
        "levels": ["y", "x"],
        "codes": [1, 0, 0, None],
    }
    assert encode_column("a", pd.Series([True, False]))["levels"] == ["False", "True"]
    assert encode_column("a", pd.Series([1, None], dtype="Int64"))["values"] == [1, None]
    names = [f"name {i}" for i in range(maps.MOST_LEVELS + 1)]
    assert encode_column("a", pd.Series(names)) == {"name": "a", "kind": "text", "values": names}
    assert folders_of(["a.png", "b.png"]) is None
    assert folders_of(["cat/a.png", "dog/b.png", "c.png"])["codes"] == [1, 2, 0]
    wide = pd.DataFrame(np.zeros((3, 30)))
    assert len(map_data(draw_samples("table", wide, 0), np.zeros((3, 2)))["columns"]) == maps.MOST_COLUMNS


@pytest.mark.parametrize("which", [0, 1], ids=["embedding", "clustering"])
def test_tables_of_other_libraries_are_reported(people_models, which):
    table, *models = people_models
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(table, preserve_index=False)
    assert read(build_report(models[which], arrow)).text == read(build_report(models[which], table)).text


def test_many_groups_have_no_legend():
    places, labels = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 30
    assert maps._still(places, labels).ax_.get_legend() is None
    assert maps._still(places, labels % 3).ax_.get_legend() is not None


def test_large_images_are_made_small():
    color = np.random.default_rng(0).random((5, 64, 48, 3))
    found = sheet(color)
    assert (found["height"], found["width"], found["columns"]) == (SIDE, 24, 3)
    assert found["src"].startswith("data:image/jpeg")
    grey = sheet(np.stack([np.zeros((4, 6)), np.ones((4, 6))]))
    assert (grey["height"], grey["width"]) == (4, 6)
    picture = decoded(grey["src"])
    assert picture.shape == (4, 12)
    assert picture[:, :6].max() == 0
    assert picture[:, 6:].min() == 255
    assert 'alt="&lt;a&gt;"' in thumbnail(np.zeros((4, 6)), "<a>")


def decoded(address):
    import base64
    from io import BytesIO

    return np.asarray(Image.open(BytesIO(base64.b64decode(address.split(",")[1]))))


# ---- clusters ----------------------------------------------------------------------------------------------------


def test_clusters_of_a_table(people_models):
    frame, _, model = people_models
    found = read(build_report(model, frame, data_name="people.csv"))
    assert [name for name in found.sections if name] == ["number", "map-section", "apart", "fitted"]
    assert "the data of the fit; examples are from all" in found.text
    number = found.sections["number"]
    assert f"2 to {model.candidates_[-1]['n_clusters']} groups were tried" in number
    for k, size in enumerate(model.sizes_):
        own = model.confidence_[model.labels_ == k]
        assert f"group {k} {size} {percent(size / 90)} {percent(own.mean())} {percent((own < 0.75).mean())}" in number
        assert f"Group {k}" in found.sections["apart"]
        assert model.profiles_[k][0]["what"] in found.sections["apart"]
        for row in model.typical_[k][:5]:
            assert f" {row} " in found.sections["apart"]
    assert [column["name"] for column in found.data["columns"]][:2] == ["group", "confidence"]
    assert found.data["columns"][0]["codes"] == model.labels_.tolist()
    assert found.data["color"] == 0
    assert found.data["landmarks"] is None


def test_clusters_of_other_rows_are_assigned_anew(people_models):
    _, _, model = people_models
    new, _ = people(60, seed=4)
    found = read(build_report(model, new))
    assert "its rows were assigned to the groups anew" in found.text
    assert "The map and the examples show all 60 rows" in found.text
    assert found.data["columns"][0]["codes"] == model.predict_frame(new)["cluster"].tolist()
    drawn = draw_samples("table", new, 0, 25)
    groups = report_clustering.assigned(model, drawn, new)
    own = model.predict_frame(new)
    for k, (typical, border) in enumerate(zip(groups.typical, groups.border, strict=True)):
        assert len(typical) > 0
        assert set(typical) | set(border) <= set(drawn.rows)
        assert (own["cluster"][[*typical, *border]] == k).all()
        assert (own["confidence"][border] < 0.995).all()
    # A group that no new row belongs to has no examples.
    found = read(build_report(model, new[new["city"] == "Oslo"]))
    assert "Typical None." in found.sections["apart"]


def test_columns_that_hardly_differ_tell_nothing(people_models, monkeypatch):
    frame, _, model = people_models
    monkeypatch.setattr(report_clustering, "TELLING", 1.0)
    apart = read(build_report(model, frame)).sections["apart"]
    for differences in re.findall(r"standard deviations (.*?) Typical", apart):
        assert min(abs(float(one)) for one in re.findall(r"[+-]\d+\.\d", differences)) >= 1.0
    monkeypatch.setattr(report_clustering, "TELLING", 9.0)
    assert "No column by itself" in read(build_report(model, frame)).sections["apart"]


def test_clusters_of_images_have_pictures(image_models):
    folder, _, model = image_models
    found = read(build_report(model, folder))
    assert "3 groups were asked for" in found.text
    typical = [folder.names[i] for rows in model.typical_ for i in rows[:5]]
    assert set(typical) <= set(found.alts)
    assert found.data["sprite"] is not None
    shown = set(found.alts) - {"A map of all 60 images."}
    border = [folder.names[i] for rows in model.border_ for i in rows[:5] if model.confidence_[i] < 0.995]
    assert shown == set(typical) | set(border)
    some = ImageFolder(folder.X[::-1], folder.names, folder.shape)
    assert "assigned to the groups anew" in read(build_report(model, some)).text


# ---- what comes from data ----------------------------------------------------------------------------------------


def test_names_and_values_cannot_act():
    frame = flats(60).rename(columns={"size": NASTY, "city": "$\\frac{$ <script>alert(2)</script>"})
    frame["rooms"] = NASTY + frame["rooms"].astype(str)
    frame = frame.rename(columns={"dear": "</title><b>", "rent": "<!--"}).drop(columns=["id", "built"])
    frame["</title><b>"] = np.where(frame["</title><b>"] == "yes", NASTY, "${title}")
    inputs = frame.drop(columns="</title><b>")
    workflows = [
        TablePrediction(options=SIMPLE, random_state=0).fit(frame, "</title><b>"),
        TablePrediction(options=SIMPLE, random_state=0).fit(frame, "<!--"),
        DataEmbedding(2, random_state=0).fit(inputs),
        DataClustering(2, random_state=0).fit(inputs),
    ]
    for workflow in workflows:
        page = build_report(workflow, frame, data_name=f"{NASTY}.csv")
        found = read(page)
        assert NASTY in found.text
        assert "b" not in found.tags
        assert len(found.scripts) == (found.data is not None)
        assert "alert(" not in "".join(found.scripts)
        assert not any(alt.startswith("x") for alt in found.alts)
    assert "</title><b>" in read(build_report(workflows[0], frame)).text


# ---- the command ---------------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, ["report", *(str(part) for part in arguments)], env={"COLUMNS": "100"})


def failed(*arguments):
    result = command(*arguments)
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def folder(tmp_path, monkeypatch, flat_models, people_models):
    monkeypatch.chdir(tmp_path)
    flat_models[0].to_csv("flats.csv", index=False)
    mercer.save(flat_models[1]["gp"], "rent.mercer")
    mercer.save(people_models[1], "map.mercer")
    return tmp_path


def test_the_command_writes_a_page(folder):
    result = command("rent.mercer", "flats.csv", "--out", "page.html")
    assert result.exit_code == 0, result.output
    assert "written to page.html" in result.stdout
    found = read((folder / "page.html").read_text(encoding="utf-8"))
    assert "flats.csv is the table of the fit" in found.text
    document = json.loads(command("rent.mercer", "flats.csv", "--out", "again.htm", "--json").stdout)
    assert document["bytes"] == (folder / "again.htm").stat().st_size
    assert (document["kind"], document["out"]) == ("TablePrediction", "again.htm")
    assert (folder / "again.htm").read_bytes() == (folder / "page.html").read_bytes()


def test_the_seed_is_passed_on(folder, monkeypatch):
    seen = []
    monkeypatch.setattr("mercer.app.cli.report.write_report", lambda *_, **options: seen.append(options) or 1 / 0)
    command("rent.mercer", "flats.csv", "--out", "page.html", "--seed", 7)
    assert seen == [{"data_name": "flats.csv", "random_state": 7}]


def test_wrong_calls_are_told_before_anything_is_done(folder, monkeypatch):
    mercer.save(mercer.Mahalanobis.from_weights([1.0, 2.0]), "metric.mercer")
    (folder / "pictures").mkdir()
    flats().drop(columns="size").to_csv("narrow.csv", index=False)
    people()[0].drop(columns="age").to_csv("young.csv", index=False)
    out = ("--out", "page.html")
    assert "holds a Mahalanobis, for which there is no report" in failed("metric.mercer", "flats.csv", *out)
    assert "no column 'size'" in failed("rent.mercer", "narrow.csv", *out)
    assert "age" in failed("map.mercer", "young.csv", *out)
    assert "is a folder, where a table was expected" in failed("rent.mercer", "pictures", *out)
    assert "no file 'gone.csv'" in failed("rent.mercer", "gone.csv", *out)
    assert "there is no" in failed("gone.mercer", "flats.csv", *out) or "gone.mercer" in failed(
        "gone.mercer", "flats.csv", *out
    )
    monkeypatch.setattr("mercer.app.cli.report.load", lambda _: 1 / 0)
    assert "does not end in '.html'" in failed("rent.mercer", "flats.csv", "--out", "page.pdf")
    assert "create the folder" in failed("rent.mercer", "flats.csv", "--out", "gone/page.html")
    mercer_page = folder / "model.html"
    (folder / "rent.mercer").rename(mercer_page)
    assert "is a file that is read" in failed(mercer_page, "flats.csv", "--out", mercer_page)
    assert not (folder / "page.html").exists()


def test_a_page_is_whole_or_not_there(folder, flat_models, monkeypatch):
    frame, models = flat_models
    path = folder / "page.html"
    path.write_text("old")
    monkeypatch.setattr("mercer.app.report.write.render", lambda page: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(models["gp"], frame, path)
    monkeypatch.setattr("mercer.app.report.write.render", lambda page: "new \udcff")
    write_report(models["gp"], frame, path)
    assert path.read_text() == "new ?"
    assert [one.name for one in folder.iterdir() if one.name.startswith(".")] == []
    with pytest.raises(DataFileError, match="does not end in '.html'"):
        write_report(models["gp"], frame, folder / "page.txt")


def test_other_models_and_data_are_refused(flat_models, people_models, image_models):
    frame, models = flat_models
    with pytest.raises(InvalidParameterError, match="workflow='Gaussian'.*TablePrediction.*DataClustering"):
        build_report(Gaussian(), frame)
    with pytest.raises(TypeError, match="data is a list"):
        build_report(models["gp"], [1, 2])
    with pytest.raises(TypeError, match="data is a list"):
        build_report(people_models[1], [1, 2])
    for model in people_models[1:]:
        with pytest.raises(DataFileError, match="these are images"):
            build_report(model, image_models[0])
    for model in image_models[1:]:
        with pytest.raises(DataFileError, match="this is a table"):
            build_report(model, people_models[0])
