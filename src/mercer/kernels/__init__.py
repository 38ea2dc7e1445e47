"""Kernels k(x, z): functions that measure how similar two rows are, under a metric. Each file defines one kernel.

The line that imports a kernel here registers it. The kernel is then public, estimators accept its name in lower case,
model files save and load it by its name, the reference has a page for it, and the tests of all kernels cover it.
"""

import inspect
import re
from typing import Any

from mercer.exceptions import invalid_parameter
from mercer.kernels.base import GradientTerm as GradientTerm
from mercer.kernels.base import Kernel as Kernel
from mercer.kernels.base import LeafKernel
from mercer.kernels.composition import Product as Product
from mercer.kernels.composition import Scaled as Scaled
from mercer.kernels.composition import Sum as Sum
from mercer.kernels.coordinatewise import CoordinatewiseKernel as CoordinatewiseKernel
from mercer.kernels.coordinatewise import ProductLaplace as ProductLaplace
from mercer.kernels.coordinatewise import ProductMatern32 as ProductMatern32
from mercer.kernels.custom import Custom as Custom
from mercer.kernels.gaussian import Gaussian as Gaussian
from mercer.kernels.inner_product import InnerProductKernel as InnerProductKernel
from mercer.kernels.inner_product import Linear as Linear
from mercer.kernels.inner_product import Polynomial as Polynomial
from mercer.kernels.laplace import Laplace as Laplace
from mercer.kernels.matern import Matern32 as Matern32
from mercer.kernels.matern import Matern52 as Matern52
from mercer.kernels.neural_tangent import NeuralTangent as NeuralTangent
from mercer.kernels.precomputed import Precomputed as Precomputed
from mercer.kernels.radial import BandwidthKernel as BandwidthKernel
from mercer.kernels.radial import RadialKernel as RadialKernel
from mercer.kernels.radial import median_distance as median_distance
from mercer.kernels.rational_quadratic import RationalQuadratic as RationalQuadratic


def short_name(kind: type) -> str:
    """Return the name by which estimators accept a kernel class: "product_laplace" for ProductLaplace."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


def can_be_made_by_name(value: Any) -> bool:
    """Whether `value` is a concrete kernel class that has a metric and a default for every parameter."""
    if not isinstance(value, type) or not issubclass(value, LeafKernel) or inspect.isabstract(value):
        return False
    parameters = inspect.signature(value).parameters
    return "metric" in parameters and all(p.default is not p.empty for p in parameters.values())


SHORTHANDS: dict[str, type[Kernel]] = {
    short_name(value): value for _, value in sorted(globals().items()) if can_be_made_by_name(value)
}


def check_kernel(kernel: Any, bandwidth: float | str | None = None) -> Kernel:
    """Return `kernel` as a Kernel.

    A name such as "gaussian" gives that kernel with its default parameters, and a function of two sets of rows gives a
    `Custom` kernel. A `bandwidth` other than None replaces the bandwidth of the kernel, if the kernel has one.
    """
    if isinstance(kernel, str) and kernel in SHORTHANDS:
        kernel = SHORTHANDS[kernel]()
    elif callable(kernel) and not isinstance(kernel, (Kernel, type)):
        kernel = Custom(kernel)
    if not isinstance(kernel, Kernel):
        raise invalid_parameter(
            "kernel", kernel, [*SHORTHANDS], "A Kernel, or a callable of two sets of rows, is also allowed."
        )
    if bandwidth is None:
        return kernel
    return kernel.map_leaves(
        lambda leaf: leaf.with_params(bandwidth=bandwidth) if isinstance(leaf, BandwidthKernel) else leaf
    )


__all__ = sorted(
    name
    for name, value in globals().items()
    if name not in ("LeafKernel", "can_be_made_by_name", "short_name")
    and getattr(value, "__module__", "").startswith(__name__)
)
