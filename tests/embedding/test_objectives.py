"""Objectives: any function of embeddings, BYOL with its target, the kernel autoencoder with its decoder."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer.exceptions import InvalidParameterError
from mercer.kernels import Gaussian
from mercer.losses import (
    BYOL,
    FromEmbeddings,
    KernelAutoencoder,
    Objective,
    kernel_autoencoder,
    kernel_pca,
    simclr,
    simple_contrastive,
    spectral_contrastive,
    tikhonov,
    vicreg,
)
from mercer.losses.byol import target_rate
from tests.losses.test_losses_gradient import by_n_views, generator, grill, number, positive_definite, tensor


class Model(torch.nn.Module):
    """A map of inputs with parameters in two places and a buffer."""

    def __init__(self, d=4, h=3, seed=0):
        super().__init__()
        self.first = torch.nn.Module()
        self.first.A = torch.nn.Parameter(tensor(d, h, seed=seed))
        self.bias = torch.nn.Parameter(tensor(h, seed=seed + 1))
        self.register_buffer("offset", tensor(d, seed=seed + 2))

    def forward(self, x):
        return torch.tanh((x - self.offset) @ self.first.A + self.bias)


def inputs(n_views=2, n=6, d=4):
    return [tensor(n, d, seed=20 + j) for j in range(n_views)]


@by_n_views
def test_any_function_of_the_embeddings_is_an_objective(n_views):
    model, views = Model(), inputs(n_views)
    objective = FromEmbeddings(lambda *z: sum(a.pow(4).mean() for a in z))
    loss = objective(model, views, generator())
    assert_allclose(number(loss), sum(number(model(view).pow(4).mean()) for view in views), rtol=1e-12)
    loss.backward()
    assert model.first.A.grad.abs().max() > 0
    objective.begin(model)
    objective.after_step(model, 0, 10)
    assert list(objective.parameters()) == []
    assert objective.state_dict() == {}


def test_options_and_closed_forms_by_gradient():
    model, views = Model(), inputs()
    z = [model(view) for view in views]
    assert number(FromEmbeddings(partial(simclr, temperature=0.2))(model, views, generator())) == number(
        simclr(*z, temperature=0.2)
    )
    gram = model.first.A.T @ model.first.A
    reconstruction = FromEmbeddings(partial(kernel_pca, gram=gram, diagonal=1.0), min_views=1)
    assert number(reconstruction(model, views[:1], generator())) == number(kernel_pca(z[0], gram=gram, diagonal=1.0))


def vector_loss(*views):
    return views[0].mean(dim=0)


class Rows:
    """A callable without a name."""

    def __call__(self, *views):
        return number(views[0].mean())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            vector_loss,
            r"vector_loss returned a tensor of shape \(3,\) and torch.float64: a loss must be a scalar tensor",
        ),
        (partial(vector_loss), r"vector_loss returned a tensor"),
        (Rows(), r"Rows object.* returned -?0\.\d+: a loss must be a scalar tensor"),
        (
            lambda *views: (views[0] > 0).sum() + 0 * views[0].sum().long(),
            r"<lambda> returned a tensor that torch cannot",
        ),
        (lambda *views: simclr(*(view.detach() for view in views)), r"<lambda> returned a tensor that torch cannot"),
        (lambda *views: None, r"<lambda> returned None"),
    ],
)
def test_what_is_not_a_loss_is_named(loss, message):
    with pytest.raises(ValueError, match=message):
        FromEmbeddings(loss)(Model(), inputs(), generator())


def test_a_count_is_not_a_loss():
    with pytest.raises(ValueError, match=r"returned a tensor of shape \(\) and torch.int64"):
        FromEmbeddings(lambda *views: (views[0] > 0).sum())(lambda x: x, inputs(), generator())


def test_a_loss_is_measured_without_gradients_too():
    with torch.no_grad():
        assert torch.isfinite(FromEmbeddings(simclr)(Model(), inputs(), generator()))


def test_small_batches_and_missing_views_are_named():
    with pytest.raises(ValueError, match=r"the batch has 1 samples: vicreg needs 2 or more"):
        FromEmbeddings(vicreg)(Model(), inputs(n=1), generator())
    with pytest.raises(ValueError, match=r"the batch has 3 samples: vicreg needs 4 or more"):
        FromEmbeddings(partial(vicreg), min_batch=4)(Model(), inputs(n=3), generator())
    with pytest.raises(ValueError, match=r"the views have \[6\] rows: vicreg needs 2 or more views"):
        FromEmbeddings(vicreg)(Model(), inputs(1), generator())
    with pytest.raises(ValueError, match=r"the views have \[6, 5\] rows: vicreg needs 2 or more views, of one size"):
        FromEmbeddings(vicreg)(Model(), [*inputs(1), *inputs(1, n=5)], generator())
    one = FromEmbeddings(lambda z: z.square().mean(), min_views=1, min_batch=1)
    assert torch.isfinite(one(Model(), inputs(1, n=1), generator()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "simclr"}, "loss='simclr' is not allowed: loss must be a callable"),
        ({"min_views": 0}, "min_views=0"),
        ({"min_batch": 0.5}, "min_batch=0.5"),
        ({"negatives": "hard"}, "negatives='hard' is not allowed: negatives must be one of 'all', 'drawn'"),
        ({"negatives": "drawn"}, "'all' for simclr, which takes no negatives"),
    ],
)
def test_wrong_parameters_of_an_objective_are_named(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        FromEmbeddings(**{"loss": simclr, **options})


@pytest.mark.parametrize("loss", [spectral_contrastive, partial(simple_contrastive)])
def test_drawn_negatives_are_views_of_other_samples(loss):
    seen = []

    def spy(*views, negatives=None):
        seen.append((torch.stack(views), negatives))
        return loss(*views, negatives=negatives)

    model, views = Model(), inputs(3, n=5)
    objective = FromEmbeddings(spy, negatives="drawn", min_batch=1)
    assert objective.min_batch == 2
    random = generator(3)
    losses = [number(objective(model, views, random)) for _ in range(60)]
    assert len(set(losses)) > 30  # drawn anew
    again = generator(3)
    assert [number(objective(model, views, again)) for _ in range(3)] == losses[:3]
    used = set()
    for stacked, negatives in seen:
        for i, negative in enumerate(negatives):
            j, k = (int(index) for index in torch.nonzero((stacked == negative).all(dim=2))[0])
            assert k != i
            used.add((j, k))
    assert len(used) == 15  # every view of every sample serves
    FromEmbeddings(spy, min_batch=2)(model, views, generator())
    assert seen[-1][1] is None
    assert FromEmbeddings(loss, negatives="drawn")(model, views, generator()).requires_grad
    passed_on = FromEmbeddings(lambda *views, **options: loss(*views, **options), negatives="drawn")
    assert number(passed_on(model, views, generator(3))) == losses[0]


def test_a_loss_with_parameters_brings_them_along():
    class Tempered(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, a, b):
            return (self.scale * a - b).square().mean()

    objective = FromEmbeddings(Tempered())
    assert [name for name, _ in objective.named_parameters()] == ["loss.scale"]


def test_an_objective_of_ones_own():
    class Mean(Objective):
        min_views = 1

        def batch_loss(self, embed, views, generator):
            return embed(views[0])

    with pytest.raises(ValueError, match=r"Mean returned a tensor of shape \(6, 3\)"):
        Mean()(Model(), inputs(1), generator())
    with pytest.raises(TypeError, match="abstract"):
        Objective()


# ---- BYOL ---------------------------------------------------------------------------------------------------------


def bootstrapped(model, hidden=5, seed=0, **options):
    objective = BYOL(3, hidden=hidden, generator=generator(seed), **options).double()
    objective.begin(model)
    return objective


def test_the_rate_of_the_target_is_that_of_the_authors():
    """tau = 1 - (1 - tau_base) (cos(pi k / K) + 1) / 2."""
    assert target_rate(0, 100) == pytest.approx(0.996)
    assert target_rate(50, 100) == pytest.approx(0.998)
    assert target_rate(25, 100, 0.9) == pytest.approx(1 - 0.1 * (math.cos(math.pi / 4) + 1) / 2)
    assert target_rate(100, 100) == target_rate(150, 100) == 1.0


def test_the_loss_of_byol_by_hand():
    model = Model()
    objective = bootstrapped(model)
    target = copy.deepcopy(model)
    with torch.no_grad():
        model.first.A += 0.5  # the target stays behind
        model.bias *= 2.0
    views = inputs(n=7)
    first, norm, _, second = objective.predictor
    predictions = []
    for view in views:
        hidden = model(view) @ first.weight.T + first.bias
        hidden = (hidden - hidden.mean(dim=0)) / (hidden.var(dim=0, correction=0) + 1e-5).sqrt()
        predictions.append((hidden * norm.weight + norm.bias).relu() @ second.weight.T)
    with torch.no_grad():
        targets = [target(view) for view in views]
    loss = objective(model, views, generator())
    assert_allclose(
        number(loss), grill([p.detach().numpy() for p in predictions], [t.numpy() for t in targets]), rtol=1e-10
    )
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())
    assert objective.predictor[3].weight.grad.abs().max() > 0


def test_the_target_follows_the_model():
    model = Model()
    objective = bootstrapped(model, rate=0.9)
    expected = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for step in range(4):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * (step + 1)
        objective.after_step(model, step, 4)
        tau = target_rate(step, 4, 0.9)
        expected = {name: tau * expected[name] + (1 - tau) * p.detach() for name, p in model.named_parameters()}
    assert set(expected) == {"first.A", "bias"}
    assert_allclose(objective.state_dict()["target.first/A"], expected["first.A"], rtol=1e-12)
    assert_allclose(objective.state_dict()["target.bias"], expected["bias"], rtol=1e-12)
    assert [name for name, _ in objective.named_parameters()] == [
        "predictor.0.weight",
        "predictor.0.bias",
        "predictor.1.weight",
        "predictor.1.bias",
        "predictor.3.weight",
    ]


def test_a_checkpoint_of_byol_holds_everything():
    model, views = Model(), inputs()
    objective = bootstrapped(model)
    optimizer = torch.optim.SGD([*model.parameters(), *objective.parameters()], lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        objective(model, views, generator()).backward()
        optimizer.step()
        objective.after_step(model, step, 5)
    again = bootstrapped(Model(seed=7), seed=8)
    again.load_state_dict(copy.deepcopy(objective.state_dict()))
    assert number(again(model, views, generator())) == number(objective(model, views, generator()))
    before = number(objective(model, views, generator()))
    objective.begin(model)  # a new beginning forgets the average
    assert number(objective(model, views, generator())) != before


def test_the_predictor_starts_from_the_generator_alone():
    state = torch.random.get_rng_state()
    weights = [BYOL(3, hidden=400, generator=generator(seed)).predictor for seed in (1, 1, 2)]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(weights[0][0].weight, weights[1][0].weight)
    assert torch.equal(weights[0][3].weight, weights[1][3].weight)
    assert not torch.equal(weights[0][0].weight, weights[2][0].weight)
    first, _, _, last = weights[0]
    assert (first.bias == 0).all()
    assert last.bias is None
    # A normal distribution that is cut at two deviations has 0.88 of its deviation.
    for layer, n_in in ((first, 3), (last, 400)):
        assert layer.weight.abs().max() <= 2 * n_in**-0.5
        assert number(layer.weight.std()) == pytest.approx(0.88 * n_in**-0.5, rel=0.1)
    assert BYOL(3, generator=generator()).predictor[0].weight.shape == (4096, 3)


def test_byol_needs_a_beginning_and_a_module():
    model = Model()
    objective = BYOL(3, hidden=4, generator=generator()).double()
    with pytest.raises(ValueError, match=r"call begin\(model\) before the first batch"):
        objective(model, inputs(), generator())
    objective.begin(model)
    with pytest.raises(ValueError, match="BYOL needs the model itself, a torch.nn.Module"):
        objective(lambda x: x, inputs(), generator())
    with pytest.raises(ValueError, match=r"call begin\(model\)"):
        objective(torch.nn.Linear(4, 3).double(), inputs(), generator())
    objective.begin(torch.nn.Linear(4, 3).double())  # leaves nothing of the model before
    objective.begin(model)
    assert torch.isfinite(objective(model, inputs(), generator()))
    with pytest.raises(ValueError, match=r"the batch has 1 samples: BYOL needs 2 or more"):
        objective(model, inputs(n=1), generator())
    for wrong in ({"n_components": 0}, {"hidden": 0}, {"rate": 1.1}, {"rate": -0.1}):
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            BYOL(**{"n_components": 3, "generator": generator(), **wrong})


# ---- the kernel autoencoder ---------------------------------------------------------------------------------------


def decoder(objective, seed=5):
    """The objective with some decoder, not the one it starts with."""
    with torch.no_grad():
        objective.B.copy_(tensor(*objective.B.shape, seed=seed))
        objective.c.copy_(tensor(*objective.c.shape, seed=seed + 1))
    return objective


def gaussian(u, v, bandwidth=0.9):
    return math.exp(-number((u - v) @ (u - v)) / (2 * bandwidth**2))


def encoder_norm(model):
    return tikhonov(model.first.A)


@pytest.mark.parametrize("n_views", [1, 2])
@pytest.mark.parametrize(
    ("ridge", "rho", "kappa"), [(0.0, 0.0, 0.0), (0.7, 0.0, 0.0), (0.0, 2.0, 0.0), (0.1, 0.2, 3.0)]
)
def test_the_kernel_autoencoder_is_its_formula(n_views, ridge, rho, kappa):
    model, landmarks, views = Model(), tensor(5, 4, seed=3), inputs(n_views)
    objective = decoder(KernelAutoencoder(landmarks, 3, kernel=Gaussian(0.9), ridge=ridge, unit=rho, covariance=kappa))
    B, c = objective.B.detach(), objective.c.detach()
    u = [model(row[None])[0].detach() for row in landmarks]
    z = [model(row[None])[0].detach() for row in torch.cat(views)]
    errors = []
    for x, code in zip(torch.cat(views), z, strict=True):
        decoded = c + sum(gaussian(u[j], code) * B[j] for j in range(5))
        errors.append(number((x - decoded) @ (x - decoded)))
    norm = sum(gaussian(u[i], u[j]) * number(B[i] @ B[j]) for i in range(5) for j in range(5))
    lengths = np.mean([(number(code @ code) - 1) ** 2 for code in z])
    C = np.cov(torch.stack(z).numpy().T)
    covariances = (np.sum(C**2) - np.sum(np.diag(C) ** 2)) / 3
    expected = np.mean(errors) + ridge * norm + rho * lengths + kappa * covariances
    assert_allclose(number(objective(model, views, generator())), expected, rtol=1e-10)


def test_the_defaults_of_the_autoencoder():
    model, views, landmarks = Model(), inputs(), tensor(5, 4, seed=3)
    plain, explicit = (
        decoder(KernelAutoencoder(landmarks, 3, kernel=Gaussian(0.9), **options))
        for options in ({}, {"ridge": 1e-3, "unit": 1.0, "covariance": 0.0})
    )
    assert number(plain(model, views, generator())) == number(explicit(model, views, generator()))
    assert plain.solve_every == 10


def test_the_linear_decoder():
    model, views = Model(), inputs(1)
    objective = decoder(KernelAutoencoder(tensor(5, 4), 3, kernel="linear", ridge=0.3, unit=0.0))
    assert objective.B.shape == (3, 4)
    assert set(objective.state_dict()) == {"B", "c"}
    decoded = model(views[0]) @ objective.B + objective.c
    expected = (views[0] - decoded).square().sum() / 6 + 0.3 * objective.B.square().sum()
    assert_allclose(number(objective(model, views, generator())), number(expected), rtol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", Gaussian(0.9)])
def test_gradients_of_the_kernel_autoencoder(kernel):
    """By the encoder, through samples and landmarks, and by the decoder."""
    views, landmarks = inputs(1), tensor(5, 4, seed=3)
    objective = KernelAutoencoder(landmarks, 3, kernel=kernel, ridge=0.3, unit=0.5, covariance=0.2)

    def loss(A, B, c):
        return torch.func.functional_call(
            objective, {"B": B, "c": c}, (lambda x: torch.tanh(x @ A), views, generator())
        )

    arguments = tensor(4, 3), tensor(*objective.B.shape, seed=1), tensor(4, seed=2)
    assert torch.autograd.gradcheck(loss, [argument.requires_grad_() for argument in arguments])


@pytest.mark.parametrize("kernel", ["linear", Gaussian(0.9)])
@pytest.mark.parametrize("ridge", [1e-2, 1.0])
def test_the_decoder_that_is_solved_is_the_best(kernel, ridge):
    model, (x,) = Model(), inputs(1, n=12)
    objective = KernelAutoencoder(tensor(5, 4, seed=3), 3, kernel=kernel, ridge=ridge)
    start = number(objective(model, [x], generator()))
    state = copy.deepcopy(model.state_dict())
    objective.solve_decoder(model, x)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    loss = objective(model, [x], generator())
    loss.backward()
    assert number(loss) < start
    assert objective.B.grad.abs().max() < 1e-9
    assert objective.c.grad.abs().max() < 1e-9


def test_the_start_decodes_to_the_mean_of_the_landmarks():
    landmarks = tensor(5, 4, seed=3)
    objective = KernelAutoencoder(landmarks, 3, kernel=Gaussian(1.0), unit=0.0)
    (x,) = inputs(1)
    assert_allclose(
        number(objective(Model(), [x], generator())), number((x - landmarks.mean(dim=0)).square().sum() / 6), rtol=1e-12
    )
    landmarks += 1.0  # the objective has its own
    assert number((objective.landmarks - landmarks).abs().min()) == pytest.approx(1.0)
    assert [name for name, _ in objective.named_parameters()] == ["B", "c"]
    assert set(objective.state_dict()) == {"B", "c", "landmarks"}


def test_equal_landmarks_have_a_decoder_too():
    objective = KernelAutoencoder(tensor(1, 4).repeat(3, 1), 3, kernel=Gaussian(1.0))
    objective.solve_decoder(Model(), inputs(1)[0])
    assert torch.isfinite(objective.B).all()


def test_encoder_and_decoder_learn_in_turns():
    """The whole of the loss falls, with the encoder's norm beside it."""
    model, (x,) = Model(), inputs(1, n=30)
    objective = KernelAutoencoder(x[:10], 3, kernel=Gaussian(1.0), rows=x, solve_every=1)
    assert list(objective.parameters()) == []
    objective.begin(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for step in range(40):
        optimizer.zero_grad()
        loss = objective(model, [x], generator()) + 1e-3 * encoder_norm(model)
        loss.backward()
        optimizer.step()
        objective.after_step(model, step, 40)
        losses.append(number(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_the_decoder_is_solved_at_the_beginning_and_every_few_steps():
    model, (x,) = Model(), inputs(1)
    objective = KernelAutoencoder(tensor(5, 4, seed=3), 3, kernel=Gaussian(1.0), rows=x, solve_every=3)
    solved = []
    objective.solve_decoder = lambda embed, rows: solved.append((embed is model, rows is objective.rows))
    objective.begin(model)
    assert solved == [(True, True)]
    counts = []
    for step in range(7):
        objective.after_step(model, step, 7)
        counts.append(len(solved) - 1)
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    trained = KernelAutoencoder(tensor(5, 4, seed=3), 3, kernel=Gaussian(1.0), solve_every=1)
    before = copy.deepcopy(trained.state_dict())
    trained.begin(model)
    trained.after_step(model, 0, 1)
    assert all(torch.equal(before[name], value) for name, value in trained.state_dict().items())


def test_a_checkpoint_of_the_autoencoder_holds_the_decoder_and_not_the_data():
    model, (x,) = Model(), inputs(1)
    objective, again = (KernelAutoencoder(tensor(5, 4, seed=3), 3, kernel=Gaussian(1.0), rows=x) for _ in range(2))
    objective.begin(model)
    assert set(objective.state_dict()) == {"B", "c", "landmarks"}
    again.load_state_dict(objective.state_dict())
    assert number(again(model, [x], generator())) == number(objective(model, [x], generator()))


def test_the_pure_loss_of_reconstruction():
    x, decoded, B, L = tensor(6, 4), tensor(6, 4, seed=1), tensor(5, 4, seed=2), positive_definite(5)
    error = np.mean([number((a - b) @ (a - b)) for a, b in zip(x, decoded, strict=True)])
    loss = kernel_autoencoder(x, decoded, B=B, L=L, ridge=0.2)
    assert_allclose(number(loss), error + 0.2 * np.trace(B.T @ L @ B), rtol=1e-12)
    assert_allclose(number(kernel_autoencoder(x, decoded, B=B)), error + 1e-3 * number(B.square().sum()), rtol=1e-12)
    with pytest.raises(ValueError, match=r"inputs and reconstructions have shapes \(\(6, 4\), \(6, 3\)\)"):
        kernel_autoencoder(x, decoded[:, :3], B=B)


def test_batches_of_one_do_unless_covariances_are_asked_for():
    landmarks = tensor(5, 4)
    one = KernelAutoencoder(landmarks, 3, kernel="linear")
    assert torch.isfinite(one(Model(), inputs(1, n=1), generator()))
    with pytest.raises(ValueError, match=r"the batch has 1 samples: KernelAutoencoder needs 2 or more"):
        KernelAutoencoder(landmarks, 3, kernel="linear", covariance=1.0)(Model(), inputs(1, n=1), generator())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"landmarks": torch.zeros(0, 4)}, r"landmarks=\(0, 4\) is not allowed"),
        ({"landmarks": torch.zeros(4)}, r"landmarks=\(4,\) is not allowed"),
        ({"kernel": "gaussian"}, "kernel='gaussian' is not allowed: kernel must be a callable"),
        ({"n_components": 0}, "n_components=0"),
        ({"ridge": -1.0}, "ridge=-1.0"),
        ({"solve_every": 0}, "solve_every=0"),
        ({"unit": -1.0}, "unit=-1.0"),
        ({"covariance": -1.0}, "covariance=-1.0"),
    ],
)
def test_wrong_parameters_of_the_autoencoder_are_named(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        KernelAutoencoder(**{"landmarks": tensor(5, 4), "n_components": 3, "kernel": "linear", **options})
