"""Which kernel and which metric a discriminant takes: by errors of rows left out, of rows that had no part in them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

import mercer
from mercer import KernelDiscriminant
from mercer.agop import agop
from mercer.discriminant.choice import STAYS, Freedom, factor_at, tuned
from mercer.discriminant.groups import Groups
from mercer.discriminant.kernel_choice import AUTO_KERNELS, best_kernel, gradients_metric, with_metric
from mercer.kernels import Gaussian, check_kernel

FREE = Freedom(True, None)


def islands(n, seed=0):
    """Classes of a chessboard: sharp edges, for which a kernel with a kink is right."""
    X = np.random.default_rng(seed).uniform(0.0, 4.0, size=(n, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def hidden(n, d=8, seed=0):
    """Classes along a wave of the first column; the others are noise."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, (np.sin(3.0 * X[:, 0]) > 0).astype(int)


def groups_of(y):
    return Groups.from_index(torch.from_numpy(y), int(y.max()) + 1)


@pytest.mark.parametrize("table", [islands, hidden])
def test_the_kernel_is_the_one_with_the_smallest_error_of_rows_left_out(table):
    X, y = table(240)
    x, groups = torch.from_numpy(X), groups_of(y)
    kernels = [check_kernel(name, None).resolved(x, 0) for name in AUTO_KERNELS]
    costs = [tuned(kernel, x, groups, "rkhs", True, FREE, fine=False).cost for kernel in kernels]
    kernel, start = best_kernel(kernels, x, groups, "rkhs", True, FREE)
    assert kernel is kernels[int(np.argmin(costs))]
    # The climb that goes on from there ends no higher.
    assert tuned(kernel, x, groups, "rkhs", True, FREE, start).cost <= min(costs)
    model = KernelDiscriminant(random_state=0).fit(X, y)
    assert type(model.kernel_) is type(kernel)


def test_sharp_and_smooth_classes_take_different_kernels():
    X, y = islands(300)
    assert type(KernelDiscriminant(random_state=0).fit(X, y).kernel_) is not Gaussian
    X, y = load_digits(return_X_y=True)
    assert type(KernelDiscriminant(random_state=0).fit(X[:400], y[:400]).kernel_) is Gaussian


def test_the_step_that_stays_keeps_the_bandwidth():
    assert factor_at(STAYS) == pytest.approx(1.0)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("regularizer", ["rkhs", "identity"])
def test_a_learned_metric_is_the_outer_product_of_the_gradients_of_the_regression(center, regularizer):
    X, y = hidden(30, d=3)
    x, ridge, kernel = torch.from_numpy(X), 0.3, Gaussian(1.5)
    found = gradients_metric(kernel, ridge, "full", x, groups_of(y), regularizer, center).single_metric().matrix()
    # The regression with dense matrices, differentiated by autograd.
    n, Y = len(X), torch.eye(2, dtype=x.dtype)[torch.from_numpy(y)]
    C = torch.eye(n, dtype=x.dtype) - (1.0 / n if center else 0.0)
    K = kernel.matrix(x)
    gram = C @ K @ C
    if regularizer == "rkhs":
        alpha = torch.linalg.solve(gram + ridge * torch.eye(n, dtype=x.dtype), C @ Y)
    else:
        alpha = gram @ torch.linalg.solve(gram @ gram + ridge * torch.eye(n, dtype=x.dtype), C @ Y)

    def regression(row):
        k = torch.exp(-0.5 * ((x - row) ** 2).sum(dim=1) / 1.5**2)
        return (k - K.mean(dim=0) * (1.0 if center else 0.0)) @ C @ alpha

    gradients = torch.stack([torch.autograd.functional.jacobian(regression, row) for row in x])
    M = torch.einsum("nci,ncj->ij", gradients, gradients) / n
    assert_allclose(found, (3.0 * M / M.trace()).numpy(), rtol=1e-6, atol=1e-9)
    assert_allclose(agop(kernel, x, x, C @ alpha).numpy(), M.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("metric", ["diagonal", "full", "auto"])
def test_a_metric_finds_the_column_that_counts(metric):
    X, y = hidden(400)
    X_test, y_test = hidden(1000, seed=1)
    plain = KernelDiscriminant(random_state=0).fit(X, y)
    learned = KernelDiscriminant(metric=metric, random_state=0).fit(X, y)
    weights = learned.kernel_.single_metric().matrix(8).diagonal()
    assert weights.argmax() == 0
    assert weights[0] > 0.5 * weights.sum()
    assert learned.score(X_test, y_test) > plain.score(X_test, y_test) + 0.1


def test_a_metric_that_does_not_help_rows_without_a_part_in_it_is_not_taken():
    # Classes at random: whatever the gradients say is of the rows that they were learned on.
    random = np.random.default_rng(2)
    x, y = torch.from_numpy(random.normal(size=(120, 6))), random.integers(2, size=120)
    groups, judges = groups_of(y), np.arange(60)
    begun = tuned(Gaussian(2.0), x, groups, "rkhs", True, FREE)
    assert with_metric(begun, begun.kernel, "auto", x, groups, "rkhs", True, FREE, judges) is begun


def test_with_landmarks_kernel_and_metric_are_chosen_too():
    X, y = hidden(500)
    X_test, y_test = hidden(1000, seed=1)
    plain = KernelDiscriminant("gaussian", n_landmarks=200, random_state=0).fit(X, y)
    learned = KernelDiscriminant(metric="diagonal", n_landmarks=200, random_state=0).fit(X, y)
    assert learned.kernel_.single_metric().matrix(8).diagonal().argmax() == 0
    assert learned.score(X_test, y_test) > plain.score(X_test, y_test) + 0.1


def test_what_is_given_stays(tmp_path):
    X, y = hidden(120)
    model = KernelDiscriminant("laplace", metric="diagonal", bandwidth=2.0, ridge=0.1, random_state=0).fit(X, y)
    assert (float(model.kernel_.scale()), model.ridge_) == (2.0, 0.1)
    assert model.kernel_.single_metric().kind == "diagonal"
    mercer.save(model, tmp_path / "model.mercer")
    assert_allclose(mercer.load(tmp_path / "model.mercer").predict_proba(X), model.predict_proba(X))


def test_wrong_metrics_are_named():
    X, y = hidden(40)
    with pytest.raises(ValueError, match=r"metric='ard' is not allowed.*'identity', 'diagonal', 'full', 'auto'"):
        KernelDiscriminant(metric="ard").fit(X, y)
    with pytest.raises(ValueError, match=r"metric='full' is not allowed.*'identity' if kernel='precomputed'"):
        KernelDiscriminant("precomputed", metric="full").fit(X @ X.T, y)
