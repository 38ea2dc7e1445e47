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
# Below this many distinct texts or n-grams a dense decomposition is quicker than an iterative one.
SMALL = 200


def leading_directions(A: Any, k: int) -> np.ndarray:
    """Return the right singular vectors of a sparse matrix A to its k largest singular values, in rows.

    Fewer where A has a lower rank. The sign is such that the largest entry is positive.
    """
    small = min(A.shape)
    if small <= max(SMALL, 2 * k):
        _, values, rows = np.linalg.svd(A.toarray(), full_matrices=False)
    else:
        # Iterated until nothing changes: the start shows in the last digits at most, so it is no choice of the user's.
        start = np.random.default_rng(0).standard_normal(small)
        _, values, rows = svds(A, k=k, v0=start)
    order = np.argsort(-values, kind="stable")[:k]
    rows = rows[order[values[order] > small * np.finfo(np.float64).eps * values.max()]]
    return np.ascontiguousarray(svd_flip(None, rows, u_based_decision=False)[1])


@dataclass(frozen=True, eq=False)
class Texts:
    """Text, as coordinates along the leading singular directions of its weighted character n-grams.

    This is what skrub's StringEncoder computes, with scikit-learn's parts. Ours keeps at most 10 000 n-grams, so that
    a model file is small. It counts each distinct text once in the weights of n-grams (tf-idf), so that the work grows
    with the distinct texts and not with the rows. The decomposition counts a text as often as it occurs.

    Attributes
    ----------
    ngrams : list of str
        Of 3 and 4 characters within words.
    idf : ndarray of shape (n_ngrams,)
    directions : ndarray of shape (k, n_ngrams)
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
