"""Feature learning that gives the local covariance of self-expression a wanted shape (Alg. 1 and section 4.3)."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.checks import check_choice, check_count, check_number
from mercer.clustering.subspace.precision import (
    INVERSIONS,
    Projection,
    data_covariance,
    latent_covariance,
    projection_by,
)
from mercer.exceptions import invalid_parameter
from mercer.kernels import Kernel

# The local covariance that is shaped: of self-expression in the kernel's space, or of self-expression in the data.
COVARIANCES = {"latent": latent_covariance, "data": data_covariance}


class FeatureLearning(BaseEstimator, ABC):
    """How points are projected so that their self-expression has a local covariance of the wanted shape.

    A subclass defines the shape by its method `shaped`. Its attribute `space` says whether the covariance is that in
    the kernel's space or that mapped back to the data. The methods never change the object.
    """

    space: str

    @abstractmethod
    def shaped(self, covariance: Tensor) -> list[Projection]:
        """Return one or more projections to try that give a covariance the shape (Alg. 1, lines 5 to 9)."""

    def projections(self, kernel: Kernel, X: Tensor, K: Tensor, ridge: float) -> list[Projection]:
        """Return the projections of points to try next (Alg. 1, lines 3 to 9).

        Parameters
        ----------
        kernel : Kernel
            Its bandwidths must be numbers.
        X : tensor of shape (n, d)
            The points.
        K : tensor of shape (n, n)
            The kernel matrix of X.
        ridge : float
            The lambda of line 3, as an absolute number.
        """
        check_choice("space", self.space, tuple(COVARIANCES))
        return self.shaped(COVARIANCES[self.space](kernel, X, ridge, K=K))


class Precision(FeatureLearning):
    """Project by the inverse of the covariance, so that the covariance becomes isotropic.

    Self-expression is then equally sensitive in all directions. Directions that all points share are shrunk, and
    directions that distinguish subspaces are emphasized.

    Parameters
    ----------
    shrinkage : float, default=0.3
        The lambda of line 6. Variances far below it are treated alike.
    inversion : {"auto", "algorithm", "lemma"}, default="auto"
        How a variance D is inverted. "algorithm" is D / (D + lambda)^2 as in line 6, which also removes directions with
        a small variance. "lemma" is 1 / (D + lambda) as in Lemma 1. "auto" tries both, and the modularity of the
        clusters decides: line 6 suits faces, and the lemma suits digits and objects.
    relative : bool, default=True
        Whether `shrinkage` is a share of the largest variance.
    n_directions : int or None, default=None
        The number of directions that are kept, those with the largest weights (a target of low rank, section 4.3). None
        keeps all.
    space : {"latent", "data"}, default="latent"
        "latent" is the covariance of self-expression in the kernel's space, "data" that mapped back to the data.
    """

    def __init__(
        self,
        shrinkage: float = 0.3,
        *,
        inversion: str = "auto",
        relative: bool = True,
        n_directions: int | None = None,
        space: str = "latent",
    ) -> None:
        self.shrinkage = shrinkage
        self.inversion = inversion
        self.relative = relative
        self.n_directions = n_directions
        self.space = space

    def shaped(self, covariance: Tensor) -> list[Projection]:
        check_choice("inversion", self.inversion, ("auto", *INVERSIONS))
        shrinkage = check_number("shrinkage", self.shrinkage, above=0.0)
        D, U = _variances(covariance)
        strength = shrinkage * float(D[-1]) if self.relative else shrinkage
        tried = INVERSIONS if self.inversion == "auto" else (self.inversion,)
        return [projection_by(U, INVERSIONS[name](D, strength), _checked_rank(self.n_directions)) for name in tried]


class Covariance(FeatureLearning):
    """Project by the covariance itself: an elliptical target, long within subspaces and short across (section 4.3).

    Parameters
    ----------
    n_directions : int or None, default=None
        The number of directions that are kept, those with the largest variances. None keeps all.
    space : {"data", "latent"}, default="data"
        "data" is the covariance of self-expression mapped back to the data, "latent" that in the kernel's space.
    """

    def __init__(self, *, n_directions: int | None = None, space: str = "data") -> None:
        self.n_directions = n_directions
        self.space = space

    def shaped(self, covariance: Tensor) -> list[Projection]:
        D, U = _variances(covariance)
        return [projection_by(U, D, _checked_rank(self.n_directions))]


def _variances(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """Return the variances in ascending order, without negative ones, and their directions (Alg. 1, line 5)."""
    D, U = torch.linalg.eigh(covariance)
    return D.clamp_(min=0.0), U


def _checked_rank(n_directions: int | None) -> int | None:
    return None if n_directions is None else check_count("n_directions", n_directions)


SHORTHANDS: dict[str, type[FeatureLearning]] = {"precision": Precision, "covariance": Covariance}


def check_feature_learning(feature_learning: Any) -> FeatureLearning | None:
    """Return a FeatureLearning; a name such as "precision" stands for one with its defaults, and "none" for None."""
    if isinstance(feature_learning, str) and feature_learning in SHORTHANDS:
        return SHORTHANDS[feature_learning]()
    if isinstance(feature_learning, str) and feature_learning == "none":
        return None
    if not isinstance(feature_learning, FeatureLearning):
        allowed = [*SHORTHANDS, "none"]
        raise invalid_parameter("feature_learning", feature_learning, allowed, "A FeatureLearning is also allowed.")
    return feature_learning
