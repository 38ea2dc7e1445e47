"""What several tests of models of tables share."""

import pytest

from mercer.tabular_models import finish, learned, learning, many_rows, race


@pytest.fixture
def few_rows(monkeypatch):
    """Bounds on rows so small that a table of some hundred rows goes through every stage, leaves included."""
    for module in (finish, learned):
        monkeypatch.setattr(module, "METRIC_ROWS", 60)
    monkeypatch.setattr(learned, "JUDGE_ROWS", 60)
    for module in (finish, learned, race):
        monkeypatch.setattr(module, "SCREEN_ROWS", 40)
    for module in (learned, learning):
        monkeypatch.setattr(module, "MANY_ROWS", 100)
    monkeypatch.setattr(learning, "MOST_EXACT_ROWS", 100)
    for name, rows in (("LEAF_ROWS", 30), ("JUDGED_LEAF_ROWS", 30), ("FEW_DENSE_ROWS", 20), ("DENSE_ROWS", 30)):
        monkeypatch.setattr(many_rows, name, rows)
