"""MLC and NMCE as printed, against twins that follow Algorithm 1 line by line with autograd and plain matrices."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from mercer.clustering.manifold import nmce as nmce_module
from mercer.clustering.manifold.manifold_clustering import ManifoldClustering
from mercer.clustering.manifold.nmce import NMCE, SHARPNESS
from mercer.metrics import clustering_accuracy
from mercer.networks.heads import Entrance, standardization
from mercer.papers import mlc, nmce
from mercer.papers.manifold_linearizing_clustering import AUGMENTATION, SECOND, START, TABLE_6
from mercer.training import Recipe
from tests.examples_of import numbers

N, D, K = 40, 3, 2


def two_lines(seed=0):
    """Samples near two lines through the origin, of both signs, and two views of each."""
    random = np.random.default_rng(seed)
    places = random.uniform(0.5, 1.5, (N, 1)) * random.choice([-1.0, 1.0], (N, 1))
    X = places * np.repeat(np.eye(D)[:K], N // K, axis=0)
    return X, [X + 0.05 * numbers(N, D, seed=seed) for seed in (1, 2)]


X, VIEWS = two_lines()
SMALL = {"backbone": None, "n_components": 3, "hidden": 6, "standardize": False, "random_state": 0}
STEPS = {"batch_size": 1024, "keep": "last"}
LARS_STEPS = Recipe(n_epochs=4, optimizer="lars", learning_rate=0.3, final_learning_rate=0.3, **STEPS)
SGD_STEPS = Recipe(
    n_epochs=5,
    optimizer="sgd",
    learning_rate=1e-2,
    final_learning_rate=1e-2,
    momentum=0.9,
    weight_decay=5e-4,
    **STEPS,
)


def unit(V):
    return V / V.norm(dim=1, keepdim=True)


def head_of(weights, x):
    """An affine map, a ReLU, an affine map, and length 1."""
    A, a, B, b = weights
    return unit(torch.relu(x @ A.T + a) @ B.T + b)


def rate(Z, epsilon):
    n, d = Z.shape
    return torch.logdet(torch.eye(d) + d / (n * epsilon**2) * Z.T @ Z)


def doubly_stochastic(S, eta, n_steps=300):
    """Sinkhorn's scaling of exp(S / η), unrolled."""
    K = (S / eta).exp()
    u = torch.ones(len(K))
    for _ in range(n_steps):
        u = (u / (K @ u)).sqrt()
    return u[:, None] * K * u


def lars(weights, momenta, rate=0.3, momentum=0.9, trust=1e-3):
    """One step; of matrices in proportion to their length, of biases as they are."""
    for w, m in zip(weights, momenta, strict=True):
        g = w.grad * (trust * w.norm() / w.grad.norm() if w.ndim > 1 else 1.0)
        m.mul_(momentum).add_(g.detach())
        w.data -= rate * m


def sgd(weights, momenta, rate=1e-2, momentum=0.9, decay=5e-4):
    for w, m in zip(weights, momenta, strict=True):
        m.mul_(momentum).add_(w.grad + decay * w.data)
        w.data -= rate * m


def steps(weights, loss, update, n_steps):
    momenta = [torch.zeros_like(w) for w in weights]
    for _ in range(n_steps):
        for w in weights:
            w.grad = None
        loss().backward()
        update(weights, momenta)


def drawn_weights(model):
    """The heads as the estimator draws them, and the views as it standardizes them."""
    center, scale = standardization(X, (D,), False)
    model.sample_shape_, model.seed_ = (D,), int(np.random.RandomState(0).randint(2**31 - 1))
    network = model._network(Entrance(center, scale))
    weights = [w.detach().clone().requires_grad_() for w in network.feature_head.parameters()]
    return weights, [torch.tensor((V - center) / scale).float() for V in (X, *VIEWS)]


def started(weights, views, n_steps):
    """Line 1, objective (5): λ is the largest value that R can have."""
    epsilon = math.sqrt(0.2)
    agreement = 3 * math.log(1 + 1 / epsilon**2)

    def loss():
        Z, other = (head_of(weights, view) for view in views)
        return -rate((Z + other) / 2, epsilon) - agreement * (Z * other).sum(dim=1).abs().mean()

    steps(weights, loss, lars, n_steps)


