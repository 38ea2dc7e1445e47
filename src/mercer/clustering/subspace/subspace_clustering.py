"""Clusters that are subspaces: points expressed by each other, features learned for it, and the spectral step."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import check_choice, check_count, check_number, finite_answers, refuse_sparse
from mercer.clustering.affinity import indicator
from mercer.clustering.distinct_rows import check_n_clusters
from mercer.clustering.expression import RidgeExpression, SelfExpression, check_expression
from mercer.clustering.expression.ridge import absolute_ridge
from mercer.clustering.spectral import ASSIGNMENTS, assign, eigengap
from mercer.clustering.subspace.candidates import Candidate, best_of
from mercer.clustering.subspace.features import (
    Features,
    in_their_span,
    is_rotation_invariant,
    new_rows,
    subspace_bases,
    unit_rows,
)
from mercer.clustering.subspace.graphs import (
    Clustering,
    Graph,
    expressed,
    expressed_in,
    joined_by,
    joined_through_landmarks,
)
from mercer.clustering.subspace.precision import (
    INVERSIONS,
    Projection,
    data_covariance,
    latent_covariance,
    shaped_projection,
)
from mercer.exceptions import NumericalError
from mercer.kernels import Kernel, check_kernel
from mercer.landmarks import choose_landmarks

FEATURE_LEARNING = ("precision", "covariance", "none")
# ridge="auto" tries these shares of the largest eigenvalue.
RIDGES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)
# Line 3's where self-expression has no ridge of its own.
LINE_3_RIDGE = 1e-3
# How many coefficients of a point truncate="auto" keeps of those that are spread over all points.
KEPT = 6
# n_landmarks=None takes all points up to the first number, and the second number of landmarks past it.
MOST_POINTS, DEFAULT_LANDMARKS = 5000, 2000
# Eigenvalues past those of the clusters, for the eigengap and its figure.
FURTHER_VALUES = 5


class SubspaceClustering(ClusterMixin, BaseEstimator):
    """Cluster points by the subspaces that they lie near: each point is expressed by others of its own subspace.

    c_i expresses the i-th point by the others, phi(x_i) ≈ sum_j c_ij phi(x_j) in the space of a kernel; the absolute
    coefficients are a graph, and the eigenvectors of its Laplacian give the clusters. Before that, points may be
    projected so that self-expression is equally sensitive in all directions: the inverse, "precision", of its mean
    local covariance shrinks what all points share and brings out what tells subspaces apart (Algorithm 1 of
    precision-subspace-clustering). ALGORITHMS has the formulas.

    Nothing is chosen by labels. Every iterate t = 0 ... n_iter, the points as they came included, and every ridge is a
    candidate, and the one whose clusters have the largest modularity is kept: how much more of the affinity lies inside
    clusters than chance would put there. All candidates have graphs with as many neighbours a point, which makes them
    comparable.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        "auto" takes the number, up to `max_clusters`, after which the Laplacian's eigenvalues have the largest gap. A
        small `truncate` may leave a subspace in several parts, which count: None is better there.
    self_expression : str or SelfExpression, default="ridge"
        "ridge" (KTRR), "least_squares" (LSR), "lasso" (SSC), "elastic_net" (EnSC), "omp" (SSC-OMP), "low_rank" (LRR);
        or an object of `mercer.clustering.expression`, with settings of its own.
    kernel : str, Kernel or callable, default="linear"
        In whose space points are expressed.
    feature_learning : {"precision", "covariance", "none"}, default="precision"
        "precision" makes the covariance of self-expression isotropic in the kernel's space. "covariance" projects by
        the covariance itself, of self-expression mapped back to the data (section 4.3). "none" keeps the points.
    n_iter : int, default=2
        Projections at most.
    iterate : {"auto", "last"}, default="auto"
        "auto" keeps the iterate of the largest modularity, "last" the last one, as the paper does.
    ridge : float or "auto", default="auto"
        Of self-expression by "ridge" and "least_squares", and of line 3 of Algorithm 1. "auto" tries several, and is
        0.001 of the largest eigenvalue for other kinds of self-expression.
    shrinkage : float, default=0.1
        The lambda of line 6: variances far below it are not told apart.
    inversion : {"lemma", "algorithm"}, default="lemma"
        How "precision" inverts a variance D: 1 / (D + lambda) as in Lemma 1, or D / (D + lambda)^2 as in line 6.
    relative : bool, default=True
        Whether `ridge` and `shrinkage` are shares of the largest eigenvalue, of the kernel matrix and the covariance.
    n_directions : int or None, default=None
        Keep so many directions of each projection; None keeps all.
    truncate : int, None or "auto", default="auto"
        How many coefficients of a point count, the largest; None counts all. "auto" is 6 for "ridge", "least_squares"
        and "low_rank", and None for those that are sparse by themselves.
    doubly_stochastic : bool, default=False
        Whether the affinity is scaled so that all its rows and columns sum to 1.
    normalize : bool, default=True
        Whether rows are scaled to length 1 first: subspaces have no lengths. After a projection they always are.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How clusters come from eigenvectors: k-means, or without random choices.
    n_init : int, default=10
        Runs of k-means.
    max_clusters : int, default=20
        The most clusters that n_clusters="auto" takes.
    energy : float, default=0.98
        Share of a cluster's squared lengths that its subspace holds. Nine dimensions hold 98 % of the images of a face
        under all lights (Basri and Jacobs 2003).
    n_landmarks : int or None, default=None
        How many points, at most, others are expressed in. None takes all points up to 5000, and 2000 landmarks past it.
        Features are then learned, and choices made, on the landmarks alone.
    landmarks : {"uniform", "kmeans++"}, default="kmeans++"
        How landmarks are drawn.
    random_state : int, RandomState instance or None, default=None
        Draws landmarks, and starts Lanczos steps and k-means.
    working_memory : float, default=64.0
        MiB for one block of rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
    n_clusters_ : int
    coef_ : ndarray or sparse matrix of shape (m, n)
        Column i expresses point i in the points `landmark_indices_`.
    affinity_matrix_ : ndarray or sparse matrix of shape (n, n)
        None with landmarks: points are joined through them, and no such matrix is formed.
    eigenvalues_ : ndarray
        The smallest eigenvalues of the Laplacian, some more than there are clusters.
    metric_ : Mahalanobis
        The product of the projections, with trace d. Features are unit rows of `metric_.project`.
    n_iter_ : int
        The iterate that was kept.
    ridge_ : float
    modularity_ : float
    dimensions_ : ndarray of shape (n_clusters_,)
    bases_ : list of ndarray of shape (dimension, d)
        Orthonormal bases of the clusters' subspaces, in rows.
    history_ : list of dict
        Candidates: iteration, ridge, n_clusters, modularity, eigengap, chosen.
    landmark_indices_ : ndarray of shape (m,)
    dictionary_ : ndarray of shape (m, r)
        The features of those points, in which new ones are expressed.
    kernel_ : Kernel
        With a number for the bandwidth; on the features.
    expression_ : SelfExpression
        With the ridge that was chosen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    O(m^3 + m^2 d) for each candidate, and O(n m (d + m)) once for all points, with landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SubspaceClustering
    >>> random = np.random.default_rng(0)
    >>> X = np.vstack([random.normal(size=(30, 2)) @ random.normal(size=(2, 10)) for _ in range(3)])
    >>> model = SubspaceClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.dimensions_.tolist(), np.bincount(model.labels_).tolist()
    ([2, 2, 2], [30, 30, 30])
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        self_expression: Any = "ridge",
        kernel: Any = "linear",
        feature_learning: str = "precision",
        n_iter: int = 2,
        iterate: str = "auto",
        ridge: float | str = "auto",
        shrinkage: float = 0.1,
        inversion: str = "lemma",
        relative: bool = True,
        n_directions: int | None = None,
        truncate: int | str | None = "auto",
        doubly_stochastic: bool = False,
        normalize: bool = True,
        assign_labels: str = "kmeans",
        n_init: int = 10,
        max_clusters: int = 20,
        energy: float = 0.98,
        n_landmarks: int | None = None,
        landmarks: str = "kmeans++",
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
    ) -> None:
        self.n_clusters = n_clusters
        self.self_expression = self_expression
        self.kernel = kernel
        self.feature_learning = feature_learning
        self.n_iter = n_iter
        self.iterate = iterate
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.inversion = inversion
        self.relative = relative
        self.n_directions = n_directions
        self.truncate = truncate
        self.doubly_stochastic = doubly_stochastic
        self.normalize = normalize
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.max_clusters = max_clusters
        self.energy = energy
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state
        self.working_memory = working_memory

    def fit(self, X: Any, y: Any = None) -> "SubspaceClustering":
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        refuse_sparse(self, X)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        if not X.any():
            raise ValueError("all rows of X are zero: there are no subspaces to find.")
        self._check_parameters(X)
        random = check_random_state(self.random_state)
        rows = as_tensor(X)
        rows = unit_rows(rows) if self.normalize else rows
        kernel = check_kernel(self.kernel).resolved(rows.numpy(), random)
        landmarks = self._landmarks(rows, random)
        # All is learned and chosen on the landmarks, if there are any.
        points = rows if landmarks is None else rows[torch.from_numpy(landmarks)]
        # A metric keeps directions, and not lengths: rows that are not of length 1 stay in their own coordinates.
        is_rotated = landmarks is None and self.normalize and is_rotation_invariant(kernel)
        features = in_their_span(points) if is_rotated else Features(points)
        n_iter = 0 if self.feature_learning == "none" else self.n_iter

        candidates: list[Candidate] = []
        for t in range(n_iter + 1):
            if self.iterate == "auto" or self.ridge == "auto" or t == n_iter:
                candidates += self._candidates(t, features, kernel, random)  # lines 13 to 15
            if t < n_iter:
                ridge = best_of(candidates, t).ridge if self.ridge == "auto" else float(self.ridge)
                features = features.projected(self._projection(features.rows, kernel, ridge))  # lines 2 to 11
        best = best_of(candidates, None if self.iterate == "auto" else n_iter)
        clustering = best.clustering if landmarks is None else self._extended(best, rows, kernel, landmarks, random)
        self._keep(best, clustering, X, kernel, landmarks)
        self.history_ = [candidate.record(chosen=candidate is best) for candidate in candidates]
        return self

    @finite_answers
    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of new points: that of the points which express them most.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            The cluster with the largest sum of absolute coefficients; a point that nothing expresses, such as a row of
            zeros, goes to the largest cluster.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        rows = new_rows(as_tensor(X), self.metric_, normalize=self.normalize)
        C = expressed_in(
            self.expression_,
            self.kernel_,
            torch.from_numpy(self.dictionary_),
            rows,
            None,
            self._truncate(),
            self.working_memory,
        )
        masses = np.asarray(abs(C).T @ indicator(self.labels_)[self.landmark_indices_])
        if not np.isfinite(masses).all():
            raise NumericalError("SubspaceClustering.predict: numbers of X, or of the model, are too large.")
        largest = np.bincount(self.labels_).argmax()
        return np.where(masses.any(axis=1), masses.argmax(axis=1), largest)

    def _candidates(self, t: int, features: Features, kernel: Kernel, random: np.random.RandomState) -> list[Candidate]:
        """Return the clusterings of one iterate, one a ridge."""
        found = []
        for ridge, expression in self._expressions():
            C = expressed(expression, kernel, features.rows, self._truncate())
            clustering = self._clustered(joined_by(C, doubly_stochastic=self.doubly_stochastic), None, random)
            found.append(Candidate(clustering, features, expression, ridge, t))
        return found

    def _clustered(self, graph: Graph, n_clusters: int | None, random: np.random.RandomState) -> Clustering:
        """Return the clusters of a graph; as many as were asked for, unless their number is given."""
        if n_clusters is None and self.n_clusters != "auto":
            n_clusters = int(self.n_clusters)
        most = self.max_clusters if n_clusters is None else n_clusters
        spectrum = graph.spectrum(most + FURTHER_VALUES, random)
        k = eigengap(spectrum.eigenvalues[: most + 1]) if n_clusters is None else n_clusters
        labels = assign(spectrum, k, method=self.assign_labels, n_init=self.n_init, random=random)
        return Clustering(graph, spectrum, labels, k, graph.modularity(labels))

    def _extended(
        self, best: Candidate, rows: Tensor, kernel: Kernel, landmarks: np.ndarray, random: np.random.RandomState
    ) -> Clustering:
        """Return the clusters of all rows, expressed in the landmarks as these express each other best."""
        own = torch.full((len(rows),), -1, dtype=torch.int64)
        own[torch.from_numpy(landmarks)] = torch.arange(len(landmarks))
        features = new_rows(rows, best.features.metric(), normalize=False)
        C = expressed_in(
            best.expression, kernel, best.features.rows, features, own, self._truncate(), self.working_memory
        )
        return self._clustered(joined_through_landmarks(C), best.clustering.n_clusters, random)

    def _expressions(self) -> list[tuple[float, SelfExpression]]:
        """Return the kinds of self-expression to try, each with the ridge that it has, or that line 3 takes."""
        expression = check_expression(self.self_expression)
        if not isinstance(self.self_expression, str) or not isinstance(expression, RidgeExpression):
            return [(LINE_3_RIDGE if self.ridge == "auto" else float(self.ridge), expression)]
        ridges = RIDGES if self.ridge == "auto" else (float(self.ridge),)
        return [(ridge, expression.with_params(ridge=ridge, relative=self.relative)) for ridge in ridges]

    def _projection(self, X: Tensor, kernel: Kernel, ridge: float) -> Projection:
        """Return the projection of one iteration of Algorithm 1."""
        K = kernel.matrix(X)  # line 2
        ridge = absolute_ridge(K, ridge, relative=self.relative)
        covariance = latent_covariance if self.feature_learning == "precision" else data_covariance
        Sigma = covariance(kernel, X, ridge, K=K)  # lines 3 and 4
        inversion = self.inversion if self.feature_learning == "precision" else None
        return shaped_projection(
            Sigma, self.shrinkage, inversion=inversion, relative=self.relative, rank=self.n_directions
        )  # lines 5 to 9

    def _keep(
        self, best: Candidate, clustering: Clustering, X: np.ndarray, kernel: Kernel, landmarks: np.ndarray | None
    ) -> None:
        clustering.warn()
        self.labels_ = clustering.labels
        self.n_clusters_ = int(clustering.n_clusters)
        self.coef_ = clustering.graph.coefficients
        self.affinity_matrix_ = None if landmarks is not None else clustering.graph.weights
        self.eigenvalues_ = clustering.spectrum.eigenvalues
        self.metric_ = best.features.metric()
        self.n_iter_ = best.iteration
        self.ridge_ = best.ridge
        self.modularity_ = clustering.modularity
        self.bases_ = subspace_bases(X, self.labels_, self.n_clusters_, self.energy)
        self.dimensions_ = np.array([len(basis) for basis in self.bases_])
        self.landmark_indices_ = np.arange(len(X)) if landmarks is None else landmarks
        self.dictionary_ = best.features.rows.numpy()
        self.kernel_ = kernel
        self.expression_ = best.expression

    def _landmarks(self, rows: Tensor, random: np.random.RandomState) -> np.ndarray | None:
        n = len(rows)
        wanted = self.n_landmarks
        if wanted is None:
            wanted = n if n <= MOST_POINTS else DEFAULT_LANDMARKS
        if wanted >= n:
            return None
        return choose_landmarks(
            rows.numpy(), wanted, self.landmarks, random_state=random, working_memory=self.working_memory
        )

    def _truncate(self) -> int | None:
        if self.truncate == "auto":
            return None if check_expression(self.self_expression).is_sparse else KEPT
        return self.truncate  # type: ignore[return-value]

    def _check_parameters(self, X: np.ndarray) -> None:
        if self.n_clusters != "auto":
            check_n_clusters(self.n_clusters, X)
        check_choice("feature_learning", self.feature_learning, FEATURE_LEARNING)
        check_choice("iterate", self.iterate, ("auto", "last"))
        check_choice("inversion", self.inversion, tuple(INVERSIONS))
        check_choice("assign_labels", self.assign_labels, ASSIGNMENTS)
        check_choice("landmarks", self.landmarks, ("uniform", "kmeans++"))
        check_count("n_iter", self.n_iter, at_least=0)
        check_count("n_init", self.n_init)
        check_count("max_clusters", self.max_clusters, at_least=2)
        check_number("shrinkage", self.shrinkage, above=0.0)
        check_number("energy", self.energy, above=0.0, at_most=1.0)
        check_number("working_memory", self.working_memory, above=0.0)
        check_expression(self.self_expression)
        if self.ridge != "auto":
            check_number("ridge", self.ridge, above=0.0)
        for name in ("n_directions", "n_landmarks"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.truncate is not None and self.truncate != "auto":
            check_count("truncate", self.truncate)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
