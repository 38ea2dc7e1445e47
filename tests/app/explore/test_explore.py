"""What the page asks, without a browser: answers, refusals, and who may ask at all."""

import http.client
import io
import json
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from tests.app.projects.test_unlabelled import people

import mercer
from mercer.app.cli.explore import prepare
from mercer.app.explore import Exploration, Server
from mercer.app.files.images import ImageFolder
from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.exceptions import DataFileError
from mercer.explain import expansion, read_concepts
from tests.app.projects.test_table_prediction import NUMBERS, SIMPLE, flats

ONE = {"kernel": "gaussian", "metric": "diagonal", "warp": "none", "n_iter": 1, "random_state": 0}


def rows(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.normal(size=(n, 3)), columns=["a", "b", "c"])
    return X, (X["a"] + 0.1 * random.normal(size=n)).rename(None)


@pytest.fixture(scope="module")
def numbers():
    X, y = rows()
    return Exploration(mercer.GPRegressor(**ONE).fit(X[:40], y[:40]), X, y)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    images = X.reshape(-1, 8, 8) / 16.0
    model = mercer.KernelEmbedding(n_components=4, n_landmarks=60, random_state=0).fit(images[:300])
    return Exploration(model, images, y)


def column(exploration, name, of=None):
    return next(k for k, each in enumerate(exploration.columns) if each.name == name and (of is None or each.of == of))


def values(exploration, name, of=None):
    return np.frombuffer(exploration.column(column(exploration, name, of)), dtype=np.float32)


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_a_table_has_its_map_its_answers_and_its_columns(numbers):
    subject = numbers.subjects[0]
    mean, std = subject.model.predict(subject.X, return_std=True)
    np.testing.assert_allclose(values(numbers, "prediction"), mean, rtol=1e-5)
    np.testing.assert_allclose(values(numbers, "doubt"), std, rtol=1e-5)
    assert [each["name"] for each in numbers.about()["columns"]] == [
        "prediction",
        "doubt",
        "influence",
        "a",
        "b",
        "c",
        "target",
    ]
    places = np.frombuffer(numbers.places(0), dtype=np.float32).reshape(-1, 2)
    assert places.shape == (60, 2)
    assert places.min() == 0.0
    assert places.max() == 1.0
    # The map is that of the learned metric: what the model does not use does not spread the rows.
    assert abs(np.corrcoef(places[:, 0], subject.X["a"])[0, 1]) > 0.99


def test_influence_is_that_of_the_training_rows_alone(numbers):
    found = np.frombuffer(numbers.influence(0, 50), dtype=np.float32)
    np.testing.assert_array_equal(np.isfinite(found), np.arange(60) < 40)
    of_row = expansion(numbers.subjects[0].model, numbers.subjects[0].X.iloc[[50]])
    np.testing.assert_allclose(found[of_row.rows], of_row.contributions[0, :, 0], rtol=1e-5)
    np.testing.assert_array_equal(np.isfinite(values(numbers, "influence")), np.arange(60) < 40)


def test_why_adds_up_and_names_rows(numbers):
    found = numbers.why(0, 50)
    total = found["center"] + sum(each["push"] for each in found["pushes"]) + found["rest"]
    assert total == pytest.approx(found["value"], abs=1e-8)
    assert found["value"] == pytest.approx(values(numbers, "prediction")[50], rel=1e-5)
    assert found["n_rest"] == 30
    assert [each["name"] for each in found["pushes"]] == [f"row {each['row']}" for each in found["pushes"]]
    assert found["columns"][0]["name"] == "a"
    assert found["columns"][0]["slope"] == pytest.approx(1.0, abs=0.2)
    curves = numbers.effects(0, 50)["curves"]
    assert curves[0]["name"] == "a"
    a = numbers.subjects[0].X["a"]
    assert curves[0]["at"] == pytest.approx(a[50] - a.mean(), abs=0.3)


def test_searches_and_exports_are_exact(numbers):
    X = numbers.rows.frame
    assert numbers.search("row 7") == [7]
    table = pd.read_csv(io.StringIO(numbers.export([7, 3, 7])))
    assert table["row"].tolist() == [3, 7]
    pd.testing.assert_frame_equal(table[["a", "b", "c"]], X.iloc[[3, 7]][["a", "b", "c"]].reset_index(drop=True))
    assert numbers.search("  ") == []


