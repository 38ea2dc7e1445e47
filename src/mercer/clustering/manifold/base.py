"""The base class of manifold clusterings: input and views, the network, the first stage, and `transform`."""

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.checks import all_or_nothing
from mercer.clustering.draws import MOST_ROWS_BROUGHT
from mercer.clustering.manifold.closed_start import begin_in_closed_form, scale_outputs
from mercer.clustering.manifold.history import Looks
from mercer.clustering.manifold.network import ManifoldNetwork
from mercer.clustering.manifold.parameters import agreement_of, check_shared, checkpoint_of, start_recipe_of
from mercer.clustering.manifold.training import start_features
from mercer.exceptions import invalid_parameter
from mercer.linalg import one_thread
from mercer.networks.backbones import check_backbone
from mercer.networks.evaluation import by_blocks, with_arrays
from mercer.networks.heads import Entrance
from mercer.rows import is_elsewhere, rows_brought_here, wherever_rows_are
from mercer.training import Recipe, Training, fit_progress
from mercer.views.sources import Augmented, DrawnViews, GivenViews, ViewSource, as_rows, check_samples

# n_components=None is the first number, or the width of the backbone if that is smaller, but at least the second number
# times the number of clusters. The authors have 128 components (ALGORITHMS).
DEFAULT_COMPONENTS, COMPONENTS_PER_CLUSTER = 32, 2


class _ManifoldEstimator(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base class for features of samples near manifolds, learned from views; subclasses find the clusters."""

    n_clusters: int
    n_components: int | None
    backbone: Any
    hidden: int
    epsilon_start: float
    agreement: float | str
    augment: Any
    n_views: int
    image_shape: Any
    standardize: bool
    start_recipe: Recipe | None
    checkpoint: Any
    random_state: Any
    device: Any
    sample_shape_: tuple[int, ...]
    weights_: dict[str, np.ndarray]

    # ---- fit --------------------------------------------------------------------------------------------------

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "_ManifoldEstimator":
        """Learn features and clusters, from views drawn by `augment`.

        Parameters
        ----------
        X : array-like of shape (n, D), or images of shape (n, height, width) or (n, height, width, channels)
            Rows of files or of Dask (`mercer.rows`) are accepted too. If there are more than 20 000 of these, 20 000
            are drawn to learn from; `predict` accepts all of them.
        y : ignored

        Returns
        -------
        self
        """
        X, drawn = rows_brought_here(self, X, MOST_ROWS_BROUGHT, self.random_state)
        X = check_samples(self, X, reset=True)
        self._begin(X)
        if self.augment is None:
            raise invalid_parameter("augment", None, "a view, or 'auto'", "fit_views() takes views that are there.")
        augmented = Augmented.fitted(self.augment, self.sample_shape_, X)
        with self._threads():
            self._fit(X, DrawnViews(X, augmented, self.n_views, self.seed_))
        self.drawn_rows_ = drawn
        return self

    @with_callbacks
    def fit_views(self, X: Any, *views: Any) -> "_ManifoldEstimator":
        """Learn features and clusters, from views that are given.

        An example is views of images that have passed through a network which would be costly to run in every epoch.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
            The samples, which are clustered.
        *views : array-likes of the shape of X
            Two or more arrays. Row i of each is a view of sample i. A batch has `n_views` views of each of its samples.

        Returns
        -------
        self
        """
        if any(map(is_elsewhere, (X, *views))):
            raise invalid_parameter("X", type(X).__name__, "an array", "fit() takes rows of files and of Dask.")
        X = check_samples(self, X, reset=True)
        self._begin(X)
        arrays = [check_samples(self, view) for view in views]
        if len(arrays) < 2 or any(len(array) != len(X) for array in arrays):
            rows = [len(array) for array in arrays]
            raise ValueError(
                f"fit_views() got views with {rows} rows: two or more with {len(X)}, as X has, are needed."
            )
        with self._threads():
            self._fit(X, GivenViews(arrays, self.n_views))
        self.drawn_rows_ = None
        return self

    def _threads(self) -> AbstractContextManager[None]:
        """Return a context with one thread for rows of features, and with all threads for a network of images.

        The products of features are small, and torch alternates with k-means and eigenvectors. Beside other work, a toy
        example of 200 points took 99 s of processor time with two threads, which wait actively, and 7 s with one.
        """
        return one_thread() if self.backbone in (None, "mlp") else nullcontext()

    def _begin(self, X: np.ndarray) -> None:
        if (X[0] == X).all():
            raise ValueError("all rows of X are equal: there are no clusters to find.")
        check_shared(self, X)
        self._check_own()
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))

    @abstractmethod
    def _check_own(self) -> None:
        """Raise if a parameter that only the subclass has is not allowed."""

    @abstractmethod
    def _fit(self, X: np.ndarray, source: ViewSource) -> "_ManifoldEstimator":
        """Fit to rows that have been checked, with a source of their views."""

    def _start(
        self, network: ManifoldNetwork, source: ViewSource, whole: Any, data: str, looks: Looks | None = None
    ) -> Training:
        """Learn features from views alone (line 1); without a recipe, the last layer begins in closed form."""
        if self.start_recipe is None:
            begin_in_closed_form(network, source, self.seed_)
        agreement = agreement_of(self, network)
        recipe = start_recipe_of(self, source.n_rows, agreement)
        with fit_progress(self, recipe.n_epochs, within=whole, task_name="start") as progress:
            training = start_features(
                network,
                source,
                recipe,
                epsilon=self.epsilon_start,
                agreement=agreement,
                seed=self.seed_,
                progress=progress if looks is None else looks.also(progress),
                **checkpoint_of(self, "start", data),
            )
        if self.start_recipe is None:
            scale_outputs(network, source, self.seed_)
        return training

    def _network(self, entrance: Entrance) -> ManifoldNetwork:
        """Return a network with its initial weights.

        It computes in float32, which is twice as fast. Rows are standardized in their own precision before that.
        """
        backbone, width = check_backbone(self.backbone, entrance.shape_seen(self.sample_shape_), seed=self.seed_)
        # If there are fewer columns than clusters, the clusters still need directions.
        usual = max(min(DEFAULT_COMPONENTS, width), COMPONENTS_PER_CLUSTER * self.n_clusters)
        d = usual if self.n_components is None else self.n_components
        network = ManifoldNetwork(backbone, width, d, self.hidden, entrance, self.seed_)
        network = network.to(device=self.device, dtype=torch.float32)
        network.center, network.scale = (torch.tensor(part, device=self.device) for part in entrance[:2])
        return network

    def _fitted_network(self) -> ManifoldNetwork:
        return with_arrays(self._network(Entrance.of_weights(self.weights_)), self.weights_)

    # ---- use --------------------------------------------------------------------------------------------------

    @wherever_rows_are
    def transform(self, X: Any) -> np.ndarray:
        """Return the features of samples, of shape (n, d) with rows of length 1.

        Parameters
        ----------
        X : array-like of shape (n, D), or images
        """
        check_is_fitted(self)
        X, network = self._rows(X), self._fitted_network()
        return by_blocks(network.features, X, network.center).cpu().numpy().astype(X.dtype, copy=False)

    def _rows(self, X: Any) -> np.ndarray:
        return check_samples(self, as_rows(X, self.sample_shape_))

    @property
    def _n_features_out(self) -> int:
        return len(self.weights_["feature_head.2.bias"])
