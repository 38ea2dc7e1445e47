"""The spectral contrastive loss (krepes, section 2; HaoChen et al. 2021)."""

from torch import Tensor

from mercer.losses.pairs import check_views, mean_positive_product, negative_products


def spectral_contrastive(*views: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Return -2 E[f(x)^T f(x+)] + E[(f(x)^T f(x-))^2].

    x+ is another view of the sample of x, and x- a view of any sample, drawn independently: its mean over all pairs of
    views is |C|^2 with C = E[f f^T], so that a batch costs O(n h^2) and not O(n^2 h).

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views; row i of each belongs to sample i.
    negatives : tensor of shape (n, h), optional
        The embedding of one x- for each sample, for all views of it; see `draw_negatives`. All pairs by default.
    """
    check_views(views)
    if negatives is not None:
        return -2.0 * mean_positive_product(views) + negative_products(views, negatives).square().mean()
    n, p = len(views[0]), len(views)
    C = sum((view.T @ view for view in views[1:]), start=views[0].T @ views[0]) / (n * p)
    return -2.0 * mean_positive_product(views) + C.square().sum()
