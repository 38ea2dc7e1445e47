"""The tables of gradient steps: losses and starts, preconditioners, networks, and what was not run."""

from experiments import Results, Table, or_empty
from experiments.report import mean_and_spread

from .cases import FULL, QUICK, on
from .paper import LOSSES, TABLE_1, TABLE_1_LOSSES, TABLE_2, TABLE_4_GAINS, TABLE_5, TRAINED
from .step_cases import (
    BY_STEPS,
    DRAWS,
    GAUSSIAN,
    PRECONDITIONED_LOSSES,
    PRECONDITIONERS,
    STARTED,
    UNTRAINED,
    beside_networks,
    by_steps,
    network_of,
    preconditioned,
)

SETS = FULL | DRAWS | QUICK


def step_tables(results: Results) -> list[Table]:
    """Return all tables; cells with missing runs are empty."""
    return [
        start_table(results),
        preconditioner_table(results, "accuracy", "Table 2: accuracy, the paper's with tangent kernels in brackets"),
        preconditioner_table(results, "effective rank", "Figure 1: effective rank of A"),
        preconditioner_table(results, "fit seconds", "Table 2: fit, seconds"),
        *[network_table(results, data) for data in sets_with(results, "beside networks")],
        not_run_table(),
    ]


def shown(results: Results, case: str, measure: str) -> str:
    return mean_and_spread(results.values(case, measure))


def sets_with(results: Results, text: str) -> list[str]:
    return [data for data in SETS if any(case.startswith(on(data, "")) and text in case for case in results.seeds)]


def start_table(results: Results) -> Table:
    """Return the table of losses by gradient steps on MNIST (quick: digits), with Table 5 for uniform landmarks."""
    data = STARTED if on(STARTED, UNTRAINED) in results.seeds else "digits"
    printed = {**{loss: row[0] for loss, row in TRAINED.items()}, **{loss: TABLE_5[loss, "uniform"] for loss in LOSSES}}
    rows = [[UNTRAINED, or_empty(shown, results, on(data, UNTRAINED), "accuracy"), "-", "-", "-"]]
    for loss in BY_STEPS:
        principal, random = (on(data, by_steps(loss, start)) for start in ("principal", "random"))
        rows.append(
            [
                loss,
                or_empty(shown, results, principal, "accuracy"),
                or_empty(shown, results, random, "accuracy") if loss in TABLE_4_GAINS else "-",
                f"{printed[loss]}",
                or_empty(shown, results, principal, "fit seconds"),
            ]
        )
    columns = ("loss", "from principal components", "at random", "the paper, on mnist", "fit seconds")
    return Table(f"By gradient steps: accuracy on {data}", columns, rows)


def preconditioner_table(results: Results, measure: str, title: str) -> Table:
    """Return the table of a measure for sets and losses, with a column for each preconditioner."""
    rows = []
    for data in sets_with(results, "under preconditioner"):
        for loss in PRECONDITIONED_LOSSES:
            cases = [on(data, preconditioned(loss, name)) for name in PRECONDITIONERS]
            ours = [or_empty(shown, results, case, measure) for case in cases]
            paper = TABLE_2.get((SETS[data].name, loss), ()) if measure == "accuracy" else ()
            theirs = [f" [{value}]" for value in paper] + [""] * (len(ours) - len(paper))
            rows.append([f"{data}, {loss}", *(own + their for own, their in zip(ours, theirs, strict=True))])
    return Table(title, ("set and loss", *PRECONDITIONERS), rows)


def network_table(results: Results, data: str) -> Table:
    """Return the comparison of a kernel with a network: accuracy, time and number of parameters."""
    measures = ("accuracy", "balanced accuracy", "fit seconds", "parameters")
    rows = []
    for loss in TABLE_1_LOSSES:
        for name in (GAUSSIAN, network_of(SETS[data])):
            case = on(data, beside_networks(loss, name))
            if case in results.seeds:
                rows.append([f"{loss}, {name}", *(or_empty(shown, results, case, measure) for measure in measures)])
    return Table(f"Table 1: {data}, five epochs", ("loss and map", *measures), rows)


def not_run_table() -> Table:
    """Return Table 1 of the paper: the accuracy of its kernel and its network, and the command that would run it."""
    how = {
        "Adult, 1 000 000 rows": "not public",
        "Higgs, 1 000 000 rows": "needs HIGGS.csv of the UCI repository",
        "CoverType, 581 000 rows": "a sixth of it is run, see covtype",
        "CIFAR-10, 50 000 images, ResNet-34 of ImageNet": "needs the backbone; pixels are run, see cifar10",
    }
    command = "KernelEmbedding(loss, kernel='laplace', n_landmarks=2000).fit(X)"
    rows = [
        [what, how[what], command, *(f"{kernel} / {network}" for kernel, network in pairs)]
        for what, pairs in TABLE_1.items()
    ]
    columns = ("set", "not run", "what would run", *TABLE_1_LOSSES)
    return Table("Table 1 as printed (tangent kernel / network), not run", columns, rows)
