"""The interface of all kernels: matrix, diagonal, derivatives, and new kernels that are made from a kernel."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, like_input
from mercer.exceptions import invalid_parameter
from mercer.linalg import threads_on
from mercer.mahalanobis import Mahalanobis, check_metric
from mercer.rows.loop import write_by_rows

# Number of temporary matrices of a block's shape, (rows, m), that exist at once. It determines the rows of a block.
TEMPORARIES = 4
# Largest number of entries of alpha_c o Z that are held at once. If there are more, the outputs c are divided.
MOST_SCALED = 2**23


class GradientTerm(NamedTuple):
    """One term of a kernel's derivative, dk(x_i, z_j)/dx_i = L (P_ij z'_j - Q_ij x'_i), where x' = x L.

    The fields `x` and `z` hold the rows x' and z'. Radial kernels have P = Q, as the same tensor; inner-product kernels
    have Q = None, which stands for zero.
    """

    metric: Mahalanobis
    P: Tensor
    Q: Tensor | None
    x: Tensor
    z: Tensor

    def sums(self, alpha: Tensor) -> Tensor:
        """Return sum_j alpha_jc dk(x_i, z_j)/dx_i in the coordinates x L, of shape (n, c, r).

        (P o alpha_c^T) Z = P (alpha_c o Z). Either the columns of P or the rows of Z are scaled, whichever is smaller,
        so that one matrix product serves all outputs c. For wide rows, scaled copies of Z would take most of the memory
        of a fit.
        """
        n, c, r = len(self.x), alpha.shape[1], self.z.shape[1]
        pushed: Tensor | None
        if n < r:
            weighted = (self.P[:, None, :] * alpha.T).flatten(0, 1)
            gradients = (weighted @ self.z).unflatten(0, (n, c))
            pushed = None if self.Q is None else self.Q @ alpha
        else:
            step = max(1, MOST_SCALED // max(1, self.z.numel()))
            if c > step:
                return torch.cat([self.sums(part) for part in alpha.split(step, dim=1)], dim=1)
            scaled = (alpha[:, :, None] * self.z[:, None, :]).flatten(1)
            if self.Q is self.P:
                # The row sums of P o alpha_c are computed by the same product, as extra columns.
                product = self.P @ torch.cat([scaled, alpha], dim=1)
                pulled, pushed = product[:, : c * r], product[:, c * r :]
            else:
                pulled = self.P @ scaled
                pushed = None if self.Q is None else self.Q @ alpha
            gradients = pulled.unflatten(1, (c, r))
        # In place, since nothing else uses the product, and a copy would be as large as the result.
        return gradients if pushed is None else gradients.addcmul_(pushed[:, :, None], self.x[:, None, :], value=-1.0)

    def scaled(self, factor: Any) -> "GradientTerm":
        """Return the term multiplied by a number, or elementwise by a matrix of the shape of P."""
        P = self.P * factor
        Q = P if self.Q is self.P else None if self.Q is None else self.Q * factor
        return self._replace(P=P, Q=Q)


# Fields of a prepared set that have one entry for each row.
OF_ROWS = ("raw", "rows", "norms")


def rows_of(prepared: Any, index: slice) -> Any:
    """Return the rows at `index` of a prepared set, or of a pair of prepared sets."""
    if hasattr(prepared, "_fields"):
        return prepared._replace(
            **{name: getattr(prepared, name)[index] for name in OF_ROWS if hasattr(prepared, name)}
        )
    return tuple(rows_of(part, index) for part in prepared)


class Kernel(BaseEstimator, ABC):
    """A positive semi-definite function k(x, z) of two rows.

    A kernel is a value: its methods return new kernels and never change it. It is evaluated in two steps, so that the
    work that depends on one side alone is done once. `prepare` maps the rows to the coordinates of the metric, and
    `values` and `gradient_terms` combine two prepared sides. New kernels are most easily derived from `RadialKernel`,
    `InnerProductKernel` or `CoordinatewiseKernel`, which implement all of this, or made by `Custom` from a function.
    """

    @abstractmethod
    def prepare(self, X: Tensor, beside: Any = None) -> Any:
        """Compute what depends on X alone. If the other side is prepared, it is `beside`, and X gets its origin."""

    @abstractmethod
    def values(self, x: Any, z: Any, scratch: Tensor | None = None) -> Tensor:
        """Return k between two prepared sets, differentiable by torch unless `scratch` is given.

        A kernel may use `scratch`, of shape (n, m), for intermediate values and for the result.
        """

    @abstractmethod
    def prepared_diagonal(self, x: Any) -> Tensor:
        """Return k(x_i, x_i) for a prepared set."""

    @abstractmethod
    def gradient_terms(self, x: Any, z: Any) -> Iterable[GradientTerm]:
        """Return the terms of dk/dx between two prepared sets, as a list or, if there are many, one at a time."""

    def values_and_terms(self, x: Any, z: Any) -> tuple[Tensor, Iterable[GradientTerm]]:
        """Return k and the terms of dk/dx between two prepared sets. Subclasses may share work between the two."""
        return self.values(x, z), self.gradient_terms(x, z)

    @abstractmethod
    def map_leaves(self, function: Callable[["Kernel"], "Kernel"]) -> "Kernel":
        """Return the kernel with `function` applied to each of the kernels that it is composed of."""

    @abstractmethod
    def leaves(self) -> list["Kernel"]:
        """Return the kernels that this one is composed of, or itself if it is not composed."""

    @property
    def has_closed_form_gradient(self) -> bool:
        """Whether the kernel has `gradient_terms`. If not, gradients are computed by autograd."""
        return all(leaf.has_closed_form_gradient for leaf in self.leaves())

    @property
    def may_run_in_threads(self) -> bool:
        """Whether several blocks may be evaluated at once, each in its own Python thread."""
        return all(leaf.may_run_in_threads for leaf in self.leaves())

    @property
    def has_gradient_weights(self) -> bool:
        """Whether the kernel has `gradient_weights`, one pair (P, Q) and one metric for the whole kernel."""
        return (
            self.has_closed_form_gradient
            and all(leaf.has_gradient_weights for leaf in self.leaves())
            and self.common_metric() is not None
        )

    # ---- evaluation -------------------------------------------------------------------------------------------

    def matrix(self, X: Any, Z: Any = None, *, working_memory: float = WORKING_MEMORY) -> Any:
        """Return k(x_i, z_j) for all pairs of rows, computed by row blocks.

        Parameters
        ----------
        X : array-like of shape (n, d)
        Z : array-like of shape (m, d), optional
            X itself by default.
        working_memory : float, default=64.0
            MiB for the temporaries of one block, beside the result.

        Returns
        -------
        matrix of shape (n, m)
            A tensor if X or Z is one, else a NumPy array; float32 if both are, else float64.
        """
        z = rows_as_tensor("X" if Z is None else "Z", X if Z is None else Z)
        dtype, device = z.dtype, z.device
        if Z is not None:
            dtype, device = common_type(X, z)
            z = z.to(dtype=dtype, device=device)
            check_same_columns(X, z)
        prepared = self.prepare(z)
        source = z if Z is None else X if hasattr(X, "shape") else rows_as_tensor("X", X)
        out = torch.empty((source.shape[0], len(z)), dtype=dtype, device=device)
        bytes_per_row = block_numbers(*z.shape) * out.element_size()
        factors = [getattr(getattr(leaf, "metric", None), "factor", None) for leaf in self.leaves()]
        inputs = [value for value in (X, Z, *factors) if isinstance(value, Tensor)]
        differentiated = torch.is_grad_enabled() and any(value.requires_grad for value in inputs)
        is_half = Z is None and not differentiated

        def write(rows: slice, x: Tensor) -> None:
            # Of the same rows twice, a block and those after it are enough: the others are mirrored.
            first = rows.start if is_half else 0
            other = prepared if first == 0 else rows_of(prepared, slice(first, None))
            own = rows_of(other, slice(0, len(x))) if is_half else self.prepare(x, beside=prepared)
            part = out[rows, first:]
            block = self.values(own, other, None if differentiated else part)
            if block.data_ptr() != part.data_ptr():
                part.copy_(block)
            if is_half:
                out[rows.stop :, rows] = part[:, len(x) :].T

        write_by_rows(
            write,
            source,
            bytes_per_row=bytes_per_row,
            working_memory=working_memory,
            dtype=dtype,
            device=device,
            n_threads=1 if differentiated else threads_of(self, device),
        )
        if Z is None:
            # Rounding in the distances must not make a row less like itself than like a copy of it.
            out.diagonal().copy_(self.prepared_diagonal(prepared))
        return like_input(out, X, Z)

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """Return `matrix(X, Z)`, so that a kernel can be used wherever scikit-learn accepts a kernel function."""
        return self.matrix(X, Z)

    def diagonal(self, X: Any) -> Any:
        """Return k(x_i, x_i) for each row, without computing the matrix."""
        x = rows_as_tensor("X", X)
        return like_input(self.prepared_diagonal(self.prepare(x)), X)

    def gradient_weights(self, X: Any, Z: Any = None) -> tuple[Any, Any]:
        """Return P and Q with dk(x_i, z_j)/dx_i = M (P_ij z_j - Q_ij x_i), both of shape (n, m).

        Radial kernels have P = Q = -2 phi'(r^2), and inner-product kernels have P = phi'(s) and Q = 0. Those of sums,
        products and multiples of kernels follow if all parts have the same metric M; if not, it is an error.
        """
        self.single_metric()
        x = rows_as_tensor("X", X)
        other = x if Z is None else rows_as_tensor("Z", Z)
        check_same_columns(x, other)
        dtype = torch.promote_types(x.dtype, other.dtype)
        x, z = x.to(dtype), self.prepare(other.to(dtype=dtype, device=x.device))
        terms = list(self.gradient_terms(self.prepare(x, beside=z), z))
        P, Q = torch.zeros_like(terms[0].P), torch.zeros_like(terms[0].P)
        for term in terms:
            P += term.P
            if term.Q is not None:
                Q += term.Q
        return like_input(P, X, Z), like_input(Q, X, Z)

    # ---- new kernels from this one ----------------------------------------------------------------------------

    def with_params(self, **params: Any) -> "Kernel":
        """Return a copy of the kernel with some parameters replaced; `left__bandwidth` is that of a part."""
        return replaced(self, params)

    def with_metric(self, metric: Any) -> "Kernel":
        """Return the kernel with another metric, for all kernels that it is composed of."""
        return self.map_leaves(lambda leaf: leaf.with_params(metric=metric))

    def single_metric(self) -> Mahalanobis:
        """Return the metric of the kernel; an error if it is composed of kernels with different metrics."""
        metrics = [check_metric(leaf.metric) for leaf in self.leaves()]
        if any(metric != metrics[0] for metric in metrics):
            raise ValueError(
                f"{self!r} has terms with different metrics: a kernel with one metric is needed here. "
                "kernel.with_metric(...) gives all terms the same."
            )
        return metrics[0]

    def common_metric(self) -> Mahalanobis | None:
        """Return the metric of the kernel, or None if it is composed of kernels with different metrics."""
        try:
            return self.single_metric()
        except ValueError:
            return None

    def resolved(self, X: Any, random_state: Any = None) -> "Kernel":
        """Return the kernel with numbers for all bandwidths: "median" becomes the median distance between rows of X."""
        return self.map_leaves(lambda leaf: leaf.resolved(X, random_state))

    def rescaled(self, factor: float) -> "Kernel":
        """Return the kernel with every bandwidth multiplied by `factor`. The bandwidths must be numbers."""
        return self.map_leaves(lambda leaf: leaf.rescaled(factor))

    def matrices(self, X: Tensor) -> Callable[[float], Tensor]:
        """Return the function factor -> `rescaled(factor).matrix(X)`. Subclasses may share work between factors."""
        return lambda factor: self.rescaled(factor).matrix(X)

    def __add__(self, other: Any) -> "Kernel":
        from mercer.kernels.composition import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
        from mercer.kernels.composition import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, (int, float)) else NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Whether both kernels are of the same class and have equal parameters."""
        if type(self) is not type(other):
            return NotImplemented
        ours, theirs = self.get_params(deep=False), other.get_params(deep=False)
        if "metric" in ours:
            ours["metric"], theirs["metric"] = check_metric(ours["metric"]), check_metric(theirs["metric"])
        return ours == theirs

    __hash__ = None  # type: ignore[assignment]


