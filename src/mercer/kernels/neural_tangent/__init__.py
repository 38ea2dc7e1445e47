"""The empirical neural tangent kernel, computed layer by layer without forming any gradient by all weights."""

from mercer.kernels.neural_tangent.kernel import NeuralTangent

__all__ = ["NeuralTangent"]
