"""Tests of the papers' claims: one folder for each paper, and one runner for all of them."""

from experiments.claims import Claim, MissingResult, Results, Table, or_empty
from experiments.runner import Case, Experiment

__all__ = ["Case", "Claim", "Experiment", "MissingResult", "Results", "Table", "or_empty"]
