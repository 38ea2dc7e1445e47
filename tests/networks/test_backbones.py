"""Backbones: shapes, the ResNet-18 against its layers written out, chance from the seed alone, and users' modules."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from mercer.networks.backbones import ChannelsFirst, ResNet18, check_backbone, mlp
from mercer.networks.resnets import ResidualBlock
from tests.examples_of import numbers


def rows(n, d, seed=0):
    return torch.from_numpy(numbers(n, d, seed=seed).astype(np.float32))


def same_weights(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


SHAPES = [(6,), (4, 5), (4, 5, 3)]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_backbone_is_the_rows_as_they_are(shape):
    network, width = check_backbone(None, shape)
    X = rows(3, int(np.prod(shape)))
    assert width == X.shape[1]
    assert torch.equal(network(X), X)
    assert torch.equal(network(X.reshape(3, *shape)), X)
    assert not list(network.parameters())


@pytest.mark.parametrize(
    ("backbone", "shape"), [*(("mlp", shape) for shape in SHAPES), *(("resnet18", shape) for shape in SHAPES[1:])]
)
def test_named_backbones_take_flat_rows_and_give_their_width(backbone, shape):
    network, width = check_backbone(backbone, shape)
    features = network(rows(3, int(np.prod(shape))))
    assert features.shape == (3, width) == (3, 512)
    assert features.isfinite().all()
    assert features.std() > 0
    assert network.training
    features.sum().backward()
    assert all(weight.grad is not None for weight in network.parameters())


def test_a_perceptron_is_affine_maps_and_relus():
    network = mlp(4, (7, 2))
    weights = list(network.parameters())
    assert [tuple(weight.shape) for weight in weights] == [(7, 4), (7,), (2, 7), (2,)]
    X = rows(5, 4)
    expected = (weights[2] @ (weights[0] @ X.T + weights[1][:, None]).relu() + weights[3][:, None]).relu().T
    torch.testing.assert_close(network(X), expected)
    assert [layer.out_features for layer in mlp(4) if isinstance(layer, nn.Linear)] == [512, 512]


def test_resnet18_has_the_weights_of_the_cifar_network():
    network = ResNet18()
    # 11 173 962 with a classifier of 10 classes, which has 5130.
    assert sum(weight.numel() for weight in network.parameters()) == 11_173_962 - 5130
    kernels = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    # 17 layers with the classifier as the 18th, and three projections.
    assert sorted(m.kernel_size for m in kernels) == [(1, 1)] * 3 + [(3, 3)] * 17
    assert kernels[0].weight.shape == (64, 3, 3, 3)
    assert ResNet18(1)[0][0].weight.shape == (64, 1, 3, 3)


def test_resnet18_halves_the_maps_three_times_and_averages_the_last():
    network, maps = ResNet18().eval(), []
    for part in network:
        part.register_forward_hook(lambda part, given, made: maps.append(made))
    features = network(torch.from_numpy(numbers(1, 3, 32, 32).astype(np.float32)))
    sizes = [tuple(m.shape[1:]) for m in maps]
    assert sizes == [
        (64, 32, 32),
        (64, 32, 32),
        (64, 32, 32),
        (64, 32, 32),
        (128, 16, 16),
        (128, 16, 16),
        (256, 8, 8),
        (256, 8, 8),
        (512, 4, 4),
        (512, 4, 4),
        (512, 1, 1),
        (512,),
    ]
    torch.testing.assert_close(features, maps[9].mean(dim=(2, 3)))
    assert (maps[1] >= 0).all()


@pytest.mark.parametrize(("n_in", "n_out", "stride"), [(4, 4, 1), (4, 6, 2), (4, 6, 1), (4, 4, 2)])
def test_a_block_is_two_convolutions_beside_a_shortcut(n_in, n_out, stride):
    torch.manual_seed(0)
    block = ResidualBlock(n_in, n_out, stride)
    x = torch.from_numpy(numbers(3, n_in, 6, 6).astype(np.float32))

    def normalized(y):
        return (y - y.mean(dim=(0, 2, 3), keepdim=True)) / (
            y.var(dim=(0, 2, 3), keepdim=True, correction=0) + 1e-5
        ).sqrt()

    inner = normalized(functional.conv2d(x, block.first[0].weight, stride=stride, padding=1)).relu()
    outer = normalized(functional.conv2d(inner, block.second[0].weight, padding=1))
    if stride == 1 and n_in == n_out:
        beside = x
    else:
        beside = normalized(functional.conv2d(x, block.shortcut[0].weight, stride=stride))
    torch.testing.assert_close(block(x), (outer + beside).relu())
    assert not any(isinstance(part, nn.Conv2d) and part.bias is not None for part in block.modules())


def test_convolutions_start_at_the_size_that_keeps_gradients():
    for module in ResNet18().modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 10_000:
            n_out, _, height, width = module.weight.shape
            spread = (2.0 / (n_out * height * width)) ** 0.5
            assert abs(module.weight.std().item() / spread - 1.0) < 0.03


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: mlp(5, (4,), seed=seed),
        lambda seed: ResNet18(2, seed=seed),
        lambda seed: check_backbone("mlp", (5,), seed=seed)[0],
        lambda seed: check_backbone("resnet18", (4, 4), seed=seed)[0],
    ],
)
def test_weights_come_from_the_seed_and_chance_elsewhere_is_left_alone(make):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = make(3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert same_weights(make(3), one)
    assert not same_weights(make(4), one)


def test_images_become_channels_first():
    color = torch.arange(2 * 4 * 5 * 3.0).reshape(2, 60)
    made = ChannelsFirst((4, 5, 3))(color)
    assert made.shape == (2, 3, 4, 5)
    assert made.is_contiguous()
    assert made[1, 2, 3, 4] == color.reshape(2, 4, 5, 3)[1, 3, 4, 2]
    gray = ChannelsFirst((4, 5))(color[:, :20])
    assert torch.equal(gray, color[:, :20].reshape(2, 1, 4, 5))
    assert "(4, 5, 1)" in repr(ChannelsFirst((4, 5)))


class Recorder(nn.Module):
    """A user's module that remembers the shapes and modes it met, and counts its batches whatever its mode."""

    def __init__(self, width=3):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.frozen = nn.BatchNorm1d(width).eval()
        self.drop = nn.Dropout(0.5)
        self.register_buffer("batches", torch.zeros(()))
        self.met = []

    def forward(self, x):
        self.met.append((tuple(x.shape), self.training))
        self.batches += 1
        return self.drop(self.frozen(self.norm(x.flatten(1)[:, : self.norm.num_features])))


