"""LARS: stochastic gradient descent with steps in proportion to the norm of each weight matrix."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class LARS(torch.optim.Optimizer):
    """Layer-wise adaptive rate scaling (You, Gitman and Ginsburg 2017), for large batches.

    For a weight matrix w with gradient g, let u = g + weight_decay w. The momentum accumulates `trust` |w| / |u| u.
    With a learning rate of 1, a step therefore changes each weight matrix by a thousandth of its norm, for a gradient
    of any size. If one of the norms is 0, the factor of u is 1. Biases and the scales of normalizations, which have at
    most one dimension, are neither scaled nor decayed, as in SimCLR and Barlow Twins.

    The paper divides by |g| + weight_decay |w| and has the learning rate inside the momentum. This is the form that
    self-supervised learning uses. The two differ if g and w are not parallel, and while the learning rate changes.

    Parameters
    ----------
    params : iterable of tensors
    lr : float
    momentum : float, default=0.9
    weight_decay : float, default=0.0
    trust : float, default=0.001
        The norm of a step, as a share of the norm of the weight, for a learning rate of 1 without momentum.
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
            # torch.where chooses on the device of w, so that no step waits for a number to be copied to the CPU.
            u.mul_(torch.where((length > 0) & (gradient > 0), group["trust"] * length / gradient, 1.0))
        momentum = self.state[w].get("momentum_buffer")
        if momentum is None:
            momentum = self.state[w]["momentum_buffer"] = torch.zeros_like(w)
        momentum.mul_(group["momentum"]).add_(u)
        w.add_(momentum, alpha=-group["lr"])
