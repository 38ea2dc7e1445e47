"""The tables of the experiment: Table 1 with every method, other sets, the toys, and details that had to be chosen."""

from experiments import Results, Table, or_empty
from experiments.paired import gains, is_above_zero
from experiments.paired import shown as with_interval
from experiments.report import mean_and_spread

from .cases import (
    DEFAULT,
    LAMBDAS,
    LEFT_OUT,
    METHODS,
    SET_METHODS,
    SETS,
    SUBJECTS,
    TWO_TRIALS,
    WITHOUT,
    algorithm_1,
    ktrr,
    on,
    toy,
    with_unit_rows,
    yale,
)
from .paper import KTRR, OURS, SETTINGS
from .toy import TOYS

MEASURES = ("nmi", "ari", "accuracy", "iterate", "outside of the class", "fit seconds")
SIDE_BY_SIDE = (
    "subjects",
    "printed: Algorithm 1",
    "printed: KTRR",
    "as printed: Algorithm 1",
    "as printed: KTRR",
    "gain (95 %)",
    "held",
    "by default",
    "without feature learning",
    "gain (95 %)",
)


def tables(results: Results) -> list[Table]:
    """Return all tables; cells with missing runs are empty."""
    return [
        side_by_side(results, "nmi"),
        side_by_side(results, "ari"),
        spectral_steps(results),
        strengths(results),
        geometry(results),
        *(faces(results, measure) for measure in MEASURES),
        *(other_sets(results, measure) for measure in ("nmi", "ari", "accuracy", "fit seconds")),
        toys(results),
        settled(),
        Table("Left out of the design", ("what", "why"), [list(pair) for pair in LEFT_OUT.items()]),
    ]


def side_by_side(results: Results, measure: str) -> Table:
    """Return the paper's numbers, the same methods as printed, and our default, with paired intervals."""
    place = ("nmi", "ari").index(measure)
    rows = []
    for k in SUBJECTS:
        written, plain, ours, without = (yale(k, name) for name in (algorithm_1(), ktrr(), DEFAULT, WITHOUT))

        def mean(results: Results, case: str) -> str:
            return f"{results.mean(case, measure):.3f}"

        def gain(results: Results, better: str, worse: str) -> str:
            return with_interval(gains(results, better, worse, measure))

        def held(results: Results, better: str, worse: str) -> str:
            return "held" if is_above_zero(gains(results, better, worse, measure)) else "not held"

        rows.append(
            [
                str(k),
                f"{OURS[k][place]:.3f}",
                f"{KTRR[k][place]:.3f}",
                *(or_empty(mean, results, case) for case in (written, plain)),
                or_empty(gain, results, written, plain),
                or_empty(held, results, written, plain),
                *(or_empty(mean, results, case) for case in (ours, without)),
                or_empty(gain, results, ours, without),
            ]
        )
    return Table(f"Table 1 side by side: {measure.upper()}", SIDE_BY_SIDE, rows)


def spectral_steps(results: Results) -> Table:
    """Return both readings of line 15: scikit-learn's step, chosen with knowledge of the labels, and the cited one."""
    rows = []
    for k in SUBJECTS:
        for measure in ("nmi", "ari"):
            place = ("nmi", "ari").index(measure)
            names = (algorithm_1(), ktrr(), with_unit_rows(algorithm_1()), with_unit_rows(ktrr()))
            cells = [or_empty(shown, results, yale(k, name), measure) for name in names]
            trials = results.seeds.get(yale(k, names[2]), 0)
            rows.append([str(k), measure, f"{OURS[k][place]}", f"{KTRR[k][place]}", *cells, str(trials)])
    columns = (
        "subjects",
        "measure",
        "printed: Algorithm 1",
        "printed: KTRR",
        "scikit-learn's step: Algorithm 1",
        "KTRR",
        "unit rows: Algorithm 1",
        "KTRR",
        "trials with unit rows",
    )
    return Table("The spectral step: the presets' was chosen among four with labels in sight", columns, rows)


def strengths(results: Results) -> Table:
    """Return both methods as printed for every lambda, on ten subjects."""
    rows = []
    for value in sorted(LAMBDAS):
        written, plain = yale(10, algorithm_1(value)), yale(10, ktrr(value))
        row = [or_empty(shown, results, case, measure) for measure in ("nmi", "ari") for case in (written, plain)]

        def gain(results: Results, better: str = written, worse: str = plain) -> str:
            return with_interval(gains(results, better, worse, "nmi"))

        rows.append([f"{value:g}", *row, or_empty(gain, results)])
    columns = ("lambda", "Algorithm 1, NMI", "KTRR, NMI", "Algorithm 1, ARI", "KTRR, ARI", "gain in NMI (95 %)")
    return Table("Ten subjects as printed, by lambda", columns, rows)


def geometry(results: Results) -> Table:
    """Return the measures of section 5.1 between clusters, before and after ten projections."""
    measures = tuple(f"{name} {when}" for name in ("angle", "distance", "separation") for when in ("before", "after"))
    named = [(name, toy(name)) for name in TOYS]
    named += [(yale(k, name), yale(k, name)) for k in SUBJECTS for name in (algorithm_1(), DEFAULT)]
    rows = [[name, *(or_empty(shown, results, case, measure) for measure in measures)] for name, case in named]
    return Table(
        "Section 5.1: mean angle (degrees) and distance between clusters, and that distance over the one within",
        ("case", *measures),
        [r for r in rows if r[1]],
    )


def settled() -> Table:
    rows = [[name, *both] for name, both in SETTINGS.items()]
    return Table("What must be settled", ("setting", "the paper", "here"), rows)


def shown(results: Results, case: str, measure: str) -> str:
    return mean_and_spread(results.values(case, measure))


def faces(results: Results, measure: str) -> Table:
    """Return a measure by methods and numbers of subjects, with the paper's numbers first."""
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
    sets = [data for data in (*SETS, TWO_TRIALS) if on(data, DEFAULT) in results.seeds]
    rows = []
    for name in dict.fromkeys((*SET_METHODS, *METHODS)):
        row = [or_empty(shown, results, on(data, name), measure) for data in sets]
        rows += [[name, *row]] if any(row) else []
    return Table(f"Other sets: {measure}", ("method", *sets), rows)


def toys(results: Results) -> Table:
    """Return the shares inside the true blocks after several numbers of iterations."""
    measures = [f"{what} {t}" for what in ("kernel", "affinity") for t in (0, 5, 8, 10)]
    rows = [
        [name, settings_of(name), *(or_empty(shown, results, toy(name), measure) for measure in measures)]
        for name in TOYS
    ]
    return Table("Toys: share inside the true blocks after iterations", ("toy", "settings", *measures), rows)


def settings_of(name: str) -> str:
    keys = ("ridge", "shrinkage", "inversion", "relative", "one_sided")
    return ", ".join(f"{key} {TOYS[name][key]}" for key in keys)
