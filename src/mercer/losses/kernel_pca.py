"""The reconstruction loss of kernel principal components (krepes, section 3)."""

from torch import Tensor

from mercer.losses.pairs import check_views, second_moment


def kernel_pca(*views: Tensor, gram: Tensor, diagonal: Tensor | float) -> Tensor:
    """Return E |phi(x) - W^T W phi(x)|^2, the error of reconstructing phi(x) from its embedding f(x) = W phi(x).

    In terms of the embeddings f(x) = A^T k_x it is E[k(x, x)] - 2 E |f|^2 + tr(W W^T E[f f^T]), with
    W W^T = A^T K_mm A. (The paper prints -1 instead of -2.)

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings W phi(x), without a bias. Several views count as additional samples.
    gram : tensor of shape (h, h)
        A^T K_mm A.
    diagonal : tensor or float
        The mean of k(x, x).
    """
    check_views(views, at_least=1)
    C = second_moment(views)
    return diagonal - 2.0 * C.trace() + (gram * C).sum()
