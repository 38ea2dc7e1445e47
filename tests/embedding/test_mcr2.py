"""MCR2: the loss that is trained, classes that become orthogonal subspaces, nearest subspaces, resume, bad input."""

import copy

import numpy as np
import pytest
import torch
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits
from torch import nn

import mercer
from mercer import MCR2
from mercer.embedding import mcr2 as module
from mercer.embedding.mcr2 import subspace
from mercer.exceptions import ConvergenceWarning, InvalidParameterError, ModelFileError, NumericalError
from mercer.networks import evaluation
from mercer.training import Recipe
from mercer.views import GaussianNoise
from tests.examples_of import numbers

FEW = Recipe(n_epochs=3, batch_size=64, learning_rate=1e-2)
OPTIONS = {"hidden": 16, "recipe": FEW, "random_state": 0}


def bent_circles(n=100, noise=0.03, seed=0):
    """Circles in two planes of R^4, orthogonal before a map that is not linear bends them."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, 2 * n)
    circle, nothing = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.zeros((n, 2))
    X = np.vstack([np.hstack([circle[:n], nothing]), np.hstack([nothing, circle[n:]])])
    mixing = np.random.default_rng(7).normal(size=(4, 4))
    X = X + 0.5 * np.tanh(2 * X @ mixing) + noise * random.normal(size=X.shape)
    return X, np.repeat(["first", "second"], n)


X, y = bent_circles()


def fitted(rows=X, classes=y, **options):
    return MCR2(**{**OPTIONS, **options}).fit(rows, classes)


@pytest.fixture(scope="module")
def long():
    return fitted(hidden=64, recipe=Recipe(n_epochs=150, learning_rate=1e-2))


def written_out(Z, classes, epsilon):
    """R_c - R from eigenvalues, class by class."""

    def rate(part):
        values = np.linalg.eigvalsh(part.T @ part)
        return np.log1p(Z.shape[1] / (len(part) * epsilon**2) * values).sum()

    parts = [Z[classes == name] for name in np.unique(classes)]
    return sum(len(part) / len(Z) * rate(part) for part in parts) - rate(Z)


# ---- training -------------------------------------------------------------------------------------------------------


def test_the_loss_is_that_of_the_paper_and_is_lowered(long):
    """Losses of whole batches: that of the features of an epoch is the first of the next."""
    two = Recipe(n_epochs=2, batch_size=200, keep="last", final_learning_rate=1e-3)
    one = Recipe(n_epochs=1, batch_size=200, keep="last", final_learning_rate=1e-3)
    for epsilon in (0.5**0.5, 0.2):
        loss = written_out(fitted(recipe=one, epsilon=epsilon).transform(X), y, epsilon)
        assert fitted(recipe=two, epsilon=epsilon).history_[1]["loss"] == pytest.approx(loss, rel=1e-8)
    losses = [record["loss"] for record in long.history_]
    assert written_out(long.transform(X), y, 0.5**0.5) < losses[0] - 0.5
    assert [record["epoch"] for record in long.history_] == list(range(150))


def cosines(A, B):
    return np.linalg.svd(A.T @ B, compute_uv=False)


def test_classes_become_orthogonal_planes(long):
    raw = [subspace(X[y == name]) for name in long.classes_]
    assert cosines(*raw).max() > 0.5
    assert [U.shape for U in long.bases_] == [(4, 2), (4, 2)]
    assert cosines(*long.bases_).max() < 0.1
    Z = long.transform(X)
    assert Z.shape == (200, 4)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-6)
    assert np.abs(Z[y == "first"] @ Z[y == "second"].T).mean() < 0.1
    # Within a class features spread out evenly, where cross-entropy may send them to one point.
    values = np.linalg.eigvalsh(Z[y == "first"].T @ Z[y == "first"]) / 100
    np.testing.assert_allclose(values, [0, 0, 0.5, 0.5], atol=0.1)


def test_new_samples_are_of_the_class_of_the_nearest_subspace(long):
    new, truth = bent_circles(seed=1)
    assert long.score(new, truth) >= 0.98
    Z = long.transform(new)
    for z, predicted in zip(Z, long.predict(new), strict=True):
        residuals = [np.linalg.norm(z - U @ np.linalg.lstsq(U, z, rcond=None)[0]) for U in long.bases_]
        assert predicted == long.classes_[int(np.argmin(residuals))]


def test_a_subspace_holds_most_of_the_squares_and_goes_through_the_origin():
    Z = numbers(40, 5) * np.array([3.0, 2.0, 1.0, 0.1, 0.0])
    held = [np.linalg.norm(Z @ subspace(Z)) ** 2, np.linalg.norm(Z @ subspace(Z)[:, :-1]) ** 2]
    assert held[0] > 0.95 * np.linalg.norm(Z) ** 2 >= held[1]
    np.testing.assert_allclose(subspace(Z).T @ subspace(Z), np.eye(3), atol=1e-12)
    constant = np.tile([3.0, 4.0], (6, 1))
    np.testing.assert_allclose(abs(subspace(constant)), [[0.6], [0.8]])
    assert subspace(np.zeros((4, 3))).shape == (3, 0)


def test_bases_are_of_the_features_that_are_kept(long):
    Z = long.transform(X)
    for name, U in zip(long.classes_, long.bases_, strict=True):
        np.testing.assert_allclose(U @ U.T, subspace(Z[y == name]) @ subspace(Z[y == name]).T, atol=1e-8)
    assert list(long.get_feature_names_out()) == [f"mcr2{i}" for i in range(4)]


@pytest.mark.parametrize(("names", "d"), [(["a", "b", "c", "d", "e"], 10), ([2.0, 7.0], 4), ([True, False], 4)])
def test_classes_are_any_labels_and_have_two_directions_each(names, d):
    classes = np.array(names)[np.arange(200) % len(names)]
    model = fitted(classes=classes)
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    assert model.transform(X).shape == (200, d)
    assert set(model.predict(X)) <= set(names)
    assert fitted(classes=classes, n_components=3).transform(X).shape == (200, 3)


def test_many_columns_are_brought_to_32():
    assert fitted(numbers(200, 40)).transform(numbers(5, 40)).shape == (5, 32)


def test_samples_are_as_they_are_or_views_of_them():
    plain = fitted()
    seen = []

    def copied(batch, generator):
        seen.append(len(batch))
        return batch.clone()

    np.testing.assert_array_equal(fitted(augment=copied).transform(X), plain.transform(X))
    assert seen == [50] * 12  # one view of each sample
    assert not np.allclose(fitted(augment=GaussianNoise(0.5)).transform(X), plain.transform(X))


def test_the_number_of_steps_does_not_depend_on_that_of_rows(monkeypatch):
    monkeypatch.setattr(module, "STEPS", 7)
    assert len(fitted(recipe=None).history_) == 7
    many = np.tile(X, (6, 1))  # 1200 rows, three batches
    assert len(fitted(many, np.tile(y, 6), recipe=None).history_) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_rows(dtype):
    model = fitted(X.astype(dtype))
    assert model.transform(X.astype(dtype)).dtype == dtype
    assert model.bases_[0].dtype == model.weights_["feature_head.0.weight"].dtype == dtype


def test_a_fit_is_decided_by_its_random_state():
    one, again, other = fitted(), fitted(), fitted(random_state=1)
    np.testing.assert_array_equal(one.transform(X), again.transform(X))
    assert one.history_ == again.history_
    assert not np.allclose(one.transform(X), other.transform(X))
    np.testing.assert_array_equal(fitted(random_state=np.random.RandomState(0)).transform(X), one.transform(X))


def test_images_and_flat_rows_are_one():
    digits, classes = load_digits().images[:60] / 16.0, load_digits().target[:60]
    images, flat = fitted(digits, classes), fitted(digits.reshape(60, 64), classes, image_shape=(8, 8))
    assert images.sample_shape_ == (8, 8)
    np.testing.assert_array_equal(images.transform(digits), flat.transform(digits.reshape(60, 64)))
    np.testing.assert_array_equal(images.predict(digits.reshape(60, 64)), flat.predict(digits))


def test_classes_of_one_sample_and_rows_that_are_equal_do_no_harm():
    alone = fitted(classes=np.r_[["alone"], y[1:]])
    assert alone.bases_[0].shape[1] == 1
    assert alone.predict(X[:1]) == ["alone"]
    same = fitted(np.ones_like(X))
    assert np.isfinite(same.transform(X)).all()


# ---- backbones ------------------------------------------------------------------------------------------------------


class Rough(nn.Module):
    """A backbone with weights, running statistics and dropout, which gives NaN in training after so many calls."""

    def __init__(self, n_calls=1000):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
        self.n_calls, self.calls = n_calls, 0

    def forward(self, x):
        self.calls += self.training
        return self.layers(x) * (float("nan") if self.training and self.calls > self.n_calls else 1.0)


def test_a_users_backbone_is_trained_but_not_changed():
    backbone = Rough()
    before = copy.deepcopy(backbone.state_dict())
    model = fitted(backbone=backbone)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    for name in ("layers.0.weight", "layers.1.running_mean"):
        assert not np.array_equal(model.weights_[f"backbone.1.{name}"], before[name].numpy())
    np.testing.assert_array_equal(model.transform(X), model.transform(X))  # no dropout in use
    assert model.transform(X).shape == (200, 8)


def test_a_backbone_that_breaks_down_leaves_the_last_good_state_or_an_error():
    with pytest.warns(ConvergenceWarning, match="after 6 steps.*the loss is nan"):
        model = fitted(backbone=Rough(6))
    assert np.isfinite(model.transform(X)).all()
    with pytest.raises(NumericalError, match="after 0 steps.*the loss is nan"):
        fitted(backbone=Rough(0))


def test_rows_are_evaluated_block_by_block(monkeypatch):
    model = fitted()
    whole = model.transform(X)
    monkeypatch.setattr(evaluation, "ROWS_A_BLOCK", 7)
    np.testing.assert_allclose(model.transform(X), whole, rtol=1e-10, atol=1e-12)
    broken = {**model.weights_, "feature_head.2.bias": np.full(4, np.nan)}
    model.weights_ = broken
    with pytest.raises(NumericalError, match="backbone and heads give NaN or infinite numbers for 200 of the 200 rows"):
        model.predict(X)


# ---- resume, progress, files ----------------------------------------------------------------------------------------


def test_a_fit_that_was_killed_ends_as_one_that_was_not(tmp_path, monkeypatch):
    whole, loss, calls = fitted(backbone=Rough()), module.mcr2, {"n": 0}

    def killed(*args, **options):
        calls["n"] += 1
        if calls["n"] == 8:
            raise KeyboardInterrupt
        return loss(*args, **options)

    path = tmp_path / "fit.checkpoint"
    monkeypatch.setattr("mercer.training.checkpoint.Checkpoint.is_due", lambda self: True)
    monkeypatch.setattr(module, "mcr2", killed)
    with pytest.raises(KeyboardInterrupt):
        fitted(backbone=Rough(), checkpoint=path)
    resumed = fitted(backbone=Rough(), checkpoint=path)
    assert calls["n"] == 8 + 12 - 6  # the last step that was saved is made again
    for name, weight in resumed.weights_.items():
        np.testing.assert_array_equal(weight, whole.weights_[name])
    assert resumed.history_ == whole.history_
    for one, other in zip(resumed.bases_, whole.bases_, strict=True):
        np.testing.assert_array_equal(one, other)


def noisy(batch, generator):
    return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    torch.manual_seed(0)
    backbone, other = nn.Linear(4, 4), nn.Linear(4, 4)
    options = {"checkpoint": tmp_path / "fit", "backbone": backbone}
    model = fitted(**options)
    assert fitted(**options).history_ == model.history_
    for change in (
        {"rows": X[::-1]},
        {"classes": y[::-1]},
        {"epsilon": 1.0},
        {"augment": noisy},
        {"standardize": False},
        {"backbone": other},
        {"hidden": 17},
        {"random_state": 1},
        {"recipe": Recipe(n_epochs=4)},
    ):
        with pytest.raises(ModelFileError, match="is of another training"):
            fitted(**{**options, **change})


def test_progress_is_shown_by_scikit_learns_callbacks(capsys):
    model = MCR2(**OPTIONS).set_callbacks(ProgressBar())
    np.testing.assert_array_equal(model.fit(X, y).transform(X), fitted().transform(X))
    shown = capsys.readouterr()
    assert "fit" in (shown.out + shown.err).lower()


@pytest.mark.parametrize("backbone", [None, "mlp", "resnet18"])
def test_models_are_saved_with_their_weights(backbone, tmp_path):
    images = np.tile(X[::20, :, None], (1, 1, 4)).astype(np.float32)
    model = fitted(images, y[::20], backbone=backbone, recipe=Recipe(n_epochs=1, batch_size=8))
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    for method in ("transform", "predict"):
        np.testing.assert_array_equal(getattr(again, method)(images), getattr(model, method)(images))
    assert again.history_ == model.history_


def test_a_users_backbone_is_handed_back_at_load(tmp_path):
    model = fitted(backbone=Rough())
    mercer.save(model, tmp_path / "model")
    with pytest.raises(InvalidParameterError, match=r"the file asks for exactly 'backbone' \(Rough\)"):
        mercer.load(tmp_path / "model")
    again = mercer.load(tmp_path / "model", {"backbone": Rough()})
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---- bad input ------------------------------------------------------------------------------------------------------

BAD = {
    "n_components": [0, 1.5, True],
    "backbone": ["resnet50", 3],
    "hidden": [0, "wide"],
    "epsilon": [0.0, -1.0, np.nan, "small"],
    "augment": ["no_such_view", 3],
    "image_shape": [(3, 3), "square"],
    "standardize": [1, "yes"],
    "recipe": [100, "adam"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values], ids=lambda value: str(value)
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(InvalidParameterError, match=name):
        fitted(**{name: value})


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (np.repeat("only", 200), r"y has 1 class \(.*'only'.*\): MCR2 needs at least 2 classes"),
        (y[1:], "inconsistent numbers of samples"),
        (None, "requires y to be passed, but the target y is None"),
        (np.linspace(0, 1, 200), "Unknown label type"),
        (np.where(y == "first", np.nan, 1.0), "y contains NaN"),
        (np.zeros((200, 2)), "y should be a 1d array"),
    ],
    ids=["one class", "too few", "none", "numbers", "nan", "two columns"],
)
def test_bad_classes_are_named(classes, message):
    with pytest.raises(ValueError, match=message):
        fitted(classes=classes)
