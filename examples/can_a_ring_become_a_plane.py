"""Can a ring become a plane?

A wavy ring and a blob are two clusters, and neither is a subspace. A network learns features in which they are: the
ring fills a plane, the blob fills a line, and the two are orthogonal.
"""

# The data are 100 points on the ring and 100 points in the blob, with noise.
import numpy as np

random = np.random.default_rng(0)
angle = random.uniform(0, 2 * np.pi, 100)
ring = np.stack([np.cos(angle), np.sin(angle), 0.2 * np.sin(5 * angle)], axis=1)
X = np.vstack([ring, np.tile([0.0, 0.0, 1.0], (100, 1))]) + 0.05 * random.normal(size=(200, 3))

# The first stage learns features from views alone, which are noisy copies of the points. The second stage learns
# features and memberships together. Of both results, the clusters are kept that give a shorter code to the features of
# the first stage (a larger R - R_c).
from mercer import ManifoldClustering
from mercer.training import Recipe

short = Recipe(n_epochs=60, learning_rate=1e-2)
model = ManifoldClustering(2, hidden=50, n_components=3, start_recipe=short, recipe=short, random_state=0).fit(X)
right = max(np.mean(model.labels_ == np.repeat([0, 1], 100)), np.mean(model.labels_ == np.repeat([1, 0], 100)))
print(f"kept: {model.stage_}; {right:.1%} of the points are in the right cluster")

# To check this, compute the share of a cluster's squared feature lengths along each of three directions, and the mean
# cosine between a point of the ring and a point of the blob.
Z = model.transform(X)
for name, part in (("ring", Z[:100]), ("blob", Z[100:])):
    shares = np.linalg.svd(part, compute_uv=False) ** 2 / len(part)
    print(f"{name}: {shares[0]:.2f}, {shares[1]:.2f}, {shares[2]:.2f}")
print(f"mean |cosine| between them: {np.abs(Z[:100] @ Z[100:].T).mean():.2f}")

# Features have length 1. On the sphere, a plane becomes a great circle, and a line becomes two opposite points.
from mercer.plots import SphereDisplay

display = SphereDisplay.from_estimators({"features": model}, X)
display.figure_.savefig("can_a_ring_become_a_plane.png", dpi=150)
