"""The cases of gradient steps: every loss on MNIST, starts, preconditioners, and networks with the same losses."""

from collections.abc import Iterator
from typing import Any

from experiments import Case

from .cases import FULL, FULL_SIZES, QUICK, QUICK_SIZES, Data, Sizes, embedding_case, on, settings_of
from .paper import LOSSES, TABLE_1_LOSSES, TABLE_4_GAINS, TRAINED
from .runs import run

# All losses of Table 5: those without an exact optimum, and the three with one.
BY_STEPS = (*TRAINED, *LOSSES)
UNTRAINED = "principal components, no steps"
# Views are drawn once, so that an epoch costs its steps alone. There is no guard, which would keep the start if steps
# do harm and so hide their effect.
STEPS: dict[str, Any] = {"epochs": 20, "batch_size": 256, "learning_rate": 1e-3, "redraw": False, "guard": False}
NO_STEPS = {**STEPS, "epochs": 1, "learning_rate": 1e-12}
GAUSS_NEWTON = {**STEPS, "epochs": 5, "batch_size": 1024, "optimizer": "sgd", "learning_rate": 0.5}

# The three preconditioners of Table 2. Gauss-Newton has its own settings of the steps.
PRECONDITIONED_LOSSES = ("barlow_twins", "simclr")
PRECONDITIONERS = ("identity", "kernel", "gauss_newton")

# Table 1: kernels and networks get new views in every epoch and make the same number of steps.
BESIDE_NETWORKS = {**STEPS, "epochs": 5, "redraw": True}
RECIPE_OF_NETWORKS = {"n_epochs": 5, "batch_size": 256, "learning_rate": 1e-3, "warmup_epochs": 1.0}
GAUSSIAN = "Gaussian kernel"
HIDDEN = [1000, 1000]

# Starts and preconditioners are compared on draws of the sets with fewer landmarks: whole sets with 1000 landmarks
# would take five hours of one core.
STARTED = "mnist 5 000"
DRAWS = {
    STARTED: Data("mnist", 5000, 5000, (28, 28)),
    "adult 5 000": Data("adult", 5000, 5000),
    "covtype 5 000": Data("covtype", 5000, 5000),
    "cifar10 3 000": Data("cifar10", 3000, 5000, (32, 32, 3)),
}
DRAW_SIZES = Sizes(300, 50)
BESIDE = ("adult", "cifar10")


def step_cases(quick: bool) -> list[Case]:
    """Return all cases; the quick ones use scikit-learn's digits, with two losses for networks."""
    if quick:
        digits, once = QUICK["digits"], QUICK["digits"]._replace(seeds=1)
        return [
            *start_cases("digits", digits, QUICK_SIZES),
            *preconditioner_cases("digits", once, QUICK_SIZES),
            *network_cases("digits", once, QUICK_SIZES, PRECONDITIONED_LOSSES),
        ]
    made = list(start_cases(STARTED, DRAWS[STARTED], DRAW_SIZES))
    for label in list(DRAWS)[1:]:
        made += preconditioner_cases(label, DRAWS[label], DRAW_SIZES)
    for label in BESIDE:
        # One seed, as the paper's tables seem to have.
        made += network_cases(label, FULL[label]._replace(seeds=1), FULL_SIZES, TABLE_1_LOSSES)
    # The network with the largest lead over a kernel, for a comparison with the default on all of MNIST.
    *_, network = network_cases("mnist", FULL["mnist"]._replace(seeds=1), FULL_SIZES, ("simclr",))
    return [*made, network]


def start_cases(label: str, data: Data, sizes: Sizes) -> Iterator[Case]:
    """Yield every loss from principal components, the losses of Table 4 also from a random start, and no steps."""
    yield embedding_case(on(label, UNTRAINED), data, sizes, loss="simclr", steps=NO_STEPS)
    for loss in BY_STEPS:
        for start in ("principal", "random") if loss in TABLE_4_GAINS else ("principal",):
            name = on(label, by_steps(loss, start))
            yield embedding_case(name, data, sizes, loss=loss, **steps_of(loss, start=start))


def preconditioner_cases(label: str, data: Data, sizes: Sizes) -> Iterator[Case]:
    """Yield the cases of Table 2 and Figure 1."""
    for loss in PRECONDITIONED_LOSSES:
        for name in PRECONDITIONERS:
            steps = {**(GAUSS_NEWTON if name == "gauss_newton" else STEPS), "preconditioner": name}
            yield embedding_case(on(label, preconditioned(loss, name)), data, sizes, loss=loss, steps=steps)


def network_cases(label: str, data: Data, sizes: Sizes, losses: tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases of Table 1: a kernel and a network, an MLP for gray images, otherwise a ResMLP of equal cost."""
    network: dict[str, Any] = {"n_components": sizes.h, "recipe": RECIPE_OF_NETWORKS}
    if data.image_shape is not None:
        network["image_shape"] = data.image_shape
    if network_of(data) == "MLP":
        network |= {"architecture": "mlp", "widths": HIDDEN}
    else:
        network |= {"architecture": "resmlp", "n_landmarks": sizes.m}
    for loss in losses:
        case = on(label, beside_networks(loss, GAUSSIAN))
        yield embedding_case(case, data, sizes, loss=loss, kernel="gaussian", steps=BESIDE_NETWORKS)
        case = on(label, beside_networks(loss, network_of(data)))
        yield Case(case, run, settings_of(data, "network", {**network, "loss": loss}), data.seeds)


def steps_of(loss: str, **changes: Any) -> dict[str, Any]:
    """Return the options for the steps of a loss; none for the kernel autoencoder, which has its own solver."""
    return {} if loss == "kernel_autoencoder" else {"steps": {**STEPS, **changes}}


def network_of(data: Data) -> str:
    return "MLP" if data.image_shape is not None and len(data.image_shape) == 2 else "ResMLP"


def by_steps(loss: str, start: str) -> str:
    return f"{loss} by steps from {start}"


def preconditioned(loss: str, name: str) -> str:
    return f"{loss} under preconditioner {name}"


def beside_networks(loss: str, name: str) -> str:
    return f"{loss} beside networks, {name}"
