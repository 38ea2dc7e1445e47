"""Concepts: directions of a representation that are learned from examples, and the landmarks that express them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from mercer.blocks import row_slices
from mercer.checks import check_count, check_probability
from mercer.exceptions import invalid_parameter
from mercer.explain.expansion import kernel_values

# A concept whose balanced accuracy on left-out examples is below this is refused.
LEAST_ACCURACY = 0.6
# Influences are computed for this many rows at a time: for very many rows they would be the largest array in memory.
ROWS_A_BLOCK = 4096


class Concept(NamedTuple):
    """A direction v of a representation K A that points from other rows to examples of something.

    K holds the kernel values of rows with landmarks, and A the coefficients of the embedding.

    Attributes
    ----------
    name : str
    vector : ndarray of shape (h,)
        v, of length 1.
    accuracy : float
        The balanced accuracy on left-out examples of the linear SVM whose normal is v.
    stability : float
        The mean cosine between v and the vectors found from resampled examples.
    n_examples, n_others : int
        The numbers of examples and of other rows.
    """

    name: str
    vector: np.ndarray
    accuracy: float
    stability: float
    n_examples: int
    n_others: int


class ConceptProfile(NamedTuple):
    """How much a concept supports each group of rows, compared with random concepts from as many examples.

    Attributes
    ----------
    groups : list of str
    mean : ndarray of shape (g,)
        The mean of Psi_N (see `concept_influence`) over the rows of a group, minus its mean over all rows.
    p_value : ndarray of shape (g,)
        The share of random concepts that reach as large a mean in any group, in units of each group's standard
        deviation over random concepts (Westfall and Young's step, one-sided). It is multiplied by the number of
        concepts that are tested, and is at most 1.
    n_random : int
        The number of random concepts.
    """

    groups: list[str]
    mean: np.ndarray
    p_value: np.ndarray
    n_random: int

    def significant(self, level: float = 0.05) -> list[str]:
        """Return the groups whose p-value is at most `level`: the concept supports them more than chance would."""
        return [group for group, p in zip(self.groups, self.p_value, strict=True) if p <= level]


def representation(embedding: Any, X: Any) -> np.ndarray:
    """Return K A of rows, of shape (n, h), without the bias, as in appendix E of krepes."""
    check_embedding(embedding)
    return np.asarray(kernel_values(embedding, X) @ embedding.coefficients_, dtype=np.float64)


def concept_vector(embedding: Any, examples: Any, others: Any) -> np.ndarray:
    """Return the unit normal of a linear SVM that separates examples from other rows in K A, of shape (h,).

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    examples, others : array-likes of shape (n, d), or images
        Rows with the concept, and rows without it.
    """
    return unit_normal(*_labeled(embedding, examples, others))


def find_concept(
    embedding: Any,
    examples: Any,
    others: Any,
    name: str = "concept",
    *,
    least_accuracy: float = LEAST_ACCURACY,
    n_resamples: int = 10,
    random_state: Any = None,
) -> Concept:
    """Return the concept that separates examples from other rows, if it also separates left-out examples.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    examples, others : array-likes of shape (n, d), or images
        Rows with the concept, and rows without it; at least 5 of each.
    name : str, default="concept"
    least_accuracy : float, default=0.6
        The smallest balanced accuracy on left-out examples; below it, a ValueError says that the concept is not there.
    n_resamples : int, default=10
        How many times both sides are resampled with replacement to measure the stability.
    random_state : int, RandomState instance or None, default=None
        Draws the folds and the resampled rows.
    """
    Z, y = _labeled(embedding, examples, others)
    random = check_random_state(random_state)
    folds = StratifiedKFold(5, shuffle=True, random_state=random.randint(2**31 - 1))
    accuracy = float(np.mean(cross_val_score(_svm(), Z, y, cv=folds, scoring="balanced_accuracy")))
    if accuracy < check_probability("least_accuracy", least_accuracy):
        raise ValueError(
            f"the concept {name!r} is not there: a linear SVM is right on {accuracy:.3f} of the left-out examples, and "
            f"least_accuracy={least_accuracy}. More examples, or clearer ones, may show it."
        )
    v, sides = unit_normal(Z, y), [np.flatnonzero(y == side) for side in (0, 1)]
    cosines = []
    for _ in range(check_count("n_resamples", n_resamples)):
        drawn = np.concatenate([random.choice(side, len(side)) for side in sides])
        cosines.append(v @ unit_normal(Z[drawn], y[drawn]))
    return Concept(str(name), v, accuracy, float(np.mean(cosines)), len(sides[1]), len(sides[0]))


def concept_scores(embedding: Any, X: Any, concept: Any) -> np.ndarray:
    """Return the score of each landmark for each row, of shape (n, m).

    The score of landmark x_l for row x is its alignment with the concept, (Z_m v)_l, times its influence on the row,
    k(x, x_l) |A_l|. Row l of Z_m is the representation of x_l, and A_l is row l of the coefficients. This is equation
    (3) of krepes, which prints c_j for the landmark x_l.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    X : array-like of shape (n, d), or images
    concept : Concept or ndarray of shape (h,)
    """
    return _influence(embedding, X) * (_landmark_representation(embedding) @ _vector(embedding, concept))


def concept_influence(embedding: Any, X: Any, concept: Any, n_landmarks: int = 5) -> np.ndarray:
    """Return Psi_N of each row, of shape (n,): the sum of the scores of its N most influential landmarks.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    X : array-like of shape (n, d), or images
    concept : Concept or ndarray of shape (h,)
    n_landmarks : int, default=5
        N.
    """
    alignment = _landmark_representation(embedding) @ _vector(embedding, concept)
    return np.concatenate([own @ alignment for _, own in _influence_by_blocks(embedding, X, n_landmarks)])


def concept_profile(
    embedding: Any,
    X: Any,
    groups: Any,
    examples: Any,
    others: Any,
    *,
    n_landmarks: int = 5,
    n_random: int = 200,
    n_concepts: int = 1,
    random_state: Any = None,
) -> ConceptProfile:
    """Return how much a concept supports each group of rows, with p-values against random concepts.

    A random concept is found from the same rows, of which as many, drawn at random, are taken as its examples.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    X : array-like of shape (n, d), or images
    groups : array-like of shape (n,)
        The class, or another group, of each row of X.
    examples, others : array-likes of shape (n, d), or images
        Rows with the concept, and rows without it; at least 5 of each.
    n_landmarks : int, default=5
        N in Psi_N.
    n_random : int, default=200
        The number of random concepts, at least 19.
    n_concepts : int, default=1
        The number of concepts that are tested; p-values are multiplied by it.
    random_state : int, RandomState instance or None, default=None
        Draws the random concepts.

    Notes
    -----
    Psi_N is linear in the concept vector. Each random concept therefore costs one SVM and O(g h) time for g groups and
    h coordinates.
    """
    Z, y = _labeled(embedding, examples, others)
    random = check_random_state(random_state)
    groups = np.asarray(groups)
    names, codes = np.unique(groups, return_inverse=True)
    if groups.ndim != 1 or len(names) < 2:
        raise invalid_parameter("groups", groups.shape, "one group a sample, and two groups at least")
    if len(X) != len(groups):
        raise invalid_parameter("groups", groups.shape, f"one group a sample, of shape ({len(X)},)")
    to_groups = _mean_influences(embedding, X, codes, n_landmarks) @ _landmark_representation(embedding)
    found = to_groups @ unit_normal(Z, y)
    n_random = check_count("n_random", n_random, at_least=19)
    drawn = np.stack([to_groups @ unit_normal(Z, random.permutation(y)) for _ in range(n_random)])
    spread = np.maximum(drawn.std(axis=0), np.finfo(np.float64).tiny)
    largest = (drawn / spread).max(axis=1)
    reached = (1 + (largest[:, None] >= found / spread).sum(axis=0)) / (1 + len(drawn))
    p_value = np.minimum(1.0, check_count("n_concepts", n_concepts) * reached)
    return ConceptProfile([str(name) for name in names], found, p_value, n_random)


def _svm() -> LinearSVC:
    return LinearSVC(class_weight="balanced", dual="auto", random_state=0, max_iter=5000, tol=1e-3)


def unit_normal(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the unit normal of a linear SVM, pointing from y = 0 to y = 1; both sides have the same total weight."""
    normal = _svm().fit(Z, y).coef_[0]
    length = np.linalg.norm(normal)
    if not length:
        raise ValueError("examples and other samples have the same representation: there is no concept in them.")
    return normal / length


def _labeled(embedding: Any, examples: Any, others: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the representations of both sides, on one scale, and y: 1 for examples and 0 for others."""
    check_embedding(embedding)
    for name, rows in (("others", others), ("examples", examples)):
        if len(rows) < 5:
            raise invalid_parameter(name, f"{len(rows)} samples", "5 samples at least")
    sides = [representation(embedding, rows) for rows in (others, examples)]
    Z = np.concatenate(sides)
    # One factor for all coordinates keeps the directions, and makes the penalty of the SVM independent of the units.
    scale = np.sqrt(np.mean((Z - Z.mean(axis=0)) ** 2)) or 1.0
    return Z / scale, np.repeat([0, 1], [len(side) for side in sides])


def _influence(embedding: Any, X: Any) -> np.ndarray:
    check_embedding(embedding)
    return kernel_values(embedding, X) * np.linalg.norm(embedding.coefficients_, axis=1)


def _influence_by_blocks(embedding: Any, X: Any, n_landmarks: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of rows with the N largest influences on each row; all other influences are set to 0."""
    for block in row_slices(len(X), ROWS_A_BLOCK):
        rows = X.iloc[block] if hasattr(X, "iloc") else X[block]
        yield block, _largest(_influence(embedding, rows), n_landmarks)


def _mean_influences(embedding: Any, X: Any, codes: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Return the mean influence of each landmark on each group, minus that on all rows, of shape (g, m)."""
    sums = np.zeros((int(codes.max()) + 1, len(embedding.coefficients_)))
    for block, influence in _influence_by_blocks(embedding, X, n_landmarks):
        np.add.at(sums, codes[block], influence)
    return sums / np.bincount(codes)[:, None] - sums.sum(axis=0) / len(codes)


def _landmark_representation(embedding: Any) -> np.ndarray:
    return representation(embedding, embedding.landmarks_)


def _largest(influence: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Return the influences, with all but the N largest of each row set to 0."""
    n = check_count("n_landmarks", n_landmarks, at_most=influence.shape[1], why="the number of landmarks")
    top, kept = np.argsort(-influence, axis=1, kind="stable")[:, :n], np.zeros_like(influence)
    np.put_along_axis(kept, top, np.take_along_axis(influence, top, axis=1), axis=1)
    return kept


def _vector(embedding: Any, concept: Any) -> np.ndarray:
    v = np.asarray(concept.vector if isinstance(concept, Concept) else concept, dtype=np.float64)
    if v.shape != (embedding.coefficients_.shape[1],):
        raise invalid_parameter("concept", v.shape, f"of {embedding.coefficients_.shape[1]} numbers, as the embedding")
    return v


def check_embedding(embedding: Any) -> None:
    """Raise an error if an embedding has no landmarks or no kernel."""
    if getattr(embedding, "landmarks_", None) is None or getattr(embedding, "kernel_", None) is None:
        raise invalid_parameter("embedding", embedding, "a fitted embedding on landmarks, such as KernelEmbedding")
