"""Training: schedules, optimizers and batches against naive twins, then the loop against one of a few plain lines."""

import contextlib
import math
import warnings
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, ProgressBar, ScoringMonitor, with_callbacks
from torch import nn

from mercer.exceptions import ConvergenceWarning, InvalidParameterError, NumericalError
from mercer.training import LARS, OPTIMIZERS, Recipe, fit_progress, make_optimizer, train
from mercer.training.batches import count_batches, epoch_batches
from mercer.training.randomness import generator_of, global_chance_from, seed_of
from mercer.training.schedules import warmup_cosine
from mercer.training.settings import text_in_any_process
from mercer.training.states import are_finite
from mercer.training.stopping import best_epoch, epochs_without_gain
from tests.examples_of import QUICK, numbers

CPU = torch.device("cpu")


# ---- learning rates ----------------------------------------------------------------------------------------


def test_cosine_is_that_of_torch():
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20, eta_min=0.01)
    for step in range(21):
        assert warmup_cosine(step, 20, 0, 0.3, 0.01) == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        scheduler.step()


def test_warmup_rises_by_equal_amounts_to_the_peak():
    assert [warmup_cosine(t, 10, 4, 2.0, 0.5) for t in range(5)] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert warmup_cosine(7, 10, 4, 2.0, 0.5) == pytest.approx(1.25)
    assert warmup_cosine(10, 10, 4, 2.0, 0.5) == 0.5
    assert [warmup_cosine(t, 3, 3, 3.0, 0.0) for t in range(3)] == [1.0, 2.0, 3.0]


@QUICK
@given(st.integers(1, 40), st.floats(0.0, 1.0), st.floats(1e-6, 10.0), st.floats(0.0, 1.0))
def test_rates_rise_then_fall_within_their_bounds(total, warm, peak, share):
    warmup, final = int(warm * total), share * peak
    rates = [warmup_cosine(t, total, warmup, peak, final) for t in range(total + 1)]
    assert all(0 <= rate <= peak * (1 + 1e-12) for rate in rates)
    assert all(a < b for a, b in pairwise(rates[:warmup]))
    assert all(a >= b for a, b in pairwise(rates[warmup:]))
    assert rates[warmup] == pytest.approx(peak)
    assert min(rates[warmup:]) >= final * (1 - 1e-12)


def test_equal_rates_are_constant():
    assert {warmup_cosine(t, 9, 0, 0.1, 0.1) for t in range(10)} == {0.1}


# ---- optimizers --------------------------------------------------------------------------------------------


