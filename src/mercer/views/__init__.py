"""Views of tables and images: random changes that leave a row what it is, for learning without labels.

The line that imports a view here registers it: it is public, it is saved and loaded by its name, the reference has its
page, and the laws of the tests run over it.
"""

from mercer.views.affine import Affine as Affine
from mercer.views.base import Augmentation as Augmentation
from mercer.views.base import ImageView as ImageView
from mercer.views.base import View as View
from mercer.views.blur import Blur as Blur
from mercer.views.chain import Chain as Chain
from mercer.views.chain import Identity as Identity
from mercer.views.chain import Reshaped as Reshaped
from mercer.views.choice import check_view as check_view
from mercer.views.color import Color as Color
from mercer.views.color import Gray as Gray
from mercer.views.crop import Crop as Crop
from mercer.views.elastic import Elastic as Elastic
from mercer.views.flip import Flip as Flip
from mercer.views.shift import Shift as Shift
from mercer.views.table import FeatureDropping as FeatureDropping
from mercer.views.table import FeatureSwapping as FeatureSwapping
from mercer.views.table import GaussianNoise as GaussianNoise

__all__ = [
    "Augmentation",
    *sorted(name for name, value in globals().items() if getattr(value, "__module__", "").startswith(__name__)),
]
