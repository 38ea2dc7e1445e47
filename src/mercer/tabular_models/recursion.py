"""The loop of recursive feature machines: fit, take the gradients' outer product as the metric, fit again."""

from collections.abc import Callable, Iterator

from torch import Tensor

from mercer.agop import next_metric
from mercer.blocks import WORKING_MEMORY
from mercer.checks import check_choice, check_count
from mercer.kernels import Kernel
from mercer.selection import Candidate

METRICS = ("identity", "diagonal", "full")


def recursive_features(
    kernel: Kernel,
    X: Tensor,
    fit: Callable[[Kernel], Candidate],
    *,
    metric: str = "full",
    n_iter: int = 5,
    weights: Tensor | None = None,
    working_memory: float = WORKING_MEMORY,
) -> Iterator[Candidate]:
    """Yield every iterate of a recursive feature machine, t = 0 first.

    At step t, f is the kernel ridge fit under the metric M_t, and M_{t+1} = (1/n) sum_i grad f(x_i) grad f(x_i)^T,
    scaled to trace d (rfm-and-ard, section 2.3). Iterating can collapse M onto one direction, so every iterate
    is yielded: `selection.best` over them needs no validation set.

    Parameters
    ----------
    kernel : Kernel
        Its metric is M_0.
    X : tensor of shape (n, d)
        The centers of every fit, and the rows over which gradients are averaged.
    fit : callable
        Kernel -> the evaluated `Candidate`: which ridge, and which bandwidth, is its own affair.
    metric : {"identity", "diagonal", "full"}, default="full"
        What M may be; "identity" stays at t = 0.
    n_iter : int, default=5
    weights : tensor of shape (n,), optional
    working_memory : float, default=64.0

    Notes
    -----
    An iterate costs a fit and O(n^2 d).
    """
    check_choice("metric", metric, METRICS)
    n_iter = 0 if metric == "identity" else check_count("n_iter", n_iter, at_least=0)
    for t in range(n_iter + 1):
        iterate = fit(kernel)
        iterate.about["iterate"] = t
        yield iterate
        if t < n_iter:
            fitted = iterate.kernel_used()
            learned = next_metric(fitted, X, X, iterate.fitted().alpha, metric, weights, working_memory)
            kernel = fitted.with_metric(learned)
