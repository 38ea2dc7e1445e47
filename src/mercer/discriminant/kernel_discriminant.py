"""Kernel discriminant analysis: a supervised map whose within-class variance is estimated on left-out rows."""

from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import PRECISIONS, all_or_nothing, check_count, refuse_sparse, validated
from mercer.discriminant import choice
from mercer.discriminant.choice import (
    Freedom,
    choose_with_landmarks,
    is_free,
    judged_rows,
    left_out_log_loss,
    ridges_that_keep,
    ridges_tried,
)
from mercer.discriminant.class_predictions import ClassPredictions
from mercer.discriminant.directions import exact_discriminants, unregularized_discriminants
from mercer.discriminant.gaussian_classes import gaussian_classes
from mercer.discriminant.groups import Discriminants, Groups, double_centered, variance_ratios
from mercer.discriminant.kernel_choice import AUTO_KERNELS, choose_exact
from mercer.discriminant.landmark_rows import LandmarkRows
from mercer.discriminant.left_out import left_out_or_own
from mercer.discriminant.parameters import check_parameters
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.kernels import Kernel, check_kernel
from mercer.landmarks import choose_landmarks
from mercer.mahalanobis import check_metric
from mercer.rows import drawn_rows, is_elsewhere, numbered_classes, validated_column, validated_rows

# n_landmarks="auto" uses all rows if there are at most EXACT_ROWS, and AUTO_LANDMARKS landmarks otherwise.
EXACT_ROWS = 10_000
AUTO_LANDMARKS = 4000
# At most this many rows are used to draw landmarks, to compare ridges and to describe classes, each row being left out
# in turn. More are not needed: differences of log losses on the same rows vary far less than the losses themselves.
MOST_JUDGED = 20_000


