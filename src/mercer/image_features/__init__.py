"""Features of images that need no training: wavelet scattering, and a pretrained network."""

from mercer.image_features.backbone import EfficientNetLite0
from mercer.image_features.pretrained import pretrained_features
from mercer.image_features.scattering import scattering, scattering_paths

__all__ = ["EfficientNetLite0", "pretrained_features", "scattering", "scattering_paths"]
