"""The report on a prediction: how good, how sure, where wrong, by what, and what was fitted."""

from collections import Counter
from typing import Any

from mercer.app.projects import TablePrediction
from mercer.app.report.evidence import Evidence, checked_frame, held_out, is_table_of_fit, scored_anew
from mercer.app.report.markup import Html, facts, paragraph, table, tag
from mercer.app.report.page import Page, Section
from mercer.app.report.prediction_figures import (
    answers_figure,
    calibration_figure,
    importances_figure,
    metric_figure,
)
from mercer.app.report.rows import doubtful_rows, predicted_rows, worst_rows
from mercer.app.report.words import HEADINGS, count, listed, percent, plural, score_texts, text_of


def report_prediction(workflow: TablePrediction, data: Any, data_name: str, random_state: Any) -> Page:
    """Return the page on a fitted TablePrediction.

    Held-out rows come with their inputs if the data are the table of the fit. Other data are predicted anew, and
    scored if they have the target.

    Parameters
    ----------
    workflow : TablePrediction
    data : data frame
    data_name : str
    random_state : int, RandomState instance or None
    """
    frame = checked_frame(workflow, data)
    kept = held_out(workflow) if workflow.held_out_ else None
    new: Evidence | None = None
    if kept is not None and is_table_of_fit(workflow, frame):
        kept = held_out(workflow, frame)
    else:
        new = scored_anew(workflow, frame, random_state)
    # What is known of errors: on the new rows if they have the target, else on those of the fit.
    judged = new if new is not None and new.true is not None else kept
    sections = [_how_good(workflow, new, data_name)]
    if judged is not None:
        sections += [_where_wrong(workflow, judged, data_name), _how_sure(workflow, judged, frame)]
    if new is not None and new.true is None:
        sections.append(_what_now(workflow, new, data_name))
    sections += [_looks_at(workflow), _what_was_fitted(workflow)]
    return Page(f"Predicting {workflow.target_}", _lead(workflow, new, data_name), sections)


def _lead(workflow: TablePrediction, new: Evidence | None, data_name: str) -> list[Any]:
    what = "a number" if workflow.task_ == "regression" else f"one of {len(workflow.model_.classes_)} classes"
    parts: list[Any] = [
        f"{type(workflow.model_.estimator_).__name__} predicts {workflow.target_}, {what}, from "
        f"{count(len(workflow.columns_), 'column')}. It has learned from {count(workflow.n_learned_, 'row')}. "
        f"{_verdict(workflow)}"
    ]
    if new is None:
        done = f"{data_name} is the table of the fit: its held-out rows are shown with their inputs."
    elif new.true is not None:
        done = (
            f"{data_name} is not the table of the fit, or the fit has kept no rows of it. It has the target: its rows "
            "were predicted and scored anew. A row that the model has learned from flatters it."
        )
    else:
        done = f"{data_name} has no target: its rows were predicted, and cannot be scored."
    return [*parts, done]


def _verdict(workflow: TablePrediction) -> str:
    """Return the main score in a sentence, beside the best of the baselines."""
    if not workflow.scores_:
        return "No rows were held out, so nothing is known of its errors on new ones."
    name, sign = ("rmse", 1) if workflow.task_ == "regression" else ("accuracy", -1)
    own, *others = workflow.scores_
    best = min(others, key=lambda entry: sign * entry[name])
    ours, theirs = score_texts(name, [own[name], best[name]])
    said = f"On {count(workflow.n_test_, 'held-out row')} its {HEADINGS[name]} is {ours}"
    return f"{said}; the best of the simple models, {best['name']}, has {theirs}."


def _how_good(workflow: TablePrediction, new: Evidence | None, data_name: str) -> Section:
    entries = list(workflow.scores_)
    parts: list[Html] = []
    if entries:
        parts.append(
            paragraph(
                f"Scores on {count(workflow.n_test_, 'held-out row')}, of models that have learned from the other "
                f"{workflow.n_train_:,}. The model was then fitted again on all rows."
            )
        )
        parts.append(_scores(entries, "Scores on held-out rows"))
    else:
        parts.append(paragraph("No rows were held out in the fit, so there are no scores from it."))
    if new is not None and new.true is not None:
        parts.append(paragraph(f"The model on {new.words} in {data_name}:"))
        parts.append(_scores([{"name": f"on {data_name}", **new.scores()}], "Scores on the data"))
    return Section("good", "How good is it?", parts)


def _scores(entries: list[dict[str, Any]], label: str) -> Html:
    names = [name for name in HEADINGS if any(entry.get(name) is not None for entry in entries)]
    columns = [score_texts(name, [entry[name] for entry in entries]) for name in names]
    rows = [[entry["name"], *texts] for entry, *texts in zip(entries, *columns, strict=True)]
    return table(["model", *(HEADINGS[name] for name in names)], rows, label=label, strong=0)


