"""What was measured, line by line in a file, so that a run that is stopped goes on where it was."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Journal:
    """Entries by some of their values, such as table, fold and method.

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
        """Return an entry that is there, or measure it, write it down and show it as a line.

        Parameters
        ----------
        measure : callable
            Takes the values of the key, and returns those that belong to it.
        describe : str
            A format of the line, with the names of values in braces.
        **key
            The values by which the entry is found.
        """
        found = tuple(key[name] for name in self.keys)
        if found not in self.entries:
            entry = {**key, **measure(**key)}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # A line that was cut off has no end: begin a new one.
            cut_off = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
            with self.path.open("a") as file:
                file.write("\n" * cut_off + json.dumps(entry) + "\n")
            self._take(entry)
            print(describe.format(**entry), flush=True)
        return self.entries[found]
