"""The learned metric M = L L^T: it is the identity, diagonal, full or of low rank, and says which inputs count."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.blocks import as_tensor, like_input
from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.linalg import squared_distances, squared_norms

# A matrix may differ from its transpose by this share of its largest entry, and have negative eigenvalues of this share
# of its largest eigenvalue: both are due to rounding.
ROUNDING = 1e-6
# The origin of a column is its mean if the square of the mean is more than this share of the column's mean square.
OFFSET_SHARE = 0.9
# Inputs with a smaller entry in a direction are not shown in its summary.
SMALLEST_SHOWN = 0.05


class ProjectedRows(NamedTuple):
    """Rows that are prepared for distances under a metric.

    Attributes
    ----------
    metric : Mahalanobis
    raw : tensor of shape (n, d)
        The rows x as they were given.
    rows : tensor of shape (n, r)
        The rows (x - origin) L.
    norms : tensor of shape (n,)
        The squared norms of `rows`.
    origin : tensor of shape (d,) or None
        A point near the rows, so that few digits are lost; None is zero.
    """

    metric: "Mahalanobis"
    raw: Tensor
    rows: Tensor
    norms: Tensor
    origin: Tensor | None


class Mahalanobis(BaseEstimator):
    """A pseudo-metric on rows, |x - z|_M = sqrt((x - z)^T M (x - z)) with M = L L^T.

    Parameters
    ----------
    factor : None, array of shape (d,) or array of shape (d, r), default=None
        L. None is the identity. A vector is the diagonal of L, the square roots of the diagonal of M. A matrix is L
        itself; if its width r is below d, M has low rank.

    Examples
    --------
    >>> from mercer import Mahalanobis
    >>> metric = Mahalanobis.from_matrix([[4.0, 0.0], [0.0, 1.0]])
    >>> float(metric.distance([[0.0, 0.0]], [[1.0, 0.0]])[0, 0])
    2.0
    """

    def __init__(self, factor: Any = None) -> None:
        self.factor = factor

    @classmethod
    def from_weights(cls, weights: Any) -> "Mahalanobis":
        """Return the diagonal metric M = diag(weights), such as that of ARD; no weight may be negative."""
        weights = np.asarray(weights, dtype=np.float64)
        if weights.ndim != 1 or not np.all(np.isfinite(weights)) or weights.min(initial=0.0) < 0:
            raise invalid_parameter("weights", weights, "a vector of finite numbers, none negative")
        return cls(np.sqrt(weights))

    @classmethod
    def from_matrix(cls, matrix: Any, rank: int | None = None) -> "Mahalanobis":
        """Return the metric of a symmetric matrix M, or of its `rank` leading directions.

        Eigenvalues that are slightly negative, because of rounding, count as zero. Directions whose eigenvalue is
        within the rounding error of the largest are left out, so that L has no more columns than necessary. O(d^3).
        """
        M = np.asarray(matrix, dtype=np.float64)
        if M.ndim != 2 or M.shape[0] != M.shape[1] or not np.all(np.isfinite(M)):
            raise invalid_parameter("matrix", M, "a square matrix of finite numbers")
        largest = np.abs(M).max(initial=0.0)
        if np.abs(M - M.T).max(initial=0.0) > ROUNDING * largest:
            raise invalid_parameter("matrix", M, "symmetric")
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        if values.min(initial=0.0) < -ROUNDING * np.abs(values).max(initial=0.0):
            raise invalid_parameter("matrix", M, "positive semi-definite", f"It has the eigenvalue {values.min():.3g}.")
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > len(M) * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0)
        if rank is not None:
            kept[check_count("rank", rank, at_least=0) :] = False
        return cls(np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept])))

    @classmethod
    def from_outer_products(cls, rows: Tensor) -> "Mahalanobis":
        """Return the metric M = sum_i g_i g_i^T of fewer rows g_i than columns, without forming M.

        The eigenvectors of M with eigenvalues above zero are combinations of the rows: G^T u, where u is an eigenvector
        of the small matrix G G^T for the same eigenvalue. O(n^2 d) time and O(nd) memory, where M would take O(d^3) and
        O(d^2).
        """
        G = rows.detach().to("cpu", torch.float64)
        values, vectors = torch.linalg.eigh(G @ G.T)
        values, vectors = values.flip(0), vectors.flip(1)
        kept = values > G.shape[1] * torch.finfo(G.dtype).eps * values[0].clamp(min=0.0)
        return cls((G.T @ vectors[:, kept]).contiguous().numpy())

    @property
    def kind(self) -> str:
        """'identity', 'diagonal', or 'full' for a metric of any rank."""
        if self.factor is None:
            return "identity"
        return "diagonal" if np.ndim(self.factor) == 1 else "full"

    @property
    def n_features(self) -> int | None:
        """The number d of inputs, or None for the identity, which takes any number."""
        return None if self.factor is None else int(np.shape(self.factor)[0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mahalanobis):
            return NotImplemented
        if self.factor is None or other.factor is None:
            return self.factor is other.factor
        return self.factor is other.factor or np.array_equal(self.factor, other.factor)

    __hash__ = None  # type: ignore[assignment]

    def project(self, X: Tensor) -> Tensor:
        """Return X L, the coordinates in which M is the Euclidean metric."""
        if self.factor is None:
            return X
        if X.shape[-1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[-1]} columns, but the metric was learned on {self.n_features}: they must be equal."
            )
        factor = self._factor_like(X)
        return X * factor if factor.ndim == 1 else X @ factor

    def pull_back(self, G: Tensor, *, overwrite: bool = False) -> Tensor:
        """Return G L^T, the gradients in x of functions whose gradients in the coordinates x L are the rows of G.

        With `overwrite`, the result may be written into G.
        """
        if self.factor is None:
            return G
        factor = self._factor_like(G)
        if factor.ndim == 1:
            return G.mul_(factor) if overwrite else G * factor
        return G @ factor.T

    def _factor_like(self, X: Tensor) -> Tensor:
        factor = as_tensor(self.factor, dtype=X.dtype, device=X.device)
        if factor.ndim not in (1, 2):
            raise invalid_parameter("factor", tuple(factor.shape), "None, of shape (d,) or of shape (d, r)")
        return factor

    def prepare(self, X: Tensor, beside: ProjectedRows | None = None) -> ProjectedRows:
        """Return what distances need of X alone; `beside` are the rows on the other side, whose origin is then used."""
        if beside is not None and beside.raw.shape[1] != X.shape[1]:
            raise ValueError(
                f"the two sets of rows have {X.shape[1]} and {beside.raw.shape[1]} columns: they must be equal."
            )
        # X is moved before it is projected, so that rounding errors are relative to the spread of the rows and not to
        # their offset.
        origin = _worthwhile_origin(X) if beside is None else beside.origin
        rows = self.project(X if origin is None else X - origin)
        return ProjectedRows(self, X, rows, squared_norms(rows), origin)

    def squared_distances(
        self, x: ProjectedRows, z: ProjectedRows, *, exact_small: bool = True, out: Tensor | None = None
    ) -> Tensor:
        """Return |x_i - z_j|_M^2 for all pairs of prepared rows, in `out` if that is given. O(nmr) time.

        With `exact_small`, distances that are too small for the expansion are computed from the differences of the
        given rows: projections of two equal rows by a matrix product may be rounded differently.
        """
        differences = (lambda i, j: self.project(x.raw[i] - z.raw[j])) if exact_small else None
        return squared_distances(x.rows, z.rows, x.norms, z.norms, differences=differences, out=out)

    def distance(self, X: Any, Z: Any = None) -> Any:
        """Return |x_i - z_j|_M for all pairs of rows of X and Z, or of X and X; NumPy in, NumPy out."""
        x = as_tensor(X)
        z = x if Z is None else as_tensor(Z, device=x.device)
        dtype = torch.promote_types(x.dtype, z.dtype)
        prepared = self.prepare(z.to(dtype))
        r2 = self.squared_distances(self.prepare(x.to(dtype), beside=prepared), prepared)
        return like_input(r2.sqrt_(), X, Z)

    def matrix(self, n_features: int | None = None) -> np.ndarray:
        """Return M of shape (d, d); only the identity needs `n_features`."""
        if self.factor is None:
            return np.eye(self._dimension(n_features))
        factor = self._numpy_factor()
        return np.diag(factor**2) if factor.ndim == 1 else factor @ factor.T

    def importances(self, n_features: int | None = None) -> np.ndarray:
        """Return the diagonal of M, scaled to sum 1, which says how much each input counts."""
        if self.factor is None:
            return np.full(self._dimension(n_features), 1.0 / self._dimension(n_features))
        factor = self._numpy_factor()
        diagonal = factor**2 if factor.ndim == 1 else (factor**2).sum(axis=1)
        total = diagonal.sum()
        return diagonal / total if total > 0 else diagonal

    def directions(
        self, n_directions: int | None = None, n_features: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the principal directions of M, as rows of length 1, and the share that each has of trace(M).

        A direction is a combination of inputs that the metric depends on. Its sign is such that the entry that is
        largest in absolute value is positive. A full metric has at most as many directions as L has columns.
        """
        if self.kind != "full":
            # The directions are the inputs themselves, so that no matrix needs to be decomposed.
            d = self._dimension(n_features) if self.factor is None else len(self._numpy_factor())
            weights = np.ones(d) if self.factor is None else self._numpy_factor() ** 2
            order = np.argsort(-weights, kind="stable")[:n_directions]
            rows = np.zeros((len(order), d))
            rows[np.arange(len(order)), order] = 1.0
            return rows, weights[order] / weights.sum() if weights.sum() > 0 else weights[order]
        rows, singular, _ = np.linalg.svd(self._numpy_factor(), full_matrices=False)
        values, rows = singular**2, rows.T
        rows = rows * np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])[:, None]
        shares = values / values.sum() if values.sum() > 0 else values
        return rows[:n_directions], shares[:n_directions]

    def normalized(self) -> "Mahalanobis":
        """Return the metric scaled to trace(M) = d, so that only the bandwidth of a kernel determines its scale.

        A metric that is zero is returned as it is.
        """
        if self.factor is None:
            return self
        factor = self.factor if isinstance(self.factor, Tensor) else np.asarray(self.factor, dtype=np.float64)
        trace = float((factor**2).sum().item())
        return Mahalanobis(factor * (len(factor) / trace) ** 0.5) if trace > 0 else self

    def summary(
        self,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = None,
        n_top: int = 5,
        n_directions: int = 2,
    ) -> str:
        """Return a text for people that lists the inputs and the combinations of inputs that count most."""
        if n_features is None and feature_names is not None:
            n_features = len(feature_names)
        importances = self.importances(n_features)
        d = len(importances)
        names = [f"x{i}" for i in range(d)] if feature_names is None else [str(name) for name in feature_names]
        if len(names) != d:
            raise invalid_parameter("feature_names", feature_names, f"a sequence of {d} names")
        width = max(len(name) for name in names)
        lines = [f"{self.kind} metric on {d} inputs"]
        for i in np.argsort(-importances, kind="stable")[:n_top]:
            lines.append(f"  {names[i]:<{width}}  {importances[i]:6.1%}  {'█' * round(40 * importances[i])}")
        if self.kind == "full":
            for row, share in zip(*self.directions(n_directions), strict=True):
                top = [i for i in np.argsort(-np.abs(row), kind="stable")[:n_top] if abs(row[i]) >= SMALLEST_SHOWN]
                terms = " ".join(f"{row[i]:+.2f} {names[i]}" for i in top)
                lines.append(f"  direction with {share:.1%} of the metric: {terms}")
        return "\n".join(lines)

    def _dimension(self, n_features: int | None) -> int:
        """Return the number of inputs of the identity, which has to be given."""
        if n_features is None:
            raise invalid_parameter("n_features", n_features, "the number of inputs", "The identity does not know it.")
        return check_count("n_features", n_features)

    def _numpy_factor(self) -> np.ndarray:
        factor = self.factor.detach().cpu().numpy() if isinstance(self.factor, Tensor) else np.asarray(self.factor)
        return factor.astype(np.float64)


