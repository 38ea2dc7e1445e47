"""The report on a clustering: how many groups, where they lie, what tells them apart, and what was fitted."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.app.projects import DataClustering
from mercer.app.projects.cluster_profiles import border_rows, typical_rows
from mercer.app.projects.embedding import neighbor_map, placed
from mercer.app.report.embedding import encoded
from mercer.app.report.maps import (
    NOUN,
    ONE,
    Drawn,
    draw_samples,
    encode_levels,
    map_data,
    map_parts,
    named_frame_or_images,
    some_images,
)
from mercer.app.report.markup import Html, facts, join, paragraph, table, tag
from mercer.app.report.page import Page, Section
from mercer.app.report.thumbnails import sheet, thumbnail
from mercer.app.report.words import NONE, count, listed, percent, text_of, texts_of

# Rows on the map, and how many of them t-SNE arranges (it takes seconds for 1000). The rest are placed among these.
MOST_SAMPLES, MAP_ROWS = 2000, 1000
# Examples of each kind that are shown of a cluster, and columns that are shown of each example.
N_EXAMPLES, MOST_SHOWN = 5, 8
# Rows with a confidence below SURE are in doubt; rows with one above INSIDE are not on a border.
SURE, INSIDE = 0.75, 0.995
# Columns whose difference is below this, in standard deviations, are not shown.
TELLING = 0.1


class Groups(NamedTuple):
    """Clusters of the rows that are shown, and examples of each.

    Attributes
    ----------
    drawn : Drawn
    labels, confidence : ndarrays of shape (n,)
        The group of each row that is shown, and its confidence.
    typical, border : lists of ndarray
        For each group, the positions of examples in the data.
    of_fit : bool
        Whether the data are those of the fit.
    """

    drawn: Drawn
    labels: np.ndarray
    confidence: np.ndarray
    typical: list[np.ndarray]
    border: list[np.ndarray]
    of_fit: bool


def report_clustering(workflow: DataClustering, data: Any, data_name: str, random_state: Any) -> Page:
    """Return the page on a fitted DataClustering.

    The fit makes no map, so that one is made here by t-SNE of the encoded rows.

    Parameters
    ----------
    workflow : DataClustering
    data : data frame or ImageFolder
    data_name : str
    random_state : int, RandomState instance or None
    """
    data = named_frame_or_images(data)
    random = check_random_state(random_state)
    drawn = draw_samples(workflow.reads, data, random, MOST_SAMPLES)
    groups = assigned(workflow, drawn, data)
    X = np.asarray(encoded(workflow, drawn.data), dtype=np.float64)
    places = places_of(X, random)
    payload = _payload(workflow, groups, places)
    noun = NOUN[workflow.reads]
    lead = [
        f"{workflow.describe()} fall into {count(workflow.n_clusters_, 'group')}. {_sizes(workflow)}",
        f"The map shows {drawn.words()} from {data_name}, the data of the fit; examples are from all of them."
        if groups.of_fit
        else f"{data_name} is not the data of the fit, so its {noun}s were assigned to the groups anew. The map and "
        f"the examples show {drawn.words()}.",
    ]
    on_map = [
        paragraph("Neighbors on the map are neighbors in the data. Distances between far groups mean little."),
        *map_parts(drawn, places, groups.labels, f"Choose {ONE[workflow.reads]} to see its values."),
    ]
    sections = [
        Section("number", "How many groups are there?", _how_many(workflow, groups)),
        Section("map-section", "Where do they lie?", on_map),
        Section(
            "apart", "What tells them apart?", [_card(workflow, groups, data, k) for k in range(workflow.n_clusters_)]
        ),
        Section("fitted", "What was fitted?", [facts([("data", workflow.describe()), *workflow.settings_.items()])]),
    ]
    return Page(f"Groups in {data_name}", lead, sections, payload)


def assigned(workflow: DataClustering, drawn: Drawn, data: Any) -> Groups:
    """Return the groups of the rows that are shown, with examples from the fit or, for other data, from these rows.

    Parameters
    ----------
    workflow : DataClustering
    drawn : Drawn
    data : data frame or ImageFolder
    """
    answer = workflow.predict_frame(drawn.data)
    labels, confidence = answer["cluster"].to_numpy(), answer["confidence"].to_numpy()
    of_fit = (
        drawn.n_all == workflow.n_rows_
        and (workflow.names_ is None or list(data.names) == workflow.names_)
        and np.array_equal(labels, workflow.labels_[drawn.rows])
        and np.allclose(confidence, workflow.confidence_[drawn.rows], atol=1e-6)
    )
    if of_fit:
        border = [own[workflow.confidence_[own] < INSIDE] for own in workflow.border_]
        return Groups(drawn, labels, confidence, workflow.typical_, border, True)
    X = np.asarray(encoded(workflow, drawn.data), dtype=np.float64)
    members = [np.flatnonzero(labels == k) for k in range(workflow.n_clusters_)]
    typical = [drawn.rows[typical_rows(X, own, N_EXAMPLES)] if len(own) else own for own in members]
    border = [drawn.rows[border_rows(confidence, own[confidence[own] < INSIDE], N_EXAMPLES)] for own in members]
    return Groups(drawn, labels, confidence, typical, border, False)


def places_of(X: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Return where rows of shape (n, d) lie on a map, of shape (n, 2)."""
    among = X[np.sort(random.permutation(len(X))[:MAP_ROWS])]
    positions = neighbor_map(among, int(random.randint(2**31 - 1)))
    return positions if len(among) == len(X) else placed(X, among, positions)


