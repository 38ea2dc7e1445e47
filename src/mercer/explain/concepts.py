"""Concepts: directions of a representation that examples point out, and what they do in the landmarks of a sample."""

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

# Below this share of left-out examples on the right side, weighing both sides alike, a concept is not there.
LEAST_ACCURACY = 0.6
# Rows whose influences are held at a time: of very many rows they would be the largest thing in memory.
ROWS_A_BLOCK = 4096


class Concept(NamedTuple):
    """A direction v of a representation K A that points from other samples to examples of something.

    Attributes
    ----------
    name : str
    vector : ndarray of shape (h,)
        v, of length 1.
    accuracy : float
        The balanced accuracy of the linear SVM behind it on left-out examples.
    stability : float
        The mean cosine with the vectors of resampled examples.
    n_examples, n_others : int
    """

    name: str
    vector: np.ndarray
    accuracy: float
    stability: float
    n_examples: int
    n_others: int


class ConceptProfile(NamedTuple):
    """How much a concept supports each group of samples, beside random concepts of the same size.

    Attributes
    ----------
    groups : list of str
    mean : ndarray of shape (g,)
        The mean of Psi_N over the samples of a group, less its mean over all samples.
    p_value : ndarray of shape (g,)
        How often a random concept reaches as much in any group (Westfall and Young's step, one-sided), times the number
        of concepts that are looked at; at most 1.
    n_random : int
    """

    groups: list[str]
    mean: np.ndarray
    p_value: np.ndarray
    n_random: int

    def significant(self, level: float = 0.05) -> list[str]:
        """Return the groups that the concept supports beyond chance."""
        return [group for group, p in zip(self.groups, self.p_value, strict=True) if p <= level]


def representation(embedding: Any, X: Any) -> np.ndarray:
    """Return K A of rows, without the bias, as appendix E of krepes has it; of shape (n, h)."""
    check_embedding(embedding)
    return np.asarray(kernel_values(embedding, X) @ embedding.coefficients_, dtype=np.float64)


def concept_vector(embedding: Any, examples: Any, others: Any) -> np.ndarray:
    """Return the unit normal of a linear SVM from other samples to examples in the representation K A, (h,).

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    examples, others : array-likes of shape (n, d), or images
        Samples with the concept, and without.
    """
    return unit_normal(*_labelled(embedding, examples, others))


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
    """Return the concept that tells examples from other samples, if left-out examples bear it out.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    examples, others : array-likes of shape (n, d), or images
        At least 5 each.
    name : str, default="concept"
    least_accuracy : float, default=0.6
        Of left-out examples, both sides weighing alike; below it the concept is refused as not there.
    n_resamples : int, default=10
        How often examples are drawn anew, with repetition, for the stability.
    random_state : int, RandomState instance or None, default=None
    """
    Z, y = _labelled(embedding, examples, others)
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
    """Return the score of each landmark for each row: alignment (Z_m v)_l times influence k(x, x_l) |A_l|, (n, m).

    Equation (3) of krepes, which prints c_j for the landmark x_l.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    X : array-like of shape (n, d), or images
    concept : Concept or ndarray of shape (h,)
    """
    return _influence(embedding, X) * (_landmark_representation(embedding) @ _vector(embedding, concept))


def concept_influence(embedding: Any, X: Any, concept: Any, n_landmarks: int = 5) -> np.ndarray:
    """Return Psi_N of each row: the sum of the scores of its N most influential landmarks, of shape (n,).

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
    """Say which groups of samples a concept supports more than others, and more than random concepts do.

    A random concept takes as many of the examples and other samples together for its examples, whichever they are.

    Parameters
    ----------
    embedding : fitted KernelEmbedding or Nystrom
    X : array-like of shape (n, d), or images
    groups : array-like of shape (n,)
        The class, or another group, of each sample.
    examples, others : array-likes of shape (n, d), or images
    n_landmarks : int, default=5
    n_random : int, default=200
    n_concepts : int, default=1
        How many concepts are looked at; p-values are multiplied by it.
    random_state : int, RandomState instance or None, default=None

    Notes
    -----
    Psi_N is linear in the concept vector, so that random concepts cost an SVM each and O(g m) beside it.
    """
    Z, y = _labelled(embedding, examples, others)
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
    """Return the normal of length 1 of a linear SVM from rows with y = 0 to rows with y = 1; both sides weigh alike."""
    normal = _svm().fit(Z, y).coef_[0]
    length = np.linalg.norm(normal)
    if not length:
        raise ValueError("examples and other samples have the same representation: there is no concept in them.")
    return normal / length


def _labelled(embedding: Any, examples: Any, others: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the representations of both sides, of mean square length 1, and which are examples."""
    check_embedding(embedding)
    for name, rows in (("others", others), ("examples", examples)):
        if len(rows) < 5:
            raise invalid_parameter(name, f"{len(rows)} samples", "5 samples at least")
    sides = [representation(embedding, rows) for rows in (others, examples)]
    Z = np.concatenate(sides)
    # One number for all coordinates: directions stay, and the penalty of the SVM does not depend on the units.
    scale = np.sqrt(np.mean((Z - Z.mean(axis=0)) ** 2)) or 1.0
    return Z / scale, np.repeat([0, 1], [len(side) for side in sides])


def _influence(embedding: Any, X: Any) -> np.ndarray:
    check_embedding(embedding)
    return kernel_values(embedding, X) * np.linalg.norm(embedding.coefficients_, axis=1)


def _influence_by_blocks(embedding: Any, X: Any, n_landmarks: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the N largest influences on each row, zeros elsewhere, for a block of rows at a time."""
    for block in row_slices(len(X), ROWS_A_BLOCK):
        rows = X.iloc[block] if hasattr(X, "iloc") else X[block]
        yield block, _largest(_influence(embedding, rows), n_landmarks)


def _mean_influences(embedding: Any, X: Any, codes: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Return the mean influences of the landmarks on each group, less those on all rows, of shape (g, m)."""
    sums = np.zeros((int(codes.max()) + 1, len(embedding.coefficients_)))
    for block, influence in _influence_by_blocks(embedding, X, n_landmarks):
        np.add.at(sums, codes[block], influence)
    return sums / np.bincount(codes)[:, None] - sums.sum(axis=0) / len(codes)


def _landmark_representation(embedding: Any) -> np.ndarray:
    return representation(embedding, embedding.landmarks_)


def _largest(influence: np.ndarray, n_landmarks: int) -> np.ndarray:
    """Return influences with all but the N largest of each row set to 0."""
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
    """Raise if an embedding is not one on landmarks."""
    if getattr(embedding, "landmarks_", None) is None or getattr(embedding, "kernel_", None) is None:
        raise invalid_parameter("embedding", embedding, "a fitted embedding on landmarks, such as KernelEmbedding")
