"""Predict a column of a table, and say how well and by which inputs."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.app.files.tables import check_columns
from mercer.app.projects.baselines import Answers
from mercer.app.projects.further_scores import learning_curve, repeated_scores
from mercer.app.projects.metrics_of_draws import check_metric, score, sign_of
from mercer.app.projects.new_rows import kinds_for_encoder, needed_columns, read_like_fit, saved_readings, table_of_fit
from mercer.app.projects.number_prediction import conformal_width, predict_numbers
from mercer.app.projects.origin import versions
from mercer.app.projects.parameters import check_parameters
from mercer.app.projects.row_judgment import judge_rows
from mercer.app.projects.scored_split import NOT_SCORED, ScoredSplit, score_split
from mercer.app.projects.stages import Fit, fit_all, fit_few, fit_part, name_of_scoring
from mercer.app.projects.table_description import describe_combinations, describe_importances, describe_settings
from mercer.app.projects.table_estimators import allowed_models, compare, make
from mercer.app.projects.table_split import split_rows
from mercer.app.projects.table_target import (
    as_classes,
    as_numbers,
    find_task,
    input_names,
    rows_with_target,
)
from mercer.app.projects.watch import Watch
from mercer.app.projects.why_wrong import typical_values
from mercer.checks import all_or_nothing, finite_answers
from mercer.exceptions import ConvergenceWarning, DataWarning
from mercer.metrics.gaussian import check_level
from mercer.tables import TabularModel, tabular
from mercer.tables.frames import optional

MOST_ENCODED = 50
# When models are compared, the search of each gets this part of the time that is left.
COMPARED_PART = 0.1


class TablePrediction(BaseEstimator):
    """Learn to predict one column of a table from the others, and find out how well on rows that are left out.

    The model is fitted on a part of the rows and scored on the others, beside simple models of scikit-learn on the same
    encoded table. Then it is fitted again on all rows. The target decides the task: booleans, categories and strings
    are classes, and so are whole numbers with at most 10 different values, and at most one value for 10 rows; other
    numbers are predicted as numbers.

    Parameters
    ----------
    model : {"auto", "gp", "rfm", "discriminant"}, default="auto"
        "gp" and "rfm" are for numbers or classes, "discriminant" is for classes. "auto" takes gp for numbers. For
        classes it draws at most 5000 training rows, compares rfm and discriminant on a quarter of them, and takes the
        better one.
    task : {"auto", "regression", "classification"}, default="auto"
    ignore : sequence of str, default=()
        Columns to leave out, such as identifiers.
    split : str, default="auto"
        How rows to score on are chosen: "random"; "time" or "time:COLUMN", the last ones; "group:COLUMN", whole groups.
        "auto" splits by groups if a column names them, by time if rows are in its order, and otherwise at random with
        all copies of a row on one side.
    test_size : float, default=0.2
        The share of rows to score on, below 1. With 0, nothing is scored, and one of two fits is saved.
    max_rows : int or None, default=None
        Learn from at most this many rows, drawn at random. None takes all rows: the estimators use landmarks if there
        are many.
    time_limit : float or None, default=None
        Seconds for everything. The search of each fit gets a part of the time that is left. If too little is left for
        the fit on all rows, the model that was scored is kept. The limit is checked between steps, so a running step is
        completed first. The search of a discriminant is short and not limited.
    repeats : int, default=1
        On how many splits the model is scored, with a new fit for each. All other results are those of the first.
    learning_curve : bool, default=False
        Whether to find out if more rows would help, by fits on an eighth, a quarter and half of the training rows.
    metric : str, default="auto"
        The score by which the model is judged: "rmse", "mae" or "r2"; "log_loss", "accuracy", "balanced_accuracy",
        "auc" or "average_precision". "auto" is rmse or log_loss. `model="auto"` compares models by it.
    options : dict or None, default=None
        Parameters of the estimator, such as `{"kernel": "laplace"}`. `model="auto"` takes a model that has them.
    random_state : int, RandomState instance or None, default=None
        Draws the left-out rows, and is the seed of the estimators.

    Attributes
    ----------
    task_ : {"regression", "classification"}
    target_ : str
    columns_ : list of str
        The inputs.
    kinds_ : dict of str
        The kind of each input. Those of kind "constant" or "missing" are not used, and not needed to predict.
    readings_, encoder_kinds_ : dict
        How each column was read (kind, formats of dates, unit, decimal mark), and the kinds that encoders are given, so
        that all fits and predictions of the model use the same kinds.
    origin_ : dict
        `command`, `data` (hashes by name) and `versions` of the fit.
    split_ : dict
        `kind` ("random", "time" or "group"), `column` and `reason`.
    findings_ : list of dict
        `kind` ("identifier", "group", "copies", "time" or "leak"), `column` and `text`: what to know before a score is
        trusted. Columns that name rows, or the groups by which rows are split, are not used as inputs.
    n_rows_ : int
        Number of rows with a target that were learned from or scored on.
    n_train_, n_test_ : int
        Numbers of rows from which the scored model has learned, and on which it was scored.
    n_learned_ : int
        Number of rows from which `model_` has learned: all, unless the fit was stopped.
    stopped_ : {"", "time limit", "Ctrl-C"}
        Why there was no fit on all rows. If it is not "", `model_` is the best model so far.
    dropped_rows_ : int
        Number of rows without a target.
    metric_ : str
        The score that the model is judged by.
    compared_ : dict
        That score for the models that "auto" compared, the best first. It is None if there was only one model, or fewer
        than 20 rows a class to compare on.
    chosen_ : {"gp", "rfm", "discriminant"}
    scores_ : list of dict
        The `name` of the model, then of each baseline, with rmse, r2, mae, nll and coverage of 90 % intervals, or with
        accuracy, balanced_accuracy, log_loss, auc and average_precision; None if it has none. Empty if test_size=0.
    intervals_ : dict
        The ends of a 90 % interval of each score of the model on the rows left out; empty if these are too few.
    compared_with_ : dict
        The `baseline` with the best `score`, how much the model is better (`better_by`), and the ends of a 90 %
        interval of that, `low` and `high`, from the same draws of rows for both.
    compared_with_guess_ : dict
        The same for the best baseline that uses no input: the mean, the most frequent class, or the row before.
    repeats_ : list of dict
        Scores of the model on further splits, if these were asked for.
    curve_ : list of dict
        If a learning curve was asked for: for each number of `rows` the `score`, and how much better the model of all
        rows is, `better_by`, with the ends of a 90 % interval, `low` and `high`.
    recalls_ : list of dict
        For each `class`: how many left-out `rows` have it, and the share of them that is predicted so, `recall`.
    needs_ : list of dict
        For each `column` how much RMSE or log loss grows (`grows_by`) when it is permuted among the rows left out, with
        the ends of a 90 % interval, `low` and `high`. Columns beyond the first ten are permuted together.
    wrong_ : list of dict
        The three left-out rows that were predicted worst, with reasons; see `explain_wrong`.
    typical_values_ : dict
        The typical value of each input in the table of the fit; see `typical_values`.
    held_out_ : dict
        `rows` (positions in the table), `true` and `predicted` of at most 5000 rows, and the `encoded` inputs of the
        first 50, by which the table can be recognized. For numbers also `std`, `lower` and `upper` (the 90 % interval)
        and `narrowest` (the level of the narrowest interval that holds the target), None if the model predicts no
        standard deviation; for classes `probabilities` (a column a class) and `classes`. Empty if test_size=0.
    model_ : TabularModel
        Fitted on all rows, unless the fit was stopped.
    settings_ : dict
        The settings that were chosen: kernel, bandwidth, ridge, ...
    importances_ : dict
        The importance of each input, the largest first; empty for a discriminant.
    combinations_ : list of dict
        `share` and `terms`, (encoded column, weight), of the leading directions of a full metric.
    """

    reads = "table"

    def __init__(
        self,
        model: str = "auto",
        *,
        task: str = "auto",
        ignore: Sequence[str] = (),
        split: str = "auto",
        test_size: float = 0.2,
        max_rows: int | None = None,
        time_limit: float | None = None,
        metric: str = "auto",
        repeats: int = 1,
        learning_curve: bool = False,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.task = task
        self.ignore = ignore
        self.split = split
        self.test_size = test_size
        self.max_rows = max_rows
        self.time_limit = time_limit
        self.metric = metric
        self.repeats = repeats
        self.learning_curve = learning_curve
        self.options = options
        self.random_state = random_state

    # ---- fit ---------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        frame: Any,
        target_name: str,
        watch: Watch | None = None,
        origin: Mapping[str, Any] | None = None,
    ) -> "TablePrediction":
        """Fit and score on parts of a table, then fit on all of it.

        Parameters
        ----------
        frame : data frame, or Table of `read_described`
            The kinds of the columns of a data frame are found in all rows; a Table has them already.
        target_name : str
            The column to predict. Rows in which it is missing are left out.
        watch : Watch, optional
            Measures the time, which can include the reading of the table, and reports each phase. By default one with
            `time_limit` that starts now.
        origin : dict, optional
            Where the model comes from, to be saved with it: `command`, a text, and `data`, hashes of files by name.

        Returns
        -------
        self
        """
        self._check_parameters()
        watch = Watch(self.time_limit) if watch is None else watch
        random = check_random_state(self.random_state)
        read = table_of_fit(frame)
        frame = read.frame
        inputs = input_names(list(frame.columns), target_name, self.ignore)
        rows = rows_with_target(frame[target_name], self.max_rows, random)
        self.dropped_rows_ = int(frame[target_name].isna().sum())
        column = frame[target_name].iloc[rows]
        task = find_task(column) if self.task == "auto" else self.task
        allowed = allowed_models(self.model, task, self.options)  # a wrong choice is named before anything is fitted
        self.metric_ = check_metric(self.metric, task)
        y = as_numbers(column) if task == "regression" else as_classes(column)
        kinds = {name: read.readings[name].kind for name in inputs if read.readings[name].kind != "missing"}
        judged = judge_rows(self.split, frame.iloc[rows], kinds, y, is_class=task == "classification", asked=read.asked)
        for finding in judged.findings:
            if finding.column in judged.left_out:
                warnings.warn(finding.text, DataWarning, stacklevel=2)
        inputs = [name for name in inputs if name not in judged.left_out]
        table = frame[inputs].iloc[rows]

        self.task_, self.target_, self.columns_ = task, target_name, inputs
        self.origin_ = {"command": "", "data": {}, **(origin or {}), "versions": versions()}
        self.readings_ = saved_readings(read, [*inputs, target_name])
        self.encoder_kinds_ = kinds_for_encoder(read, inputs, has_target=True)
        self.split_ = {"kind": judged.plan.kind, "column": judged.plan.column, "reason": judged.plan.reason}
        self.findings_ = [finding._asdict() for finding in judged.findings]
        train, test = np.arange(len(rows)), np.arange(0)
        if self.test_size > 0:
            train, test = split_rows(y, task, self.test_size, random, judged.plan)
        self.n_rows_, self.n_train_, self.n_test_ = len(rows), len(train), len(test)
        # Models are compared on the training rows alone, so that the choice does not bias the scores.
        self.compared_ = self._compared(allowed, table.iloc[train], y[train], random, watch)
        self.chosen_ = next(iter(self.compared_))

        def fit_with(seed: int, is_last: bool = False) -> Fit:
            options: dict[str, Any] = {"seed": seed, "is_last": is_last}
            return lambda some, seconds: self._fitted(table.iloc[some], y[some], time_limit=seconds, **options)

        seed, scored = int(random.randint(2**31 - 1)), NOT_SCORED
        best = fit_few(fit_with(seed), y, train, len(inputs), watch, is_class=task == "classification")
        if len(test):
            best = fit_part(fit_with(seed), best, train, len(y), watch)
            watch.begin(name_of_scoring(len(test)))
            self.n_train_ = len(best.rows)
            scored = score_split(
                task, self.metric_, best.fitted(), table, y, rows, train, test, best.rows, judged.plan, seed, random
            )
        self._publish(scored)
        self.repeats_, self.curve_ = [], []
        if len(test) and not best.stopped:
            fit_again, plan = fit_with(seed), judged.plan
            self.repeats_ = repeated_scores(
                task, fit_again, table, y, plan, self.test_size, self.repeats, random, watch
            )
            if self.learning_curve:
                self.curve_ = learning_curve(
                    self.metric_, task, fit_again, best.fitted(), table, y, train, test, plan, random, watch
                )
        best = fit_all(fit_with(int(random.randint(2**31 - 1)), is_last=True), best, len(y), watch)
        self.model_, self.n_learned_, self.stopped_ = best.fitted(), len(best.rows), best.stopped
        self.kinds_, self.typical_values_ = dict(self.model_.encoder_.kinds_), typical_values(table)
        if self.held_out_:
            self.held_out_["encoded"] = self.encoded_rows(frame, self.held_out_["rows"])
        self.settings_ = describe_settings(self.model_, self.n_learned_)
        self.importances_ = describe_importances(self.model_)
        self.combinations_ = describe_combinations(self.model_)
        return self

    def _compared(
        self, names: list[str], table: Any, y: np.ndarray, random: np.random.RandomState, watch: Watch
    ) -> dict[str, float | None]:
        """Return the score of each model that is compared, the best first."""
        seed = int(random.randint(2**31 - 1))

        def loss(name: str, train: np.ndarray, test: np.ndarray) -> float:
            watch.begin(f"trying {name}")
            model = self._fitted(table.iloc[train], y[train], seed, name, time_limit=watch.share(COMPARED_PART))
            part = table.iloc[test]
            answers = Answers(name, model.predict(part), None, model.predict_proba(part), np.array(model.classes_))
            return sign_of(self.metric_) * score(self.metric_, y[test], answers)

        found = compare(names, loss, y, random)
        sign = sign_of(self.metric_)
        return {name: None if math.isnan(value) else sign * value for name, value in found.items()}

    def _publish(self, scored: ScoredSplit) -> None:
        """Publish the results that say how good the model is."""
        self.scores_, self.intervals_, self.recalls_ = scored.scores, scored.intervals, scored.recalls
        self.compared_with_, self.compared_with_guess_ = scored.compared_with, scored.compared_with_guess
        self.needs_, self.wrong_, self.held_out_ = scored.needs, scored.wrong, scored.held_out

    def _fitted(
        self,
        table: Any,
        y: np.ndarray,
        seed: int,
        name: str | None = None,
        *,
        time_limit: float | None = None,
        is_last: bool = False,
    ) -> TabularModel:
        estimator = make(name or self.chosen_, self.task_, len(table), seed, self.options, time_limit)
        with warnings.catch_warnings():
            if not is_last:  # warn only once that a search was cut short: for the model that is kept
                warnings.simplefilter("ignore", ConvergenceWarning)
            return tabular(estimator, kinds=self.encoder_kinds_).fit(table, y)

    # ---- use ---------------------------------------------------------------------------------------------------

    def encoded_rows(self, frame: Any, rows: np.ndarray) -> np.ndarray:
        """Return rows of a table as the model encodes them; only the first 50 of `rows`.

        Parameters
        ----------
        frame : data frame
        rows : ndarray of int
            Positions in the table.
        """
        some = read_like_fit(frame, self.readings_).iloc[rows[:MOST_ENCODED]].reindex(columns=self.columns_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # this only compares rows, and must not warn of the table
            return np.asarray(self.model_.encoder_.transform(some), dtype=np.float64)

    @finite_answers
    def predict_frame(self, frame: Any, level: float = 0.9) -> Any:
        """Predict for new rows.

        Parameters
        ----------
        frame : data frame
            It has the inputs, which are found by name. Other columns are ignored.
        level : float, default=0.9
            The probability with which an interval should hold the target.

        Returns
        -------
        data frame with the index of `frame`
            For classes, `prediction` and `probability of ...` for each class. For numbers, `prediction`. A Gaussian
            process also has `std`, `lower` and `upper` of a new target: quantiles of its predictive distribution, or
            intervals with a guarantee if it was fitted with `interval_folds`. A recursive feature machine has no `std`:
            `lower` and `upper` are its prediction minus and plus the absolute error that the share `level` of left-out
            rows did not exceed (split conformal intervals, with one width for all rows). They are not given if too few
            rows were left out.
        """
        check_is_fitted(self)
        level = check_level(level)
        frame = read_like_fit(frame, self.readings_)
        check_columns(frame.columns, needed_columns(self.columns_, self.kinds_))
        table = frame.reindex(columns=self.columns_)
        answer: dict[str, Any] = {}
        if self.task_ == "classification":
            answer["prediction"] = self.model_.predict(table)
            for label, column in zip(self.model_.classes_, self.model_.predict_proba(table).T, strict=True):
                answer[f"probability of {label}"] = column
        else:
            mean, std, lower, upper = predict_numbers(self.model_, table, level)
            answer["prediction"] = mean
            if std is not None:
                answer |= {"std": std, "lower": lower, "upper": upper}
            elif self.held_out_:
                width = conformal_width(self.held_out_["true"], self.held_out_["predicted"], level)
                answer |= {} if width is None else {"lower": mean - width, "upper": mean + width}
        return optional("pandas", "predictions").DataFrame(answer, index=frame.index)

    def _check_parameters(self) -> None:  # also called for a model that is loaded
        check_parameters(self)