def naive_steps(name, weight, gradients, rate, decay, momentum):
    """The optimizers as their papers have them, on one NumPy array."""
    w, m, v = weight.copy(), 0.0, 0.0
    for t, g in enumerate(gradients, start=1):
        if name == "adamw":
            w = w - rate * decay * w
        elif name != "lars" or w.ndim > 1:
            g = g + decay * w
        if name in ("adam", "adamw"):
            m, v = momentum * m + (1 - momentum) * g, 0.999 * v + 0.001 * g**2
            w = w - rate * (m / (1 - momentum**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            continue
        if name == "lars" and w.ndim > 1:
            length, gradient = math.sqrt((w**2).sum()), math.sqrt((g**2).sum())
            if length > 0 and gradient > 0:
                g = 0.001 * length / gradient * g
        m = momentum * m + g
        w = w - rate * m
    return w


@pytest.mark.parametrize("shape", [(4, 3), (5,), (2, 3, 2, 2), ()])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("momentum", [0.0, 0.7])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_their_naive_twins(name, momentum, decay, shape):
    start, gradients = numbers(*shape, seed=1), numbers(5, *shape, seed=2)
    w = nn.Parameter(torch.tensor(start))
    optimizer = make_optimizer(name, [w], 0.2, decay, momentum)
    for gradient in gradients:
        w.grad = torch.tensor(gradient)
        optimizer.step()
        np.testing.assert_array_equal(w.grad, gradient)
    expected = naive_steps(name, np.asarray(start), gradients, 0.2, decay, momentum)
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("weight", "gradient"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_lars_without_a_length_is_plain_descent(weight, gradient):
    w = nn.Parameter(torch.full((2, 2), weight))
    w.grad = torch.full((2, 2), gradient)
    LARS([w], lr=0.5).step()
    assert torch.equal(w.detach(), torch.full((2, 2), weight - 0.5 * gradient))


def test_lars_does_not_see_the_scale_of_the_loss():
    ends = []
    for scale in (1.0, 1e6):
        w = nn.Parameter(torch.tensor(numbers(3, 4)))
        optimizer = LARS([w, unused := nn.Parameter(torch.ones(2))], lr=1.0)
        for seed in range(4):
            w.grad = scale * torch.tensor(numbers(3, 4, seed=seed))
            optimizer.step()
        ends.append(w.detach())
        assert torch.equal(unused.detach(), torch.ones(2))
    torch.testing.assert_close(*ends)


def test_unknown_optimizer_is_named():
    with pytest.raises(InvalidParameterError, match="optimizer='adagrad' .* 'sgd', 'adam', 'adamw', 'lars'"):
        make_optimizer("adagrad", [nn.Parameter(torch.ones(1))], 0.1)


# ---- batches and chance ------------------------------------------------------------------------------------


@QUICK
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 5), st.integers(0, 5))
def test_batches_are_a_partition_into_equal_parts(n_rows, batch_size, min_batch, epoch):
    batch_size, n_rows = max(batch_size, min_batch), max(n_rows, min_batch)
    n_batches = count_batches(n_rows, batch_size, min_batch)
    batches = epoch_batches(n_rows, n_batches, 3, epoch)
    sizes = [len(batch) for batch in batches]
    assert sorted(torch.cat(batches).tolist()) == list(range(n_rows))
    assert len(sizes) == n_batches
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min_batch
    fewest = math.ceil(n_rows / batch_size)
    assert n_batches == fewest or (n_batches < fewest and n_rows < fewest * min_batch)


def test_counts_of_batches():
    assert [count_batches(n, 256) for n in (1, 255, 256, 257, 512, 513)] == [1, 1, 1, 2, 2, 3]
    assert [count_batches(n, 2, 2) for n in (2, 3, 4, 5)] == [1, 1, 2, 2]


def test_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        return torch.cat(epoch_batches(50, 4, seed, epoch)).tolist()

    torch.manual_seed(0)
    first = order(1, 2)
    torch.manual_seed(1)
    assert order(1, 2) == first
    assert len({tuple(order(seed, epoch)) for seed in range(3) for epoch in range(3)}) == 9
    assert first != list(range(50))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 256, 2), "there are 1 rows .* at least 2"),
        ((10, 1, 2), "batch_size=1 is not allowed: batch_size must be at least 2"),
        ((0, 256, 1), "n_rows=0"),
        ((10, 0, 1), "batch_size=0"),
        ((10, 5, 0), "min_batch=0"),
        ((10.0, 5, 1), "n_rows=10.0"),
    ],
)
def test_batches_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        count_batches(*arguments)


def test_seeds_differ_by_purpose_number_and_seed():
    seeds = {seed_of(seed, purpose, t) & 0xFFFFFFFF for seed in range(5) for purpose in "ab" for t in range(100)}
    assert len(seeds) == 1000
    assert torch.rand(1, generator=generator_of(1, "a", 2)) == torch.rand(1, generator=generator_of(1, "a", 2))


def test_global_chance_is_seeded_inside_and_put_back():
    torch.manual_seed(5)
    expected = torch.rand(2)
    torch.manual_seed(5)
    with global_chance_from(7, CPU):
        inside = torch.rand(3)
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(inside, torch.rand(3, generator=torch.Generator().manual_seed(7)))
    torch.manual_seed(5)
    with contextlib.suppress(KeyError), global_chance_from(8, CPU):
        torch.rand(1)
        raise KeyError
    assert torch.equal(torch.rand(2), expected)


# ---- when to stop ------------------------------------------------------------------------------------------


def naive_idle(criteria, tolerance):
    gains = [i for i, criterion in enumerate(criteria) if criterion < min(criteria[:i], default=math.inf) - tolerance]
    return len(criteria) - 1 - gains[-1] if criteria else 0


@QUICK
@given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), max_size=8), st.sampled_from([0.0, 0.25, 0.3]))
def test_stopping_is_its_naive_twin(criteria, tolerance):
    assert epochs_without_gain(criteria, tolerance) == naive_idle(criteria, tolerance)
    assert best_epoch(criteria) == (criteria.index(min(criteria)) if criteria else None)


# ---- recipes -----------------------------------------------------------------------------------------------

