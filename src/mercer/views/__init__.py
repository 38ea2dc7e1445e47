"""Views of tables and images: random copies of a row that show the same thing, for learning without labels.

The line that imports a view here registers it. The view is then public, model files save and load it by its name, the
reference has a page for it, and the tests of all views cover it.
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
