"""The methods of the papers as printed: Mercer's estimators with the settings of the authors, one file per paper.

The defaults of the estimators differ from the papers where measurements showed that other settings are better. These
functions reproduce the tables of the papers, and show what the defaults add to the printed methods. The docstring of
each function maps the lines of the paper to our parameters.
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
