"""Subspace clustering: self-expression of the rows, features learned for it, and spectral clustering."""

from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import (
    all_or_nothing,
    refuse_sparse,
    validated,
)
from mercer.clustering.distinct_rows import first_of_copies
from mercer.clustering.draws import MOST_ROWS_BROUGHT
from mercer.clustering.spectral import eigengap
from mercer.clustering.subspace.affinities import check_affinity
from mercer.clustering.subspace.candidates import Candidate, Iterate, best_of, climbed, highest, iterate_of
from mercer.clustering.subspace.feature_learning import check_feature_learning
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
    among_copies,
    columns_of_copies,
    expressed,
    expressed_in,
    joined_by,
    joined_through_landmarks,
    proposed_labels,
    voted_labels,
)
from mercer.clustering.subspace.landmark_graph import landmarks_of
from mercer.clustering.subspace.parameters import check_parameters
from mercer.clustering.subspace.predictions import SubspacePredictions
from mercer.clustering.subspace.ridges import Ridges, ridges_of
from mercer.kernels import Kernel, check_kernel
from mercer.linalg import one_thread
from mercer.rows import rows_brought_here

# Number of eigenvalues beyond those of the clusters that are kept, for the eigengap and its figure.
FURTHER_VALUES = 5


class SubspaceClustering(SubspacePredictions):
    """Cluster points that lie near a union of subspaces, by expressing each point through the others.

    The coefficients c_i express the i-th point by the others, phi(x_i) ≈ sum_j c_ij phi(x_j) in the space of a kernel.
    Their absolute values are the weights of a graph, and the eigenvectors of its Laplacian give the clusters. Before
    that, points may be projected so that self-expression is equally sensitive in all directions. The projection is the
    inverse ("precision") of the mean local covariance of self-expression: it shrinks the directions that all points
    share and emphasizes those that distinguish subspaces (Algorithm 1 of precision-subspace-clustering). ALGORITHMS has
    the formulas.

    Nothing is chosen by labels. Every iterate t = 0 ... n_iter is tried, t = 0 being the original points, and for each
    the search tries several ridges. The iterate whose clusters have the largest modularity is kept. Modularity measures
    how much more of the affinity lies inside clusters than would by chance. All graphs have the same number of
    neighbors for each point, which makes them comparable. `mercer.papers` has the paper's own settings.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        The number of clusters. "auto" takes the number, up to `max_clusters`, after which the eigenvalues of the
        Laplacian have the largest gap. With a small `truncate` a subspace may fall into several parts, which are then
        counted as clusters: "auto" works better with truncate=None.
    self_expression : str or SelfExpression, default="ridge"
        How coefficients are found: "ridge" (KTRR), "least_squares" (LSR), "lasso" (SSC), "elastic_net" (EnSC), "omp"
        (SSC-OMP), "low_rank" (LRR); or an object of `mercer.clustering.expression`, with settings of its own.
    kernel : str, Kernel or callable, default="linear"
        The kernel in whose space points are expressed.
    feature_learning : {"precision", "covariance", "none"} or FeatureLearning, default="precision"
        "precision" makes the covariance of self-expression isotropic in the kernel's space. "covariance" projects by
        the covariance itself, of self-expression mapped back to the data (section 4.3). "none" keeps the points. An
        object of `mercer.clustering.subspace`, `Precision` or `Covariance`, has settings of its own.
    n_iter : int, default=2
        The largest number of projections.
    iterate : {"auto", "last"}, default="auto"
        "auto" keeps the iterate with the largest modularity, and stops at the first iterate that does not raise it.
        "last" keeps the last one, as the paper does.
    ridge : float or "auto", default="auto"
        The ridge of self-expression by "ridge" and "least_squares", and of line 3 of Algorithm 1, as a share of the
        largest eigenvalue of the kernel matrix. "auto" tries several; for other kinds of self-expression it is 0.001.
        A `RidgeExpression` has a ridge of its own.
    truncate : int, None or "auto", default="auto"
        The number of coefficients that are kept for each point, the largest ones. None keeps all. "auto" is 6 for
        "ridge", "least_squares" and "low_rank", and None for the kinds of self-expression that are sparse by
        themselves.
    affinity : {"scaled", "plain", "doubly_stochastic"} or Affinity, default="scaled"
        How coefficients become a graph. "plain" is |C| + |C|^T, as in the paper. "scaled" is the same after scaling the
        largest coefficient of each point to 1. "doubly_stochastic" is the scaled graph with
        rows and columns scaled again, so that all of them sum to 1.
    normalize : bool, default=True
        Whether rows are first scaled to length 1, since subspaces do not depend on lengths. After a projection rows are
        always scaled.
    assign_labels : {"auto", "kmeans", "plain_kmeans", "cluster_qr"}, default="auto"
        How clusters are found from eigenvectors: "kmeans" is k-means on unit rows, "plain_kmeans" is k-means as in
        scikit-learn's SpectralClustering, and "cluster_qr" makes no random choices. "auto" compares three clusterings
        by modularity: "kmeans", "kmeans" on a graph in which all points have additional weak links, and a vote of the
        landmarks.
    max_clusters : int, default=20
        The largest number of clusters for n_clusters="auto".
    energy : float, default=0.98
        The share of the squared lengths of a cluster's points that its subspace must contain. Nine dimensions contain
        98 % for the images of a face under all lights (Basri and Jacobs 2003).
    n_landmarks : int or None, default=None
        The largest number of points by which others are expressed. None takes all points if there are at most 5000, and
        2000 landmarks otherwise. With landmarks, features are learned and choices are made on the landmarks only.
    random_state : int, RandomState instance or None, default=None
        Determines the landmarks, and the initial values of Lanczos iterations and of k-means.
    working_memory : float, default=64.0
        Memory for one block of rows, in MiB.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        The cluster of each row.
    n_clusters_ : int
        The number of clusters.
    coef_ : ndarray or sparse matrix of shape (m, n)
        Column i expresses point i by the points `landmark_indices_`. These are the landmarks, or without landmarks all
        points except copies of earlier rows.
    affinity_matrix_ : ndarray or sparse matrix of shape (n, n)
        The weights of the graph; copies of a row have its affinities. None with landmarks, since points are then linked
        through landmarks and the matrix is not formed.
    eigenvalues_ : ndarray
        The smallest eigenvalues of the Laplacian, some more than there are clusters.
    metric_ : Mahalanobis
        The product of the projections, with trace d. Features are unit rows of `metric_.project`.
    n_iter_ : int
        The iterate that was kept.
    ridge_ : float
        The ridge that was used.
    modularity_ : float
        The modularity of the clusters.
    dimensions_ : ndarray of shape (n_clusters_,)
        The dimension of each cluster's subspace.
    bases_ : list of ndarray of shape (dimension, d)
        Orthonormal bases of the clusters' subspaces, in rows.
    drawn_rows_ : ndarray of shape (n,) or None
        The row numbers that the labels belong to, if these rows were drawn from files or from Dask.
    history_ : list of dict
        What was compared: iteration, ridge, n_clusters, modularity, eigengap, chosen.
    landmark_indices_ : ndarray of shape (m,)
        The indices of the points by which others are expressed.
    dictionary_ : ndarray of shape (m, r)
        The features of these points, by which new points are expressed.
    kernel_ : Kernel
        The kernel on the features, with a number for the bandwidth.
    expression_ : SelfExpression
        The self-expression, with the ridge that was chosen.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    The cost is O(m^3 + m^2 d) for each setting that is compared. With landmarks, O(n m (d + m)) for all points is added
    once.

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
        feature_learning: Any = "precision",
        n_iter: int = 2,
        iterate: str = "auto",
        ridge: float | str = "auto",
        truncate: int | str | None = "auto",
        affinity: Any = "scaled",
        normalize: bool = True,
        assign_labels: str = "auto",
        max_clusters: int = 20,
        energy: float = 0.98,
        n_landmarks: int | None = None,
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
        self.truncate = truncate
        self.affinity = affinity
        self.normalize = normalize
        self.assign_labels = assign_labels
        self.max_clusters = max_clusters
        self.energy = energy
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.working_memory = working_memory

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "SubspaceClustering":
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d), or rows of files or of Dask (`mercer.rows`)
            Of more than 20 000 rows of files or of Dask, 20 000 are drawn to learn from; `predict` accepts all of them.
        y : ignored

        Returns
        -------
        self
        """
        refuse_sparse(self, X)
        X, drawn = rows_brought_here(self, X, MOST_ROWS_BROUGHT, self.random_state)
        X = validated(self, X, dtype=np.float64, ensure_min_samples=2)
        if not X.any():
            raise ValueError("all rows of X are zero: there are no subspaces to find.")
        check_parameters(self, X)
        random = check_random_state(self.random_state)
        first, which = self._distinct(X)
        rows = as_tensor(X[first])
        rows = unit_rows(rows) if self.normalize else rows
        kernel = check_kernel(self.kernel).resolved(rows.numpy(), random)
        landmarks = landmarks_of(rows, self.n_landmarks, random, self.working_memory)
        # With landmarks, everything is learned and chosen on them.
        points = rows if landmarks is None else rows[torch.from_numpy(landmarks)]
        # A metric preserves directions but not lengths: rows that do not have length 1 stay in their own coordinates.
        is_rotated = landmarks is None and self.normalize and is_rotation_invariant(kernel)
        # Factorizations by SciPy's BLAS, products by torch's and k-means by scikit-learn alternate, and the idle
        # threads of each wait actively while another works: on two cores, two threads took seven times as long as one.
        with one_thread():
            features = in_their_span(points) if is_rotated else Features(points)
            best, candidates = self._learned(features, kernel, random)
        clustering = best.clustering if landmarks is None else self._extended(best, rows, kernel, landmarks, random)
        self._keep(best, clustering, X, kernel, which, first if landmarks is None else first[landmarks])
        self.drawn_rows_ = drawn
        self.history_ = [candidate.record(chosen=candidate is best) for candidate in candidates]
        return self

    def _distinct(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to cluster, one of each set of copies, and for each row the position of its copy there.

        Copies of a row express each other and nothing else, which says nothing about subspaces. If there are no more
        distinct rows than clusters, all rows are taken; `check_n_clusters` has warned then.
        """
        first, which = first_of_copies(X)
        least = 2 if self.n_clusters == "auto" else int(self.n_clusters)
        return (first, which) if len(first) > least else (np.arange(len(X)), np.arange(len(X)))

    def _learned(
        self, features: Features, kernel: Kernel, random: np.random.RandomState
    ) -> tuple[Candidate, list[Candidate]]:
        """Run Algorithm 1 and compare all iterates; return the one that is kept, and all of them."""
        learner = check_feature_learning(self.feature_learning)
        n_iter = 0 if learner is None else self.n_iter
        ridges = ridges_of(self.self_expression, self.ridge)
        iterates, place = [iterate_of(0, features, kernel)], ridges.start
        candidates: list[Candidate] = []
        for t in range(n_iter + 1):
            iterate = iterates[0]
            if self.iterate == "auto" or len(ridges.values) > 1 or len(iterates) > 1 or t == n_iter:
                found = self._candidates(iterates, ridges, place, random)  # lines 13 to 15
                is_better = not candidates or highest(found).modularity > highest(candidates).modularity
                candidates += found
                if self.iterate == "auto" and not is_better:
                    break
                best = best_of(found)
                iterate = next(one for one in iterates if one.features is best.features)
                place = ridges.values.index(best.ridge)
            if learner is not None and t < n_iter:
                ridge = ridges.absolute(place, iterate.largest)
                projections = learner.projections(kernel, iterate.features.rows, iterate.K, ridge)  # lines 3 to 9
                keep_axes = not is_rotation_invariant(kernel)
                moved = [iterate.features.projected(P, keep_axes=keep_axes) for P in projections]  # lines 10 and 11
                iterates = [iterate_of(t + 1, one, kernel) for one in moved]  # line 2
        return best_of(candidates if self.iterate == "auto" else found), candidates

    def _candidates(
        self, iterates: list[Iterate], ridges: Ridges, place: int, random: np.random.RandomState
    ) -> list[Candidate]:
        """Return clusterings under several projections: all of them at one ridge, and the best at other ridges too."""
        first = [self._judged(iterate, ridges, place, random) for iterate in iterates]
        best = max(range(len(first)), key=lambda i: first[i].modularity)

        def judge(at: int) -> Candidate:
            return first[best] if at == place else self._judged(iterates[best], ridges, at, random)

        return [*(first[i] for i in range(len(first)) if i != best), *climbed(judge, place, len(ridges.values))]

    def _judged(self, iterate: Iterate, ridges: Ridges, place: int, random: np.random.RandomState) -> Candidate:
        """Return the clustering of one iterate at one ridge."""
        C = expressed(ridges.solved(place, iterate.largest), iterate.K, self._truncate())
        clustering = self._clustered(joined_by(C, check_affinity(self.affinity)), None, random)
        return Candidate(clustering, iterate.features, ridges.expression(place), ridges.values[place], iterate.number)

    def _clustered(
        self, graph: Graph, n_clusters: int | None, random: np.random.RandomState, voted: np.ndarray | None = None
    ) -> Clustering:
        """Return the clusters of a graph; as many as were asked for, unless their number is given."""
        if n_clusters is None and self.n_clusters != "auto":
            n_clusters = int(self.n_clusters)
        most = self.max_clusters if n_clusters is None else n_clusters
        with one_thread():  # sparse products and k-means on few columns: more threads would wait for each other
            spectrum = graph.spectrum(most + FURTHER_VALUES, random)
            k = eigengap(spectrum.eigenvalues[: most + 1]) if n_clusters is None else n_clusters
            labels = proposed_labels(graph, spectrum, k, self.assign_labels, random, voted)
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
        labels = best.clustering.labels
        voted = voted_labels(C, labels, labels)
        voted[landmarks] = labels
        return self._clustered(joined_through_landmarks(C), best.clustering.n_clusters, random, voted)

    def _keep(
        self,
        best: Candidate,
        clustering: Clustering,
        X: np.ndarray,
        kernel: Kernel,
        which: np.ndarray,
        landmarks: np.ndarray,
    ) -> None:
        clustering.warn()
        graph = clustering.graph
        self.labels_ = clustering.labels[which]
        self.n_clusters_ = int(clustering.n_clusters)
        self.coef_ = columns_of_copies(graph.coefficients, which)
        self.affinity_matrix_ = None if graph.through_landmarks else among_copies(graph.weights, which)
        self.eigenvalues_ = clustering.spectrum.eigenvalues
        self.metric_ = best.features.metric()
        self.n_iter_ = best.iteration
        self.ridge_ = best.ridge
        self.modularity_ = clustering.modularity
        self.bases_ = subspace_bases(X, self.labels_, self.n_clusters_, self.energy)
        self.dimensions_ = np.array([len(basis) for basis in self.bases_])
        self.landmark_indices_ = landmarks
        self.dictionary_ = best.features.rows.numpy()
        self.kernel_ = kernel
        self.expression_ = best.expression
