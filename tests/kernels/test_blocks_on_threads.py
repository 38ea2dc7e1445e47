"""Blocks of rows side by side: what several Python threads write is what one writes."""

import threading

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer.kernels import Custom, Gaussian, Laplace, NeuralTangent
from mercer.landmarks.features import landmark_features
from mercer.rows.loop import write_by_rows
from tests.examples_of import DIFFERENTIABLE, KERNELS

X = np.random.default_rng(0).normal(size=(900, 6))
SMALL = 0.5  # MiB, so that there are many blocks


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(2.0), Gaussian(1.0) + Laplace(3.0)], ids=repr)
@pytest.mark.parametrize("others", [None, X[:50]], ids=["its own rows", "landmarks"])
def test_kernel_matrix(two_threads, kernel, others):
    one_block = kernel.matrix(X, others, working_memory=1000)
    assert_allclose(kernel.matrix(X, others, working_memory=SMALL), one_block, rtol=0, atol=1e-12)
    assert torch.get_num_threads() == 2


# A tangent kernel differentiates its network, which torch refuses in inference mode.
MODES = [(name, torch.no_grad) for name in KERNELS] + [(name, torch.inference_mode) for name in DIFFERENTIABLE]


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_threads_record_operations_where_the_caller_does(two_threads, name, mode):
    rows, landmarks = (torch.from_numpy(part.copy()).requires_grad_() for part in (X, X[:50]))
    kernel = KERNELS[name].resolved(X)
    with mode():
        found = kernel.matrix(rows, landmarks, working_memory=0.1)
    assert not found.requires_grad
    assert_allclose(found.numpy(), kernel.matrix(X, X[:50]), rtol=0, atol=1e-12)


def test_functions_of_the_user_and_networks_run_in_one_thread():
    network = NeuralTangent(torch.nn.Linear(6, 1))
    custom = Custom(lambda x, z: x @ z.T)
    assert not any(kernel.may_run_in_threads for kernel in (custom, network, Gaussian(1.0) + custom, 2.0 * network))
    assert all(kernel.may_run_in_threads for kernel in (Gaussian(1.0), Gaussian(1.0) * Laplace(2.0)))


def test_features(two_threads):
    Z, A, bias = (torch.from_numpy(array) for array in (X[:40], X[:40, :3].copy(), X[0, :3].copy()))
    found = landmark_features(Gaussian(2.0), X, Z, A, bias, working_memory=0.1)
    expected = Gaussian(2.0).matrix(X, X[:40]) @ A.numpy() + bias.numpy()
    assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)


def test_many_blocks_have_many_threads_and_few_have_one():
    met = threading.Barrier(2, timeout=30)
    seen = []

    def write(rows, x):
        seen.append(rows)
        met.wait()  # passes only if two blocks are written at once

    write_by_rows(write, X, bytes_per_row=2**20 // 300, working_memory=1.5, n_threads=2)
    assert sorted(rows.start for rows in seen) == [0, 225, 450, 675]
    threads = []
    write_by_rows(
        lambda rows, x: threads.append(threading.get_ident()), X, bytes_per_row=2**10, working_memory=0.7, n_threads=2
    )
    assert set(threads) == {threading.get_ident()}


def test_an_error_in_a_block_reaches_the_caller():
    def write(rows, x):
        raise ValueError(f"rows {rows.start}")

    with pytest.raises(ValueError, match="rows"):
        write_by_rows(write, X, bytes_per_row=2**10, working_memory=0.01, n_threads=2)
