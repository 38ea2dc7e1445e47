"""The papers' methods as their authors printed them: Mercer's own estimators with their settings, one file a paper.

The estimators' defaults differ from the papers where the data said so. Start here to reproduce a table, or to see what
the defaults add to the method as printed. The docstring of each function maps the paper's lines to our parameters.
"""

from mercer.papers.discriminant_note import kernel_discriminant
from mercer.papers.kernel_representations import krepes, krepes_search
from mercer.papers.manifold_linearizing_clustering import mlc, nmce
from mercer.papers.precision_subspace_clustering import ktrr, precision_clustering
from mercer.papers.rfm_and_ard import gp, gp_ard, gp_rfm, rfm, seventy_thirty

__all__ = [
    "gp",
    "gp_ard",
    "gp_rfm",
    "kernel_discriminant",
    "krepes",
    "krepes_search",
    "ktrr",
    "mlc",
    "nmce",
    "precision_clustering",
    "rfm",
    "seventy_thirty",
]
