"""Sums, products and multiples of kernels. Their derivatives follow from the derivatives of their parts."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from torch import Tensor

from mercer.checks import check_number
from mercer.kernels.base import GradientTerm, Kernel


class Pair(Kernel):
    """Two kernels on the same rows. A prepared set of rows is the pair of what each kernel has prepared."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right

    def prepare(self, X: Tensor, beside: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
        left, right = (None, None) if beside is None else beside
        return self.left.prepare(X, left), self.right.prepare(X, right)

    def map_leaves(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        return type(self)(self.left.map_leaves(function), self.right.map_leaves(function))

    def leaves(self) -> list[Kernel]:
        return self.left.leaves() + self.right.leaves()


class Sum(Pair):
    """The sum of two kernels, k(x, z) = left(x, z) + right(x, z), written `left + right`.

    Parameters
    ----------
    left, right : Kernel
    """

    def values(self, x: tuple[Any, Any], z: tuple[Any, Any], scratch: Tensor | None = None) -> Tensor:
        return self.left.values(x[0], z[0], scratch) + self.right.values(x[1], z[1])

    def prepared_diagonal(self, x: tuple[Any, Any]) -> Tensor:
        return self.left.prepared_diagonal(x[0]) + self.right.prepared_diagonal(x[1])

    def gradient_terms(self, x: tuple[Any, Any], z: tuple[Any, Any]) -> Iterable[GradientTerm]:
        return chain(self.left.gradient_terms(x[0], z[0]), self.right.gradient_terms(x[1], z[1]))


class Product(Pair):
    """The product of two kernels, k(x, z) = left(x, z) right(x, z), written `left * right`.

    Parameters
    ----------
    left, right : Kernel
    """

    def values(self, x: tuple[Any, Any], z: tuple[Any, Any], scratch: Tensor | None = None) -> Tensor:
        return self.left.values(x[0], z[0], scratch) * self.right.values(x[1], z[1])

    def prepared_diagonal(self, x: tuple[Any, Any]) -> Tensor:
        return self.left.prepared_diagonal(x[0]) * self.right.prepared_diagonal(x[1])

    def gradient_terms(self, x: tuple[Any, Any], z: tuple[Any, Any]) -> Iterator[GradientTerm]:
        for side, other in ((0, 1), (1, 0)):
            kernels = (self.left, self.right)
            factor = kernels[other].values(x[other], z[other])
            for term in kernels[side].gradient_terms(x[side], z[side]):
                yield term.scaled(factor)


class Scaled(Kernel):
    """A kernel multiplied by a number, k(x, z) = scale kernel(x, z), written `scale * kernel`.

    Parameters
    ----------
    kernel : Kernel
    scale : float
        A number at least 0.
    """

    def __init__(self, kernel: Kernel, scale: float) -> None:
        self.kernel = kernel
        self.scale = scale

    def _scale(self) -> float:
        return check_number("scale", self.scale, at_least=0.0)

    def prepare(self, X: Tensor, beside: Any = None) -> Any:
        return self.kernel.prepare(X, beside)

    def values(self, x: Any, z: Any, scratch: Tensor | None = None) -> Tensor:
        return self.kernel.values(x, z, scratch) * self._scale()

    def prepared_diagonal(self, x: Any) -> Tensor:
        return self.kernel.prepared_diagonal(x) * self._scale()

    def gradient_terms(self, x: Any, z: Any) -> Iterator[GradientTerm]:
        for term in self.kernel.gradient_terms(x, z):
            yield term.scaled(self._scale())

    def map_leaves(self, function: Callable[[Kernel], Kernel]) -> Kernel:
        return Scaled(self.kernel.map_leaves(function), self.scale)

    def leaves(self) -> list[Kernel]:
        return self.kernel.leaves()
