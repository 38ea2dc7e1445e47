"""Scorers of embeddings for the searches of scikit-learn: one without labels, and one with a few labels."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.checks import check_number
from mercer.embedding.linear_probe import probe_scorer
from mercer.embedding.neutral import RIDGE, head_loss, statistics_of
from mercer.views.sources import Augmented, DrawnViews, check_samples


@dataclass(frozen=True)
class ViewProbe:
    """Score an embedding without labels: how well does a linear head on it identify rows by their views?

    The head that minimizes the spectral contrastive loss is computed exactly on half of the rows, and its loss is taken
    on the other half; the halves then change roles. As with a linear probe, embeddings of different width, kernel,
    penalty and loss can be compared, since the head may rotate and scale them in any way.

    It is a scorer: `GridSearchCV(embedding, {"bandwidth": [...]}, scoring=ViewProbe())`.

    Parameters
    ----------
    ridge : float, default=0.01
        λ of the head, as a share of the largest variance of the embedding. It reduces the effect of directions whose
        variance is too small for a linear model to use.
    random_state : int, default=0
        Determines the views and the halves.
    """

    ridge: float = RIDGE
    random_state: int = 0

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge, above=0.0)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return minus the loss of the head on the rows that it was not fitted to, for a fitted `KernelEmbedding`."""
        check_is_fitted(estimator)
        rows = check_samples(estimator, X)
        views = self._views(estimator, rows)
        order = np.random.default_rng(self.random_state).permutation(len(rows))
        halves = [statistics_of([view[torch.from_numpy(half)] for view in views]) for half in np.array_split(order, 2)]
        return -float(np.mean([head_loss(halves[i], halves[1 - i], self.ridge) for i in (0, 1)]))

    def _views(self, estimator: Any, rows: np.ndarray) -> list[Tensor]:
        """Return the embeddings of two views, drawn as the estimator draws them and centered over both."""
        augmented = estimator.augmented_
        if augmented is None:
            is_table = len(estimator.sample_shape_) == 1
            augmented = (
                Augmented.towards_neighbors(rows, estimator.kernel_, self.random_state)
                if is_table
                else Augmented.fitted("auto", estimator.sample_shape_, rows)
            )
        drawn = DrawnViews(rows, augmented, 2, self.random_state).chunks(as_tensor(rows[:0]))
        embedded = [[torch.from_numpy(estimator.transform(view.numpy())).double() for view in views] for views in drawn]
        views = [torch.cat(parts) for parts in zip(*embedded, strict=True)]
        mean = torch.cat(views).mean(dim=0)
        return [view - mean for view in views]


@dataclass(frozen=True)
class LabelProbe:
    """Score an embedding by a linear classifier that is trained on a few labels; see `probe_scorer`.

    Parameters
    ----------
    labeled : float or int, default=0.1
    balanced : bool or "auto", default=False
    random_state : int, default=0
    """

    labeled: float = 0.1
    balanced: bool | Literal["auto"] = False
    random_state: int = 0

    def __post_init__(self) -> None:
        probe_scorer(self.labeled, self.balanced, self.random_state)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the accuracy on the rows that were left out and not labeled."""
        return probe_scorer(self.labeled, self.balanced, self.random_state)(estimator, X, y)
