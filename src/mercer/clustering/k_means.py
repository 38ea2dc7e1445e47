"""k-means of scikit-learn, in one thread and without its warning about equal points."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning as DistinctPointsWarning

from mercer.exceptions import ignored
from mercer.linalg import one_thread


def k_means(points: np.ndarray, n_clusters: int, *, n_init: int, random_state: Any) -> np.ndarray:
    """Return the cluster of each point, from the best of `n_init` runs; some clusters may remain empty."""
    # scikit-learn limits the threads of the BLAS and restores their earlier number afterwards, which goes wrong when
    # fits in several threads overlap. Here the earlier number is always one.
    with ignored(DistinctPointsWarning), one_thread():
        return KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(points).labels_
