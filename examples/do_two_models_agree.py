"""Do two models agree on what matters?

Importances describe a model. If two models of different kinds name the same columns, there is more reason to believe
them. Here a recursive feature machine and a Gaussian process with one length scale for each column learn from the same
table.
"""

# The table has 442 patients with ten measurements each, and the progression of their diabetes after a year.
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, as_frame=True)

# The first model learns its metric from gradients, the second by maximum likelihood. They are independent of each
# other.
from mercer import GPRegressor, RFMRegressor

machine = RFMRegressor("gaussian", "diagonal", warp="none", random_state=0).fit(X, y)
process = GPRegressor("gaussian", "ard", warp="none", random_state=0).fit(X, y)
print(f"R2 of rows left out, by the machine: {machine.loo_score_:.2f}")

# Each point is a column; on the diagonal the models agree. Pearson's correlation mainly reflects the large shares, and
# Spearman's reflects the order of all columns. Here both models rank s5 and bmi first. They differ on age, so its
# importance is not reliable.
from mercer.plots import AgreementDisplay

display = AgreementDisplay.from_estimators({"RFM": machine, "ARD": process})
for correlation in display.correlations.values():
    print(f"Pearson {correlation.pearson:.2f}, Spearman {correlation.spearman:.2f}")
display.figure_.savefig("do_two_models_agree.png", dpi=150)
