"""Subspace clustering by self-expression under a learned precision matrix."""
