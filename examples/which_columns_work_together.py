"""Which columns work together?

A table has twelve columns. The target depends on the difference of two of them, and on a third. Importances alone
would name three columns; the learned metric also says that two of them count as a difference.
"""

# The columns are random numbers, and the target depends only on u, v and w.
import numpy as np

random = np.random.default_rng(1)
names = ["u", "v", "w", *(f"noise {k}" for k in range(1, 10))]
X = random.normal(size=(400, 12))
y = np.sin(2 * (X[:, 0] - X[:, 1])) + 0.3 * X[:, 2] ** 2 + 0.1 * random.normal(size=400)

# A recursive feature machine fits a predictor, computes a new metric from its gradients, and repeats both. The best
# iterate by leave-one-out errors is kept. The rows after the first 300 measure the gain.
from mercer import RFMRegressor

plain = RFMRegressor("gaussian", "identity", warp="none", random_state=0).fit(X[:300], y[:300])
learned = RFMRegressor("gaussian", "full", warp="none", random_state=0).fit(X[:300], y[:300])
print(f"R2 without a learned metric {plain.score(X[300:], y[300:]):.2f}, with it {learned.score(X[300:], y[300:]):.2f}")

# The first direction of the metric is the difference, up to its length: u and v have opposite signs.
for direction, share in zip(learned.directions_[:2], learned.direction_shares_[:2], strict=True):
    terms = [f"{weight:+.2f} {name}" for weight, name in zip(direction, names, strict=True) if abs(weight) > 0.1]
    print(f"{share:.0%} of the metric: {' '.join(terms)}")

# In the figure, a difference is a block with a blue pair off the diagonal.
from mercer.plots import MetricDisplay

display = MetricDisplay.from_metric(learned.metric_, feature_names=names)
display.figure_.savefig("which_columns_work_together.png", dpi=150)
