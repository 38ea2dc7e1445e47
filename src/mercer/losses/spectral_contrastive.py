"""The spectral contrastive loss (krepes, section 2; HaoChen et al. 2021)."""

from torch import Tensor

from mercer.losses.pairs import check_views, mean_positive_product, negative_products, second_moment


def spectral_contrastive(*views: Tensor, negatives: Tensor | None = None) -> Tensor:
    """Return -2 E[f(x)^T f(x+)] + E[(f(x)^T f(x-))^2].

    x+ is another view of the same sample as x, and x- is a view of any sample, drawn independently. Over all pairs of
    views, the second mean is |C|^2 with C = E[f f^T], so that a batch costs O(n h^2) and not O(n^2 h).

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
        return -2.0 * mean_positive_product(views) + negative_products(views, negatives).square().mean()
    return -2.0 * mean_positive_product(views) + second_moment(views).square().sum()
