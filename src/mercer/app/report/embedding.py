"""The report on an embedding: a map, what each row is like, and what was fitted."""

from typing import Any

import numpy as np

from mercer.app.projects import DataEmbedding
from mercer.app.report.evidence import sample
from mercer.app.report.maps import (
    NOUN,
    ONE,
    Drawn,
    draw_samples,
    encode_column,
    map_data,
    map_parts,
    named_frame_or_images,
)
from mercer.app.report.markup import facts, paragraph
from mercer.app.report.page import Page, Section
from mercer.app.report.thumbnails import sheet
from mercer.app.report.words import count
from mercer.kernels import Kernel

# Landmarks that are shown of each row.
N_TOP = 3
# Landmarks that are compared to find out whether a table is the one of the fit.
COMPARED = 50


def report_embedding(workflow: DataEmbedding, data: Any, data_name: str, random_state: Any) -> Page:
    """Return the page on a fitted DataEmbedding.

    Parameters
    ----------
    workflow : DataEmbedding
    data : data frame or ImageFolder
    data_name : str
    random_state : int, RandomState instance or None
    """
    data = named_frame_or_images(data)
    noun = NOUN[workflow.reads]
    drawn = draw_samples(workflow.reads, data, random_state)
    places = workflow.predict_frame(drawn.data)[["map_1", "map_2"]].to_numpy()
    payload = map_data(drawn, places, workflow.columns_)
    is_known = add_landmarks(payload, workflow, drawn, data)
    lead = [
        f"{workflow.n_components_} coordinates were learned without labels from {workflow.describe()}, such that "
        f"small changes of {ONE[workflow.reads]} change them least. Similar {noun}s are near each other.",
        f"The map shows {drawn.words()} from {data_name}.",
    ]
    shown = f"Choose {ONE[workflow.reads]} to see the landmarks that it is most like."
    about = [
        paragraph(
            f"Neighbors on the map are neighbors in the {workflow.n_components_} coordinates. Distances between far "
            "groups, and the directions of the map, mean little."
        ),
        *map_parts(drawn, places, None, shown),
        paragraph(
            f"Every coordinate of {ONE[workflow.reads]} is a sum over landmarks, here "
            f"{count(len(workflow.embedding_.landmarks_), noun)} of the fit. Likeness is the value of the kernel for "
            f"the {noun} and a landmark, 1 if they are equal; the chosen {noun} itself is left out."
            + ("" if is_known else f" {data_name} is not the table of the fit, so landmarks are shown by number only.")
        ),
    ]
    fitted = [
        paragraph("Kernel, bandwidth and ridge were chosen without labels."),
        facts(
            [
                ("data", workflow.describe()),
                ("coordinates", f"{workflow.n_components_}, of effective rank {workflow.effective_rank_:.1f}"),
                *workflow.settings_.items(),
                (
                    "map",
                    f"made of {count(len(workflow.map_rows_), noun)}; others are placed beside the nearest of these",
                ),
            ]
        ),
    ]
    sections = [Section("map-section", "What do the data look like?", about)]
    return Page(f"A map of {data_name}", lead, [*sections, Section("fitted", "What was fitted?", fitted)], payload)


def add_landmarks(payload: dict[str, Any], workflow: DataEmbedding, drawn: Drawn, data: Any) -> bool:
    """Add the landmarks that each row is most like to the data of the map.

    Returns whether the values of the landmarks, or their pictures, can be shown.

    Parameters
    ----------
    payload : dict
        What `map_data` has returned; it is changed in place.
    workflow : DataEmbedding
    drawn : Drawn
    data : data frame or ImageFolder
        All data. They contain the landmarks if they are the data of the fit.
    """
    embedding = workflow.embedding_
    top, likeness = most_like(embedding.kernel_, encoded(workflow, drawn.data), embedding.landmarks_)
    used, codes = np.unique(top, return_inverse=True)
    index = embedding.landmark_indices_
    names = [f"landmark {i}" for i in used]
    if index is not None:
        names = [f"row {name}" if workflow.reads == "table" else str(name) for name in workflow.names_of(index[used])]
    landmarks = {
        "names": names,
        "top": codes.reshape(top.shape).tolist(),
        "likeness": np.round(likeness, 3).tolist(),
        "columns": None,
    }
    payload["landmarks"] = landmarks
    if workflow.image_shape_ is not None:
        # On the sheet of pictures, the landmarks come after the rows.
        pictures = embedding.landmarks_[used].reshape(-1, *workflow.image_shape_)
        payload["sprite"] = sheet(np.concatenate([drawn.data.X, pictures]))
        return True
    if index is None or not is_table_of_fit(workflow, data):
        return False
    table = data.iloc[index[used]]
    landmarks["columns"] = [encode_column(column["name"], table[column["name"]]) for column in payload["columns"]]
    return True


def most_like(kernel: Kernel, X: np.ndarray, landmarks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the landmarks that each row is most like, and k(x, l) / sqrt(k(x, x) k(l, l)), both of shape (n, n_top).

    A row that is itself a landmark is put last among its own landmarks, so that it is shown only if there are too few.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray of shape (n, d)
    landmarks : ndarray of shape (m, d)

    Notes
    -----
    O(n m d), and memory for the n m numbers.
    """
    likeness = np.asarray(kernel(X, landmarks), dtype=np.float64)
    likeness /= np.sqrt(np.outer(kernel.diagonal(X), kernel.diagonal(landmarks)))
    order = np.argsort(-likeness, axis=1, kind="stable")[:, : N_TOP + 1]
    is_same = np.stack([(landmarks[place] == X).all(axis=1) for place in order.T], axis=1)
    order = np.take_along_axis(order, np.argsort(is_same, axis=1, kind="stable"), axis=1)[:, :N_TOP]
    return order, np.take_along_axis(likeness, order, axis=1)


def is_table_of_fit(workflow: DataEmbedding, data: Any) -> bool:
    """Return whether a table is the one of the fit: it has as many rows, and the landmarks are where they were."""
    index = workflow.embedding_.landmark_indices_
    if index is None or len(data) != workflow.n_rows_:
        return False
    some = sample(np.arange(len(index)), COMPARED, 0)
    there = encoded(workflow, data.iloc[index[some]])
    return bool(np.allclose(there, workflow.embedding_.landmarks_[some], rtol=1e-5, atol=1e-6))


def encoded(workflow: Any, data: Any) -> np.ndarray:
    """Return data as rows of numbers, encoded as the workflow encodes them."""
    if workflow.encoder_ is not None:
        return workflow.encoder_.transform(data)
    return data.X.reshape(len(data.X), -1)
