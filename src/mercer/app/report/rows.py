"""Tables of example rows: their inputs, what was predicted, and the true target."""

import numpy as np

from mercer.app.projects import TablePrediction
from mercer.app.projects.new_rows import needed_columns
from mercer.app.report.evidence import Evidence
from mercer.app.report.markup import Html, paragraph, table
from mercer.app.report.words import percent, text_of, texts_of

# The number of rows in a table of examples, and the most inputs that are shown of each.
N_ROWS, MOST_INPUTS = 10, 6


def worst_rows(workflow: TablePrediction, judged: Evidence) -> Html:
    """Return the rows with the largest errors, the largest first; for classes only rows that were predicted wrong."""
    order = np.argsort(-judged.badness(), kind="stable")
    if judged.probabilities is not None:
        order = order[judged.predicted[order] != np.asarray(judged.true)[order]]
    if not len(order):
        return paragraph(f"All {judged.noun} were predicted right.")
    order = order[:N_ROWS]
    return _examples(workflow, judged, order, "The worst rows")


def doubtful_rows(workflow: TablePrediction, judged: Evidence) -> Html:
    """Return the rows with the largest standard deviation, or with the least probable answers."""
    doubt = judged.doubt()
    order = np.argsort(-doubt, kind="stable")[:N_ROWS]
    return _examples(workflow, judged, order, "The rows that the model is least sure of")


def predicted_rows(workflow: TablePrediction, judged: Evidence) -> Html:
    """Return the first rows with their predictions."""
    return _examples(workflow, judged, np.arange(min(N_ROWS, len(judged.rows))), "The first rows")


def shown_inputs(workflow: TablePrediction) -> list[str]:
    """Return the inputs that examples show: the most important ones, in the order of the table."""
    ranked = list(workflow.importances_) or workflow.columns_
    top = set(needed_columns(ranked, workflow.kinds_)[:MOST_INPUTS])
    return [name for name in workflow.columns_ if name in top]


def _examples(workflow: TablePrediction, judged: Evidence, order: np.ndarray, label: str) -> Html:
    names = [name for name in shown_inputs(workflow) if name in judged.inputs.columns]
    values = [texts_of(judged.inputs[name].iloc[order].tolist()) for name in names]
    answers = _number_answers(judged, order) if judged.probabilities is None else _class_answers(judged, order)
    rows = [
        [text_of(int(row)), *cells] for row, *cells in zip(judged.rows[order], *answers.values(), *values, strict=True)
    ]
    return table(["row", *answers, *names], rows, label=label)


def _number_answers(judged: Evidence, order: np.ndarray) -> dict[str, list[str]]:
    predicted = judged.predicted[order]
    answers = {"predicted": predicted}
    if judged.std is not None:
        answers |= {"90%: from": judged.lower[order], "to": judged.upper[order]}
    if judged.true is not None:
        true = judged.true[order].astype(np.float64)
        answers = {"true": true, **answers, "error": predicted - true}
    return {name: texts_of(values.tolist()) for name, values in answers.items()}


def _class_answers(judged: Evidence, order: np.ndarray) -> dict[str, list[str]]:
    names = [*judged.classes, "not seen"]
    answers = {
        "predicted": [names[place] for place in judged.predicted[order]],
        "probability": [percent(share) for share in judged.probabilities[order].max(axis=1)],
    }
    if judged.true is None:
        return answers
    right = 1.0 - judged.badness()[order]
    return {
        "true": [names[place] for place in judged.true[order]],
        **answers,
        "probability of the true class": [percent(share) for share in right],
    }
