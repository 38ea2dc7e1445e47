"""The tables of the experiment."""

from experiments import Results, Table, or_empty
from experiments.report import mean_and_spread

from .cases import (
    ABLATED,
    FULL,
    GAMMAS,
    JUDGED,
    LOSSES,
    OURS,
    PEERS,
    PRINTED,
    PURSUITS,
    QUICK,
    READINGS,
    collapse,
    free,
    imbalanced,
    on,
    on_one_start,
    printed_toy,
    pursuit,
    toy,
)
from .criteria import CRITERIA
from .intervals import interval, on_shared_start, paired
from .paper import TABLE_1, TABLE_2, TABLE_3_MINUTES, TABLE_5, TABLE_6
from .same_start import METHODS


def tables(results: Results) -> list[Table]:
    """Return all tables; cells with missing runs are empty."""
    return [
        toy_table(results),
        default_and_printed(results),
        one_start_table(results),
        section_table(results),
        *[set_table(results, measure) for measure in ("accuracy", "nmi", "fit seconds")],
        stage_table(results),
        criteria_table(results),
        gpu_table(),
    ]


def shown(results: Results, case: str, measure: str) -> str:
    return mean_and_spread(results.values(case, measure))


def toy_table(results: Results) -> Table:
    measures = (
        "accuracy",
        "start accuracy",
        "final accuracy",
        "first rank",
        "second rank",
        "start cosine",
        "final cosine",
    )
    names = [
        name
        for reading in READINGS
        for name in (toy(reading), f"{toy(reading)}, quick", *(printed_toy(reading, preset) for preset in PRINTED))
        if name in results.seeds
    ]
    rows = [[name, *(or_empty(shown, results, name, measure) for measure in measures)] for name in names]
    return Table("Two manifolds: ranks and largest cosine of the true clusters", ("noise", *measures), rows)


def set_table(results: Results, measure: str) -> Table:
    """Return a measure by contestants and sets."""
    labels = [label for label in (*FULL, *QUICK, imbalanced("mnist 2 000")) if on(label, OURS) in results.seeds]
    rows = [
        [name, *(or_empty(shown, results, on(label, name), measure) for label in labels)]
        for name in (OURS, *PRINTED.values(), *PEERS)
    ]
    return Table(measure, ("contestant", *labels), rows)


def stage_table(results: Results) -> Table:
    """Return the accuracy of each stage, and of the result that was kept."""
    measures = ("start accuracy", "final accuracy", "accuracy")
    names = [on(label, OURS) for label in (*FULL, *QUICK)] + [on("mnist 2 000", f"{OURS}, {name}") for name in ABLATED]
    rows = [[name, *(or_empty(shown, results, name, measure) for measure in measures)] for name in names]
    return Table("The stages, and the one that is kept", ("set", *measures), [row for row in rows if any(row[1:])])


def criteria_table(results: Results) -> Table:
    """Return the accuracy that criteria without labels lose among the clusters of all stages and every η."""
    measures = (
        "best",
        *(f"{name}: {what}" for what in ("loss", "correlation") for name in CRITERIA),
        "gain of shorter codes",
    )
    rows = [
        [label, *(or_empty(shown, results, on(label, "criteria"), measure) for measure in measures)] for label in JUDGED
    ]
    title = "Criteria: accuracy lost against the best clusters, and correlation with the accuracy"
    return Table(title, ("set", *measures), [row for row in rows if any(row[1:])])


def default_and_printed(results: Results) -> Table:
    """Return the accuracies of the default and the presets, and the intervals of their differences."""

    def difference(label: str, called: str) -> str:
        both = (results.values(on(label, name), "accuracy") for name in (OURS, called))
        return str(interval(paired(*both)))

    rows = []
    for label in FULL:
        cells = [or_empty(shown, results, on(label, name), "accuracy") for name in (OURS, *PRINTED.values())]
        rows.append([label, *cells, *(or_empty(difference, label, called) for called in PRINTED.values())])
    columns = ("set", "default", *PRINTED.values(), *(f"default less {called}" for called in PRINTED.values()))
    return Table("Accuracy as printed and by default; paired 95 % intervals", columns, rows)


def one_start_table(results: Results) -> Table:
    """Return Tables 1, 5 and 6, Figure 3 and γ on one start, with the numbers that the paper prints for CIFAR-10."""
    printed = {
        "MLC": TABLE_5["all"],
        "MLC without views": TABLE_5["no augmentation"],
        "MLC from random weights": TABLE_5["no start"],
        "EnSC on the start": TABLE_1["EnSC"][0][0],
        "SSC-OMP on the start": TABLE_1["SSC-OMP"][0][0],
        "EnSC on MLC's features": TABLE_1["EnSC"][1][0],
        "SSC-OMP on MLC's features": TABLE_1["SSC-OMP"][1][0],
        "Table 6: MLC": TABLE_6["MLC"][0],
        "Table 6: NMCE": TABLE_6["NMCE"][0],
    }
    measures = ("accuracy", "nmi", "neighbors", "rank of all", "mean class rank at first", "mean class rank at last")

    def difference(method: str) -> str:
        mlc = on_one_start("Table 6: MLC" if method.startswith("Table 6") else "MLC")
        both = (results.values(case, "accuracy") for case in (mlc, on_one_start(method)))
        return str(interval(on_shared_start(*both)))

    rows = [
        [
            method,
            f"{printed[method]}" if method in printed else "",
            *(or_empty(shown, results, on_one_start(method), measure) for measure in measures),
            "" if method in ("MLC", "Table 6: MLC") else or_empty(difference, method),
        ]
        for method in METHODS
    ]
    columns = ("on one start of mnist 2 000", "printed, CIFAR-10", *measures, "MLC less it")
    return Table("Tables 1, 5 and 6, Figure 3 and γ; EnSC and SSC-OMP best of section 3.1's grids", columns, rows)


def section_table(results: Results) -> Table:
    """Return the measures of free memberships, collapse, line 10, matching pursuit and A-DSSC."""
    names = [free(gamma) for gamma in GAMMAS]
    names += [collapse(loss) for loss in LOSSES]
    names += ["line 10 of 10 000 rows", *(pursuit(*one) for one in PURSUITS), "mnist 2 000: A-DSSC"]
    measures = (
        "accuracy",
        "largest entry of a row",
        "neighbors",
        "mean class rank",
        "most class rank",
        "processor seconds",
    )
    rows = [[name, *(or_empty(shown, results, name, measure) for measure in measures)] for name in names]
    return Table("What the text says", ("case", *measures), [row for row in rows if any(row[1:])])


def gpu_table() -> Table:
    """Return Tables 2 and 3 of the paper, which need a GPU, with the command that would run them."""
    command = "python -m experiments.manifold_linearizing_clustering.resnet IMAGES.npz CLUSTERS --device cuda"
    rows = [[name, f"{accuracy}", f"{nmi}", command] for name, (accuracy, nmi) in TABLE_2.items()]
    title = (
        f"Table 2: MLC with a ResNet-18, not run: it needs a GPU ({TABLE_3_MINUTES} minutes on two for CIFAR100-100)"
    )
    return Table(title, ("set", "accuracy", "NMI", "command"), rows)
