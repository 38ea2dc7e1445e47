"""Tangent kernels of a residual perceptron (2000 rows, 500 landmarks) and of ResNet-18 (128 images, 128): torch.func.

The peer is the obvious code: `vmap(grad)` of `torch.func`, with the gradients of the landmarks kept in memory, and
those of the rows computed and contracted in blocks of 16. All contestants have one thread. The peer takes many minutes
and 10 GB, so `--repeats 1` is enough.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import Benchmark, RatioClaim
from mercer.kernels import NeuralTangent
from mercer.linalg.threads import one_thread
from mercer.networks import ResMLP, ResNet

ROWS_A_BLOCK = 16
IMAGE = (32, 32, 3)
MOST_ERROR = 0.02


class Task(NamedTuple):
    """A network, rows and landmarks."""

    network: nn.Module
    X: Tensor
    Z: Tensor
    image_shape: tuple[int, ...] | None


def setup(quick: bool) -> dict[str, Task]:
    generator = torch.Generator().manual_seed(0)
    n, m, width = (64, 16, 256) if quick else (2000, 500, 1032)
    rows = torch.randn((n + m, 54), generator=generator)
    n_images, n_landmarks = (6, 4) if quick else (128, 128)
    images = torch.rand((n_images + n_landmarks, 32 * 32 * 3), generator=generator) - 0.5
    return {
        "ResMLP": Task(ResMLP(54, width).eval(), rows[m:], rows[:m], None),
        "ResNet-18": Task(ResNet(18, 3, 1).eval(), images[n_landmarks:], images[:n_landmarks], IMAGE),
    }


def mercer(task: Task, n_projections: int | None = None) -> np.ndarray:
    kernel = NeuralTangent(task.network, image_shape=task.image_shape, n_projections=n_projections)
    with one_thread():
        return kernel.matrix(task.X, task.Z).numpy()


def torch_func(task: Task) -> np.ndarray:
    """Compute the kernel from gradients of each row by all weights, in blocks of rows."""
    from torch.func import functional_call, grad, vmap

    weights = {name: weight.detach() for name, weight in task.network.named_parameters()}
    buffers = dict(task.network.named_buffers())

    def output(weights: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(task.network, {**weights, **buffers}, (x[None],)).sum()

    gradients = vmap(grad(output), (None, 0))

    def of_rows(rows: Tensor) -> dict[str, Tensor]:
        x = rows
        if task.image_shape is not None:
            x = rows.reshape(len(rows), *task.image_shape).movedim(3, 1).contiguous()
        return {name: g.flatten(1) for name, g in gradients(weights, x).items()}

    with one_thread():
        kept = {name: weight.new_empty((len(task.Z), weight.numel())) for name, weight in weights.items()}
        for start in range(0, len(task.Z), ROWS_A_BLOCK):
            for name, g in of_rows(task.Z[start : start + ROWS_A_BLOCK]).items():
                kept[name][start : start + ROWS_A_BLOCK] = g
        K = torch.zeros((len(task.X), len(task.Z)))
        for start in range(0, len(task.X), ROWS_A_BLOCK):
            for name, g in of_rows(task.X[start : start + ROWS_A_BLOCK]).items():
                K[start : start + ROWS_A_BLOCK].addmm_(g, kept[name].T)
    return K.numpy()


def check(outputs: Mapping[str, Any]) -> None:
    for name in ("ResMLP", "ResNet-18"):
        if f"{name}: torch.func" in outputs:
            expected = outputs[f"{name}: torch.func"]
            # The peer sums over millions of weights in float32, which has an error of 1e-3.
            np.testing.assert_allclose(outputs[f"{name}: Mercer"], expected, rtol=0, atol=2e-3 * np.abs(expected).max())
    exact, projected = outputs["ResNet-18: Mercer"], outputs["ResNet-18: Mercer, projected"]
    error = np.linalg.norm(projected - exact) / np.linalg.norm(exact)
    print(f"relative error of the projected kernel: {error:.4f} (at most {MOST_ERROR})")
    assert error <= MOST_ERROR


BENCHMARK = Benchmark(
    "tangent_kernel",
    setup,
    {
        "ResMLP: torch.func": lambda tasks: torch_func(tasks["ResMLP"]),
        "ResMLP: Mercer": lambda tasks: mercer(tasks["ResMLP"]),
        "ResNet-18: torch.func": lambda tasks: torch_func(tasks["ResNet-18"]),
        "ResNet-18: Mercer": lambda tasks: mercer(tasks["ResNet-18"]),
        "ResNet-18: Mercer, projected": lambda tasks: mercer(tasks["ResNet-18"], n_projections=64),
    },
    check=check,
    claims=[
        RatioClaim("ResMLP: at least 80 x faster", "ResMLP: torch.func", "ResMLP: Mercer", 80.0),
        RatioClaim("ResMLP: a twentieth of the memory", "ResMLP: torch.func", "ResMLP: Mercer", 20.0, of="memory"),
        RatioClaim("ResNet-18: at least 1.5 x faster", "ResNet-18: torch.func", "ResNet-18: Mercer", 1.5),
        RatioClaim("ResNet-18: a tenth of the memory", "ResNet-18: torch.func", "ResNet-18: Mercer", 10.0, of="memory"),
        RatioClaim(
            "ResNet-18, projected: at least 5 x faster, within 2 % of the kernel",
            "ResNet-18: torch.func",
            "ResNet-18: Mercer, projected",
            5.0,
        ),
    ],
)
