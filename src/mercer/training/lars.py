"""LARS: stochastic gradient descent whose steps are in proportion to the size of each weight matrix."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class LARS(torch.optim.Optimizer):
    """Layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017), for large batches.

    For a weight w with gradient g, u = g + weight_decay w, and the momentum is that of `trust` |w| / |u| u: with a
    learning rate of 1, a step changes each weight by a thousandth of its length, however long its gradient is. Where
    one of the lengths is 0, the factor is 1. Biases and the scales of normalizations, which have one dimension or none,
    are neither scaled nor decayed, as in SimCLR and Barlow Twins.

    The paper divides by |g| + weight_decay |w| and has the learning rate inside the momentum; this is the form that
    self-supervised learning uses. They differ by the angle between g and w, and while the rate changes.

    Parameters
    ----------
    params : iterable of tensors
    lr : float
    momentum : float, default=0.9
    weight_decay : float, default=0.0
    trust : float, default=0.001
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Make one step on every parameter that has a gradient."""
        for group in self.param_groups:
            for w in group["params"]:
                if w.grad is not None:
                    self._step(w, group)

    def _step(self, w: Tensor, group: dict[str, Any]) -> None:
        u = w.grad.detach().clone()  # type: ignore[union-attr]
        if w.ndim > 1:
            u.add_(w, alpha=group["weight_decay"])
            length, gradient = torch.linalg.vector_norm(w), torch.linalg.vector_norm(u)
            # Chosen on the device of w: no step waits for a number to come back.
            u.mul_(torch.where((length > 0) & (gradient > 0), group["trust"] * length / gradient, 1.0))
        momentum = self.state[w].get("momentum_buffer")
        if momentum is None:
            momentum = self.state[w]["momentum_buffer"] = torch.zeros_like(w)
        momentum.mul_(group["momentum"]).add_(u)
        w.add_(momentum, alpha=-group["lr"])
