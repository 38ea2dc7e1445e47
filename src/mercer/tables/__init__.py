"""Data frames with columns of any kind: an encoder that is saved without pickle, and estimators that use it."""

from mercer.tables.encoder import TableEncoder
from mercer.tables.model import TabularModel, tabular

__all__ = ["TableEncoder", "TabularModel", "tabular"]
