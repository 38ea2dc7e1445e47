"""The cases: every contestant on every set, large sets with all rows, learning curves, and the toys."""

from typing import Any

from experiments import Case

from .contestants import DEFAULTS, OURS, PRESETS, with_likelihood_of
from .peers import BOOSTING, MORE_PEERS, PEERS
from .runs import run_ours, run_peer
from .toy import run_toy

MOST_ROWS = 3000
SPLITS = {"yacht": 20, "boston": 20, "energy": 20, "concrete": 20, "wine_red": 20, "kin8nm": 5, "power": 5}
SEVEN = tuple(SPLITS)
# The paper's methods run on the first splits only, since each split takes a search and optimizations of the likelihood.
PRESET_SPLITS = {"yacht": 20, "boston": 20, "energy": 20, "concrete": 20, "wine_red": 5, "kin8nm": 2, "power": 1}
LARGE = ("kin8nm", "power")
# These are not in Figure 1, and are not run on large sets, where a split takes minutes.
WITHOUT_A_DENSITY = ("RFM", "RFM-diag")
# On large sets the likelihood of the paper's processes is optimized on this many rows; the final fit uses all rows.
LIKELIHOOD_ROWS = 1000
UNIQUE = "wine_red unique"  # shown with the seven sets, but not ranked
CONTESTANTS = (*OURS, *PEERS)
# Number of splits of the peers that need many fits.
MORE_SPLITS = 2

# Large sets with all their rows, and learning curves.
WHOLE = 10**6
WHOLE_SPLITS = 1
WHOLE_OURS = ("GPRegressor()", "GP-ARD-Laplace")
WHOLE_PEERS = ("CatBoost",)
CURVE = ("GP-RFM-Laplace", "GP-RFM-diag-Laplace", "GP-ARD-Laplace")
CURVED = ("kin8nm",)
CURVE_SIZES = (100, 300, 1000)
CURVE_SPLITS = 2

# The toy: the methods that are compared at one size, and the sizes at which only the metric of RFM is measured.
TOY_METHODS = ("GP-RFM-Laplace", "GP-RFM-diag-Laplace", "GP-ARD-Laplace")
TOY_COLUMNS = (20, 50)
TOY_ROWS = 1000
TOY_SEEDS = 2
CURVE_ROWS = (125, 250, 500, 1000, 2000)


def cases(quick: bool) -> list[Case]:
    """Return all cases; the quick ones are two small sets with two splits and one, and a smaller toy."""
    if quick:
        sets = [case for data, splits in (("yacht", 2), ("energy", 1)) for case in set_cases(data, splits, splits)]
        return sets + [toy_case("square", name, 20, 300, 2) for name in ("RFM", *TOY_METHODS)]
    sets = [case for data in SEVEN for case in set_cases(data, SPLITS[data], PRESET_SPLITS[data])]
    more = [peer_case(data, name, MORE_SPLITS) for name in MORE_PEERS for data in SEVEN]
    unique = [ours_case(UNIQUE, name, SPLITS["wine_red"]) for name in DEFAULTS]
    unique += [peer_case(UNIQUE, name, SPLITS["wine_red"]) for name in BOOSTING]
    curves = [ours_case(data, name, CURVE_SPLITS, n) for data in CURVED for n in CURVE_SIZES for name in CURVE]
    whole = [ours_case(data, name, WHOLE_SPLITS, WHOLE) for data in LARGE for name in WHOLE_OURS]
    whole += [peer_case(data, name, WHOLE_SPLITS, WHOLE) for data in LARGE for name in WHOLE_PEERS]
    toys = [
        toy_case(function, name, d, TOY_ROWS, TOY_SEEDS)
        for function in ("square", "wave")
        for d in TOY_COLUMNS
        for name in TOY_METHODS
    ]
    finding = [toy_case("square", "RFM", d, n, TOY_SEEDS) for d in TOY_COLUMNS for n in CURVE_ROWS]
    return sets + unique + curves + toys + finding + more + whole


def set_cases(data: str, splits: int, preset_splits: int) -> list[Case]:
    """Return the cases of every contestant on one set; seeds are the numbers of the fixed splits."""
    wanted = [name for name in OURS if data not in LARGE or name not in WITHOUT_A_DENSITY]
    ours = [ours_case(data, name, preset_splits if name in PRESETS else splits) for name in wanted]
    return ours + [peer_case(data, name, splits) for name in PEERS]


def rows_of(data: str, most_rows: int) -> dict[str, Any]:
    return {"name": data.split()[0], "duplicates": data != UNIQUE, "most_rows": most_rows}


def ours_case(data: str, name: str, splits: int, most_rows: int = MOST_ROWS) -> Case:
    """Return the case of one of our methods on a set, with at most `most_rows` of its training rows."""
    settings = with_likelihood_of(OURS[name], LIKELIHOOD_ROWS) if data in LARGE else OURS[name]
    return Case(on(data, name, most_rows), run_ours, {**settings, "data": rows_of(data, most_rows)}, splits)


def peer_case(data: str, name: str, splits: int, most_rows: int = MOST_ROWS) -> Case:
    """Return the case of a peer on the same rows."""
    settings = {"contestant": name, "data": rows_of(data, most_rows)}
    return Case(on(data, name, most_rows), run_peer, settings, splits)


def toy_case(function: str, name: str, d: int, n: int, seeds: int) -> Case:
    settings = {"function": function, "columns": d, "rows": n, **with_likelihood_of(OURS[name], LIKELIHOOD_ROWS)}
    return Case(toy(function, name, d, n), run_toy, settings, seeds)


def on(data: str, contestant: str, most_rows: int = MOST_ROWS) -> str:
    """Return the name of the case of a contestant on a set, with at most `most_rows` training rows."""
    size = {MOST_ROWS: "", WHOLE: ", whole"}.get(most_rows, f", n = {most_rows}")
    return f"{data}{size}: {contestant}"


def toy(function: str, contestant: str, d: int, n: int = TOY_ROWS) -> str:
    """Return the name of the case of a contestant on a toy."""
    return f"toy {function}, d = {d}, n = {n}: {contestant}"
