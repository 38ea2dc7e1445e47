"""A model together with the rows that are explored: its map, its answers, and its training rows among them."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.app.explore.columns import Shown, shown_column, shown_texts
from mercer.app.explore.rows import Rows
from mercer.app.files.images import ImageFolder
from mercer.app.projects import DataClustering, DataEmbedding, TablePrediction
from mercer.app.projects.new_rows import read_like_fit
from mercer.app.report.embedding import encoded
from mercer.app.report.model_map import Map, innermost, map_of
from mercer.clustering.subspace.subspace_clustering import SubspaceClustering
from mercer.exceptions import DataWarning
from mercer.explain import expansion
from mercer.landmarks.kernel_map import KernelMap
from mercer.tables.frames import optional
from mercer.tabular_models.gp import GPRegressor
from mercer.tabular_models.table_model import TableModel

# The influence of training rows is averaged over this many rows.
INFLUENCE_ROWS = 200


class Subject(NamedTuple):
    """A fitted model and the rows.

    Attributes
    ----------
    name : str
        The name of the model on the page.
    model : estimator
        The model as `mercer.explain` takes it.
    X : data frame or ndarray
        The rows as the model takes them.
    outputs : dict of str
        Names on the page for the outputs of `explain.expansion`, such as groups that are numbered by size.
    map : Map
    answers : list of Shown
    places : ndarray of int, of shape (m,), or None
        For models that are sums over m training rows or landmarks: the position of each of these among the rows, or -1
        if it is not among them. None for other models.
    """

    name: str
    model: Any
    X: Any
    outputs: dict[str, str]
    map: Map
    answers: list[Shown]
    places: np.ndarray | None

    def some(self, rows: Any) -> Any:
        """Return some of the rows as the model takes them."""
        return self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]

    @property
    def predicts(self) -> bool:
        """Whether the model has predictions whose effects can be drawn; numbers of clusters are no such predictions."""
        inner = innermost(self.model, None)[0]
        answers = "predict_proba" if hasattr(self.model, "classes_") else "predict"
        return hasattr(self.model, answers) and not (isinstance(inner, SubspaceClustering) or hasattr(inner, "labels_"))

    @property
    def most_clusters(self) -> int | None:
        """The most clusters into which a tree of clusters is cut, twice those of the fit; None without a tree."""
        inner = innermost(self.model, None)[0]
        return 2 * (int(np.max(inner.labels_)) + 1) if hasattr(inner, "cut") else None


def subject_of(model: Any, rows: Rows, name: str, random_state: Any = 0) -> Subject:
    """Return a model together with the rows; raise if they do not fit each other.

    Parameters
    ----------
    model : fitted TablePrediction, DataEmbedding, DataClustering or estimator
    rows : Rows
    name : str
    random_state : int, RandomState instance or None, default=0
        Draws the rows of which a map is made, if there are many.
    """
    random, pandas = check_random_state(random_state), optional("pandas", "a page to explore", "files")
    check_is_fitted(model)
    outputs: dict[str, str] = {}
    if isinstance(model, TablePrediction):
        table = model.predict_frame(rows.given).reset_index(drop=True)
        inner: Any = model.model_
        X: Any = read_like_fit(rows.given, model.readings_).reindex(columns=model.columns_)
        drawn = map_of(inner, X, random)
    elif isinstance(model, DataEmbedding | DataClustering):
        table = model.predict_frame(rows.given)
        data = rows.given if isinstance(rows.given, ImageFolder) else read_like_fit(rows.given, model.readings_)
        X = np.asarray(encoded(model, data))
        inner = model.embedding_ if isinstance(model, DataEmbedding) else model.clustering_
        if isinstance(model, DataEmbedding):
            drawn = Map(table[["map_1", "map_2"]].to_numpy(), "neighbors in the coordinates are neighbors on the map")
            table = table[[column for column in table.columns if column.startswith("component_")][:5]]
        else:
            drawn = map_of(inner, X, random)
            outputs = {str(cluster): str(group) for group, cluster in enumerate(model.order_)}
            table = pandas.DataFrame({"cluster": table["cluster"].astype(str), "doubt": 1.0 - table["confidence"]})
    else:
        inner, X = model, _as_the_model_takes_them(model, rows)
        drawn, table = map_of(inner, X, random), _answers(inner, X, pandas)
    places = _places(inner, X)
    answers = [_answer(str(column), table[column], name) for column in table.columns]
    if places is not None:
        answers.append(Shown("influence", "number", _influence(inner, X, places, len(rows), random), [], name))
    return Subject(name, inner, X, outputs, drawn, answers, places)


def _as_the_model_takes_them(model: Any, rows: Rows) -> Any:
    if isinstance(rows.given, ImageFolder):
        return rows.given.X.reshape(len(rows), -1)
    if rows.images is not None:
        array = np.asarray(rows.given)
        return array if hasattr(model, "sample_shape_") else array.reshape(len(array), -1)
    wanted = getattr(model, "feature_names_in_", None)
    if hasattr(rows.given, "columns") or hasattr(rows.given, "frame"):
        # Columns that the model does not use, such as the target, are shown but not given to it.
        names = list(rows.frame.columns) if wanted is None else [str(name) for name in wanted]
        missing = [name for name in names if name not in rows.frame.columns]
        if missing:
            raise ValueError(
                f"model and data do not fit each other: the model was fitted on the column {missing[0]!r}, but the "
                f"data have {', '.join(map(repr, rows.frame.columns))}."
            )
        return rows.frame[names]
    return np.asarray(rows.given)


def _answers(model: Any, X: Any, pandas: Any) -> Any:
    """Return the answers of a model for each row as a table: predictions, doubt, clusters or coordinates."""
    inner, found = innermost(model, None)[0], {}
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        probabilities = np.asarray(model.predict_proba(X))
        classes = [str(label) for label in model.classes_]
        found["prediction"] = np.array(classes)[probabilities.argmax(axis=1)]
        found["doubt"] = 1.0 - probabilities.max(axis=1)
        for label, own in list(zip(classes, probabilities.T, strict=True))[:10]:
            found[f"probability of {label}"] = own
    elif isinstance(inner, GPRegressor):
        mean, std = (np.asarray(part).reshape(len(X), -1)[:, 0] for part in model.predict(X, return_std=True))
        found = {"prediction": mean, "doubt": std}
    elif isinstance(inner, SubspaceClustering) or hasattr(inner, "labels_"):
        found["cluster"] = np.array([str(label) for label in model.predict(X)])
    elif hasattr(model, "predict"):
        predicted = np.asarray(model.predict(X)).reshape(len(X), -1)[:, 0]
        of_classes = hasattr(model, "classes_") or predicted.dtype.kind not in "iuf"
        found["prediction"] = predicted.astype(str) if of_classes else predicted
    else:
        for j, own in enumerate(np.asarray(model.transform(X)).T[:5], 1):
            found[f"component_{j}"] = own
    return pandas.DataFrame(found)


def _answer(name: str, values: Any, of: str) -> Shown:
    if name == "cluster":
        levels = sorted(set(values), key=lambda text: (len(text), text))
        return shown_texts(name, list(values), of, levels)
    return shown_column(name, values, of)


def _places(model: Any, X: Any) -> np.ndarray | None:
    """Return the positions among the rows of the training rows of an expansion; None if there is no expansion."""
    inner, rows = innermost(model, X)
    if isinstance(inner, SubspaceClustering):
        same = len(inner.labels_) == len(rows)
        return np.asarray(inner.landmark_indices_) if same else np.full(len(inner.landmark_indices_), -1)
    if isinstance(inner, TableModel):
        places = np.full(len(inner.row_index_), -1)
        for machine, own in zip([*inner.trend_, *inner.machines_], inner.machine_rows_, strict=True):
            places[own] = _found_again(machine.rows, rows)
        return places
    if isinstance(inner, KernelMap) and inner.kernel_ is not None:
        landmarks = getattr(inner, "landmarks_", None)
        return _found_again(inner.basis_ if landmarks is None else landmarks, rows)  # type: ignore[attr-defined]
    return None


def _found_again(kept: np.ndarray, rows: Any) -> np.ndarray:
    """Return the first position among rows of each row that a model has kept; -1 if it is not among them."""
    kept = np.asarray(kept).reshape(len(kept), -1)
    # Adding 0 turns -0.0 into 0.0, which is equal but has other bytes.
    same = np.asarray(rows).reshape(len(rows), -1).astype(kept.dtype) + 0
    first: dict[bytes, int] = {}
    for place, row in enumerate(same):
        first.setdefault(row.tobytes(), place)
    return np.array([first.get((row + 0).tobytes(), -1) for row in kept], dtype=int)


def _influence(model: Any, X: Any, places: np.ndarray, n: int, random: np.random.RandomState) -> np.ndarray:
    """Return for each row how much it adds to an answer, averaged over some rows; NaN if it is no training row."""
    drawn = np.sort(random.permutation(n)[:INFLUENCE_ROWS])
    some = X.iloc[drawn] if hasattr(X, "iloc") else X[drawn]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        pushes = np.abs(expansion(model, some).contributions).sum(axis=2).mean(axis=0)
    return on_rows(pushes, places, n)


def on_rows(values: np.ndarray, places: np.ndarray, n: int) -> np.ndarray:
    """Return values of training rows as values of the n rows on the page, as float32; NaN for other rows."""
    result, there = np.full(n, np.nan, dtype=np.float32), places >= 0
    result[places[there]] = 0.0
    np.add.at(result, places[there], values[there].astype(np.float32))
    return result
