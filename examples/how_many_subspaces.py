"""How many subspaces are there?

Points are near a few subspaces of a space of forty dimensions, and the number of subspaces is unknown. Each point is
written as a combination of the others. The graph of these combinations then has separate parts, one for each subspace.
"""

# The data are points of five subspaces of two, three or four dimensions, with noise.
import numpy as np

random = np.random.default_rng(0)
dimensions = [2, 2, 3, 3, 4]
X = np.vstack([random.normal(size=(40, d)) @ random.normal(size=(d, 40)) for d in dimensions])
X += 0.03 * random.normal(size=X.shape)
truth = np.repeat(np.arange(5), 40)

# All coefficients are kept (truncate=None): in a sparse graph one subspace could be split into two parts, and the
# number would be too large.
from mercer import SubspaceClustering
from mercer.metrics import clustering_accuracy

model = SubspaceClustering(n_clusters="auto", truncate=None, random_state=0).fit(X)
print(f"found {model.n_clusters_} subspaces of dimensions {sorted(model.dimensions_.tolist())}")
print(f"{clustering_accuracy(truth, model.labels_):.1%} of the points are in the right one")

# The left figure is the graph, sorted by cluster. The right figure shows its smallest eigenvalues: as many are small as
# there are parts, and a gap follows.
import matplotlib.pyplot as plt

from mercer.plots import AffinityDisplay, EigengapDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
AffinityDisplay.from_estimator(model, ax=left)
EigengapDisplay.from_estimator(model, ax=right)
figure.savefig("how_many_subspaces.png", dpi=150)
