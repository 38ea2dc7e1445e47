"""Coding rates and ranks of the features at some epochs of a training."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.manifold.memberships import Memberships
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.losses import coding_rate, pairwise_coding_rate
from mercer.metrics import numerical_rank
from mercer.training import Training
from mercer.training.progress import Progress

# The largest numbers of rows, and of epochs of a stage beside its last one, for which rates and ranks are computed.
ROWS, LOOKS = 512, 20
# The share of the squared singular values that the directions counted by the numerical rank must contain.
ENERGY = 0.95


class Looks:
    """A record of the features at some epochs of a stage.

    Parameters
    ----------
    network : ManifoldNetwork
        The network that is trained.
    rows : tensor of shape (n, D)
        At most 512 rows are used, at equal distances, since rows may be sorted by cluster.
    epsilon : float
        ε, the same for both stages so that their rates are comparable.
    memberships : Memberships or None
        How codes become memberships; None in the first stage, which has none.
    """

    def __init__(
        self, network: ManifoldNetwork, rows: Tensor, epsilon: float, memberships: Memberships | None = None
    ) -> None:
        self.network, self.epsilon, self.memberships = network, epsilon, memberships
        self.places = np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).round().astype(np.int64)
        self.rows = rows[torch.from_numpy(self.places).to(rows.device)]
        self.found: dict[int, Tensor] = {}
        self.codes: dict[int, Tensor] = {}

    def also(self, progress: Progress) -> Progress:
        """Return a progress function that also records the features at the end of some epochs."""

        def both(epoch: int, n_epochs: int, record: dict[str, Any] | None) -> bool | None:
            if record is not None and (epoch % math.ceil(n_epochs / LOOKS) == 0 or epoch == n_epochs - 1):
                self._look(epoch)
            return progress(epoch, n_epochs, record)

        return both

    def records(self, stage: str, training: Training, labels: np.ndarray) -> list[dict[str, Any]]:
        """Return the epochs of a training, with rates and ranks for those in which the features were recorded.

        Epochs before a training was resumed have none.

        Parameters
        ----------
        stage : str
            The name of the stage, which is added to each record.
        training : Training
        labels : ndarray of shape (n,)
            The clusters of the rows, whose ranks are computed.
        """
        return [{"stage": stage, **record, **self._seen(record["epoch"], labels)} for record in training.history]

    def _look(self, epoch: int) -> None:
        modes = {module: module.training for module in self.network.modules()}
        self.network.eval()
        with torch.no_grad():
            Z = self.network.features(self.rows)
            if bool(torch.isfinite(Z).all()):
                self.found[epoch] = Z
                if self.memberships is not None:
                    self.codes[epoch] = self.network.codes(self.rows)
        for module, mode in modes.items():
            module.training = mode

    @torch.no_grad()
    def _seen(self, epoch: int, labels: np.ndarray) -> dict[str, Any]:
        if epoch not in self.found:
            return {}
        Z = self.found[epoch]
        own = labels[self.places]
        clusters = [Z[torch.from_numpy(own == cluster)] for cluster in range(int(labels.max()) + 1)]
        seen: dict[str, Any] = {
            "rate": float(coding_rate(Z, epsilon=self.epsilon)),
            "rank": numerical_rank(Z.cpu().numpy(), energy=ENERGY),
            "ranks": [numerical_rank(part.cpu().numpy(), energy=ENERGY) if len(part) else 0 for part in clusters],
        }
        if self.memberships is not None:
            P = self.memberships.of(self.codes[epoch])
            seen["cluster_rate"] = float(pairwise_coding_rate(Z, P, epsilon=self.epsilon))
        return seen
