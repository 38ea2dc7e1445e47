"""Kernel discriminant analysis: a supervised map and a classifier."""

from mercer.discriminant.kernel_discriminant import KernelDiscriminant

__all__ = ["KernelDiscriminant"]
