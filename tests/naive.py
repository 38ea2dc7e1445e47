"""Naive twins: every formula once more in a few plain lines of float64, for the fast code to be equal to."""

import copy

import numpy as np
import scipy.linalg
import torch

from mercer.kernels import (
    Custom,
    Gaussian,
    Laplace,
    Linear,
    Matern32,
    Matern52,
    NeuralTangent,
    Polynomial,
    Product,
    ProductLaplace,
    ProductMatern32,
    RationalQuadratic,
    Scaled,
    Sum,
)


def metric_matrix(metric, d):
    """M = L L^T from the factor alone."""
    factor = None if metric is None else metric.factor
    if factor is None:
        return np.eye(d)
    L = np.diag(factor) if np.ndim(factor) == 1 else np.asarray(factor)
    return L @ L.T


def distance(x, z, M):
    """sqrt((x - z)^T M (x - z)), by loops."""
    total = 0.0
    for a in range(len(x)):
        for b in range(len(x)):
            total += (x[a] - z[a]) * M[a][b] * (x[b] - z[b])
    return max(total, 0.0) ** 0.5


def squared(x, z, M):
    return (x - z) @ M @ (x - z)


def radius(x, z, M):
    """The distance, with a derivative of zero where x = z."""
    r2 = squared(x, z, M)
    return r2.sqrt() if r2 > 0 else 0.0 * r2


def matern32(k, x, z, M):
    u = 3**0.5 * radius(x, z, M) / k.bandwidth
    return (1 + u) * torch.exp(-u)


def matern52(k, x, z, M):
    u = 5**0.5 * radius(x, z, M) / k.bandwidth
    return (1 + u + u**2 / 3) * torch.exp(-u)


def columns(k, x, z):
    """|x'_k - z'_k| for the columns of the projected rows, x' = x L."""
    factor = None if k.metric is None else k.metric.factor
    L = torch.eye(len(x), dtype=x.dtype) if factor is None else torch.as_tensor(np.asarray(factor))
    L = torch.diag(L) if L.ndim == 1 else L
    return ((x - z) @ L).abs() / k.bandwidth


def product_matern32(k, x, z, M):
    v = 3**0.5 * columns(k, x, z)
    return torch.prod((1 + v) * torch.exp(-v))


def tangent(k, x, z, M):
    """The inner product of the gradients of the network's output by all its weights, one by one."""
    factor = None if k.metric is None else k.metric.factor
    L = torch.eye(len(x), dtype=x.dtype) if factor is None else torch.as_tensor(np.asarray(factor))
    L = torch.diag(L) if L.ndim == 1 else L
    network = copy.deepcopy(k.network).double()
    ours, theirs = (torch.autograd.grad(network((row @ L)[None]).sum(), network.parameters()) for row in (x, z))
    return sum((a * b).sum() for a, b in zip(ours, theirs, strict=True))


# kernel class -> k(x, z) for two vectors under the metric matrix M, all of them float64 tensors
FORMULAS = {
    Gaussian: lambda k, x, z, M: torch.exp(-squared(x, z, M) / (2 * k.bandwidth**2)),
    Laplace: lambda k, x, z, M: torch.exp(-radius(x, z, M) / k.bandwidth),
    Matern32: matern32,
    Matern52: matern52,
    RationalQuadratic: lambda k, x, z, M: (1 + squared(x, z, M) / (2 * k.alpha * k.bandwidth**2)) ** -k.alpha,
    ProductLaplace: lambda k, x, z, M: torch.prod(torch.exp(-columns(k, x, z))),
    ProductMatern32: product_matern32,
    Polynomial: lambda k, x, z, M: (k.scale * (x @ M @ z) + k.offset) ** k.degree,
    Linear: lambda k, x, z, M: x @ M @ z + k.offset,
    Sum: lambda k, x, z, M: value(k.left, x, z) + value(k.right, x, z),
    Product: lambda k, x, z, M: value(k.left, x, z) * value(k.right, x, z),
    Scaled: lambda k, x, z, M: k.scale * value(k.kernel, x, z),
    NeuralTangent: tangent,
    Custom: lambda k, x, z, M: 1 / (1 + squared(x, z, M)),  # the function that the examples use
}


def value(kernel, x, z):
    """k(x, z) of two vectors; each kernel of a composition has its own metric."""
    assert type(kernel) in FORMULAS, (
        f"FORMULAS of tests/naive.py lacks {type(kernel).__name__}: write its formula there."
    )
    M = torch.from_numpy(metric_matrix(getattr(kernel, "metric", None), len(x)))
    return FORMULAS[type(kernel)](kernel, x, z, M)


def rows(X):
    return torch.tensor(np.asarray(X).astype(np.float64, order="C", copy=True))


def kernel_matrix(kernel, X, Z):
    return np.array([[value(kernel, x, z).item() for z in rows(Z)] for x in rows(X)])


def median_distance(X, M):
    """The median of the distances above zero."""
    distances = [distance(X[i], X[j], M) for i in range(len(X)) for j in range(i)]
    return np.median([r for r in distances if r > 0])


def gradient(kernel, x, Z, alpha):
    """The gradient at x of f(x) = sum_j alpha_j k(x, z_j), by autograd."""
    x = rows(x).requires_grad_()
    f = sum(a * value(kernel, x, z) for a, z in zip(rows(alpha), rows(Z), strict=True))
    return torch.autograd.grad(f, x)[0].numpy()


def gradients(kernel, X, Z, alpha):
    """The gradients of all outputs at all rows, of shape (n, c, d)."""
    return np.array([[gradient(kernel, x, Z, a) for a in np.asarray(alpha).T] for x in X])


def agop(kernel, X, Z, alpha):
    """The mean over rows of the outer products of the gradients, summed over outputs."""
    total = 0.0
    for outputs in gradients(kernel, X, Z, alpha):
        for g in outputs:
            total = total + np.outer(g, g)
    return total / len(X)


def ridge_fit(K, y, ridge, w):
    """The minimizer of sum_i w_i (y_i - (K a)_i)^2 + ridge a^T K a."""
    return np.linalg.solve(w[:, None] * K + ridge * np.eye(len(K)), (w * y.T).T)


def ridge_leave_one_out(K, y, ridge, w):
    """What each of n fits misses of the row that it has not seen, and the process's variance there."""
    misses, variances = [], []
    for i in range(len(K)):
        rest = [j for j in range(len(K)) if j != i]
        inner, beside = K[np.ix_(rest, rest)], K[i, rest]
        misses.append(y[i] - beside @ ridge_fit(inner, y[rest], ridge, w[rest]))
        explained = beside @ np.linalg.solve(inner + np.diag(ridge / w[rest]), beside)
        variances.append(K[i, i] + ridge / w[i] - explained)
    return np.array(misses), np.array(variances)


def generalized_eigenpairs(A, B):
    """All mu and v with A v = mu B v, the largest first."""
    values, vectors = scipy.linalg.eigh(A, B)
    return values[::-1], vectors[:, ::-1]
