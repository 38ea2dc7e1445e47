"""Workflows without labels: coordinates with a map, and groups, of tables and of images."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import PCA

import mercer
from mercer import TableEncoder
from mercer.app.files.images import ImageFolder
from mercer.app.projects import cluster_counts, clustering, embedding
from mercer.app.projects.cluster_counts import count_clusters
from mercer.app.projects.cluster_profiles import border_rows, column_profiles, typical_rows
from mercer.app.projects.clustering import DataClustering
from mercer.app.projects.embedding import DataEmbedding, neighbor_map, placed, principal_map
from mercer.app.projects.unlabeled import read_data
from mercer.exceptions import DataFileError, DataWarning, InvalidParameterError
from mercer.kernels import Gaussian
from mercer.metrics import clustering_accuracy

RANDOM = np.random.default_rng(0)
BOTH = [DataEmbedding(4, random_state=0), DataClustering(3, random_state=0)]
by_workflow = pytest.mark.parametrize("workflow", BOTH, ids=lambda workflow: type(workflow).__name__)


def people(n=120, seed=0):
    """A table of three groups with numbers, a category and missing values; and the groups."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    age = np.array([20.0, 45.0, 70.0])[y] + random.normal(size=n)
    income = np.array([1.0, 5.0, 2.0])[y] + 0.2 * random.normal(size=n)
    city = np.array(["Oslo", "Rome", "Lima"], dtype=object)[y]
    age[3::40], city[5::50] = np.nan, None
    table = pd.DataFrame({"id": np.arange(n), "age": age, "income": income, "city": city})
    order = random.permutation(n)
    return table.iloc[order].reset_index(drop=True), y[order]


def digits(n=150, classes=(0, 1, 2)):
    X, y = load_digits(return_X_y=True)
    kept = np.flatnonzero(np.isin(y, classes))[:n]
    images = (X[kept] / 16.0).reshape(-1, 8, 8).astype(np.float32)
    return ImageFolder(images, tuple(f"{i:04d}.png" for i in kept), (8, 8)), y[kept]


def some(folder, index):
    return ImageFolder(folder.X[index], tuple(folder.names[i] for i in index), folder.shape)


@pytest.fixture(scope="module")
def image_models():
    folder, y = digits()
    return folder, y, DataEmbedding(8, random_state=0).fit(folder), DataClustering(3, random_state=0).fit(folder)


# ---- the map ---------------------------------------------------------------------------------------------------


def naive_place(e, among, positions, count):
    distances = np.linalg.norm(among - e, axis=1)
    nearest = np.argsort(distances)[:count]
    weights = 1.0 / distances[nearest] ** 2
    return weights @ positions[nearest] / weights.sum()


def test_rows_are_placed_among_their_neighbors():
    among, positions, E = RANDOM.normal(size=(30, 4)), RANDOM.normal(size=(30, 2)), RANDOM.normal(size=(7, 4))
    expected = [naive_place(e, among, positions, embedding.MAP_NEIGHBORS) for e in E]
    np.testing.assert_allclose(placed(E, among, positions), expected, rtol=1e-9)
    np.testing.assert_allclose(placed(among, among, positions), positions, atol=1e-12)
    np.testing.assert_allclose(placed(E, among[:1], positions[:1]), np.repeat(positions[:1], 7, axis=0))


def test_blocks_of_rows_change_nothing(monkeypatch):
    among, positions, E = RANDOM.normal(size=(30, 4)), RANDOM.normal(size=(30, 2)), RANDOM.normal(size=(7, 4))
    whole = placed(E, among, positions)
    monkeypatch.setattr(embedding, "ROWS_A_BLOCK", 3)
    np.testing.assert_allclose(placed(E, among, positions), whole, rtol=1e-12)


def test_equal_rows_share_a_place():
    among = np.zeros((4, 2))
    among[2:] = 1.0
    positions = np.array([[0.0, 0.0], [2.0, 4.0], [9.0, 9.0], [9.0, 9.0]])
    np.testing.assert_allclose(placed(among[:1], among, positions), [[1.0, 2.0]])


def test_principal_map_is_that_of_scikit_learn():
    E = RANDOM.normal(size=(20, 5)) * [5, 3, 1, 1, 1] + 7.0
    expected = PCA(2).fit_transform(E)
    found = principal_map(E)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-10)
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()
    line = principal_map(E[:, :1])
    assert line.shape == (20, 2)
    np.testing.assert_array_equal(line[:, 1], 0.0)


