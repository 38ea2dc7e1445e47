"""`mercer embed` and `mercer cluster`, as a person runs them: files in, files out, words on the terminal."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from typer.testing import CliRunner

import mercer
from mercer.app.cli.app import app
from mercer.app.files import read_images
from mercer.app.projects.clustering import DataClustering
from mercer.app.projects.embedding import DataEmbedding
from mercer.metrics import clustering_accuracy

WORKFLOWS = {"embed": DataEmbedding, "cluster": DataClustering}
by_command = pytest.mark.parametrize("command", list(WORKFLOWS))


def put_digits(folder, classes, n, first=0):
    """Write n digits of some classes, every second from one on, as PNG files named by a number and their class."""
    X, y = load_digits(return_X_y=True)
    folder.mkdir(parents=True)
    for i in np.flatnonzero(np.isin(y, classes))[first::2][:n]:
        Image.fromarray((X[i].reshape(8, 8) * 255 / 16).round().astype(np.uint8)).save(folder / f"{i:04d}-{y[i]}.png")
    return folder


def put_people(path, n=90):
    """Write a table of two groups, with categories and missing values."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 3 == 0
    table = pd.DataFrame(
        {
            "id": np.arange(n),
            "age": np.where(y, 60.0, 25.0) + random.normal(size=n),
            "city": np.where(y, "Oslo", "Rome"),
            "height": random.normal(size=n) + 5.0 * y,
        }
    )
    table.loc[4, "age"] = np.nan
    table.to_csv(path, index=False)
    return path, y


def invoke(*arguments, width=100):
    return CliRunner().invoke(app, [str(part) for part in arguments], env={"COLUMNS": str(width)})


