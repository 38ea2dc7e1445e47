"""The network of manifold clustering: a backbone with two heads, one for features and one for codes (Figure 2)."""

import copy

from torch import Tensor, nn

from mercer.losses.directions import unit
from mercer.networks.heads import Entrance, FeatureNetwork


class ManifoldNetwork(FeatureNetwork):
    """Map rows to features z and codes c, both on the unit sphere of R^d.

    In the features each manifold becomes a subspace; the codes determine which points belong together. Both heads
    consist of an affine map, a ReLU and an affine map. The head of the codes starts as a copy of that of the features.

    Parameters
    ----------
    backbone : nn.Module
        Maps standardized flat rows to an array of shape (n, p).
    width : int
        p.
    n_components : int
        d.
    hidden : int
        The width of the hidden layer of the heads.
    entrance : Entrance
        How rows are centered and scaled before the backbone.
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
        """Return the input of the heads, of shape (n, p). Rows are standardized in their own precision."""
        rows = ((x - self.center) / self.scale).to(next(self.feature_head.parameters()).dtype)
        return self.backbone(self._in_span(rows))

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return z and c of rows; the backbone is evaluated once for both."""
        seen = self.represent(x)
        return unit(self.feature_head(seen), dim=1), unit(self.cluster_head(seen), dim=1)

    def codes(self, x: Tensor) -> Tensor:
        """Return c of rows, of shape (n, d)."""
        return unit(self.cluster_head(self.represent(x)), dim=1)

    def copy_head(self) -> None:
        """Copy the weights of the feature head to the cluster head, so that codes equal features (Alg. 1, line 2)."""
        self.cluster_head.load_state_dict(self.feature_head.state_dict())
