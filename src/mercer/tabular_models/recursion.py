"""The recursion of recursive feature machines: fit, use the average gradient outer product as the metric, fit again."""

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
    """Yield every iterate of a recursive feature machine, starting with t = 0.

    At step t, f is the kernel ridge fit under the metric M_t, and M_{t+1} = (1/n) sum_i grad f(x_i) grad f(x_i)^T,
    scaled to trace d (rfm-and-ard, section 2.3). The recursion can collapse M onto one direction, so every iterate is
    yielded. `selection.best` chooses among them without a validation set.

    Parameters
    ----------
    kernel : Kernel
        The kernel, whose metric is M_0.
    X : tensor of shape (n, d)
        The rows of every fit, over which gradients are averaged.
    fit : callable
        Returns the evaluated `Candidate` of a kernel. It chooses the ridge and the bandwidth.
    metric : {"identity", "diagonal", "full"}, default="full"
        The form of M; with "identity" only the iterate t = 0 is yielded.
    n_iter : int, default=5
        Number of steps after t = 0.
    weights : tensor of shape (n,), optional
        Weights of the rows in the average of the gradients.
    working_memory : float, default=64.0

    Notes
    -----
    Each iterate costs a fit and O(n^2 d).
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
