"""What comes of a damaged file: it is refused, or it works with finite numbers, or one of our errors says why not."""

import contextlib
import re
import resource
import signal
import warnings
from pathlib import Path

from sklearn.exceptions import NotFittedError

import mercer
from mercer.exceptions import DataFileError, InvalidParameterError, ModelFileError, NumericalError, TooLargeError
from tests.faults.models import ROWS, X, answers, is_right
from tests.faults.more_models import OBJECTS

NAMED = (InvalidParameterError, ModelFileError, NumericalError, TooLargeError, DataFileError, NotFittedError)
# scikit-learn's own words on rows that do not fit a model.
OF_ROWS = re.compile(
    r"X has \d+ features, but|feature names should match|has no column|columns, but the metric was learned on"
    r"|X contains infinity"  # a scaler before a model in a pipeline has divided by next to nothing
)
SECONDS, LONGEST_WAIT = 10, 300
MIB = 2**20
# What using a small model may take beside what is there, where a file could ask for any size.
MOST_IN_USE = 1024 * MIB
OUT_OF_MEMORY = re.compile(r"allocate|out of memory", re.IGNORECASE)


class Hang(BaseException):
    """It took longer than it may."""


@contextlib.contextmanager
def within_seconds(seconds=SECONDS):
    """Let a block compute no longer than so many seconds, and wait no longer than LONGEST_WAIT.

    Seconds of the processor count, not of the clock: another process, or one that stops this one for a while, must not
    look like a hang.
    """

    def stop(*_):
        raise Hang(f"more than {seconds} s")

    kinds = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, LONGEST_WAIT)}
    before = {number: signal.signal(number, stop) for number in kinds}
    for timer, most in kinds.values():
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for timer, _ in kinds.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def within_memory(more):
    """Let no more than so many bytes of addresses be taken, beside those in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def described(error):
    return f"{type(error).__name__}: {str(error)[:200]}"


def loaded(path, objects=None):
    """Return the model and None, or None and the outcome of loading it: "refused", or what is bad."""
    try:
        with within_seconds(), within_memory(64 * MIB + 4 * path.stat().st_size):
            return mercer.load(path, objects), None
    except ModelFileError as error:
        too_long = len(str(error)) > 5000 or not str(error).isprintable()
        if OUT_OF_MEMORY.search(str(error)):
            return None, f"bad: memory at load: {described(error)}"
        return None, "bad: message too long or not printable" if too_long else "refused"
    except InvalidParameterError as error:
        return None, "refused" if str(error).startswith("objects has the names") else f"bad: {described(error)}"
    except (Exception, Hang) as error:
        return None, f"bad: at load: {described(error)}"


def judged(name, data, path):
    """Return the outcome of a file with this content: "refused", "named", "works", or "bad: ..." and why."""
    path.write_bytes(data)
    model, outcome = loaded(path, OBJECTS if name == "kernel-custom" else None)
    if outcome is not None:
        return outcome
    outcome = "works"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, ask in answers(model, ROWS.get(name, X[:2])):
            try:
                with within_seconds(), within_memory(MOST_IN_USE):
                    if not is_right(method, ask()):
                        return f"bad: {type(model).__name__}.{method} gives NaN or infinite numbers"
            except NAMED:
                outcome = "named"
            except (Exception, Hang) as error:
                if isinstance(error, ValueError) and OF_ROWS.search(str(error)):
                    outcome = "named"
                else:
                    return f"bad: {type(model).__name__}.{method}: {described(error)}"
    return outcome
