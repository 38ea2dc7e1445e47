"""The way to the best ridge, judged one by one, and which candidate is kept."""

from types import SimpleNamespace

import pytest

from mercer.clustering.subspace.candidates import EQUAL, best_of, climbed, highest


def walk(heights, start):
    """Return the places that were judged, in their order."""
    judged = []

    def judge(place):
        judged.append(place)
        return SimpleNamespace(modularity=heights[place], ridge=float(place), features=heights)

    found = climbed(judge, start, len(heights))
    assert len(judged) == len(set(judged)) == len(found)  # none is judged twice
    return judged, found


@pytest.mark.parametrize("start", range(6))
def test_the_top_of_one_hill_is_found_from_everywhere(start):
    heights = [0.1, 0.3, 0.5, 0.7, 0.6, 0.2]
    _, found = walk(heights, start)
    assert highest(found).ridge == best_of(found).ridge == 3.0


def test_only_the_neighborhood_of_the_way_is_judged():
    judged, _ = walk([0.1, 0.2, 0.3, 0.9, 0.3, 0.2, 0.1], 3)
    assert sorted(judged) == [2, 3, 4]


def test_larger_ridges_are_tried_as_long_as_they_are_equal():
    heights = [0.1, 0.8, 0.8 - 0.5 * EQUAL, 0.8 - 0.9 * EQUAL, 0.5, 0.8]
    judged, found = walk(heights, 1)
    assert sorted(judged) == [0, 1, 2, 3, 4]
    assert (highest(found).ridge, best_of(found).ridge) == (1.0, 3.0)


def test_a_grid_of_one_is_judged_once():
    assert walk([0.4], 0)[0] == [0]


def test_a_ridge_of_other_points_does_not_count_as_equal():
    first = SimpleNamespace(modularity=0.8, ridge=1.0, features="first")
    other = SimpleNamespace(modularity=0.8 - 0.1 * EQUAL, ridge=2.0, features="other")
    assert best_of([first, other]) is first
