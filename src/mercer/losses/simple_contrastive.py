"""The simple contrastive loss (krepes, section 2; Esser et al. 2024)."""

from torch import Tensor

from mercer.losses.pairs import check_views, mean_positive_product, negative_products


def simple_contrastive(*views: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Return E[f(x)^T (f(x-) - f(x+))].

    x+ is another view of the sample of x, and x- a view of any sample, drawn independently: its mean over all pairs of
    views is |E f|^2. The loss is an indefinite quadratic: without the constraint A^T K_mm A = I it has no minimum.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views; row i of each belongs to sample i.
    negatives : tensor of shape (n, h), optional
        The embedding of one x- for each sample, for all views of it; see `draw_negatives`. All pairs by default.
    """
    check_views(views)
    if negatives is not None:
        return negative_products(views, negatives).mean() - mean_positive_product(views)
    mean = sum((view.mean(dim=0) for view in views[1:]), start=views[0].mean(dim=0)) / len(views)
    return mean.square().sum() - mean_positive_product(views)