def _payload(workflow: DataClustering, groups: Groups, places: np.ndarray) -> dict[str, Any]:
    levels = [str(k) for k in range(workflow.n_clusters_)]
    extra = [
        encode_levels("group", [str(label) for label in groups.labels], levels),
        {"name": "confidence", "kind": "number", "values": np.round(groups.confidence, 3).tolist()},
    ]
    payload = map_data(groups.drawn, places, workflow.columns_, extra)
    if workflow.image_shape_ is not None:
        payload["sprite"] = sheet(groups.drawn.data.X)
    return payload


def _sizes(workflow: DataClustering) -> str:
    sizes = [f"{size:,}" for size in workflow.sizes_]
    return f"They have {listed(sizes)} {NOUN[workflow.reads]}s." if len(sizes) > 1 else ""


def _how_many(workflow: DataClustering, groups: Groups) -> list[Html]:
    parts = []
    if not workflow.candidates_:
        parts.append(paragraph(f"{workflow.n_clusters} groups were asked for."))
    else:
        tried = [entry["n_clusters"] for entry in workflow.candidates_]
        parts.append(
            paragraph(
                f"{tried[0]} to {tried[-1]} groups were tried, and the number with the largest product of stability "
                "and silhouette was chosen. Stability is how well the clusterings of two halves of the data agree: 0 "
                "is what chance gives, 1 is full agreement. The silhouette says how much nearer a row is to its own "
                "group than to the next."
            )
        )
        taken = next(i for i, entry in enumerate(workflow.candidates_) if entry["chosen"])
        rows = [
            [text_of(entry["n_clusters"]), _decimal(entry["stability"]), _decimal(entry["silhouette"]), _product(entry)]
            for entry in workflow.candidates_
        ]
        numbers = table(["groups", "stability", "silhouette", "product"], rows, label="Numbers tried", strong=taken)
        parts.append(
            tag("details", tag("summary", "All numbers that were tried"), numbers, open=len(rows) <= 6 or None)
        )
    means = [workflow.confidence_[workflow.labels_ == k] for k in range(workflow.n_clusters_)]
    rows = [
        [
            f"group {k}",
            text_of(int(size)),
            percent(size / workflow.n_rows_),
            percent(own.mean()),
            percent((own < SURE).mean()),
        ]
        for k, (size, own) in enumerate(zip(workflow.sizes_, means, strict=True))
    ]
    headings = ["", "size", "share", "mean confidence", f"in doubt (below {SURE:.0%})"]
    parts += [
        table(headings, rows, label="Sizes of the groups, and how sure their members are"),
        paragraph(
            "Each row is expressed as a combination of its neighbors. Its confidence is the share of its own group in "
            "that combination: 100% if all of it comes from there. The modularity of the groups in their graph is "
            f"{workflow.modularity_:.2f}."
        ),
    ]
    return parts


def _decimal(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _product(entry: dict[str, Any]) -> str:
    stability = 1.0 if entry["stability"] is None else max(entry["stability"], 0.0)
    return f"{stability * entry['silhouette']:.3f}"


def _card(workflow: DataClustering, groups: Groups, data: Any, k: int) -> Html:
    parts: list[Html] = [tag("h3", f"Group {k}")]
    said = f"{count(int(workflow.sizes_[k]), NOUN[workflow.reads])}, {percent(workflow.sizes_[k] / workflow.n_rows_)}."
    parts.append(paragraph(said))
    if workflow.profiles_ is not None:
        rows = [_told(entry) for entry in workflow.profiles_[k] if abs(entry["difference"]) >= TELLING]
        headings = ["differs most in", "in the group", "in all", "difference in standard deviations"]
        told = table(headings, rows, label=f"Columns that tell group {k} apart")
        parts.append(told if rows else paragraph("No column by itself tells it apart."))
    for title, examples in (("Typical", groups.typical[k]), ("On the border", groups.border[k])):
        parts.append(tag("h4", title))
        if not len(examples):
            none = "None: all are expressed by their own group." if title == "On the border" else "None."
            parts.append(paragraph(none))
        elif workflow.image_shape_ is not None:
            own = some_images(data, examples[:N_EXAMPLES])
            pictures = [thumbnail(image, name) for image, name in zip(own.X, own.names, strict=True)]
            parts.append(tag("div", join(pictures), class_="samples"))
        else:
            parts.append(_rows(workflow, data, examples[:N_EXAMPLES], k, title))
    return tag("article", *parts, class_="card")


def _told(entry: dict[str, Any]) -> list[str]:
    show = percent if entry["kind"] == "share" else text_of
    return [entry["what"], show(entry["in_cluster"]), show(entry["overall"]), f"{entry['difference']:+.1f}"]


def _rows(workflow: DataClustering, data: Any, rows: np.ndarray, k: int, title: str) -> Html:
    """Return rows of a table as examples; the columns that tell the group apart come first."""
    telling = [entry["column"] for entry in (workflow.profiles_ or [[]] * (k + 1))[k]]
    names = [*telling, *(name for name in workflow.columns_ if name not in telling)][:MOST_SHOWN]
    values = [texts_of(data[name].iloc[rows].tolist()) for name in names]
    lines = [[text_of(int(row)), *cells] for row, *cells in zip(rows, *values, strict=True)]
    return table(["row", *names], lines, label=f"{title} rows of group {k}")
