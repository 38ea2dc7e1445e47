"""The papers' methods as their authors printed them: our estimators with the printed settings, one file a paper.

The estimators' defaults differ from the papers where the data said so. Start here to reproduce a table, or to see what
the defaults add to the method as printed. The docstring of each function is a table from the paper's lines to our
parameters.
"""

from mercer.papers.precision_subspace_clustering import ktrr, precision_clustering

__all__ = [
    "ktrr",
    "precision_clustering",
]
