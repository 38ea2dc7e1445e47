"""Figure 1 of the paper: spectra of A^T A under preconditioners, drawn from existing results.

Run `python -m experiments.krepes.figures FOLDER [ONLY]`.
"""

import sys
from functools import partial
from typing import Any

import numpy as np

from experiments.figures import recorded, write_figures
from mercer.plots import SpectrumDisplay

from .cases import on
from .step_cases import DRAWS, PRECONDITIONERS, preconditioned


def spectra(data: str, loss: str) -> Any:
    """Draw the spectra of the first seed for the preconditioners that were run."""
    results = recorded("krepes")
    found = {}
    for name in PRECONDITIONERS:
        record = results.records.get((on(data, preconditioned(loss, name)), 0), {})
        if "measures" not in record:
            print(f"{data}, {loss}: preconditioner {name} was not run")
            continue
        text = record["measures"]["spectrum of A^T A"]
        # The figure depends on the singular values of A alone, so a diagonal matrix with these is enough.
        found[name] = np.diag(np.sqrt(np.array([float(value) for value in text.split()])))
    return SpectrumDisplay(found).plot().figure_


FIGURES = {
    f"figure-1-{DRAWS[data].name}-{loss}": partial(spectra, data, loss)
    for data in list(DRAWS)[1:]
    for loss in ("barlow_twins",)
}


if __name__ == "__main__":
    write_figures(FIGURES, sys.argv[1:])
