"""Losses that are trained by gradient, against the formulas their authors publish, and what trains them."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import polar, sqrtm

from mercer.exceptions import InvalidParameterError, NumericalError
from mercer.losses import (
    barlow_twins,
    byol,
    draw_negatives,
    orthogonality,
    orthonormal,
    simclr,
    simple_contrastive,
    spectral_contrastive,
    tikhonov,
    unit_norms,
    vicreg,
)
from mercer.losses.directions import unit
from mercer.losses.vicreg import squared_covariances
from tests.examples_of import LOSSES, QUICK, numbers

# Losses that need samples beside each other; the others are defined for one alone.
BETWEEN_SAMPLES = {name: LOSSES[name] for name in ("simclr", "vicreg", "barlow_twins", "barlow_twins_uncentered")}
by_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
by_loss_between_samples = pytest.mark.parametrize("loss", BETWEEN_SAMPLES.values(), ids=BETWEEN_SAMPLES.keys())
by_n_views = pytest.mark.parametrize("n_views", [2, 3, 4])


def tensor(*shape, seed=0):
    return torch.from_numpy(numbers(*shape, seed=seed))


def embeddings(n_views=2, n=6, h=3):
    return [tensor(n, h, seed=j) + 0.3 * j for j in range(n_views)]


def number(scalar):
    """A number, of a tensor with a gradient too."""
    return scalar.item()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def over_pairs(loss, views, *args, **options):
    """The mean over pairs of views of a loss of two."""
    return np.mean([loss(a.numpy(), b.numpy(), *args, **options) for a, b in itertools.combinations(views, 2)])


# ---- the published formulas, sample by sample ---------------------------------------------------------------------


def cosine(u, v):
    return u @ v / math.sqrt((u @ u) * (v @ v))


def nt_xent(a, b, temperature):
    """Chen et al. 2020, equation 1 and Algorithm 1: z_{2k-1} and z_{2k} are the views of sample k."""
    z = [row for pair in zip(a, b, strict=True) for row in pair]

    def cost(i, j):
        total = sum(math.exp(cosine(z[i], z[k]) / temperature) for k in range(len(z)) if k != i)
        return -math.log(math.exp(cosine(z[i], z[j]) / temperature) / total)

    return sum(cost(2 * k, 2 * k + 1) + cost(2 * k + 1, 2 * k) for k in range(len(a))) / len(z)


def bardes(a, b, invariance, variance, covariance, target, epsilon):
    """Bardes et al. 2022, equations 1 to 6, with the mean squared error of their Algorithm 1 for s."""
    n, d = a.shape

    def v(Z):
        return sum(max(0.0, target - math.sqrt(np.var(Z[:, j], ddof=1) + epsilon)) for j in range(d)) / d

    def c(Z):
        C = sum(np.outer(z - Z.mean(axis=0), z - Z.mean(axis=0)) for z in Z) / (n - 1)
        return sum(C[i, j] ** 2 for i in range(d) for j in range(d) if i != j) / d

    s = sum((a[i, j] - b[i, j]) ** 2 for i in range(n) for j in range(d)) / (n * d)
    return invariance * s + variance * (v(a) + v(b)) + covariance * (c(a) + c(b))


def zbontar(a, b, off_diagonal, center):
    """Zbontar et al. 2021, equations 1 and 2; without centering, C as krepes prints it."""
    if center:
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    h = a.shape[1]
    C = np.empty((h, h))
    for i, j in itertools.product(range(h), range(h)):
        numerator = sum(a[k, i] * b[k, j] for k in range(len(a)))
        C[i, j] = numerator / (math.sqrt(sum(a[:, i] ** 2)) * math.sqrt(sum(b[:, j] ** 2)))
    invariance = sum((1 - C[i, i]) ** 2 for i in range(h))
    redundancy = sum(C[i, j] ** 2 for i in range(h) for j in range(h) if i != j)
    return invariance + off_diagonal * redundancy


def grill(predictions, targets):
    """Grill et al. 2020, equation 2 and its symmetric twin, for two views."""

    def regression(q, t):
        return np.mean(
            [np.sum((x / np.linalg.norm(x) - y / np.linalg.norm(y)) ** 2) for x, y in zip(q, t, strict=True)]
        )

    return regression(predictions[0], targets[1]) + regression(predictions[1], targets[0])


@by_n_views
@pytest.mark.parametrize("temperature", [0.07, 0.5, 3.0])
def test_simclr_is_its_formula(n_views, temperature):
    views = embeddings(n_views)
    assert_allclose(
        number(simclr(*views, temperature=temperature)), over_pairs(nt_xent, views, temperature), rtol=1e-12
    )


def test_simclr_at_the_authors_temperature():
    views = embeddings()
    assert_allclose(number(simclr(*views)), over_pairs(nt_xent, views, 0.5), rtol=1e-12)


@by_n_views
@pytest.mark.parametrize(
    "weights",
    [(25.0, 25.0, 1.0, 1.0, 1e-4), (1.0, 0.0, 0.0, 1.0, 1e-4), (0.0, 1.0, 0.0, 1.3, 0.2), (0.0, 0.0, 1.0, 1.0, 1e-4)],
)
def test_vicreg_is_its_formula(n_views, weights):
    views = embeddings(n_views)
    names = ("invariance", "variance", "covariance", "target", "epsilon")
    loss = vicreg(*views, **dict(zip(names, weights, strict=True)))
    assert_allclose(number(loss), over_pairs(bardes, views, *weights), rtol=1e-12)


def test_vicreg_at_the_authors_weights():
    views = embeddings()
    assert_allclose(number(vicreg(*views)), over_pairs(bardes, views, 25.0, 25.0, 1.0, 1.0, 1e-4), rtol=1e-12)


@by_n_views
@pytest.mark.parametrize("center", [True, False])
def test_barlow_twins_is_its_formula(n_views, center):
    views = embeddings(n_views)
    loss = barlow_twins(*views, off_diagonal=0.4, center=center)
    assert_allclose(number(loss), over_pairs(zbontar, views, 0.4, center), rtol=1e-12)


def test_barlow_twins_by_batch_normalization_as_the_authors_have_it():
    a, b = embeddings(n=40)
    normalize = torch.nn.BatchNorm1d(3, affine=False, eps=1e-13).double()
    C = normalize(a).T @ normalize(b) / len(a)
    on_diagonal = (C.diagonal() - 1).pow(2).sum()
    expected = on_diagonal + 0.0051 * (C.pow(2).sum() - C.diagonal().pow(2).sum())
    assert_allclose(number(barlow_twins(a, b)), number(expected), rtol=1e-12)


@by_n_views
def test_byol_is_its_formula(n_views):
    predictions, targets = embeddings(n_views), embeddings(n_views)[::-1]
    pairs = itertools.combinations(range(n_views), 2)
    expected = [grill(*([rows[i].numpy(), rows[j].numpy()] for rows in (predictions, targets))) for i, j in pairs]
    assert_allclose(number(byol(predictions, targets)), np.mean(expected), rtol=1e-12)


def test_byol_knows_predictions_and_targets_apart():
    with pytest.raises(ValueError, match="there are 3 predictions and 2 targets"):
        byol(embeddings(3), embeddings(2))
    with pytest.raises(ValueError, match=r"the views have shapes"):
        byol(embeddings(2), embeddings(2, n=5))
    with pytest.raises(ValueError, match=r"4 or more"):
        byol(embeddings(1), embeddings(1))


# ---- negatives ----------------------------------------------------------------------------------------------------


def triples(views, negatives):
    """f(x)^T f(x-) for every view x of every sample, sample by sample."""
    return [number(view[i] @ negatives[i]) for view in views for i in range(len(view))]


def positives(views):
    return [number(a[i] @ b[i]) for a, b in itertools.permutations(views, 2) for i in range(len(a))]


@by_n_views
def test_one_negative_for_each_sample(n_views):
    views, negatives = embeddings(n_views), tensor(6, 3, seed=9)
    pulled, pushed = np.mean(positives(views)), triples(views, negatives)
    spectral, simple = (loss(*views, negatives=negatives) for loss in (spectral_contrastive, simple_contrastive))
    assert_allclose(number(spectral), -2 * pulled + np.mean(np.square(pushed)), rtol=1e-12)
    assert_allclose(number(simple), np.mean(pushed) - pulled, rtol=1e-12)


@pytest.mark.parametrize("loss", [spectral_contrastive, simple_contrastive])
def test_negatives_of_another_shape_are_named(loss):
    with pytest.raises(ValueError, match=r"negatives has shape \(5, 3\): it must be that of a view, \(6, 3\)"):
        loss(*embeddings(), negatives=tensor(5, 3))


@given(n=st.integers(2, 40), seed=st.integers(0, 100))
@QUICK
def test_a_negative_is_another_sample(n, seed):
    drawn = draw_negatives(n, generator(seed))
    assert drawn.shape == (n,)
    assert ((drawn >= 0) & (drawn < n) & (drawn != torch.arange(n))).all()


def test_all_other_samples_are_equally_likely():
    random = generator()
    counts = torch.zeros(5, 5)
    for _ in range(4000):
        counts[torch.arange(5), draw_negatives(5, random)] += 1
    expected = 1000 * (1 - torch.eye(5))
    assert (counts - expected).abs().max() < 5 * math.sqrt(4000 * 0.25 * 0.75)


def test_draws_follow_the_generator():
    assert torch.equal(draw_negatives(50, generator(1)), draw_negatives(50, generator(1)))
    assert not torch.equal(draw_negatives(50, generator(1)), draw_negatives(50, generator(2)))
    with pytest.raises(InvalidParameterError, match="n=1 is not allowed.*at least 2"):
        draw_negatives(1, generator())


# ---- laws of all losses of embeddings -----------------------------------------------------------------------------


@by_loss
def test_gradients_are_right(loss):
    views = [view.requires_grad_() for view in embeddings(3)]
    assert torch.autograd.gradcheck(loss, views)


@pytest.mark.parametrize("loss", [spectral_contrastive, simple_contrastive])
def test_gradients_go_to_negatives_too(loss):
    a, b, negatives = (view.requires_grad_() for view in embeddings(3))
    assert torch.autograd.gradcheck(lambda a, b, c: loss(a, b, negatives=c), (a, b, negatives))


def test_gradients_of_byol_go_to_the_predictions_alone():
    predictions, targets = ([view.requires_grad_() for view in embeddings(2)] for _ in range(2))
    targets = [target.flip(0).detach().requires_grad_() for target in targets]
    assert torch.autograd.gradcheck(lambda a, b: byol([a, b], targets), predictions)
    byol(predictions, targets).backward()
    assert all(target.grad is None for target in targets)


@by_loss
def test_the_order_of_views_and_samples_does_not_matter(loss):
    views, order = embeddings(3), torch.tensor([3, 0, 5, 1, 2, 4])
    value = number(loss(*views))
    assert_allclose(number(loss(*views[::-1])), value, rtol=1e-12)
    assert_allclose(number(loss(*(view[order] for view in views))), value, rtol=1e-12)
    assert number(loss(views[0][order], *views[1:])) != pytest.approx(value, rel=1e-6)


def changed(views, name):
    """Views with something about them that breaks means, norms, roots and logarithms."""
    views = [view.clone() for view in views]
    for view in views:
        if name == "constant_column":
            view[:, 1] = 0.1  # whose mean is not 0.1 after rounding
        elif name == "zero_column":
            view[:, 1] = 0.0
        elif name == "equal_rows":
            view[:] = view[0].clone()
        elif name == "zero_row":
            view[2] = 0.0
        elif name == "zeros":
            view[:] = 0.0
        elif name == "large":
            view *= 1e6
        elif name == "small":
            view *= 1e-12
        elif name == "offset":
            view += 1e3
    return [views[0], views[0].clone()] if name == "equal_views" else views


DEGENERATE = [
    "constant_column",
    "zero_column",
    "equal_rows",
    "zero_row",
    "zeros",
    "large",
    "small",
    "offset",
    "equal_views",
]


@by_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_embeddings_have_finite_losses_and_gradients(loss, dtype, name):
    views = [view.to(dtype).requires_grad_() for view in changed(embeddings(), name)]
    value = loss(*views)
    value.backward()
    assert value.dtype == dtype
    assert torch.isfinite(value)
    assert all(torch.isfinite(view.grad).all() for view in views)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_predictions_of_byol(dtype, name):
    predictions, targets = ([view.to(dtype) for view in changed(embeddings(), name)] for _ in range(2))
    predictions = [view.requires_grad_() for view in predictions]
    value = byol(predictions, targets)
    value.backward()
    assert torch.isfinite(value)
    assert all(torch.isfinite(view.grad).all() for view in predictions)


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        pytest.param(loss, name, id=f"{key}-{name}")
        for key, loss in LOSSES.items()
        for name in ("plain", "offset", "equal_views")
        # Terms of the size of the squares cancel in the contrastive losses; what an offset leaves is rounding.
        if key in BETWEEN_SAMPLES or name != "offset"
    ],
)
def test_float32_is_near_float64(loss, name):
    views = [view.float() for view in changed(embeddings(n=40), name)]
    assert number(loss(*views)) == pytest.approx(number(loss(*(view.double() for view in views))), rel=2e-3, abs=1e-5)


SCALE_FREE = {"simclr": simclr, "barlow_twins": barlow_twins, "byol": lambda *views: byol(views, views)}


@pytest.mark.parametrize("loss", SCALE_FREE.values(), ids=SCALE_FREE.keys())
@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_losses_of_directions_do_not_see_the_scale(loss, scale):
    """Also where squares overflow or vanish in float32."""
    views = [view.float() for view in embeddings()]
    scaled = [(view * scale).requires_grad_() for view in views]
    value = loss(*scaled)
    value.backward()
    assert number(value) == pytest.approx(number(loss(*views)), rel=1e-4)
    assert all(torch.isfinite(view.grad).all() and view.grad.abs().max() > 0 for view in scaled)


def test_unit_vectors():
    z = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e30, 0.0], [1e-45, 0.0]], requires_grad=True)
    rows = unit(z, dim=1)
    assert_allclose(rows.detach(), [[0.6, 0.8], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], atol=1e-7)
    assert_allclose(unit(z[:1].T, dim=0).detach().T, [[0.6, 0.8]], rtol=1e-6)
    rows.sum().backward()
    assert torch.isfinite(z.grad).all()


# ---- what each loss is for ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rounding", [0.0, 1.0])
@pytest.mark.parametrize("value", [0.1, -0.3, 1e4 / 3])
def test_a_constant_column_is_not_a_correlation(dtype, value, rounding):
    """Nor one of rounding errors, which are equal in both views and would look like perfect agreement."""
    a, b = (view.to(dtype) for view in embeddings(n=7))
    without = number(barlow_twins(a[:, :2], b[:, :2]))
    wobble = rounding * torch.finfo(dtype).eps * torch.tensor([0, 1, 0, 0, -1, 1, 0])
    for view in (a, b):
        view[:, 2] = value * (1 + wobble.to(dtype))
    a.requires_grad_()
    loss = barlow_twins(a, b)
    loss.backward()
    assert number(loss) == pytest.approx(without + 1.0, rel=1e-5)
    assert (a.grad[:, 2] == 0).all()
    assert (a.grad[:, :2] != 0).any()
    assert number(barlow_twins(a, b, center=False)) < number(loss)  # uncentered, the column agrees with itself


def test_a_column_that_varies_a_little_is_a_column():
    a = embeddings(n=50)[0]
    b = a.clone()
    a[:, 0] = 1.0 + 1e-12 * a[:, 0]
    b[:, 0] = 1.0 + 1e-12 * b[:, 0]
    assert number(barlow_twins(a, b, off_diagonal=0.0)) < 1e-6


def test_equal_views_with_uncorrelated_columns_are_barlow_twins_optimum():
    z = torch.linalg.qr(tensor(9, 4) - tensor(9, 4).mean(dim=0))[0]
    assert number(barlow_twins(z, z)) < 1e-25
    assert number(barlow_twins(z, z + 5.0)) < 1e-25
    assert number(barlow_twins(z, z + 5.0, center=False)) > 0.1


def test_vicreg_asks_for_three_things():
    z = torch.linalg.qr(tensor(9, 4) - tensor(9, 4).mean(dim=0))[0] * math.sqrt(8) * 1.01
    assert number(vicreg(z, z)) < 1e-20
    assert number(vicreg(z, z + 1.0)) == pytest.approx(25.0)
    assert number(vicreg(0.0 * z, 0.0 * z)) == pytest.approx(2 * 25.0 * (1 - 1e-2))
    assert number(squared_covariances(z[None])) < 1e-20


def test_simclr_of_samples_far_apart_is_near_zero():
    z = torch.eye(4, dtype=torch.float64)
    assert number(simclr(z, z, temperature=0.02)) < 1e-12
    assert number(simclr(z, z, temperature=1e-3)) == 0.0  # e^1000 does not overflow
    assert number(simclr(torch.ones(4, 2), torch.ones(4, 2))) == pytest.approx(math.log(7), rel=1e-6)


@by_loss_between_samples
def test_a_batch_of_one_is_refused(loss):
    with pytest.raises(ValueError, match="n must be at least 2"):
        loss(*embeddings(n=1))


@by_loss
@pytest.mark.parametrize("shapes", [[(4, 2)], [(4, 2), (3, 2)], [(4,), (4,)]])
def test_views_that_do_not_fit_are_named(loss, shapes):
    with pytest.raises(ValueError, match=r"the views have shapes .*2 or more of one shape \(n, h\)"):
        loss(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("loss", "name", "value"),
    [
        (simclr, "temperature", 0.0),
        (simclr, "temperature", -0.5),
        (vicreg, "invariance", -1.0),
        (vicreg, "variance", -1.0),
        (vicreg, "covariance", math.nan),
        (vicreg, "target", -0.1),
        (vicreg, "epsilon", 0.0),
        (barlow_twins, "off_diagonal", -1e-3),
    ],
)
def test_weights_out_of_range_are_named(loss, name, value):
    with pytest.raises(InvalidParameterError, match=f"{name}={value} is not allowed"):
        loss(*embeddings(), **{name: value})


# ---- penalties ----------------------------------------------------------------------------------------------------


def positive_definite(m=6):
    X = numbers(m, m, seed=4)
    return torch.from_numpy(X @ X.T + 0.1 * np.eye(m))


def test_tikhonov_is_the_squared_norm_in_the_kernels_space():
    A, K = tensor(6, 3), positive_definite()
    root = np.linalg.cholesky(K.numpy()).T  # columns phi of the landmarks
    expected = sum(np.sum((root @ A[:, j].numpy()) ** 2) for j in range(3))
    assert_allclose(number(tikhonov(A, K)), expected, rtol=1e-12)
    assert_allclose(number(tikhonov(A, K)), np.trace(A.T @ K @ A), rtol=1e-12)
    assert_allclose(number(tikhonov(A)), np.trace(A.T @ A), rtol=1e-12)


def test_orthogonality():
    gram = tensor(3, 3)
    expected = sum((number(gram[i, j]) - (i == j)) ** 2 for i in range(3) for j in range(3))
    assert_allclose(number(orthogonality(gram)), expected, rtol=1e-12)
    assert number(orthogonality(torch.eye(4))) == 0.0


def test_unit_norms():
    z = tensor(5, 3)
    assert_allclose(number(unit_norms(z)), np.mean([(number(row @ row) - 1) ** 2 for row in z]), rtol=1e-12)


@pytest.mark.parametrize("with_kernel", [True, False])
def test_orthonormal_is_the_polar_factor(with_kernel):
    A, K = tensor(6, 3), positive_definite()
    root = np.real(sqrtm(K.numpy())) if with_kernel else np.eye(6)
    expected = np.linalg.solve(root, polar(root @ A.numpy())[0])
    found = orthonormal(A, K if with_kernel else None)
    assert_allclose(found, expected, atol=1e-10)
    assert number(orthogonality(found.T @ (K if with_kernel else torch.eye(6).double()) @ found)) < 1e-20


def test_no_other_orthonormal_map_is_nearer():
    A, K = tensor(6, 3), positive_definite()
    nearest = orthonormal(A, K)
    others = [orthonormal(nearest + 0.1 * tensor(6, 3, seed=seed), K) for seed in range(1, 20)]
    assert all(tikhonov(other - A, K) > tikhonov(nearest - A, K) for other in others)


def test_orthonormal_keeps_type_and_argument_and_what_is_orthonormal():
    A, K = tensor(6, 3).float(), positive_definite().float()
    A[:, 2] = A[:, 1] + 1e-4 * A[:, 2]  # a condition number whose square float32 does not hold
    before = A.clone()
    found = orthonormal(A, K)
    assert found.dtype == torch.float32
    assert torch.equal(A, before)
    assert number(orthogonality(found.T.double() @ K.double() @ found.double())) < 1e-6
    settled = orthonormal(tensor(6, 3), K.double())
    assert_allclose(orthonormal(settled, K.double()), settled, atol=1e-12)


@pytest.mark.parametrize("A", [torch.ones(6, 2), torch.zeros(6, 2), torch.full((6, 2), math.nan)])
def test_dependent_columns_have_no_nearest_orthonormal_map(A):
    with pytest.raises((NumericalError, torch.linalg.LinAlgError), match="linearly dependent|finite"):
        orthonormal(A.double(), positive_definite())
