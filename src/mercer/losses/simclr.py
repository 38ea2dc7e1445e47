"""The normalized, temperature-scaled cross entropy of SimCLR (Chen et al. 2020, equation 1)."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.directions import unit
from mercer.losses.pairs import check_views


def simclr(*views: Tensor, temperature: float = 0.5) -> Tensor:
    """Which of the other 2n - 1 embeddings is the other view of this sample? Return the mean cross entropy.

    With s(u, v) = u^T v / (|u| |v|), the loss of an embedding u whose other view is v is
    -log(e^(s(u, v) / t) / sum_w e^(s(u, w) / t)), where w runs over the two views of all samples except u itself.
    krepes uses this definition unchanged. For p > 2 views the loss is the mean over pairs of views.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views, n >= 2; row i of each belongs to sample i.
    temperature : float, default=0.5
        t. The default is the authors' for CIFAR-10; for ImageNet, with batches of 4096, they use 0.1. krepes searches
        [1e-3, 100].

    Notes
    -----
    O(p^2 n^2 h) time and O(p^2 n^2) memory. Only the directions of the embeddings matter; an embedding of zeros counts
    as orthogonal to all others.
    """
    check_views(views, min_rows=2)
    t = check_number("temperature", temperature, above=0.0)
    p, n = len(views), len(views[0])
    Z = unit(torch.stack(views), dim=2).flatten(0, 1)
    S = Z @ Z.T / t
    itself = torch.eye(p * n, dtype=torch.bool, device=S.device)
    # sums[a, i, b] is the log of the sum of e^(s / t) between sample i of view a and all samples of view b.
    sums = S.masked_fill(itself, -torch.inf).reshape(p, n, p, n).logsumexp(dim=3)
    own = sums.diagonal(dim1=0, dim2=2).T
    positives = S.reshape(p, n, p, n).diagonal(dim1=1, dim2=3)
    losses = torch.logaddexp(own[:, None, :], sums.transpose(1, 2)) - positives
    different = ~torch.eye(p, dtype=torch.bool, device=S.device)
    return losses[different].mean()
