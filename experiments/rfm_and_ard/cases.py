"""What is run: every contestant on every set, large sets whole, learning curves, and the toys."""

from typing import Any

from experiments import Case

from .contestants import DEFAULTS, OURS, PRESETS, with_likelihood_of
from .peers import BOOSTING, MORE_PEERS, PEERS
from .runs import run_ours, run_peer
from .toy import run_toy

MOST_ROWS = 3000
SPLITS = {"yacht": 20, "boston": 20, "energy": 20, "concrete": 20, "wine_red": 20, "kin8nm": 5, "power": 5}
SEVEN = tuple(SPLITS)
# The paper's methods, which search and follow likelihoods on every split, on the first ones alone.
PRESET_SPLITS = {"yacht": 20, "boston": 20, "energy": 20, "concrete": 20, "wine_red": 5, "kin8nm": 2, "power": 1}
LARGE = ("kin8nm", "power")
# Figure 1 has none of these, and on large sets a split takes minutes.
WITHOUT_A_DENSITY = ("RFM", "RFM-diag")
# On large sets the likelihood of the paper's processes is followed on so many rows; the machine stands on all.
LIKELIHOOD_ROWS = 1000
UNIQUE = "wine_red unique"  # shown beside the seven, and in no rank
CONTESTANTS = (*OURS, *PEERS)
# Peers that take twenty or five fits for one, on the first splits alone.
MORE_SPLITS = 2

# Large sets with all of their rows, and curves up to there.
WHOLE = 10**6
WHOLE_SPLITS = 1
WHOLE_OURS = ("GPRegressor()", "GP-ARD-Laplace")
WHOLE_PEERS = ("CatBoost",)
CURVE = ("GP-RFM-Laplace", "GP-RFM-diag-Laplace", "GP-ARD-Laplace")
CURVED = ("kin8nm",)
CURVE_SIZES = (100, 300, 1000)
CURVE_SPLITS = 2

# The toy: what is compared at one size, and the sizes at which the metric alone is looked at.
TOY_METHODS = ("GP-RFM-Laplace", "GP-RFM-diag-Laplace", "GP-ARD-Laplace")
TOY_COLUMNS = (20, 50)
TOY_ROWS = 1000
TOY_SEEDS = 2
CURVE_ROWS = (125, 250, 500, 1000, 2000)


def cases(quick: bool) -> list[Case]:
    """All of them. Quick: two small sets with two splits and one, and a toy with fewer columns and rows."""
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
    """Every contestant on one set; seeds are the numbers of the fixed splits."""
    wanted = [name for name in OURS if data not in LARGE or name not in WITHOUT_A_DENSITY]
    ours = [ours_case(data, name, preset_splits if name in PRESETS else splits) for name in wanted]
    return ours + [peer_case(data, name, splits) for name in PEERS]


def rows_of(data: str, most_rows: int) -> dict[str, Any]:
    return {"name": data.split()[0], "duplicates": data != UNIQUE, "most_rows": most_rows}


def ours_case(data: str, name: str, splits: int, most_rows: int = MOST_ROWS) -> Case:
    """One of ours on a set, on at most so many of its training rows."""
    settings = with_likelihood_of(OURS[name], LIKELIHOOD_ROWS) if data in LARGE else OURS[name]
    return Case(on(data, name, most_rows), run_ours, {**settings, "data": rows_of(data, most_rows)}, splits)


def peer_case(data: str, name: str, splits: int, most_rows: int = MOST_ROWS) -> Case:
    """A peer on the same rows."""
    settings = {"contestant": name, "data": rows_of(data, most_rows)}
    return Case(on(data, name, most_rows), run_peer, settings, splits)


def toy_case(function: str, name: str, d: int, n: int, seeds: int) -> Case:
    settings = {"function": function, "columns": d, "rows": n, **with_likelihood_of(OURS[name], LIKELIHOOD_ROWS)}
    return Case(toy(function, name, d, n), run_toy, settings, seeds)


def on(data: str, contestant: str, most_rows: int = MOST_ROWS) -> str:
    """The name of a contestant's case on a set, with at most so many rows."""
    size = {MOST_ROWS: "", WHOLE: ", whole"}.get(most_rows, f", n = {most_rows}")
    return f"{data}{size}: {contestant}"


def toy(function: str, contestant: str, d: int, n: int = TOY_ROWS) -> str:
    """The name of a contestant's case on a toy."""
    return f"toy {function}, d = {d}, n = {n}: {contestant}"
