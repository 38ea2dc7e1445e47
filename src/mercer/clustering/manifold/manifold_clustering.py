"""Manifold clustering: features in which each manifold is a subspace, learned together with memberships."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.checks import finite_answers
from mercer.clustering.affinity import indicator
from mercer.clustering.manifold.base import _ManifoldEstimator
from mercer.clustering.manifold.choice import CLUSTERINGS, Clustered, Judge
from mercer.clustering.manifold.history import Looks
from mercer.clustering.manifold.memberships import Memberships
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.parameters import check_memberships, checkpoint_of, digest_of, second_recipe_of
from mercer.clustering.manifold.projections import PROJECTIONS
from mercer.clustering.manifold.training import linearize
from mercer.clustering.trees import cluster_tree
from mercer.networks.evaluation import by_blocks
from mercer.networks.heads import Entrance
from mercer.rows import wherever_rows_are
from mercer.training import Recipe, Training, fit_progress
from mercer.training.states import snapshot
from mercer.views.sources import ViewSource

# The start is kept if its rate reduction is larger by more than this, so that rounding does not decide between equals.
TIE = 1e-6


class Stage(NamedTuple):
    """The result of one stage of the training: its name, its η, its clusters, weights and epochs."""

    name: str
    eta: float | None
    clusters: Clustered
    weights: dict[str, Tensor]
    training: Training
    looks: Looks


class ManifoldClustering(_ManifoldEstimator):
    """Cluster samples that lie near manifolds, and learn features in which each manifold is a subspace (MLC).

    A network has two heads, features z and codes c, both of length 1. The first stage, the start, learns features from
    views alone: views of one sample should agree, and different samples should spread out (5). The second stage trains
    both heads to maximize R - R_c (4). The features of all samples should fill the space, whereas those of each sample
    and of similar ones should lie in few directions; similarity is the doubly stochastic membership of the codes. The
    eigenvectors of the membership give clusters (Algorithm 1 of manifold-linearizing-clustering; ALGORITHMS has the
    formulas). Samples then move to the cluster with which their code is shortest.

    Nothing is chosen by labels. Of several clusterings, the one with the largest R - R_c is taken, measured in the
    features of the start, which do not depend on clusters. The second stage can make clusters worse. The clusters of
    both stages are therefore kept, and `labels_` holds the better ones.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    n_components : int or None, default=None
        d, the dimension of features and codes. It should be more than 1: a single direction cannot separate clusters.
        None takes 32, or as many as the backbone gives, but at least two for each cluster.
    backbone : None, "mlp", "resnet18" or torch.nn.Module, default=None
        The network before the heads; see `mercer.networks.backbones.check_backbone`. None passes on the rows.
    hidden : int, default=512
        The width of the heads, each an affine map, a ReLU and an affine map.
    affinity : {"squared", "inner"}, default="squared"
        Whether memberships are computed from the squared inner products of codes, for which opposite codes are alike,
        or from the inner products, as in the paper.
    projection : {"entropy", "squares"}, default="entropy"
        Which doubly stochastic matrix is nearest: Sinkhorn's, as in the paper, or the sparse one of least squares; see
        `mercer.clustering.manifold.projections`.
    eta : float or "auto", default="auto"
        η of the memberships; a small η makes them sharp. A number is used in the second stage and in line 10, as in the
        paper. "auto" trains with 0.175 and, if that changes the clusters, also with 0.12, and keeps the better result.
        The memberships from which the final clusters are found then have an η of their own, from 0.02 to 0.25.
    epsilon_start : float, default=0.4472135954999579
        ε of the coding rate of the start: ε^2 is 0.2.
    epsilon : float, default=0.31622776601683794
        ε of the coding rates of the second stage: ε^2 is 0.1.
    agreement : float or "auto", default="auto"
        λ of the start: the weight of the agreement of views; see `mercer.losses.view_coding_rate`. "auto" is the upper
        bound of R, d log(1 + 1 / ε^2), so that both terms have similar weight in any dimension: 57 for d = 32.
    gamma : float, default=0.05
        γ, the weight of the term that spreads memberships.
    regularizer : {"squared", "entropy"}, default="squared"
        The norm of this term; see `mercer.losses.mlc`.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn, as in `KernelEmbedding`.
    n_views : int, default=2
        Number of views of each sample in a batch, over which features and memberships are averaged (6).
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that are given as flat rows.
    standardize : bool, default=True
        Whether each column, or channel of images, is scaled to variance 1 before the network. False scales all of them
        by one number, which suits features with a common scale, such as principal components.
    freeze : bool, default=True
        Whether the backbone is kept fixed in the second stage, as in the paper.
    start_recipe : Recipe or None, default=None
        How the start is trained, from random weights. None begins in closed form: the last layer distinguishes samples
        from each other as well as a linear discriminant can, given their views. It then makes at most 600 steps of Adam
        at a rate of 0.003 with a weight decay of 0.0001, on batches of 512, and stops early if the loss has not fallen
        for 50 steps.
    recipe : Recipe or None, default=None
        How the second stage is trained; a batch updates both heads. None is 75 steps of SGD at a rate of 0.01 with
        momentum 0.9 and a weight decay of 0.0005, on batches of 512.
    assign_labels : {"rate", "spectral"}, default="rate"
        How clusters are found at the end of a stage. "spectral" uses the eigenvectors of the memberships, as in the
        paper (if there are several η, the one whose clusters have the largest R - R_c). "rate" takes these clusters
        at every η, and those of 50 runs of k-means on the codes (fewer for more than ten clusters). It moves samples to
        clusters with which their code is shorter until none gains, and keeps the clusters with the largest R - R_c.
    result : {"auto", "start", "final"}, default="auto"
        Which stage the model keeps. Both are trained in any case.
    max_rows : int, default=3000
        The largest number of rows for the spectral step, drawn at random. Each of the others joins the cluster in which
        its membership is largest.
    checkpoint : path or None, default=None
        Files that keep the state of the trainings, with ".start", ".final-0.175" and so on added to their name. A fit
        that was killed continues from there.
    random_state : int, RandomState instance or None, default=None
        Determines initial weights, batches, views, and the rows of the spectral step.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    drawn_rows_ : ndarray of shape (n,) or None
        The row numbers that the labels belong to, if these rows were drawn from files or from Dask.
    labels_ : ndarray of shape (n,)
        The cluster of each row.
    start_labels_, final_labels_ : ndarrays of shape (n,)
        The clusters after each stage.
    stage_ : {"start", "final"}
        The stage whose clusters are `labels_`.
    candidates_ : list of dict
        What was compared: stage, trained_eta, eta (of the memberships), rate_reduction (R - R_c of the clusters in the
        features of the start), chosen.
    eta_ : float
        η of the memberships.
    eigenvalues_ : ndarray
        The smallest eigenvalues of the Laplacian of the membership.
    history_ : list of dict
        The epochs of both stages: stage, epoch, loss, learning_rate and, for some epochs, rate (R), cluster_rate (R_c),
        rank (of all features) and ranks (of each cluster's features).
    weights_ : dict of ndarray
        The weights of the network.
    codes_ : ndarray of shape (m, d)
        The codes of the rows in the spectral step. `code_labels_` are their clusters, and `code_scales_` the terms that
        the projection has added to their rows: for "entropy" the logarithms of their scales.
    sample_shape_ : tuple of int
        The shape of one sample.
    n_features_in_ : int

    Notes
    -----
    A step on a batch of b samples takes the time of the network and O(b^2 d^2 + b d^3). The spectral step takes some
    hundred products with an m x m matrix. Moving samples takes O(k (m d^2 + d^3)) a round, with some hundred rounds in
    total. Weights are float32, whatever the rows are. If there are more than 2000 columns and fewer rows than columns,
    rows are represented in the coordinates of their span (`mercer.networks.heads.Entrance`).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ManifoldClustering
    >>> from mercer.training import Recipe
    >>> random = np.random.default_rng(0)
    >>> angle = random.uniform(0, 2 * np.pi, 100)
    >>> circle = np.stack([np.cos(angle), np.sin(angle), np.zeros(100)], axis=1)
    >>> X = np.vstack([circle, [0, 0, 1] + 0 * circle]) + 0.05 * random.normal(size=(200, 3))
    >>> few = Recipe(n_epochs=100, learning_rate=1e-2)
    >>> model = ManifoldClustering(2, hidden=50, start_recipe=few, recipe=few, random_state=0).fit(X)
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
        affinity: str = "squared",
        projection: str = "entropy",
        eta: float | str = "auto",
        epsilon_start: float = 0.2**0.5,
        epsilon: float = 0.1**0.5,
        agreement: float | str = "auto",
        gamma: float = 0.05,
        regularizer: str = "squared",
        augment: Any = "auto",
        n_views: int = 2,
        image_shape: Any = None,
        standardize: bool = True,
        freeze: bool = True,
        start_recipe: Recipe | None = None,
        recipe: Recipe | None = None,
        assign_labels: str = "rate",
        result: str = "auto",
        max_rows: int = 3000,
        checkpoint: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.backbone = backbone
        self.hidden = hidden
        self.affinity = affinity
        self.projection = projection
        self.eta = eta
        self.epsilon_start = epsilon_start
        self.epsilon = epsilon
        self.agreement = agreement
        self.gamma = gamma
        self.regularizer = regularizer
        self.augment = augment
        self.n_views = n_views
        self.image_shape = image_shape
        self.standardize = standardize
        self.freeze = freeze
        self.start_recipe = start_recipe
        self.recipe = recipe
        self.assign_labels = assign_labels
        self.result = result
        self.max_rows = max_rows
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device

    def _check_own(self) -> None:
        check_memberships(self)

    def _memberships(self, eta: float) -> Memberships:
        return Memberships(float(eta), self.affinity, self.projection)

    def _fit(self, X: np.ndarray, source: ViewSource) -> "ManifoldClustering":
        some = np.sort(np.random.RandomState(self.seed_).permutation(len(X))[: self.max_rows])
        network = self._network(Entrance.learned(X, self.sample_shape_, self.standardize, self.backbone))
        etas = PROJECTIONS[self.projection].trained if self.eta == "auto" else (float(self.eta),)
        whole = self._init_callback_context(task_name="fit", max_subtasks=1 + len(etas))
        whole.call_on_fit_task_begin(estimator=self, X=X, y=None)
        see = partial(Looks, network, as_tensor(X[some], device=self.device), self.epsilon)
        data = "" if self.checkpoint is None else digest_of(self, X, source)

        looks = see()
        training = self._start(network, source, whole, data, looks)  # line 1
        network.copy_head()  # line 2
        # Each stage would look best in its own features. Those of the start do not depend on clusters; its codes are
        # equal to its features.
        judge = Judge(self._codes(network, X[some]), self.epsilon)
        start = Stage("start", None, self._clustered(judge.Z, judge), snapshot(network), training, looks)

        finals: list[Stage] = []
        recipe = second_recipe_of(self, len(X))
        for eta in etas:
            # If the second stage has not changed the clusters of the start, another η is not tried.
            if finals and _are_same(finals[-1].clusters.labels, start.clusters.labels):
                break
            network.load_state_dict(start.weights)
            looks = see(self._memberships(eta))
            with fit_progress(self, recipe.n_epochs, within=whole, task_name="final") as progress:
                training = linearize(  # lines 3 to 9
                    network,
                    source,
                    recipe,
                    self._memberships(eta),
                    epsilon=self.epsilon,
                    gamma=self.gamma,
                    regularizer=self.regularizer,
                    freeze=self.freeze,
                    seed=self.seed_,
                    progress=looks.also(progress),
                    **checkpoint_of(self, f"final-{eta!r}", data),
                )
            found = self._clustered(self._codes(network, X[some]), judge)  # line 10
            finals.append(Stage("final", eta, found, snapshot(network), training, looks))

        self._keep(start, finals, X, some)
        whole.call_on_fit_task_end(estimator=self, X=X, y=None, reconstruction_attributes=None)
        return self

    def _clustered(self, C: Tensor, judge: Judge) -> Clustered:
        etas = PROJECTIONS[self.projection].sharpest if self.eta == "auto" else (float(self.eta),)
        candidates = [self._memberships(eta) for eta in etas]
        return CLUSTERINGS[self.assign_labels](C, self.n_clusters, candidates, self.seed_, judge)

    def _keep(self, start: Stage, finals: list[Stage], X: np.ndarray, some: np.ndarray) -> None:
        """Set the fitted attributes to those of the stage that is kept."""
        final = max(finals, key=lambda stage: stage.clusters.reduction)
        preferred = "start" if start.clusters.reduction > final.clusters.reduction + TIE else "final"
        self.stage_ = preferred if self.result == "auto" else self.result
        kept = {"start": start, "final": final}[self.stage_]
        # The stage that is kept comes last, so that its attributes are those that remain.
        for stage in sorted((start, final), key=lambda stage: stage is kept):
            C, spectral = stage.clusters.C, stage.clusters.spectral
            self.weights_ = {name: value.cpu().numpy() for name, value in stage.weights.items()}
            self.eta_, self.eigenvalues_ = spectral.memberships.eta, spectral.eigenvalues
            self.codes_, self.code_labels_ = C.cpu().numpy(), stage.clusters.labels
            self.code_scales_ = spectral.memberships.potentials(C, spectral.P).cpu().numpy()
            setattr(self, f"{stage.name}_labels_", self._extended(stage.clusters.labels, X, some))
        self.labels_ = getattr(self, f"{self.stage_}_labels_")
        self.candidates_ = [
            {
                "stage": stage.name,
                "trained_eta": stage.eta,
                "eta": stage.clusters.spectral.memberships.eta,
                "rate_reduction": stage.clusters.reduction,
                "chosen": stage is kept,
            }
            for stage in (start, *finals)
        ]
        self.history_ = [
            record
            for stage in (start, final)
            for record in stage.looks.records(stage.name, stage.training, self.labels_[some])
        ]

    def _extended(self, labels: np.ndarray, X: np.ndarray, some: np.ndarray) -> np.ndarray:
        """Return the clusters of all rows: the given labels for some of them, and by memberships for the others."""
        everyone = np.empty(len(X), dtype=np.int64)
        everyone[some] = labels
        others = np.setdiff1d(np.arange(len(X)), some)
        if len(others):
            everyone[others] = self._votes(X[others]).argmax(axis=1)
        return everyone

    # ---- use --------------------------------------------------------------------------------------------------

    @wherever_rows_are
    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster in which each sample has the largest membership.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        return self._votes(self._rows(X)).argmax(axis=1)

    @wherever_rows_are
    def cut(self, X: Any, n_clusters: int) -> np.ndarray:
        """Return the clusters of samples for another number of clusters: unions of clusters, or parts of them.

        Clusterings are nested. At the number of the fit they equal those of `predict` (see `mercer.clustering.trees`).

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        n_clusters : int
            From 1 to the number of parts, about four for each cluster.
        """
        check_is_fitted(self)
        P = self._memberships(self.eta_).of(as_tensor(self.codes_, device=self.device)).cpu().double().numpy()
        tree = cluster_tree((P + P.T) / 2.0, self.code_labels_, self.seed_)
        clusters = tree.cut(n_clusters)
        # A sample is assigned to a cluster first, and then to a part of it: cuts are nested for new samples too.
        votes = self._votes(self._rows(X), tree.parts)
        homes = np.zeros(votes.shape[1], dtype=np.int64)
        homes[tree.parts] = self.code_labels_
        best = (votes @ indicator(homes)).argmax(axis=1)
        return clusters[np.where(homes == best[:, None], votes, -1.0).argmax(axis=1)]

    @finite_answers
    def membership(self, X: Any) -> np.ndarray:
        """Return the doubly stochastic membership of samples to each other, of shape (n, n).

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        X = self._rows(X)
        P = self._memberships(self.eta_).of(self._codes(self._fitted_network(), X))
        return P.cpu().numpy().astype(X.dtype, copy=False)

    def _codes(self, network: ManifoldNetwork, X: np.ndarray) -> Tensor:
        network.eval()
        return by_blocks(network.codes, X, network.center)

    def _votes(self, X: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
        """Return the memberships of samples in clusters, or in other groups of codes; each row sums to 1."""
        network = self._fitted_network()
        C, potentials = (as_tensor(part, device=self.device) for part in (self.codes_, self.code_scales_))
        members = torch.from_numpy(indicator(self.code_labels_ if groups is None else groups)).to(C)

        def votes(x: Tensor) -> Tensor:
            return self._memberships(self.eta_).rows(network.codes(x), C, potentials) @ members

        return by_blocks(votes, X, network.center).cpu().numpy()


def _are_same(labels: np.ndarray, others: np.ndarray) -> bool:
    """Whether two clusterings are the same up to the numbering of their clusters."""
    pairs = np.unique(np.stack([labels, others]), axis=1).shape[1]
    return pairs == len(np.unique(labels)) == len(np.unique(others))
