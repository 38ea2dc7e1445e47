"""What is being done, how long it may take in all, and how long it probably will."""

import time
from collections.abc import Callable, Mapping

# Rows of a trial, and the values in a table below which a fit takes a few seconds and none is made.
TRIAL_ROWS, TRIAL_VALUES = 200, 20_000
# Seconds of a fit grow with this power of the rows: 200 rows of ten columns take .7 s of one core, 1600 take 2.2 s,
# and a million about 300 s.
POWER = 0.7
# Seconds that a search gets at least: a first machine is always fitted.
SHORTEST = 0.5

Tell = Callable[[str, float | None], None]
"""What hears of the phases: (the phase that begins, the seconds that are probably left or None)."""


class Watch:
    """The time of a whole project, from the first byte read to the last fit.

    Parameters
    ----------
    limit : float or None, default=None
        Seconds that all phases may take together; None sets no limit.
    tell : callable of (phase, seconds left or None), optional
        Is told of every phase that begins.
    now : callable, optional
        The clock, by default `time.monotonic`.
    """

    def __init__(
        self, limit: float | None = None, tell: Tell | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self._tell, self._now = tell, now
        self._start = now()
        self._expected: dict[str, float] = {}

    def passed(self) -> float:
        """Return the seconds since the beginning."""
        return self._now() - self._start

    def left(self) -> float | None:
        """Return the seconds that are left; None without a limit."""
        return None if self.limit is None else max(self.limit - self.passed(), 0.0)

    def share(self, part: float) -> float | None:
        """Return a part of the seconds that are left, as the time limit of a search; None without a limit."""
        left = self.left()
        return None if left is None else max(part * left, SHORTEST)

    def allows(self, seconds: float) -> bool:
        """Return whether so many seconds are left."""
        left = self.left()
        return left is None or left >= seconds

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Say how long phases that have not begun will probably take."""
        self._expected = dict(seconds)

    def begin(self, phase: str) -> None:
        """Say that a phase begins, and with it what is probably left to do."""
        left = None
        if self._expected:
            left = sum(self._expected.values())
            if self.limit is not None:
                left = min(left, max(self.limit - self.passed(), 0.0))
            self._expected.pop(phase, None)
        if self._tell is not None:
            self._tell(phase, left)


def seconds_of_fit(trial_seconds: float, trial_rows: int, n_rows: int) -> float:
    """Return how long a fit on many rows will take, from one on few."""
    return trial_seconds * (n_rows / trial_rows) ** POWER


def rows_of_trial(n_rows: int, n_columns: int) -> int:
    """Return how many rows a trial takes; 0 where the table is so small that none is needed."""
    return 0 if n_rows * n_columns < TRIAL_VALUES else min(TRIAL_ROWS, n_rows // 4)