WRONG = {
    "n_epochs": [0, 2.5, None],
    "batch_size": [0, 2.5, "all"],
    "optimizer": ["rmsprop", None],
    "learning_rate": [0.0, -1.0, math.nan, "fast"],
    "weight_decay": [-0.1, math.inf],
    "momentum": [-0.1, 1.0, math.nan],
    "warmup_epochs": [-1, 5],
    "final_learning_rate": [-0.1, 0.2],
    "clip_norm": [0.0, -1.0],
    "patience": [0, 1.5],
    "tolerance": [-1.0, math.nan],
    "keep": ["first", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_recipes_are_named(name, value):
    with pytest.raises(InvalidParameterError, match=f"^{name}="):
        Recipe(**{"n_epochs": 4, "learning_rate": 0.1, name: value})


def test_every_field_of_a_recipe_is_checked():
    assert set(WRONG) == {field.name for field in fields(Recipe)}


def test_recipes_hold_numbers_of_python():
    recipe = Recipe(
        np.int64(3), batch_size=np.int32(5), learning_rate=np.float32(0.5), clip_norm=np.float64(1), patience=np.int8(2)
    )
    assert {type(value) for value in vars(recipe).values()} == {int, float, str}
    assert recipe.learning_rate == 0.5


# ---- the loop ----------------------------------------------------------------------------------------------

X = torch.tensor(numbers(23, 4), dtype=torch.float64)
Y = torch.tensor(numbers(23, 2, seed=9), dtype=torch.float64)


def line(seed=0):
    """A linear map with weights by a seed."""
    module = nn.Linear(4, 2, dtype=torch.float64)
    with torch.no_grad():
        module.weight.copy_(torch.tensor(numbers(2, 4, seed=seed)))
        module.bias.zero_()
    return module


def squares(module, noise=0.1):
    """The squared error of noisy rows: the noise is what views are elsewhere."""

    def batch_loss(rows, generator):
        drawn = torch.randn(len(rows), 4, generator=generator, dtype=torch.float64)
        return (module(X[rows] + noise * drawn) - Y[rows]).square().mean()

    return batch_loss


def run(recipe, module=None, seed=3, **options):
    module = line() if module is None else module
    return module, train(module, squares(module), len(X), recipe, seed=seed, **options)


def same_state(a, b):
    a, b = a.state_dict(), b.state_dict()
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


def naive_training(recipe, seed, sees=lambda module, epoch: None):
    """The loop in plain lines: no best epoch, no patience."""
    module = line()
    optimizer = make_optimizer(
        recipe.optimizer, module.parameters(), 1.0, weight_decay=recipe.weight_decay, momentum=recipe.momentum
    )
    n_batches = math.ceil(len(X) / recipe.batch_size)
    step = 0
    losses = []
    for epoch in range(recipe.n_epochs):
        order = torch.randperm(len(X), generator=generator_of(seed, "rows", epoch))
        total = 0.0
        for rows in np.array_split(order.numpy(), n_batches):
            loss = squares(module)(torch.tensor(rows), generator_of(seed, "views", step))
            optimizer.zero_grad()
            loss.backward()
            norm = torch.sqrt(sum(p.grad.square().sum() for p in module.parameters()))
            if recipe.clip_norm is not None and norm > recipe.clip_norm:
                for p in module.parameters():
                    p.grad *= recipe.clip_norm / norm
            warmup = round(recipe.warmup_epochs * n_batches)
            for group in optimizer.param_groups:
                group["lr"] = warmup_cosine(
                    step, recipe.n_epochs * n_batches, warmup, recipe.learning_rate, recipe.final_learning_rate
                )
            optimizer.step()
            total += loss.item() * len(rows)
            step += 1
        losses.append(total / len(X))
        sees(module, epoch)
    return module, losses


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("clip_norm", [None, 0.5])
def test_the_loop_is_its_naive_twin(optimizer, clip_norm):
    recipe = Recipe(
        4, 6, optimizer, 0.05, 0.1, 0.8, warmup_epochs=1.5, final_learning_rate=0.01, clip_norm=clip_norm, keep="last"
    )
    module, training = run(recipe)
    twin, losses = naive_training(recipe, 3)
    for ours, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)
    assert [record["loss"] for record in training.history] == pytest.approx(losses, rel=1e-6)
    assert [record["epoch"] for record in training.history] == [0, 1, 2, 3]
    assert [record["criterion"] for record in training.history] == [record["loss"] for record in training.history]
    assert [record["learning_rate"] for record in training.history] == [
        warmup_cosine(step, 16, 6, 0.05, 0.01) for step in (3, 7, 11, 15)
    ]
    assert training.stopped == "finished"
    assert training.n_steps == 16
    assert all(p.grad is None for p in module.parameters())


BASE = Recipe(6, 6, "sgd", 0.2, 0.01, 0.5, patience=2, tolerance=0.01, warmup_epochs=1, clip_norm=1.0)
CHANGED = {
    "n_epochs": 3,
    "batch_size": 5,
    "optimizer": "lars",
    "learning_rate": 0.1,
    "weight_decay": 0.1,
    "momentum": 0.6,
    "warmup_epochs": 1.5,
    "final_learning_rate": 0.1,
    "clip_norm": 0.3,
    "patience": 1,
    "tolerance": 10.0,
    "keep": "last",
}


@pytest.mark.parametrize("name", CHANGED)
def test_every_field_of_a_recipe_changes_something(name):
    criteria = {0: 3.0, 1: 2.0, 2: 2.5, 3: 1.9, 4: 2.2, 5: 2.2}
    ends = []
    for recipe in (BASE, replace(BASE, **{name: CHANGED[name]})):
        epochs = iter(range(recipe.n_epochs))
        module, training = run(recipe, validation=lambda generator, epochs=epochs: criteria[next(epochs)])
        ends.append((module.weight.tolist(), training.stopped))
    assert ends[0] != ends[1]


def test_result_depends_on_the_seed_and_on_no_global_chance():
    recipe, first = Recipe(3, 6, learning_rate=0.05), line()
    torch.manual_seed(0)
    before = torch.get_rng_state()
    _, training = run(recipe, first)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    second, again = run(recipe)
    assert same_state(first, second)
    assert training == again
    assert not same_state(first, run(recipe, seed=4)[0])


def test_dropout_is_reproducible_and_new_in_every_step():
    masks = []

    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(8))

        def forward(self):
            return nn.functional.dropout(self.weight, 0.5)

    def go():
        module = Dropping()

        def batch_loss(rows, generator):
            out = module()
            masks.append(tuple((out != 0).tolist()))
            return out.square().sum()

        train(module, batch_loss, 4, Recipe(4, 2), seed=0)

    go()
    torch.manual_seed(77)
    go()
    assert masks[:8] == masks[8:]
    assert len(set(masks)) > 4


