"""Checks that the schemas of several families share."""

from mercer.io.objects import plain
from mercer.io.schema import Check, count, each, mapping, text

D: dict[str, Check] = {"n_features_in_": count("d", at_least=1)}
HISTORY: dict[str, Check] = {"history_": each("?", mapping(text, plain))}
