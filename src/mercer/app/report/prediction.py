"""The report on a prediction: how good the model is, what matters, where it is wrong, and how sure it is."""

from typing import Any

from mercer.app.files.description import Table
from mercer.app.projects import TablePrediction
from mercer.app.report.about_data import about_data
from mercer.app.report.evidence import Evidence, checked_frame, held_out, is_table_of_fit, scored_anew
from mercer.app.report.further import further_parts
from mercer.app.report.judgment_figures import coverage_figure, curves_figures, residuals_figure
from mercer.app.report.markup import Html, facts, paragraph, table, tag
from mercer.app.report.page import Page, Section
from mercer.app.report.prediction_figures import answers_figure, calibration_figure
from mercer.app.report.rows import doubtful_rows, predicted_rows, worst_rows
from mercer.app.report.verdict import verdict_of
from mercer.app.report.what_matters import what_matters
from mercer.app.report.where_rows_lie import where_rows_lie
from mercer.app.report.why import why_wrong
from mercer.app.report.words import HEADINGS, count, score_texts, text_of


def report_prediction(workflow: TablePrediction, data: Any, data_name: str, random_state: Any) -> Page:
    """Return the page on a fitted TablePrediction.

    If the data are the table of the fit, its left-out rows are shown with their inputs. Other data are predicted anew,
    and scored if they have the target.

    Parameters
    ----------
    workflow : TablePrediction
    data : data frame or Table
    data_name : str
    random_state : int, RandomState instance or None
    """
    notes = data.notes if isinstance(data, Table) else []
    frame = checked_frame(workflow, data.frame if isinstance(data, Table) else data)
    kept = held_out(workflow) if workflow.held_out_ else None
    new: Evidence | None = None
    if kept is not None and is_table_of_fit(workflow, frame):
        kept = held_out(workflow, frame)
    else:
        new = scored_anew(workflow, frame, random_state)
    # Errors are shown for the new rows if these have the target, and otherwise for the left-out rows of the fit.
    judged = new if new is not None and new.true is not None else kept
    sections = [about_data(workflow, frame, notes), _how_good(workflow, new, data_name)]
    sections.append(what_matters(workflow, frame, random_state))
    if judged is not None:
        sections += [_where_wrong(workflow, judged, data_name), _how_sure(workflow, judged, frame)]
    places = where_rows_lie(workflow, frame, random_state)
    sections += [] if places is None else [places]
    why = why_wrong(workflow)
    sections += [] if why is None else [why]
    if new is not None and new.true is None:
        sections.append(_what_now(workflow, new, data_name))
    sections.append(_what_was_fitted(workflow))
    verdict = verdict_of(workflow)
    return Page(
        f"Predicting {workflow.target_}",
        _lead(workflow, new, data_name),
        sections,
        verdict=(verdict.good, verdict.against, verdict.trust),
        origin=_origin(workflow),
    )


def _origin(workflow: TablePrediction) -> list[tuple[str, str]]:
    """Return for the footer where the model comes from: versions, seed, command, and hashes of the data."""
    kept = workflow.origin_
    found = [("made with", ", ".join(f"{name} {text}" for name, text in kept["versions"].items()))]
    found.append(("seed", str(workflow.random_state)))
    found += [("command", kept["command"])] if kept["command"] else []
    return found + [(f"SHA-256 of {name}", text) for name, text in kept["data"].items()]


def _lead(workflow: TablePrediction, new: Evidence | None, data_name: str) -> list[Any]:
    what = "a number" if workflow.task_ == "regression" else f"one of {len(workflow.model_.classes_)} classes"
    parts: list[Any] = [
        f"{type(workflow.model_.estimator_).__name__} predicts {workflow.target_}, {what}, from "
        f"{count(len(workflow.columns_), 'column')}. It has learned from {count(workflow.n_learned_, 'row')}."
    ]
    if new is None:
        done = f"{data_name} is the table of the fit: its left-out rows are shown with their inputs."
    elif new.true is not None:
        done = (
            f"{data_name} is not the table of the fit, or the fit has kept no rows of it. Since it has the target, its "
            "rows were predicted and scored anew. On rows that it has learned from, the model looks better than it is."
        )
    else:
        done = f"{data_name} has no target, so its rows were predicted but cannot be scored."
    return [*parts, done]