def test_chance_inside_a_step_and_in_its_views_is_not_the_same():
    module, drawn = line(), []

    def batch_loss(rows, generator):
        drawn.append((torch.rand(1).item(), torch.rand(1, generator=generator).item()))
        return squares(module)(rows, generator)

    train(module, batch_loss, len(X), Recipe(2, 6), seed=0)
    assert len({number for pair in drawn for number in pair}) == 16


def test_frozen_parameters_stay_and_the_rest_is_trained():
    module = line()
    module.bias.requires_grad_(False)
    before = module.bias.clone(), module.weight.clone()
    run(Recipe(2, weight_decay=0.5), module)
    assert torch.equal(module.bias, before[0])
    assert not torch.equal(module.weight, before[1])


def test_training_works_where_gradients_are_switched_off():
    with torch.no_grad():
        module, _ = run(Recipe(2, 6))
    assert same_state(module, run(Recipe(2, 6))[0])


def test_rows_are_whole_numbers_on_the_cpu():
    module, seen = line(), []

    def batch_loss(rows, generator):
        seen.append(rows)
        return squares(module)(rows, generator)

    train(module, batch_loss, len(X), Recipe(1, 6), seed=0)
    assert {rows.dtype for rows in seen} == {torch.int64}
    assert sorted(torch.cat(seen).tolist()) == list(range(len(X)))


# ---- the caller's say --------------------------------------------------------------------------------------


