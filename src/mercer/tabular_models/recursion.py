"""The loop of recursive feature machines: fit, take the gradients' outer product as the metric, fit again."""

from collections.abc import Callable, Iterator

from torch import Tensor

from mercer.agop import agop, predictor_gradients
from mercer.blocks import WORKING_MEMORY
from mercer.checks import check_choice, check_count
from mercer.kernels import Kernel
from mercer.mahalanobis import Mahalanobis
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
    scaled to trace d (rfm-and-ard, section 2.3). Iterating can collapse M onto one direction, so each iterate is a
    candidate: `selection.best` over them needs no validation set.

    Parameters
    ----------
    kernel : Kernel
        Its metric is M_0.
    X : tensor of shape (n, d)
        The centres of every fit, and the rows over which gradients are averaged.
    fit : callable
        Kernel -> the evaluated Candidate: which ridge, and which bandwidth, is its own affair.
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


def next_metric(
    kernel: Kernel,
    X: Tensor,
    centres: Tensor,
    alpha: Tensor,
    metric: str,
    weights: Tensor | None = None,
    working_memory: float = WORKING_MEMORY,
) -> Mahalanobis:
    """Return the average gradient outer product of the fit over the rows of X, or its diagonal, as a metric of trace d.

    A fit without gradients (of a constant target) has nothing to say: the metric stays what it was.
    """
    diagonal = metric == "diagonal"
    if not diagonal and len(X) * alpha[0].numel() < X.shape[1]:
        return in_the_span(kernel, X, centres, alpha, weights, working_memory)
    M = agop(kernel, X, centres, alpha, diagonal=diagonal, weights=weights, working_memory=working_memory).cpu()
    learned = Mahalanobis.from_weights(M) if diagonal else Mahalanobis.from_matrix(M)
    return learned.normalized() if float(M.sum() if diagonal else M.trace()) > 0 else kernel.single_metric()


def in_the_span(
    kernel: Kernel, X: Tensor, centres: Tensor, alpha: Tensor, weights: Tensor | None, working_memory: float
) -> Mahalanobis:
    """Return the same for fewer gradients than columns: a full metric of low rank, without a matrix of d^2 numbers."""
    gradients = predictor_gradients(kernel, X, centres, alpha, working_memory=working_memory)
    mass = gradients.new_ones(len(X)) if weights is None else weights
    G = ((mass / mass.sum()).sqrt()[:, None] * gradients.flatten(1)).reshape(-1, X.shape[1])
    return Mahalanobis.from_outer_products(G).normalized() if bool(G.any()) else kernel.single_metric()
