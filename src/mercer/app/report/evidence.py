"""Predictions beside the true targets: those that the fit has kept for its left-out rows, or new ones."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from mercer.app.files.tables import check_columns
from mercer.app.projects import TablePrediction
from mercer.app.projects.new_rows import needed_columns
from mercer.app.projects.number_prediction import judge_numbers
from mercer.app.projects.table_scores import Spread, classification_scores, regression_scores
from mercer.app.projects.table_target import as_numbers
from mercer.app.report.words import count
from mercer.exceptions import DataFileError
from mercer.tables.frames import as_frame, column_names

# At most this many rows are predicted, which is the number that a workflow keeps.
MOST_ROWS = 5000


class Evidence(NamedTuple):
    """Predictions for some rows.

    Attributes
    ----------
    words : str
        Which rows these are, as part of a sentence.
    noun : str
        What to call them: "left-out rows" or "rows".
    predicted : ndarray of shape (n,)
        Numbers, or positions in `classes`.
    true : ndarray of shape (n,) or None
        Numbers, or positions in `classes`; a class that the fit has not seen has the position after the last.
    probabilities : ndarray of shape (n, n_classes) or None
    classes : list of str
        Empty for numbers.
    inputs : data frame or None
        The rows of the table, if it is known.
    rows : ndarray of shape (n,)
        The positions of the rows in the table.
    std, lower, upper : ndarray of shape (n,) or None
        For numbers, if the model has them: standard deviations, and the ends of the 90 % intervals.
    narrowest : ndarray of shape (n,) or None
        The level of the narrowest interval that holds the true target; see `NumberJudgment`.
    log_density : ndarray of shape (n,) or None
        The logarithm of the predictive density at the true target, for rows that were predicted anew.
    """

    words: str
    noun: str
    predicted: np.ndarray
    true: Any
    probabilities: Any
    classes: list[str]
    inputs: Any
    rows: np.ndarray
    std: Any = None
    lower: Any = None
    upper: Any = None
    narrowest: Any = None
    log_density: Any = None

    def badness(self) -> np.ndarray:
        """Return how wrong each row is: the absolute error, or 1 - the probability of the right class."""
        if self.probabilities is None:
            return np.abs(self.true - self.predicted)
        # A class that the fit has not seen has the probability 0.
        padded = np.hstack([self.probabilities, np.zeros((len(self.predicted), 1))])
        return 1.0 - padded[np.arange(len(padded)), self.true]

    def doubt(self) -> Any:
        """Return how uncertain each prediction is: its standard deviation, or 1 - the largest probability, or None."""
        return self.std if self.probabilities is None else 1.0 - self.probabilities.max(axis=1)

    def scores(self) -> dict[str, float | None]:
        """Return the scores of the predictions."""
        if self.probabilities is None:
            known = self.log_density is not None
            spread = Spread(self.log_density, np.column_stack([self.lower, self.upper])) if known else None
            return regression_scores(self.true, self.predicted, spread)
        places = np.arange(len(self.classes))
        return classification_scores(self.true, self.predicted, self.probabilities, places)


def held_out(workflow: TablePrediction, frame: Any = None) -> Evidence:
    """Return the predictions that the fit has kept for its left-out rows, with their inputs if its table is given.

    Parameters
    ----------
    workflow : TablePrediction
        Fitted, with left-out rows.
    frame : data frame or None, default=None
    """
    kept = workflow.held_out_
    rows, n_test = np.asarray(kept["rows"]), workflow.n_test_
    words = f"{count(n_test, 'row')} that the scored model has not learned from"
    if len(rows) < n_test:
        words += f"; figures and examples are of {len(rows):,} of them, drawn at random"
    classes = [text_of_class(label) for label in kept.get("classes", ())]
    true, predicted = np.asarray(kept["true"]), np.asarray(kept["predicted"])
    if classes:
        true, predicted = (places_of(values, classes) for values in (true, predicted))
    inputs = None if frame is None else frame.iloc[rows]
    of_numbers = {name: kept.get(name) for name in ("std", "lower", "upper", "narrowest")}
    probabilities = kept.get("probabilities")
    return Evidence(words, "left-out rows", predicted, true, probabilities, classes, inputs, rows, **of_numbers)


def scored_anew(workflow: TablePrediction, frame: Any, random_state: Any) -> Evidence:
    """Predict the rows of a table, and return the predictions beside the target if the table has it.

    Parameters
    ----------
    workflow : TablePrediction
        Fitted.
    frame : data frame
        With the inputs.
    random_state : int, RandomState instance or None
    """
    has_target = workflow.target_ in frame.columns and bool(frame[workflow.target_].notna().any())
    usable = np.flatnonzero(frame[workflow.target_].notna().to_numpy()) if has_target else np.arange(len(frame))
    rows = sample(usable, MOST_ROWS, random_state)
    inputs = frame.iloc[rows]
    answer = workflow.predict_frame(inputs)
    words = f"{count(len(usable), 'row')} of the data" + (
        f", of which {len(rows):,} were drawn at random and predicted" if len(rows) < len(usable) else ""
    )
    predicted, probabilities, classes, true = answer["prediction"].to_numpy(), None, [], None
    of_numbers: dict[str, Any] = {}
    if workflow.task_ == "classification":
        classes = [text_of_class(label) for label in workflow.model_.classes_]
        probabilities = answer.to_numpy()[:, 1 : 1 + len(classes)].astype(np.float64)
        predicted = places_of(predicted, classes)
    elif "std" in answer.columns:
        of_numbers = {name: answer[name].to_numpy() for name in ("std", "lower", "upper")}
    if has_target:
        column = inputs[workflow.target_]
        true = places_of(column, classes) if classes else as_numbers(column)
    if true is not None and of_numbers:
        judgment = judge_numbers(workflow.model_, inputs.reindex(columns=workflow.columns_), true)
        of_numbers |= {"narrowest": judgment.narrowest, "log_density": judgment.spread.log_density}
    return Evidence(words, "rows", predicted, true, probabilities, classes, inputs, rows, **of_numbers)


def is_table_of_fit(workflow: TablePrediction, frame: Any) -> bool:
    """Return whether a table is the one of the fit: it has as many rows, and the left-out rows are where they were.

    Parameters
    ----------
    workflow : TablePrediction
        Fitted.
    frame : data frame
    """
    kept = workflow.held_out_
    if not kept or workflow.target_ not in frame.columns:
        return False
    n_seen = workflow.n_rows_ + workflow.dropped_rows_
    rows = np.asarray(kept["rows"])
    if len(frame) < n_seen or (workflow.max_rows is None and len(frame) != n_seen) or rows.max() >= len(frame):
        return False
    return has_targets(workflow, frame[workflow.target_].iloc[rows]) and has_inputs(workflow, frame)


def has_targets(workflow: TablePrediction, column: Any) -> bool:
    """Return whether a column holds the targets of the left-out rows, regardless of the type it is stored as."""
    true = workflow.held_out_["true"]
    if workflow.task_ == "classification":
        classes = sorted({str(label) for label in true})
        return np.array_equal(places_of(column, classes), places_of(true, classes))
    try:
        return np.array_equal(as_numbers(column), true)
    except DataFileError:
        return False


def has_inputs(workflow: TablePrediction, frame: Any) -> bool:
    """Return whether the first left-out rows have the same inputs in a table as they had in the fit."""
    there = workflow.encoded_rows(frame, workflow.held_out_["rows"])
    return bool(np.allclose(there, workflow.held_out_["encoded"], rtol=1e-5, atol=1e-6))


def checked_frame(workflow: TablePrediction, data: Any) -> Any:
    """Return a data frame whose column names are strings; raise if it lacks an input that the model uses."""
    frame = as_frame(data)
    if frame is None:
        raise TypeError(f"data is a {type(data).__name__}: a model of a table needs a data frame.")
    frame = frame.set_axis(column_names(frame), axis=1)
    check_columns(frame.columns, needed_columns(workflow.columns_, workflow.kinds_))
    return frame


def sample(rows: np.ndarray, at_most: int, random_state: Any) -> np.ndarray:
    """Return the rows or, if there are more than `at_most`, that many of them drawn at random, in order."""
    if len(rows) <= at_most:
        return rows
    return np.sort(check_random_state(random_state).choice(rows, at_most, replace=False))


def text_of_class(label: Any) -> str:
    """Return a class as text. Whole numbers have no decimals, also if missing values made their column floats."""
    is_whole = isinstance(label, (float, np.floating)) and float(label).is_integer()
    return str(int(label)) if is_whole else str(label)


def places_of(labels: Any, classes: list[str]) -> np.ndarray:
    """Return the position of each label among the classes; others get the position after the last."""
    place = {name: i for i, name in enumerate(classes)}
    # 1.0 is the class "1.0" if targets are fractions, and "1" if they are whole numbers with missing values.
    found = (place.get(str(label), place.get(text_of_class(label), len(classes))) for label in labels)
    return np.fromiter(found, dtype=np.int64, count=len(labels))
