"""Data frames with columns of any kind: an encoder that is saved without pickle, and any estimator on top of it."""

from mercer.tables.encoder import TableEncoder
from mercer.tables.model import TabularModel, tabular

__all__ = ["TableEncoder", "TabularModel", "tabular"]
