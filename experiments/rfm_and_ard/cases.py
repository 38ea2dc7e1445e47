"""What is run: every contestant on every set, and the toys."""

from typing import Any

from experiments import Case

from .contestants import DEFAULTS, OURS, PAPER
from .peers import PEERS
from .runs import run_ours, run_peer
from .toy import run_toy

MOST_ROWS = 3000
SPLITS = {"yacht": 20, "boston": 20, "energy": 20, "concrete": 20, "wine_red": 20, "kin8nm": 5, "power": 5}
SEVEN = tuple(SPLITS)
UNIQUE = "wine_red unique"  # shown beside the seven, and in no rank
CONTESTANTS = (*OURS, *PEERS)

# The toy: what is compared at one size, and the sizes at which the metric alone is looked at.
TOY_METHODS = ("GP-RFM-Laplace", "GP-RFM-diag-Laplace", "GP-ARD-Laplace", "GP-ARD-RBF", "GPRegressor()")
TOY_COLUMNS = (20, 50)
TOY_ROWS = 2000
TOY_SEEDS = 5
CURVE_ROWS = (125, 250, 500, 1000, 2000, 4000)


def cases(quick: bool) -> list[Case]:
    """All of them. Quick: two small sets with two splits and one, and a toy with fewer columns and rows."""
    if quick:
        sets = [case for data, splits in (("yacht", 2), ("energy", 1)) for case in set_cases(data, splits)]
        return sets + [toy_case("square", name, 20, 300, 2) for name in ("RFM", *TOY_METHODS)]
    sets = [case for data in (*SEVEN, UNIQUE) for case in set_cases(data, SPLITS[data.split()[0]])]
    toys = [
        toy_case(function, name, d, TOY_ROWS, TOY_SEEDS)
        for function in ("square", "wave")
        for d in TOY_COLUMNS
        for name in TOY_METHODS
    ]
    curve = [toy_case("square", "RFM", d, n, TOY_SEEDS) for d in TOY_COLUMNS for n in CURVE_ROWS]
    return sets + toys + curve + [toy_case("wave", "RFM", d, TOY_ROWS, TOY_SEEDS) for d in TOY_COLUMNS]


def set_cases(data: str, splits: int) -> list[Case]:
    """Every contestant on one set; seeds are the numbers of the fixed splits."""
    shared: dict[str, Any] = {"name": data.split()[0], "duplicates": data != UNIQUE, "most_rows": MOST_ROWS}
    ours = [Case(on(data, name), run_ours, {**settings, "data": shared}, splits) for name, settings in OURS.items()]
    peers = [Case(on(data, name), run_peer, {"contestant": name, "data": shared}, splits) for name in PEERS]
    return ours + peers


def toy_case(function: str, name: str, d: int, n: int, seeds: int) -> Case:
    settings = {**PAPER, **DEFAULTS}[name]
    return Case(
        toy(function, name, d, n),
        run_toy,
        {
            "function": function,
            "columns": d,
            "rows": n,
            "estimator": settings["estimator"],
            "options": settings["options"],
        },
        seeds,
    )


def on(data: str, contestant: str) -> str:
    """The name of a contestant's case on a set."""
    return f"{data}: {contestant}"


def toy(function: str, contestant: str, d: int, n: int = TOY_ROWS) -> str:
    """The name of a contestant's case on a toy."""
    return f"toy {function}, d = {d}, n = {n}: {contestant}"
