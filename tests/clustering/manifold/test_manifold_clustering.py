"""ManifoldClustering: memberships and heads by plain twins, which weights a step moves, stages, resume, bad input."""

import copy
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits
from torch import nn

import mercer
from mercer import ManifoldClustering
from mercer.clustering.manifold import training as manifold_training
from mercer.clustering.manifold.closed_start import begin_in_closed_form, scale_outputs
from mercer.clustering.manifold.history import Looks
from mercer.clustering.manifold.manifold_clustering import TIE, _are_same
from mercer.clustering.manifold.memberships import AFFINITIES, Memberships, membership_spectrum, spectral_clusters
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.projections import PROJECTIONS, Entropy, onto_simplex
from mercer.clustering.manifold.training import linearize, start_features
from mercer.exceptions import ConvergenceWarning, InvalidParameterError, ModelFileError, NumericalError
from mercer.losses import coding_rate, mlc, pairwise_coding_rate, view_coding_rate
from mercer.metrics import clustering_accuracy, numerical_rank
from mercer.networks.backbones import check_backbone
from mercer.networks.heads import Entrance, standardization
from mercer.training import Recipe, Training
from mercer.views import GaussianNoise
from mercer.views.sources import Augmented, DrawnViews, GivenViews
from tests.examples_of import numbers

NOISE = GaussianNoise(0.1)
FEW = Recipe(n_epochs=3, batch_size=32, learning_rate=1e-2)
OPTIONS = {
    "hidden": 16,
    "eta": 0.175,
    "augment": NOISE,
    "start_recipe": FEW,
    "recipe": FEW,
    "random_state": 0,
    "n_components": 3,
}


def unit_rows(n, d, seed=0):
    C = torch.from_numpy(numbers(n, d, seed=seed))
    return C / C.norm(dim=1, keepdim=True)