class KernelDiscriminant(ClassPredictions):
    """Find the functions with the largest ratio of total to within-class variance, and classify in their values.

    Solves (13) of the note `kernel-discriminant`: for one component after another, each uncorrelated with those before,

        max over alpha of  alpha^T K C K alpha / alpha^T (sum_y K_y^T C K_y + ridge R) alpha

    with R the identity or K. All components come from one symmetric eigenproblem. `transform` returns the values of the
    components (11), or (14) if centered. They are uncorrelated over the rows of `fit` and have a regularized
    within-class variance of 1.

    `predict` and `predict_proba` model each class by a Gaussian in this space, with one covariance for all classes. The
    Gaussians are estimated from leave-one-out values, which have a closed form: on the rows of the fit themselves the
    within-class variance would be too small. A temperature corrects for tails that are not Gaussian, so that the
    probabilities are calibrated. It minimizes the log loss of the leave-one-out values, if possible on rows that were
    not used to choose the bandwidth and the ridge.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        The kernel: "gaussian", "laplace", "matern32", "matern52", "polynomial", "linear", a kernel object (for
        instance, one with a learned metric), a function of two sets of rows, or "precomputed". "auto" takes the one of
        "gaussian", "laplace" and "matern32" with the smallest squared error on left-out rows, of at most 1000 rows.
    metric : {"identity", "diagonal", "full", "auto"}, default="identity"
        How the metric is learned: "diagonal" and "full" by average gradient outer products of a regression of the
        classes, on at most 1000 rows. "identity" keeps the metric of the kernel. "auto" compares them by the errors on
        rows that the metric was not learned from; it includes "full" for up to 100 columns. On tables "auto" costs
        little and often improves the predictions.
    n_components : int or None, default=None
        Number of components: at most n - 1, or at most the number of landmarks. None is the number of classes - 1.
    ridge : float or "auto", default="auto"
        The lambda of (13). "auto" chooses it by left-out errors, which have a closed form. Without landmarks it
        minimizes the squared error of the ridge regression that is equivalent to the discriminants, on at most 1000
        rows; with landmarks it minimizes the log loss, on all rows.
    regularizer : {"identity", "rkhs"}, default="rkhs"
        R = I penalizes the coefficients, R = K the norm of the functional. R = K takes less than half the time.
    center : bool, default=True
        Whether to center the features: K becomes C K C, in the RKHS regularizer too. With landmarks the kernel values
        of a row are centered over the landmarks, and R = C_m K_mm C_m.
    n_landmarks : int, "auto" or None, default="auto"
        Number of landmarks m, in O(m^2 + n) memory and O(n m^2 + m^3) time. None uses every row and is exact, in O(n^2)
        memory and O(n^3) time. "auto" uses every row if there are at most 10 000, and 4000 landmarks otherwise.
    priors : array-like of shape (n_classes,) or None, default=None
        Prior probabilities of the classes. None takes their shares among the rows.
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply the prior of each class, and the weight of its rows in the log loss that calibrates the
        probabilities. "balanced" compensates for unequal numbers of rows. The directions do not depend on it.
    bandwidth : float, "median", "auto" or None, default="auto"
        The bandwidth, which replaces that of the kernel; None keeps the kernel's. "auto" keeps a number that the kernel
        has. If the kernel's bandwidth is "median", "auto" searches multiples of the median distance by the criterion of
        the ridge, on at most 1000 rows, or with landmarks on at most 500 landmarks and 4000 rows.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        How landmarks are drawn from the rows: with equal probabilities, far from each other, or by one of two estimates
        of the ridge leverage scores (see `mercer.landmarks.choose_landmarks`).
    random_state : int, RandomState instance or None, default=None
        Determines the landmarks, the rows of the search and the rows whose median distance is used.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels, in sorted order.
    kernel_ : Kernel
        The kernel, with a number for the bandwidth; None if precomputed.
    ridge_ : float
        The ridge that was used.
    basis_ : ndarray of shape (n, d) or (m, d)
        The rows or landmarks at which the kernel is evaluated; None if precomputed.
    coefficients_ : ndarray of shape (n, n_components) or (m, n_components)
        The coefficients of the components: `transform` returns k_x^T coefficients_ + bias_.
    bias_ : ndarray of shape (n_components,)
        The constants of the components.
    ratios_ : ndarray of shape (n_components,)
        The regularized ratios that (13) maximizes.
    variance_ratios_ : ndarray of shape (n_components,)
        The unregularized ratios of total to within-class variance (10) over the rows of `fit`.
    centroids_ : ndarray of shape (n_classes, n_components)
        The centers of the classes in the discriminant space.
    covariance_ : ndarray of shape (n_components, n_components)
        The covariance of the classes in the discriminant space, pooled over leave-one-out values.
    temperature_ : float
        The number by which squared distances to the centers are divided.
    priors_ : ndarray of shape (n_classes,)
        The prior probabilities of the classes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from mercer import KernelDiscriminant
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelDiscriminant(random_state=0).fit(scale(X), y)
    >>> model.transform(scale(X)).shape
    (178, 2)
    """

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        metric: str = "identity",
        n_components: int | None = None,
        ridge: float | str = "auto",
        regularizer: str = "rkhs",
        center: bool = True,
        n_landmarks: int | str | None = "auto",
        priors: Any = None,
        class_weight: Any = None,
        bandwidth: float | str | None = "auto",
        landmarks: str = "uniform",
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.n_components = n_components
        self.ridge = ridge
        self.regularizer = regularizer
        self.center = center
        self.n_landmarks = n_landmarks
        self.priors = priors
        self.class_weight = class_weight
        self.bandwidth = bandwidth
        self.landmarks = landmarks
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    # ---- fit --------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> "KernelDiscriminant":
        """Find the discriminants of the classes y.

        Parameters
        ----------
        X : array-like of shape (n, d), or rows of files or of Dask (`mercer.rows`)
            The (n, n) kernel matrix, if the kernel is precomputed.
        y : array-like of shape (n,), or a column of files or of Dask

        Returns
        -------
        self
        """
        refuse_sparse(self, X)
        if is_elsewhere(X):
            X = validated_rows(self, X)
            y = validated_column(y, len(X))
        else:
            X, y = validated(self, X, y, dtype=PRECISIONS)
        self.classes_, index, labels = numbered_classes(y)
        groups = Groups.from_index(torch.from_numpy(index).to(self.device), len(self.classes_))
        check_parameters(self, self.classes_, exact=self._n_landmarks(len(X)) is None)
        self._check_precomputed(X)
        random = check_random_state(self.random_state)

        n_landmarks = self._n_landmarks(len(X))
        judged = groups
        if n_landmarks is None:
            X = np.asarray(X)
            kernels, freedom = self._kernels(X, random)
            searched = drawn_rows(len(X), choice.SEARCH_ROWS, random)
            wanted = self._n_components(groups, at_most=len(X) - 1, why="the rank, rows - 1")
            kernel, ridge = self._choose(X, kernels, groups, searched, wanted, freedom, random)
            found = self._fit_exact(X, kernel, groups, ridge, wanted)
        else:
            kernel, ridge, found, judged = self._fit_landmarks(X, labels, groups, n_landmarks, random)
            searched = np.arange(len(judged.of_row))

        self.kernel_, self.ridge_ = kernel, ridge
        self.ratios_ = found.ratios.cpu().numpy()
        self.variance_ratios_ = variance_ratios(found.values, judged).cpu().numpy()
        self._fit_classes(found, groups, judged, searched)
        return self

    def _fit_exact(
        self, X: np.ndarray, kernel: Kernel | None, groups: Groups, ridge: float, wanted: int
    ) -> Discriminants:
        x = as_tensor(X, dtype=torch.float64, device=self.device)
        K = x if kernel is None else kernel.matrix(x, working_memory=self.working_memory)
        column_means = K.mean(dim=0)
        K = double_centered(K) if self.center else K
        if ridge:
            found = exact_discriminants(K, groups, ridge, self.regularizer, wanted, intercept=self.center)
        else:
            found = unregularized_discriminants(K, groups, wanted, intercept=self.center)
        # (14): (k_x - column means)^T C alpha.
        coefficients = found.alpha - found.alpha.mean(dim=0) if self.center else found.alpha
        bias = -(column_means @ coefficients) if self.center else torch.zeros_like(found.ratios)
        self._keep(X if kernel is not None else None, coefficients, bias, X.dtype)
        return found

    def _fit_landmarks(
        self, X: Any, labels: Any, groups: Groups, n_landmarks: int, random: np.random.RandomState
    ) -> tuple[Kernel, float, Discriminants, Groups]:
        """Return the kernel, the ridge, the discriminants, and the classes of the rows at which they were evaluated."""
        if self._is_precomputed():
            raise invalid_parameter("n_landmarks", n_landmarks, "None if kernel='precomputed'")
        # Rows in files are read twice: some of them here, for all choices, and all of them later, for the sums.
        some = judged_rows(groups, max(MOST_JUDGED, 2 * n_landmarks), random)
        seen, judged = (X[some.rows], groups.of_rows(some.rows)) if len(some.rows) < len(X) else (X, groups)
        pool = seen if some.drawn is None else seen[some.drawn]
        kernels, freedom = self._kernels(pool, random)
        kernel, memory = check_kernel(kernels[0]), self.working_memory
        if len(kernels) > 1 or self.metric != "identity":
            # The kernel and metric chosen for functions of all rows also suit landmarks; the bandwidth does not.
            searched = drawn_rows(len(seen), choice.SEARCH_ROWS, random)
            wanted = len(groups.counts) - 1
            kernel = self._choose(seen, kernels, judged, searched, wanted, freedom, random)[0] or kernel
            kernel = kernel.rescaled(1.0 / choice.FIRST_BANDWIDTH) if freedom.bandwidth else kernel
        chosen = choose_landmarks(
            pool,
            n_landmarks,
            self.landmarks,
            metric=kernel.common_metric(),
            kernel=kernel,
            random_state=random,
            working_memory=memory,
        )
        Z = pool[chosen]
        wanted = self._n_components(groups, at_most=len(chosen), why="the number of landmarks")
        if freedom.bandwidth:
            options = (self.regularizer, self.center, memory, random)
            kernel = choose_with_landmarks(kernel, seen, Z, judged, wanted, *options)
        rows = LandmarkRows(X, Z, kernel, self.center, memory, self.device)
        basis = rows.basis(groups, self.regularizer, labels)
        ridges = [freedom.ridge] if freedom.ridge is not None else ridges_tried(kernel, Z, self.regularizer)
        ridges = ridges_that_keep(basis, ridges, wanted)
        tried = rows.of(seen).discriminants(basis, judged, ridges, wanted)
        losses = [left_out_log_loss(found, judged) for found in tried] if len(tried) > 1 else [0.0]
        best = int(np.argmin(losses))
        found, ridge = tried[best], ridges[best]
        alpha = found.alpha
        coefficients = alpha - alpha.mean(dim=0) if self.center else alpha
        bias = -(basis.mean @ alpha) if self.center else torch.zeros_like(found.ratios)
        offset = 0.0 if self.center else basis.mean @ alpha
        self._keep(rows.landmarks, coefficients, bias, X.dtype)
        found = found._replace(values=found.values + offset, left_out=found.left_out + offset)
        return kernel, ridge, found, judged

    def _keep(self, basis: np.ndarray | None, coefficients: Tensor, bias: Tensor, dtype: Any) -> None:
        if coefficients.shape[1] == 0:
            raise ValueError(
                "all rows are equal under the kernel, so that no direction tells the classes apart: X must have rows "
                "that differ, the bandwidth must not be far larger than their distances, nor the ridge far larger than "
                "the kernel."
            )
        if self.n_components is not None and coefficients.shape[1] < self.n_components:
            warn_user(
                f"n_components={self.n_components}, but only {coefficients.shape[1]} directions have variance: "
                f"{coefficients.shape[1]} components are kept.",
                DataWarning,
            )
        # A copy: the caller may change the array later.
        self.basis_ = None if basis is None else np.array(basis)
        self.coefficients_ = coefficients.cpu().numpy().astype(dtype)
        self.bias_ = bias.cpu().numpy().astype(dtype)

    def _fit_classes(self, found: Discriminants, groups: Groups, judged: Groups, searched: np.ndarray) -> None:
        """Describe each class by a Gaussian in the discriminant space, from leave-one-out values of the judged rows."""
        of_row = judged.of_row.cpu().numpy()
        counts = groups.counts.cpu().numpy()
        if (counts == 1).any():
            warn_user(
                f"the classes {self.classes_[counts == 1].tolist()} have one row each: their spread is taken from the "
                "others.",
                DataWarning,
            )
        weights = np.ones(len(counts))
        if self.class_weight is not None:
            weights = compute_class_weight(
                self.class_weight, classes=self.classes_, y=self.classes_[groups.of_row.cpu().numpy()]
            )
        given = (counts if self.priors is None else np.asarray(self.priors, dtype=np.float64)) * weights
        # Bandwidth and ridge were chosen on the rows of the search, so other rows are used here if there are enough.
        others = np.setdiff1d(np.arange(len(of_row)), searched)
        judges = others if len(others) >= len(searched) else np.arange(len(of_row))
        values = left_out_or_own(found, judged).cpu().numpy()
        classes = gaussian_classes(values, of_row, given / given.sum(), weights, judges)
        self.centroids_, self.covariance_ = classes.centroids, classes.covariance
        self.priors_, self.temperature_ = classes.priors, classes.temperature

    # ---- choices ----------------------------------------------------------------------------------------------

    def _kernels(self, X: np.ndarray, random: np.random.RandomState) -> tuple[list[Kernel | None], Freedom]:
        """Return the kernels to choose from, with numbers for their bandwidths, and what is still to be chosen."""
        ridge = None if self.ridge == "auto" else float(self.ridge)
        if self._is_precomputed():
            return [None], Freedom(False, ridge)
        bandwidth = None if self.bandwidth == "auto" else self.bandwidth
        is_auto = isinstance(self.kernel, str) and self.kernel == "auto"
        kernels = [check_kernel(kernel, bandwidth) for kernel in (AUTO_KERNELS if is_auto else [self.kernel])]
        free = self.bandwidth == "auto" and is_free(kernels[0])
        if free and ridge == 0:
            raise invalid_parameter("ridge", self.ridge, "above 0 with landmarks or where the bandwidth is chosen")
        if self.metric != "identity":
            check_metric(kernels[0].single_metric())
        return [kernel.resolved(X, random) for kernel in kernels], Freedom(free, ridge)

    def _choose(
        self,
        X: np.ndarray,
        kernels: list[Kernel | None],
        groups: Groups,
        rows: np.ndarray,
        wanted: int,
        freedom: Freedom,
        random: np.random.RandomState,
    ) -> tuple[Kernel | None, float]:
        """Return the kernel and the ridge of a fit on all rows, both chosen where they are "auto"."""
        if freedom.ridge is not None and not freedom.bandwidth and len(kernels) == 1 and self.metric == "identity":
            return kernels[0], freedom.ridge
        options = (self.regularizer, self.center, freedom, random)
        return choose_exact(kernels, self.metric, X, groups, rows, wanted, *options)

    def _n_landmarks(self, n: int) -> int | None:
        if isinstance(self.n_landmarks, str):
            return None if self._is_precomputed() or n <= EXACT_ROWS else AUTO_LANDMARKS
        return self.n_landmarks

    def _n_components(self, groups: Groups, at_most: int, why: str) -> int:
        default = min(len(groups.counts) - 1, at_most)
        if self.n_components is None:
            return default
        return check_count("n_components", self.n_components, at_most=at_most, why=why)
