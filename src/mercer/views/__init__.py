"""Views of tables and images: random changes that leave a sample what it is, for learning without labels."""

from mercer.views.affine import Affine
from mercer.views.base import Augmentation, ImageView, View
from mercer.views.blur import Blur
from mercer.views.chain import Chain, Identity, Reshaped
from mercer.views.choice import check_view
from mercer.views.color import Color, Gray
from mercer.views.crop import Crop
from mercer.views.elastic import Elastic
from mercer.views.flip import Flip
from mercer.views.shift import Shift
from mercer.views.table import FeatureDropping, FeatureSwapping, GaussianNoise

__all__ = [
    "Affine",
    "Augmentation",
    "Blur",
    "Chain",
    "Color",
    "Crop",
    "Elastic",
    "FeatureDropping",
    "FeatureSwapping",
    "Flip",
    "GaussianNoise",
    "Gray",
    "Identity",
    "ImageView",
    "Reshaped",
    "Shift",
    "View",
    "check_view",
]
