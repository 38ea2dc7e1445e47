"""Tangent kernels: equal to autograd's for every kind of layer and every network, in blocks, projected; bad input."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

import mercer
from mercer import KernelDiscriminant, KernelEmbedding, Nystrom, agop
from mercer.exceptions import InvalidParameterError, NumericalWarning
from mercer.kernels import Linear, NeuralTangent
from mercer.kernels.neural_tangent import kernel as tangent
from mercer.kernels.neural_tangent import parts
from mercer.networks import CNN, MLP, AttentionNetwork, ResMLP, ResNet
from tests.examples_of import columns_network, labeled, numbers
from tests.kernels.tangent_networks import BUILDS, COLUMNS, UNKNOWN, built

X, Z = numbers(7, COLUMNS, seed=1), numbers(4, COLUMNS, seed=2)
TOLERANCES = {np.float32: 1e-5, np.float64: 1e-10}
over_precisions = pytest.mark.parametrize("dtype", TOLERANCES)


def naive(network, X, Z):
    """The inner products of gradients by all weights, row by row, by autograd in float64.

    In float32 the sum over a million weights and more is itself wrong by 1e-3.
    """
    network, X, Z = copy.deepcopy(network).double(), X.astype(np.float64), Z.astype(np.float64)
    weights = [weight for weight in network.parameters() if weight.requires_grad]

    def gradient(row):
        found = torch.autograd.grad(network(torch.as_tensor(row)[None]).sum(), weights, allow_unused=True)
        pairs = zip(found, weights, strict=True)
        return torch.cat([(torch.zeros_like(w) if g is None else g).flatten() for g, w in pairs])

    ours, theirs = (torch.stack([gradient(row) for row in rows]) for rows in (X, Z))
    return (ours @ theirs.T).numpy()


def assert_equal(K, expected, tolerance):
    assert np.abs(expected).max() > 0
    np.testing.assert_allclose(K, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# ---- every kind of layer -------------------------------------------------------------------------------------


@over_precisions
@pytest.mark.parametrize("name", BUILDS)
def test_equals_autograd_for_every_kind_of_layer(name, dtype):
    network, x, z = built(BUILDS[name]), X.astype(dtype), Z.astype(dtype)
    before = copy.deepcopy(network.state_dict())
    kernel = NeuralTangent(network)
    expected = naive(network, x, z)
    assert_equal(kernel(x, z), expected, TOLERANCES[dtype])
    assert_equal(kernel(x), naive(network, x, x), TOLERANCES[dtype])
    assert_equal(kernel.diagonal(x), kernel(x).diagonal(), TOLERANCES[dtype])
    assert all(torch.equal(weight, before[key]) for key, weight in network.state_dict().items())


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_taken_row_by_row_with_a_warning_that_names_it(name):
    network = built(UNKNOWN[name])
    named = {"odd": r"0 \(Odd\)", "prelu": r"1 \(PReLU\)", "recurrent": r"1\.module \(GRU\)"}[name]
    with pytest.warns(NumericalWarning, match=named):
        K = NeuralTangent(network)(X, Z)
    assert_equal(K, naive(network, X, Z), 1e-10)


NETWORKS = {
    "mlp": (lambda: MLP(12, (9, 8), random_state=1), None),
    "cnn": (lambda: CNN(2, (4, 5), random_state=1), (4, 5, 2)),
    "attention": (lambda: AttentionNetwork(12, 3, width=8, n_heads=2, random_state=1), None),
    "resmlp": (lambda: ResMLP(12, 16, random_state=1), None),
    "resnet18": (lambda: ResNet(18, 1, 1, random_state=1), (5, 6)),
    "resnet34": (lambda: ResNet(34, 1, 1, random_state=1), (5, 6)),
    "resnet50": (lambda: ResNet(50, 1, 1, random_state=1), (5, 6)),
}


@over_precisions
@pytest.mark.parametrize("name", NETWORKS)
def test_equals_autograd_for_each_network(name, dtype):
    build, shape = NETWORKS[name]
    network = build().eval()
    d = 12 if shape is None else int(np.prod(shape))
    x = numbers(3, d, seed=1).astype(dtype)
    kernel = NeuralTangent(network, image_shape=shape)
    images = x if shape is None else np.moveaxis(x.reshape(len(x), *shape, *(1,) * (3 - len(shape))), 3, 1)
    images = np.ascontiguousarray(images)
    assert_equal(kernel(x[:2], x[1:]), naive(network, images[:2], images[1:]), TOLERANCES[dtype])


def test_weights_of_networks_come_from_their_random_state():
    for build in (
        lambda s: MLP(3, random_state=s),
        lambda s: ResMLP(3, 8, random_state=s),
        lambda s: CNN(random_state=s),
    ):
        first, same, other = build(0), build(0), build(1)
        weights = [torch.cat([w.flatten() for w in network.parameters()]) for network in (first, same, other)]
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])


def test_frozen_weights_have_no_part():
    network = built(BUILDS["linear"])
    network[0].requires_grad_(False)
    assert_equal(NeuralTangent(network)(X, Z), naive(network, X, Z), 1e-10)


# ---- heads, blocks, projections --------------------------------------------------------------------------------


def test_several_outputs_are_summed_or_get_a_random_head():
    network = nn.Sequential(nn.Linear(COLUMNS, 5), nn.Tanh(), nn.Linear(5, 3))
    assert_equal(NeuralTangent(network, head="sum")(X, Z), naive(network, X, Z), 1e-10)
    first, same, other = (NeuralTangent(network, head="random", random_state=seed)(X, Z) for seed in (0, 0, 1))
    assert (first == same).all()
    assert np.abs(first - other).max() > 0.01
    weights = tangent.NeuralTangent(network, head="random").prepare(torch.from_numpy(X)).rows.network.direction
    with_head = nn.Sequential(network, nn.Linear(3, 1, bias=False))
    with_head[1].weight.data = weights.data.float()
    assert_equal(first, naive(with_head, X, Z), 1e-6)


@pytest.mark.parametrize("kept", [0.0, 1e6])
@pytest.mark.parametrize("name", ["conv2d", "conv2d_pixels", "few_tokens", "shared", "conv2d_patches"])
def test_blocks_make_no_difference(name, kept, monkeypatch):
    kernel = NeuralTangent(built(BUILDS[name]))
    expected = kernel(X, Z)
    monkeypatch.setattr(tangent, "KEPT_MEMORY", kept)
    monkeypatch.setattr(tangent, "BLOCK_MEMORY", 1e-9)
    monkeypatch.setattr("mercer.kernels.neural_tangent.network.PASS_MEMORY", 1e-3)
    for room in ("parts", "dense", "convolution"):
        monkeypatch.setattr(f"mercer.kernels.neural_tangent.{room}.WORKING_MEMORY", 1e-4)
    assert_equal(kernel(X, Z), expected, 1e-12)
    assert_equal(kernel(X), kernel(X, X), 1e-12)
    assert_equal(kernel.diagonal(X), kernel(X, X).diagonal(), 1e-12)


def test_both_ways_of_a_product_are_equal():
    random = np.random.default_rng(0)
    a, g, b, h = (torch.from_numpy(random.normal(size=size)) for size in ((3, 2, 5), (3, 2, 4), (6, 2, 5), (6, 2, 4)))
    from mercer.kernels.neural_tangent.dense import DenseFactors

    x, z = DenseFactors(a, g), DenseFactors(b, h)
    short, long = torch.zeros(3, 6, dtype=a.dtype), torch.zeros(3, 6, dtype=a.dtype)
    x.add_products(z, short)
    x._add_by_matrices(z, long)
    torch.testing.assert_close(short, long)
    torch.testing.assert_close(short, torch.einsum("npi,npo,mqi,mqo->nm", a, g, b, h))


def test_projections_are_near_and_features_have_the_kernel_as_products():
    network = ResNet(18, 3, 1).eval()
    x = numbers(6, 16 * 16 * 3, seed=1).astype(np.float32)
    exact = NeuralTangent(network, image_shape=(16, 16, 3))
    K = exact(x)
    for seed in range(2):
        kernel = exact.with_params(n_projections=64, random_state=seed)
        assert 0 < np.linalg.norm(kernel(x) - K) <= 0.05 * np.linalg.norm(K)
    network = built(BUILDS["conv2d"])
    features = NeuralTangent(network).features(X)
    assert features.shape == (7, sum(weight.numel() for weight in network.parameters()))
    assert_equal(features @ features.T, NeuralTangent(network)(X), 1e-10)


def test_features_of_projections_have_a_fixed_size_and_are_right_on_average():
    network = nn.Sequential(
        nn.Unflatten(1, (100, 2, 2)), nn.Conv2d(100, 20, 2), nn.Tanh(), nn.Flatten(), nn.Linear(20, 1)
    )
    x = numbers(5, 400, seed=1)
    K = NeuralTangent(network)(x)
    found = []
    for seed in range(30):
        features = NeuralTangent(network, n_projections=40, random_state=seed).features(x)
        assert features.shape == (5, 20 * 40 + 20 + 21)
        found.append(features @ features.T)
    spread = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - K) <= 5 * spread + 1e-12).all()


# ---- a kernel like any other -------------------------------------------------------------------------------------


def test_serves_estimators():
    rows, y = labeled(60)
    kernel = NeuralTangent(MLP(3, (20,), random_state=0))
    assert Nystrom(kernel, n_landmarks=20, n_components=5, random_state=0).fit_transform(rows).shape == (60, 5)
    model = KernelDiscriminant(kernel, random_state=0).fit(rows, y)
    assert model.score(rows, y) > 0.6
    embedding = KernelEmbedding("kernel_pca", kernel, n_landmarks=20, n_components=3, random_state=0).fit(rows)
    assert embedding.transform(rows).shape == (60, 3)
    both = kernel + 0.5 * Linear()
    np.testing.assert_allclose(both(rows), kernel(rows) + 0.5 * rows @ rows.T, rtol=1e-9)


def test_has_no_derivatives_by_rows_and_says_so():
    kernel = NeuralTangent(columns_network())
    with pytest.raises(TypeError, match="NeuralTangent kernel has no derivatives by its rows"):
        agop.agop(kernel, X, Z, np.ones(4))
    with pytest.raises(TypeError, match="NeuralTangent kernel has no gradient weights"):
        kernel.gradient_weights(X, Z)


def test_clones_are_equal_and_other_weights_are_not():
    kernel = NeuralTangent(MLP(3, random_state=0))
    assert clone(kernel) == kernel
    assert kernel != NeuralTangent(MLP(3, random_state=1))
    assert kernel != NeuralTangent(nn.Linear(3, 1))
    assert kernel != kernel.with_params(head="sum")


def test_networks_of_mercer_are_saved_whole(tmp_path):
    rows, _ = labeled(30)
    for network in (
        MLP(3, (4,)),
        ResMLP(3, 8),
        AttentionNetwork(3, width=4, n_heads=1),
        ResNet(18, 1).eval(),
        CNN(1, (2,)),
    ):
        network.get_parameter(next(name for name, _ in network.named_parameters())).requires_grad_(False)
        mercer.save(NeuralTangent(network.eval(), head="random"), tmp_path / "kernel.mercer")
        loaded = mercer.load(tmp_path / "kernel.mercer")
        assert loaded == NeuralTangent(network, head="random")
        assert type(loaded.network) is type(network)
        assert not loaded.network.training
        assert [w.requires_grad for w in loaded.network.parameters()] == [w.requires_grad for w in network.parameters()]
    model = Nystrom(NeuralTangent(MLP(3, (4,))), n_landmarks=9, random_state=0).fit(rows)
    mercer.save(model, tmp_path / "model.mercer")
    assert (mercer.load(tmp_path / "model.mercer").transform(rows) == model.transform(rows)).all()


def test_a_network_of_the_users_own_is_handed_back_and_checked(tmp_path):
    rows, _ = labeled(30)
    build = BUILDS["linear"]
    model = Nystrom(
        NeuralTangent(built(lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)))),
        n_landmarks=9,
        random_state=0,
    )
    mercer.save(model.fit(rows), tmp_path / "model.mercer")
    with pytest.raises(InvalidParameterError, match="kernel__network.*Sequential"):
        mercer.load(tmp_path / "model.mercer")
    with pytest.raises(
        InvalidParameterError, match=r"kernel__network is not built.*0.weight has shape \(7, 12\).*\(4, 3\)"
    ):
        mercer.load(tmp_path / "model.mercer", network=build())
    other = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    before = copy.deepcopy(other.state_dict())
    loaded = mercer.load(tmp_path / "model.mercer", network=other)
    assert (loaded.transform(rows) == model.transform(rows)).all()
    assert all(torch.equal(weight, before[key]) for key, weight in other.state_dict().items())
    mercer.save(Linear(), tmp_path / "linear.mercer")
    with pytest.raises(InvalidParameterError, match="asks for no network"):
        mercer.load(tmp_path / "linear.mercer", network=other)


# ---- bad input ---------------------------------------------------------------------------------------------------


class Mixing(nn.Module):
    """A row less the mean of all."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(COLUMNS, 1)

    def forward(self, x):
        return self.dense(x - x.mean(dim=0))


