"""The first stage of every fit of a `KernelEmbedding`: how views are drawn, the landmarks, and the kernel."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.blocks import as_tensor
from mercer.embedding.centers import Centers, centers_of
from mercer.embedding.choices import choose_kernel, is_free
from mercer.embedding.landmark_map import DEFAULT_LANDMARKS
from mercer.embedding.objectives import closed_form
from mercer.embedding.problem import NOISE_RIDGE
from mercer.embedding.trained_losses import views_needed
from mercer.exceptions import invalid_parameter
from mercer.kernels import Kernel, check_kernel
from mercer.views.sources import Augmented, DrawnViews, GivenViews, ViewSource

# If n_landmarks=None, there is one landmark for this many images, but at least DEFAULT_LANDMARKS and at most
# MOST_LANDMARKS.
ROWS_A_LANDMARK, MOST_LANDMARKS = 25, 2000
# If n_components=None, there are 150 components, or this share of the landmarks if that is more.
DEFAULT_COMPONENTS, SHARE_OF_LANDMARKS = 150, 0.15
# bandwidth="auto" tries these multiples of the median distance, on at most this many rows and landmarks: comparing four
# kernels on all of them would take four times as long as the fit. With fewer images the bandwidth is the median.
BANDWIDTHS = (1.0, 0.7, 0.5, 0.35)
SEARCH_ROWS, SEARCH_LANDMARKS = 4000, 500
# For a table, kernel="auto" adds to the Gaussian kernel a second one with a bandwidth larger by this factor, and with
# this weight. With weight = 2 factor^2, the linear part of the centered sum is x^T z / trace(covariance) to first
# order.
WIDE_FACTOR, WIDE_WEIGHT = 4.0, 32.0


class Beginning(NamedTuple):
    """The views, the landmarks with their kernel, and the settings that were tried for the kernel.

    `share` is λ as a share of the largest variance; None if λ is chosen later, by the loss on left-out rows.
    """

    seed: int
    augmented: Augmented | None
    source: ViewSource
    centers: Centers
    indices: np.ndarray | None
    tried: list[dict[str, Any]]
    share: float | None


def begin(embedding: Any, X: np.ndarray, given: GivenViews | None) -> Beginning:
    """Determine views, landmarks and kernel from the parameters of a `KernelEmbedding`, which is not changed."""
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
    landmarks, indices = embedding._landmarks(X, kernel, random, usual_landmarks(len(X), is_table(embedding)))
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
        source.of_rows(some_rows(random, len(X), SEARCH_ROWS)),
        centers._replace(sets=[Z[:SEARCH_LANDMARKS] for Z in centers.sets]),
        ridge=embedding.ridge,
        n_components=most_components(embedding, centers),
        bias=embedding.bias,
        seed=seed,
    )
    return begun._replace(centers=centers._replace(kernel=chosen), tried=tried)


def some_rows(random: np.random.RandomState, n: int, most: int) -> np.ndarray:
    """Return the numbers of at most `most` of n rows, drawn without replacement, in increasing order."""
    return np.sort(random.choice(n, most, replace=False)) if n > most else np.arange(n)


def augmented_of(embedding: Any, X: np.ndarray, kernel: Kernel, seed: int) -> Augmented | None:
    """Return how views are drawn; None if the loss needs no views."""
    if views_needed(embedding.loss) == 1:
        return None
    if is_table(embedding) and isinstance(embedding.augment, str) and embedding.augment == "auto":
        return Augmented.towards_neighbors(X, kernel, seed)
    return Augmented.fitted(embedding.augment, embedding.sample_shape_, X)


def placed(
    embedding: Any, kernel: Kernel, landmarks: np.ndarray, indices: np.ndarray | None, source: ViewSource, seed: int
) -> Centers:
    """Return the landmarks as centers: the landmark rows themselves, or their views, depending on `landmark_tuples`."""
    tuples = embedding.landmark_tuples
    rows = as_tensor(landmarks, device=embedding.device)
    if tuples == "shared":
        return Centers(kernel, [rows])
    if indices is None:
        raise invalid_parameter("landmark_tuples", tuples, "'shared' if the landmarks themselves are given")
    n_views = len(source.stacked(indices[:1]))
    n_rows = len(indices) if tuples == "by_view" else max(1, len(indices) // n_views)
    chosen = np.sort(check_random_state(seed).permutation(indices)[:n_rows])
    return centers_of(kernel, rows, source.stacked(chosen), tuples, n_views)


def usual_landmarks(n_rows: int, is_of_columns: bool) -> int:
    """Return the number of landmarks for n_landmarks=None: 1000, and for many images up to 2000.

    On 50 000 images of MNIST, 2000 landmarks and 300 components raise the accuracy of a linear probe on left-out
    training rows from .959 to .967, at three times the time. At most half of the images are landmarks, since a row that
    is a landmark is compared with itself.
    """
    if is_of_columns:
        return DEFAULT_LANDMARKS
    return min(max(DEFAULT_LANDMARKS, min(n_rows // ROWS_A_LANDMARK, MOST_LANDMARKS)), -(-n_rows // 2))


def most_components(embedding: Any, centers: Centers) -> int:
    """Return the number of components that was asked for, or the default, but at most the number of landmarks."""
    m = len(centers.like)
    usual = max(DEFAULT_COMPONENTS, int(SHARE_OF_LANDMARKS * m))
    return min(usual if embedding.n_components is None else embedding.n_components, m)


def views_tell(embedding: Any, are_given: bool) -> bool:
    """Whether agreement between views tells which directions matter.

    Views of a table that are named by a string are only noise, on which nearly all directions agree.
    """
    by_shorthand = is_table(embedding) and isinstance(embedding.augment, str)
    return views_needed(embedding.loss) > 1 and (are_given or not by_shorthand)


def searches_bandwidth(embedding: Any, n_rows: int, are_given: bool) -> bool:
    """Whether the bandwidth is chosen by the loss on views of left-out rows, rather than set to the median distance.

    For images whose views are named by a string, views can be drawn for any loss. Such views are gentle, and their loss
    prefers small bandwidths, with which few rows are similar to each other. A few labels then say little of the other
    rows, so the loss chooses the bandwidth only if there are many rows.
    """
    if embedding.bandwidth != "auto":
        return False
    if not is_table(embedding) and not are_given and isinstance(embedding.augment, str):
        return n_rows >= SEARCH_ROWS
    return views_tell(embedding, are_given)


def settled_share(embedding: Any, are_given: bool) -> float | None:
    """Return λ as a share of the largest variance if views are only noise; None if left-out rows are to choose it."""
    return None if views_tell(embedding, are_given) else NOISE_RIDGE


def is_table(embedding: Any) -> bool:
    """Whether the samples are rows of a table rather than images."""
    return len(embedding.sample_shape_) == 1