def test_preconditioned_descent_is_its_naive_twin():
    P = torch.diag(torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64))
    recipe = Recipe(3, 6, "sgd", 0.3, momentum=0.0, keep="last", clip_norm=0.4)
    module = line()

    def precondition(rows, generator):
        module.weight.grad.copy_(torch.linalg.solve(P, module.weight.grad, left=False))

    train(module, squares(module), len(X), recipe, seed=3, precondition=precondition)
    twin, step = line(), 0
    for epoch in range(3):
        for rows in epoch_batches(len(X), 4, 3, epoch):
            g = list(torch.autograd.grad(squares(twin)(rows, generator_of(3, "views", step)), twin.parameters()))
            g[0] = g[0] @ torch.linalg.inv(P)
            norm = torch.sqrt(sum(part.square().sum() for part in g))
            for p, part in zip(twin.parameters(), g, strict=True):
                p.data -= warmup_cosine(step, 12, 0, 0.3, 0.0) * part * min(1.0, 0.4 / float(norm))
            step += 1
    for ours, theirs in zip(module.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_preconditioner_sees_the_batch_again():
    """The same rows, the same views and the same dropout; gradients can be taken, though not where it is called."""
    module, seen = line(), {"loss": [], "precondition": []}

    def note(name, rows, generator):
        assert torch.is_grad_enabled()
        drawn = torch.rand(1, generator=generator).item(), torch.rand(1).item()
        seen[name].append((rows.tolist(), *drawn))

    def batch_loss(rows, generator):
        note("loss", rows, generator)
        return squares(module)(rows, generator)

    with torch.no_grad():
        train(
            module, batch_loss, len(X), Recipe(2, 6), seed=0, precondition=lambda *batch: note("precondition", *batch)
        )
    assert seen["loss"] == seen["precondition"]
    assert len(seen["loss"]) == 8


def test_after_step_holds_a_constraint_at_every_step():
    module, lengths = line(), []

    def batch_loss(rows, generator):
        lengths.append(module.weight.norm().item())
        return squares(module)(rows, generator)

    def after_step():
        assert not torch.is_grad_enabled()
        module.weight.div_(torch.linalg.vector_norm(module.weight))

    train(module, batch_loss, len(X), Recipe(2, 6, learning_rate=0.1), seed=0, after_step=after_step)
    assert lengths[1:] == pytest.approx([1.0] * 7)
    assert module.weight.norm().item() == pytest.approx(1.0)


class Noted(nn.Module):
    """A network with batch normalization and dropout."""

    def __init__(self):
        super().__init__()
        with global_chance_from(0, CPU):
            self.layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 2))
        self.double()

    def forward(self, x):
        return self.layers(x)


def test_validation_is_the_criterion_on_the_same_views_and_leaves_modes_alone():
    module, drawn, modes = Noted(), [], []
    module.layers[1].eval()
    expected = [part.training for part in module.modules()]

    def validation(generator):
        assert not torch.is_grad_enabled()
        drawn.append((torch.rand(1, generator=generator).item(), torch.rand(1).item()))
        module.eval()
        return torch.tensor(float(10 - len(drawn)))

    def batch_loss(rows, generator):
        modes.append([part.training for part in module.modules()])
        return squares(module)(rows, generator)

    training = train(module, batch_loss, len(X), Recipe(3, 6), seed=0, validation=validation)
    assert [record["criterion"] for record in training.history] == [9.0, 8.0, 7.0]
    assert all(type(record["criterion"]) is float for record in training.history)
    assert len(drawn) == 3
    assert len(set(drawn)) == 1
    assert all(found == expected for found in modes)
    assert [part.training for part in module.modules()] == expected


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_module_ends_with_the_best_or_the_last_state(keep):
    criteria = iter([3.0, 1.0, 2.0, 1.0])
    states = []
    module = Noted()
    training = train(
        module,
        squares(module),
        len(X),
        Recipe(4, 6, learning_rate=0.05, keep=keep),
        seed=1,
        validation=lambda generator: next(criteria),
        progress=lambda epoch, n_epochs, record: (
            states.append({name: value.clone() for name, value in module.state_dict().items()}) if record else None
        ),
    )
    assert training.best_epoch == 1
    expected = states[1 if keep == "best" else 3]
    assert all(torch.equal(value, expected[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("criteria", "patience", "tolerance", "epochs"),
    [
        ([5, 4, 3, 2, 1, 0], 2, 0.0, 6),
        ([5, 4, 4, 4, 3, 0], 2, 0.0, 4),
        ([5, 6, 4, 5, 3, 4], 2, 0.0, 6),
        ([5, 6, 4, 5, 3, 4], 1, 0.0, 2),
        ([5, 4.6, 4.2, 3.8, 3.4, 3], 2, 0.5, 3),
        ([5, 6, 7, 8, 9, 10], None, 0.0, 6),
    ],
)
def test_patience(criteria, patience, tolerance, epochs):
    left = iter(criteria)
    recipe = Recipe(6, patience=patience, tolerance=tolerance)
    _, training = run(recipe, validation=lambda generator: next(left))
    assert len(training.history) == epochs
    assert training.stopped == ("finished" if epochs == 6 else "patience")
    assert training.n_steps == epochs


def test_progress_hears_of_every_epoch_and_may_end_it():
    heard = []

    def progress(epoch, n_epochs, record):
        heard.append((epoch, n_epochs, record and dict(record)))
        return epoch == 2 and record is not None

    _, training = run(Recipe(5, 6), progress=progress)
    assert training.stopped == "callback"
    assert heard == [(epoch, 5, record) for epoch in range(3) for record in (None, training.history[epoch])]


def test_the_last_epoch_is_the_end_whatever_is_asked():
    _, training = run(Recipe(1, 6, patience=1), progress=lambda *told: True)
    assert training.stopped == "finished"


# ---- what is not finite ------------------------------------------------------------------------------------


def test_what_is_finite():
    finite = [torch.ones(2), torch.full((3,), 3e38), torch.zeros(0), torch.tensor(5), torch.tensor([True]), None]
    assert are_finite(finite)
    for number in (math.nan, math.inf, -math.inf):
        assert not are_finite([*finite, torch.tensor([[0.0, number]])])
    assert not are_finite([torch.tensor([math.inf, -math.inf])])
    assert not are_finite([torch.tensor([3e38, 3e38, math.inf])])


class Scripted(nn.Module):
    """One weight, and a loss that does at each step what a script says."""

    def __init__(self, script, dtype=torch.float32):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, dtype=dtype))
        self.register_buffer("seen", torch.zeros(()))
        self.script, self.states = script, []

    def batch_loss(self, rows, generator):
        step = int(self.seen)
        self.states.append(self.weight.detach().clone())
        self.seen += 1
        return self.script.get(step, lambda w: w.square().sum())(self.weight)

    def go(self, recipe=None, **options):
        recipe = recipe or Recipe(3, 2, "sgd", 0.1, momentum=0.0)
        return train(self, self.batch_loss, 8, recipe, seed=0, **options)