class LeafKernel(Kernel):
    """A kernel that is not composed of other kernels and has a metric of its own."""

    metric: Any

    def map_leaves(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        return function(self)

    def leaves(self) -> list[Kernel]:
        return [self]

    def with_metric(self, metric: Any) -> Kernel:
        return self.with_params(metric=metric)

    def resolved(self, X: Any, random_state: Any = None) -> Kernel:
        return clone(self)

    def rescaled(self, factor: float) -> Kernel:
        return clone(self)

    @property
    def has_closed_form_gradient(self) -> bool:
        return True

    @property
    def may_run_in_threads(self) -> bool:
        return True

    @property
    def has_gradient_weights(self) -> bool:
        return self.has_closed_form_gradient


def replaced(value: Any, params: dict[str, Any]) -> Any:
    """Return a copy of `value` with some parameters replaced, including nested ones such as `left__bandwidth`."""
    result = copy.copy(value)
    known = value.get_params(deep=False)
    nested: dict[str, dict[str, Any]] = {}
    for name, new in params.items():
        outer, _, inner = name.partition("__")
        if outer not in known:
            raise invalid_parameter("parameter", name, list(known))
        if inner:
            nested.setdefault(outer, {})[inner] = new
        else:
            setattr(result, name, new)
    for outer, inner_params in nested.items():
        setattr(result, outer, replaced(getattr(result, outer), inner_params))
    return result


def block_numbers(m: int, d: int) -> int:
    """Return how many temporary numbers one row of a block takes: values with m rows, and copies of its d columns."""
    return TEMPORARIES * m + 3 * d


def threads_of(kernel: Kernel, device: torch.device | str | None) -> int:
    """Return how many blocks of a kernel's values may be evaluated side by side on a device."""
    return threads_on(device) if kernel.may_run_in_threads else 1


def rows_as_tensor(name: str, X: Any) -> Tensor:
    """Return rows as a two-dimensional tensor, or raise an error that names the parameter."""
    x = as_tensor(X)
    if x.ndim != 2:
        raise invalid_parameter(name, tuple(x.shape), "of shape (rows, columns)", f"Got shape {tuple(x.shape)}.")
    return x


def common_type(X: Any, z: Tensor) -> tuple[torch.dtype, torch.device]:
    """Return the precision that holds both sides, and the device of the side that is a tensor."""
    if isinstance(X, Tensor):
        return torch.promote_types(as_tensor(X[:0]).dtype, z.dtype), X.device
    dtype = as_tensor(X[:0] if hasattr(X, "shape") else X).dtype
    return torch.promote_types(dtype, z.dtype), z.device


def check_same_columns(X: Any, z: Tensor) -> None:
    """Raise an error if X and Z have different numbers of columns."""
    shape = tuple(X.shape) if hasattr(X, "shape") else tuple(as_tensor(X).shape)
    if len(shape) != 2 or shape[1] != z.shape[1]:
        raise ValueError(
            f"X has shape {shape} and Z has shape {tuple(z.shape)}: both must be (rows, columns) with equal columns."
        )
