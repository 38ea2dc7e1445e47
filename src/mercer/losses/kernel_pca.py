"""The reconstruction loss of kernel principal components (krepes, section 3)."""

from torch import Tensor

from mercer.losses.pairs import check_views


def kernel_pca(*views: Tensor, gram: Tensor, diagonal: Tensor | float) -> Tensor:
    """Return E |phi(x) - W^T W phi(x)|^2, W the map to the embedding f(x) = W phi(x) = A^T k_x.

    In the embeddings it is E[k(x, x)] - 2 E |f|^2 + tr(W W^T E[f f^T]), with W W^T = A^T K_mm A. (The paper prints -1
    for the -2.)

    Parameters
    ----------
    *views : tensors of shape (n, h)
        Embeddings; views count as further samples. No bias is in them: W phi(x) has none.
    gram : tensor of shape (h, h)
        A^T K_mm A.
    diagonal : tensor or float
        The mean of k(x, x).
    """
    check_views(views, at_least=1)
    C = sum((view.T @ view for view in views[1:]), start=views[0].T @ views[0]) / (len(views) * len(views[0]))
    return diagonal - 2.0 * C.trace() + (gram * C).sum()
