"""Manifold clustering by memberships of samples in clusters, NMCE: the method with which MLC is compared."""

from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from mercer.checks import check_count
from mercer.clustering.manifold.base import _ManifoldEstimator
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.parameters import agreement_of, checkpoint_of, digest_of
from mercer.clustering.manifold.training import MIN_BATCH, training_mode
from mercer.losses import mcr2, nmce
from mercer.networks.evaluation import arrays_of, by_blocks, guarded
from mercer.networks.heads import Entrance
from mercer.rows import wherever_rows_are
from mercer.training import Recipe, Training, fit_progress, train
from mercer.training.randomness import global_chance_from, seed_of
from mercer.views.sources import ViewSource

# The default recipe by which features and memberships are trained together.
TOGETHER = Recipe(n_epochs=100, batch_size=512, optimizer="adam", learning_rate=1e-3, keep="last")
# Memberships for fixed features: the largest number of rows, the number of steps of Adam, their rate, and ε.
MEMBERSHIP_ROWS, MEMBERSHIP_STEPS, MEMBERSHIP_RATE, MEMBERSHIP_EPSILON = 4096, 200, 0.1, 0.02**0.5
# Memberships are a softmax of a linear map of unit features, multiplied by this so that they can be sharp.
SHARPNESS = 10.0


def memberships_by(head: nn.Module, Z: Tensor) -> Tensor:
    """Return the shares of the clusters in each row of features, of shape (n, k)."""
    return torch.softmax(SHARPNESS * head(Z), dim=1)


def learned_membership(Z: Tensor, n_clusters: int, n_init: int, seed: int) -> nn.Linear:
    """Return the memberships with the largest rate reduction of fixed features, of several random starts.

    Parameters
    ----------
    Z : tensor of shape (n, d)
    n_clusters : int
    n_init : int
    seed : int
    """
    found = []
    for i in range(n_init):
        with global_chance_from(seed_of(seed, "membership", i), torch.device("cpu")):
            head = nn.Linear(Z.shape[1], n_clusters).to(Z)
        optimizer = torch.optim.Adam(head.parameters(), lr=MEMBERSHIP_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, MEMBERSHIP_STEPS)
        for _ in range(MEMBERSHIP_STEPS):
            loss = mcr2(Z, memberships_by(head, Z), epsilon=MEMBERSHIP_EPSILON)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        found.append((float(loss.detach()), head))
    return min(found, key=lambda pair: pair[0])[1]


@torch.no_grad()
def largest_first(head: nn.Linear, labels: np.ndarray) -> None:
    """Renumber the clusters in place, in decreasing order of their size."""
    order = np.argsort(-np.bincount(labels, minlength=head.out_features), kind="stable")
    head.weight.copy_(head.weight[order].clone())
    head.bias.copy_(head.bias[order].clone())


def learn_together(
    network: ManifoldNetwork,
    source: ViewSource,
    recipe: Recipe,
    *,
    epsilon: float,
    agreement: float,
    freeze: bool,
    seed: int,
    **options: Any,
) -> Training:
    """Learn features and memberships together: maximize R - R_c of the mean view, and the agreement of views.

    Parameters
    ----------
    network : ManifoldNetwork
        Trained in place; its cluster head maps features to clusters.
    source : DrawnViews or GivenViews
    recipe : Recipe
    epsilon, agreement
        As in `mercer.losses.nmce`.
    freeze : bool
        Whether the backbone stays as it is.
    seed : int
    **options
        As in `mercer.training.train`.
    """

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        features = [network.features(view) for view in source.batch(rows.numpy(), generator, network.center)]

        def loss() -> Tensor:
            shares = [memberships_by(network.cluster_head, Z) for Z in features]
            return nmce(features, shares, epsilon=epsilon, agreement=agreement)

        return guarded(features, loss)

    with training_mode(network, frozen=(network.backbone,) if freeze else ()):
        return train(network, batch_loss, source.n_rows, recipe, seed=seed, min_batch=MIN_BATCH, **options)


