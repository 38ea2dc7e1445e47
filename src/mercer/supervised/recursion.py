"""The loop of recursive feature machines: fit, take the gradients' outer product as the metric, fit again."""

from collections.abc import Iterator, Sequence

from torch import Tensor

from mercer.agop import agop
from mercer.blocks import WORKING_MEMORY
from mercer.checks import check_choice, check_count
from mercer.kernels import Kernel
from mercer.mahalanobis import Mahalanobis
from mercer.selection import Candidate, best, evaluate

METRICS = ("identity", "diagonal", "full")


def recursive_features(
    kernel: Kernel,
    X: Tensor,
    y: Tensor,
    ridges: Sequence[float],
    *,
    metric: str = "full",
    n_iter: int = 5,
    criterion: str = "squared_error",
    weights: Tensor | None = None,
    working_memory: float = WORKING_MEMORY,
) -> Iterator[Candidate]:
    """Yield every iterate of a recursive feature machine, t = 0 first, each with its best ridge by leave-one-out.

    At step t, f is the kernel ridge fit under the metric M_t, and M_{t+1} = (1/n) sum_i grad f(x_i) grad f(x_i)^T,
    scaled to trace d (rfm-and-ard, section 2.3). Iterating can collapse M onto one direction, so each iterate is a
    candidate: `selection.best` over them needs no validation set.

    Parameters
    ----------
    kernel : Kernel
        With a number for the bandwidth; its metric is M_0.
    X : tensor of shape (n, d)
    y : tensor of shape (n,) or (n, c)
    ridges : sequence of float
    metric : {"identity", "diagonal", "full"}, default="full"
        What M may be; "identity" stays at t = 0.
    n_iter : int, default=5
    criterion : {"squared_error", "log_density", "accuracy"}, default="squared_error"
    weights : tensor of shape (n,), optional
    working_memory : float, default=64.0

    Notes
    -----
    An iterate costs O(n^3 + n^2 d), most of it the factorisation.
    """
    check_choice("metric", metric, METRICS)
    n_iter = 0 if metric == "identity" else check_count("n_iter", n_iter, at_least=0)
    for t in range(n_iter + 1):
        iterate = best(evaluate(kernel, ridges, X, y, criterion=criterion, weights=weights, about={"iterate": t}))
        yield iterate
        if t < n_iter:
            kernel = kernel.with_metric(next_metric(kernel, X, iterate.fitted().alpha, metric, weights, working_memory))


def next_metric(
    kernel: Kernel, X: Tensor, alpha: Tensor, metric: str, weights: Tensor | None, working_memory: float
) -> Mahalanobis:
    """Return the average gradient outer product of the fit, or its diagonal, as a metric of trace d."""
    diagonal = metric == "diagonal"
    M = agop(kernel, X, X, alpha, diagonal=diagonal, weights=weights, working_memory=working_memory).cpu()
    learned = Mahalanobis.from_weights(M) if diagonal else Mahalanobis.from_matrix(M)
    return learned.normalized()