def test_few_rows_keep_their_principal_components():
    E = RANDOM.normal(size=(6, 3))
    np.testing.assert_array_equal(neighbor_map(E, 0), principal_map(E))
    assert np.isfinite(neighbor_map(RANDOM.normal(size=(8, 1)), 0)).all()


# ---- coordinates -----------------------------------------------------------------------------------------------


def test_coordinates_are_those_of_the_kernel_embedding(image_models):
    folder, y, model, _ = image_models
    frame = model.predict_frame(folder)
    assert list(frame.columns) == ["name", "map_1", "map_2", *(f"component_{j}" for j in range(1, 9))]
    assert list(frame["name"]) == list(folder.names)
    np.testing.assert_array_equal(frame.filter(like="component"), model.embedding_.transform(folder.X))
    np.testing.assert_allclose(frame[["map_1", "map_2"]], model.map_, atol=1e-9)
    np.testing.assert_allclose(model.map_[model.map_rows_], model.map_positions_, atol=1e-3)
    assert model.embedding_.sample_shape_ == (8, 8)  # views are those of images, not of tables
    # Classes come together on the map: the nearest other image is of the same class.
    distances = np.linalg.norm(model.map_[:, None] - model.map_, axis=2) + 1e9 * np.eye(len(y))
    assert np.mean(y[distances.argmin(axis=1)] == y) > 0.95
    assert 1.0 < model.effective_rank_ <= 8.0
    assert model.settings_["landmarks"] == 75  # half of few images


def test_each_image_has_one_place_whatever_comes_with_it(image_models):
    folder, _, model, groups = image_models
    index = np.array([70, 3, 41])
    for workflow in (model, groups):
        whole, part = workflow.predict_frame(folder), workflow.predict_frame(some(folder, index))
        assert list(part["name"]) == [folder.names[i] for i in index]
        pd.testing.assert_frame_equal(part, whole.iloc[index].reset_index(drop=True), rtol=1e-4, atol=1e-4)


def test_beyond_the_rows_of_the_map_others_are_placed(monkeypatch):
    X, y = make_blobs(150, 3, centers=3, random_state=4)
    monkeypatch.setattr(embedding, "MAP_ROWS", 60)
    model = DataEmbedding(4, random_state=0).fit(pd.DataFrame(X))
    assert len(model.map_rows_) == len(model.map_coordinates_) == 60
    assert len(np.unique(model.map_rows_)) == 60
    assert model.map_.shape == (150, 2)
    centers = np.array([model.map_[y == k].mean(axis=0) for k in range(3)])
    assert (np.linalg.norm(model.map_[:, None] - centers, axis=2).argmin(axis=1) == y).all()


