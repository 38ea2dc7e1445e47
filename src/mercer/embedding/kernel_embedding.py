"""Representations on landmarks, learned without labels: self-supervised losses, exactly or by gradient."""

import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import check_count, finite_answers
from mercer.embedding.choices import Halves, choose_kernel, choose_ridge, halves_of, is_free, no_rows
from mercer.embedding.coordinates import Coordinates
from mercer.embedding.gradient import DEFAULT_RECIPES, batched_loss, started, trained, views_needed
from mercer.embedding.landmark_map import LandmarkMap
from mercer.embedding.moments import Moments, add_views
from mercer.embedding.objectives import closed_form
from mercer.embedding.parameters import check_parameters, is_exact
from mercer.exceptions import DataWarning, invalid_parameter
from mercer.kernels import check_kernel
from mercer.landmarks.features import landmark_features, landmark_influence
from mercer.losses import kernel_pca
from mercer.training import Recipe, data_digest, fit_progress, settings_of
from mercer.views.sources import Augmented, DrawnViews, GivenViews, ViewSource, as_rows, check_samples, given_arrays

# What n_components=None means where the landmarks bear as many.
DEFAULT_COMPONENTS = 150
# bandwidth="auto" tries these multiples of the median distance, on at most this many rows.
BANDWIDTHS = (1.0, 0.7, 0.5, 0.35)
SEARCH_ROWS = 10_000
# kernel="auto" adds to the Gaussian kernel of a table one that is wider by this factor, with this weight. Centred, the
# sum's linear part is then x^T z / trace(covariance) to first order: weight = 2 factor^2.
WIDE_FACTOR, WIDE_WEIGHT = 4.0, 32.0
# ridge="auto" where views are noise, as a share of the largest variance.
NOISE_RIDGE = 0.1
# What else gradient steps depend on: they go on from a checkpoint only if it has the same.
TRAINED_BY = (
    "loss",
    "start",
    "negatives",
    "preconditioner",
    "redraw",
    "augment",
    "n_views",
    "sample_shape_",
    "kernel_",
    "ridge",
)


