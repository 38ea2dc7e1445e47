"""Why does it say so?

A kernel machine's prediction is a sum over its training rows. For any patient, the terms of this sum show which other
patients raise or lower the prediction, and which of them the model considers similar. By the learned metric these are
not always the nearest patients in all columns.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from mercer import GPRegressor
from mercer.explain import reasons
from mercer.plots import ContributionsDisplay, NeighborsDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GPRegressor("laplace", "full", warp="none", random_state=0).fit(X, y)
print(reasons(model, X.iloc[9], n_rows=3))

# The left figure is the waterfall from the mean of all patients to the prediction. The right figure shows the patient
# in black and the five nearest patients by the model's metric: they agree in the important columns, which come first.
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", width_ratios=[1, 1.1])
ContributionsDisplay.from_estimator(model, X.iloc[[9]], ax=left)
NeighborsDisplay.from_estimator(model, X, 9, ax=right)
figure.savefig("why_does_it_say_so.png", dpi=120)
