"""Second-order steps: products with the curvature against matrices written out, and what a step brings."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.autograd.functional import hessian, jacobian

from mercer.embedding.centers import Centers
from mercer.embedding.coordinates import Coordinates
from mercer.embedding.gauss_newton import (
    gauss_newton_product,
    gauss_newton_step,
    loss_along,
    step_length,
)
from mercer.embedding.gauss_newton_forms import barlow_twins_form, gauss_newton_form, simclr_form
from mercer.embedding.preconditioners import GaussNewton, Identity, KernelMatrix, White, check_preconditioner
from mercer.exceptions import InvalidParameterError
from mercer.kernels import Gaussian
from mercer.landmarks.features import principal_coefficients
from mercer.losses import barlow_twins, simclr, vicreg
from mercer.training import Recipe, train
from tests.examples_of import numbers

LOSSES = {
    "barlow_twins": partial(barlow_twins, off_diagonal=0.2),
    "barlow_twins_uncentered": partial(barlow_twins, off_diagonal=0.3, center=False),
    "simclr": partial(simclr, temperature=0.4),
}
by_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
by_n_views = pytest.mark.parametrize("n_views", [2, 3])
R, H = 4, 3


def gauss_newton(loss, bias=None, penalty=0.0, **options):
    """(W, features, g) -> the step, with the bias held."""
    direction = GaussNewton(**options).direction(None, loss, penalty)
    return lambda W, features, g: direction(W, bias, features, g)


def kernel_step(X, G, ridge):
    space = Coordinates(Centers(Gaussian(1.5), [X]), None, None).raw()
    return KernelMatrix(ridge).direction(space, "vicreg", 0.0)(None, None, [], G)


def tensor(*shape, seed=0):
    return torch.from_numpy(numbers(*shape, seed=seed))


def problem(n_views=2, b=6):
    """Features of views of one sample, which are alike but not equal, parameters and a bias."""
    F = tensor(b, R, seed=1) + 0.5 * tensor(n_views, b, R, seed=2) + 0.4
    return F, tensor(R, H, seed=3), tensor(H, seed=4)


def of_parameters(loss, F, bias):
    return lambda W: loss(*(F @ W + bias))


def gradient(loss, F, W, bias=0.0):
    W = W.clone().requires_grad_()
    (g,) = torch.autograd.grad(of_parameters(loss, F, bias)(W), W)
    return g


def matrix_of(product, shape):
    """The matrix of a product, column by column."""
    eye = torch.eye(int(np.prod(shape)), dtype=torch.float64)
    return torch.stack([product(column.reshape(shape)).flatten() for column in eye], dim=1)


# The outputs of the losses and their curvature, written out. No shape is kept: a vector of all numbers.


def naive_residuals(views, off_diagonal, center):
    residuals = []
    pairs = list(combinations(views, 2))
    for x, y in pairs:
        for i in range(x.shape[1]):
            for j in range(x.shape[1]):
                u, v = (x[:, i] - x[:, i].mean(), y[:, j] - y[:, j].mean()) if center else (x[:, i], y[:, j])
                c = (u @ v) / (u.norm() * v.norm())
                residuals.append(c - 1 if i == j else off_diagonal**0.5 * c)
    return torch.stack(residuals) / len(pairs) ** 0.5


def naive_logit_rows(views, temperature):
    rows = []
    for x, y in combinations(views, 2):
        z = torch.cat([x, y])
        for i in range(len(z)):
            others = [k for k in range(len(z)) if k != i]
            rows.append(torch.stack([z[i] @ z[k] / (z[i].norm() * z[k].norm()) for k in others]) / temperature)
    return torch.stack(rows)


@pytest.mark.parametrize("center", [True, False])
@by_n_views
def test_the_product_of_barlow_twins_is_twice_that_of_the_residuals_jacobian(n_views, center):
    F, W, bias = problem(n_views)
    J = jacobian(lambda W: naive_residuals(F @ W + bias, 0.2, center), W).flatten(1)
    product = gauss_newton_product(barlow_twins_form(0.2, center), W, F, bias=bias)
    assert_allclose(matrix_of(product, W.shape), 2.0 * J.T @ J, atol=1e-12)


@by_n_views
def test_the_product_of_simclr_is_that_of_the_logits_jacobian_and_the_softmax(n_views):
    F, W, bias = problem(n_views, b=3)
    rows = naive_logit_rows(F @ W + bias, 0.4)
    J = jacobian(lambda W: naive_logit_rows(F @ W + bias, 0.4), W).flatten(2)
    expected = torch.zeros(R * H, R * H, dtype=torch.float64)
    for J_row, logits in zip(J, rows, strict=True):
        p = logits.exp() / logits.exp().sum()
        expected += J_row.T @ (torch.diag(p) - torch.outer(p, p)) @ J_row / len(rows)
    product = gauss_newton_product(simclr_form(0.4), W, list(F), bias=bias)
    assert_allclose(matrix_of(product, W.shape), expected, atol=1e-12)


@by_n_views
@by_loss
def test_a_form_is_that_of_its_loss(loss, n_views):
    F, W, bias = problem(n_views)
    form = gauss_newton_form(loss)
    assert_allclose(form.loss(form.outputs(F @ W + bias)), of_parameters(loss, F, bias)(W), rtol=1e-12)


@pytest.mark.parametrize("function", [barlow_twins, simclr])
def test_a_loss_by_its_name_has_the_defaults_of_the_function(function):
    Z = tensor(2, 6, H)
    for form in (gauss_newton_form(function.__name__), gauss_newton_form(function)):
        assert_allclose(form.loss(form.outputs(Z)), function(*Z), rtol=1e-12)


@by_n_views
@by_loss
def test_the_curvature_is_symmetric_and_never_negative(loss, n_views):
    F, W, _ = problem(n_views)
    product = gauss_newton_product(gauss_newton_form(loss), W, F)
    M = matrix_of(product, W.shape)
    assert_allclose(M, M.T, atol=1e-12)
    values = torch.linalg.eigvalsh(M)
    assert values[0] > -1e-12
    assert values[-1] > 0.01
    # Whatever the sizes of all embeddings are: along W itself no loss changes.
    assert_allclose(product(W), 0.0, atol=1e-12)


@pytest.mark.parametrize("form", [barlow_twins_form(), simclr_form()], ids=["squares", "cross_entropy"])
def test_where_outputs_are_linear_the_curvature_is_the_hessian(form):
    F, W, bias = problem(b=3)
    M = tensor(F[..., 0].numel() * H, 36, seed=5)
    form = form._replace(outputs=lambda Z: (Z.flatten() @ M).reshape(1, 6, 6))
    expected = hessian(lambda W: form.loss(form.outputs(F @ W + bias)), W).reshape(R * H, R * H)
    product = gauss_newton_product(form, W, F, bias=bias)
    assert_allclose(matrix_of(product, W.shape), expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


def test_where_residuals_vanish_the_curvature_of_barlow_twins_is_the_hessian():
    F = torch.linalg.qr(tensor(8, R) - tensor(8, R).mean(dim=0)).Q.expand(2, 8, R)
    W = torch.eye(R, H, dtype=torch.float64)
    loss = partial(barlow_twins, off_diagonal=0.2)
    assert float(loss(*(F @ W))) < 1e-20
    expected = hessian(of_parameters(loss, F, 0.0), W).reshape(R * H, R * H)
    product = gauss_newton_product(gauss_newton_form(loss), W, F)
    assert_allclose(matrix_of(product, W.shape), expected, atol=1e-9)


def test_a_full_step_solves_a_linear_least_squares_problem():
    """With J^T J in place of 2 J^T J it would end at the height that it began at."""
    F, W, _ = problem()
    target = tensor(2, 6, H, seed=6)
    form = barlow_twins_form()._replace(outputs=lambda Z: Z - target)
    g = 2 * (F.flatten(0, 1).T @ (F @ W - target).flatten(0, 1))
    d = gauss_newton_step(gauss_newton_product(form, W, F), g, damping=0.0, max_iter=100, tolerance=1e-12)
    best = torch.linalg.lstsq(F.flatten(0, 1), target.flatten(0, 1)).solution
    assert_allclose(W - d, best, atol=1e-9)


def test_a_penalty_adds_its_curvature():
    F, W, _ = problem()
    form, V = simclr_form(), tensor(R, H, seed=7)
    plain, penalized = (gauss_newton_product(form, W, F, penalty=rho) for rho in (0.0, 0.7))
    assert_allclose(penalized(V), plain(V) + 1.4 * V, atol=1e-12)


@pytest.mark.parametrize("damping", [0.1, 3.0])
@by_loss
def test_a_step_solves_the_damped_system(loss, damping):
    F, W, _ = problem()
    g = gradient(loss, F, W)
    product = gauss_newton_product(gauss_newton_form(loss), W, F)
    M, v = matrix_of(product, W.shape), g.flatten()
    ridge = damping * (v @ M @ v) / (v @ v)
    expected = torch.linalg.solve(M + ridge * torch.eye(len(M), dtype=torch.float64), v).reshape(W.shape)
    d = gauss_newton_step(product, g, damping=damping, max_iter=100, tolerance=1e-12)
    assert_allclose(d, expected, rtol=1e-7, atol=1e-9)


@by_loss
def test_a_step_that_stops_early_goes_down(loss):
    F, W, _ = problem()
    g = gradient(loss, F, W)
    product = gauss_newton_product(gauss_newton_form(loss), W, F)
    first = gauss_newton_step(product, g, damping=0.5, max_iter=1)
    assert_allclose(first, g * (g * g).sum() / (1.5 * (g * product(g)).sum()), rtol=1e-9)
    for max_iter in (1, 2, 5, 20):
        assert float((g * gauss_newton_step(product, g, max_iter=max_iter)).sum()) > 0
    calls = []
    gauss_newton_step(lambda V: calls.append(V) or product(V), g, max_iter=50, tolerance=0.5)
    assert len(calls) < 10


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_a_step_has_no_units_but_those_of_the_gradient(scale):
    F, W, _ = (x.float() for x in problem())
    g = gradient(barlow_twins, F, W)
    product = gauss_newton_product(barlow_twins_form(), W, F)
    d = gauss_newton_step(product, g)
    assert_allclose(gauss_newton_step(product, scale * g) / scale, d, rtol=1e-3, atol=1e-4 * float(d.abs().max()))
    assert_allclose(gauss_newton_step(lambda V: 100 * product(V), 100 * g), d, rtol=1e-3, atol=1e-4)


def test_without_curvature_a_step_is_the_gradient():
    g = tensor(R, H)
    assert torch.equal(gauss_newton_step(torch.zeros_like, g), g)
    assert torch.equal(gauss_newton_step(lambda V: V, torch.zeros_like(g)), torch.zeros_like(g))


@by_loss
def test_the_loss_along_a_step_is_the_loss_there(loss):
    F, W, bias = problem()
    d = tensor(R, H, seed=8)
    along = loss_along(gauss_newton_form(loss), W, F, d, bias=bias, penalty=0.7)
    for eta in (0.0, 0.3, 1.0):
        there = W - eta * d
        expected = of_parameters(loss, F, bias)(there) + 0.7 * there.square().sum()
        assert_allclose(along(torch.tensor(eta, dtype=torch.float64)), expected, rtol=1e-12)


STEPS = {
    "enough": (lambda eta: (1 - eta).square(), 1.0),
    "halved_twice": (lambda eta: (1 - 4 * eta).square(), 0.25),
    "too_little": (lambda eta: (1 - 1.9 * eta).square(), 0.5),  # 0.81 at 1, where a quarter of the slope asks for 0.05
    "rising": (lambda eta: eta, 1.0),
    "flat": (lambda eta: 0.0 * eta, 1.0),
    "never": (lambda eta: -eta + (eta > 0).to(eta), 2.0**-12),
    "nan": (lambda eta: (1 - eta).square() + torch.where(eta > 0.4, torch.nan, 0.0), 0.25),
}


@pytest.mark.parametrize(("loss", "expected"), STEPS.values(), ids=STEPS.keys())
def test_steps_are_halved_until_the_loss_falls_as_the_slope_promises(loss, expected):
    assert step_length(loss, tensor(1)) == expected


def images(whitened, dtype=torch.float64):
    """Features of two views of 64 points on 20 landmarks, and the principal components to start from."""
    X = tensor(64, 5)
    views = [X + 0.2 * tensor(64, 5, seed=j) for j in (1, 2)]
    kernel, Z = Gaussian(2.0), X[:20]
    B = principal_coefficients(kernel.matrix(Z))
    F = torch.stack([kernel.matrix(view, Z) for view in views])
    F, W = (F @ B, torch.eye(B.shape[1], 6, dtype=torch.float64)) if whitened else (F, B[:, :6].clone())
    return F.to(dtype), W.to(dtype)


def after_one_step(optimizer, loss, F, W, precondition=None):
    W = W.clone().requires_grad_()
    step = optimizer([W])
    of_parameters(loss, F, 0.0)(W).backward()
    if precondition is not None:
        W.grad = precondition(W, F, W.grad)
    step.step()
    return float(of_parameters(loss, F, 0.0)(W.detach()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("whitened", [True, False])
@pytest.mark.parametrize("loss", [barlow_twins, simclr])
def test_one_step_brings_more_than_one_of_adam(loss, whitened, dtype):
    F, W = images(whitened, dtype)
    start = float(loss(*(F @ W)))
    adam = after_one_step(partial(torch.optim.Adam, lr=1e-3), loss, F, W)
    assert adam < start
    for damping in (1e-2, 0.1, 1.0):
        precondition = gauss_newton(loss=loss, damping=damping)
        newton = after_one_step(partial(torch.optim.SGD, lr=1.0), loss, F, W, precondition)
        assert start - newton > 2 * (start - adam)


def test_the_line_search_saves_a_step_that_goes_too_far():
    F, W = images(whitened=True)
    sgd = partial(torch.optim.SGD, lr=1.0)
    start = float(simclr(*(F @ W)))
    damped = partial(gauss_newton, loss=simclr, damping=0.1)
    assert after_one_step(sgd, simclr, F, W, damped(line_search=False)) > start
    assert after_one_step(sgd, simclr, F, W, damped()) < start


def test_all_parameters_reach_the_step():
    F, W, bias = problem()
    loss = partial(simclr, temperature=0.4)
    g = gradient(loss, F, W, bias) + 1.4 * W
    options = {"damping": 0.3, "max_iter": 4, "tolerance": 1e-5}
    d = gauss_newton(loss=loss, bias=bias, penalty=0.7, line_search=False, **options)(W, F, g)
    product = gauss_newton_product(simclr_form(0.4), W, F, bias=bias, penalty=0.7)
    assert_allclose(d, gauss_newton_step(product, g, **options), rtol=1e-12)
    for name, other in {"damping": 1.0, "max_iter": 2, "tolerance": 0.5}.items():
        assert not torch.allclose(d, gauss_newton_step(product, g, **{**options, name: other}), rtol=1e-3)


def test_a_penalty_that_outweighs_the_loss_takes_the_step_to_zero():
    F, W, bias = problem()
    g = gradient(simclr, F, W, bias) + 2e4 * W
    d = gauss_newton(loss=simclr, bias=bias, penalty=1e4, damping=0.0)(W, F, g)
    assert_allclose(d, W, atol=1e-3)


def test_the_kernel_preconditioner_is_the_inverse():
    X, G = tensor(7, 2), tensor(7, H, seed=1)
    K = Gaussian(1.5).matrix(X)
    expected = np.linalg.inv(K.numpy() + 0.3 * np.eye(7)) @ G.numpy()
    assert_allclose(kernel_step(X, G, 0.3), expected, rtol=1e-9)
    rounded = kernel_step(X, G.float(), 0.3)
    assert rounded.dtype == torch.float32
    assert_allclose(rounded, expected, rtol=1e-4, atol=1e-5)


def test_a_step_in_whitened_coordinates_is_a_step_by_the_kernel_preconditioner():
    X, G = tensor(7, 2), tensor(7, H, seed=1)
    B = principal_coefficients(Gaussian(1.5).matrix(X))
    assert_allclose(B @ (B.T @ G), kernel_step(X, G, 0.0), rtol=1e-6)


def test_preconditioners_are_values_and_have_names():
    assert [check_preconditioner(name) for name in ("identity", "white", "kernel", "gauss_newton")] == [
        Identity(),
        White(),
        KernelMatrix(),
        GaussNewton(),
    ]
    assert check_preconditioner(KernelMatrix(0.1)) == KernelMatrix(0.1)
    for plain in (Identity(), White()):
        assert plain.direction(None, "simclr", 0.0) is None


DEGENERATE = {
    "constant_columns": lambda F, W: (torch.cat([torch.ones_like(F[..., :2]), F[..., 2:]], dim=-1), W),
    "all_constant": lambda F, W: (torch.ones_like(F), W),
    "equal_rows": lambda F, W: (F[:, :1].expand_as(F), W),
    "equal_views": lambda F, W: (F[:1].expand_as(F), W),
    "zero_features": lambda F, W: (torch.zeros_like(F), W),
    "zero_row": lambda F, W: (torch.cat([torch.zeros_like(F[:, :1]), F[:, 1:]], dim=1), W),
    "zero_parameters": lambda F, W: (F, torch.zeros_like(W)),
    "zero_column": lambda F, W: (F, torch.cat([torch.zeros_like(W[:, :1]), W[:, 1:]], dim=1)),
    "equal_columns": lambda F, W: (F, W[:, :1].expand_as(W)),
    "large": lambda F, W: (1e12 * F, W),
    "small": lambda F, W: (1e-12 * F, W),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("change", DEGENERATE.values(), ids=DEGENERATE.keys())
@by_loss
def test_degenerate_batches_have_finite_steps(loss, change, dtype):
    F, W, _ = problem()
    F, W = (x.to(dtype) for x in change(F, W))
    g = gradient(loss, F, W)
    d = gauss_newton(loss=loss)(W, F, g)
    assert d.shape == W.shape
    assert d.dtype == dtype
    assert torch.isfinite(d).all()
    assert float((g * d).sum()) >= 0


@by_loss
def test_arguments_stay_as_they_are_and_no_graph_is_left(loss):
    F, W, bias = problem()
    g = gradient(loss, F, W, bias)
    kept = [x.clone() for x in (F, W, bias, g)]
    precondition = gauss_newton(loss=loss, bias=bias.requires_grad_())
    d = precondition(W.requires_grad_(), F.requires_grad_(), g)
    with torch.no_grad():
        assert_allclose(precondition(W, list(F), g), d, rtol=1e-9)
    assert not d.requires_grad
    for now, before in zip((F, W, bias, g), kept, strict=True):
        assert torch.equal(now.detach(), before)


class Map(torch.nn.Module):
    def __init__(self, W):
        super().__init__()
        self.W = torch.nn.Parameter(W.clone())


def trained(optimizer, rate, n_epochs):
    """W after full batches, by the training loop, with Gauss-Newton's steps in place of the gradients."""
    F, W = images(whitened=True)
    model, step = Map(W), gauss_newton(loss="barlow_twins")

    def precondition(rows, generator):
        model.W.grad.copy_(step(model.W, F[:, rows], model.W.grad))

    recipe = Recipe(
        n_epochs,
        batch_size=64,
        optimizer=optimizer,
        learning_rate=rate,
        final_learning_rate=rate,
        momentum=0.0,
        keep="last",
    )
    train(model, lambda rows, _: barlow_twins(*(F[:, rows] @ model.W)), 64, recipe, seed=0, precondition=precondition)
    return F, W, model.W.detach()


