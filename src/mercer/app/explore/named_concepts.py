"""Selections that were named as concepts: the direction, its profile over groups, its influence on every row."""

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

# Rows of each side that linear machines are fitted on, rows of each group that a profile is averaged over, and random
# concepts that it is compared with: what a person does not have to wait for.
MOST_EXAMPLES, MOST_OF_A_GROUP, N_RANDOM = 1000, 1000, 99
# Landmarks of a row that count, N of the paper.
TOP = 5


class NamedConcept(NamedTuple):
    """A concept, its embedding, its profile, the column of the groups, and whether examples were drawn from more."""

    concept: Concept
    embedding: Any
    profile: ConceptProfile
    by: str
    drawn: bool

    def in_words(self) -> dict[str, Any]:
        """Return what the page shows."""
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

    p-values are multiplied by how many there are: who tries many finds some by chance.

    Parameters
    ----------
    random_state : int, RandomState instance or None
    path : Path, optional
        The file that they are kept in, beside those that it has.
    """

    def __init__(self, random_state: Any, path: Path | None = None) -> None:
        self.named: list[NamedConcept] = []
        self.path, self._random = path, check_random_state(random_state)
        # Those of an earlier visit stay in the file, whichever embedding they are of.
        self._earlier = read_document(path)["concepts"] if path is not None and path.exists() else []

    def name(self, name: str, subject: Subject, examples: np.ndarray, by: Shown) -> NamedConcept:
        """Return the concept that tells some rows from all others, with its profile over the levels of a column.

        Parameters
        ----------
        name : str
        subject : Subject
            Its model is an embedding on landmarks.
        examples : ndarray of int
        by : Shown
            A category.
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
        """Return the concepts of the file that are directions of a model's embedding.

        Parameters
        ----------
        subject : Subject
        """
        embedding = innermost(subject.model, None)[0]
        if self.path is None or not self._earlier or getattr(embedding, "landmarks_", None) is None:
            return []
        return read_concepts(self.path, embedding)

    def as_document(self) -> dict[str, Any]:
        """Return all concepts with their vectors, as `mercer.explain.read_concepts` reads them."""
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
    """Return what a concept does in every row, as float32."""
    embedding, X = innermost(subject.model, subject.X)
    X = np.asarray(X).reshape(len(X), -1)
    return concept_influence(embedding, X, concept, min(TOP, len(embedding.landmarks_))).astype(np.float32)
