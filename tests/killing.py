"""To kill a fit in the middle, as a user or a machine would."""

from contextlib import contextmanager

import pytest


@contextmanager
def killed_at(call, of, monkeypatch):
    """Expect an interrupt, which one of the calls of a view brings about; the view is then as before."""
    calls, usual = {"n": 0}, of.__call__

    def dies(self, batch, generator):
        calls["n"] += 1
        if calls["n"] == call:
            raise KeyboardInterrupt
        return usual(self, batch, generator)

    with monkeypatch.context() as patch:
        patch.setattr(of, "__call__", dies)
        with pytest.raises(KeyboardInterrupt):
            yield
