"""Manifold clustering: features and memberships that are learned together."""
