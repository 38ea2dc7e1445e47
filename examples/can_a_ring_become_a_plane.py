"""Can a ring become a plane?

A wavy ring and a blob are two clusters, and neither is a subspace. A network learns features in which they are: the
ring fills a plane, the blob a line, and the two are orthogonal.
"""

# 100 points on the ring, 100 in the blob, with noise.
import numpy as np

random = np.random.default_rng(0)
angle = random.uniform(0, 2 * np.pi, 100)
ring = np.stack([np.cos(angle), np.sin(angle), 0.2 * np.sin(5 * angle)], axis=1)
X = np.vstack([ring, np.tile([0.0, 0.0, 1.0], (100, 1))]) + 0.05 * random.normal(size=(200, 3))

# First from views alone (noise), then features and memberships together. Of both results the clusters are kept that
# give the features of the first step the shorter code (the larger R - R_c).
from mercer import ManifoldClustering
from mercer.training import Recipe

short = Recipe(n_epochs=60, learning_rate=1e-2)
model = ManifoldClustering(2, hidden=50, n_components=3, start_recipe=short, recipe=short, random_state=0).fit(X)
right = max(np.mean(model.labels_ == np.repeat([0, 1], 100)), np.mean(model.labels_ == np.repeat([1, 0], 100)))
print(f"kept: {model.stage_}; {right:.1%} of the points are in the right cluster")

# Is it so? Of the squared lengths of a cluster's features, what share is along each of three directions; and how
# large is the cosine between a point of the ring and one of the blob?
Z = model.transform(X)
for name, part in (("ring", Z[:100]), ("blob", Z[100:])):
    shares = np.linalg.svd(part, compute_uv=False) ** 2 / len(part)
    print(f"{name}: {shares[0]:.2f}, {shares[1]:.2f}, {shares[2]:.2f}")
print(f"mean |cosine| between them: {np.abs(Z[:100] @ Z[100:].T).mean():.2f}")

# Features have length 1. On the sphere a plane is a great circle, and a line two opposite points.
from mercer.plots import SphereDisplay

display = SphereDisplay.from_estimators({"features": model}, X)
display.figure_.savefig("can_a_ring_become_a_plane.png", dpi=150)