NOT_FINITE = {
    "nan": (lambda w: w.sum() * math.nan, "the loss is nan"),
    "inf": (lambda w: w.sum() / 0, "the loss is inf"),
    "gradient": (lambda w: (w - w.detach()).abs().sqrt().sum(), "the gradient has numbers that are not finite"),
}


@pytest.mark.parametrize("keep", ["best", "last"])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_a_loss_that_is_not_finite_ends_training_in_the_first_epoch(name, keep):
    script, message = NOT_FINITE[name]
    module = Scripted({3: script})
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        training = module.go(Recipe(3, 2, "sgd", 0.1, momentum=0.0, keep=keep))
    assert training == ([], "nan", None, 3)
    assert torch.equal(module.weight, module.states[2])
    assert module.seen == 2
    text = str(caught[0].message)
    assert text.startswith("training stopped: after 3 steps, in epoch 0 at a learning rate of 0.0933, the ")
    assert "the last step where all was finite" in text
    assert "learning_rate" in text
    assert module.weight.grad is None


@pytest.mark.parametrize(("keep", "kept"), [("best", "epoch 1, the best"), ("last", "the last step")])
def test_later_the_best_epoch_is_kept(keep, kept):
    module = Scripted({10: NOT_FINITE["nan"][0]})
    with pytest.warns(ConvergenceWarning, match=rf"10 steps, in epoch 2 at .* of {kept}"):
        training = module.go(Recipe(3, 2, "sgd", 0.1, momentum=0.0, keep=keep))
    assert [record["epoch"] for record in training.history] == [0, 1]
    assert training.best_epoch == 1
    assert torch.equal(module.weight, module.states[8 if keep == "best" else 9])


def test_nothing_learned_is_an_error():
    for script, message in NOT_FINITE.values():
        with pytest.raises(NumericalError, match=f"0 steps, in epoch 0 at .* of 0.1, {message}.* Nothing was learned"):
            Scripted({0: script}).go()


def test_a_step_out_of_the_finite_numbers_is_taken_back():
    """The last step of an epoch is followed by no loss that could show it."""
    flat = dict.fromkeys(range(3), lambda w: 0.0 * w.sum())
    module = Scripted({**flat, 3: lambda w: 3e37 * w.sum()})
    message = "after 4 steps, in epoch 0 at a learning rate of 100, the step led to parameters or buffers"
    with pytest.warns(ConvergenceWarning, match=message):
        training = module.go(Recipe(1, 2, "sgd", 100.0, momentum=0.0, warmup_epochs=1))
    assert training.stopped == "nan"
    assert torch.equal(module.weight, module.states[3])
    assert module.seen == 3


def test_a_buffer_that_turns_nan_is_noticed_and_a_mask_of_infinities_is_none():
    module = Scripted({})
    module.register_buffer("mask", torch.tensor([0.0, -math.inf]))
    assert module.go().stopped == "finished"
    module = Scripted({})
    module.register_buffer("mean", torch.tensor(0.0))
    with pytest.warns(ConvergenceWarning, match="buffers"):
        module.go(after_step=lambda: module.mean.fill_(math.nan if module.seen == 4 else 1.0))
    assert module.mean == 1.0


