"""Every public estimator: four threads that fit at once give what one gives, and nothing of the process is changed."""

import random
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning as DistinctPointsWarning
from threadpoolctl import threadpool_info

import mercer
from mercer.embedding import Steps
from mercer.exceptions import ignored
from mercer.training import Recipe
from tests.test_estimators import ESTIMATORS, answer

THREADS = 4


def with_dropout():
    torch_before = torch.get_rng_state()
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.ReLU())
    torch.set_rng_state(torch_before)
    return network


FEW = Recipe(n_epochs=3, batch_size=10, keep="last")
LISTED = {type(estimator).__name__: estimator for estimator in ESTIMATORS}
LISTED |= {
    "MCR2": clone(LISTED["MCR2"]).set_params(recipe=FEW),
    "MCR2 with dropout": mercer.MCR2(backbone=with_dropout(), hidden=8, recipe=FEW, random_state=0),
    "ManifoldClustering with dropout": clone(LISTED["ManifoldClustering"]).set_params(backbone=with_dropout()),
    "KernelEmbedding by gradient": mercer.KernelEmbedding(
        "barlow_twins", n_components=2, solver=Steps(3, 10), random_state=0
    ),
    "SubspaceClustering of three": mercer.SubspaceClustering(n_clusters=3, n_iter=0, random_state=0),
}


def rows():
    generator = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = generator.normal(size=(30, 3)) + 2.0 * np.eye(3)[y]
    X[1::5] = X[0]  # copies, of which k-means would warn
    return X, y


def state_of_the_process():
    """Everything that a caller could notice afterwards."""
    return {
        "torch's generator": torch.get_rng_state().tolist(),
        "numpy's generator": str(np.random.get_state()),  # noqa: NPY002 the law is about the global generator
        "python's generator": random.getstate(),
        "threads of torch": torch.get_num_threads(),
        "threads of BLAS": [pool["num_threads"] for pool in threadpool_info()],
        "precision": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "warnings": list(warnings.filters),
        "numpy's errors": np.geterr(),
    }


def fitted_answer(estimator):
    X, y = rows()
    return np.asarray(answer(clone(estimator).fit(X, y), X), dtype=float)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LISTED)
def test_four_threads_fit_as_one_and_leave_the_process_as_it_was(name):
    estimator = LISTED[name]
    alone = fitted_answer(estimator)
    before = state_of_the_process()
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(fitted_answer, [estimator] * THREADS))
    after = state_of_the_process()
    assert {what for what in before if before[what] != after[what]} == set()
    for found in together:
        np.testing.assert_array_equal(found, alone)


def test_a_warning_is_ignored_inside_the_block_alone_whoever_leaves_last():
    before = list(warnings.filters)
    outer, inner = ignored(DistinctPointsWarning), ignored(UserWarning)
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.warn("still ignored", UserWarning, stacklevel=1)
    assert not seen
    inner.__exit__(None, None, None)
    assert list(warnings.filters) == before