def test_two_models_are_compared_on_the_same_rows():
    X, y = rows()
    first, second = (mercer.RFMRegressor(**ONE, ridge=ridge).fit(X, y) for ridge in (1e-3, 10.0))
    both = Exploration(first, X, other=second, names=("thin", "stiff"))
    expected = first.predict(X) - second.predict(X)
    np.testing.assert_allclose(values(both, "difference of predictions"), expected, atol=1e-5)
    assert both.row(0)["values"][3][0] == "thin: prediction"
    assert both.places(0) != both.places(1) or first.metric_ == second.metric_
    classes = np.where(y > 0, "up", "down")
    one = mercer.RFMClassifier(**ONE).fit(X, classes)
    other = mercer.RFMClassifier(**ONE).fit(X, classes[::-1])
    both = Exploration(one, X, other=other)
    agree = both.columns[column(both, "predictions")]
    words = np.array(agree.levels)[agree.values.astype(int)]
    np.testing.assert_array_equal(words == "agree", one.predict(X) == other.predict(X))


def test_a_named_selection_has_a_profile_and_colors(digits):
    target = digits.columns[column(digits, "target")]
    zeros = np.flatnonzero(target.values == target.levels.index("0"))
    found = digits.concept(0, "round", zeros.tolist(), column(digits, "target"))
    assert found["significant"] == ["0"]
    assert found["accuracy"] > 0.9
    influence = np.frombuffer(digits.column(found["column"]), dtype=np.float32)
    assert influence[zeros].mean() > np.delete(influence, zeros).mean()
    assert digits.concepts.as_document()["concepts"][0]["name"] == "round"
    # The second concept pays for the first.
    again = digits.concept(0, "round again", zeros.tolist(), column(digits, "target"))
    assert again["p_value"][0] == pytest.approx(2 / 100)


def test_concepts_are_kept_in_a_file_and_found_again(digits, tmp_path):
    path, model = tmp_path / "digits.json", digits.subjects[0].model
    images, labels = digits.rows.given, digits.columns[column(digits, "target")]
    zeros = np.flatnonzero(labels.values == labels.levels.index("0")).tolist()
    first = Exploration(model, images, labels.values.astype(int), concept_file=path)
    named = first.concept(0, "round", zeros, column(first, "target"))
    (kept,) = read_concepts(path, model)
    assert kept.name == "round"
    np.testing.assert_array_equal(kept.vector, first.concepts.named[0].concept.vector)
    again = Exploration(model, images, labels.values.astype(int), concept_file=path)
    np.testing.assert_array_equal(values(again, "concept round"), values(first, "concept round"))
    second = again.concept(0, "round too", zeros, column(again, "target"))
    assert second["p_value"][0] == pytest.approx(2 * named["p_value"][0])
    assert [each.name for each in read_concepts(path, model)] == ["round", "round too"]


def test_images_are_shown_as_they_are(digits):
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(digits.rows.picture(5))))
    np.testing.assert_array_equal(pixels, np.round(255 * digits.rows.images[5]))
    assert digits.row(5)["name"] == "image 5"
    assert digits.effects(0, 5)["curves"] == []


