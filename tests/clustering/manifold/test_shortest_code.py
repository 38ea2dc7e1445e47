"""Clusters of the shortest code: costs by autograd and by hand, rounds that never lengthen it, and which are kept."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from mercer.clustering.manifold import choice
from mercer.clustering.manifold.choice import (
    CLUSTERINGS,
    Judge,
    best_shortened,
    best_spectral,
    joined,
    number_of_beginnings,
)
from mercer.clustering.manifold.memberships import Memberships, spectral_clusters
from mercer.clustering.manifold.shortest_code import (
    best_moves,
    coding_costs,
    k_means_labels,
    rate_reduction,
    shortened,
    shortest,
    with_moves,
)
from mercer.exceptions import NumericalWarning
from mercer.losses import class_coding_rate, coding_rate
from tests.examples_of import numbers

EPSILON = 0.1**0.5
ETAS = (0.04, 0.1, 0.3)


def unit_rows(n, d, seed=0):
    Z = torch.from_numpy(numbers(n, d, seed=seed))
    return Z / Z.norm(dim=1, keepdim=True)


def three_planes(n=30, noise=0.1, seed=0):
    """Points near three planes of R^6 that are orthogonal, and which of them each is near."""
    Z = torch.zeros(3 * n, 6, dtype=torch.float64)
    for j in range(3):
        Z[j * n : (j + 1) * n, 2 * j : 2 * j + 2] = unit_rows(n, 2, seed=seed + j)
    Z += noise * torch.from_numpy(numbers(3 * n, 6, seed=seed + 7))
    return Z / Z.norm(dim=1, keepdim=True), np.repeat(np.arange(3), n)


def wrong(labels, count, seed=0):
    """Some labels drawn anew."""
    random, labels = np.random.RandomState(seed), labels.copy()
    labels[random.permutation(len(labels))[:count]] = random.randint(labels.max() + 1, size=count)
    return labels


def to_the_end(Z, labels, epsilon):
    return shortened(Z, labels, epsilon).labels


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("k", [1, 3])
def test_costs_are_the_derivative_of_the_rate_by_memberships(epsilon, k):
    Z, labels = unit_rows(20, 4), np.arange(20) % k
    shares = torch.eye(k, dtype=torch.float64)[labels].requires_grad_()
    (20 * class_coding_rate(Z, shares, epsilon=epsilon)).backward()
    np.testing.assert_allclose(coding_costs(Z, labels, epsilon), shares.grad, rtol=1e-9)
    # Of features the directions enter alone.
    np.testing.assert_allclose(coding_costs(3.0 * Z, labels, epsilon), shares.grad, rtol=1e-9)


def test_costs_by_hand():
    """Two clusters in the plane: one along the first axis, and one point of the second."""
    Z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    costs = coding_costs(Z, np.array([0, 0, 1]), 1.0)
    along = np.log(3) + 2 / 3 - 2 + 4 / 3
    across = np.log(3) + 2 - 2 + 4 / 3
    np.testing.assert_allclose(costs, [[along, across], [along, across], [across, along]], rtol=1e-12)


def test_a_cluster_without_points_takes_none():
    costs = coding_costs(unit_rows(6, 3), np.array([0, 0, 0, 2, 2, 2]), EPSILON)
    assert np.isinf(costs[:, 1]).all()
    assert np.isfinite(costs[:, [0, 2]]).all()


def test_the_reduction_is_the_rate_of_all_less_those_of_clusters():
    Z, labels = three_planes()
    inside = sum(float(coding_rate(Z[30 * j : 30 * j + 30], epsilon=EPSILON)) for j in range(3)) / 3
    assert rate_reduction(Z, labels, EPSILON) == pytest.approx(float(coding_rate(Z, epsilon=EPSILON)) - inside)
    assert rate_reduction(Z, np.zeros(90, dtype=int), EPSILON) == pytest.approx(0.0, abs=1e-9)


def code_length(Z, labels):
    """n R_c of clusters, from the rates themselves."""
    R = float(coding_rate(Z, epsilon=EPSILON))
    return len(Z) * (R - rate_reduction(Z, labels, EPSILON))


def test_gains_are_what_moving_each_point_alone_does_to_the_code():
    Z = unit_rows(24, 5)
    labels = np.array([0] * 9 + [1] * 14 + [2])
    moves = best_moves(Z * 5**0.5 / EPSILON, labels)
    assert moves.length == pytest.approx(code_length(Z, labels))
    for i in range(23):
        lengths = {}
        for j in {0, 1, 2} - {labels[i]}:
            lengths[j] = code_length(Z, with_moves(labels, np.array([i]), np.array([j])))
        best = min(lengths, key=lengths.get)
        assert moves.targets[i] == best
        assert moves.gains[i] == pytest.approx(moves.length - lengths[best], abs=1e-8)
    assert moves.gains[23] == -np.inf  # the last point of its cluster


@pytest.mark.parametrize("seed", range(10))
def test_no_round_lengthens_the_code(seed):
    Z, k = unit_rows(60, 5, seed=seed), 2 + seed % 3
    labels = np.random.RandomState(seed).randint(k, size=60)
    lengths = [code_length(Z, labels)]
    costs = coding_costs(Z, labels, EPSILON)
    assert costs[np.arange(60), labels].sum() == pytest.approx(lengths[0])
    for _ in range(8):
        run = shortened(Z, labels, EPSILON, 1)
        labels = run.labels
        lengths.append(run.length)
        assert run.length == pytest.approx(code_length(Z, labels))
    assert (np.diff(lengths) <= 0).all()
    assert lengths[-1] < lengths[0] - 0.06


def test_points_leave_clusters_whose_covariance_they_are_part_of():
    """Ten points a cluster in twelve dimensions: by the derivative all seem at home, whatever the clusters are."""
    Z, labels = unit_rows(30, 12), np.random.RandomState(0).permutation(30) % 3
    np.testing.assert_array_equal(coding_costs(Z, labels, EPSILON).argmin(axis=1), labels)
    run = shortened(Z, labels, EPSILON)
    assert run.length < code_length(Z, labels) - 1.0
    assert best_moves(Z * 12**0.5 / EPSILON, run.labels).gains.max() <= 0


def test_at_the_end_no_point_costs_less_elsewhere():
    Z, labels = three_planes(noise=0.4)
    found = to_the_end(Z, wrong(labels, 40), EPSILON)
    costs = coding_costs(Z, found, EPSILON)
    np.testing.assert_array_equal(costs.argmin(axis=1), found)
    np.testing.assert_array_equal(to_the_end(Z, found, EPSILON), found)


def test_points_go_back_to_their_planes():
    Z, labels = three_planes()
    begun = wrong(labels, 30)
    assert (begun != labels).sum() > 10
    np.testing.assert_array_equal(to_the_end(Z, begun, EPSILON), labels)


def test_no_cluster_is_emptied():
    """All points are on one line: one code for all is the shortest, and nothing can be gained."""
    Z, labels = torch.eye(1, 3).repeat(10, 1), np.arange(10) % 2
    np.testing.assert_array_equal(to_the_end(Z, labels, EPSILON), labels)


def test_points_of_a_cluster_that_all_would_leave_stay_and_others_move():
    labels = np.array([0, 0, 1, 1, 2, 2])
    # Both points of the last cluster would go to the first, and no other comes.
    moved = with_moves(labels, np.array([1, 3, 4, 5]), np.array([1, 0, 0, 0]))
    np.testing.assert_array_equal(moved, [0, 1, 1, 0, 2, 2])


def test_precision_below_rounding_is_borne():
    Z, labels = three_planes()
    with pytest.warns(NumericalWarning, match="epsilon=1e-09 is below"):
        found = to_the_end(Z, wrong(labels, 30), 1e-9)
    assert len(np.unique(found)) == 3


def test_runs_of_k_means_begin_apart_and_are_the_seeds():
    C = unit_rows(80, 4)
    runs = k_means_labels(C, 6, 5, 0)
    assert len(runs) == 5
    assert len({tuple(labels) for labels in runs}) > 1
    assert all(set(labels) == set(range(6)) for labels in runs)
    np.testing.assert_array_equal(runs, k_means_labels(C, 6, 5, 0))
    assert not np.array_equal(runs, k_means_labels(C, 6, 5, 1))
    # Fewer distinct points than clusters: no warning.
    assert len(np.unique(k_means_labels(torch.eye(2).repeat(5, 1), 3, 1, 0)[0])) == 2


CANDIDATES = [Memberships(eta) for eta in ETAS]


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_clusters_are_those_of_largest_reduction(name):
    C, _ = three_planes(noise=0.5)
    judge = Judge(three_planes(noise=0.3, seed=0)[0], EPSILON)
    found = CLUSTERINGS[name](C, 3, CANDIDATES, 0, judge)
    each = {one.eta: spectral_clusters(C, 3, one, 0) for one in CANDIDATES}
    chosen = each[found.spectral.memberships.eta]
    assert found.reduction == rate_reduction(judge.Z, found.labels, EPSILON)
    torch.testing.assert_close(found.spectral.P, chosen.P)
    np.testing.assert_allclose(found.spectral.eigenvalues, chosen.eigenvalues)
    reductions = [judge.reduction(one.labels) for one in each.values()]
    if name == "spectral":
        assert found.reduction == max(reductions) > min(reductions)
        np.testing.assert_array_equal(found.labels, chosen.labels)
    else:
        assert found.reduction >= max(reductions)
        np.testing.assert_array_equal(to_the_end(judge.Z, found.labels, EPSILON), found.labels)
        nearest = max(each.values(), key=lambda one: adjusted_rand_score(found.labels, one.labels))
        assert nearest.memberships == chosen.memberships


def test_a_race_ends_with_the_shortest_code_of_those_that_run_to_their_end():
    Z, labels = three_planes(noise=0.4)
    beginnings = [wrong(labels, 20 + 10 * i, seed=i) for i in range(7)]
    ends = [rate_reduction(Z, to_the_end(Z, one, EPSILON), EPSILON) for one in beginnings]
    assert rate_reduction(Z, shortest(Z, beginnings, EPSILON), EPSILON) == pytest.approx(max(ends))
    # One beginning, and the same one many times.
    np.testing.assert_array_equal(shortest(Z, beginnings[:1], EPSILON), to_the_end(Z, beginnings[0], EPSILON))
    np.testing.assert_array_equal(shortest(Z, beginnings[:1] * 9, EPSILON), to_the_end(Z, beginnings[0], EPSILON))


def test_rounds_can_be_counted():
    Z, labels = three_planes(noise=0.4)
    begun = wrong(labels, 60)
    once = shortened(Z, begun, EPSILON, 1)
    assert not once.is_done
    assert shortened(Z, begun, EPSILON).length < once.length < code_length(Z, begun)
    assert shortened(Z, begun, EPSILON).is_done


def test_beginnings_of_some_rows_are_joined_by_the_others(monkeypatch):
    Z, labels = three_planes(n=60)
    some = np.arange(0, 180, 3)
    np.testing.assert_array_equal(joined(Judge(Z, EPSILON), labels[some], some), labels)
    monkeypatch.setattr(choice, "BEGINNING_ROWS", 60)
    found = best_shortened(Z, 3, CANDIDATES, 0, Judge(Z, EPSILON))
    assert len({(a, b) for a, b in zip(labels, found.labels, strict=True)}) == 3
    assert found.spectral.P.shape == (180, 180)


def test_k_means_counts_where_memberships_miss_clusters(monkeypatch):
    """With one membership, so wide that it says nothing, clusters are k-means's."""
    C, labels = three_planes(noise=0.05)
    centers = torch.eye(6, dtype=torch.float64)[::2][labels]
    C = torch.nn.functional.normalize(C + 3.0 * centers, dim=1)
    judge = Judge(C, EPSILON)
    wide = [Memberships(100.0, "inner")]
    monkeypatch.setattr(
        "mercer.clustering.manifold.memberships.assign", lambda *args, **options: np.zeros(len(C), dtype=np.int64)
    )
    assert best_spectral(C, 3, wide, 0, judge).reduction == pytest.approx(0.0, abs=1e-9)
    found = best_shortened(C, 3, wide, 0, judge)
    assert found.reduction > 1.0
    assert len({(a, b) for a, b in zip(labels, found.labels, strict=True)}) == 3


@pytest.mark.parametrize(("k", "count"), [(2, 50), (10, 50), (25, 20), (300, 5)])
def test_many_clusters_have_fewer_beginnings(k, count):
    assert number_of_beginnings(k) == count