class NMCE(_ManifoldEstimator):
    """Cluster samples near manifolds by their memberships in clusters: neural manifold clustering and embedding.

    Features are first learned from views alone, as in `ManifoldClustering`. The membership of a sample in each cluster
    is a softmax of a linear map of its features. It is initialized at random and trained together with the features to
    maximize R - R_c (Li, Chen, LeCun and Sommer, 2022; equation 2 of manifold-linearizing-clustering).
    `ManifoldClustering` uses memberships between pairs of samples instead, which need no random initialization.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    n_components : int or None, default=None
        d, the dimension of features; as in `ManifoldClustering`.
    backbone : None, "mlp", "resnet18" or torch.nn.Module, default=None
        The network before the head, as in `ManifoldClustering`.
    hidden : int, default=512
        The width of the head.
    epsilon_start : float, default=0.4472135954999579
        ε of the coding rate of the start: ε^2 is 0.2.
    epsilon : float, default=0.4472135954999579
        ε of the coding rates of the second stage, of features and memberships together: ε^2 is 0.2.
    agreement : float or "auto", default="auto"
        λ, the weight of the agreement of views in both stages; as in `ManifoldClustering`.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn, as in `KernelEmbedding`.
    n_views : int, default=2
        Number of views of each sample in a batch.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that are given as flat rows.
    standardize : bool, default=True
        Whether each column, or channel of images, is scaled to variance 1. False scales all of them by one number.
    freeze : bool, default=True
        Whether the backbone is kept fixed in the second stage.
    n_init : int, default=10
        Number of random initial memberships that are trained for fixed features. The one with the largest R - R_c is
        trained further, together with the features.
    start_recipe : Recipe or None, default=None
        How the features are first trained from views alone, as in `ManifoldClustering`.
    recipe : Recipe or None, default=None
        How features and memberships are trained together. None is 100 epochs of Adam at a rate of 0.001.
    checkpoint : path or None, default=None
        Files that keep the state of the trainings, with ".start" and ".final" added to their name. A fit that was
        killed continues from there.
    random_state : int, RandomState instance or None, default=None
        Determines initial weights and memberships, batches and views.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    drawn_rows_ : ndarray of shape (n,) or None
        The row numbers that the labels belong to, if these rows were drawn from files or from Dask.
    labels_ : ndarray of shape (n,)
        The cluster of each row.
    start_labels_ : ndarray of shape (n,)
        The clusters by the memberships that were trained for fixed features.
    history_ : list of dict
        The epochs of both stages: stage, epoch, loss, learning_rate.
    weights_ : dict of ndarray
        The weights of the network.
    sample_shape_ : tuple of int
        The shape of one sample.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NMCE
    >>> from mercer.training import Recipe
    >>> random = np.random.default_rng(0)
    >>> angle = random.uniform(0, 2 * np.pi, 100)
    >>> circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(100)], axis=1)
    >>> X = np.vstack([circle, [0, 0, 1] + 0 * circle]) + 0.05 * random.normal(size=(200, 3))
    >>> model = NMCE(2, n_components=3, hidden=50, n_init=2, recipe=Recipe(n_epochs=5), random_state=0).fit(X)
    >>> np.bincount(model.labels_).tolist()
    [100, 100]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        backbone: Any = None,
        hidden: int = 512,
        epsilon_start: float = 0.2**0.5,
        epsilon: float = 0.2**0.5,
        agreement: float | str = "auto",
        augment: Any = "auto",
        n_views: int = 2,
        image_shape: Any = None,
        standardize: bool = True,
        freeze: bool = True,
        n_init: int = 10,
        start_recipe: Recipe | None = None,
        recipe: Recipe | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.backbone = backbone
        self.hidden = hidden
        self.epsilon_start = epsilon_start
        self.epsilon = epsilon
        self.agreement = agreement
        self.augment = augment
        self.n_views = n_views
        self.image_shape = image_shape
        self.standardize = standardize
        self.freeze = freeze
        self.n_init = n_init
        self.start_recipe = start_recipe
        self.recipe = recipe
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device

    def _check_own(self) -> None:
        check_count("n_init", self.n_init)

    def _fit(self, X: np.ndarray, source: ViewSource) -> "NMCE":
        network = self._network(Entrance.learned(X, self.sample_shape_, self.standardize, self.backbone))
        recipe = TOGETHER if self.recipe is None else self.recipe
        whole = self._init_callback_context(task_name="fit", max_subtasks=2)
        whole.call_on_fit_task_begin(estimator=self, X=X, y=None)
        data = "" if self.checkpoint is None else digest_of(self, X, source)

        start = self._start(network, source, whole, data)
        some = np.random.RandomState(self.seed_).permutation(len(X))[:MEMBERSHIP_ROWS]
        Z = by_blocks(network.features, X[np.sort(some)], network.center)
        head = learned_membership(Z, self.n_clusters, self.n_init, self.seed_)
        network.cluster_head = head
        start_labels = self._labels(network, X)
        with fit_progress(self, recipe.n_epochs, within=whole, task_name="final") as progress:
            final = learn_together(
                network,
                source,
                recipe,
                epsilon=self.epsilon,
                agreement=agreement_of(self, network),
                freeze=self.freeze,
                seed=self.seed_,
                progress=progress,
                **checkpoint_of(self, "final", data),
            )

        # Clusters that have lost all their samples are numbered last, so that the labels in use are 0, 1, ...
        largest_first(head, self._labels(network, X))
        self.start_labels_, self.labels_ = start_labels, self._labels(network, X)
        self.weights_ = arrays_of(network)
        stages = (("start", start), ("final", final))
        self.history_ = [{"stage": name, **record} for name, training in stages for record in training.history]
        whole.call_on_fit_task_end(estimator=self, X=X, y=None, reconstruction_attributes=None)
        return self

    def _network(self, entrance: Entrance) -> ManifoldNetwork:
        network = super()._network(entrance)
        # Only the shape of this layer matters, since the fit sets its weights. On "meta" it draws no random numbers.
        head = nn.Linear(network.n_components, self.n_clusters, device="meta").to_empty(device="cpu")
        network.cluster_head = head.to(device=self.device, dtype=torch.float32)
        return network

    def _labels(self, network: ManifoldNetwork, X: np.ndarray) -> np.ndarray:
        return _shares(network, X).argmax(axis=1)

    @wherever_rows_are
    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster in which each sample has the largest membership.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        return self._labels(self._fitted_network(), self._rows(X))

    @wherever_rows_are
    def membership(self, X: Any) -> np.ndarray:
        """Return the membership of each sample in each cluster, of shape (n, k).

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        return _shares(self._fitted_network(), self._rows(X))


def _shares(network: ManifoldNetwork, X: np.ndarray) -> np.ndarray:
    network.eval()
    shares = by_blocks(lambda x: memberships_by(network.cluster_head, network.features(x)), X, network.center)
    return shares.cpu().numpy()
