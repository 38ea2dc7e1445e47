"""An embedding under training: the map, its objective, and what a step and an epoch ask of them."""

from typing import Any

import torch
from torch import Tensor, nn

from mercer.embedding.coordinates import BatchFeatures, Coordinates
from mercer.embedding.preconditioners import Direction
from mercer.embedding.stiefel import retracted, tangent
from mercer.losses import Objective
from mercer.training.batches import count_batches


class LinearMap(nn.Module):
    """f = W^T z + γ; without a bias γ is 0 and not trained."""

    bias: Tensor | None

    def __init__(self, W: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.W = nn.Parameter(W.clone())
        self.register_parameter("bias", None if bias is None else nn.Parameter(bias.clone()))

    def forward(self, z: Tensor) -> Tensor:
        """Return the embeddings of features, of shape (n, h)."""
        return z @ self.W if self.bias is None else z @ self.W + self.bias


class TrainedMap(nn.Module):
    """The map and its objective, with what `mercer.training.train` calls: all that a checkpoint holds is in here.

    Parameters
    ----------
    model : LinearMap
    objective : Objective
    features : callable
        The features of the views of a batch.
    space : Coordinates
    ridge : float
    direction : callable or None
        What a preconditioner makes of the gradient by W.
    is_constrained : bool
        Whether W^T W = I is kept: in white coordinates, by steps on the Stiefel manifold.
    held_out : list of tensors of shape (n', r)
        The features of the views of rows that are left out; none if nothing is.
    total_steps, batch_size : int
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
        # Where the last step began: a step is known by both of its ends, also after a training was killed.
        self.register_buffer("point", model.W.detach().clone() if is_constrained else None)

    def batch_loss(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """Return the loss of a batch with its penalty."""
        return self.objective(self.model, self.features(rows, generator), generator) + self._penalty()

    def precondition(self, rows: Tensor, generator: torch.Generator) -> None:
        """Make of the gradient by W the step that the preconditioner makes of it."""
        W = self.model.W
        # A loss that does not depend on W leaves no gradient, and nothing to make a step of.
        if self.direction is not None and W.grad is not None:
            W.grad = self.direction(W, self.model.bias, self.features(rows, generator), W.grad)

    def after_step(self) -> None:
        """Return to the constraint, if there is one, and let the objective follow."""
        if self.point is not None:
            step = tangent(self.point, self.model.W.detach() - self.point)
            self.model.W.copy_(retracted(self.point + step))
            self.point.copy_(self.model.W)
        self.objective.after_step(self.model, int(self.steps), self.total_steps)
        self.steps += 1

    def validation(self, generator: torch.Generator) -> float:
        """Return the loss on the rows left out, with the penalty; batches are as large as those of the steps."""
        self.objective.eval()
        n = len(self.held_out[0])
        n_batches = count_batches(n, self.batch_size, self.objective.min_batch)
        parts = [torch.tensor_split(Z, n_batches) for Z in self.held_out]
        losses = [
            float(self.objective(self.model, batch, generator)) * len(batch[0]) for batch in zip(*parts, strict=True)
        ]
        return sum(losses) / n + float(self._penalty())

    def _penalty(self) -> Any:
        return self.ridge * self.space.squared_norm(self.model.W) if self.ridge > 0 else 0.0
