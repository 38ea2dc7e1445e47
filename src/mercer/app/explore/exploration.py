"""Everything that the page can ask for: points, colors, a row with its reasons and effects, a search, a concept."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from mercer.app.explore.columns import Shown, is_missing, shown_column, shown_texts
from mercer.app.explore.curves import Curves
from mercer.app.explore.named_concepts import NamedConcepts, concept_column
from mercer.app.explore.rows import Rows, rows_of
from mercer.app.explore.subject import Subject, on_rows, subject_of
from mercer.app.files.tables import without_formulas
from mercer.app.report.model_map import innermost
from mercer.app.report.words import text_of
from mercer.exceptions import invalid_parameter
from mercer.explain import Concept, expansion, reasons
from mercer.plots.style import CATEGORIES

# The most training rows and columns that are shown as reasons for the answer about a row.
N_PUSHES, N_COLUMNS = 10, 10


class Exploration:
    """One or two models on the same rows, and the concepts that were named.

    Only concepts are written, to `concept_file`. Answers are computed one at a time (see `lock`), since models are not
    made for several threads at once.

    Parameters
    ----------
    model : fitted model of Mercer
        A workflow that `mercer fit`, `embed` or `cluster` saved, or an estimator.
    data : Table, data frame, ImageFolder or array
    y : array-like of shape (n,), optional
        Shown as one more column.
    other : fitted model, optional
        A second model, to compare on the same rows.
    names : sequence of str, default=("model", "other model")
        The names of the models on the page.
    title : str, default="the data"
    safe_csv : bool, default=False
        Whether texts that spreadsheets take for formulas get an apostrophe before them when rows are exported.
    concept_file : Path, optional
        The file to which concepts are saved, and in which those of earlier visits are found. None writes nothing.
    random_state : int, RandomState instance or None, default=0
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        y: Any = None,
        *,
        other: Any = None,
        names: Sequence[str] = ("model", "other model"),
        title: str = "the data",
        safe_csv: bool = False,
        concept_file: Path | None = None,
        random_state: Any = 0,
    ) -> None:
        self.lock, self.title, self.safe_csv = RLock(), title, safe_csv
        self.rows: Rows = rows_of(data, y, getattr(model, "sample_shape_", None))
        models = [model] if other is None else [model, other]
        self.subjects = [
            subject_of(each, self.rows, str(name), random_state) for each, name in zip(models, names, strict=False)
        ]
        self.columns: list[Shown] = [answer for subject in self.subjects for answer in subject.answers]
        if len(self.subjects) == 2:
            self.columns += _differences(*self.subjects)
        self.columns += [shown_column(str(name), self.rows.frame[name]) for name in self.rows.frame.columns]
        self.concepts = NamedConcepts(random_state, concept_file)
        self._of_concepts: dict[int, Callable[[], np.ndarray]] = {}
        for subject in self.subjects:
            for concept in self.concepts.earlier(subject):
                self._offer(subject, concept)
        self._cuts: dict[tuple[int, int], np.ndarray] = {}
        self._curves = [Curves(subject, self.rows.images is not None) for subject in self.subjects]

    # ---- points ----------------------------------------------------------------------------------------------------

    def about(self) -> dict[str, Any]:
        """Return a description of the models, the columns and the colors."""
        models = [
            {
                "name": subject.name,
                "kind": type(subject.model).__name__,
                "map": subject.map.words,
                "sums": subject.places is not None,
                "predicts": subject.predicts,
                "most_clusters": subject.most_clusters,
            }
            for subject in self.subjects
        ]
        return {
            "title": self.title,
            "n": len(self.rows),
            "noun": self.rows.noun,
            "models": models,
            "columns": [column.about() for column in self.columns],
            "palette": list(CATEGORIES),
        }

    def places(self, model: int) -> bytes:
        """Return the map of a model as pairs of float32 from 0 to 1, with the same scale on both axes."""
        places = self.subject(model).map.places
        scaled = (places - places.min(axis=0)) / (float(np.ptp(places, axis=0).max()) or 1.0)
        return np.ascontiguousarray(scaled, dtype=np.float32).tobytes()

    def column(self, k: int) -> bytes:
        """Return the values of a column as float32."""
        if not 0 <= k < len(self.columns):
            raise invalid_parameter("column", k, f"a number from 0 to {len(self.columns) - 1}")
        if k in self._of_concepts:  # computed only when it is used, since it takes time for many rows
            column, work = self.columns[k], self._of_concepts.pop(k)
            self.columns[k] = column._replace(values=work())
        return self.columns[k].values.tobytes()

    def cut(self, model: int, k: int) -> bytes:
        """Return the clusters of the rows when a tree of clusters is cut into k, as float32."""
        subject = self.subject(model)
        if subject.most_clusters is None:
            raise invalid_parameter("model", subject.name, "a clustering with a tree, such as ManifoldClustering")
        if (model, k) not in self._cuts:
            inner, X = innermost(subject.model, subject.X)
            self._cuts[model, k] = np.asarray(inner.cut(X, k), dtype=np.float32)
        return self._cuts[model, k].tobytes()

    def influence(self, model: int, row: int, output: str | None = None) -> bytes:
        """Return what each row adds to the answer about one row, as float32; NaN for rows that are not in the sum."""
        subject, row = self.subject(model), self.check_row(row)
        if subject.places is None:
            raise invalid_parameter("model", subject.name, "a sum over rows", "Networks and some other models are not.")
        found = expansion(subject.model, subject.some([row]))
        index = found.outputs.index(self._own_output(subject, output or self._about(subject, row).output))
        return on_rows(found.contributions[0, :, index], subject.places, len(self.rows)).tobytes()

    # ---- one row ---------------------------------------------------------------------------------------------------

    def row(self, row: int) -> dict[str, Any]:
        """Return the name and the values of one row, and the answers of the models, as text."""
        row = self.check_row(row)
        values = self.rows.frame.iloc[row]
        shown = [[str(name), "–" if is_missing(value) else text_of(value)] for name, value in values.items()]
        for column in self.columns:
            if column.of != "data" and len(column.values):
                value = column.values[row]
                known = np.isfinite(value)
                text = column.levels[int(value)] if known and column.levels else text_of(float(value))
                shown.append([self.in_words(column), text if known else "–"])
        return {"row": row, "name": self.rows.name(row), "values": shown, "image": self.rows.images is not None}

    def why(self, model: int, row: int, output: str | None = None) -> dict[str, Any]:
        """Return the reasons for the answer about a row: the training rows that push it, the columns, and the doubt."""
        subject, row = self.subject(model), self.check_row(row)
        own = None if output is None else self._own_output(subject, output)
        found = reasons(subject.model, subject.some([row]), n_rows=N_PUSHES, output=own)
        of_all = expansion(subject.model, subject.some([row]))
        order = {int(training): place for place, training in enumerate(of_all.rows)}
        pushes = []
        for training, push in zip(found.rows, found.pushes, strict=True):
            place = -1 if subject.places is None else int(subject.places[order[int(training)]])
            name = self.rows.name(place) if place >= 0 else f"training row {int(training)}, not among these"
            pushes.append({"row": place if place >= 0 else None, "name": name, "push": float(push)})
        shown = [
            {"name": name, "slope": None if np.isnan(slope) else float(slope), "effect": float(effect)}
            for name, slope, effect in zip(found.feature_names, found.gradient, found.effect, strict=True)
        ]
        rest = found.prediction - found.center - float(found.pushes.sum())
        return {
            "meaning": found.meaning,
            "output": subject.outputs.get(found.output, found.output),
            "outputs": [subject.outputs.get(each, each) for each in of_all.outputs[:50]],
            "value": found.prediction,
            "center": found.center,
            "doubt": found.doubt,
            "pushes": pushes,
            "rest": rest,
            "n_rest": max(len(of_all.rows) - len(pushes), 0),
            "columns": shown[:N_COLUMNS],
        }

    def effects(self, model: int, row: int) -> dict[str, Any]:
        """Return the effect curves of the columns and the place of a row on each; see `Curves.at`."""
        self.subject(model)
        return self._curves[model].at(self.check_row(row))

    # ---- selections ------------------------------------------------------------------------------------------------

    def search(self, text: str) -> list[int]:
        """Return the rows whose name or one of whose values contains a text. Upper and lower case are the same."""
        wanted = str(text).casefold().strip()
        if not wanted:
            return []
        found = np.zeros(len(self.rows), dtype=bool)
        for name in self.rows.frame.columns:
            # Each different value is searched only once.
            codes, values = self.rows.frame[name].factorize()
            hits = np.array([wanted in text_of(value).casefold() for value in values], dtype=bool)
            if len(hits):
                found |= np.append(hits, False)[codes]
        if self.rows.images is None and wanted.removeprefix("row ").isdigit():
            place = int(wanted.removeprefix("row "))
            if place < len(found):
                found[place] = True
        return np.flatnonzero(found).tolist()

    def export(self, rows: Sequence[int]) -> str:
        """Return rows as CSV: their numbers, their values, and the answers of the models."""
        some = self.check_rows(rows)
        table = self.rows.frame.iloc[some].copy()
        table.insert(0, "row" if "row" not in table.columns else "row number", some)
        for column in self.columns:
            if column.of != "data" and len(column.values):
                values = column.values[some]
                if column.levels:
                    values = np.array([column.levels[int(v)] if np.isfinite(v) else None for v in values], dtype=object)
                name = self.in_words(column)
                table[name if name not in table.columns else f"{name} ({column.of})"] = values
        return str((without_formulas(table) if self.safe_csv else table).to_csv(index=False))

    def concept(self, model: int, name: str, rows: Sequence[int], groups: int) -> dict[str, Any]:
        """Name selected rows as a concept, return its profile over the groups of a column, and offer it as a color.

        Parameters
        ----------
        model : int
        name : str
        rows : sequence of int
            The examples. The concept is what tells them from all other rows.
        groups : int
            The column whose levels are the groups.
        """
        subject, some = self.subject(model), self.check_rows(rows)
        by = self.columns[groups] if 0 <= groups < len(self.columns) else None
        if by is None or by.kind != "category":
            raise invalid_parameter("groups", groups, "a column of categories, such as the classes or clusters")
        named = self.concepts.name(str(name)[:200], subject, some, by)
        self._offer(subject, named.concept)
        return {**named.in_words(), "column": len(self.columns) - 1, "about": self.columns[-1].about()}

    # ---- checks ----------------------------------------------------------------------------------------------------

    def subject(self, model: int) -> Subject:
        """Return one of the models."""
        if not 0 <= model < len(self.subjects):
            raise invalid_parameter("model", model, f"a number from 0 to {len(self.subjects) - 1}")
        return self.subjects[model]

    def check_row(self, row: int) -> int:
        """Return the number of a row; raise if there is no such row."""
        if not 0 <= row < len(self.rows):
            raise invalid_parameter("row", row, f"a number from 0 to {len(self.rows) - 1}")
        return row

    def check_rows(self, rows: Sequence[int]) -> np.ndarray:
        """Return numbers of rows in order, each once; raise if there are no such rows."""
        if not isinstance(rows, list) or not all(type(row) is int for row in rows):
            raise invalid_parameter("rows", type(rows).__name__, "a list of numbers of rows")
        some = np.unique(np.array(rows, dtype=int))
        if len(some) and not 0 <= some[0] <= some[-1] < len(self.rows):
            raise invalid_parameter("rows", int(some[-1]), f"numbers from 0 to {len(self.rows) - 1}")
        return some

    def in_words(self, column: Shown) -> str:
        """Return the name of a column, with that of its model if there are two models."""
        return column.name if len(self.subjects) < 2 or column.of in ("data", "") else f"{column.of}: {column.name}"

    def _offer(self, subject: Subject, concept: Concept) -> None:
        """Add a column with the influence of a concept, which is computed when it is asked for."""
        self._of_concepts[len(self.columns)] = partial(concept_column, subject, concept)
        values = np.zeros(0, dtype=np.float32)
        self.columns.append(Shown(f"concept {concept.name}", "number", values, [], subject.name))

    def _about(self, subject: Subject, row: int, n_rows: int = 1) -> Any:
        found = reasons(subject.model, subject.some([row]), n_rows=n_rows)
        return found._replace(output=subject.outputs.get(found.output, found.output))

    def _own_output(self, subject: Subject, output: str) -> str:
        """Return the model's own name of an output that the page has shown."""
        return next((own for own, shown in subject.outputs.items() if shown == output), output)


def _differences(first: Subject, second: Subject) -> list[Shown]:
    """Return columns that compare the answers of two models: the difference of numbers, or whether classes agree."""
    one, two = ({a.name: a for a in subject.answers} for subject in (first, second))
    found = []
    for name in ("prediction", "cluster"):
        if name in one and name in two and one[name].kind == two[name].kind:
            a, b = one[name], two[name]
            if a.kind == "number":
                found.append(Shown(f"difference of {name}s", "number", a.values - b.values, [], ""))
            elif a.kind == "category" and name == "prediction":
                texts = [
                    "agree" if a.levels[int(x)] == b.levels[int(y)] else "differ"
                    for x, y in zip(a.values, b.values, strict=True)
                ]
                found.append(shown_texts("predictions", texts, "", ["agree", "differ"]))
    return found