def _worthwhile_origin(X: Tensor) -> Tensor | None:
    """Return the mean of the rows, or None if moving them would save no digits, since moving takes a copy.

    Each column is judged by itself, since the metric may depend on a column whose offset is small beside the numbers of
    other columns. The origin of a column stays zero if its mean is due to one very large number; otherwise all other
    numbers of the column would lose digits.
    """
    origin = X.mean(dim=0)
    worthwhile = origin.square() > OFFSET_SHARE * X.square().mean(dim=0)
    return torch.where(worthwhile, origin, 0.0) if bool(worthwhile.any()) else None


def check_metric(metric: Any, name: str = "metric") -> Mahalanobis:
    """Return `metric` as a Mahalanobis: None is the identity, a vector the diagonal of M, and a square matrix M."""
    if metric is None:
        return Mahalanobis()
    if isinstance(metric, Mahalanobis):
        return metric
    if isinstance(metric, (np.ndarray, list, tuple, torch.Tensor)):
        array = as_tensor(metric).detach().cpu().numpy().astype(np.float64)
        if array.ndim == 1:
            return Mahalanobis.from_weights(array)
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            return Mahalanobis.from_matrix(array)
    raise invalid_parameter(name, metric, "None, a Mahalanobis, a vector of d weights or a symmetric (d, d) matrix M")
