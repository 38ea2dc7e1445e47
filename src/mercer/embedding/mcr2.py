"""Maximal coding rate reduction with labels: features in which classes are mutually orthogonal subspaces."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.checks import all_or_nothing, check_count, check_flag, check_number, distinct_classes
from mercer.losses import mcr2
from mercer.metrics import numerical_rank
from mercer.networks.backbones import check_backbone, weights_of
from mercer.networks.evaluation import arrays_of, by_blocks, guarded, with_arrays
from mercer.networks.heads import Entrance, FeatureNetwork
from mercer.training import Recipe, Training, check_recipe, data_digest, fit_progress, settings_of, train
from mercer.views.sources import Augmented, DrawnViews, check_samples

# n_components=None takes this many, or the width of the backbone if that is smaller, but at least two for each class.
DEFAULT_COMPONENTS, OF_A_CLASS = 32, 2
# The default recipe, with this many steps for any number of rows.
STEPS = 500
RECIPE = Recipe(n_epochs=1, batch_size=512, optimizer="adam", learning_rate=1e-3, weight_decay=1e-4)
# The coding rate of a single row is meaningless.
MIN_BATCH = 2
# The subspace of a class contains this share of the squares of its features.
ENERGY = 0.95
# Parameters that a checkpoint must agree with. The trainer itself compares the network, recipe, seed and data.
TRAINED_BY = ("epsilon", "augment", "standardize", "sample_shape_", "backbone")


class MCR2(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):
    """Learn features from labeled samples, such that each class fills a subspace orthogonal to those of other classes.

    A network maps samples to features z of length 1. It is trained to maximize R - R_c, the coding rate of all features
    minus the coding rates of the classes: all features together should spread out, and those of a class should lie in
    few directions (equation 1 of manifold-linearizing-clustering; Yu et al. 2020). Cross-entropy may map a class to a
    single point, whereas this objective keeps the differences within a class. A sample is assigned to the class whose
    subspace is nearest.

    Parameters
    ----------
    n_components : int or None, default=None
        d, the number of features. None takes 32, or the width of the backbone if that is smaller, but at least two for
        each class.
    backbone : None, "mlp", "resnet18" or torch.nn.Module, default=None
        The network in front of the head; see `mercer.networks.backbones.check_backbone`. None passes the rows directly
        to the head.
    hidden : int, default=512
        The width of the hidden layer of the head, which is an affine map, a ReLU and another affine map.
    epsilon : float, default=0.7071067811865476
        ε of the coding rates. By default ε^2 is 0.5, as in the authors' code.
    augment : str, None, View or callable of (batch, generator), default=None
        How a view of each sample of a batch is drawn, as in `KernelEmbedding`. None trains on the samples themselves.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that are given as flat rows.
    standardize : bool, default=True
        Whether each column, or channel of images, is scaled to variance 1 at the input of the network. Otherwise all
        are scaled by one number.
    recipe : Recipe or None, default=None
        How the network is trained. None takes 500 steps of Adam with learning rate 0.001 and weight decay 0.0001, on
        batches of 512.
    checkpoint : path or None, default=None
        A file that keeps the state of the training. A fit that was killed continues from there.
    random_state : int, RandomState instance or None, default=None
        Determines the initial weights, the batches and the views.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes.
    bases_ : list of k ndarrays of shapes (d, r_j)
        Orthonormal bases of the subspaces of the classes, each with 95 % of the squares of the features of its class;
        features are not centered. If r_j = d, the subspace is the whole space, and every sample is assigned to this
        class; more components or more steps help.
    history_ : list of dict
        The epochs: epoch, loss (R_c - R), criterion, learning_rate.
    weights_ : dict of ndarray
        The weights of the network.
    sample_shape_ : tuple of int
        The shape of one sample.
    n_features_in_ : int

    Notes
    -----
    A step on a batch of b samples takes O(b d^2 + k d^3) in addition to the network. If there are more than 2000
    columns and fewer rows than columns, the network sees the rows in coordinates of their span
    (`mercer.networks.heads.Entrance`).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import MCR2
    >>> from mercer.training import Recipe
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MCR2(hidden=50, recipe=Recipe(n_epochs=100, learning_rate=1e-2), random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        backbone: Any = None,
        hidden: int = 512,
        epsilon: float = 0.5**0.5,
        augment: Any = None,
        image_shape: Any = None,
        standardize: bool = True,
        recipe: Recipe | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.backbone = backbone
        self.hidden = hidden
        self.epsilon = epsilon
        self.augment = augment
        self.image_shape = image_shape
        self.standardize = standardize
        self.recipe = recipe
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> "MCR2":
        """Train the network, and compute the subspace of each class in its features.

        Parameters
        ----------
        X : array-like of shape (n, D), or images of shape (n, height, width) or (n, height, width, channels)
        y : array-like of shape (n,)
            The classes.

        Returns
        -------
        self
        """
        X = check_samples(self, X, reset=True)
        labels = self._encoded(y, X)
        self._check_parameters()
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        network = self._network(Entrance.learned(X, self.sample_shape_, self.standardize, self.backbone))
        self.history_ = self._trained(network, X, labels).history
        self.weights_ = arrays_of(network)
        Z = by_blocks(network.features, X, network.center).cpu().numpy()
        self.bases_ = [subspace(Z[labels == j]) for j in range(len(self.classes_))]
        return self

    def _trained(self, network: FeatureNetwork, X: np.ndarray, labels: np.ndarray) -> Training:
        """Train the network in place on batches of views, and return the record of the training."""
        augmented = None if self.augment is None else Augmented.fitted(self.augment, self.sample_shape_, X)
        source = DrawnViews(X, augmented, 1, self.seed_)
        like = network.center
        classes = torch.from_numpy(labels).to(like.device)

        def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
            (x,) = source.batch(rows.numpy(), generator, like)
            Z = network.features(x)
            return guarded([Z], lambda: mcr2(Z, classes[rows.to(like.device)], epsilon=self.epsilon))

        recipe = RECIPE.lasting(STEPS, len(X), MIN_BATCH) if self.recipe is None else self.recipe
        network.train()
        with fit_progress(self, recipe.n_epochs, X=X, y=self.classes_[labels]) as progress:
            training = train(
                network,
                batch_loss,
                len(X),
                recipe,
                seed=self.seed_,
                min_batch=MIN_BATCH,
                progress=progress,
                **self._kept(X, labels),
            )
        network.eval()
        return training

    def _kept(self, X: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
        """Return the arguments of `train` for a checkpoint; empty if there is none."""
        if self.checkpoint is None:
            return {}
        data = data_digest(X, labels, *weights_of(self.backbone))
        return {"checkpoint": self.checkpoint, "settings": settings_of(self, TRAINED_BY), "data": data}

    def _network(self, entrance: Entrance) -> FeatureNetwork:
        """Return the network with its initial weights."""
        backbone, width = check_backbone(self.backbone, entrance.shape_seen(self.sample_shape_), seed=self.seed_)
        usual = max(min(DEFAULT_COMPONENTS, width), OF_A_CLASS * len(self.classes_))
        d = usual if self.n_components is None else self.n_components
        like = as_tensor(entrance.center, device=self.device)
        return FeatureNetwork(backbone, width, d, self.hidden, entrance, self.seed_).to(like)

    def _encoded(self, y: Any, X: np.ndarray) -> np.ndarray:
        """Set `classes_`, and return the index of the class of each sample."""
        if y is None:
            raise ValueError("MCR2 requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        distinct_classes(y)  # first, since its error for classes that cannot be sorted is clearer than scikit-learn's
        check_classification_targets(y)
        check_consistent_length(X, y)
        self.classes_, labels = distinct_classes(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has 1 class ({self.classes_[0]!r}): MCR2 needs at least 2 classes.")
        return labels.astype(np.int64)

    def _check_parameters(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        check_count("hidden", self.hidden)
        check_number("epsilon", self.epsilon, above=0.0)
        check_flag("standardize", self.standardize)
        check_recipe("recipe", self.recipe)

    def transform(self, X: Any) -> np.ndarray:
        """Return features of length 1, of shape (n, d).

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        return self._features(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return, for each sample, the class whose subspace is nearest to its features.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        Z = self._features(X)
        residuals = [np.linalg.norm(Z - Z @ U @ U.T, axis=1) for U in self.bases_]
        return self.classes_[np.argmin(residuals, axis=0)]

    def _features(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = check_samples(self, X)
        network = with_arrays(self._network(Entrance.of_weights(self.weights_)), self.weights_)
        return by_blocks(network.features, X, network.center).cpu().numpy()

    @property
    def _n_features_out(self) -> int:
        return self.bases_[0].shape[0]


def subspace(Z: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (d, r) of the smallest subspace with 95 % of the squares of the features Z (n, d).

    The features are not centered, since a subspace contains the origin.
    """
    r = numerical_rank(Z, energy=ENERGY)
    return np.linalg.svd(Z, full_matrices=False)[2][:r].T
