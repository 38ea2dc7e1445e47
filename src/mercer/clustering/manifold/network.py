"""The network of manifold clustering: a backbone with two heads, one for features and one for codes (Figure 2)."""

import copy

from torch import Tensor, nn

from mercer.losses.directions import unit
from mercer.networks.heads import Entrance, FeatureNetwork


class ManifoldNetwork(FeatureNetwork):
    """Rows -> features z and codes c on the unit sphere of R^d.

    Features are what is linearized; codes say which points belong together. Both heads are an affine map, a ReLU and an
    affine map; that of the codes begins as a copy of that of the features.

    Parameters
    ----------
    backbone : nn.Module
        Standardized flat rows -> (n, p).
    width : int
        p.
    n_components : int
        d.
    hidden : int
        The width of the heads.
    entrance : Entrance
        What rows go through first.
    seed : int
        Draws the weights of the heads.
    """

    def __init__(
        self,
        backbone: nn.Module,
        width: int,
        n_components: int,
        hidden: int,
        entrance: Entrance,
        seed: int,
    ) -> None:
        super().__init__(backbone, width, n_components, hidden, entrance, seed)
        self.cluster_head: nn.Module = copy.deepcopy(self.feature_head)

    def represent(self, x: Tensor) -> Tensor:
        """Return what the heads see, of shape (n, p); rows are standardized in their own precision."""
        rows = ((x - self.center) / self.scale).to(next(self.feature_head.parameters()).dtype)
        return self.backbone(self._in_span(rows))

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return z and c of rows: the backbone works once for both heads."""
        seen = self.represent(x)
        return unit(self.feature_head(seen), dim=1), unit(self.cluster_head(seen), dim=1)

    def codes(self, x: Tensor) -> Tensor:
        """Return c of rows, of shape (n, d)."""
        return unit(self.cluster_head(self.represent(x)), dim=1)

    def copy_head(self) -> None:
        """Let codes be features (line 2 of Algorithm 1)."""
        self.cluster_head.load_state_dict(self.feature_head.state_dict())
