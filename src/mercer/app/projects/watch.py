"""The time of a fit: its limit, how much has passed, and how long the remaining phases will probably take."""

import time
from collections.abc import Callable, Mapping

# The most rows of a trial. There is no trial for tables with fewer values, whose fit takes only a few seconds.
TRIAL_ROWS, TRIAL_VALUES = 200, 20_000
# The time of a fit grows with this power of the number of rows: 200 rows of ten columns take .7 s of one core, 1600
# take 2.2 s, and a million about 300 s.
POWER = 0.7
# A search gets at least this many seconds, since a first machine is always fitted.
SHORTEST = 0.5

Tell = Callable[[str, float | None], None]
"""A function that is called when a phase begins, with its name and the seconds that are probably left, or None."""


class Watch:
    """The time of a whole workflow, from reading the data to the last fit.

    Parameters
    ----------
    limit : float or None, default=None
        Seconds that all phases may take together. None sets no limit.
    tell : callable of (phase, seconds left or None), optional
        Called when a phase begins.
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
        """Return the seconds since the watch was made."""
        return self._now() - self._start

    def left(self) -> float | None:
        """Return the seconds that are left; None without a limit."""
        return None if self.limit is None else max(self.limit - self.passed(), 0.0)

    def share(self, part: float) -> float | None:
        """Return a part of the seconds that are left, as a time limit for a search; None without a limit."""
        left = self.left()
        return None if left is None else max(part * left, SHORTEST)

    def allows(self, seconds: float) -> bool:
        """Return whether at least this many seconds are left."""
        left = self.left()
        return left is None or left >= seconds

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Set the seconds that each phase that has not begun will probably take."""
        self._expected = dict(seconds)

    def begin(self, phase: str) -> None:
        """Call `tell` with the phase that begins, and with the seconds that are probably left."""
        left = None
        if self._expected:
            left = sum(self._expected.values())
            if self.limit is not None:
                left = min(left, max(self.limit - self.passed(), 0.0))
            self._expected.pop(phase, None)
        if self._tell is not None:
            self._tell(phase, left)


def seconds_of_fit(trial_seconds: float, trial_rows: int, n_rows: int) -> float:
    """Return the expected seconds of a fit on n_rows, from the seconds of a trial on fewer rows."""
    return trial_seconds * (n_rows / trial_rows) ** POWER


def rows_of_trial(n_rows: int, n_columns: int) -> int:
    """Return the number of rows of a trial; 0 if the table is so small that none is needed."""
    return 0 if n_rows * n_columns < TRIAL_VALUES else min(TRIAL_ROWS, n_rows // 4)
