"""Clusters by what expresses what: self-expression, learned features, the spectral step."""
