"""Why does it say so?

A kernel machine's prediction is a sum over the rows that it learned from, and the sum can be taken apart for any
patient: which others pushed the prediction up or down, and which of them the model holds to be alike. Under the metric
that it has learned these are not always the nearest by all columns.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from mercer import GPRegressor
from mercer.explain import reasons
from mercer.plots import ContributionsDisplay, NeighborsDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GPRegressor("laplace", "full", warp="none", random_state=0).fit(X, y)
print(reasons(model, X.iloc[9], n_rows=3))

# Left, the waterfall from the mean of all patients to the prediction. Right, the patient in black beside the five that
# the model has nearest: they agree in the columns that count, which stand first.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.1])
ContributionsDisplay.from_estimator(model, X.iloc[[9]], ax=left)
NeighborsDisplay.from_estimator(model, X, 9, ax=right)
figure.savefig("why_does_it_say_so.png", dpi=120)
