"""The empirical tangent kernel of a network, layer by layer: no gradient by all weights is ever formed."""

from mercer.kernels.neural_tangent.kernel import NeuralTangent

__all__ = ["NeuralTangent"]