def test_workflows_of_files_are_explored():
    table, _ = people(60)
    embedded = Exploration(DataEmbedding(3, ignore=("id",), random_state=0).fit(table), table)
    assert embedded.about()["models"][0]["sums"]
    assert embedded.why(0, 4)["meaning"] == "coordinate"
    clustered = DataClustering(3, ignore=("id",), random_state=0).fit(table)
    groups = Exploration(clustered, table)
    shown = groups.columns[column(groups, "cluster")]
    np.testing.assert_array_equal(np.array(shown.levels)[shown.values.astype(int)], clustered.labels_.astype(str))
    why = groups.why(0, 4)
    assert why["output"] == str(clustered.labels_[4])  # by the numbers that people see, not the clustering's own
    rests_on = [each["row"] for each in why["pushes"] if each["push"] > 1e-9]
    assert set(clustered.labels_[rests_on]) == {clustered.labels_[4]}
    frame = flats(60)
    prediction = Exploration(TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent"), frame)
    assert prediction.columns[column(prediction, "rent")].of == "data"
    kinds = {curve["name"]: curve["kind"] for curve in prediction.effects(0, 3)["curves"]}
    assert kinds == {"size": "number", "city": "category", "built": "date", "rooms": "number"}


def test_a_tree_of_clusters_is_cut_at_any_level(tree, numbers):
    model, X = tree
    found = Exploration(model, X)
    most = found.about()["models"][0]["most_clusters"]
    assert most == 2 * (model.labels_.max() + 1)
    for k in (2, 3):
        np.testing.assert_array_equal(np.frombuffer(found.cut(0, k), dtype=np.float32), model.cut(X, k))
    assert not found.about()["models"][0]["predicts"]  # the number of a cluster is no prediction
    with pytest.raises(ValueError, match="clustering with a tree"):
        numbers.cut(0, 2)


def test_other_models_have_a_map_and_no_reasons():
    X, y = rows()
    found = Exploration(LinearRegression().fit(X, y), X)
    assert not found.about()["models"][0]["sums"]
    assert len(found.effects(0, 1)["curves"]) == 3
    with pytest.raises(ValueError, match="sum over rows"):
        found.influence(0, 1)


# ---- what does not fit ---------------------------------------------------------------------------------------------


def test_models_and_data_that_do_not_fit_are_refused():
    X, y = rows()
    model = mercer.RFMRegressor(**ONE).fit(X, y)
    with pytest.raises(ValueError, match=r"do not fit each other.*'b'.*'a', 'c'"):
        Exploration(model, X[["a", "c"]])
    with pytest.raises(ValueError, match="2 features"):
        Exploration(model, X[["a", "c"]].to_numpy())
    with pytest.raises(ValueError, match="y="):
        Exploration(model, X, y[:5])
    with pytest.raises(ValueError, match="data="):
        Exploration(model, np.array(["word"]))
    table, _ = people(60)
    workflow = DataEmbedding(3, ignore=("id",), random_state=0).fit(table)
    folder = ImageFolder(np.zeros((2, 8, 8), dtype=np.float32), ("a.png", "b.png"), (8, 8))
    with pytest.raises(DataFileError, match="a table is needed"):
        Exploration(workflow, folder)


def test_concepts_that_cannot_be_are_refused(numbers, digits):
    target = column(digits, "target")
    with pytest.raises(ValueError, match="examples='1 samples'"):
        digits.concept(0, "one", [3], target)
    with pytest.raises(ValueError, match="others='0 samples'"):
        digits.concept(0, "all", list(range(len(digits.rows))), target)
    with pytest.raises(ValueError, match="is not there"):
        digits.concept(0, "chance", np.arange(0, len(digits.rows), 2).tolist(), target)
    with pytest.raises(ValueError, match="column of categories"):
        digits.concept(0, "zeros", list(range(20)), column(digits, "component_1"))
    with pytest.raises(ValueError, match="name="):
        digits.concept(0, " ", list(range(20)), target)
    X, y = rows()
    labeled = Exploration(numbers.subjects[0].model, X, np.where(y > 0, "up", "down"))
    with pytest.raises(ValueError, match="an embedding on landmarks"):
        labeled.concept(0, "zeros", list(range(20)), column(labeled, "target"))


@pytest.mark.parametrize("wrong", [[60], [-1], ["1"], "all", [True], None])
def test_rows_that_are_not_there_are_refused(numbers, wrong):
    with pytest.raises(ValueError, match="rows="):
        numbers.export(wrong)


# ---- the server ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(numbers):
    server = Server(numbers).start()
    yield server
    server.stop()


def ask(server, path, method="GET", body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_only_the_token_opens_the_page(server):
    token = urlsplit(server.address).path.strip("/")
    assert len(token) >= 32
    answer, page = ask(server, f"/{token}/")
    assert answer.status == 200
    assert b"page.js" in page
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    for path in (
        "/",
        "/about",
        f"/{token}",
        f"/{token[:-1]}/about",
        "/x/about",
        f"/{token}x/page.js",
        "//",
        "/%C3%A9/",
    ):
        assert ask(server, path)[0].status == 403, path


def test_other_origins_and_hosts_are_refused(server):
    path, port = urlsplit(server.address).path, server.server_address[1]
    assert ask(server, path + "about", Origin=f"http://127.0.0.1:{port}")[0].status == 200
    assert ask(server, path + "about", Host=f"localhost:{port}")[0].status == 200
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Origin": f"http://127.0.0.1:{port + 1}"},
    ):
        for method in ("GET", "POST"):
            answer, _ = ask(server, path + "about", method, "{}" if method == "POST" else None, **headers)
            assert answer.status == 403, headers


@pytest.mark.parametrize("name", ["server.py", "../server.py", "assets/page.js", "..%2f..%2fetc/passwd", "image", "x"])
def test_only_its_own_names_are_served(server, name):
    answer, content = ask(server, urlsplit(server.address).path + name)
    assert answer.status in (400, 404)
    assert b"import" not in content


def test_wrong_questions_are_answered_in_words(server):
    path, as_json = urlsplit(server.address).path, {"Content_Type": "application/json"}
    for asked, body in (
        ("export", '{"rows": [1000]}'),
        ("concept", "[]"),
        ("export", "{"),
        ("export", '{"rows": "x"}'),
    ):
        answer, content = ask(server, path + asked, "POST", body, **as_json)
        assert answer.status == 400
        assert json.loads(content)["error"]
    assert ask(server, path + "export", "POST", '{"rows": [1]}', Content_Type="text/plain")[0].status == 400
    assert ask(server, path + "export", "POST", "{}", Content_Type="application/json", Content_Length="9999999999")[
        0
    ].status == (400)
    assert ask(server, path + "row?row=1e9")[0].status == 400
    assert ask(server, path + "row?row=60")[0].status == 400
    assert ask(server, path + "row")[0].status == 400
    assert ask(server, path + "about", "DELETE")[0].status == 501


def test_a_notebook_shows_the_page_in_a_frame(numbers):
    X, y = rows()
    page = mercer.explore(numbers.subjects[0].model, X, y, height=300)
    try:
        assert f'src="{page.address}"' in page._repr_html_()
        assert 'height="300"' in page._repr_html_()
        port = urlsplit(page.address).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", urlsplit(page.address).path)
        policy = connection.getresponse().headers["Content-Security-Policy"]
        assert "frame-ancestors http://localhost:*" in policy
        connection.close()
        assert page.concepts == []
    finally:
        page.close()


def test_the_command_serves_saved_models(tmp_path):
    frame = flats(60)
    frame.to_csv(tmp_path / "flats.csv", index=False)
    workflow = TablePrediction(options=SIMPLE, **NUMBERS).fit(frame, "rent")
    mercer.save(workflow, tmp_path / "first.mercer")
    mercer.save(workflow, tmp_path / "second.mercer")
    server = prepare(
        tmp_path / "first.mercer", [tmp_path / "flats.csv"], tmp_path / "second.mercer", None, 0, 0
    ).start()
    try:
        _, content = ask(server, urlsplit(server.address).path + "about")
        about = json.loads(content)
        assert about["title"] == "flats.csv"
        assert [model["name"] for model in about["models"]] == ["first.mercer", "second.mercer"]
        assert not values(server.exploration, "difference of predictions").any()
    finally:
        server.stop()
    # A plain estimator of numbers takes a table of the same names.
    X, y = rows()
    X.assign(note="x").to_csv(tmp_path / "rows.csv", index=False)
    mercer.save(mercer.RFMRegressor(**ONE).fit(X, y), tmp_path / "plain.mercer")
    server = prepare(tmp_path / "plain.mercer", [tmp_path / "rows.csv"], None, None, 0, 0)
    server.server_close()
    assert server.exploration.about()["n"] == 60
    frame.drop(columns="size").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(DataFileError, match="no column 'size'"):
        prepare(tmp_path / "first.mercer", [tmp_path / "less.csv"], None, None, 0, 0)
