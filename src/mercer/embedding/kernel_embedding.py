"""Representations on landmarks, learned without labels: self-supervised losses, exactly or by gradient."""

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
    """Learn an embedding f(x) = A^T k(x) + γ from unlabeled rows, so that views of one row have like embeddings.

    k(x) holds the kernel's values between x and m landmarks. A minimizes a self-supervised loss over pairs of views. Of
    three losses the optimum is exact: sums over the rows (`moments.py`) and one eigenproblem of size m
    (`closed_forms.py`), no steps and no learning rate (krepes, sections 2 and 3; ALGORITHMS has the formulas in one
    place). The kernel autoencoder solves for encoder and decoder in turn (`alternate.py`), and any other loss is
    minimized by gradient steps (`steps.py`). Ridge and bandwidth are chosen without labels, by the loss on rows that
    were not used to fit.

    Parameters
    ----------
    loss : str, callable or Objective, default="spectral_contrastive"
        "spectral_contrastive" is -2 E[f(x)^T f(x+)] + E[(f(x)^T f(x-))^2], x+ another view of the row of x and x- a
        view of any row. "simple_contrastive" is E[f(x)^T (f(x-) - f(x+))] under A^T K_mm A = I. "kernel_pca" is the
        squared error of reconstruction in the kernel's space, of the rows as they are: no views are drawn. These have
        an exact optimum. "kernel_autoencoder" is the squared error of rows reconstructed from their embeddings, and has
        an `inverse_transform`. Trained by steps are "simclr", "vicreg", "barlow_twins" and "byol", with their authors'
        settings; any callable of the views' embeddings, such as `partial(mercer.losses.simclr, temperature=0.1)`; and
        an `Objective` of `mercer.losses`.
    kernel : str, Kernel or callable, default="auto"
        "auto" is Gaussian for images. For tables a second Gaussian is added, with 4 times the bandwidth and 32 times
        the weight: nearly linear over the data, it keeps what a linear model of the columns sees.
    n_components : int or None, default=None
        h. None takes 150, or as many as there are.
    n_landmarks : int or None, default=None
        m, the number of rows of A. None takes 1000, or all rows if there are fewer; of images at
        most half of the rows, since a row that is a landmark is compared with itself.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"} or array, default="uniform"
        How landmarks are drawn from the rows; or the landmarks themselves, of shape (m, d); or the indices of rows,
        of shape (m,).
    landmark_tuples : {"shared", "by_view", "all"}, default="shared"
        What a landmark is to views: the row itself, for all views; its views, each for the views of its kind, as the
        paper has Z_A = K_A A and Z_B = K_B A; or all elements of the tuples of views for all views, m / n_views rows
        bringing as many landmarks as they have views. New rows are embedded by the mean over the sets of `by_view`.
    augment : str, None, View or callable of (batch, generator), default="auto"
        How views are drawn; see `mercer.views.check_view`. "auto" goes by the shape of one sample: for tables a row on
        its way to one of its neighbors, as far as most rows stay the nearest to their own view; for gray images gentle
        affine maps; crops, flips and colors for color images. "tables" is noise and dropped features, as in the paper.
        What a string stands for is applied to a table in units of its columns' standard deviations.
    n_views : int, default=2
        Views of each row.
    image_shape : tuple of int or None, default=None
        (height, width) or (height, width, channels) of images that come as flat rows. Images that come as arrays of
        shape (n, height, width) or (n, height, width, channels) have their own.
    ridge : float or "auto", default="auto"
        The weight λ of the penalty. "auto" is 0 for steps. For exact optima it is chosen by the loss of half of the
        rows under the optimum of the other half, without labels: the largest that keeps nine tenths of the best gain,
        since smooth embeddings need fewer labels, or that of the smallest loss for "kernel_pca". Views of a table
        by a shorthand are noise, on which nearly all directions agree: "auto" is then a tenth of the largest variance
        (eigenvalue of E[k k^T]), so that directions are ranked by variance as well. Under "simple_contrastive" the
        constraint takes the place of the penalty.
    bias : {"centered", "learned", "none"}, default="centered"
        γ. "centered" centers the embeddings over all views, and the loss is that of centered embeddings. "learned"
        minimizes the loss over γ too, from there. The spectral contrastive loss then has a first component that is
        constant; "kernel_pca", in whose loss a bias has no place, and losses that do not depend on γ keep the centered
        one. "none" is γ = 0.
    bandwidth : float, "median", "auto" or None, default="auto"
        "auto" keeps a number that the kernel has; in place of "median" it tries multiples of the median distance and
        takes that of the smallest spectral contrastive loss on rows left out. For images by a shorthand that is so
        whatever the loss, and from 4000 rows on; it is the median for fewer, for tables whose views are noise, and for
        tables under losses without views. None keeps the kernel's own.
    solver : "auto", Exact, Steps or Alternate, default="auto"
        How the loss is minimized: `mercer.embedding.Exact()` where it has a closed form, `Alternate()` for the kernel
        autoencoder, and for all others `Steps()`, which has epochs, optimizer, preconditioner, checkpoint and the like.
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
        Under `by_view` those of all views, each set after another, of shape (m n_views, d).
    landmark_indices_ : ndarray of shape (m,) or None
        The rows of `fit` that are landmarks; None where they were given, or are views.
    coefficients_ : ndarray of shape (m, h)
        A; of all landmarks of `by_view`.
    bias_ : ndarray of shape (h,)
    center_ : ndarray of shape (m,) or None
        The point of the kernel's space that embeddings are centered at, as coefficients of the landmarks.
    eigenvalues_ : ndarray of shape (h,)
        What ranks the components: how well views agree on each; or its variance, for "kernel_pca" and steps.
    decoder_ : Decoder or None
        Of the kernel autoencoder.
    ridge_ : float
    loss_ : float
        Of exact optima on the views of the fit, without the penalty. Of steps the mean over the rows left out, of the
        epoch that was kept and with the penalty; of the kernel autoencoder the share of their variance that is lost.
    history_ : list of dict
        Bandwidths and ridges that were tried: bandwidth, ridge, held_out_loss, rows. Then epochs: epoch, loss,
        criterion, learning_rate; or rounds: round, criterion.
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
        return self._learn(arrays[0], GivenViews(arrays))

    @all_or_nothing
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
        """Minimize the loss in coordinates in which the landmarks are white, return to theirs, A = B W, and publish."""
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
        """Return the rows that embeddings stand for, of shape (n, d); the kernel autoencoder alone has it.

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
        """Return minus the loss on views of the rows, drawn by `random_state`; the penalty is not in it.

        Of the kernel autoencoder it is minus the share of the variance of the rows that is lost.

        Parameters
        ----------
        X : array-like of shape (n, d), or images
        y : ignored
        """
        check_is_fitted(self)
        return -loss_of_rows(self, check_samples(self, X))

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
