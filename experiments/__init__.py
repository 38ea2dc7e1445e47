"""The papers' claims put to the test: one folder a paper, one runner for all of them."""

from experiments.claims import Claim, MissingResult, Results, Table, or_empty
from experiments.runner import Case, Experiment

__all__ = ["Case", "Claim", "Experiment", "MissingResult", "Results", "Table", "or_empty"]
