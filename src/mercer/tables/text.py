"""The reader for text: it maps strings to numbers so that similar strings are close to each other."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import svds
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import svd_flip

from mercer.tables.readers import Reading, as_texts

NGRAMS = (3, 4)
MOST_NGRAMS = 10_000
# With at most this many distinct texts or n-grams, a dense decomposition is faster than an iterative one.
SMALL = 200
# Singular values that differ by less than this share of the largest are equal, and so many more are looked at.
EQUAL, MORE = 1e-8, 10


def leading_directions(A: Any, k: int) -> np.ndarray:
    """Return the right singular vectors of a sparse matrix A for its k largest singular values, as rows.

    There are fewer than k if A has a lower rank. The largest entry of each vector is positive. Rounding errors do not
    decide which vectors are returned, even if singular values are equal (`settled_basis`).
    """
    small = min(A.shape)
    if small <= max(SMALL, 2 * k):
        _, values, rows = np.linalg.svd(A.toarray(), full_matrices=False)
    else:
        # The iteration runs to full precision, so the start changes the last digits at most and needs no parameter.
        # A few more values than are asked for show whether the last of them is equal to the next.
        start = np.random.default_rng(0).standard_normal(small)
        _, values, rows = svds(A, k=min(k + MORE, small - 1), v0=start)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > small * np.finfo(np.float64).eps * values.max()]
    rows = settled_basis(values[order], rows[order])[:k]
    return np.ascontiguousarray(svd_flip(None, rows, u_based_decision=False)[1])


def settled_basis(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Replace the singular vectors of equal singular values by a basis that depends only on the space they span.

    Vectors of equal values may be rotated into each other, and rounding errors rotate them. If V holds the vectors of
    one value as rows and G has fixed random columns, then the basis is Q^T V with V G = Q R and a positive diagonal of
    R: a rotation of V rotates Q by the same matrix, and cancels.

    Parameters
    ----------
    values : ndarray of shape (r,)
        Singular values in descending order, above 0.
    rows : ndarray of shape (r, p)
    """
    starts = np.flatnonzero(np.append(True, values[:-1] - values[1:] > EQUAL * values.max(initial=0.0)))
    settled = rows.copy()
    for start, stop in zip(starts, [*starts[1:], len(values)], strict=True):
        if stop - start > 1:
            V = rows[start:stop]
            Q, R = np.linalg.qr(V @ np.random.default_rng(0).standard_normal((V.shape[1], stop - start)))
            settled[start:stop] = (Q * np.where(np.diag(R) < 0, -1.0, 1.0)).T @ V
    return settled


@dataclass(frozen=True, eq=False)
class Texts:
    """Text, as coordinates along the leading singular directions of its weighted character n-grams.

    This is what skrub's StringEncoder computes, with scikit-learn's parts. Ours keeps at most 10 000 n-grams, so that
    a model file is small. It counts each distinct text once in the weights of n-grams (tf-idf), so that the work grows
    with the distinct texts and not with the rows. The decomposition counts a text as often as it occurs.

    Attributes
    ----------
    ngrams : list of str
        The n-grams, of 3 and 4 characters within words.
    idf : ndarray of shape (n_ngrams,)
        The weight of each n-gram.
    directions : ndarray of shape (k, n_ngrams)
        The leading right singular vectors.
    """

    ngrams: list[str]
    idf: np.ndarray
    directions: np.ndarray

    kind: ClassVar[str] = "text"
    scaling: ClassVar[str] = "together"

    @classmethod
    def fit(cls, column: Any, n_components: int) -> "Texts":
        """Find the n-grams and the directions."""
        counts = Counter(text for text in as_texts(column) if text is not None)
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=NGRAMS, max_features=MOST_NGRAMS)
        weights = vectorizer.fit_transform(counts)
        directions = leading_directions(diags_array(np.sqrt(list(counts.values()))) @ weights, n_components)
        return cls(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_, directions)

    def read(self, column: Any) -> Reading:
        """Return each text's coordinates along the directions, of shape (n, k)."""
        texts = as_texts(column)
        place = {text: i for i, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
        raw = np.full((len(texts), len(self.directions)), np.nan)
        if place:
            vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=NGRAMS, vocabulary=self.ngrams)
            vectorizer.idf_ = self.idf
            coordinates = vectorizer.transform(place) @ self.directions.T
            known = texts != None  # noqa: E711, element by element
            raw[known] = coordinates[[place[text] for text in texts[known]]]
        return Reading(raw, np.zeros(len(texts), dtype=bool))

    def names(self, column: str) -> list[str]:
        """Return the names of what `read` gives."""
        return [f"{column}: text {i}" for i in range(len(self.directions))]