def test_mlc_is_algorithm_1():
    model = mlc(K, **SMALL, start_recipe=LARS_STEPS, recipe=SGD_STEPS)
    heads, (x, *views) = drawn_weights(mlc(K, **SMALL))
    started(heads, views, 4)
    codes = [w.detach().clone().requires_grad_() for w in heads]  # line 2

    def loss():  # lines 5 to 7
        Z = unit(sum(head_of(heads, view) for view in views) / 2)
        P = sum(doubly_stochastic((C := head_of(codes, view)) @ C.T, 0.175) for view in views) / 2
        n, d, epsilon = len(Z), 3, math.sqrt(0.1)
        terms = [torch.logdet(torch.eye(d) + d / epsilon**2 * Z.T @ torch.diag(P[:, j]) @ Z) for j in range(n)]
        return -(rate(Z, epsilon) - sum(terms) / n - 0.05 / 2 * P.square().sum())

    steps([*heads, *codes], loss, sgd, 5)  # lines 3 to 9: a batch updates both heads
    model.fit_views(X, *VIEWS)
    Z = head_of(heads, x).detach().numpy()
    np.testing.assert_allclose(model.transform(X), Z, atol=2e-3)
    np.testing.assert_allclose(model.codes_, head_of(codes, x).detach().numpy(), atol=2e-3)
    # Line 10: no sample is moved after it.
    C = head_of(codes, x).detach()
    P = doubly_stochastic(C @ C.T, 0.175).double()
    np.testing.assert_allclose(model.membership(X), P, atol=2e-3)
    vectors = unit(torch.linalg.eigh(P).eigenvectors[:, -K:])
    labels = KMeans(K, n_init=10, random_state=0).fit(vectors.numpy()).labels_
    assert clustering_accuracy(labels, model.labels_) == 1.0
    assert model.stage_ == "final"
    assert model.eta_ == 0.175
    assert [candidate["trained_eta"] for candidate in model.candidates_] == [None, 0.175]


def test_nmce_is_its_objective_from_one_random_membership():
    cosine = Recipe(n_epochs=5, optimizer="lars", learning_rate=0.3, **STEPS)
    model = nmce(K, **SMALL, start_recipe=LARS_STEPS, recipe=cosine)
    weights, (x, *views) = drawn_weights(mlc(K, **SMALL))
    started(weights, views, 4)
    with torch.no_grad():
        Z = head_of(weights, x)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    head = nmce_module.learned_membership(Z, K, 1, seed)
    together = [*weights, *head.parameters()]
    epsilon, agreement = math.sqrt(0.2), 3 * math.log(6)

    def loss():
        both = [head_of(weights, view) for view in views]
        Z = unit(sum(both) / 2)
        P = sum(torch.softmax(SHARPNESS * head(one), dim=1) for one in both) / 2
        n, d = Z.shape
        inside = sum(
            P[:, j].sum() / n * torch.logdet(torch.eye(d) + d / (P[:, j].sum() * epsilon**2) * (Z.T * P[:, j]) @ Z)
            for j in range(K)
        )
        return inside - rate(Z, epsilon) - agreement * (both[0] * both[1]).sum(dim=1).abs().mean()

    rates = iter([cosine.rate(step, 1) for step in range(5)])
    steps(together, loss, lambda w, m: lars(w, m, rate=next(rates)), 5)
    model.fit_views(X, *VIEWS)
    np.testing.assert_allclose(model.transform(X), head_of(weights, x).detach().numpy(), atol=2e-3)
    nmce_module.largest_first(head, head(head_of(weights, x)).argmax(dim=1).numpy())
    P = torch.softmax(SHARPNESS * head(head_of(weights, x)), dim=1).detach().numpy()
    np.testing.assert_allclose(model.membership(X), P, atol=5e-3)
    np.testing.assert_array_equal(model.labels_, P.argmax(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert np.bincount(model.labels_)[0] >= N / 2  # the largest cluster is the first


def test_presets_have_what_the_paper_prints_and_take_changes():
    model = mlc(10)
    assert isinstance(model, ManifoldClustering)
    printed = {"n_components": 128, "eta": 0.175, "gamma": 0.05, "affinity": "inner", "n_views": 2, "freeze": True}
    assert {name: getattr(model, name) for name in printed} == printed
    assert (model.epsilon_start**2, model.epsilon**2) == pytest.approx((0.2, 0.1))
    assert (model.start_recipe, model.recipe, model.augment) == (START, SECOND, AUGMENTATION)
    assert (START.optimizer, START.learning_rate, START.n_epochs, START.batch_size) == ("lars", 0.3, 1000, 1024)
    assert (SECOND.optimizer, SECOND.momentum, SECOND.weight_decay) == ("sgd", 0.9, 5e-4)
    assert START.warmup_epochs == 0.0
    assert [SECOND.rate(step, 1) for step in (0, 40)] == [1e-2, 1e-2]
    other = nmce(10, hidden=7)
    assert isinstance(other, NMCE)
    assert (other.hidden, other.n_init, other.recipe, other.epsilon**2) == (7, 1, TABLE_6, pytest.approx(0.2))
    assert mlc(10, eta=0.3).eta == 0.3
