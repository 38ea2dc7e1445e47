"""KernelEmbedding: its parts put together; the optima themselves are in test_closed_forms.py."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

import mercer
from mercer import KernelEmbedding
from mercer.embedding import Exact
from mercer.embedding.beginning import BANDWIDTHS, usual_landmarks
from mercer.embedding.moments import shuffled
from mercer.exceptions import DataWarning, InvalidParameterError
from mercer.kernels import Gaussian, Sum
from mercer.losses import kernel_pca, simple_contrastive, spectral_contrastive
from mercer.views import Affine, FeatureDropping, GaussianNoise
from tests.examples_of import numbers

LOSSES = ("spectral_contrastive", "simple_contrastive", "kernel_pca")


def digits(n=300):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def small(**options):
    return KernelEmbedding(**{"kernel": "gaussian", "n_landmarks": 20, "n_components": 4, "random_state": 0, **options})


def two_views(n=80, d=3):
    X = numbers(n, d)
    return X, [X + 0.2 * numbers(n, d, seed=1 + j) for j in range(3)]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_embedding_is_a_sum_over_landmarks(loss):
    X, _ = two_views()
    model = small(loss=loss).fit(X)
    K = model.kernel_.matrix(X, model.landmarks_)
    assert_allclose(model.transform(X), K @ model.coefficients_ + model.bias_, rtol=1e-9, atol=1e-12)
    assert model.landmarks_.shape == (20, 3)
    assert model.coefficients_.shape == (20, 4)
    assert_array_equal(model.landmarks_, X[model.landmark_indices_])


@pytest.mark.parametrize("bias", ["centered", "learned", "none"])
@pytest.mark.parametrize("loss", LOSSES[:2])
def test_loss_is_that_of_the_given_views(loss, bias):
    _, views = two_views()
    model = small(loss=loss, bias=bias).fit_views(*views)
    function = {"spectral_contrastive": spectral_contrastive, "simple_contrastive": simple_contrastive}[loss]
    embedded = [torch.from_numpy(model.transform(view)) for view in views]
    assert_allclose(model.loss_, float(function(*embedded)), rtol=1e-8)


def test_loss_of_kernel_pca_is_that_of_the_rows():
    X, _ = two_views()
    model = small(loss="kernel_pca", bias="none", ridge=0.01).fit(X)
    gram = model.coefficients_.T @ model.kernel_.matrix(model.landmarks_) @ model.coefficients_
    expected = kernel_pca(torch.from_numpy(model.transform(X)), gram=torch.from_numpy(gram), diagonal=1.0)
    assert_allclose(model.loss_, float(expected), rtol=1e-9)
    assert_allclose(model.score(X), -model.loss_, rtol=1e-9)


def test_with_all_rows_as_landmarks_linear_kernel_pca_is_pca():
    X = numbers(40, 5)
    model = KernelEmbedding("kernel_pca", "linear", n_landmarks=40, n_components=3, ridge=0.0, random_state=0).fit(X)
    centered = X - X.mean(axis=0)
    _, _, V = np.linalg.svd(centered)
    expected = centered @ V[:3].T
    found = model.transform(X)
    assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_centered_embeddings_have_mean_zero(loss):
    _, views = two_views()
    centered = small(loss=loss).fit_views(*views)
    assert_allclose(np.mean([centered.transform(view).mean(axis=0) for view in views], axis=0), 0, atol=1e-8)
    plain = small(loss=loss, bias="none").fit_views(*views)
    assert_array_equal(plain.bias_, 0)
    assert np.abs(np.mean([plain.transform(view).mean(axis=0) for view in views], axis=0)).max() > 1e-3


def test_orthogonality_of_the_simple_contrastive_optimum():
    X, _ = two_views()
    model = small(loss="simple_contrastive").fit(X)
    gram = model.coefficients_.T @ model.kernel_.matrix(model.landmarks_) @ model.coefficients_
    assert_allclose(gram, np.eye(4), atol=1e-8)


def test_views_that_agree_are_told_from_views_that_do_not():
    """Column 0 is the same in both views and column 1 is not: the embedding must follow column 0."""
    X = numbers(300, 2)
    other = np.column_stack([X[:, 0], numbers(300, 1, seed=5)[:, 0]])
    model = KernelEmbedding(n_landmarks=100, n_components=1, random_state=0).fit_views(X, other)
    first = model.transform(X)[:, 0]
    moved = model.transform(other)[:, 0]
    assert np.corrcoef(first, moved)[0, 1] > 0.95


# ---- choices -------------------------------------------------------------------------------------------------


def test_ridge_and_bandwidth_have_the_smallest_loss_left_out(monkeypatch):
    monkeypatch.setattr("mercer.embedding.beginning.SEARCH_ROWS", 300)
    X, _ = digits()
    model = KernelEmbedding(image_shape=(8, 8), n_landmarks=60, n_components=10, random_state=0).fit(X)
    by_bandwidth = {}
    for entry in model.history_[: len(BANDWIDTHS) * 3]:
        key = entry["bandwidth"]
        by_bandwidth[key] = min(by_bandwidth.get(key, np.inf), entry["held_out_loss"])
    assert len(by_bandwidth) == len(BANDWIDTHS)
    assert model.kernel_.bandwidth == min(by_bandwidth, key=by_bandwidth.get)
    last = model.history_[-9:]
    gains = {entry["ridge"]: -entry["held_out_loss"] for entry in last}
    assert model.ridge_ == max(ridge for ridge, gain in gains.items() if gain >= 0.9 * max(gains.values()))
    assert len(set(gains.values())) == 9
    assert all(entry["rows"] == len(X) for entry in model.history_)


@pytest.mark.parametrize("loss", LOSSES)
def test_images_have_the_median_bandwidth_where_rows_are_few_whatever_the_loss(loss, monkeypatch):
    """From 4000 rows on views choose it, of rows that a loss without views learns from as well."""
    X, _ = digits()
    options = {"image_shape": (8, 8), "n_landmarks": 60, "n_components": 10, "random_state": 0}
    assert KernelEmbedding(loss, **options).fit(X).kernel_ == Gaussian().resolved(X)
    monkeypatch.setattr("mercer.embedding.beginning.SEARCH_ROWS", 300)
    monkeypatch.setattr("mercer.embedding.beginning.BANDWIDTHS", (0.5,))
    assert KernelEmbedding(loss, **options).fit(X).kernel_ == Gaussian().resolved(X).rescaled(0.5)
    own = KernelEmbedding("kernel_pca", augment=None, **options).fit(X)
    assert own.kernel_ == Gaussian().resolved(X)


def test_half_of_few_images_are_landmarks():
    X, _ = digits(60)
    assert KernelEmbedding(image_shape=(8, 8), random_state=0).fit(X).landmarks_.shape == (30, 64)
    assert KernelEmbedding(random_state=0).fit(X).landmarks_.shape == (60, 64)
    assert KernelEmbedding(image_shape=(8, 8), n_landmarks=60, random_state=0).fit(X).landmarks_.shape == (60, 64)


def test_the_loss_left_out_is_that_of_two_halves():
    _, views = two_views()
    model = small(ridge=0.01, bandwidth=1.5).fit_views(*views)
    (entry,) = model.history_
    losses = []
    K = [model.kernel_.matrix(view, model.landmarks_) for view in views]
    mean = np.mean([k.mean(axis=0) for k in K], axis=0)
    order = shuffled(80, model.seed_, 0).numpy()
    for seen, unseen in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        A = optimum([k[seen] - mean for k in K], model.landmarks_, 0.01, 4)
        losses.append(float(spectral_contrastive(*(torch.from_numpy((k[unseen] - mean) @ A) for k in K))))
    assert_allclose(entry["held_out_loss"], np.mean(losses), rtol=1e-7)


def test_rows_of_two_sources_in_turn_do_not_mislead_the_choice():
    """Even rows lie elsewhere than odd ones: halves by parity would know nothing of each other."""
    X = numbers(400, 2) + np.where(np.arange(400) % 2, 30.0, -30.0)[:, None]
    chosen = [small(augment=GaussianNoise(0.3), bandwidth=1.0, n_landmarks=60).fit(rows) for rows in (X, shuffle(X))]
    losses = [min(entry["held_out_loss"] for entry in model.history_) for model in chosen]
    assert losses[0] == pytest.approx(losses[1], rel=0.3)
    assert losses[0] < -1.5


def optimum(K, landmarks, ridge, n_components=20):
    """The spectral optimum by its formula, with dense matrices."""
    n, p = len(K[0]), len(K)
    B = np.linalg.inv(np.linalg.cholesky(Gaussian(1.5).matrix(landmarks))).T
    Z = [k @ B for k in K]
    second = sum(z.T @ z for z in Z) / (n * p) + ridge * np.eye(B.shape[1])
    cross = sum(Z[i].T @ Z[j] for i in range(p) for j in range(p) if i != j) / (n * p * (p - 1))
    values, vectors = np.linalg.eigh(second)
    root = vectors / np.sqrt(values) @ vectors.T
    rho, V = np.linalg.eigh(root @ cross @ root)
    return B @ root @ V[:, -n_components:] * np.sqrt(np.maximum(rho[-n_components:], 0))


def test_kernels_without_one_bandwidth_are_kept():
    X, _ = two_views()
    kernel = Sum(Gaussian(1.0), Gaussian(3.0))
    assert small(kernel=kernel).fit(X).kernel_ == kernel
    assert small(kernel=Gaussian(0.9)).fit(X).kernel_ == Gaussian(0.9)
    assert small(kernel="linear", n_components=2).fit(X).kernel_ == mercer.kernels.Linear()
    assert small(bandwidth=0.7).fit(X).kernel_.bandwidth == 0.7


def test_a_table_gets_a_wide_kernel_too_and_a_ridge_by_its_variance():
    X, views = two_views()
    model = KernelEmbedding(n_landmarks=20, random_state=0).fit(X)
    narrow = model.kernel_.left
    assert model.kernel_ == narrow + 32.0 * narrow.rescaled(4.0)
    assert narrow == Gaussian().resolved(X)
    variance = KernelEmbedding("kernel_pca", landmarks=model.landmarks_, random_state=0)
    augmented = [model.augmented_(torch.from_numpy(X), torch.Generator().manual_seed(j)).numpy() for j in range(400)]
    top = variance.fit(np.concatenate(augmented)).eigenvalues_[0]
    assert model.ridge_ == pytest.approx(0.1 * top, rel=0.2)
    assert model.history_ == []
    # Views that are given, or the user's own, say something: there the ridge is chosen.
    for other in (
        KernelEmbedding(n_landmarks=20, random_state=0).fit_views(*views),
        KernelEmbedding(n_landmarks=20, augment=GaussianNoise(0.3), random_state=0).fit(X),
    ):
        assert len({entry["ridge"] for entry in other.history_}) > 6
        assert other.kernel_.right.kernel == other.kernel_.left.rescaled(4.0)
    images = KernelEmbedding(n_landmarks=20, random_state=0).fit(digits()[0].reshape(-1, 8, 8))
    assert isinstance(images.kernel_, Gaussian)


# ---- views ---------------------------------------------------------------------------------------------------


def test_images_may_come_flat_or_as_they_are():
    X, _ = digits()
    flat = small(image_shape=(8, 8)).fit(X)
    cubes = small().fit(X.reshape(-1, 8, 8))
    assert flat.sample_shape_ == cubes.sample_shape_ == (8, 8)
    assert_array_equal(flat.coefficients_, cubes.coefficients_)
    assert_array_equal(flat.transform(X), cubes.transform(X.reshape(-1, 8, 8)))
    assert_array_equal(cubes.transform(X), cubes.transform(X.reshape(-1, 8, 8)))
    table = small().fit(X)
    assert table.sample_shape_ == (64,)
    assert not np.allclose(table.coefficients_, flat.coefficients_)


def test_color_images_have_three_axes():
    X = np.random.default_rng(0).uniform(size=(30, 6, 5, 3))
    model = small().fit(X)
    assert model.sample_shape_ == (6, 5, 3)
    assert model.transform(X).shape == (30, 4)


@pytest.mark.parametrize("loss", LOSSES[:2])
def test_shorthands_do_not_depend_on_the_units_of_columns(loss):
    X, _ = two_views()
    scales = np.array([1.0, 100.0, 0.01])
    one = small(loss=loss, kernel=Gaussian(1.0), bandwidth=None).fit(X)
    other = small(loss=loss, kernel=Gaussian(1.0, metric=1 / scales**2), bandwidth=None).fit(X * scales + 5)
    assert_allclose(one.transform(X), other.transform(X * scales + 5), rtol=1e-5, atol=1e-7)


def test_any_callable_is_a_view():
    X, _ = two_views()
    seen = []

    def augment(batch, generator):
        seen.append(batch.shape)
        return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)

    small(augment=augment, n_views=3, bandwidth=1.0).fit(X)
    assert seen == [(80, 3)] * 3
    with pytest.raises(InvalidParameterError, match="augment=.*views of the batch's shape"):
        small(augment=lambda batch, generator: batch[:-1]).fit(X)


def test_views_are_drawn_once_for_all_bandwidths():
    X, _ = two_views()
    seen = []

    def augment(batch, generator):
        seen.append(len(batch))
        return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)

    model = small(augment=augment).fit(X)
    assert len({entry["bandwidth"] for entry in model.history_}) == len(BANDWIDTHS)
    assert seen == [80] * 4  # two views to choose by, and two to learn from


def test_given_views_draw_nothing():
    _, views = two_views()

    def never(batch, generator):
        raise AssertionError("a view was drawn")

    small(augment=never).fit_views(*views)


def test_more_views_come_closer_to_the_mean_over_all():
    """Sums over pairs of three given views are those of the three pairs."""
    _, views = two_views()
    options = {"bandwidth": 1.5, "ridge": 0.05, "bias": "none", "n_components": 20}
    fixed = {**options, "landmarks": views[0][:20], "n_landmarks": None}
    three = small(**fixed).fit_views(*views)
    K = [three.kernel_.matrix(view, three.landmarks_) for view in views]
    A = optimum(K, three.landmarks_, 0.05)
    assert_allclose(three.coefficients_ @ three.coefficients_.T, A @ A.T, rtol=1e-5, atol=1e-6 * np.abs(A @ A.T).max())


def test_tuples_of_views_are_landmarks():
    X, views = two_views()
    model = small(landmark_tuples="all", n_views=2).fit(X)
    assert model.landmarks_.shape == (20, 3)
    assert model.landmark_indices_ is None
    assert not any((row == X).all(axis=1).any() for row in model.landmarks_)
    given = small(landmark_tuples="all", n_landmarks=21).fit_views(*views)
    assert given.landmarks_.shape == (21, 3)
    for j, view in enumerate(views):
        assert all((row == view).all(axis=1).any() for row in given.landmarks_[7 * j : 7 * j + 7])


# ---- streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_batches_give_what_all_rows_give(loss, monkeypatch):
    monkeypatch.setattr("mercer.views.sources.ROWS_A_DRAW", 32)
    X, _ = two_views(n=160)
    landmarks = X[:20]
    options = {"loss": loss, "landmarks": landmarks, "n_landmarks": None, "bandwidth": 1.5}
    # Views of the user's own: a shorthand takes the scales of columns from the first batch.
    options["augment"] = GaussianNoise(0.2)
    whole = small(**options).fit(X)
    parts = small(**options)
    for start in range(0, 160, 64):
        parts.partial_fit(X[start : start + 64])
    assert sum(fold.n_rows for fold in parts.moments_) == 160
    assert_allclose(parts.coefficients_, whole.coefficients_, rtol=1e-7, atol=1e-9)
    assert_allclose(parts.bias_, whole.bias_, rtol=1e-7, atol=1e-9)
    assert not hasattr(whole, "moments_")
    parts.fit(X)
    assert not hasattr(parts, "moments_")
    assert_allclose(parts.coefficients_, whole.coefficients_, rtol=1e-12)


def test_the_size_of_memory_changes_nothing():
    X, _ = two_views()
    assert_allclose(small(working_memory=0.001).fit(X).transform(X), small().fit(X).transform(X), rtol=1e-9)


def test_float32_is_kept_and_close():
    X, views = two_views()
    double = small(bandwidth=1.5, ridge=0.01).fit_views(*views)
    single = small(bandwidth=1.5, ridge=0.01).fit_views(*(view.astype(np.float32) for view in views))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    gram = double.transform(X) @ double.transform(X).T
    found = single.transform(X.astype(np.float32)).astype(float)
    assert_allclose(found @ found.T, gram, atol=1e-3 * np.abs(gram).max())


# ---- use -----------------------------------------------------------------------------------------------------


def test_score_is_minus_the_loss_on_drawn_views():
    X, _ = two_views()
    model = small().fit(X)
    assert_allclose(model.score(X), -model.loss_, rtol=1e-6)  # the same rows, and the same draws
    new = numbers(50, 3, seed=8)
    assert model.score(new) == model.score(new)
    assert model.score(new) < -model.loss_ + 1.0


def test_influence_is_similarity_times_weight():
    X, _ = two_views()
    model = small().fit(X)
    expected = model.kernel_.matrix(X, model.landmarks_) * np.linalg.norm(model.coefficients_, axis=1)
    assert_allclose(model.influence(X), expected, rtol=1e-9)
    top = model.top_landmarks(X, 5)
    assert top.shape == (80, 5)
    assert_array_equal(top[:, 0], expected.argmax(axis=1))
    assert (np.diff(np.take_along_axis(expected, top, axis=1), axis=1) <= 0).all()


def test_save_and_load(tmp_path):
    X, _ = digits()
    model = small(image_shape=(8, 8), augment=Affine(5.0)).fit(X)
    mercer.save(model, tmp_path / "embedding.mercer")
    loaded = mercer.load(tmp_path / "embedding.mercer")
    assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.score(X) == model.score(X)
    stream = small(augment=GaussianNoise(0.1)).partial_fit(X[:150])
    mercer.save(stream, tmp_path / "stream.mercer")
    again = mercer.load(tmp_path / "stream.mercer").partial_fit(X[150:])
    assert_allclose(again.coefficients_, stream.partial_fit(X[150:]).coefficients_, rtol=1e-9)


def test_random_state_decides_everything():
    X, _ = two_views()
    assert_array_equal(small().fit(X).coefficients_, small().fit(X).coefficients_)
    assert not np.allclose(small().fit(X).coefficients_, small(random_state=1).fit(X).coefficients_)


# ---- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "simclr2"}, "loss='simclr2'.*spectral_contrastive"),
        ({"kernel": "precomputed"}, "kernel='precomputed'"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_landmarks": 0}, "n_landmarks=0"),
        ({"landmarks": "best"}, "landmarks='best'.*uniform"),
        ({"landmark_tuples": "yes"}, "landmark_tuples='yes'.*'shared', 'by_view', 'all'"),
        ({"augment": "autos"}, "augment='autos'.*auto"),
        ({"augment": None}, "augment=None.*fit_views"),
        ({"n_views": 1}, "n_views=1"),
        ({"image_shape": (4, 4)}, r"image_shape=\(4, 4\).*3 numbers"),
        ({"ridge": -1.0}, "ridge=-1.0"),
        ({"ridge": "small"}, "ridge='small'"),
        ({"bias": 2}, "bias=2.*'centered', 'learned', 'none'"),
        ({"bandwidth": "wide"}, "bandwidth='wide'"),
        ({"bandwidth": -1.0}, "bandwidth=-1.0"),
        ({"working_memory": 0.0}, "working_memory=0"),
    ],
)
def test_bad_parameters_are_named(options, message):
    X, _ = two_views()
    with pytest.raises(InvalidParameterError, match=message):
        small(**options).fit(X)


def test_bad_views_are_named():
    X, views = two_views()
    with pytest.raises(ValueError, match=r"the views have \[80, 79\] rows"):
        small().fit_views(views[0], views[1][:-1])
    with pytest.raises(ValueError, match="fit_views\\(\\) got 1 views"):
        small().fit_views(views[0])
    with pytest.raises(ValueError, match="fit_views\\(\\) got 0 views"):
        small().fit_views()
    with pytest.raises(ValueError, match="features"):
        small().fit_views(views[0], views[1][:, :2])
    with pytest.raises(ValueError, match="1 sample"):
        small().fit(X[:1])
    with pytest.raises(InvalidParameterError, match="image_shape=\\(8, 8\\).*\\(6, 5\\)"):
        small(image_shape=(8, 8)).fit(np.zeros((4, 6, 5)))
    model = small().fit(np.random.default_rng(0).normal(size=(30, 6, 5)))
    with pytest.raises(ValueError, match=r"shape \(5, 6\).*\(6, 5\)"):
        model.transform(np.zeros((2, 5, 6)))


def test_fewer_rows_than_landmarks():
    X, _ = two_views(n=12)
    with pytest.warns(DataWarning, match="n_landmarks=20"):
        assert len(small().fit(X).landmarks_) == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = KernelEmbedding(random_state=0).fit(X)
    assert len(model.landmarks_) == 12
    assert model.coefficients_.shape[1] <= 12


def test_more_components_than_directions():
    X, _ = two_views(n=12)
    with pytest.warns(DataWarning, match="n_components=40"):
        model = KernelEmbedding(n_components=40, random_state=0).fit(X)
    assert model.transform(X).shape[1] == model.coefficients_.shape[1] < 40


def test_one_distinct_row_has_nothing_to_embed():
    X = np.ones((30, 3))
    with pytest.raises(ValueError, match="nothing is left to embed"):
        KernelEmbedding("kernel_pca", bandwidth=1.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="nothing is left to embed"):
        KernelEmbedding(augment=FeatureDropping(0.0), bandwidth=1.0, random_state=0).fit(X)
    with pytest.warns(DataWarning, match="all are equal"), pytest.raises(ValueError, match="nothing is left to embed"):
        KernelEmbedding("kernel_pca", random_state=0).fit(X)


def test_a_ridge_that_is_too_large_is_named():
    X, _ = two_views()
    with pytest.raises(ValueError, match="ridge=1e\\+06"):
        small(ridge=1e6, solver=Exact("tikhonov")).fit(X)


def test_ridges_are_compared_in_the_directions_of_largest_variance(monkeypatch):
    """With many landmarks and few components: the choice is about that in all directions, and far cheaper."""
    X, _ = digits()
    options = {"image_shape": (8, 8), "n_landmarks": 60, "n_components": 5, "bandwidth": 20.0}
    whole = small(**options).fit(X)
    monkeypatch.setattr("mercer.embedding.choices.LEAST_COMPONENTS", 10)
    few = small(**options).fit(X)
    losses = [[entry["held_out_loss"] for entry in model.history_] for model in (whole, few)]
    assert losses[0] != losses[1]
    assert min(losses[1]) == pytest.approx(min(losses[0]), rel=0.1)
    assert few.ridge_ == pytest.approx(whole.ridge_)


@pytest.mark.parametrize(("n_rows", "of_images"), [(10, 5), (1500, 750), (20_000, 1000), (40_000, 1600), (10**9, 2000)])
def test_landmarks_that_nobody_asked_for_of_images_grow_with_the_rows(n_rows, of_images):
    assert usual_landmarks(n_rows, is_of_columns=True) == 1000
    assert usual_landmarks(n_rows, is_of_columns=False) == of_images


def test_many_landmarks_bear_more_components():
    X = np.random.default_rng(0).normal(size=(1300, 40))
    for m, width in ((100, 100), (600, 150), (1200, 180)):
        model = KernelEmbedding("kernel_pca", "gaussian", n_landmarks=m, ridge=0.0, bandwidth=1.0, random_state=0).fit(
            X
        )
        assert model.coefficients_.shape == (m, width)
