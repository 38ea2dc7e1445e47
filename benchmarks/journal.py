"""What was measured, line by line in a file, so that a stopped run continues where it was."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Journal:
    """A file of measurements, which are found by some of their values, such as table, fold and method.

    Parameters
    ----------
    path : Path
        A file of lines, each an entry as JSON. A last line that was cut off by a kill is measured again.
    *keys : str
        The values of an entry by which it is found.
    """

    def __init__(self, path: Path, *keys: str) -> None:
        self.path, self.keys = path, keys
        self.entries: dict[tuple[Any, ...], Entry] = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                self._take(json.loads(line))
            except json.JSONDecodeError:
                continue
        if self.entries:
            print(f"{len(self.entries)} entries were measured before: {path}", file=sys.stderr)

    def _take(self, entry: Entry) -> None:
        self.entries[tuple(entry[key] for key in self.keys)] = entry

    def entry(self, measure: Callable[..., Entry], describe: str, **key: Any) -> Entry:
        """Return an existing entry, or measure it, write it to the file and print a line.

        Parameters
        ----------
        measure : callable
            A function of the values of the key that returns the other values of the entry.
        describe : str
            A format of the line, with the names of values in braces.
        **key
            The values by which the entry is found.
        """
        found = tuple(key[name] for name in self.keys)
        if found not in self.entries:
            entry = {**key, **measure(**key)}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # If the last line is incomplete, a new line is begun.
            cut_off = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a") as file:
                file.write("\n" * cut_off + json.dumps(entry) + "\n")
            self._take(entry)
            print(describe.format(**entry), flush=True)
        return self.entries[found]
