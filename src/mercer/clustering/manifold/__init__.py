"""Manifold linearizing and clustering: features and memberships learned together."""
