"""A shim under all that is written: the n-th call to the system that writes fails, with an error of choice."""

import contextlib
import io
import os
import pathlib

import mercer.storage.atomic as atomic
import mercer.storage.temporaries as temporaries


class Calls:
    """Counts calls that write, and lets the n-th fail with an errno; none if n is 0."""

    def __init__(self, fail_at, number):
        self.made, self.fail_at, self.number = 0, fail_at, number

    def __call__(self, *path):
        self.made += 1
        if self.made == self.fail_at:
            raise OSError(self.number, os.strerror(self.number), *path)


class FailingFile(io.FileIO):
    """A file each of whose writes to the system is counted."""

    calls: Calls

    def write(self, data):
        self.calls()
        return super().write(data)


@contextlib.contextmanager
def failing_writes(fail_at, number):
    """Let the n-th of opening, writing, syncing and renaming fail; yield the count of calls."""
    calls = Calls(fail_at, number)
    kind = type("CountedFile", (FailingFile,), {"calls": calls})

    def opened(path, mode):
        calls()
        return io.BufferedWriter(kind(path, mode.replace("b", "")))

    def counted(function):
        def call(*args, **options):
            calls()
            return function(*args, **options)

        return call

    def opened_by_path(path, mode="r", *args, **options):
        # Journals are appended to where they are.
        if not set(mode) & set("wax+"):
            return open_path(path, mode, *args, **options)
        calls(str(path))  # an error of opening names the file, as the system's does
        return io.BufferedRandom(kind(path, mode.replace("b", "")))

    usual, open_path = (os.fsync, os.replace), pathlib.Path.open
    temporaries.open = opened
    os.fsync, os.replace, pathlib.Path.open = counted(os.fsync), counted(os.replace), opened_by_path
    try:
        yield calls
    finally:
        del temporaries.open
        os.fsync, os.replace = usual
        pathlib.Path.open = open_path
        assert atomic.os is os
