"""What is run: Table 1 by the paper's protocol, every self-expression with and without feature learning, the toys."""

from typing import Any

from experiments import Case

from .runs import run_set, run_yale
from .toy import TOYS, run_lemma, run_toy

SUBJECTS = (10, 20, 30, 38)
# Consecutive blocks of subjects in steps of two: 1-10, 3-12, ..., 29-38.
TRIALS = {k: (38 - k) // 2 + 1 for k in SUBJECTS}

DEFAULT, WITHOUT = "SubspaceClustering()", "without feature learning"
NEIGHBOURS = "10-NN spectral clustering"
LAMBDAS = (0.01, 0.1, 1.0)

LIKE_THE_PAPER = {"kernel": "gaussian", "truncate": None, "relative": False}


def algorithm_1(value: float) -> str:
    return f"Algorithm 1 as written, lambda {value:g}"


def ktrr(value: float) -> str:
    return f"KTRR without truncation, lambda {value:g}"


def other(expression: str, learned: bool) -> str:
    return f"{expression} {'with' if learned else 'without'} feature learning"


OTHERS = ("least_squares", "elastic_net", "lasso", "omp", "low_rank")
METHODS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    WITHOUT: {"feature_learning": "none"},
    "covariance": {"feature_learning": "covariance"},
    "line 6 as printed": {"inversion": "algorithm"},
    "doubly stochastic": {"doubly_stochastic": True},
    **{
        other(name, learned): {"self_expression": name, "feature_learning": "precision" if learned else "none"}
        for name in OTHERS
        for learned in (False, True)
    },
    **{
        algorithm_1(value): {
            **LIKE_THE_PAPER,
            "ridge": value,
            "shrinkage": value,
            "inversion": "algorithm",
            "n_iter": 10,
            "iterate": "last",
        }
        for value in LAMBDAS
    },
    **{ktrr(value): {**LIKE_THE_PAPER, "ridge": value, "feature_learning": "none"} for value in LAMBDAS},
}
# Beside the faces: set -> (rows, seeds); rows are drawn where there are more.
SETS = {"coil20": (None, 1), "digits": (None, 1), "mnist": (2000, 3)}
SET_METHODS = (DEFAULT, WITHOUT, NEIGHBOURS, *(other(name, learned) for name in OTHERS for learned in (False, True)))
LARGE = "mnist, all 70 000 images"
TWO_TRIALS = "yaleb, two trials of 10 subjects"


def cases(quick: bool) -> list[Case]:
    """All of them. Quick: the first two trials of ten subjects for a few methods, digits, and the toys."""
    toys = [Case(toy(name), run_toy, settings, 3) for name, settings in TOYS.items()]
    lemma = Case("lemma 1", run_lemma, {"shrinkages": [1e-2, 1e-4, 1e-6]}, 3)
    if quick:
        # Under another name, so that claims about all trials read "not run", not "not held".
        faces = [
            Case(on(TWO_TRIALS, name), run_yale, {"subjects": 10, "options": METHODS[name]}, 2)
            for name in (DEFAULT, WITHOUT, algorithm_1(1.0), ktrr(1.0))
        ]
        return [*toys, lemma, *faces, *(set_case("digits", name) for name in (DEFAULT, WITHOUT, NEIGHBOURS))]
    faces = [yale_case(k, name, TRIALS[k]) for k in SUBJECTS for name in METHODS]
    sets = [set_case(data, name) for data in SETS for name in SET_METHODS]
    large = Case(on(LARGE, DEFAULT), run_set, {"data": "mnist", "rows": None, "options": {}}, 1)
    return [*toys, lemma, *faces, *sets, large]


def yale_case(k: int, method: str, trials: int) -> Case:
    return Case(yale(k, method), run_yale, {"subjects": k, "options": METHODS[method]}, trials)


def set_case(data: str, method: str) -> Case:
    rows, seeds = SETS[data]
    options = None if method == NEIGHBOURS else METHODS[method]
    return Case(on(data, method), run_set, {"data": data, "rows": rows, "options": options}, seeds)


def yale(k: int, method: str) -> str:
    """The name of a method's case on so many subjects."""
    return f"yaleb, {k} subjects: {method}"


def on(data: str, method: str) -> str:
    """The name of a method's case on a set."""
    return f"{data}: {method}"


def toy(name: str) -> str:
    """The name of a toy's case."""
    return f"toy: {name}"