class KernelEmbedding(CallbackSupportMixin, LandmarkMap):
    """Learn an embedding f(x) = A^T k(x) + bias from unlabelled rows, so that views of one row have like embeddings.

    k(x) holds the kernel's values between x and m landmarks. A minimises a self-supervised loss over pairs of views. Of
    three losses the optimum is exact: sums over the rows (`moments.py`) and one eigenproblem of size m
    (`closed_forms.py`), no steps and no learning rate (krepes, sections 2 and 3; ALGORITHMS has the formulas in one
    place). Any other is minimised by gradient steps on views drawn for each batch (`gradient.py`). Ridge and bandwidth
    are chosen without labels, by the loss on rows that were not used to fit.

    Parameters
    ----------
    loss : str, callable or Objective, default="spectral_contrastive"
        "spectral_contrastive" is -2 E[f(x)^T f(x+)] + E[(f(x)^T f(x-))^2], x+ another view of the row of x and x- a
        view of any row. "simple_contrastive" is E[f(x)^T (f(x-) - f(x+))] under A^T K_mm A = I. "kernel_pca" is the
        squared error of reconstruction in the kernel's space, of the rows as they are: no views are drawn. These have
        an exact optimum. Trained by gradient are "simclr", "vicreg", "barlow_twins", "byol" and "kernel_autoencoder",
        with their authors' settings; any callable of the views' embeddings, such as
        `partial(mercer.losses.simclr, temperature=0.1)`; and an `Objective` of `mercer.losses`.
    kernel : str, Kernel or callable, default="auto"
        "auto" is Gaussian for images. For tables a second Gaussian is added, with 4 times the bandwidth and 32 times
        the weight: nearly linear over the data, it keeps what a linear model of the columns sees.
    n_components : int or None, default=None
        h. None takes 150, or as many as there are.
    n_landmarks : int or None, default=None
        m, the number of centres. None takes 1000, or all rows if there are fewer.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"} or array, default="uniform"
        How landmarks are drawn from the rows; or the landmarks themselves, of shape (m, d); or the indices of rows,
        of shape (m,). All views share them.
    landmark_tuples : bool, default=False
        Whether the views of a row are landmarks in its place, as in the paper: m / n_views rows are drawn, and each
        brings as many landmarks as it has views.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn; see `mercer.views.check_view`. "auto" goes by the shape of one sample: noise and dropped
        features for tables, gentle affine maps for gray images, crops, flips and colours for colour images. What a
        string stands for is applied to a table in units of its columns' standard deviations.
    n_views : int, default=2
        Views of each row.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that come as flat rows. Images that come as arrays of
        shape (n, height, width) or (n, height, width, channels) have their own.
    ridge : float or "auto", default="auto"
        The weight λ of the penalty. "auto" is 0 for gradient steps. For exact optima it is chosen by the loss of half
        of the rows under the optimum of the other half, without labels: the largest that keeps nine tenths of the best
        gain, since smooth embeddings need fewer labels, or that of the smallest loss for "kernel_pca". Views of a table
        by a shorthand are noise, on which nearly all directions agree: "auto" is then a tenth of the largest variance
        (eigenvalue of E[k k^T]), so that directions are ranked by variance as well. Under "simple_contrastive" the
        constraint takes the place of the penalty.
    regularizer : {"covariance", "tikhonov"}, default="covariance"
        What λ weighs in "spectral_contrastive": "tikhonov" adds λ Tr(A^T K_mm A) to the loss, "covariance" adds λ K_mm
        to E[k k^T] in it. "kernel_pca" has Tikhonov's.
    center : bool, default=True
        Whether embeddings are centred over all views, by the bias. The loss is that of the centred embeddings.
    bandwidth : float, "median", "auto" or None, default="auto"
        "auto" keeps a number that the kernel has; in place of "median" it tries multiples of the median distance and
        takes that of the smallest spectral contrastive loss on rows left out. It is the median for "kernel_pca", whose
        losses do not compare, and where views are noise. None keeps the kernel's own.
    solver : {"auto", "exact", "gradient"}, default="auto"
        "auto" is "exact" where the loss has an exact optimum.
    start : {"principal", "kaiming", "spectral"}, default="principal"
        Where gradient steps begin: kernel principal components of the landmarks (section 3.1), random numbers, or the
        exact optimum of the spectral contrastive loss.
    recipe : Recipe or None, default=None
        How many epochs and how large steps: a `mercer.training.Recipe`. None is 20 epochs of Adam on batches of 256,
        at rates up to 0.001 after one epoch of warm-up, with cosine annealing. Under "gauss_newton" it is 5 epochs of
        SGD on batches of 1024, at a rate of 0.5.
    preconditioner : {"whitening", "none", "kernel", "gauss_newton"}, default="whitening"
        How gradient steps know which directions are long: by coordinates in which the landmarks are white, the
        embedding's norm in the kernel's space being that of the parameters; not at all, steps being made in A; by
        (K_mm + λ I)^-1 on the gradient by A, λ a thousandth of k(x, x); or, in white coordinates, by the curvature of
        "barlow_twins" or "simclr" (section 3.2, `preconditioners.py`), which wants SGD at a rate of about 1.
    redraw : bool, default=True
        Whether views are drawn anew for each epoch of gradient steps, or once for all. Once is some ten times faster,
        and keeps the kernel features of all views in memory: 4 n_views n m bytes in float32.
    negatives : {"all", "drawn"}, default="all"
        Which x- gradient steps of contrastive losses see: all pairs of a batch, or one other sample for each.
    checkpoint : path or None, default=None
        A file that keeps the state of gradient steps: a fit that was killed goes on where it was.
    random_state : int, RandomState instance or None, default=None
        Draws landmarks and views.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    device : str, torch.device or None, default=None
        Where the work is done; None is the CPU.

    Attributes
    ----------
    kernel_ : Kernel
        With a number for the bandwidth.
    landmarks_ : ndarray of shape (m, d)
    landmark_indices_ : ndarray of shape (m,) or None
        The rows of `fit` that are landmarks; None where they were given, or are views.
    coefficients_ : ndarray of shape (m, h)
        A.
    bias_ : ndarray of shape (h,)
    eigenvalues_ : ndarray of shape (h,)
        What ranks the components: how well views agree on each; or its variance, for "kernel_pca" and gradient steps.
    ridge_ : float
    loss_ : float
        On the views of the fit, without the penalty; of gradient steps the mean over the best epoch, with it.
    history_ : list of dict
        Bandwidths and ridges that were tried: bandwidth, ridge, held_out_loss, rows. Then epochs: epoch, loss,
        criterion, learning_rate.
    sample_shape_ : tuple of int
        The shape of one sample.
    moments_ : list of Moments
        The sums over all rows so far; after `partial_fit` only.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    `fit` costs O(n p m (d + m) + m^3) for p views, in blocks of rows, `transform` O(n m (d + h)).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import KernelEmbedding
    >>> X, _ = load_digits(return_X_y=True)
    >>> embedding = KernelEmbedding(image_shape=(8, 8), n_landmarks=300, n_components=20, random_state=0)
    >>> embedding.fit_transform(X).shape
    (1797, 20)
    """

    moments_: list[Moments]

    def __init__(
        self,
        loss: Any = "spectral_contrastive",
        kernel: Any = "auto",
        *,
        n_components: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Any = "uniform",
        landmark_tuples: bool = False,
        augment: Any = "auto",
        n_views: int = 2,
        image_shape: Any = None,
        ridge: Any = "auto",
        regularizer: str = "covariance",
        center: bool = True,
        bandwidth: Any = "auto",
        solver: str = "auto",
        start: str = "principal",
        recipe: Any = None,
        preconditioner: str = "whitening",
        redraw: bool = True,
        negatives: str = "all",
        checkpoint: Any = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.landmark_tuples = landmark_tuples
        self.augment = augment
        self.n_views = n_views
        self.image_shape = image_shape
        self.ridge = ridge
        self.regularizer = regularizer
        self.center = center
        self.bandwidth = bandwidth
        self.solver = solver
        self.start = start
        self.recipe = recipe
        self.preconditioner = preconditioner
        self.redraw = redraw
        self.negatives = negatives
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    # ---- fit --------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "KernelEmbedding":
        """Learn from rows, with views drawn by `augment`.

        Parameters
        ----------
        X : array-like of shape (n, d), or images of shape (n, height, width) or (n, height, width, channels)
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        X = check_samples(self, X, reset=True)
        source = self._begin(X)
        self._solve(self._summed(source), source)
        return self

    @with_callbacks
    def fit_views(self, *views: Any) -> "KernelEmbedding":
        """Learn from views that are there: two or more arrays of one shape, row i of each a view of sample i.

        Parameters
        ----------
        *views : array-likes of shape (n, d), or images

        Returns
        -------
        self
        """
        check_parameters(self, n_given=len(views))
        arrays = [check_samples(self, view, reset=j == 0) for j, view in enumerate(views)]
        lengths = [len(array) for array in arrays]
        if len(set(lengths)) > 1:
            raise ValueError(f"the views have {lengths} rows: row i of each must be a view of sample i.")
        source = self._begin(arrays[0], GivenViews(arrays))
        self._solve(self._summed(source), source)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> "KernelEmbedding":
        """Learn from rows that come in batches, one call a batch: the sums over all batches so far are exact.

        Landmarks, bandwidth and the scales of columns are those of the first batch, which should be large enough.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        if not is_exact(self):
            raise invalid_parameter(
                "solver", self.solver, f"'exact' for batches, which loss={self.loss!r} has to allow"
            )
        if not hasattr(self, "moments_"):
            X = check_samples(self, X, reset=True)
            source = self._begin(X)
            moments = no_rows(self._centres())
        else:
            source = self._source(check_samples(self, X))
            moments = self.moments_
        self.moments_ = add_views(moments, self.kernel_, self._centres(), source.chunks(self._centres()), self.seed_)
        self._solve(self.moments_, source)
        return self

    def _begin(self, X: np.ndarray, given: GivenViews | None = None) -> ViewSource:
        """Choose landmarks and kernel, and return where views come from."""
        random = check_random_state(self.random_state)
        if hasattr(self, "moments_"):
            del self.moments_
        self.seed_ = int(random.randint(2**31 - 1))
        self.augmented_ = None if self._needs_no_views() else Augmented.fitted(self.augment, self.sample_shape_, X)
        source = self._source(X) if given is None else given
        is_auto = isinstance(self.kernel, str) and self.kernel == "auto"
        asked = check_kernel(
            "gaussian" if is_auto else self.kernel, None if self.bandwidth == "auto" else self.bandwidth
        )
        kernel = asked.resolved(X, random)
        if is_auto and self._is_table():
            kernel = kernel + WIDE_WEIGHT * kernel.rescaled(WIDE_FACTOR)
        self.landmarks_, self.landmark_indices_ = self._landmarks(X, kernel, random)
        if self.landmark_tuples:
            self.landmarks_, self.landmark_indices_ = self._tuples(source), None
        self.kernel_ = kernel
        self.history_: list[dict[str, Any]] = []
        if self.bandwidth == "auto" and self._views_tell(given is not None) and is_free(asked):
            drawn = random.choice(len(X), SEARCH_ROWS, replace=False) if len(X) > SEARCH_ROWS else np.arange(len(X))
            self.kernel_, self.history_ = choose_kernel(
                [kernel.rescaled(factor) for factor in BANDWIDTHS],
                closed_form("spectral_contrastive", self.regularizer),
                source.of_rows(np.sort(drawn)),
                self._centres(),
                ridge=self.ridge,
                n_components=self._most_components(),
                center=self.center,
                seed=self.seed_,
            )
        return source

    def _summed(self, source: ViewSource) -> list[Moments]:
        Z = self._centres()
        return add_views(no_rows(Z), self.kernel_, Z, source.chunks(Z), self.seed_)

    def _solve(self, folds: list[Moments], source: ViewSource) -> None:
        """Minimise the loss in coordinates in which the landmarks are white, and return to theirs: A = B W."""
        halves = halves_of(self.kernel_, self._centres(), folds, self.center)
        n_components = min(self._most_components(), halves.B.shape[1])
        if is_exact(self):
            W = self._optimum(self.loss, halves, n_components, isinstance(source, GivenViews))
        else:
            W = self._trained(halves, n_components, source)
        A = halves.B @ W
        self._check_width(A.shape[1], self.ridge_)
        dtype = self.landmarks_.dtype
        self.coefficients_ = A.cpu().numpy().astype(dtype)
        bias = torch.zeros_like(A[0]) if halves.origin is None else -A.T @ halves.origin
        self.bias_ = bias.cpu().numpy().astype(dtype)

    def _optimum(self, loss: str, halves: Halves, n_components: int, are_given: bool) -> Tensor:
        """Return the exact minimiser, at the ridge that was asked for or chosen."""
        form = closed_form(loss, self.regularizer)
        choice = choose_ridge(form, halves, self._ridge(halves, are_given), n_components, self.kernel_)
        self.history_ = self.history_ + choice.tried
        stats = halves.all_rows()
        (optimum,) = form.optima(stats, [choice.ridge], n_components)
        self.eigenvalues_ = optimum.eigenvalues.cpu().numpy()
        self.ridge_, self.loss_ = choice.ridge, form.loss(stats, optimum.W)
        return optimum.W

    def _trained(self, halves: Halves, n_components: int, source: ViewSource) -> Tensor:
        """Return W after the steps of the recipe, from the start that was asked for."""
        stats = halves.all_rows()
        spectral = partial(self._optimum, "spectral_contrastive", halves, n_components, isinstance(source, GivenViews))
        W = started(self.start, stats, spectral, n_components, self.seed_)
        self.ridge_ = 0.0 if self.ridge == "auto" else float(self.ridge)
        coordinates = Coordinates(self.kernel_, self._centres(), halves.B, halves.origin)
        recipe = self._recipe()
        with fit_progress(self, recipe.n_epochs) as progress:
            W, training = trained(
                self.loss,
                stats,
                coordinates,
                source,
                W,
                recipe,
                ridge=self.ridge_,
                negatives=self.negatives,
                precondition=self.preconditioner,
                redraw=self.redraw,
                seed=self.seed_,
                checkpoint=self.checkpoint,
                progress=progress,
                settings=settings_of(self, TRAINED_BY),
                data="" if self.checkpoint is None else data_digest(self.landmarks_, *given_arrays(source)),
            )
        self.history_ = self.history_ + training.history
        self.loss_ = min((record["criterion"] for record in training.history), default=float("nan"))
        self.eigenvalues_ = ((stats.second @ W) * W).sum(dim=0).cpu().numpy()
        return W

    def _recipe(self) -> Recipe:
        return DEFAULT_RECIPES[self.preconditioner] if self.recipe is None else self.recipe

    def _source(self, X: np.ndarray) -> DrawnViews:
        seen = sum(fold.n_rows for fold in getattr(self, "moments_", []))
        return DrawnViews(X, self.augmented_, self.n_views, self.seed_, seen)

    def _tuples(self, source: ViewSource) -> np.ndarray:
        """Return the views of some of the rows drawn as landmarks: as many rows as bring about m of them."""
        if self.landmark_indices_ is None:
            raise invalid_parameter("landmark_tuples", True, "False if the landmarks themselves are given")
        n_views = len(source.stacked(self.landmark_indices_[:1]))
        n_rows = max(1, len(self.landmark_indices_) // n_views)
        order = check_random_state(self.seed_).permutation(self.landmark_indices_)
        return source.stacked(np.sort(order[:n_rows]))

    def _centres(self) -> Tensor:
        return as_tensor(self.landmarks_, device=self.device)

    def _most_components(self) -> int:
        wanted = DEFAULT_COMPONENTS if self.n_components is None else self.n_components
        return min(wanted, len(self.landmarks_))

    def _needs_no_views(self) -> bool:
        return views_needed(self.loss) == 1

    def _views_tell(self, are_given: bool) -> bool:
        """Whether views say what matters: those that a shorthand makes of a table are noise, and say little."""
        return not self._needs_no_views() and (are_given or not self._is_table() or not isinstance(self.augment, str))

    def _is_table(self) -> bool:
        return len(self.sample_shape_) == 1

    def _ridge(self, halves: Halves, are_given: bool) -> Any:
        """Return the ridge that was asked for, a share of the variance where views are noise, or "auto"."""
        if self.ridge != "auto" or self._needs_no_views() or self._views_tell(are_given):
            return self.ridge
        return NOISE_RIDGE * float(torch.linalg.eigvalsh(halves.all_rows().second)[-1])

    # ---- use --------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of each row, of shape (n, h).

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        """
        check_is_fitted(self)
        return self._evaluate(as_rows(X, self.sample_shape_), self.landmarks_, bias=self.bias_)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the loss on views of the rows, drawn by `random_state`; the penalty is not in it.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        y : ignored
        """
        check_is_fitted(self)
        X = check_samples(self, X)
        Z, A, bias = (
            self._centres(),
            *(as_tensor(part, device=self.device) for part in (self.coefficients_, self.bias_)),
        )
        drawn = DrawnViews(X, self.augmented_, self.n_views, self.seed_)
        embedded = [
            [
                landmark_features(self.kernel_, x, Z, A, working_memory=self.working_memory).double() + bias
                for x in views
            ]
            for views in drawn.chunks(Z)
        ]
        views = [torch.cat(parts) for parts in zip(*embedded, strict=True)]
        if self.loss != "kernel_pca":
            return -batched_loss(self.loss, views, None if is_exact(self) else self._recipe().batch_size)
        K_mm = self.kernel_.matrix(Z.double())
        gram = A.double().T @ K_mm @ A.double()
        return -float(kernel_pca(*views, gram=gram, diagonal=float(np.mean(self.kernel_.diagonal(X)))))

    @finite_answers
    def influence(self, X: Any) -> np.ndarray:
        """Return how much each landmark counts in the embedding of each row: k(x, x_l) |A_l| (krepes, section 5.1).

        Parameters
        ----------
        X : array-like of shape (n, d), or images

        Returns
        -------
        ndarray of shape (n, m)
        """
        check_is_fitted(self)
        X = check_samples(self, X)
        return landmark_influence(self.kernel_, X, self.landmarks_, self.coefficients_)

    def top_landmarks(self, X: Any, n_landmarks: int = 3) -> np.ndarray:
        """Return the landmarks with the largest influence on each row, as indices into `landmarks_`, the largest first.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        n_landmarks : int, default=3

        Returns
        -------
        ndarray of shape (n, n_landmarks)
        """
        check_count("n_landmarks", n_landmarks, at_most=len(self.landmarks_), why="the number of landmarks")
        return np.argsort(-self.influence(X), axis=1, kind="stable")[:, :n_landmarks]

    # ---- checks -----------------------------------------------------------------------------------------------

    def _check_width(self, width: int, ridge: float) -> None:
        """Raise if no component is left, and warn if there are fewer than were asked for."""
        if width == 0:
            raise ValueError(
                f"nothing is left to embed: with ridge={ridge:g} no direction of the {len(self.landmarks_)} landmarks "
                "is worth its penalty. Rows that differ, a smaller ridge, or views that differ less will help."
            )
        if self.n_components is not None and width < self.n_components:
            warnings.warn(
                f"n_components={self.n_components}, but only {width} directions lower the loss: {width} components are "
                "kept.",
                DataWarning,
                stacklevel=4,
            )
