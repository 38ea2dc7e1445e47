"""Subspace clustering and manifold clustering, and the steps that they share: affinities and spectral clustering."""
