"""Do two models agree on what matters?

Importances are those of a model. If two models of different kinds name the same columns, there is more reason to
believe them. Here a recursive feature machine and a Gaussian process with a length scale a column look at the same
table.
"""

# 442 patients, ten measurements, and how far their diabetes had progressed after a year.
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, as_frame=True)

# The metric of the first comes from gradients, that of the second from maximum likelihood. Neither has seen the
# other's.
from mercer import GPRegressor, RFMRegressor

machine = RFMRegressor("gaussian", "diagonal", warp="none", random_state=0).fit(X, y)
process = GPRegressor("gaussian", "ard", warp="none", random_state=0).fit(X, y)
print(f"R2 of rows left out, by the machine: {machine.loo_score_:.2f}")

# A point is a column; on the diagonal the models agree. Pearson's correlation is about the large shares, Spearman's
# about the order of all. Here both look at s5 and bmi first. On age they differ: do not build on it.
from mercer.plots import AgreementDisplay

display = AgreementDisplay.from_estimators({"RFM": machine, "ARD": process})
for correlation in display.correlations.values():
    print(f"Pearson {correlation.pearson:.2f}, Spearman {correlation.spearman:.2f}")
display.figure_.savefig("do_two_models_agree.png", dpi=150)
