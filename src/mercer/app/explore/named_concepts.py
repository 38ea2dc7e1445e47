"""Concepts that were named on the page: their direction, profile over groups, and influence on every row."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.app.explore.columns import Shown
from mercer.app.explore.subject import Subject
from mercer.app.report.model_map import innermost
from mercer.exceptions import invalid_parameter
from mercer.explain import Concept, ConceptProfile, concept_influence, concept_profile, find_concept, read_concepts
from mercer.explain.concept_files import concepts_document, read_document, write_document
from mercer.landmarks.kernel_map import KernelMap

# The most examples and other rows on which a linear machine is fitted, the most rows of each group over which a profile
# is averaged, and the random concepts with which it is compared: few, so that the page is fast.
MOST_EXAMPLES, MOST_OF_A_GROUP, N_RANDOM = 1000, 1000, 99
# The number of landmarks of a row that count, N in the paper.
TOP = 5


class NamedConcept(NamedTuple):
    """A concept, its embedding and profile, the column of the groups, and whether rows were drawn from more."""

    concept: Concept
    embedding: Any
    profile: ConceptProfile
    by: str
    drawn: bool

    def in_words(self) -> dict[str, Any]:
        """Return what the page shows of a concept."""
        return {
            "name": self.concept.name,
            "accuracy": self.concept.accuracy,
            "stability": self.concept.stability,
            "n_examples": self.concept.n_examples,
            "n_others": self.concept.n_others,
            "drawn": self.drawn,
            "by": self.by,
            "groups": self.profile.groups,
            "mean": self.profile.mean,
            "p_value": self.profile.p_value,
            "significant": self.profile.significant(),
            "n_random": self.profile.n_random,
        }


class NamedConcepts:
    """The concepts of a visit, in the order in which they were named.

    p-values are multiplied by the number of concepts, since some of many would be significant by chance.

    Parameters
    ----------
    random_state : int, RandomState instance or None
    path : Path, optional
        The file to which they are saved, in addition to those that it has.
    """

    def __init__(self, random_state: Any, path: Path | None = None) -> None:
        self.named: list[NamedConcept] = []
        self.path, self._random = path, check_random_state(random_state)
        # Concepts of earlier visits stay in the file, also those of other embeddings.
        self._earlier = read_document(path)["concepts"] if path is not None and path.exists() else []

    def name(self, name: str, subject: Subject, examples: np.ndarray, by: Shown) -> NamedConcept:
        """Find the concept that tells some rows from all others, and its profile over the levels of a column.

        Parameters
        ----------
        name : str
        subject : Subject
            A subject whose model is an embedding on landmarks.
        examples : ndarray of int
        by : Shown
            A column of categories.
        """
        embedding, X = innermost(subject.model, subject.X)
        if not isinstance(embedding, KernelMap) or getattr(embedding, "landmarks_", None) is None:
            raise invalid_parameter(
                "model",
                type(embedding).__name__,
                "an embedding on landmarks, such as KernelEmbedding or one of `mercer embed`",
                "Concepts are directions of a representation.",
            )
        if not name.strip():
            raise invalid_parameter("name", name, "a few letters")
        X = np.asarray(X).reshape(len(X), -1)
        n_landmarks = min(TOP, len(embedding.landmarks_))
        others = np.setdiff1d(np.arange(len(X)), examples)
        sides = [self._some(side, MOST_EXAMPLES) for side in (examples, others)]
        concept = find_concept(embedding, X[sides[0]], X[sides[1]], name, random_state=self._random)
        rows = self._some_of_each(by.values)
        groups = np.array(by.levels)[by.values[rows].astype(int)]
        profile = concept_profile(
            embedding,
            X[rows],
            groups,
            X[sides[0]],
            X[sides[1]],
            n_random=N_RANDOM,
            n_landmarks=n_landmarks,
            n_concepts=len(self._earlier) + len(self.named) + 1,
            random_state=self._random,
        )
        drawn = len(sides[0]) < len(examples) or len(sides[1]) < len(others)
        self.named.append(NamedConcept(concept, embedding, profile, by.name, drawn))
        if self.path is not None:
            write_document(self.as_document(), self.path)
        return self.named[-1]

    def earlier(self, subject: Subject) -> list[Concept]:
        """Return the concepts in the file that belong to the embedding of a model.

        Parameters
        ----------
        subject : Subject
        """
        embedding = innermost(subject.model, None)[0]
        if self.path is None or not self._earlier or getattr(embedding, "landmarks_", None) is None:
            return []
        return read_concepts(self.path, embedding)

    def as_document(self) -> dict[str, Any]:
        """Return all concepts with their vectors, in the form that `mercer.explain.read_concepts` reads."""
        document = concepts_document([(named.concept, named.embedding) for named in self.named])
        return {**document, "concepts": [*self._earlier, *document["concepts"]]}

    def _some(self, rows: np.ndarray, most: int) -> np.ndarray:
        return rows if len(rows) <= most else np.sort(self._random.choice(rows, most, replace=False))

    def _some_of_each(self, codes: np.ndarray) -> np.ndarray:
        known = np.flatnonzero(np.isfinite(codes))
        return np.sort(
            np.concatenate([self._some(known[codes[known] == k], MOST_OF_A_GROUP) for k in np.unique(codes[known])])
        )


def concept_column(subject: Subject, concept: Concept) -> np.ndarray:
    """Return the influence of a concept on every row, as float32."""
    embedding, X = innermost(subject.model, subject.X)
    X = np.asarray(X).reshape(len(X), -1)
    return concept_influence(embedding, X, concept, min(TOP, len(embedding.landmarks_))).astype(np.float32)
