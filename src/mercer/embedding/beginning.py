"""What is settled before a loss is looked at: views, landmarks, and the kernel between them."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.blocks import as_tensor
from mercer.embedding.centers import Centers, centers_of
from mercer.embedding.choices import choose_kernel, is_free
from mercer.embedding.objectives import closed_form
from mercer.embedding.problem import NOISE_RIDGE
from mercer.embedding.trained_losses import views_needed
from mercer.exceptions import invalid_parameter
from mercer.kernels import Kernel, check_kernel
from mercer.views.sources import Augmented, DrawnViews, GivenViews, ViewSource

# What n_components=None means where the landmarks bear as many.
DEFAULT_COMPONENTS = 150
# bandwidth="auto" tries these multiples of the median distance, on at most so many rows and landmarks: to compare four
# kernels on all of them would take four times as long as the fit. Of fewer images the bandwidth is the median.
BANDWIDTHS = (1.0, 0.7, 0.5, 0.35)
SEARCH_ROWS, SEARCH_LANDMARKS = 4000, 500
# kernel="auto" adds to the Gaussian kernel of a table one that is wider by this factor, with this weight. Centered, the
# sum's linear part is then x^T z / trace(covariance) to first order: weight = 2 factor^2.
WIDE_FACTOR, WIDE_WEIGHT = 4.0, 32.0


class Beginning(NamedTuple):
    """What is settled before the loss is looked at: views, landmarks with their kernel, and what was tried for it.

    `share` is λ as a share of the largest variance, where it is settled too.
    """

    seed: int
    augmented: Augmented | None
    source: ViewSource
    centers: Centers
    indices: np.ndarray | None
    tried: list[dict[str, Any]]
    share: float | None


def begin(embedding: Any, X: np.ndarray, given: GivenViews | None) -> Beginning:
    """Settle views, landmarks and kernel by the parameters of a `KernelEmbedding`, which stays as it is."""
    random = check_random_state(embedding.random_state)
    seed = int(random.randint(2**31 - 1))
    is_auto = isinstance(embedding.kernel, str) and embedding.kernel == "auto"
    asked = check_kernel(
        "gaussian" if is_auto else embedding.kernel, None if embedding.bandwidth == "auto" else embedding.bandwidth
    )
    kernel = asked.resolved(X, random)
    if is_auto and is_table(embedding):
        kernel = kernel + WIDE_WEIGHT * kernel.rescaled(WIDE_FACTOR)
    augmented = augmented_of(embedding, X, kernel, seed)
    source: ViewSource = DrawnViews(X, augmented, embedding.n_views, seed) if given is None else given
    landmarks, indices = embedding._landmarks(X, kernel, random, None if is_table(embedding) else -(-len(X) // 2))
    centers = placed(embedding, kernel, landmarks, indices, source, seed)
    indices = indices if embedding.landmark_tuples == "shared" else None
    begun = Beginning(seed, augmented, source, centers, indices, [], settled_share(embedding, given is not None))
    if not (is_free(asked) and searches_bandwidth(embedding, len(X), given is not None)):
        return begun
    if given is None and augmented is None:
        source = DrawnViews(X, Augmented.fitted(embedding.augment, embedding.sample_shape_, X), 2, seed)
    chosen, tried = choose_kernel(
        [kernel.rescaled(factor) for factor in BANDWIDTHS],
        closed_form("spectral_contrastive"),
        source.of_rows(drawn(random, len(X), SEARCH_ROWS)),
        centers._replace(sets=[Z[:SEARCH_LANDMARKS] for Z in centers.sets]),
        ridge=embedding.ridge,
        n_components=most_components(embedding, centers),
        bias=embedding.bias,
        seed=seed,
    )
    return begun._replace(centers=centers._replace(kernel=chosen), tried=tried)


def drawn(random: np.random.RandomState, n: int, most: int) -> np.ndarray:
    """Return the rows that choices are made on: all, or as many as there may be, in their order."""
    return np.sort(random.choice(n, most, replace=False)) if n > most else np.arange(n)


def augmented_of(embedding: Any, X: np.ndarray, kernel: Kernel, seed: int) -> Augmented | None:
    """Return how views are drawn; None where none are."""
    if views_needed(embedding.loss) == 1:
        return None
    if is_table(embedding) and isinstance(embedding.augment, str) and embedding.augment == "auto":
        return Augmented.towards_neighbors(X, kernel, seed)
    return Augmented.fitted(embedding.augment, embedding.sample_shape_, X)


def placed(
    embedding: Any, kernel: Kernel, landmarks: np.ndarray, indices: np.ndarray | None, source: ViewSource, seed: int
) -> Centers:
    """Return the landmarks as centers: the rows themselves, or their views."""
    tuples = embedding.landmark_tuples
    rows = as_tensor(landmarks, device=embedding.device)
    if tuples == "shared":
        return Centers(kernel, [rows])
    if indices is None:
        raise invalid_parameter("landmark_tuples", tuples, "'shared' if the landmarks themselves are given")
    n_views = len(source.stacked(indices[:1]))
    n_rows = len(indices) if tuples == "by_view" else max(1, len(indices) // n_views)
    drawn = np.sort(check_random_state(seed).permutation(indices)[:n_rows])
    return centers_of(kernel, rows, source.stacked(drawn), tuples, n_views)


def most_components(embedding: Any, centers: Centers) -> int:
    """Return h, or as many components as there are landmarks."""
    wanted = DEFAULT_COMPONENTS if embedding.n_components is None else embedding.n_components
    return min(wanted, len(centers.like))


def views_tell(embedding: Any, are_given: bool) -> bool:
    """Whether views say what matters: those that a shorthand makes of a table are noise, and say little."""
    by_shorthand = is_table(embedding) and isinstance(embedding.augment, str)
    return views_needed(embedding.loss) > 1 and (are_given or not by_shorthand)


def searches_bandwidth(embedding: Any, n_rows: int, are_given: bool) -> bool:
    """Whether the bandwidth is chosen by the loss on views of rows left out, and is not the median distance.

    Views of images by a shorthand can be drawn whatever the loss. They are gentle, and their loss prefers bandwidths so
    small that few rows have no more to do with each other than their labels can say: it decides where rows are many.
    """
    if embedding.bandwidth != "auto":
        return False
    if not is_table(embedding) and not are_given and isinstance(embedding.augment, str):
        return n_rows >= SEARCH_ROWS
    return views_tell(embedding, are_given)


def settled_share(embedding: Any, are_given: bool) -> float | None:
    """Return λ as a share of the largest variance where views are noise; None where rows left out are to say it."""
    return None if views_tell(embedding, are_given) else NOISE_RIDGE


def is_table(embedding: Any) -> bool:
    """Whether samples are rows of columns, and no images."""
    return len(embedding.sample_shape_) == 1
