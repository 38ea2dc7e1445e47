"""Matrices of the size of the landmarks are worked on by one thread: two wait for each other longer than they work."""

import pytest
import torch
from sklearn.datasets import load_digits

from mercer import KernelEmbedding
from mercer.embedding import choices, kernel_embedding, problem

X = load_digits().data[:200] / 16.0


@pytest.mark.parametrize("n_rows", [10**9, 10])
def test_small_eigenproblems_have_one_thread(n_rows, monkeypatch):
    """Where the threshold of `linalg/threads.py` says that the landmarks are few, and only there."""
    monkeypatch.setattr("mercer.linalg.threads.FEW_ROWS", n_rows)
    monkeypatch.setattr("mercer.embedding.beginning.SEARCH_ROWS", 100)
    seen = []

    def looked_at(*arguments, **options):
        seen.append(torch.get_num_threads())
        return problem.halves_of(*arguments, **options)

    for place in (kernel_embedding, choices):
        monkeypatch.setattr(place, "halves_of", looked_at)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        KernelEmbedding(image_shape=(8, 8), n_landmarks=40, n_components=5, random_state=0).fit(X)
    finally:
        torch.set_num_threads(before)
    # Four kernels that are compared, and the one that is taken.
    assert seen == [1 if n_rows > 40 else 2] * 5
