"""What several tests of models of tables share."""

import pytest

from mercer.tabular_models import finish, learning, race


@pytest.fixture
def few_rows(monkeypatch):
    """Bounds on rows so small that a table of some hundred rows goes through every stage, leaves included."""
    for module in (finish, learning):
        monkeypatch.setattr(module, "METRIC_ROWS", 60)
    monkeypatch.setattr(learning, "JUDGE_ROWS", 60)
    for module in (finish, learning, race):
        monkeypatch.setattr(module, "SCREEN_ROWS", 40)
    monkeypatch.setattr(learning, "MOST_EXACT_ROWS", 100)
    monkeypatch.setattr(finish, "LEAF_ROWS", 30)
