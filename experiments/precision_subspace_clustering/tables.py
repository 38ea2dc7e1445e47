"""The experiment's own tables: Table 1 with every method, other sets, the toys, what must be settled."""

from experiments import Results, Table, or_empty
from experiments.report import mean_and_spread

from .cases import DEFAULT, LARGE, METHODS, SET_METHODS, SETS, SUBJECTS, TWO_TRIALS, on, toy, yale
from .paper import KTRR, OURS, SETTINGS
from .toy import TOYS

MEASURES = ("nmi", "ari", "accuracy", "iterate", "outside of the class", "fit seconds")


def tables(results: Results) -> list[Table]:
    """All of them; a cell whose runs are not all there is empty."""
    return [
        *(faces(results, measure) for measure in MEASURES),
        *(other_sets(results, measure) for measure in ("nmi", "ari", "accuracy", "fit seconds")),
        toys(results),
        settled(),
    ]


def settled() -> Table:
    rows = [[name, *both] for name, both in SETTINGS.items()]
    return Table("What must be settled", ("setting", "the paper", "here"), rows)


def shown(results: Results, case: str, measure: str) -> str:
    return mean_and_spread(results.values(case, measure))


def faces(results: Results, measure: str) -> Table:
    """Methods by numbers of subjects, the paper's own above."""
    rows = []
    if measure in ("nmi", "ari"):
        place = ("nmi", "ari").index(measure)
        rows += [
            [f"the paper's {name}", *(f"{printed[k][place]:.3f}" for k in SUBJECTS)]
            for name, printed in (("method", OURS), ("KTRR", KTRR))
        ]
    for name in METHODS:
        row = [or_empty(shown, results, yale(k, name), measure) for k in SUBJECTS]
        rows += [[name, *row]] if any(row) else []
    title = f"Table 1, Extended Yale B: {measure}, mean and spread over trials"
    return Table(title, ("method", *(f"{k} subjects" for k in SUBJECTS)), rows)


def other_sets(results: Results, measure: str) -> Table:
    sets = [data for data in (*SETS, LARGE, TWO_TRIALS) if on(data, DEFAULT) in results.seeds]
    rows = []
    for name in dict.fromkeys((*SET_METHODS, *METHODS)):
        row = [or_empty(shown, results, on(data, name), measure) for data in sets]
        rows += [[name, *row]] if any(row) else []
    return Table(f"Other sets: {measure}", ("method", *sets), rows)


def toys(results: Results) -> Table:
    """Shares inside the true blocks before and after."""
    measures = [f"{what} {t}" for what in ("kernel", "affinity") for t in (0, 5, 8, 10)]
    rows = [
        [name, settings_of(name), *(or_empty(shown, results, toy(name), measure) for measure in measures)]
        for name in TOYS
    ]
    return Table("Toys: share inside the true blocks after iterations", ("toy", "settings", *measures), rows)


def settings_of(name: str) -> str:
    keys = ("ridge", "shrinkage", "inversion", "relative", "one_sided")
    return ", ".join(f"{key} {TOYS[name][key]}" for key in keys)