def test_with_sgd_the_rate_of_a_full_step_is_one():
    F, W, result = trained("sgd", 1.0, 3)
    for _ in range(3):
        W = W - gauss_newton(loss="barlow_twins")(W, F, gradient(barlow_twins, F, W))
    assert_allclose(result, W, atol=1e-8)


def test_combined_with_adam_every_entry_moves_by_the_rate():
    F, W, result = trained("adam", 1e-3, 1)
    d = gauss_newton(loss="barlow_twins")(W, F, gradient(barlow_twins, F, W))
    # Along a column of W itself the loss does not change, and all that moves is rounding.
    moving = d.abs() > 1e-3
    assert moving.sum() > 100
    assert_allclose(result[moving], (W - 1e-3 * d.sign())[moving], atol=1e-7)


REFUSED = {
    "preconditioner": lambda: check_preconditioner("newton"),
    "preconditioner of another type": lambda: check_preconditioner(3),
    "ridge": lambda: KernelMatrix(-1.0),
    "loss": lambda: gauss_newton("vicreg"),
    "loss missing": lambda: gauss_newton(None),
    "loss function": lambda: gauss_newton(vicreg),
    "loss partial": lambda: gauss_newton(partial(vicreg, variance=1.0)),
    "loss lambda": lambda: gauss_newton(lambda *views: simclr(*views)),
    "loss positional": lambda: gauss_newton(partial(simclr, 0.1)),
    "loss type": lambda: gauss_newton(["simclr"]),
    "temperature": lambda: gauss_newton(partial(simclr, temperature=0.0)),
    "off_diagonal": lambda: gauss_newton(partial(barlow_twins, off_diagonal=-1.0)),
    "penalty": lambda: gauss_newton("simclr", penalty=-1.0),
    "damping": lambda: GaussNewton(damping=-0.1),
    "max_iter": lambda: GaussNewton(max_iter=0),
    "tolerance": lambda: GaussNewton(tolerance=-1.0),
    "line_search": lambda: GaussNewton(line_search="yes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_allowed_is_named(case):
    with pytest.raises(InvalidParameterError, match=f"^{case.split()[0]}="):
        REFUSED[case]()


@pytest.mark.parametrize("shapes", [[], [(6, R)], [(1, R)] * 2, [(6, R), (5, R)], [(6, R + 1)] * 2, [(R,)] * 2])
def test_features_of_wrong_shapes_are_refused(shapes):
    features = [torch.ones(shape) for shape in shapes]
    with pytest.raises(ValueError, match="features have shapes"):
        gauss_newton(loss="simclr")(torch.ones(R, H), features, torch.ones(R, H))