def test_a_criterion_that_is_not_finite_ends_training():
    left = iter([2.0, 1.0, math.nan])
    module = Scripted({})
    with pytest.warns(ConvergenceWarning, match="the criterion is nan"):
        training = module.go(validation=lambda generator: next(left))
    assert len(training.history) == 2
    assert torch.equal(module.weight, module.states[8])


def test_a_preconditioner_that_fails_is_noticed():
    module = Scripted({})

    def precondition(rows, generator):
        module.weight.grad.div_(float(module.seen < 3))

    with pytest.warns(ConvergenceWarning, match="the preconditioned gradient"):
        module.go(precondition=precondition)
    assert torch.equal(module.weight, module.states[1])


def test_parameters_that_are_not_finite_at_first_are_named():
    module = line()
    module.bias.data[0] = math.nan
    with pytest.raises(ValueError, match=r"not finite before the first step: bias\."):
        run(Recipe(1), module)


@QUICK
@given(st.floats(1e-3, 1e30), st.sampled_from(OPTIMIZERS), st.integers(0, 5))
def test_parameters_are_finite_at_any_rate(rate, optimizer, seed):
    module = nn.Linear(3, 2)
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(torch.tensor(numbers(*p.shape, seed=seed + i)))
    rows = torch.tensor(numbers(6, 3, seed=seed), dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        train(
            module, lambda r, g: module(rows[r]).pow(4).sum(), 6, Recipe(3, 2, optimizer, rate, keep="last"), seed=seed
        )
    assert are_finite(module.parameters())


# ---- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "found"),
    [(1.0, "float"), (None, "NoneType"), (torch.zeros(2, requires_grad=True), "shape"), (torch.zeros(()), "shape")],
)
def test_a_loss_that_is_none_is_named(returned, found):
    with pytest.raises(TypeError, match=f"batch_loss returned {found}.* one number, with a gradient"):
        train(line(), lambda rows, generator: returned, 5, Recipe(1), seed=0)


class Extra(nn.Linear):
    def get_extra_state(self):
        return {"a": 1}

    def set_extra_state(self, state):
        pass


@pytest.mark.parametrize(
    ("module", "options", "error", "message"),
    [
        (nn.ReLU(), {}, ValueError, "module=ReLU has no parameter that requires a gradient"),
        (nn.Linear(4, 2).requires_grad_(False), {}, ValueError, "module=Linear has no parameter"),
        (Extra(4, 2).double(), {}, TypeError, "'_extra_state' of type dict: only tensors"),
        (None, {"seed": -1}, InvalidParameterError, "seed=-1"),
        (None, {"seed": None}, InvalidParameterError, "seed=None"),
        (None, {"data": X}, InvalidParameterError, "data=<class 'torch.Tensor'> is not allowed: .* data_digest"),
        (None, {"min_batch": 24}, ValueError, "there are 23 rows"),
        (None, {"min_batch": 300}, InvalidParameterError, "batch_size=256"),
    ],
)
def test_bad_input_is_named(module, options, error, message):
    with pytest.raises(error, match=message):
        run(Recipe(1), module, **options)


def test_a_recipe_must_be_one():
    with pytest.raises(InvalidParameterError, match="recipe={'n_epochs': 3} is not allowed"):
        train(line(), squares(line()), 23, {"n_epochs": 3}, seed=0)


# ---- scikit-learn's callbacks ------------------------------------------------------------------------------


class Trained(CallbackSupportMixin, BaseEstimator):
    """The least that an estimator needs to support callbacks."""

    def __init__(self, n_epochs=4, fails=False):
        self.n_epochs = n_epochs
        self.fails = fails

    @with_callbacks
    def fit(self, X, y=None):
        module = line()
        told = []
        with fit_progress(self, self.n_epochs, X=X, y=y, fitted=lambda: {"weight_": module.weight.clone()}) as progress:

            def also(epoch, n_epochs, record):
                told.append(epoch)
                return progress(epoch, n_epochs, record)

            if self.fails:
                raise KeyboardInterrupt
            self.training_ = train(module, squares(module), len(X), Recipe(self.n_epochs, 6), seed=0, progress=also)
        self.weight_ = module.weight.detach()
        return self


class Recording:
    """Notes the hooks that are called, and asks for an end at an epoch."""

    def __init__(self, stop_at=None):
        self.heard, self.stop_at = [], stop_at

    def setup(self, estimator, context):
        self.heard.append("setup")

    def on_fit_task_begin(self, estimator, context, *, X=None):
        self.heard.append(("begin", context.task_name, context.task_id, None if X is None else len(X)))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.heard.append(("end", context.task_name, context.task_id, fitted_estimator is not None))
        return context.task_name == "epoch" and context.task_id == self.stop_at

    def teardown(self, estimator, context):
        self.heard.append("teardown")