# ---- groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("centers", "n"), [(2, 20), (4, 60), (5, 150)])
def test_the_number_of_blobs_is_found(centers, n):
    X, _ = make_blobs(n, 3, centers=centers, cluster_std=0.6, random_state=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    tried = count_clusters(X, Gaussian().resolved(X, np.random.RandomState(0)), 0)
    assert [entry["n_clusters"] for entry in tried] == list(range(2, min(20, n // 2 - 1) + 1))
    assert [entry["n_clusters"] for entry in tried if entry["chosen"]] == [centers]


def test_the_number_that_is_taken_has_the_largest_product():
    X = RANDOM.normal(size=(60, 3))
    tried = count_clusters(X, Gaussian().resolved(X, np.random.RandomState(0)), 0)
    products = [max(entry["stability"], 0.0) * entry["silhouette"] for entry in tried]
    assert [entry["chosen"] for entry in tried] == [value == max(products) for value in products]


def test_stability_is_the_agreement_of_halves(monkeypatch):
    """Clusters of the halves come from outside; what is carried over is theirs, by the nearest rows of the other."""
    X, y = make_blobs([30, 20, 14], 2, cluster_std=0.1, random_state=0)
    cut = y + 3 * (RANDOM.uniform(size=len(y)) < 0.5)  # each blob cut at random, which halves cannot agree on
    place = {tuple(row): i for i, row in enumerate(X)}
    monkeypatch.setattr(cluster_counts, "_graph", lambda rows, kernel: [place[tuple(row)] for row in rows])
    monkeypatch.setattr(cluster_counts, "_clusterings", lambda index, numbers, seed: [y[index], cut[index]])
    whole, in_parts = cluster_counts.stabilities(X, None, [3, 6], 0)
    assert whole == pytest.approx(1.0)
    assert 0.1 < in_parts < 0.7


def test_two_groups_are_two_though_the_larger_could_be_cut():
    X, y = make_blobs([60, 30], 3, random_state=2)
    model = DataClustering(random_state=0).fit(pd.DataFrame(X))
    assert model.labels_.tolist() == y.tolist()


def test_separation_is_the_silhouette_where_there_is_one():
    X, y = RANDOM.normal(size=(9, 2)), np.arange(9) % 3
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    means = np.array(
        [[distances[i, y == k].sum() / (np.sum(y == k) - (y[i] == k)) for k in range(3)] for i in range(9)]
    )
    own = means[np.arange(9), y]
    next_one = np.where(np.arange(3) == y[:, None], np.inf, means).min(axis=1)
    expected = np.mean((next_one - own) / np.maximum(own, next_one))
    assert cluster_counts.separation(X, y) == pytest.approx(max(expected, 0.0))
    assert cluster_counts.separation(X + 9.0 * y[:, None], y) > 0.5
    assert cluster_counts.separation(X, 0 * y) == cluster_counts.separation(X, np.arange(9)) == 0.0


def test_noise_has_no_groups_and_a_warning_says_so():
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(120, 6)))
    even = r"even on \d+ of them \(agreement 0\.\d\d, where 1 is full\)"
    with pytest.warns(DataWarning, match=rf"two halves of the rows agree little on groups, {even}"):
        DataClustering(random_state=0).fit(table)
    DataClustering(3, random_state=0).fit(table)  # nobody asked for a number


def test_groups_of_a_table_and_what_tells_them_apart():
    table, y = people()
    model = DataClustering(random_state=0, ignore=["id"]).fit(table)
    assert model.n_clusters_ == 3
    whole = table.notna().all(axis=1)
    assert (model.labels_ == y)[whole].all()  # by size, the largest first
    assert (model.labels_ == y).mean() > 0.97
    assert model.sizes_.tolist() == np.bincount(model.labels_).tolist()
    assert model.columns_ == ["age", "income", "city"]
    assert [entry["chosen"] for entry in model.candidates_].index(True) == 1
    assert model.candidates_[1]["stability"] > 0.9
    frame = model.predict_frame(table)
    assert list(frame.columns) == ["row", "cluster", "confidence"]
    assert frame["row"].tolist() == list(range(len(table)))
    np.testing.assert_array_equal(frame["cluster"], model.labels_)
    assert frame["confidence"].between(1 / 3, 1).all()
    told = {entry["column"]: entry for entry in model.profiles_[1]}
    assert set(told) == {"age", "income", "city"}
    assert told["city"]["what"] == "city=Rome"
    assert told["income"]["in_cluster"] == pytest.approx(table["income"][model.labels_ == 1].mean())
    assert model.describe() == "120 rows and 3 columns (2 numbers, 1 category)"
    new, expected = people(seed=1)
    assert (model.predict_frame(new.drop(columns="id"))["cluster"] == expected).mean() > 0.97


def test_profiles_are_means_and_shares():
    table, y = people()
    encoder = TableEncoder()
    X = encoder.fit_transform(table[["age", "income", "city"]])
    profiles = column_profiles(encoder, X, y, 3)
    filled = table["age"].fillna(table["age"].median())
    twins = {"age": filled, "income": table["income"], "age is missing": table["age"].isna()}
    twins |= {f"city={city}": table["city"] == city for city in ("Oslo", "Rome", "Lima")}
    for cluster, profile in enumerate(profiles):
        assert [entry["column"] for entry in profile] == list(dict.fromkeys(entry["column"] for entry in profile))
        sizes = [abs(entry["difference"]) for entry in profile]
        assert sizes == sorted(sizes, reverse=True)
        for entry in profile:
            values = twins[entry["what"]].astype(float)
            mean, inside = values.mean(), values[y == cluster].mean()
            assert entry["in_cluster"] == pytest.approx(inside)
            assert entry["overall"] == pytest.approx(mean)
            assert entry["difference"] == pytest.approx((inside - mean) / values.std(ddof=0))
            assert entry["kind"] == ("number" if entry["what"] in ("age", "income") else "share")
        # The strongest of all, not the first: each column is known by what differs most of it.
        z = {what: abs(v[y == cluster].mean() - v.mean()) / v.astype(float).std(ddof=0) for what, v in twins.items()}
        assert profile[0]["what"] == max(z, key=z.get)
    assert [len(profile) for profile in column_profiles(encoder, X, y, 1)] == [1, 1, 1]


def test_missing_values_and_dates_in_profiles():
    table = pd.DataFrame(
        {
            "age": [np.nan] * 10 + [30.0 + i for i in range(10)],
            "day": pd.date_range("2024-01-01", periods=20, freq="37D"),
        }
    )
    encoder = TableEncoder()
    X = encoder.fit_transform(table)
    first, _ = column_profiles(encoder, X, np.repeat([0, 1], 10), 5)
    told = {entry["column"]: entry for entry in first}
    assert told["age"]["what"] == "age is missing"
    assert (told["age"]["in_cluster"], told["age"]["overall"]) == (1.0, 0.5)
    assert told["day"]["kind"] == "other"
    assert told["day"]["in_cluster"] is None


def test_typical_and_border_rows():
    X = RANDOM.normal(size=(20, 3))
    members = np.arange(4, 15)
    distances = {i: np.linalg.norm(X[i] - X[4:15].mean(axis=0)) for i in members}
    assert typical_rows(X, members, 4).tolist() == sorted(members, key=distances.get)[:4]
    confidence = RANDOM.uniform(size=20)
    assert border_rows(confidence, members, 3).tolist() == sorted(members, key=lambda i: confidence[i])[:3]


def test_groups_of_images(image_models):
    folder, y, _, model = image_models
    assert clustering_accuracy(y, model.labels_) > 0.9
    assert (np.diff(model.sizes_) <= 0).all()
    assert model.profiles_ is None
    assert model.candidates_ == []
    frame = model.predict_frame(folder)
    assert list(frame.columns) == ["name", "cluster", "confidence"]
    for cluster in range(3):
        own = frame[frame["cluster"] == cluster]
        assert set(model.names_of(model.typical_[cluster])) <= set(own["name"])
        assert model.names_of(model.border_[cluster])[0] in set(
            own["name"][own["confidence"].min() == own["confidence"]]
        )
    assert model.describe() == "150 grey images of 8 x 8 pixels"


def naive_votes(model, X):
    """Shares by hand: ridge expression of each row in the landmarks, the largest ten coefficients, summed by group."""
    found = model.clustering_
    K, k = found.kernel_.matrix(found.dictionary_), found.kernel_.matrix(found.dictionary_, X)
    ridge = found.ridge_ * np.linalg.eigvalsh(K)[-1]
    C = np.abs(np.linalg.solve(K + ridge * np.eye(len(K)), k)).T
    votes = np.zeros((len(X), model.n_clusters_))
    for i, row in enumerate(C):
        for j in np.argsort(-row)[:10]:
            group = found.labels_[found.landmark_indices_[j]]
            votes[i, list(model.order_).index(group)] += row[j]
    return votes / votes.sum(axis=1, keepdims=True)


def test_confidence_is_the_share_of_the_expression(image_models):
    _, _, _, model = image_models
    new, _ = digits(40, (3, 4))
    frame = model.predict_frame(new)
    expected = naive_votes(model, new.X.reshape(len(new.X), -1).astype(np.float64))
    np.testing.assert_array_equal(frame["cluster"], expected.argmax(axis=1))
    np.testing.assert_allclose(frame["confidence"], expected.max(axis=1), rtol=1e-5)
    assert frame["confidence"].min() < 0.9


def test_more_pixels_than_images():
    folder, y = digits(45)
    large = np.repeat(np.repeat(folder.X, 3, axis=1), 3, axis=2)
    model = DataClustering(3, random_state=0).fit(ImageFolder(large, folder.names, (24, 24)))
    assert clustering_accuracy(y, model.labels_) > 0.9
    again = model.predict_frame(ImageFolder(large, folder.names, (24, 24)))
    np.testing.assert_array_equal(again["cluster"], model.labels_)
    named = model.order_[model.labels_]
    assert np.mean(named == model.clustering_.labels_) > 0.9


def test_beyond_some_rows_groups_are_learned_on_landmarks(monkeypatch):
    X, y = make_blobs([60, 50, 40], 3, random_state=4)
    monkeypatch.setattr(clustering, "MOST_ROWS", 70)
    model = DataClustering(random_state=0).fit(pd.DataFrame(X))
    assert model.settings_["landmarks"] == 70
    assert model.labels_.tolist() == y.tolist()


def test_groups_without_rows_are_none():
    table = pd.DataFrame({"a": [0.0, 1.0] * 10})
    with pytest.warns(DataWarning, match="n_clusters=4, but only 2 groups have rows"):
        model = DataClustering(4, random_state=0).fit(table)
    assert model.n_clusters_ == 2
    assert model.sizes_.tolist() == [10, 10]
    assert set(model.predict_frame(table)["cluster"]) == {0, 1}


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows(n):
    table = pd.DataFrame({"a": np.arange(n) ** 2.0})
    model = DataClustering(random_state=0).fit(table)
    assert 1 <= model.n_clusters_ <= n
    with pytest.warns(DataWarning, match="components are kept"):
        frame = DataEmbedding(random_state=0).fit(table).predict_frame(table)
    assert np.isfinite(frame.to_numpy()).all()


# ---- both ------------------------------------------------------------------------------------------------------


@by_workflow
@pytest.mark.parametrize("kind", ["table", "images"])
def test_saved_and_loaded_it_says_the_same(workflow, kind, tmp_path):
    data = people()[0] if kind == "table" else digits(60)[0]
    model = clone(workflow).fit(data)
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.reads == kind
    assert again.describe() == model.describe()
    pd.testing.assert_frame_equal(again.predict_frame(data), model.predict_frame(data), check_exact=True)
    for name in ("n_rows_", "columns_", "image_shape_", "names_", "settings_"):
        assert getattr(again, name) == getattr(model, name)


@by_workflow
def test_the_seed_decides(workflow):
    data, _ = people()
    first, second = (clone(workflow).fit(data).predict_frame(data) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


@by_workflow
def test_ignored_columns_are_not_looked_at(workflow):
    data, _ = people()
    model = clone(workflow).set_params(ignore=("id", "city")).fit(data)
    assert model.columns_ == ["age", "income"]
    changed = data.assign(id=-1, city="none")[["income", "city", "age"]]
    pd.testing.assert_frame_equal(model.predict_frame(changed), model.predict_frame(data))
    pd.testing.assert_frame_equal(
        clone(workflow).fit(data[["age", "income"]]).predict_frame(data), model.predict_frame(data)
    )


@by_workflow
def test_errors_say_what_is_wrong_with_the_data(workflow):
    data, _ = people(30)
    with pytest.raises(DataFileError, match=r"no column to ignore 'idd' \(nearest: 'id'\)"):
        clone(workflow).set_params(ignore=["idd"]).fit(data)
    with pytest.raises(InvalidParameterError, match="none is left"):
        clone(workflow).set_params(ignore=list(data.columns)).fit(data)
    with pytest.raises(ValueError, match="the data have only 1 row: "):
        clone(workflow).fit(data[:1])
    with pytest.raises(TypeError, match="data is a ndarray"):
        clone(workflow).fit(data.to_numpy())
    images, _ = digits(5)
    same = ImageFolder(np.ones_like(images.X), images.names, images.shape)
    with pytest.raises(ValueError, match="all 5 images are equal"):
        clone(workflow).fit(same)
    with pytest.raises(ValueError, match="the data have only 1 image: "):
        clone(workflow).fit(some(images, [0]))
    with pytest.raises(InvalidParameterError, match="ignore=.*empty for images"):
        clone(workflow).set_params(ignore=["id"]).fit(images)


@by_workflow
def test_new_data_must_be_of_the_kind_of_the_fit(workflow):
    table, images = people(30)[0], digits(30)[0]
    of_table, of_images = clone(workflow).fit(table), clone(workflow).fit(images)
    with pytest.raises(DataFileError, match="fitted to a table, but these are images"):
        of_table.predict_frame(images)
    with pytest.raises(DataFileError, match="fitted to images, but this is a table"):
        of_images.predict_frame(table)
    with pytest.raises(DataFileError, match=r"shape \(4, 8\), but those of the fit had \(8, 8\)"):
        of_images.predict_frame(ImageFolder(images.X[:, :4], images.names, (4, 8)))
    with pytest.raises(ValueError, match="X lacks 'income'"):
        of_table.predict_frame(table.drop(columns="income"))


@pytest.mark.parametrize("n_clusters", [0, 1, -3, 31, 2.0, True, "abc", None])
def test_numbers_of_groups_that_are_refused(n_clusters):
    with pytest.raises(InvalidParameterError, match=f"n_clusters={n_clusters!r}"):
        DataClustering(n_clusters).fit(people(30)[0])


def test_numbers_of_coordinates_that_are_refused():
    with pytest.raises(InvalidParameterError, match="n_components=0"):
        DataEmbedding(0).fit(people(30)[0])


def test_a_path_leads_to_a_table_or_to_images(tmp_path):
    from PIL import Image

    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "a.png")
    assert read_data(tmp_path).names == ("a.png",)
    people(30)[0].to_csv(tmp_path / "people.csv", index=False)
    assert len(read_data(str(tmp_path / "people.csv"))) == 30
    with pytest.raises(FileNotFoundError, match="nearest: 'people.csv'"):
        read_data(tmp_path / "peple.csv")
