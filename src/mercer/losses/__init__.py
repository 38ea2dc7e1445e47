"""Losses for training embeddings: pure functions of the embeddings of a row's views, one in each file.

A loss with parameters or a state of its own is an `Objective`, which holds them.

The line that imports a loss here registers it. The loss is then public, `KernelEmbedding` accepts its name if it needs
only the embeddings of the views, the reference has a page for it, and the tests of all losses cover it.
"""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

from mercer.losses.barlow_twins import barlow_twins as barlow_twins
from mercer.losses.byol import BYOL as BYOL
from mercer.losses.byol import byol as byol
from mercer.losses.coding_rate import class_coding_rate as class_coding_rate
from mercer.losses.coding_rate import coding_rate as coding_rate
from mercer.losses.coding_rate import pairwise_coding_rate as pairwise_coding_rate
from mercer.losses.kernel_autoencoder import KernelAutoencoder as KernelAutoencoder
from mercer.losses.kernel_autoencoder import kernel_autoencoder as kernel_autoencoder
from mercer.losses.kernel_pca import kernel_pca as kernel_pca
from mercer.losses.mcr2 import mcr2 as mcr2
from mercer.losses.mlc import mlc as mlc
from mercer.losses.negatives import draw_negatives as draw_negatives
from mercer.losses.nmce import nmce as nmce
from mercer.losses.objective import FromEmbeddings as FromEmbeddings
from mercer.losses.objective import Objective as Objective
from mercer.losses.penalties import orthogonality as orthogonality
from mercer.losses.penalties import orthonormal as orthonormal
from mercer.losses.penalties import tikhonov as tikhonov
from mercer.losses.penalties import unit_norms as unit_norms
from mercer.losses.simclr import simclr as simclr
from mercer.losses.simple_contrastive import simple_contrastive as simple_contrastive
from mercer.losses.spectral_contrastive import spectral_contrastive as spectral_contrastive
from mercer.losses.vicreg import vicreg as vicreg
from mercer.losses.view_coding_rate import view_coding_rate as view_coding_rate


def is_of_views(value: Any) -> bool:
    """Whether `value` is a function of the views' embeddings in which every other parameter has a default."""
    if not inspect.isfunction(value):
        return False
    views, *others = inspect.signature(value).parameters.values()
    return views.kind is views.VAR_POSITIONAL and all(p.default is not p.empty for p in others)


OF_VIEWS: dict[str, Callable[..., Tensor]] = {
    name: value for name, value in sorted(globals().items()) if name != "is_of_views" and is_of_views(value)
}

__all__ = sorted(
    name
    for name, value in globals().items()
    if name != "is_of_views" and getattr(value, "__module__", "").startswith(__name__)
)
