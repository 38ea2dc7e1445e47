"""The two stages of manifold clustering: features from views alone, then features and memberships together."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.manifold.memberships import membership
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.losses import mlc, view_coding_rate
from mercer.networks.evaluation import guarded
from mercer.training import Recipe, Training, train
from mercer.views.sources import ViewSource

# Coding rates of fewer rows say nothing.
MIN_BATCH = 2


def start_features(
    network: ManifoldNetwork,
    source: ViewSource,
    recipe: Recipe,
    *,
    epsilon: float,
    agreement: float,
    seed: int,
    held_out: ViewSource | None = None,
    **options: Any,
) -> Training:
    """Learn features whose views agree while samples spread out: objective (5), line 1 of Algorithm 1.

    The network is trained in place, but for its cluster head.

    Parameters
    ----------
    network : ManifoldNetwork
    source : DrawnViews or GivenViews
    recipe : Recipe
    epsilon : float
        ε of the coding rate.
    agreement : float
        λ.
    seed : int
    held_out : DrawnViews or GivenViews, optional
        Views of samples that are not trained on. The best epoch is then the one of the smallest loss on them: a head
        that goes on spreading the samples it sees learns them one by one, and forgets what they have in common.
    **options
        As in `mercer.training.train`.
    """
    like = network.center

    def loss_of(views: list[Tensor]) -> Tensor:
        features = [network.features(view) for view in views]
        return guarded(features, lambda: view_coding_rate(*features, epsilon=epsilon, agreement=agreement))

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        return loss_of(source.batch(rows.numpy(), generator, like))

    def validation(judges: ViewSource, generator: torch.Generator) -> float:
        network.eval()
        return float(loss_of(judges.batch(np.arange(judges.n_rows), generator, like)))

    if held_out is not None:
        options["validation"] = partial(validation, held_out)
    with _training(network, frozen=(network.cluster_head,)):
        return train(network, batch_loss, source.n_rows, recipe, seed=seed, min_batch=MIN_BATCH, **options)


def linearize(
    network: ManifoldNetwork,
    source: ViewSource,
    recipe: Recipe,
    *,
    epsilon: float,
    gamma: float,
    regulariser: str,
    eta: float,
    affinity: str,
    freeze: bool,
    seed: int,
    **options: Any,
) -> Training:
    """Learn features and memberships together: objective (4), lines 3 to 9 of Algorithm 1.

    Features are the mean of those of the views, scaled to length 1, and memberships the mean of theirs (6). The heads
    take turns, a batch each: a step moves one, with the other held constant.

    Parameters
    ----------
    network : ManifoldNetwork
        Trained in place.
    source : DrawnViews or GivenViews
    recipe : Recipe
    epsilon, gamma, regulariser
        As in `mercer.losses.mlc`.
    eta, affinity
        As in `mercer.clustering.manifold.memberships.membership`.
    freeze : bool
        Whether the backbone stays as it is, as in the paper.
    seed : int
    **options
        As in `mercer.training.train`.
    """
    like = network.center

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        moves_features = int(network.steps) % 2 == 0
        views = source.batch(rows.numpy(), generator, like)
        with torch.set_grad_enabled(moves_features):
            features = [network.features(view) for view in views]
        with torch.set_grad_enabled(not moves_features):
            codes = [network.codes(view) for view in views]

        def loss() -> Tensor:
            memberships = [membership(C, eta, affinity) for C in codes]
            return mlc(
                torch.stack(features).mean(dim=0),
                torch.stack(memberships).mean(dim=0),
                epsilon=epsilon,
                gamma=gamma,
                regulariser=regulariser,
            )

        return guarded([*features, *codes], loss)

    def after_step() -> None:
        network.steps += 1

    with _training(network, frozen=(network.backbone,) if freeze else ()):
        return train(
            network, batch_loss, source.n_rows, recipe, seed=seed, min_batch=MIN_BATCH, after_step=after_step, **options
        )


class _training:
    """A network in training mode whose frozen parts are not trained: they keep their weights and running statistics."""

    def __init__(self, network: ManifoldNetwork, frozen: tuple[torch.nn.Module, ...]) -> None:
        self.network, self.frozen = network, frozen

    def __enter__(self) -> None:
        self.network.train()
        for part in self.frozen:
            part.eval()
        # Those that the user froze in a backbone of theirs stay so.
        self.held = [weight for part in self.frozen for weight in part.parameters() if weight.requires_grad]
        for weight in self.held:
            weight.requires_grad_(False)

    def __exit__(self, *_: Any) -> None:
        for weight in self.held:
            weight.requires_grad_(True)
        self.network.eval()