def _where_wrong(workflow: TablePrediction, judged: Evidence, data_name: str) -> Section:
    parts = [paragraph(f"Of {judged.words}."), answers_figure(judged)]
    if judged.inputs is None:
        parts.append(
            paragraph(f"The inputs of these rows are not in {data_name}: give the table of the fit to see them.")
        )
    else:
        parts += [tag("h3", "The worst rows"), worst_rows(workflow, judged)]
    return Section("wrong", "Where is it wrong?", parts)


def _how_sure(workflow: TablePrediction, judged: Evidence, frame: Any) -> Section:
    parts = [calibration_figure(judged)]
    if judged.doubt() is None:
        answer = workflow.predict_frame(frame.iloc[:1])
        said = "It has no spread of its own, and too few rows were held out to say how far it may be off."
        if "upper" in answer.columns:
            width = float((answer["upper"] - answer["prediction"]).iloc[0])
            said = (
                f"It has no spread of its own. Nine of ten held-out rows were off by at most {text_of(width)}, and "
                "prediction minus and plus this is its 90% interval, the same for all rows."
            )
        parts = [paragraph(said)]
    elif judged.inputs is not None:
        parts += [tag("h3", "The rows that it is least sure of"), doubtful_rows(workflow, judged)]
    return Section("sure", "How sure is it?", parts)


def _what_now(workflow: TablePrediction, new: Evidence, data_name: str) -> Section:
    parts = [paragraph(f"Of {new.words} in {data_name}."), tag("h3", "The first rows"), predicted_rows(workflow, new)]
    if new.doubt() is not None:
        parts += [tag("h3", "The rows that it is least sure of"), doubtful_rows(workflow, new)]
    return Section("predicted", "What does it predict here?", parts)


def _looks_at(workflow: TablePrediction) -> Section:
    shares = workflow.importances_
    if not shares or sum(shares.values()) <= 0:
        said = "A discriminant weighs all inputs alike: no metric was learned that would tell them apart."
        return Section("looks", "What does it look at?", [paragraph(said)])
    top = [f"{name} ({percent(share)})" for name, share in list(shares.items())[:3]]
    parts = [
        paragraph(
            "How far predictions move when a column gets the value of another row, as shares. "
            f"The largest: {listed(top)}."
        ),
        importances_figure(shares),
        *metric_figure(workflow.model_),
    ]
    if workflow.combinations_:
        rows = [
            [f"direction {i + 1}", percent(entry["share"]), _terms(entry["terms"])]
            for i, entry in enumerate(workflow.combinations_)
        ]
        parts += [
            tag("h3", "Combinations that count"),
            paragraph(
                "The leading directions of the metric, for columns on one scale. Along a direction the prediction "
                "changes; terms of one sign add up, and of two signs are compared."
            ),
            table(["", "share", "combination"], rows, label="Leading directions of the metric"),
        ]
    return Section("looks", "What does it look at?", parts)


def _terms(terms: Any) -> str:
    return " ".join(f"{'+' if weight >= 0 else '−'} {abs(weight):.2f} {name}" for name, weight in terms)


def _what_was_fitted(workflow: TablePrediction) -> Section:
    asked = "as asked for" if workflow.model != "auto" else f"the default for {workflow.task_}"
    rows = f"{workflow.n_learned_:,}" + (
        f", and {count(workflow.dropped_rows_, 'row')} left out that had no target" if workflow.dropped_rows_ else ""
    )
    kinds = Counter(workflow.kinds_.values())
    named = [f"{number} {kind if number == 1 else plural(kind)}" for kind, number in kinds.most_common()]
    chosen = [(name, value) for name, value in workflow.settings_.items() if name != "estimator"]
    estimator = f"{workflow.settings_['estimator']}, {asked}"
    inputs = [[name, kind, percent(workflow.importances_.get(name))] for name, kind in workflow.kinds_.items()]
    parts = [
        paragraph(
            "Candidates were compared by their errors on rows that are left out in turn. The model that was scored has "
            "seen none of the held-out rows; what follows is of the model fitted again on all."
        ),
        facts([("estimator", estimator), ("rows", rows), ("inputs", listed(named)), *chosen]),
        tag(
            "details",
            tag("summary", f"All {count(len(inputs), 'input')} and their kinds" if len(inputs) > 1 else "The input"),
            table(["input", "kind", "share of importance"], inputs, label="Inputs and their kinds"),
        ),
    ]
    if any(kind in ("constant", "missing") for kind in kinds):
        parts.append(paragraph("Constant and missing columns are not used."))
    return Section("fitted", "What was fitted?", parts)
