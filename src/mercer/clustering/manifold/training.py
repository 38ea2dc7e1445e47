"""The two stages of manifold clustering: features from views alone, then features and memberships together."""

from typing import Any

import torch
from torch import Tensor

from mercer.clustering.manifold.memberships import Memberships
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.losses import mlc, view_coding_rate
from mercer.networks.evaluation import guarded
from mercer.training import Recipe, Training, train
from mercer.views.sources import ViewSource

# The coding rate of a single row has no meaning.
MIN_BATCH = 2


def start_features(
    network: ManifoldNetwork,
    source: ViewSource,
    recipe: Recipe,
    *,
    epsilon: float,
    agreement: float,
    seed: int,
    **options: Any,
) -> Training:
    """Learn features that agree between views of a sample and differ between samples (objective (5); Alg. 1, line 1).

    Parameters
    ----------
    network : ManifoldNetwork
        Trained in place, except for its cluster head.
    source : DrawnViews or GivenViews
    recipe : Recipe
    epsilon : float
        ε of the coding rate.
    agreement : float
        λ, the weight of the agreement.
    seed : int
    **options
        As in `mercer.training.train`.
    """

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        features = [network.features(view) for view in source.batch(rows.numpy(), generator, network.center)]
        return guarded(features, lambda: view_coding_rate(*features, epsilon=epsilon, agreement=agreement))

    with training_mode(network, frozen=(network.cluster_head,)):
        return train(network, batch_loss, source.n_rows, recipe, seed=seed, min_batch=MIN_BATCH, **options)


def linearize(
    network: ManifoldNetwork,
    source: ViewSource,
    recipe: Recipe,
    memberships: Memberships,
    *,
    epsilon: float,
    gamma: float,
    regularizer: str,
    freeze: bool,
    seed: int,
    **options: Any,
) -> Training:
    """Learn features and memberships together (objective (4); Alg. 1, lines 3 to 9).

    The features are the mean of the features of the views, scaled to length 1, and the memberships are the mean of
    those of the views (6). Each batch updates both heads once (appendix D.2).

    Parameters
    ----------
    network : ManifoldNetwork
        Trained in place.
    source : DrawnViews or GivenViews
    recipe : Recipe
    memberships : Memberships
        The rule by which codes become Π.
    epsilon, gamma, regularizer
        As in `mercer.losses.mlc`.
    freeze : bool
        Whether the backbone is kept fixed, as in the paper.
    seed : int
    **options
        As in `mercer.training.train`.
    """

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        both = [network.both(view) for view in source.batch(rows.numpy(), generator, network.center)]
        features, codes = ([pair[i] for pair in both] for i in (0, 1))

        def loss() -> Tensor:
            Z = torch.stack(features).mean(dim=0)
            P = torch.stack([memberships.of(C) for C in codes]).mean(dim=0)
            return mlc(Z, P, epsilon=epsilon, gamma=gamma, regularizer=regularizer)

        return guarded([*features, *codes], loss)

    with training_mode(network, frozen=(network.backbone,) if freeze else ()):
        return train(network, batch_loss, source.n_rows, recipe, seed=seed, min_batch=MIN_BATCH, **options)


class training_mode:
    """A context in which a network is in training mode, and its frozen parts keep weights and running statistics."""

    def __init__(self, network: torch.nn.Module, frozen: tuple[torch.nn.Module, ...]) -> None:
        self.network, self.frozen = network, frozen

    def __enter__(self) -> None:
        self.network.train()
        for part in self.frozen:
            part.eval()
        # Weights that the user has frozen in their own backbone remain frozen afterwards.
        self.newly_frozen = [weight for part in self.frozen for weight in part.parameters() if weight.requires_grad]
        for weight in self.newly_frozen:
            weight.requires_grad_(False)

    def __exit__(self, *_: Any) -> None:
        for weight in self.newly_frozen:
            weight.requires_grad_(True)
        self.network.eval()