class Overwriting(nn.Module):
    """Writes over the input of a layer."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(COLUMNS, COLUMNS)
        self.head = nn.Linear(COLUMNS, 1)

    def forward(self, x):
        x = x * 1.0
        y = self.dense(x)
        x.relu_()
        return self.head(y + x)


def act(network, **options):
    return lambda: NeuralTangent(network, **options)(X, Z)


BAD = {
    "several_outputs": (act(nn.Linear(COLUMNS, 3)), r"head=None .*'sum', 'random'.* 3 outputs a row"),
    "head": (act(nn.Linear(COLUMNS, 3), head="mean"), r"head='mean' .* None, 'sum' or 'random'"),
    "batch_norm": (
        act(nn.Sequential(nn.Linear(COLUMNS, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))),
        r"batch norm in training mode.*network.eval\(\)",
    ),
    "no_batch_statistics": (
        act(nn.Sequential(nn.BatchNorm1d(COLUMNS, track_running_stats=False), nn.Linear(COLUMNS, 1)).eval()),
        "batch norm in training mode",
    ),
    "dropout": (act(nn.Sequential(nn.Linear(COLUMNS, 64), nn.Dropout(), nn.Linear(64, 1))), r"network.eval\(\)"),
    "mixing": (act(Mixing()), "other rows in the batch"),
    "overwriting": (act(Overwriting()), "overwrites the input of a layer"),
    "shape": (act(nn.Linear(5, 1)), r"network fails on a tensor of shape \(1, 12\).*flat rows.*image_shape"),
    "image_of_another_shape": (act(CNN(1, (2,)), image_shape=(4, 4)), r"image_shape=\(4, 4\) .* 12 numbers"),
    "image_shape": (act(CNN(1, (2,)), image_shape=12), r"image_shape=12 .* None, \(height, width\)"),
    "channels": (act(CNN(3, (2,)), image_shape=(3, 4)), "channels first"),
    "network": (act("mlp"), "network='mlp' .* torch.nn.Module"),
    "lazy": (act(nn.LazyLinear(1)), "without a shape"),
    "frozen": (act(nn.Linear(COLUMNS, 1).requires_grad_(False)), "no parameters that require gradients"),
    "projections": (act(nn.Linear(COLUMNS, 1), n_projections=0), "n_projections=0 .* at least 1"),
    "rows_of_output": (act(nn.Sequential(nn.Linear(COLUMNS, 2), nn.Flatten(0))), r"gives shape \(2,\) for 1 rows"),
    "depth": (lambda: ResNet(20), "depth=20 .* '18', '34', '50'"),
    "tokens": (lambda: AttentionNetwork(10, 3), "n_tokens=3 .* divisor of d=10"),
    "width": (lambda: ResMLP(10, 30), "width=30 .* multiple of bottleneck=4"),
}


@pytest.mark.parametrize(("act", "message"), BAD.values(), ids=BAD.keys())
def test_errors_say_what_is_wrong_and_what_is_allowed(act, message):
    with pytest.raises(InvalidParameterError, match=f"(?s){message}"):
        act()


def test_parts_know_their_size():
    part = parts.Features(torch.zeros(4, 3))
    assert (len(part), part.bytes_per_row, len(part[1:3]), len(part.empty(9))) == (4, 12, 2, 9)
