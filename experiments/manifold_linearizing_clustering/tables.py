"""The experiment's own tables."""

from experiments import Results, Table, or_empty
from experiments.report import mean_and_spread

from .cases import ABLATED, FULL, JUDGED, OURS, PEERS, QUICK, READINGS, imbalanced, on, on_features, toy
from .criteria import CRITERIA
from .paper import TABLE_1, TABLE_2, TABLE_3_MINUTES


def tables(results: Results) -> list[Table]:
    """All of them; a cell whose runs are not all there is empty."""
    return [
        toy_table(results),
        *[set_table(results, measure) for measure in ("accuracy", "nmi", "fit seconds")],
        stage_table(results),
        criteria_table(results),
        feature_table(results),
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
    names = [name for reading in READINGS for name in (toy(reading), f"{toy(reading)}, quick") if name in results.seeds]
    rows = [[name, *(or_empty(shown, results, name, measure) for measure in measures)] for name in names]
    return Table("Two manifolds: ranks and largest cosine of the true clusters", ("noise", *measures), rows)


def set_table(results: Results, measure: str) -> Table:
    """Contestants by sets."""
    labels = [label for label in (*FULL, *QUICK, imbalanced("mnist 2 000")) if on(label, OURS) in results.seeds]
    rows = [
        [name, *(or_empty(shown, results, on(label, name), measure) for label in labels)] for name in (OURS, *PEERS)
    ]
    return Table(measure, ("contestant", *labels), rows)


def stage_table(results: Results) -> Table:
    """What each stage reaches, and what was kept."""
    measures = ("start accuracy", "final accuracy", "accuracy")
    names = [on(label, OURS) for label in (*FULL, *QUICK)] + [on("mnist 2 000", f"{OURS}, {name}") for name in ABLATED]
    rows = [[name, *(or_empty(shown, results, name, measure) for measure in measures)] for name in names]
    return Table("The stages, and the one that is kept", ("set", *measures), [row for row in rows if any(row[1:])])


def criteria_table(results: Results) -> Table:
    """What criteria without labels lose, of the clusters of all stages at every η."""
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


def feature_table(results: Results) -> Table:
    """Table 1: subspace clustering on features of the stages."""
    rows = []
    for name, paper in TABLE_1.items():
        cases = [on("mnist 2 000", on_features(name, stage)) for stage in ("", "start", "final")]
        ours = [or_empty(shown, results, case, "accuracy") for case in cases]
        rows.append([name, *ours, *(f"{accuracy}" for accuracy, _ in paper)])
    columns = ("method", "on mnist 2 000", "on the start's features", "on MLC's", "paper: the start's", "paper: MLC's")
    return Table("Table 1: accuracy; the paper's on CIFAR-10", columns, rows)


def gpu_table() -> Table:
    """Tables 2 and 3, which need a GPU."""
    command = "python -m experiments.manifold_linearizing_clustering.resnet IMAGES.npz CLUSTERS --device cuda"
    rows = [[name, f"{accuracy}", f"{nmi}", command] for name, (accuracy, nmi) in TABLE_2.items()]
    title = (
        f"Table 2: MLC with a ResNet-18, not run: it needs a GPU ({TABLE_3_MINUTES} minutes on two for CIFAR100-100)"
    )
    return Table(title, ("set", "accuracy", "NMI", "command"), rows)
