"""The simple contrastive loss (krepes, section 2; Esser et al. 2024)."""

from torch import Tensor

from mercer.losses.pairs import check_views, mean_positive_product, negative_products


def simple_contrastive(*views: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Return E[f(x)^T (f(x-) - f(x+))].

    x+ is another view of the same sample as x, and x- is a view of any sample, drawn independently. Over all pairs of
    views, the mean of f(x)^T f(x-) is |E f|^2. The loss is an indefinite quadratic function: without the constraint
    A^T K_mm A = I it has no minimum.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views; row i of each belongs to sample i.
    negatives : tensor of shape (n, h), optional
        The embedding of one x- for each sample, which is used for all its views; see `draw_negatives`. By default all
        pairs of views are used.
    """
    check_views(views)
    if negatives is not None:
        return negative_products(views, negatives).mean() - mean_positive_product(views)
    mean = sum((view.mean(dim=0) for view in views[1:]), start=views[0].mean(dim=0)) / len(views)
    return mean.square().sum() - mean_positive_product(views)