def done(*arguments, **options):
    result = invoke(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def failed(*arguments, code=1):
    """Return the one line that a person sees."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, result.stderr
    return lines[0]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return put_digits(tmp_path_factory.mktemp("data") / "digits", (0, 1, 2), 150)


@pytest.fixture
def people(tmp_path):
    return put_people(tmp_path / "people.csv")


def test_images_are_clustered_and_new_ones_join(images, tmp_path):
    out, model = tmp_path / "groups.csv", tmp_path / "groups.mercer"
    result = done("cluster", images, "--out", out, "--save", model)
    table = pd.read_csv(out)
    assert list(table.columns) == ["name", "cluster", "confidence"]
    assert list(table["name"]) == sorted(path.name for path in images.iterdir())
    classes = table["name"].str[-5].astype(int)
    assert clustering_accuracy(classes, table["cluster"]) > 0.85
    sizes = table["cluster"].value_counts().sort_index().tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert "Read 150 grey images of 8 x 8 pixels" in result.stdout
    assert f"Found {len(sizes)} groups" in result.stdout
    found = f"Tried 2 to 20: {len(sizes)} fits best (groups in two halves of the data agree to"
    assert found in result.stdout
    assert str(out) in result.stdout
    assert str(model) in result.stdout
    loaded = mercer.load(model)
    typical = loaded.names_of(loaded.typical_[0])[0]
    assert typical in result.stdout
    assert result.stderr == ""
    # The same images get the same answers, in whatever folder they are.
    again = loaded.predict_frame(read_images(images))
    pd.testing.assert_frame_equal(again, table, check_exact=False, rtol=1e-12)
    new = put_digits(tmp_path / "new", (0, 1, 2), 40, first=1)
    done("predict", model, new, "--out", tmp_path / "new.parquet")
    answers = pd.read_parquet(tmp_path / "new.parquet")
    group_of = classes.groupby(table["cluster"]).agg(lambda own: own.mode()[0])
    assert (answers["cluster"].map(group_of) == answers["name"].str[-5].astype(int)).mean() > 0.85


def test_images_are_embedded_and_new_ones_are_placed(images, tmp_path):
    out, model = tmp_path / "map.feather", tmp_path / "map.mercer"
    result = done("embed", images, "--out", out, "--save", model, "--n-components", 6)
    table = pd.read_feather(out)
    assert list(table.columns) == ["name", "map_1", "map_2", *(f"component_{j}" for j in range(1, 7))]
    assert list(table["name"]) == sorted(path.name for path in images.iterdir())
    assert "Learned 6 coordinates; their effective rank is" in result.stdout
    assert "bandwidth:" in result.stdout
    assert str(model) in result.stdout
    done("predict", model, images, "--out", tmp_path / "again.feather")
    pd.testing.assert_frame_equal(pd.read_feather(tmp_path / "again.feather"), table)
    # Images of another size are brought to that of the fit.
    (tmp_path / "large").mkdir()
    for name in table["name"][:4]:
        Image.open(images / name).resize((16, 16)).convert("RGB").save(tmp_path / "large" / name)
    result = done("predict", model, tmp_path / "large", "--out", tmp_path / "large.csv")
    assert "note: images of (16, 16) pixels" in result.stderr
    assert "note: images in color were made grey" in result.stderr
    nearby = pd.read_csv(tmp_path / "large.csv").filter(like="component") - table.filter(like="component")[:4]
    assert np.abs(nearby.to_numpy()).mean() < 0.3 * np.abs(table.filter(like="component").to_numpy()).mean()


def test_a_table_is_clustered(people, tmp_path):
    path, y = people
    result = done("cluster", path, "--out", tmp_path / "out.csv", "--ignore", "id", "--n-clusters", 2)
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table.columns) == ["row", "cluster", "confidence"]
    assert table["row"].tolist() == list(range(90))
    assert (table["cluster"] == y).mean() > 0.98
    assert "Read 90 rows and 3 columns (2 numbers, 1 category)" in result.stdout
    assert "Found 2 groups" in result.stdout
    assert "Tried" not in result.stdout
    assert "city=Oslo 100% (33%, +1.4)" in result.stdout
    assert "age 59" in result.stdout or "age 60" in result.stdout
    assert "saved" not in result.stdout


def test_no_line_is_wider_than_the_terminal(people, tmp_path):
    result = done("cluster", people[0], "--out", tmp_path / "out.csv", "--n-clusters", 2, width=80)
    lines = result.stdout.splitlines()
    assert len(lines) > 10
    # Paths are for copying and not broken.
    assert all(len(line) <= 80 for line in lines if str(tmp_path) not in line)


def test_json_of_groups_is_one_document(people, tmp_path):
    path, _ = people
    result = done("cluster", path, "--out", tmp_path / "out.csv", "--ignore", "id", "--json")
    document = json.loads(result.stdout)
    assert document["rows"] == 90
    assert document["reads"] == "table"
    assert document["columns"] == {"age": "number", "city": "category", "height": "number"}
    assert document["n_clusters"] == len(document["clusters"]) == 2
    assert sum(entry["size"] for entry in document["clusters"]) == 90
    assert [entry["cluster"] for entry in document["clusters"]] == [0, 1]
    assert sum(entry["chosen"] for entry in document["candidates"]) == 1
    table = pd.read_csv(tmp_path / "out.csv")
    for entry in document["clusters"]:
        own = table[table["cluster"] == entry["cluster"]]
        assert set(entry["typical"]) <= set(own["row"])
        assert entry["confidence"] == pytest.approx(own["confidence"].mean())
        assert entry["columns"][0]["column"] in ("age", "city", "height")
    assert document["out"] == str(tmp_path / "out.csv")
    assert document["model"] is None


def test_json_of_coordinates_is_one_document(images, tmp_path):
    result = done("embed", images, "--out", tmp_path / "e.csv", "--n-components", 3, "--json", "--seed", 1)
    document = json.loads(result.stdout)
    assert (document["reads"], document["rows"], document["n_components"]) == ("images", 150, 3)
    assert document["image_shape"] == [8, 8]
    assert document["columns"] is None
    assert document["settings"]["landmarks"] == 75  # half of few images


@by_command
def test_the_seed_is_passed_on(people, tmp_path, command, monkeypatch):
    seen = []
    monkeypatch.setattr(WORKFLOWS[command], "fit", lambda self, data: seen.append(self.random_state) or 1 / 0)
    invoke(command, people[0], "--out", tmp_path / "out.csv", "--seed", 7)
    assert seen == [7]


@by_command
def test_notes_about_images_are_lines(tmp_path, command):
    folder = put_digits(tmp_path / "digits", (0, 1), 30)
    Image.fromarray(np.zeros((20, 10), np.uint8)).save(folder / "large.png")
    whole = (folder / "large.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[:-30])
    (folder / "notes.txt").write_text("notes")
    options = ["--n-components", 3] if command == "embed" else ["--n-clusters", 2]
    result = done(command, folder, "--out", tmp_path / "out.csv", *options)
    lines = result.stderr.splitlines()
    assert all(line.startswith("note: ") for line in lines)
    assert len(lines) == 2
    assert "'notes.txt'" in lines[0]
    assert "'cut.png'" in lines[0]
    assert "resized to (8, 8)" in lines[1]
    assert len(pd.read_csv(tmp_path / "out.csv")) == 31


@by_command
def test_data_that_will_not_do(tmp_path, people, command):
    out = ["--out", tmp_path / "out.csv"]
    (tmp_path / "empty").mkdir()
    assert "holds no image: files that end in .png" in failed(command, tmp_path / "empty", *out)
    assert "nearest: 'people.csv'" in failed(command, tmp_path / "peple.csv", *out)
    put_digits(tmp_path / "one", (0,), 1)
    assert "the data have only 1 image" in failed(command, tmp_path / "one", *out)
    (tmp_path / "same").mkdir()
    for i in range(3):
        Image.fromarray(np.full((8, 8), 9, np.uint8)).save(tmp_path / "same" / f"{i}.png")
    assert "all 3 images are equal" in failed(command, tmp_path / "same", *out)
    file = tmp_path / "same" / "0.png"
    assert "no ending that says what table it is" in failed(command, file, *out)
    pd.DataFrame({"a": [1.0], "b": [2.0]}).to_csv(tmp_path / "row.csv", index=False)
    assert "the data have only 1 row" in failed(command, tmp_path / "row.csv", *out)
    assert "no column to ignore 'idd' (nearest: 'id')" in failed(command, people[0], *out, "--ignore", "idd")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("n_clusters", ["abc", "0", "-1", "1", "91", "2.5", ""])
def test_numbers_of_groups_that_are_refused(people, tmp_path, n_clusters):
    line = failed("cluster", people[0], "--out", tmp_path / "out.csv", "--n-clusters", n_clusters)
    assert "n_clusters=" in line
    assert n_clusters in line
    assert "whole number, at least 2" in line
    assert not (tmp_path / "out.csv").exists()


@by_command
def test_outputs_are_checked_first(people, tmp_path, command, monkeypatch):
    monkeypatch.setattr(WORKFLOWS[command], "fit", None)  # nothing may be computed
    path, _ = people
    assert "create the folder" in failed(command, path, "--out", tmp_path / "no" / "out.csv")
    assert "no ending that says" in failed(command, path, "--out", tmp_path / "out.txt")
    assert "is a folder" in failed(command, path, "--out", tmp_path)
    assert "is a file that is read" in failed(command, path, "--out", path)
    options = ["--out", tmp_path / "out.csv", "--save"]
    assert "create the folder" in failed(command, path, *options, tmp_path / "no" / "m.mercer")
    assert "has the ending of a table" in failed(command, path, *options, tmp_path / "m.csv")
    assert json.loads(invoke(command, path, "--out", tmp_path / "out.txt", "--json").stdout).keys() == {"error"}


@by_command
@pytest.mark.parametrize("stage", ["fit", "predict_frame"])
def test_stopped_by_ctrl_c_it_leaves_nothing(people, tmp_path, command, stage, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WORKFLOWS[command], stage, stop)
    before = sorted(path.name for path in tmp_path.iterdir())
    result = invoke(command, people[0], "--out", tmp_path / "out.csv", "--save", tmp_path / "m.mercer")
    assert result.exit_code == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@by_command
def test_help_says_what_the_output_holds(command):
    text = done(command, "--help", width=120).stdout
    assert "columns of the input are not repeated" in " ".join(text.replace("│", " ").split())
