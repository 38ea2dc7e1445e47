"""50 rows of 10 000 columns: the memory of a whole process that fits them, imports and all."""

import subprocess
import sys

import pytest

MOST_MEGABYTES = 500

WIDE_FIT = """
import sys
import numpy as np
import mercer

rng = np.random.default_rng(0)
factors = rng.normal(size=(150, 3))
X = factors @ rng.normal(size=(3, 10_000)) + 0.1 * rng.normal(size=(150, 10_000))
y = np.sin(factors[:, 0]) + factors[:, 1]
name = sys.argv[1]
if name.endswith("Classifier"):
    y = np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8]))
seen, new = slice(0, 50), slice(50, 150)
model = getattr(mercer, name)(random_state=0).fit(X[seen], y[seen])
# The peak of this process and this one alone: getrusage would begin with the size of the process that started it.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(int(peak.split()[1]) / 1024, model.score(X[new], y[new]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", ["RFMRegressor", "GPRegressor", "RFMClassifier", "GPClassifier"])
def test_a_wide_table_is_fitted_in_little_memory_and_better_than_by_the_mean(name):
    done = subprocess.run([sys.executable, "-c", WIDE_FIT, name], capture_output=True, text=True, check=True)
    megabytes, score = map(float, done.stdout.split())
    assert megabytes <= MOST_MEGABYTES
    assert score > (0.5 if name.endswith("Regressor") else 0.35)  # the mean has 0, five classes of one size 0.2
