"""Check the parameters of a `TablePrediction`, before anything is read."""

from typing import Any

from mercer.app.projects.row_judgment import check_split
from mercer.app.projects.table_estimators import MODELS
from mercer.app.projects.table_target import TASKS
from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import invalid_parameter


def check_parameters(prediction: Any) -> None:
    """Raise if a parameter of a `TablePrediction` is not allowed. The metric is checked once the task is known."""
    check_choice("model", prediction.model, MODELS)
    check_choice("task", prediction.task, TASKS)
    check_split(prediction.split)
    if check_number("test_size", prediction.test_size, at_least=0.0) >= 1:
        raise invalid_parameter("test_size", prediction.test_size, "a share of the rows, at least 0 and below 1")
    check_count("repeats", prediction.repeats, at_least=1)
    if prediction.max_rows is not None:
        check_count("max_rows", prediction.max_rows, at_least=2)
    if prediction.time_limit is not None:
        check_number("time_limit", prediction.time_limit, above=0.0)
    if isinstance(prediction.ignore, str):
        raise invalid_parameter("ignore", prediction.ignore, "a sequence of names of columns")
