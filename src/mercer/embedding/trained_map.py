"""The module that is trained by gradient steps: the linear map, its objective, and the hooks of the training loop."""

from typing import Any

import torch
from torch import Tensor, nn

from mercer.embedding.coordinates import BatchFeatures, Coordinates
from mercer.embedding.preconditioners import Direction
from mercer.embedding.stiefel import retracted, tangent
from mercer.embedding.trained_losses import mean_over_batches
from mercer.losses import Objective
from mercer.training.batches import count_batches


class LinearMap(nn.Module):
    """The map f = W^T z + γ. Without a bias, γ is 0 and is not trained."""

    bias: Tensor | None

    def __init__(self, W: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.W = nn.Parameter(W.clone())
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.clone()))

    def forward(self, z: Tensor) -> Tensor:
        """Return the embeddings of features, of shape (n, h)."""
        return z @ self.W if self.bias is None else z @ self.W + self.bias


class TrainedMap(nn.Module):
    """The map and its objective, with the functions that `mercer.training.train` calls; a checkpoint holds its state.

    Parameters
    ----------
    model : LinearMap
    objective : Objective
    features : callable
        (row numbers, generator) -> the features of the views of a batch.
    space : Coordinates
        The coordinates of the features.
    ridge : float
        The weight of the penalty, the squared norm of the map in the kernel's space.
    direction : callable or None
        The function of a preconditioner that replaces the gradient by W; None leaves the gradient as it is.
    is_constrained : bool
        Whether W^T W = I is maintained, by steps on the Stiefel manifold. This requires white coordinates.
    held_out : list of tensors of shape (n', r)
        The features of each view of the left-out rows; empty if no rows are left out.
    total_steps : int
        The number of steps of the whole training.
    batch_size : int
    """

    steps: Tensor
    point: Tensor | None

    def __init__(
        self,
        model: LinearMap,
        objective: Objective,
        features: BatchFeatures,
        space: Coordinates,
        *,
        ridge: float,
        direction: Direction | None,
        is_constrained: bool,
        held_out: list[Tensor],
        total_steps: int,
        batch_size: int,
    ) -> None:
        super().__init__()
        self.model, self.objective = model, objective
        self.features, self.space, self.ridge, self.direction = features, space, ridge, direction
        self.held_out, self.total_steps, self.batch_size = held_out, total_steps, batch_size
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        # W before the last step. It is in the checkpoint, so that a resumed training can project its next step.
        self.register_buffer("point", model.W.detach().clone() if is_constrained else None)

    def batch_loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of a batch with its penalty."""
        return self.objective(self.model, self.features(rows, generator), generator) + self._penalty()

    def precondition(self, rows: Tensor, generator: torch.Generator) -> None:
        """Replace the gradient by W with the preconditioned one."""
        W = self.model.W
        # If the loss does not depend on W, there is no gradient.
        if self.direction is not None and W.grad is not None:
            W.grad = self.direction(W, self.model.bias, self.features(rows, generator), W.grad)

    def after_step(self) -> None:
        """Project W back onto the constraint, if there is one, and update the objective."""
        if self.point is not None:
            step = tangent(self.point, self.model.W.detach() - self.point)
            self.model.W.copy_(retracted(self.point + step))
            self.point.copy_(self.model.W)
        self.objective.after_step(self.model, int(self.steps), self.total_steps)
        self.steps += 1

    def validation(self, generator: torch.Generator) -> float:
        """Return the loss on the left-out rows with the penalty, in batches of the size that is used for the steps."""
        self.objective.eval()
        n_batches = count_batches(len(self.held_out[0]), self.batch_size, self.objective.min_batch)
        loss = mean_over_batches(lambda batch: self.objective(self.model, batch, generator), self.held_out, n_batches)
        return loss + float(self._penalty())

    def _penalty(self) -> Any:
        return self.ridge * self.space.squared_norm(self.model.W) if self.ridge > 0 else 0.0
