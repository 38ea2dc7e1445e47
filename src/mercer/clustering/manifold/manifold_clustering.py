"""Clusters that are manifolds: features that make each of them a subspace, learned beside the memberships."""

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

# The start is kept if its rate reduction is larger by more than this: rounding is not to choose between equal clusters.
TIE = 1e-6


class Stage(NamedTuple):
    """What one stage of the training left: its name, its η, its clusters, weights and epochs."""

    name: str
    eta: float | None
    clusters: Clustered
    weights: dict[str, Tensor]
    training: Training
    looks: Looks


class ManifoldClustering(_ManifoldEstimator):
    """Cluster samples that lie near manifolds, and learn features in which each manifold is a subspace (MLC).

    A network has two heads: features z and codes c, both of length 1. First features are learned from views alone:
    views of a sample agree, samples spread out (5). Then both heads are trained to maximize R - R_c: the features of
    all samples are to fill the space, those of each sample with its like, weighted by the doubly stochastic
    membership of their codes, are to lie in few directions (4). The eigenvectors of the membership give clusters
    (Algorithm 1 of manifold-linearizing-clustering; ALGORITHMS has the formulas), in which samples then move to where
    their code is shortest.

    Nothing is chosen by labels: of several clusters those are taken whose R - R_c in the features of the start, which
    no clusters have shaped, is largest. The second stage can do harm, so that its clusters are kept beside those of the
    start, and `labels_` holds the better of the two.

    Parameters
    ----------
    n_clusters : int, default=8
    n_components : int or None, default=None
        d, the dimension of features and codes. With 1 there is one direction, and nothing to tell clusters apart. None
        takes 32, or as many as the backbone gives, but two a cluster at least.
    backbone : None, "mlp", "resnet18" or torch.nn.Module, default=None
        What comes before the heads; see `mercer.networks.backbones.check_backbone`. None is the rows as they are.
    hidden : int, default=512
        The width of the heads, each an affine map, a ReLU and an affine map.
    affinity : {"squared", "inner"}, default="squared"
        Whether memberships are made of the squares of inner products of codes, for which opposite codes are alike, or
        of these themselves, as in the paper.
    projection : {"entropy", "squares"}, default="entropy"
        Which doubly stochastic matrix is nearest: Sinkhorn's, as in the paper, or the sparse one of least squares; see
        `mercer.clustering.manifold.projections`.
    eta : float or "auto", default="auto"
        η of the memberships: small ones make them sharp. A number is that of the second stage and of line 10, as in
        the paper. "auto" trains with 0.175 and, where the clusters change, with 0.12, and keeps the better result; the
        memberships that clusters are made of at the end then have an η of their own, from 0.02 to 0.25.
    epsilon_start : float, default=0.4472135954999579
        ε of the coding rate of the start: ε^2 is 0.2.
    epsilon : float, default=0.31622776601683794
        ε of the coding rates of the second stage: ε^2 is 0.1.
    agreement : float or "auto", default="auto"
        λ of the start: how much views must agree; see `mercer.losses.view_coding_rate`. "auto" is the largest that R
        can be, d log(1 + 1 / ε^2), so that both terms weigh alike in any dimension: 57 for d = 32.
    gamma : float, default=0.05
        γ: how much memberships are spread.
    regularizer : {"squared", "entropy"}, default="squared"
        By which norm; see `mercer.losses.mlc`.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn, as in `KernelEmbedding`.
    n_views : int, default=2
        Views of each sample in a batch, over which features and memberships are averaged (6).
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that come as flat rows.
    standardize : bool, default=True
        Whether columns, or channels of images, are brought to variance 1 each before the network sees them; else all
        are scaled alike, as features that have a common scale should be: principal components, for one.
    freeze : bool, default=True
        Whether the backbone stays as the start left it in the second stage, as in the paper.
    start_recipe : Recipe or None, default=None
        How the start is trained, from weights drawn at random. None begins in closed form (the last layer tells samples
        from views of one sample as well as a linear discriminant can) and makes at most 600 steps of Adam at a rate of
        0.003 with a weight decay of 0.0001, on batches of 512: fewer, if the loss has not fallen for 50 of them.
    recipe : Recipe or None, default=None
        How the second stage is trained; a batch updates both heads. None is 75 steps of SGD at a rate of 0.01 with
        momentum 0.9 and a weight decay of 0.0005, on batches of 512.
    assign_labels : {"rate", "spectral"}, default="rate"
        How clusters are found at the end of a stage. "spectral" is the paper's: by the eigenvectors of the memberships
        (at the η whose clusters have the largest R - R_c, if there are several). "rate" takes these clusters at every
        η, and those of 50 runs of k-means on the codes (fewer for more than ten clusters), moves samples to where
        the code is shorter with them until none gains, and keeps the clusters of the largest R - R_c.
    result : {"auto", "start", "final"}, default="auto"
        Which stage the model ends with. Both are trained whatever is kept.
    max_rows : int, default=3000
        How many rows the spectral step sees at most, drawn at random; the others join the cluster that they belong to
        most.
    checkpoint : path or None, default=None
        Files, with ".start", ".final-0.175" and so on added to their name, that keep the state of the trainings: a fit
        that was killed goes on where it was.
    random_state : int, RandomState instance or None, default=None
    device : str, torch.device or None, default=None

    Attributes
    ----------
    drawn_rows_ : ndarray of shape (n,) or None
        The numbers of the rows that labels are of, where these were drawn from more that are elsewhere.
    labels_ : ndarray of shape (n,)
    start_labels_, final_labels_ : ndarrays of shape (n,)
        The clusters after each stage.
    stage_ : {"start", "final"}
        Which of them `labels_` are.
    candidates_ : list of dict
        What was compared: stage, trained_eta, eta (of the memberships), rate_reduction (R - R_c of the clusters in the
        features of the start), chosen.
    eta_ : float
        η of the memberships.
    eigenvalues_ : ndarray
        The smallest of the membership's Laplacian.
    history_ : list of dict
        Epochs of both stages: stage, epoch, loss, learning_rate and, now and then, rate (R), cluster_rate (R_c),
        rank (of all features) and ranks (of each cluster's).
    weights_ : dict of ndarray
        Of the network.
    codes_ : ndarray of shape (m, d)
        Of the rows that the spectral step saw, and `code_labels_` their clusters, `code_scales_` what
        the projection has added to their rows: for "entropy" the logarithms of their scales.
    sample_shape_ : tuple of int
    n_features_in_ : int

    Notes
    -----
    A step on a batch of b samples costs what the network costs and O(b^2 d^2 + b d^3), the spectral step some hundred
    products with a matrix of m x m, and a round of samples moving O(k (m d^2 + d^3)), in some
    hundred rounds over all beginnings. Weights are float32, whatever the rows are. Beyond 2000 columns, fewer rows than
    columns are seen in the coordinates of their span (`mercer.networks.heads.Entrance`).

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
        # Each stage would win in features of its own. Those of the start have seen no clusters; its codes are the same.
        judge = Judge(self._codes(network, X[some]), self.epsilon)
        start = Stage("start", None, self._clustered(judge.Z, judge), snapshot(network), training, looks)

        finals: list[Stage] = []
        recipe = second_recipe_of(self, len(X))
        for eta in etas:
            # Where the second stage leaves the clusters of the start as they are, another η has nothing to change.
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
        """Make the model that of the stage which is kept."""
        final = max(finals, key=lambda stage: stage.clusters.reduction)
        preferred = "start" if start.clusters.reduction > final.clusters.reduction + TIE else "final"
        self.stage_ = preferred if self.result == "auto" else self.result
        kept = {"start": start, "final": final}[self.stage_]
        # That which is kept comes last, so that what is fitted is its.
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
        """Return the clusters of all rows: those of some of them as they are, and the others by their memberships."""
        everyone = np.empty(len(X), dtype=np.int64)
        everyone[some] = labels
        others = np.setdiff1d(np.arange(len(X)), some)
        if len(others):
            everyone[others] = self._votes(X[others]).argmax(axis=1)
        return everyone

    # ---- use --------------------------------------------------------------------------------------------------

    @wherever_rows_are
    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters that samples belong to most, by their memberships to samples of the fit.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        return self._votes(self._rows(X)).argmax(axis=1)

    @wherever_rows_are
    def cut(self, X: Any, n_clusters: int) -> np.ndarray:
        """Return the clusters of samples at another number of clusters: larger ones, or parts of them.

        They are nested, and at the number of the fit they are those of `predict` (see `mercer.clustering.trees`).

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        n_clusters : int
            From 1 to the number of parts, some four a cluster.
        """
        check_is_fitted(self)
        P = self._memberships(self.eta_).of(as_tensor(self.codes_, device=self.device)).cpu().double().numpy()
        tree = cluster_tree((P + P.T) / 2.0, self.code_labels_, self.seed_)
        clusters = tree.cut(n_clusters)
        # A sample goes to its cluster first, and to a part of it then: cuts are nested for new samples too.
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
        """Return the memberships of samples to clusters, or to other groups of codes, with rows that sum to 1."""
        network = self._fitted_network()
        C, potentials = (as_tensor(part, device=self.device) for part in (self.codes_, self.code_scales_))
        members = torch.from_numpy(indicator(self.code_labels_ if groups is None else groups)).to(C)

        def votes(x: Tensor) -> Tensor:
            return self._memberships(self.eta_).rows(network.codes(x), C, potentials) @ members

        return by_blocks(votes, X, network.center).cpu().numpy()


def _are_same(labels: np.ndarray, others: np.ndarray) -> bool:
    """Whether two clusterings are one, whatever their clusters are called."""
    pairs = np.unique(np.stack([labels, others]), axis=1).shape[1]
    return pairs == len(np.unique(labels)) == len(np.unique(others))
