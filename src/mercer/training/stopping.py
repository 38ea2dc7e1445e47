"""Early stopping, as pure functions of the criteria of the epochs so far, so that no counter has to be saved."""

from collections.abc import Sequence


def best_epoch(criteria: Sequence[float]) -> int | None:
    """Return the epoch with the smallest criterion, the first of equal ones, or None if there is no epoch yet."""
    return min(range(len(criteria)), key=criteria.__getitem__, default=None)


def epochs_without_gain(criteria: Sequence[float], tolerance: float) -> int:
    """Return how many epochs have passed since the criterion last fell by more than `tolerance` below all before it."""
    smallest, idle = float("inf"), 0
    for criterion in criteria:
        idle = 0 if criterion < smallest - tolerance else idle + 1
        smallest = min(smallest, criterion)
    return idle
