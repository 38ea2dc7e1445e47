"""Networks that compute features of samples: backbones, heads, and their evaluation by blocks of rows."""

from mercer.networks.attention import AttentionNetwork
from mercer.networks.convolutional import CNN
from mercer.networks.perceptrons import MLP, ResMLP
from mercer.networks.resnets import ResNet

__all__ = ["CNN", "MLP", "AttentionNetwork", "ResMLP", "ResNet"]