def test_callbacks_hear_of_every_epoch():
    callback = Recording()
    Trained(2).set_callbacks(callback).fit(X)
    assert callback.heard == [
        "setup",
        ("begin", "fit", 0, 23),
        ("begin", "epoch", 0, 23),
        ("end", "epoch", 0, True),
        ("begin", "epoch", 1, 23),
        ("end", "epoch", 1, True),
        ("end", "fit", 0, True),
        "teardown",
    ]


def test_a_callback_can_end_the_training():
    model = Trained(6).set_callbacks(Recording(stop_at=2)).fit(X)
    assert model.training_.stopped == "callback"
    assert len(model.training_.history) == 3


def test_callbacks_are_taken_down_when_a_fit_fails():
    callback = Recording()
    with pytest.raises(KeyboardInterrupt):
        Trained(fails=True).set_callbacks(callback).fit(X)
    assert callback.heard == ["setup", ("begin", "fit", 0, 23), "teardown"]


def test_tasks_have_the_numbers_of_the_epochs_after_a_resume():
    callback = Recording()
    model = Trained(5).set_callbacks(callback)
    with fit_progress(model, 5) as progress:
        for epoch in (3, 4):
            progress(epoch, 5, None)
            assert progress(epoch, 5, {"epoch": epoch}) is False
    epochs = [heard[2] for heard in callback.heard if heard[:2] == ("end", "epoch")]
    assert epochs == [3, 4]


def test_a_fit_of_two_trainings_has_two_tasks():
    callback = Recording()
    model = Trained().set_callbacks(callback)
    whole = model._init_callback_context(max_subtasks=2)
    for stage in ("start", "clustering"):
        with fit_progress(model, 1, within=whole, task_name=stage) as progress:
            progress(0, 1, None)
            progress(0, 1, {"epoch": 0})
    ended = [heard[1:3] for heard in callback.heard if heard[0] == "end"]
    assert ended == [("epoch", 0), ("start", 0), ("epoch", 0), ("clustering", 1)]


def test_scikit_learns_own_callbacks(capsys):
    pytest.importorskip("rich")
    monitor = ScoringMonitor(scoring={"sum": lambda model, X, y: model.weight_.sum().item()})
    model = Trained(3).set_callbacks(ProgressBar(), monitor).fit(X, Y)
    assert "Trained - fit" in capsys.readouterr().out
    fit, *epochs = [row["sum"] for row in monitor.get_logs(select="most_recent").data]
    assert fit == model.weight_.sum().item()
    assert len(set(epochs)) == 3


def test_without_callbacks_nothing_is_said(capsys):
    Trained(2).fit(X)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("n_rows", "n_epochs"), [(100, 50), (256, 50), (257, 25), (10_000, 2)])
def test_a_recipe_lasts_as_many_steps_as_it_is_asked_to(n_rows, n_epochs):
    recipe = Recipe(n_epochs=1, batch_size=256, learning_rate=0.5)
    assert recipe.lasting(50, n_rows) == Recipe(n_epochs=n_epochs, batch_size=256, learning_rate=0.5)
    # Batches of 3 rows at least: 100 rows make 33 of them and not 50.
    assert Recipe(n_epochs=1, batch_size=3).lasting(66, 100, min_batch=3).n_epochs == 2


# ---- settings -------------------------------------------------------------------------------------------------------


class Jitter:
    """A callable whose text has its address."""

    def __call__(self, batch, generator):
        return batch


def scaled(batch, generator, by=1.0):
    return by * batch


def test_values_are_known_again_by_what_they_are():
    assert text_in_any_process("noise") == "noise"
    assert text_in_any_process(scaled) == "scaled"
    assert text_in_any_process(partial(scaled, by=2.0)) == "scaled(by=2.0)"
    assert text_in_any_process(partial(scaled, 1, by=Jitter())) == "scaled(1, by=Jitter)"
    assert text_in_any_process(Jitter()) == "Jitter"
    assert "ReLU" in text_in_any_process(nn.Sequential(nn.ReLU()))


def test_lambdas_are_known_again_by_what_they_do():
    same = [text_in_any_process(make) for make in (lambda x: x + 1, lambda x: x + 1)]
    assert same[0] == same[1]
    others = {
        text_in_any_process(make) for make in (lambda x: x + 2, lambda x: x - 1, lambda x: x.sin(), lambda x: x.cos())
    }
    assert len(others | set(same)) == 5
    assert not any(" at 0x" in text for text in others)