def _how_good(workflow: TablePrediction, new: Evidence | None, data_name: str) -> Section:
    entries = list(workflow.scores_)
    parts: list[Html] = []
    if entries:
        parts.append(
            paragraph(
                f"These are scores on {count(workflow.n_test_, 'left-out row')}, of models that have learned from the "
                f"other {workflow.n_train_:,}. The model was then fitted again on all rows."
            )
        )
        parts.append(_scores(entries, "Scores on left-out rows"))
        parts += further_parts(workflow)
    else:
        parts.append(paragraph("No rows were left out in the fit, so there are no scores from it."))
    if new is not None and new.true is not None:
        parts.append(paragraph(f"These are scores of the model on {new.words} in {data_name}."))
        parts.append(_scores([{"name": f"on {data_name}", **new.scores()}], "Scores on the data"))
    return Section("good", "How good is it?", parts)


def _scores(entries: list[dict[str, Any]], label: str) -> Html:
    names = [name for name in HEADINGS if any(entry.get(name) is not None for entry in entries)]
    columns = [score_texts(name, [entry[name] for entry in entries]) for name in names]
    rows = [[entry["name"], *texts] for entry, *texts in zip(entries, *columns, strict=True)]
    return table(["model", *(HEADINGS[name] for name in names)], rows, label=label, strong=0)


def _where_wrong(workflow: TablePrediction, judged: Evidence, data_name: str) -> Section:
    parts = [paragraph(f"This section is about {judged.words}."), answers_figure(judged)]
    parts += [residuals_figure(judged)] if judged.probabilities is None else curves_figures(judged)
    if judged.inputs is None:
        parts.append(
            paragraph(f"The inputs of these rows are not in {data_name}. Give the table of the fit to see them.")
        )
    else:
        parts += [tag("h3", "The worst rows"), worst_rows(workflow, judged)]
    return Section("wrong", "Where is it wrong?", parts)


def _how_sure(workflow: TablePrediction, judged: Evidence, frame: Any) -> Section:
    parts = [calibration_figure(judged)]
    if judged.std is not None and judged.probabilities is None:
        parts.append(coverage_figure(judged))
    if judged.doubt() is None:
        answer = workflow.predict_frame(frame.iloc[:1])
        said = "This model gives no standard deviations, and too few rows were left out to say how far it may be off."
        if "upper" in answer.columns:
            width = float((answer["upper"] - answer["prediction"]).iloc[0])
            said = (
                "This model gives no standard deviations. Nine of ten left-out rows were off by at most "
                f"{text_of(width)}: the prediction minus and plus this number is its 90% interval, the same for all "
                "rows."
            )
        parts = [paragraph(said)]
    elif judged.inputs is not None:
        parts += [tag("h3", "The rows that it is least sure of"), doubtful_rows(workflow, judged)]
    return Section("sure", "How sure is it?", parts)


def _what_now(workflow: TablePrediction, new: Evidence, data_name: str) -> Section:
    lead = paragraph(f"These are predictions for {new.words} in {data_name}.")
    parts = [lead, tag("h3", "The first rows"), predicted_rows(workflow, new)]
    if new.doubt() is not None:
        parts += [tag("h3", "The rows that it is least sure of"), doubtful_rows(workflow, new)]
    return Section("predicted", "What does it predict here?", parts)


def _what_was_fitted(workflow: TablePrediction) -> Section:
    asked = "as asked for" if workflow.model != "auto" else f"the default for {workflow.task_}"
    chosen = [(name, value) for name, value in workflow.settings_.items() if name != "estimator"]
    estimator = f"{workflow.settings_['estimator']}, {asked}"
    parts = [
        paragraph(
            "Settings were compared by their errors on rows that were left out in turn. The model that was scored has "
            "seen none of the left-out rows; what follows describes the model that was fitted again on all rows."
        ),
        facts([("estimator", estimator), ("rows", f"{workflow.n_learned_:,}"), *chosen]),
    ]
    return Section("fitted", "What was fitted?", parts)