def circle_and_pole(n=60, noise=0.05, seed=0):
    """A great circle and one of its poles: manifolds of dimensions 1 and 0."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, n)
    circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    X = np.vstack([circle, np.tile([0, 0, 1], (n, 1))]) + noise * random.normal(size=(2 * n, 3))
    return X, np.repeat([0, 1], n)


X, y = circle_and_pole()


@pytest.fixture(autouse=True)
def few_memberships(monkeypatch):
    """Three memberships in place of six, and few runs of k-means: which are taken is in test_shortest_code."""
    monkeypatch.setattr("mercer.clustering.manifold.choice.MOST_BEGINNINGS", 3)
    monkeypatch.setattr(Entropy, "sharpest", (0.04, 0.08, 0.175))


def fitted(rows=X, n_clusters=2, **options):
    return ManifoldClustering(n_clusters, **{**OPTIONS, **options}).fit(rows)


def agree(labels, others):
    return clustering_accuracy(labels, others)


# ---- memberships ----------------------------------------------------------------------------------------------------


ETAS = Entropy.trained


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_similarities_entry_by_entry(affinity):
    C, other = unit_rows(5, 3), unit_rows(4, 3, seed=1)
    power = {"squared": 2, "inner": 1}[affinity]
    expected = [[float(c @ o) ** power for o in other] for c in C]
    found = Memberships(0.1, affinity).similarities(C, other)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def scaled(K, n_steps=2000):
    """diag(u) K diag(u) with unit row sums, by many damped steps."""
    u = torch.ones(len(K), dtype=K.dtype)
    for _ in range(n_steps):
        u = (u / (K @ u)).sqrt()
    return u[:, None] * K * u


@pytest.mark.parametrize("affinity", AFFINITIES)
@pytest.mark.parametrize("eta", [0.08, 0.4])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_memberships_are_doubly_stochastic_and_those_of_points_of_the_fit_are_rows(affinity, eta, projection):
    C, memberships = unit_rows(12, 3), Memberships(eta, affinity, projection)
    P, one = memberships.of(C), torch.ones(12, dtype=torch.float64)
    torch.testing.assert_close(P.sum(dim=0), one, rtol=0, atol=1e-5)
    torch.testing.assert_close(P.sum(dim=1), one, rtol=0, atol=1e-5)
    S, f = memberships.similarities(C, C), memberships.potentials(C, P)
    if projection == "entropy":
        torch.testing.assert_close(P, scaled((S / eta).exp()), rtol=0, atol=1e-5)
        torch.testing.assert_close((S / eta + f + f[:, None]).exp(), P, rtol=1e-6, atol=1e-12)
    else:
        torch.testing.assert_close(((S + f + f[:, None]) / eta).clamp(min=0.0), P, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(memberships.rows(C[3:7], C, f), P[3:7], rtol=0, atol=1e-5)
    torch.testing.assert_close(memberships.rows(unit_rows(2, 3, seed=5), C, f).sum(dim=1), one[:2])


def test_potentials_of_squares_where_the_diagonal_is_zero():
    """A point that four others are near to, which are far from each other, belongs to these and not to itself."""
    S = torch.full((5, 5), -5.0, dtype=torch.float64)
    S[0], S[:, 0] = 1.0, 1.0
    S.fill_diagonal_(1.0)
    onto = PROJECTIONS["squares"]
    P = onto.matrix(S, 0.4)
    torch.testing.assert_close(P.diagonal(), torch.tensor([0.0, 0.75, 0.75, 0.75, 0.75], dtype=torch.float64))
    expected = torch.tensor([-0.55, -0.35, -0.35, -0.35, -0.35], dtype=torch.float64)  # by hand
    torch.testing.assert_close(onto.potentials(S, P, 0.4), expected, rtol=1e-5, atol=1e-5)


def test_the_nearest_point_of_a_simplex():
    V = torch.tensor([[0.2, 0.3, 0.5], [3.0, 0.0, 0.0], [0.6, 0.6, -5.0]])
    expected = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    torch.testing.assert_close(onto_simplex(V), torch.tensor(expected))


def test_opposite_codes_are_alike_for_squares_only():
    C = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    squared, inner = (Memberships(0.1, affinity).of(C) for affinity in AFFINITIES)
    assert squared[0, 1] > 0.4
    assert inner[0, 1] < 1e-3


def test_spectral_clusters_are_those_of_the_laplacian_of_the_membership():
    C = torch.cat([unit_rows(15, 2) @ torch.eye(2, 4).double(), unit_rows(15, 2, seed=1) @ torch.eye(4)[2:].double()])
    found = spectral_clusters(C, 2, Memberships(0.08), 0)
    assert agree(found.labels, np.repeat([0, 1], 15)) == 1.0
    torch.testing.assert_close(found.P, Memberships(0.08).of(C))
    assert len(found.eigenvalues) == 3
    L = torch.eye(30).double() - found.P
    np.testing.assert_allclose(found.eigenvalues, torch.linalg.eigvalsh(L)[:3].clamp(min=0).numpy(), atol=1e-6)


@pytest.mark.parametrize(("projection", "eta"), [("entropy", 0.08), ("squares", 4.0)])
def test_eigenvectors_of_many_points_are_those_of_the_whole_decomposition(projection, eta):
    """Past 500 points by Lanczos steps: in single precision, or of a sparse graph that may be in parts."""
    C = unit_rows(520, 5).float()
    P = Memberships(eta, "squared", projection).of(C)
    spectrum = membership_spectrum(P, 4, 0)
    values = torch.linalg.eigvalsh(torch.eye(520).double() - P.double())[:4].clamp(min=0)
    np.testing.assert_allclose(spectrum.eigenvalues, values.numpy(), atol=1e-4)
    V = torch.from_numpy(spectrum.vectors)
    torch.testing.assert_close(P.double() @ V, V * (1 - torch.from_numpy(spectrum.eigenvalues)), rtol=0, atol=2e-3)


# ---- network --------------------------------------------------------------------------------------------------------


def network_of(rows=X, backbone=None, n_components=3, hidden=8, seed=0, shape=None):
    shape = (rows.shape[1],) if shape is None else shape
    module, width = check_backbone(backbone, shape, seed=seed)
    entrance = Entrance(*standardization(rows, shape))
    return ManifoldNetwork(module, width, n_components, hidden, entrance, seed).to(torch.from_numpy(entrance.center))


def head_of(head, x):
    """An affine map, a ReLU, an affine map, and length 1."""
    out = (x @ head[0].weight.T + head[0].bias).clamp(min=0) @ head[2].weight.T + head[2].bias
    return out / out.norm(dim=1, keepdim=True)


def test_features_and_codes_are_two_heads_on_the_sphere():
    network, x = network_of(), torch.from_numpy(X)
    assert network.features(x).shape == (120, 3)
    torch.testing.assert_close(network.features(x).norm(dim=1), torch.ones(120, dtype=torch.float64))
    assert torch.equal(network.features(x), network.codes(x))  # codes begin as a copy
    with torch.no_grad():
        network.feature_head[0].weight += 1.0
    seen = (x - x.mean(dim=0)) / x.std(dim=0, correction=0)
    torch.testing.assert_close(network.features(x), head_of(network.feature_head, seen))
    torch.testing.assert_close(network.codes(x), head_of(network.cluster_head, seen))
    assert not torch.allclose(network.features(x), network.codes(x))
    network.copy_head()
    assert torch.equal(network.features(x), network.codes(x))
    with torch.no_grad():
        network.feature_head[0].weight += 1.0  # a copy, and not the same weights
    assert not torch.allclose(network.features(x), network.codes(x))


def test_heads_are_drawn_by_the_seed_alone():
    torch.manual_seed(0)
    one = network_of(seed=3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    again, other = network_of(seed=3), network_of(seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.feature_head[0].weight, again.feature_head[0].weight)
    assert not torch.allclose(one.feature_head[0].weight, other.feature_head[0].weight)


def test_a_network_has_its_own_center_and_scale():
    center, scale = np.zeros(3), np.ones(3)
    network = ManifoldNetwork(nn.Flatten(), 3, 2, 4, Entrance(center, scale), 0)
    network.center += 1.0
    network.scale += 1.0
    assert not center.any()
    assert (scale == 1.0).all()


def test_tables_are_standardized_by_column_and_images_by_channel():
    rows = numbers(40, 12) * np.arange(1.0, 13.0) + 5.0
    for shape, axes in {(12,): (0,), (3, 4): (0, 1, 2), (3, 4, 1): (0, 1, 2), (2, 2, 3): (0, 1, 2)}.items():
        images = rows.reshape(40, *shape)
        center, scale = standardization(rows, shape)
        np.testing.assert_allclose(center, np.broadcast_to(images.mean(axes), shape).ravel())
        np.testing.assert_allclose(scale, np.broadcast_to(images.std(axes), shape).ravel())


def test_without_columns_of_their_own_all_are_scaled_alike():
    rows = numbers(40, 6) * np.arange(1.0, 7.0)
    rows[:, 2] = 3.0
    center, scale = standardization(rows, (6,), by_column=False)
    np.testing.assert_allclose(center, rows.mean(axis=0))
    np.testing.assert_allclose(scale, np.full(6, np.sqrt(rows.var(axis=0).mean())))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_are_not_blown_up(dtype):
    rows = numbers(50, 4).astype(dtype)
    rows[:, 1] = 0.0
    rows[:, 2] = 0.1  # whose mean is not quite 0.1
    for by_column in (True, False):
        center, scale = standardization(rows, (4,), by_column)
        assert center.dtype == scale.dtype == dtype
        assert np.abs((rows - center) / scale)[:, 1:3].max() < 1e-5
    assert (standardization(rows, (4,))[1][1:3] == 1.0).all()
    assert (standardization(np.ones((5, 2), dtype), (2,), False)[1] == 1.0).all()


# ---- training -------------------------------------------------------------------------------------------------------

WHOLE = Recipe(n_epochs=4, batch_size=200, optimizer="sgd", learning_rate=0.1, weight_decay=0.1, keep="last")
SECOND = {
    "epsilon": 0.3,
    "gamma": 0.05,
    "regularizer": "squared",
    "memberships": Memberships(0.175),
    "freeze": True,
    "seed": 0,
}


def drawn(rows=X, n_views=2, augment=NOISE):
    return DrawnViews(rows, Augmented(augment, (rows.shape[1],)), n_views, 0)


def state(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def moved(before, after):
    """The parts of a network, by the beginnings of their names, that are not the same any more."""
    return {name.split(".")[0] for name, value in before.items() if not torch.equal(value, after[name])}


def states_of(network, training, source=None):
    """The states before and after each epoch of a training, of one step each."""
    states = [state(network)]

    def progress(epoch, n_epochs, record):
        if record is not None:
            states.append(state(network))

    training(network, drawn() if source is None else source, progress=progress)
    return states


class Rough(nn.Module):
    """A backbone with weights, running statistics and dropout."""

    def __init__(self, d=3):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(d, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))

    def forward(self, x):
        return self.layers(x)


START = partial(start_features, recipe=WHOLE, epsilon=0.4, agreement=5.0, seed=0)


def test_the_start_leaves_the_cluster_head_alone():
    network = network_of(backbone=Rough())
    before = state(network)
    START(network, drawn())
    assert moved(before, state(network)) == {"backbone", "feature_head"}
    assert all(weight.requires_grad for weight in network.parameters())
    assert not any(module.training for module in network.modules())


def test_both_stages_lower_their_loss():
    network, recipe = network_of(), Recipe(n_epochs=20, batch_size=200, learning_rate=1e-2)
    for training in (START(network, drawn(), recipe=recipe), linearize(network, drawn(), recipe, **SECOND)):
        assert training.history[-1]["loss"] < training.history[0]["loss"] - 0.1


def test_the_first_losses_are_those_of_the_objectives():
    network = network_of()
    views = [torch.from_numpy(X), torch.from_numpy(X + 0.1 * numbers(*X.shape))]
    source = GivenViews([view.numpy() for view in views])
    with torch.no_grad():
        Z = [network.features(view) for view in views]
        P = sum(Memberships(0.175).of(C) for C in Z) / 2
        start = float(view_coding_rate(*Z, epsilon=0.4, agreement=5.0))
        second = float(mlc((Z[0] + Z[1]) / 2, P, epsilon=0.3, gamma=0.05, regularizer="squared"))
    assert START(copy.deepcopy(network), source).history[0]["loss"] == pytest.approx(start, rel=1e-6)
    training = linearize(network, source, WHOLE, **SECOND)
    assert training.history[0]["loss"] == pytest.approx(second, rel=1e-6)


@pytest.mark.parametrize("freeze", [True, False])
def test_a_batch_updates_both_heads_and_a_frozen_backbone_stays(freeze):
    network = network_of(backbone=Rough())
    states = states_of(network, partial(linearize, recipe=WHOLE, **{**SECOND, "freeze": freeze}))
    backbone = set() if freeze else {"backbone"}
    assert len(states) == 5
    for before, after in pairwise(states):
        assert moved(before, after) == backbone | {"feature_head", "cluster_head"}
    assert all(weight.requires_grad for weight in network.parameters())


@pytest.mark.parametrize(
    ("training", "moves"),
    [
        (START, True),
        (partial(linearize, recipe=WHOLE, **{**SECOND, "freeze": False}), True),
        (partial(linearize, recipe=WHOLE, **SECOND), False),
    ],
    ids=["start", "second", "second, frozen"],
)
def test_what_the_user_froze_stays_frozen(training, moves):
    network = network_of(backbone=Rough())
    network.backbone[1].layers[0].weight.requires_grad_(False)
    before = state(network)
    training(network, drawn())
    assert torch.equal(network.backbone[1].layers[0].weight, before["backbone.1.layers.0.weight"])
    assert torch.equal(network.backbone[1].layers[0].bias, before["backbone.1.layers.0.bias"]) != moves
    held = [name for name, weight in network.named_parameters() if not weight.requires_grad]
    assert held == ["backbone.1.layers.0.weight"]


def test_views_of_many_rows_in_float32_have_the_scale_of_the_columns():
    rows = (2000.0 + numbers(1_000_000, 1)).astype(np.float32)
    views = Augmented.fitted("noise", (1,), rows)
    np.testing.assert_allclose(views.scale, rows.astype(np.float64).std(), rtol=1e-3)
    np.testing.assert_allclose(views.center, 2000.0, rtol=1e-5)


def test_views_are_averaged():
    """Three views of a batch are not two of them."""
    losses = [
        linearize(network_of(), drawn(n_views=p), Recipe(n_epochs=1, batch_size=200), **SECOND).history[0]["loss"]
        for p in (2, 3)
    ]
    assert losses[0] != pytest.approx(losses[1], rel=1e-6)


class BreaksDown(nn.Module):
    """Returns NaN in training mode after so many calls, in evaluation mode too if it is broken for good."""

    def __init__(self, n_calls, for_good=False):
        super().__init__()
        self.n_calls, self.for_good, self.calls = n_calls, for_good, 0
        self.layer = nn.Linear(3, 8)

    def forward(self, x):
        self.calls += self.training
        broken = self.calls > self.n_calls and (self.training or self.for_good)
        return self.layer(x) * (float("nan") if broken else 1.0)


def test_a_backbone_that_breaks_down_ends_the_stage_with_its_last_good_state():
    network = network_of(backbone=BreaksDown(4))
    with pytest.warns(ConvergenceWarning, match="after 2 steps.*the loss is nan"):
        training = START(network, drawn())
    assert training.stopped == "nan"
    assert training.n_steps == 2
    assert all(value.isfinite().all() for value in network.state_dict().values())
    torch.manual_seed(0)
    with pytest.warns(ConvergenceWarning, match="the loss is nan"):
        model = fitted(backbone=BreaksDown(44), freeze=False)  # 24 calls in the start, then 4 a step
    assert np.isfinite(model.transform(X)).all()
    assert model.history_[-1]["stage"] == "final"


def test_a_backbone_that_gives_nan_at_once_is_an_error():
    with pytest.raises(NumericalError, match="after 0 steps.*the loss is nan"):
        fitted(backbone=BreaksDown(0))
    with (
        pytest.warns(ConvergenceWarning, match="the loss is nan"),
        pytest.raises(NumericalError, match="backbone and heads give NaN or infinite numbers for 120 of the 120 rows"),
    ):
        fitted(backbone=BreaksDown(4, for_good=True))


# ---- the start in closed form ---------------------------------------------------------------------------------------


def moments(network, views):
    """Covariances of the last layer's outputs: of the samples' means, and of views around them."""
    with torch.no_grad():
        out = torch.stack([network.feature_head(network.represent(view)) for view in views])
    means = out.mean(dim=0)
    spread = torch.cov(means.T, correction=0)
    noise = torch.cov((out - means).flatten(0, 1).T, correction=0)
    return spread, noise


def test_the_closed_form_tells_samples_from_views_better_than_what_is_near_it():
    rows = numbers(300, 5)
    views = [torch.from_numpy(rows + 0.3 * numbers(300, 5, seed=seed) * np.arange(1.0, 6.0)) for seed in (1, 2)]
    network = network_of(rows, n_components=2, hidden=12)
    begin_in_closed_form(network, GivenViews([view.numpy() for view in views]), 0)
    spread, noise = moments(network, views)
    assert float(spread[0, 1].abs()) < 1e-3 * float(spread.diagonal().min())  # of one variance, and uncorrelated
    torch.testing.assert_close(spread[0, 0], spread[1, 1], rtol=1e-2, atol=0.0)
    best = float(torch.trace(torch.linalg.solve(noise, spread)))
    for seed in range(5):
        other = copy.deepcopy(network)
        with torch.no_grad():
            weight = other.feature_head[2].weight
            weight += 0.1 * weight.std() * torch.from_numpy(numbers(2, 12, seed=seed)).to(weight)
        spread, noise = moments(other, views)
        assert float(torch.trace(torch.linalg.solve(noise, spread))) < best * 1.001


def test_outputs_get_a_length_and_features_stay():
    network = network_of()
    with torch.no_grad():
        network.feature_head[2].weight *= 30.0
    x = torch.from_numpy(X)
    before = network.features(x)
    scale_outputs(network, GivenViews([X, X]), 0)
    with torch.no_grad():
        assert float(network.feature_head(network.represent(x)).norm(dim=1).mean()) == pytest.approx(3**0.5, rel=1e-5)
    torch.testing.assert_close(network.features(x), before)


def test_the_closed_form_of_equal_views_and_of_few_directions():
    network = network_of(n_components=20, hidden=8)
    begin_in_closed_form(network, GivenViews([X, X]), 0)
    assert all(value.isfinite().all() for value in network.state_dict().values())
    same = np.ones((10, 3))
    network = network_of()
    before = state(network)
    begin_in_closed_form(network, GivenViews([same, same]), 0)
    assert not moved(before, state(network))


# ---- history --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_epochs", "most"), [(1, 1), (5, 5), (20, 20), (39, 21), (400, 21)])
def test_epochs_are_looked_at_now_and_then_and_the_last_always(n_epochs, most):
    network = network_of().train()
    looks = Looks(network, torch.from_numpy(X), 0.3)
    told = []
    progress = looks.also(lambda *args: told.append(args) or True)
    for epoch in range(n_epochs):
        assert progress(epoch, n_epochs, None)
        assert progress(epoch, n_epochs, {"epoch": epoch})
    assert len(told) == 2 * n_epochs
    assert {0, n_epochs - 1} <= set(looks.found)
    assert min(most, 10) <= len(looks.found) <= most
    assert network.training


def test_rates_and_ranks_are_those_of_rows_over_the_whole_range():
    rows, labels = circle_and_pole(n=400)
    network = network_of(rows)
    looks = Looks(network, torch.from_numpy(rows), 0.3, Memberships(0.2))
    looks.also(lambda *args: None)(0, 1, {})
    training = Training([{"epoch": 0, "loss": 1.0}, {"epoch": 1, "loss": 0.5}], "finished", 1, 2)
    first, second = looks.records("final", training, labels)
    assert second == {"stage": "final", "epoch": 1, "loss": 0.5}  # no look there
    places = np.unique(np.linspace(0, 799, 512).round().astype(int))
    assert len(places) == 512
    with torch.no_grad():
        Z = network.features(torch.from_numpy(rows[places]))
        P = Memberships(0.2).of(Z)
    assert first["rate"] == pytest.approx(float(coding_rate(Z, epsilon=0.3)), rel=1e-6)
    assert first["cluster_rate"] == pytest.approx(float(pairwise_coding_rate(Z, P, epsilon=0.3)), rel=1e-6)
    assert first["rank"] == numerical_rank(Z.numpy(), energy=0.95)
    assert first["ranks"] == [numerical_rank(Z.numpy()[labels[places] == cluster], energy=0.95) for cluster in (0, 1)]
    # A cluster that no row is of has no directions.
    assert looks.records("final", training, np.where(labels == 1, 2, 0))[0]["ranks"][1] == 0


def test_the_history_of_a_fit():
    model = fitted(recipe=Recipe(n_epochs=2, batch_size=60))
    assert [(record["stage"], record["epoch"]) for record in model.history_] == [
        ("start", 0),
        ("start", 1),
        ("start", 2),
        ("final", 0),
        ("final", 1),
    ]
    usual = {"stage", "epoch", "loss", "criterion", "learning_rate", "rate", "rank", "ranks"}
    for record in model.history_:
        assert set(record) == usual | ({"cluster_rate"} if record["stage"] == "final" else set())
        assert len(record["ranks"]) == 2
        assert 1 <= record["rank"] <= 3
    final = model.history_[-1]
    assert 0 <= final["cluster_rate"] <= final["rate"] + 1e-6


# ---- the estimator --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long():
    recipe = Recipe(n_epochs=60, learning_rate=1e-2)
    return fitted(start_recipe=recipe, recipe=recipe, hidden=50, eta="auto")


def test_a_circle_and_its_pole_are_told_apart(long):
    assert agree(y, long.labels_) == 1.0
    new, truth = circle_and_pole(seed=1)
    assert agree(truth, long.predict(new)) == 1.0
    np.testing.assert_array_equal(long.predict(X), long.labels_)
    at_pole = long.labels_[-1]
    assert (long.predict(new)[truth == 1] == at_pole).all()
    assert [long.history_[-1]["ranks"][label] for label in (1 - at_pole, at_pole)] == [2, 1]


@pytest.mark.parametrize(("columns", "n_clusters"), [(1, 2), (2, 4)])
def test_narrow_tables_have_directions_for_all_clusters(columns, n_clusters):
    truth = np.repeat(np.arange(n_clusters), 30)
    places = np.array([[-4.0, 4.0], [4.0, 4.0], [-4.0, -4.0], [4.0, -4.0]])[:, :columns]
    rows = places[truth] + numbers(len(truth), columns)
    recipe = Recipe(n_epochs=80, learning_rate=1e-2)
    model = fitted(rows, n_clusters, hidden=50, start_recipe=recipe, recipe=recipe, augment="auto", n_components=None)
    assert model.transform(rows).shape[1] == 2 * n_clusters
    assert agree(truth, model.labels_) == 1.0


def test_what_was_compared(long):
    # The second η is tried where the first changes clusters, which it does not here.
    assert [(c["stage"], c["trained_eta"]) for c in long.candidates_] == [("start", None), ("final", 0.175)]
    assert sum(candidate["chosen"] for candidate in long.candidates_) == 1
    chosen = next(candidate for candidate in long.candidates_ if candidate["chosen"])
    assert chosen["stage"] == long.stage_
    assert chosen["eta"] == long.eta_ in Entropy.sharpest
    start, *finals = (candidate["rate_reduction"] for candidate in long.candidates_)
    assert chosen["rate_reduction"] == (start if start > max(finals) + TIE else max(finals))
    assert long.eigenvalues_[0] == pytest.approx(0.0, abs=1e-5)


def test_features_codes_and_memberships(long):
    Z = long.transform(X)
    assert Z.shape == (120, 3)
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-6)
    P = long.membership(X)
    np.testing.assert_allclose(P.sum(axis=0), 1.0, atol=1e-5)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-5)
    S = (long.codes_ @ long.codes_.T) ** 2 / long.eta_
    np.testing.assert_allclose(P, np.exp(S + long.code_scales_ + long.code_scales_[:, None]), rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(long.code_labels_, long.labels_)
    # Rows vote for the clusters of those that they belong to.
    votes = np.stack([P[:, long.labels_ == cluster].sum(axis=1) for cluster in (0, 1)], axis=1)
    np.testing.assert_allclose(long._votes(X), votes, atol=1e-5)
    assert list(long.get_feature_names_out()) == [f"manifoldclustering{i}" for i in range(3)]


def test_the_stage_that_is_asked_for_is_the_models():
    start, final, auto = (fitted(result=result) for result in ("start", "final", "auto"))
    assert (start.stage_, final.stage_) == ("start", "final")
    for model in (start, final):
        np.testing.assert_array_equal(model.start_labels_, start.start_labels_)
        np.testing.assert_array_equal(model.final_labels_, start.final_labels_)
        np.testing.assert_array_equal(model.labels_, getattr(model, f"{model.stage_}_labels_"))
        assert [c["chosen"] for c in model.candidates_] == [model.stage_ == "start", model.stage_ == "final"]
    assert not np.allclose(start.transform(X), final.transform(X))
    # After the start codes are features, after the second stage no longer.
    np.testing.assert_allclose(start.codes_, start.transform(X), rtol=1e-5, atol=1e-7)
    assert not np.allclose(final.codes_, final.transform(X), atol=1e-4)
    np.testing.assert_array_equal(auto.transform(X), {"start": start, "final": final}[auto.stage_].transform(X))


def _make_up(monkeypatch, reductions):
    """Let R - R_c of the stages, in turn, be some numbers."""
    find = ManifoldClustering._clustered

    def clustered(model, C, judge):
        return find(model, C, judge)._replace(reduction=next(reductions))

    monkeypatch.setattr(ManifoldClustering, "_clustered", clustered)


@pytest.mark.parametrize(("change", "stage"), [(2 * TIE, "start"), (0.5 * TIE, "final"), (-1.0, "final")])
def test_the_start_is_kept_if_its_clusters_reduce_the_rate_more(change, stage, monkeypatch):
    """Reductions are made up: that of the start is larger by some."""
    reductions = iter([5.0 + change, 5.0])
    _make_up(monkeypatch, reductions)
    model = fitted()
    assert model.stage_ == stage
    np.testing.assert_array_equal(model.labels_, getattr(model, f"{stage}_labels_"))


def test_clusters_of_all_stages_are_judged_in_the_features_of_the_start():
    model = fitted(result="start")
    Z = torch.from_numpy(model.transform(X)).double()
    for candidate, labels in zip(model.candidates_, (model.start_labels_, model.final_labels_), strict=True):
        each = [Z[torch.from_numpy(labels == cluster)] for cluster in (0, 1)]
        inside = sum(len(z) / len(Z) * float(coding_rate(z, epsilon=model.epsilon)) for z in each)
        whole = float(coding_rate(Z, epsilon=model.epsilon))
        assert candidate["rate_reduction"] == pytest.approx(whole - inside, rel=1e-5)


@pytest.fixture
def every_eta(monkeypatch):
    """All η of the second stage are tried, even where the first changes nothing."""
    monkeypatch.setattr("mercer.clustering.manifold.manifold_clustering._are_same", lambda labels, others: False)


def test_where_the_second_stage_changes_nothing_one_eta_is_enough(monkeypatch):
    for same, count in ((True, 1), (False, len(ETAS))):
        monkeypatch.setattr(
            "mercer.clustering.manifold.manifold_clustering._are_same", lambda labels, others, same=same: same
        )
        assert len(fitted(eta="auto").candidates_) == 1 + count
    assert _are_same(np.array([0, 1, 1]), np.array([1, 0, 0]))
    assert not _are_same(np.array([0, 1, 1]), np.array([1, 0, 1]))
    assert not _are_same(np.array([0, 1, 1]), np.array([0, 1, 2]))


def test_an_eta_that_is_given_is_that_of_the_clusters_too():
    assert {candidate["eta"] for candidate in fitted(eta=0.3).candidates_} == {0.3}


def test_the_best_of_several_second_stages_is_the_final_one(monkeypatch, every_eta):
    reductions = {None: 1.0, **dict(zip(ETAS, (3.0, 2.0), strict=True))}
    values = iter(reductions.values())
    _make_up(monkeypatch, values)
    model = fitted(eta="auto")
    assert [candidate["chosen"] for candidate in model.candidates_] == [False, True, False]


def test_every_eta_of_the_second_stage_begins_at_the_same_start(every_eta, monkeypatch):
    both = fitted(eta="auto", result="final")
    each = []
    for eta in ETAS:
        monkeypatch.setattr(Entropy, "trained", (eta,))
        each.append(fitted(eta="auto", result="final"))
    for candidate, model in zip(both.candidates_[1:], each, strict=True):
        assert candidate["rate_reduction"] == model.candidates_[1]["rate_reduction"]
    best = max(each, key=lambda model: model.candidates_[1]["rate_reduction"])
    np.testing.assert_array_equal(both.transform(X), best.transform(X))


def test_agreement_auto_is_the_largest_rate():
    auto, same = fitted(), fitted(agreement=3 * np.log(1 + 1 / 0.2))
    np.testing.assert_allclose(auto.transform(X), same.transform(X), rtol=1e-6, atol=1e-9)


def test_views_that_are_there_are_learned_from():
    views = [X + 0.1 * numbers(*X.shape, seed=seed) for seed in range(3)]
    model = ManifoldClustering(2, **{**OPTIONS, "n_views": 3}).fit_views(X, *views)
    again = ManifoldClustering(2, **{**OPTIONS, "n_views": 5}).fit_views(
        X, *views
    )  # there are three, and all are taken
    two = ManifoldClustering(2, **{**OPTIONS, "n_views": 2}).fit_views(X, *views)
    np.testing.assert_array_equal(model.transform(X), again.transform(X))
    assert not np.allclose(model.transform(X), two.transform(X))
    assert model.labels_.shape == (120,)
    # fit() with the same views: drawn by a function that gives them in turn.
    turn = {"n": 0}

    def given(batch, generator):
        turn["n"] += 1
        rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in batch.numpy()]
        return torch.from_numpy(views[(turn["n"] - 1) % 3][rows])

    drawn_model = ManifoldClustering(2, **{**OPTIONS, "n_views": 3, "augment": given}).fit(X)
    np.testing.assert_array_equal(drawn_model.transform(X), model.transform(X))
    np.testing.assert_array_equal(drawn_model.labels_, model.labels_)


def test_some_of_the_given_views_are_drawn_for_a_batch():
    arrays = [np.full((6, 2), float(i)) for i in range(4)]
    like, index = torch.zeros(0, dtype=torch.float64), np.array([4, 1, 2])
    generator = torch.Generator().manual_seed(0)
    for n_drawn in (None, 4, 7):
        batch = GivenViews(arrays, n_drawn).batch(index, generator, like)
        assert [float(view[0, 0]) for view in batch] == [0.0, 1.0, 2.0, 3.0]
    seen = set()
    for _ in range(40):
        kinds = [float(view[0, 0]) for view in GivenViews(arrays, 2).batch(index, generator, like)]
        assert len(set(kinds)) == 2
        seen |= set(kinds)
    assert seen == {0.0, 1.0, 2.0, 3.0}
    assert GivenViews(arrays, 2).of_rows(index).n_drawn == 2


def test_views_that_do_not_fit_the_samples_are_named():
    model = ManifoldClustering(2, **OPTIONS)
    with pytest.raises(ValueError, match=r"fit_views\(\) got views with \[120\] rows: two or more with 120"):
        model.fit_views(X, X)
    with pytest.raises(ValueError, match=r"\[120, 119\] rows"):
        model.fit_views(X, X, X[1:])
    with pytest.raises(ValueError, match="2 features"):
        model.fit_views(X, X, X[:, :2])


def test_rows_that_the_spectral_step_does_not_see_join_the_others(long):
    recipe = Recipe(n_epochs=60, learning_rate=1e-2)
    model = fitted(start_recipe=recipe, recipe=recipe, hidden=50, max_rows=40)
    assert model.codes_.shape == (40, 3)
    assert model.labels_.shape == model.start_labels_.shape == model.final_labels_.shape == (120,)
    assert agree(y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_the_rows(dtype):
    model = fitted(X.astype(dtype))
    assert model.transform(X.astype(dtype)).dtype == dtype
    assert model.membership(X.astype(dtype)).dtype == dtype
    # Weights are float32, and rows are standardized as they are.
    assert model.codes_.dtype == model.weights_["feature_head.0.weight"].dtype == np.float32
    assert model.weights_["center"].dtype == dtype
    assert np.isfinite(model.membership(X.astype(dtype))).all()
    assert model.labels_.dtype == np.int64


def test_a_fit_is_decided_by_its_random_state():
    one, again, other = fitted(), fitted(), fitted(random_state=1)
    np.testing.assert_array_equal(one.transform(X), again.transform(X))
    np.testing.assert_array_equal(one.labels_, again.labels_)
    assert one.history_ == again.history_
    assert not np.allclose(one.transform(X), other.transform(X))
    np.testing.assert_array_equal(fitted(random_state=np.random.RandomState(0)).transform(X), one.transform(X))


def test_a_batch_may_be_smaller_than_the_feature_dimension():
    small = Recipe(n_epochs=1, batch_size=4)
    model = fitted(n_components=20, start_recipe=small, recipe=small)
    assert model.transform(X).shape == (120, 20)
    assert all(np.isfinite(record["loss"]) for record in model.history_)


def test_images_and_flat_rows_are_one():
    digits = load_digits().images[:60] / 16.0
    short = {"start_recipe": Recipe(n_epochs=1), "recipe": Recipe(n_epochs=1), "augment": "auto", "n_components": None}
    images = fitted(digits, 3, **short)
    flat = fitted(digits.reshape(60, 64), 3, image_shape=(8, 8), **short)
    table = fitted(digits.reshape(60, 64), 3, **short)
    assert images.sample_shape_ == flat.sample_shape_ == (8, 8)
    np.testing.assert_array_equal(images.transform(digits), flat.transform(digits.reshape(60, 64)))
    np.testing.assert_array_equal(images.predict(digits.reshape(60, 64)), images.predict(digits))
    np.testing.assert_array_equal(flat.membership(digits), images.membership(digits))
    assert images.transform(digits).shape == (60, 32)
    assert not np.allclose(images.transform(digits), table.transform(digits.reshape(60, 64)))
    with pytest.raises(ValueError, match=r"samples of shape \(8, 7\), and those of the fit had \(8, 8\)"):
        images.predict(digits[:, :, :7])


def test_rows_that_are_equal_have_no_clusters():
    for same in (np.ones((30, 3)), np.zeros((30, 8, 8))):
        with pytest.raises(ValueError, match="all rows of X are equal: there are no clusters to find"):
            fitted(same)
    views = [X, X]
    with pytest.raises(ValueError, match="all rows of X are equal"):
        ManifoldClustering(2, **OPTIONS).fit_views(np.ones_like(X), *views)
    doubled = fitted(np.repeat(X[::10], 6, axis=0))
    assert np.isfinite(doubled.membership(X)).all()
    assert all(len(set(labels)) == 1 for labels in doubled.labels_.reshape(12, 6))


def test_as_many_clusters_as_rows_and_one():
    assert sorted(fitted(X[::20], 6).labels_) == list(range(6))
    assert not fitted(X, 1).labels_.any()


def test_a_users_backbone_is_not_changed():
    backbone = Rough()
    before = copy.deepcopy(backbone.state_dict())
    model = fitted(backbone=backbone)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    frozen, trained = (fitted(backbone=backbone, result="final", freeze=freeze).weights_ for freeze in (True, False))
    start = fitted(backbone=backbone, result="start").weights_
    for name in ("layers.0.weight", "layers.1.running_mean"):
        np.testing.assert_array_equal(frozen[f"backbone.1.{name}"], start[f"backbone.1.{name}"])
        assert not np.array_equal(trained[f"backbone.1.{name}"], start[f"backbone.1.{name}"])
    np.testing.assert_array_equal(model.transform(X), model.transform(X))  # no dropout in use


# ---- resume, progress, files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["start", "final"])
def test_a_fit_that_was_killed_ends_as_one_that_was_not(stage, tmp_path, monkeypatch, every_eta):
    whole = fitted(eta="auto", result="final")
    name = {"start": "view_coding_rate", "final": "mlc"}[stage]
    loss, calls = getattr(manifold_training, name), {"n": 0}

    def killed(*args, **options):
        calls["n"] += 1
        if calls["n"] == {"start": 8, "final": 19}[stage]:  # 12 steps a training: the second η is killed
            raise KeyboardInterrupt
        return loss(*args, **options)

    path = tmp_path / "fit.checkpoint"
    monkeypatch.setattr("mercer.training.checkpoint.Checkpoint.is_due", lambda self: True)
    monkeypatch.setattr(manifold_training, name, killed)
    with pytest.raises(KeyboardInterrupt):
        fitted(eta="auto", result="final", checkpoint=path)
    there = {file.name for file in tmp_path.iterdir()}
    kept = {"start": ("start",), "final": ("start", "final-0.175", "final-0.12")}[stage]
    assert there == {f"fit.checkpoint.{part}" for part in kept}
    steps = {"n": 0}

    def counted(*args, **options):
        steps["n"] += 1
        return loss(*args, **options)

    monkeypatch.setattr(manifold_training, name, counted)
    resumed = fitted(eta="auto", result="final", checkpoint=path)
    assert steps["n"] == {"start": 12 - 6, "final": 24 - 17}[stage]  # the last step that was saved is made again
    assert resumed.weights_.keys() == whole.weights_.keys()
    for part, weight in resumed.weights_.items():
        np.testing.assert_array_equal(weight, whole.weights_[part])
    for attribute in ("labels_", "start_labels_", "final_labels_", "codes_", "code_scales_"):
        np.testing.assert_array_equal(getattr(resumed, attribute), getattr(whole, attribute))
    assert resumed.candidates_ == whole.candidates_
    assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]


def noisy(batch, generator):
    return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)


def noisy_too(batch, generator):
    return noisy(batch, generator)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    path, short = tmp_path / "fit.checkpoint", Recipe(n_epochs=1)
    torch.manual_seed(0)
    backbone, other = nn.Linear(3, 4), nn.Linear(3, 4)
    options = {
        "start_recipe": short,
        "recipe": short,
        "checkpoint": path,
        "backbone": backbone,
        "augment": noisy,
        "random_state": np.random.RandomState(0),
    }
    model = fitted(**options)
    # The same from another object: random states and functions count by what they are.
    same = fitted(**{**options, "random_state": np.random.RandomState(0), "max_rows": 50, "result": "start"})
    assert [r["loss"] for r in same.history_] == [r["loss"] for r in model.history_]
    for change in (
        {"rows": X[::-1]},
        {"affinity": "inner"},
        {"gamma": 0.1},
        {"epsilon_start": 1.0},
        {"n_views": 3},
        {"start_recipe": FEW},
        {"random_state": 1},
        {"augment": noisy_too},
        {"backbone": other},
        {"hidden": 17},
        {"backbone": nn.Sequential(backbone, nn.Tanh())},
    ):
        with pytest.raises(ModelFileError, match="is of another training"):
            fitted(**{**options, "random_state": np.random.RandomState(0), **change})
    # The same numbers as images have other views.
    flat = {"start_recipe": short, "recipe": short, "checkpoint": tmp_path / "flat", "n_components": 4}
    rows = numbers(40, 16)
    fitted(rows, **flat)
    with pytest.raises(ModelFileError, match="is of another training.*sample_shape_"):
        fitted(rows.reshape(40, 4, 4), **flat)
    views = tmp_path / "views.checkpoint"
    with_views = ManifoldClustering(2, **{**OPTIONS, "start_recipe": short, "recipe": short, "checkpoint": views})
    with_views.fit_views(X, X + 0.1, X - 0.1)
    with_views.fit_views(X, X + 0.1, X - 0.1)
    with pytest.raises(ModelFileError, match="is of another training: data"):
        with_views.fit_views(X, X + 0.1, X - 0.2)


def test_a_finished_start_serves_other_second_stages(tmp_path):
    options = {"checkpoint": tmp_path / "fit", "start_recipe": FEW, "recipe": Recipe(n_epochs=1)}
    model = fitted(**options)
    written = (tmp_path / "fit.start").stat().st_mtime_ns
    for change in ({"eta": 0.2}, {"eta": 0.2000001, "gamma": 0.1}, {"n_clusters": 3, "eta": 0.2}):
        other = fitted(**options, **change)
        starts = [[r["loss"] for r in m.history_ if r["stage"] == "start"] for m in (model, other)]
        assert starts[0] == starts[1]
    assert (tmp_path / "fit.start").stat().st_mtime_ns == written


def test_a_backbone_in_evaluation_mode_stays_in_it():
    backbone = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    backbone[1].eval()
    network = ManifoldNetwork(backbone, 4, 2, 3, Entrance(np.zeros(3), np.ones(3)), 0)
    network.train()
    assert [module.training for module in network.backbone] == [True, False, True]
    assert network.feature_head.training
    network.eval()
    assert not any(module.training for module in network.modules())


def test_progress_is_shown_by_scikit_learns_callbacks(capsys):
    model = ManifoldClustering(2, **OPTIONS).set_callbacks(ProgressBar())
    np.testing.assert_array_equal(model.fit(X).transform(X), fitted().transform(X))
    shown = capsys.readouterr()
    shown = (shown.out + shown.err).lower()
    assert "start" in shown
    assert "final" in shown
    model.fit_views(X, X, X + 0.1)


@pytest.mark.parametrize("backbone", [None, "mlp", "resnet18"])
def test_models_are_saved_with_their_weights(backbone, tmp_path):
    images = X[::8, :, None] * np.array([1.0, -0.5, 2.0])  # of 3 x 3 pixels
    short = Recipe(n_epochs=1, batch_size=8)
    model = fitted(images.astype(np.float32), backbone=backbone, start_recipe=short, recipe=short)
    mercer.save(model, tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    for method in ("transform", "predict", "membership"):
        np.testing.assert_array_equal(getattr(again, method)(images), getattr(model, method)(images))
    assert again.candidates_ == model.candidates_
    assert again.history_ == model.history_
    assert again.recipe == short


def test_a_users_backbone_is_handed_back_at_load(tmp_path):
    model = fitted(backbone=Rough())
    mercer.save(model, tmp_path / "model")
    with pytest.raises(InvalidParameterError, match=r"the file asks for exactly 'backbone' \(Rough\)"):
        mercer.load(tmp_path / "model")
    fresh = Rough()
    with torch.no_grad():
        fresh.layers[0].weight.zero_()  # weights are the file's
    again = mercer.load(tmp_path / "model", {"backbone": fresh})
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# ---- bad input ------------------------------------------------------------------------------------------------------

BAD = {
    "n_clusters": [0, 2.0, True, 121],
    "n_components": [0, 1.5],
    "backbone": ["resnet50", 3],
    "hidden": [0, "wide"],
    "affinity": ["cosine", None],
    "projection": ["sinkhorn", None],
    "eta": [0.0, -1.0, "best", np.nan, None],
    "epsilon_start": [0.0, np.inf],
    "epsilon": [-0.1, "auto"],
    "agreement": [-1.0, "all", None],
    "gamma": [-0.1, None],
    "regularizer": ["l1"],
    "augment": [None, "no_such_view"],
    "n_views": [1, 2.5],
    "image_shape": [(2, 2), "square"],
    "standardize": [None, "columns"],
    "freeze": [None, 1],
    "start_recipe": [{"n_epochs": 3}, 3],
    "recipe": ["sgd"],
    "assign_labels": ["kmeans"],
    "result": ["best"],
    "max_rows": [1, None],
    "random_state": ["seed"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match="RandomState" if name == "random_state" else f"{name}="):
        ManifoldClustering(**{"n_clusters": 2, **OPTIONS, name: value}).fit(X)


def test_every_parameter_has_bad_values():
    without = {"checkpoint", "device"}
    assert set(ManifoldClustering().get_params(deep=False)) == set(BAD) | without


def test_other_bad_input_is_named():
    with pytest.raises(ValueError, match="max_rows=5 .* at least n_clusters=8"):
        fitted(n_clusters=8, max_rows=5)
    with pytest.raises(ValueError, match="batch_size=1 .*at least 2"):
        fitted(recipe=Recipe(n_epochs=1, batch_size=1))
    with pytest.raises(ValueError, match="resnet18"):
        fitted(backbone="resnet18")
    with pytest.raises(ValueError, match="augment=None.*fit_views"):
        fitted(augment=None)


def test_a_fit_of_sensible_data_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(eta="auto").predict(X)


def test_cuts_are_nested_and_that_of_the_fit_is_the_prediction():
    model = fitted(n_clusters=3)
    new = X[::3] + 0.01
    cuts = {k: model.cut(new, k) for k in (1, 2, 3, 5, 8)}
    assert clustering_accuracy(model.predict(new), cuts[3]) == 1.0
    assert (cuts[1] == 0).all()
    for coarse, fine in ((1, 2), (2, 3), (3, 5), (5, 8)):
        assert all(len(np.unique(cuts[coarse][cuts[fine] == label])) == 1 for label in np.unique(cuts[fine]))
    with pytest.raises(InvalidParameterError, match="n_clusters=1000"):
        model.cut(new, 1000)


@pytest.mark.parametrize(("backbone", "wanted"), [(None, 1), ("mlp", 1), (nn.Linear(3, 4), 2)])
def test_rows_of_features_are_learned_on_one_thread_and_networks_of_images_on_all(backbone, wanted):
    seen, before = set(), torch.get_num_threads()

    def watched(batch, generator):
        seen.add(torch.get_num_threads())
        return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)

    torch.set_num_threads(2)
    try:
        fitted(X[:, :3], backbone=backbone, augment=watched)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {wanted}