@pytest.mark.parametrize("training", [True, False])
def test_a_module_is_copied_and_neither_it_nor_the_copy_is_changed_by_the_trial(training):
    mine = Recorder().train(training)
    mine.frozen.eval()
    mine.norm.weight.requires_grad_(False)
    before = copy.deepcopy(mine.state_dict())
    torch.manual_seed(0)
    chance = torch.get_rng_state()
    network, width = check_backbone(mine, (6,))
    assert width == 3
    assert torch.equal(torch.get_rng_state(), chance)
    for module in (mine, network[1]):
        assert module.met == []
        assert [part.training for part in module.modules()] == [training, training, False, training]
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not network[1].norm.weight.requires_grad
    network.train()
    network(rows(4, 6))
    assert mine.batches == 0
    assert torch.equal(mine.norm.running_mean, before["norm.running_mean"])
    assert network[1].batches == 1


@pytest.mark.parametrize(("shape", "met"), [((6,), (6,)), ((4, 5), (1, 4, 5)), ((4, 5, 3), (3, 4, 5))])
def test_a_module_gets_rows_or_channels_first(shape, met):
    network, _ = check_backbone(Recorder(), shape)
    network(rows(7, int(np.prod(shape))))
    assert network[1].met == [((7, *met), True)]


def test_the_trial_is_in_the_precision_of_the_module():
    network, width = check_backbone(nn.Linear(4, 2).double(), (4,))
    assert width == 2
    assert network(rows(3, 4).double()).dtype == torch.float64


class Returns(nn.Module):
    """What a function of the batch returns."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_a_module_that_draws_in_every_mode_takes_no_chance_from_elsewhere():
    before = torch.get_rng_state()
    assert check_backbone(Returns(lambda x: x + torch.randn_like(x)), (4,))[1] == 4
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, None, :], r"backbone gives shape \(2, 1, 4\) for 2 samples: .* \(n, features\)"),
        (lambda x: x.sum(dim=1), r"gives shape \(2,\)"),
        (lambda x: x[:1], r"gives shape \(1, 4\)"),
        (lambda x: x[:, :0], r"gives shape \(2, 0\)"),
        (lambda x: (x, x), "gives tuple for 2 samples"),
        (lambda x: x.long(), r"numbers of type torch\.int64: it must give floats"),
        (lambda x: x / x, "NaN or infinite"),
        (lambda x: 1.0 / x, "NaN or infinite"),
        (lambda x: x @ torch.ones(3, 3), r"backbone fails on zeros of shape \(2, 4\): .*shapes"),
    ],
)
def test_what_a_module_gives_is_checked(function, message):
    with pytest.raises(ValueError, match=message):
        check_backbone(Returns(function), (4,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: check_backbone("resnet50", (4, 4)),
            "backbone='resnet50' .* None, 'mlp', 'resnet18' or a torch.nn.Module",
        ),
        (lambda: check_backbone(nn.Linear, (4,)), "backbone=<class .* a torch.nn.Module"),
        (lambda: check_backbone(len, (4,)), "backbone=<built-in"),
        (lambda: check_backbone(nn.LazyLinear(3), (4,)), "without a shape yet: run a batch through it"),
        (lambda: check_backbone("resnet18", (16,)), r"sample_shape=\(16,\) .* with backbone='resnet18'"),
        (lambda: check_backbone("mlp", 16), r"sample_shape=16 .*\(d,\), \(height, width\)"),
        (lambda: check_backbone("mlp", (1, 2, 3, 4)), "sample_shape="),
        (lambda: check_backbone(None, (4, 0)), r"sample_shape\[1\]=0 "),
        (lambda: mlp(4, ()), r"widths=\(\) .* one or more"),
        (lambda: mlp(4, 8), "widths=8 "),
        (lambda: mlp(4, (8, 0)), r"widths\[1\]=0 "),
        (lambda: mlp(0), "d=0 "),
        (lambda: ResNet18(0), "n_channels=0 "),
    ],
)
def test_errors_name_the_parameter(call, message):
    with pytest.raises(ValueError, match=message):
        call()
