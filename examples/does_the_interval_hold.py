"""Does the interval hold?

A curve is measured at a few places, with a gap between them. A Gaussian process should be certain where there are
measurements and uncertain where there are none, and its 90 % intervals should contain nine of ten new measurements.
"""

# The data are noisy measurements of a wave, with none between 4 and 6.
import numpy as np

random = np.random.default_rng(0)


def measured(n):
    x = random.uniform(0, 10, 3 * n)
    x = x[(x < 4) | (x > 6)][:n, None]
    return x, np.sin(x[:, 0]) + 0.1 * x[:, 0] + 0.2 * random.normal(size=len(x))


X, y = measured(80)
X_new, y_new = measured(300)

# The length scale, the noise and the scale of the output are learned from the 80 measurements, each left out once.
from mercer import GPRegressor
from mercer.metrics import coverage

model = GPRegressor("matern52", "identity", warp="none", random_state=0).fit(X, y)
mean, std = model.predict(X_new, return_std=True)
print(f"noise {np.sqrt(model.noise_):.2f} (the truth is 0.20)")
print(f"{coverage(y_new, mean, std, level=0.9):.0%} of 300 new measurements are inside their 90 % intervals")

# In the gap the band is wide, since there are no measurements. The figure on the right shows the shares of new
# measurements inside the intervals of all levels.
import matplotlib.pyplot as plt

from mercer.plots import IntervalDisplay, ReliabilityDisplay

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
IntervalDisplay.from_estimator(model, X_new, y_new, ax=left)
ReliabilityDisplay.from_estimator(model, X_new, y_new, ax=right)
figure.savefig("does_the_interval_hold.png", dpi=150)
