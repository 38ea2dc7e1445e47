"""The function `train`, which trains a module with gradients."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.checkpoint import Checkpoint, as_json
from mercer.training.progress import Progress
from mercer.training.recipe import Recipe
from mercer.training.run import Callables, Run
from mercer.training.states import describe
from mercer.training.stopping import best_epoch


class Training(NamedTuple):
    """The course of a training.

    Attributes
    ----------
    history : list of dict
        For each epoch: epoch, loss (the mean over its rows), criterion, learning_rate (of its last step).
    stopped : {"finished", "patience", "callback", "nan"}
        Why the training ended.
    best_epoch : int or None
        The epoch with the smallest criterion; None if no epoch was completed.
    n_steps : int
        The number of steps.
    """

    history: list[dict[str, Any]]
    stopped: str
    best_epoch: int | None
    n_steps: int


def train(
    module: nn.Module,
    batch_loss: Callable[[Tensor, torch.Generator], Tensor],
    n_rows: int,
    recipe: Recipe,
    *,
    seed: int,
    min_batch: int = 1,
    precondition: Callable[[Tensor, torch.Generator], None] | None = None,
    after_step: Callable[[], None] | None = None,
    validation: Callable[[torch.Generator], float] | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 60.0,
    settings: Mapping[str, Any] | None = None,
    data: str = "",
) -> Training:
    """Train a module in place, with gradients of a loss of batches of rows.

    A training can be killed at any moment and started again with the same arguments and the same `checkpoint`. On the
    same machine with the same number of threads, its result is then identical to that of an uninterrupted training: the
    rows and random numbers of a step depend on `seed` and the number of the step alone, and everything else that
    changes is in the module and the optimizer. What a callable changes from step to step must therefore be a parameter
    or a persistent buffer of the module. (On a GPU, torch itself must be set to be deterministic.)

    Parameters
    ----------
    module : nn.Module
        It stays on its device. Parameters that require no gradient are not changed. The caller sets its training or
        evaluation mode; if `validation` changes the mode, it is restored.
    batch_loss : callable
        (rows, generator) -> the loss of a batch, a tensor of one number. `rows` holds whole numbers below `n_rows`, on
        the CPU. All random numbers must come from the generator, which is on the CPU too. Layers such as dropout, which
        use torch's global generators, are reproducible too: these are seeded inside the call and restored after it.
    n_rows : int
    recipe : Recipe
    seed : int
    min_batch : int, default=1
        The number of rows that the loss needs at least.
    precondition : callable, optional
        (rows, generator) -> None, changes the gradients of the parameters in place, g -> P^-1 g, before they are
        clipped and used. Its generator gives the same random numbers as that of `batch_loss`, so that it can draw the
        same views again.
    after_step : callable, optional
        () -> None, called after every step without gradients, to project parameters onto a constraint or to update
        averages.
    validation : callable, optional
        (generator) -> the criterion of an epoch, smaller is better, computed without gradients. The generator is the
        same for all epochs, so that they are compared on the same views. Without it the criterion is the epoch's loss.
    progress : callable, optional
        (epoch, n_epochs, record), called with None at the start of an epoch and with its entry of the history at its
        end. The training stops if it then returns True. See `fit_progress`.
    checkpoint : str or path, optional
        A file that is written during training. If it exists, the training continues from it. At the end it holds the
        result, so that a finished training is not repeated.
    checkpoint_seconds : float, default=60.0
        Seconds of training between two checkpoints.
    settings : dict, optional
        Other values, as JSON, on which the result depends: a checkpoint with other settings is refused.
    data : str, default=""
        The same for the data: their `data_digest`.

    Returns
    -------
    Training

    Notes
    -----
    A loss, gradient, parameter or criterion that is not finite ends the training with a ConvergenceWarning. The module
    then has the state of the best epoch, or (with keep="last", or in the first epoch) the last state at which loss and
    gradient were finite. If they are not at the first step, there is no such state, and a NumericalError is raised.

    Each step copies the state of the module, so that memory is three times that of the state, plus the optimizer's.

    Examples
    --------
    >>> import torch
    >>> from mercer.training import Recipe, train
    >>> X = torch.linspace(-1, 1, 20)[:, None]
    >>> line = torch.nn.Linear(1, 1)
    >>> def batch_loss(rows, generator):
    ...     return (line(X[rows]) - 3 * X[rows]).square().mean()
    >>> train(line, batch_loss, len(X), Recipe(n_epochs=200, batch_size=5, learning_rate=0.1), seed=0).stopped
    'finished'
    >>> round(line.weight.item(), 3)
    3.0
    """
    if not isinstance(recipe, Recipe):
        raise invalid_parameter("recipe", recipe, "a Recipe")
    seed = check_count("seed", seed, at_least=0)
    if not isinstance(data, str):
        raise invalid_parameter("data", type(data), "a str, the result of data_digest")
    callables = Callables(batch_loss, precondition, after_step, validation, progress)
    run = Run(module, callables, n_rows, recipe, seed, min_batch)
    if checkpoint is not None:
        about = {
            "module": describe(module),
            "recipe": asdict(recipe),
            "settings": as_json("settings", {} if settings is None else settings),
            "data": data,
            "seed": seed,
            "n_rows": int(n_rows),
            "min_batch": int(min_batch),
        }
        run.checkpoint = Checkpoint(checkpoint, about, checkpoint_seconds)
    run.to_the_end()
    return Training(run.history, run.stopped, best_epoch(run.criteria), run.step)
