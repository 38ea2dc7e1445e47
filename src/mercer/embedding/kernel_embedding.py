"""Kernel embeddings on landmarks, learned without labels by self-supervised losses."""

from typing import Any

import numpy as np
import torch
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import PRECISIONS, all_or_nothing, check_count, finite_answers
from mercer.embedding.beginning import Beginning, begin, most_components, settled_share
from mercer.embedding.centers import Centers
from mercer.embedding.exact import Exact
from mercer.embedding.landmark_map import LandmarkMap
from mercer.embedding.moments import Moments, add_views
from mercer.embedding.parameters import check_parameters, reconstructs, solver_of
from mercer.embedding.problem import Problem, Solution, check_width, halves_of, no_rows
from mercer.embedding.scores import loss_of_rows
from mercer.exceptions import invalid_parameter
from mercer.landmarks.features import landmark_influence
from mercer.linalg import threads_for
from mercer.rows import wherever_rows_are
from mercer.views.sources import DrawnViews, GivenViews, as_rows, check_samples


class KernelEmbedding(CallbackSupportMixin, LandmarkMap):
    """Learn an embedding f(x) = A^T k(x) + γ from unlabeled rows, in which views of the same row are close.

    k(x) is the vector of kernel values between x and m landmarks. A minimizes a self-supervised loss over pairs of
    views. Three losses have an exact optimum, which takes sums over the rows (`moments.py`) and one eigenproblem of
    size m (`closed_forms.py`), without gradient steps or a learning rate (krepes, sections 2 and 3; ALGORITHMS has all
    formulas). The kernel autoencoder alternates between encoder and decoder (`alternate.py`). Any other loss is
    minimized by gradient steps (`steps.py`). Ridge and bandwidth are chosen without labels, by the loss on rows that
    were not used to fit.

    Parameters
    ----------
    loss : str, callable or Objective, default="spectral_contrastive"
        The loss to minimize. "spectral_contrastive" is -2 E[f(x)^T f(x+)] + E[(f(x)^T f(x-))^2], with x+ another view
        of the row of x and x- a view of any row. "simple_contrastive" is E[f(x)^T (f(x-) - f(x+))] under the constraint
        A^T K_mm A = I. "kernel_pca" is the squared reconstruction error in the kernel's space, of the rows themselves
        and without views. These three have an exact optimum. "kernel_autoencoder" is the squared error of rows that are
        reconstructed from their embeddings; it has an `inverse_transform`. All others are trained by steps: "simclr",
        "vicreg", "barlow_twins" and "byol", with their authors' settings; any callable of the embeddings of the views,
        such as `partial(mercer.losses.simclr, temperature=0.1)`; and an `Objective` of `mercer.losses`.
    kernel : str, Kernel or callable, default="auto"
        The kernel. "auto" is a Gaussian kernel for images. For tables a second Gaussian is added, with 4 times the
        bandwidth and 32 times the weight. It is nearly linear over the data, and so keeps the information that a linear
        model of the columns uses.
    n_components : int or None, default=None
        h, the number of components. None takes 150, or 15 % of the landmarks if that is more, or the largest possible
        number if that is smaller.
    n_landmarks : int or None, default=None
        m, the number of landmarks and of rows of A. None takes 1000, or all rows if there are fewer. Of images it takes
        one for 25 rows if there are more than 25 000, up to 2000; and at most half of the rows, since a row that is a
        landmark is compared with itself.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"} or array, default="uniform"
        How landmarks are drawn from the rows; or the landmarks themselves, of shape (m, d); or the indices of rows,
        of shape (m,).
    landmark_tuples : {"shared", "by_view", "all"}, default="shared"
        What the views are compared with. "shared": all views with the landmark rows themselves. "by_view": each view
        with the views of the landmarks that are of the same kind, as Z_A = K_A A and Z_B = K_B A in the paper. "all":
        all views with all views of m / n_views rows, which make m landmarks. With "by_view", new rows are embedded by
        the mean over the sets of landmarks.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn; see `mercer.views.check_view`. "auto" depends on the shape of one sample. A row of a table
        is moved toward one of its neighbors, by as much as leaves most rows the nearest to their own view. Gray images
        get small affine maps, and color images crops, flips and changes of color. "tables" is noise and dropped
        features, as in the paper. Views named by a string are applied to a table in units of the standard deviations
        of its columns.
    n_views : int, default=2
        Number of views of each row.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that are given as flat rows. It is not needed for arrays
        of shape (n, height, width) or (n, height, width, channels).
    ridge : float or "auto", default="auto"
        The weight λ of the penalty. "auto" is 0 for steps. For exact optima "auto" chooses it without labels, by the
        loss on one half of the rows under the optimum of the other half. It takes the largest λ that keeps nine tenths
        of the best gain, since smooth embeddings need fewer labels; for "kernel_pca" the λ of the smallest loss. Views
        of a table that are named by a string are noise, and nearly all directions agree on them. "auto" is then a tenth
        of the largest variance (eigenvalue of E[k k^T]), so that directions are ranked by variance as well.
        "simple_contrastive" has a constraint and no penalty.
    bias : {"centered", "learned", "none"}, default="centered"
        How γ is determined. "centered" centers the embeddings over all views, and the loss is that of centered
        embeddings. "learned" starts from there and minimizes the loss over γ too. The spectral contrastive loss then
        has a first component that is constant. "kernel_pca", whose loss has no bias, and losses that do not depend on γ
        keep the centered one. "none" is γ = 0.
    bandwidth : float, "median", "auto" or None, default="auto"
        The bandwidth of the kernel. "auto" keeps a number that the kernel has. If the kernel's bandwidth is "median",
        "auto" tries multiples of the median distance and takes the one with the smallest spectral contrastive loss on
        left-out rows. For images whose views are named by a string it does so for every loss, but only from 4000 rows
        on. It keeps the median for fewer such images, for tables whose views are noise, and for tables under losses
        without views. None keeps the bandwidth of the kernel object.
    solver : "auto", Exact, Steps or Alternate, default="auto"
        How the loss is minimized. "auto" is `mercer.embedding.Exact()` if the loss has a closed form, `Alternate()` for
        the kernel autoencoder, and `Steps()` for all other losses. Epochs, optimizer, preconditioner, checkpoint and
        similar parameters belong to `Steps`.
    random_state : int, RandomState instance or None, default=None
        Determines the landmarks and the views.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with a number for the bandwidth.
    landmarks_ : ndarray of shape (m, d)
        The landmarks. Under "by_view" the sets of all views follow each other, in an array of shape (m n_views, d).
    landmark_indices_ : ndarray of shape (m,) or None
        The rows of `fit` that are landmarks; None if the landmarks were given or are views.
    coefficients_ : ndarray of shape (m, h)
        A, with a row for each of `landmarks_`.
    bias_ : ndarray of shape (h,)
        γ.
    center_ : ndarray of shape (m,) or None
        The element of the kernel's space at which embeddings are centered, as coefficients of the landmarks.
    eigenvalues_ : ndarray of shape (h,)
        The values by which components are ranked: how well views agree on each component, or its variance for
        "kernel_pca" and steps.
    decoder_ : Decoder or None
        The decoder of the kernel autoencoder.
    ridge_ : float
        The ridge that was used.
    loss_ : float
        The loss that was reached. For exact optima it is taken on the views of the fit, without the penalty. For steps
        it is the mean over the left-out rows at the epoch that was kept, with the penalty. For the kernel autoencoder
        it is the share of the variance of the left-out rows that is lost.
    history_ : list of dict
        The bandwidths and ridges that were tried: bandwidth, ridge, held_out_loss, rows. Then the epochs: epoch, loss,
        criterion, learning_rate; or the rounds: round, criterion.
    sample_shape_ : tuple of int
        The shape of one sample.
    moments_ : list of Moments
        The sums over all rows so far; only after `partial_fit`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    `fit` takes O(n p m (d + m) + m^3) time for p views, and `transform` O(n m (d + h)). Rows are processed in blocks.

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
        landmark_tuples: str = "shared",
        augment: Any = "auto",
        n_views: int = 2,
        image_shape: Any = None,
        ridge: Any = "auto",
        bias: str = "centered",
        bandwidth: Any = "auto",
        solver: Any = "auto",
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
        self.bias = bias
        self.bandwidth = bandwidth
        self.solver = solver
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    # ---- fit --------------------------------------------------------------------------------------------------

    @with_callbacks
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "KernelEmbedding":
        """Learn from rows, with views drawn by `augment`.

        Parameters
        ----------
        X : array-like of shape (n, d), or images of shape (n, height, width) or (n, height, width, channels)
            Rows of files or of Dask (`mercer.rows`) as well.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        return self._learn(check_samples(self, X, reset=True))

    @with_callbacks
    @all_or_nothing
    def fit_views(self, *views: Any) -> "KernelEmbedding":
        """Learn from given views: two or more arrays of one shape, in which row i of each is a view of sample i.

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
        return self._learn(arrays[0], GivenViews(arrays))

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> "KernelEmbedding":
        """Learn from rows that come in batches, with one call for each: the sums over all batches so far are exact.

        Landmarks, bandwidth and the scales of columns come from the first batch, which should therefore be large.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        if not isinstance(solver_of(self), Exact):
            raise invalid_parameter(
                "solver", self.solver, f"Exact() for batches, which loss={self.loss!r} has to allow"
            )
        if not hasattr(self, "moments_"):
            X = check_samples(self, X, reset=True)
            begun = begin(self, X, None)
            before = no_rows(begun.centers)
        else:
            before = self.moments_
            seen = sum(fold.n_rows for fold in before)
            drawn = DrawnViews(check_samples(self, X), self.augmented_, self.n_views, self.seed_, seen)
            share = settled_share(self, are_given=False)
            begun = Beginning(self.seed_, self.augmented_, drawn, self._centers(), self.landmark_indices_, [], share)
        folds = add_views(before, begun.centers, begun.source, begun.seed)
        self._solve(begun, folds)
        self.moments_ = folds
        return self

    def _learn(self, X: np.ndarray, given: GivenViews | None = None) -> "KernelEmbedding":
        """Choose landmarks and kernel, sum over rows, and minimize the loss (krepes, section 3)."""
        begun = begin(self, X, given)
        folds = add_views(no_rows(begun.centers), begun.centers, begun.source, begun.seed)
        self._solve(begun, folds)
        if hasattr(self, "moments_"):
            del self.moments_
        return self

    def _solve(self, begun: Beginning, folds: list[Moments]) -> None:
        """Minimize the loss in coordinates that whiten the landmarks, map the solution back by A = B W, and publish."""
        with threads_for(len(begun.centers.like)):
            halves = halves_of(begun.centers, folds, self.bias)
        problem = Problem(
            self.loss,
            begun.centers,
            halves,
            begun.source,
            min(most_components(self, begun.centers), halves.B.shape[1]),
            self.ridge,
            self.bias,
            begun.seed,
            begun.share,
        )
        solution = solver_of(self).solve(problem, self)
        check_width(solution, len(begun.centers.like), self.n_components)
        self._publish(begun, problem, solution)

    def _publish(self, begun: Beginning, problem: Problem, solution: Solution) -> None:
        centers, (_, B, origin) = begun.centers, problem.halves
        A = B @ solution.W
        bias = solution.bias if origin is None else solution.bias - A.T @ origin
        n_sets = len(centers.sets)
        self.landmarks_ = torch.cat(list(centers.sets)).cpu().numpy()
        dtype = self.landmarks_.dtype
        self.seed_, self.augmented_, self.landmark_indices_ = begun.seed, begun.augmented, begun.indices
        self.kernel_, self.n_landmark_sets_ = centers.kernel, n_sets
        # Sets share A, and new rows are compared with the mean over them.
        self.coefficients_ = (A / n_sets).repeat(n_sets, 1).cpu().numpy().astype(dtype)
        self.bias_ = bias.cpu().numpy().astype(dtype)
        self.center_ = None if origin is None else (B @ (B.T @ origin)).cpu().numpy()
        self.eigenvalues_ = solution.eigenvalues.cpu().numpy()
        self.ridge_, self.loss_, self.decoder_ = solution.ridge, solution.loss, solution.decoder
        self.history_ = begun.tried + solution.history

    def _centers(self) -> Centers:
        Z = as_tensor(self.landmarks_, device=self.device)
        return Centers(self.kernel_, list(Z.chunk(self.n_landmark_sets_)))

    # ---- use --------------------------------------------------------------------------------------------------

    @wherever_rows_are
    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of each row, of shape (n, h).

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        """
        check_is_fitted(self)
        return self._evaluate(as_rows(X, self.sample_shape_), self.landmarks_, bias=self.bias_)

    @available_if(reconstructs)
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the rows that are reconstructed from embeddings, of shape (n, d); for the kernel autoencoder only.

        Parameters
        ----------
        X : array-like of shape (n, h)
            Embeddings.
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=PRECISIONS)
        if codes.shape[1] != len(self.bias_):
            raise ValueError(f"X has {codes.shape[1]} columns, and embeddings have {len(self.bias_)}.")
        return self.decoder_.rows(as_tensor(codes).to(self.decoder_.mean)).numpy().astype(codes.dtype)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the loss on views of the rows, drawn by `random_state` and without the penalty.

        For the kernel autoencoder it is minus the share of the variance of the rows that is lost.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        y : ignored
        """
        check_is_fitted(self)
        return -loss_of_rows(self, check_samples(self, X))

    @finite_answers
    def influence(self, X: Any) -> np.ndarray:
        """Return the influence of each landmark on the embedding of each row: k(x, x_l) |A_l| (krepes, section 5.1).

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
