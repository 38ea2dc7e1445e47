"""Kernels k(x, z) under a metric: a profile a kernel; knows no estimator."""

from typing import Any

from mercer.exceptions import invalid_parameter
from mercer.kernels.base import GradientTerm, Kernel
from mercer.kernels.composition import Product, Scaled, Sum
from mercer.kernels.coordinatewise import CoordinatewiseKernel, ProductLaplace, ProductMatern32
from mercer.kernels.custom import Custom
from mercer.kernels.gaussian import Gaussian
from mercer.kernels.inner_product import InnerProductKernel, Linear, Polynomial
from mercer.kernels.laplace import Laplace
from mercer.kernels.matern import Matern32, Matern52
from mercer.kernels.neural_tangent import NeuralTangent
from mercer.kernels.precomputed import Precomputed
from mercer.kernels.radial import BandwidthKernel, RadialKernel, median_distance

__all__ = [
    "BandwidthKernel",
    "CoordinatewiseKernel",
    "Custom",
    "Gaussian",
    "GradientTerm",
    "InnerProductKernel",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern32",
    "Matern52",
    "NeuralTangent",
    "Polynomial",
    "Precomputed",
    "Product",
    "ProductLaplace",
    "ProductMatern32",
    "RadialKernel",
    "Scaled",
    "Sum",
    "check_kernel",
    "median_distance",
]

SHORTHANDS: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "matern32": Matern32,
    "matern52": Matern52,
    "product_laplace": ProductLaplace,
    "product_matern32": ProductMatern32,
    "polynomial": Polynomial,
    "linear": Linear,
}


def check_kernel(kernel: Any, bandwidth: float | str | None = None) -> Kernel:
    """Return `kernel` as a Kernel: a short-hand such as "gaussian" becomes one with its defaults.

    A `bandwidth` other than None takes the place of the kernel's own, for kernels that have one.
    """
    if isinstance(kernel, str) and kernel in SHORTHANDS:
        kernel = SHORTHANDS[kernel]()
    elif callable(kernel) and not isinstance(kernel, (Kernel, type)):
        kernel = Custom(kernel)
    if not isinstance(kernel, Kernel):
        raise invalid_parameter(
            "kernel", kernel, [*SHORTHANDS], "A Kernel or a callable of two sets of rows will do too."
        )
    if bandwidth is None:
        return kernel
    return kernel.map_leaves(
        lambda leaf: leaf.with_params(bandwidth=bandwidth) if isinstance(leaf, BandwidthKernel) else leaf
    )
