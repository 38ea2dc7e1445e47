"""`mercer data`: list the data sets of the experiments, and fetch them before they are needed."""

from pathlib import Path

from rich import box

from mercer.app.cli.output import new_table, notes, out_console, print_json, waiting
from mercer.datasets.catalog import ALL_SOURCES, PLACES, Got, entries, get
from mercer.datasets.sources import data_folder
from mercer.datasets.uci import UCI_NAMES
from mercer.exceptions import invalid_parameter

# Names that stand for several sets.
GROUPS = {"all": tuple(ALL_SOURCES), "uci": UCI_NAMES}


def show_list(as_json: bool) -> None:
    """Print what each data set is and where it is found."""
    found = entries()
    if as_json:
        sets = [{"name": e.name, **e.about._asdict(), "place": PLACES[e.place], "path": e.path} for e in found]
        return print_json({"folder": data_folder(), "sets": sets})
    table = new_table("name", "rows + test", "inputs", "what it is", "where", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns[3:]:
        column.justify = "left"
    for entry in found:
        table.add_row(entry.name, entry.about.rows, entry.about.inputs, entry.about.what, PLACES[entry.place])
    console = out_console()
    console.print(table)
    console.print(f"The folder of data files is {data_folder()}", soft_wrap=True)
    console.print("`mercer data get NAME` fetches what is missing, and verifies what is there.", soft_wrap=True)


def fetch(names: list[str], out: Path | None, fresh: bool, as_json: bool) -> None:
    """Fetch or verify each set. Sets that cannot be fetched are named in one error, after all others are done."""
    console = out_console()
    done, missing = [], []
    with notes():
        for name in expanded(names):
            try:
                with waiting(f"getting {name}"):
                    done.append(get(name, out=out, fresh=fresh))
            except ConnectionError as error:
                missing.append(str(error))
            else:
                if not as_json:
                    console.print(line(done[-1]), soft_wrap=True)
    if missing:
        raise ConnectionError(" ".join(missing))
    if as_json:
        print_json({"sets": [got._asdict() for got in done]})


def expanded(names: list[str]) -> list[str]:
    """Return the names with groups replaced by their sets, each set once; an unknown name is an error."""
    for name in names:
        if name not in ALL_SOURCES and name not in GROUPS:
            raise invalid_parameter("NAME", name, (*ALL_SOURCES, *GROUPS))
    return list(dict.fromkeys(single for name in names for single in GROUPS.get(name, (name,))))


def line(got: Got) -> str:
    """Return the line that is printed for a set: where it is, and how it was verified."""
    return f"{got.name}: {'fetched into' if got.fetched else 'in'} {got.path} ({got.verified})"
