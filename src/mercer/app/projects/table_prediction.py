"""Predict a column of a table, say how well and by which inputs: one object that a file keeps whole."""

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
from mercer.app.projects.new_rows import kinds_for_encoder, read_like_fit, saved_readings, table_of_fit
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
# The part of the time left that the search of each model gets that is compared.
COMPARED_PART = 0.1


class TablePrediction(BaseEstimator):
    """Learn to predict one column of a table from the others, and find out how well on rows that are left out.

    The model is fitted on a part of the rows and scored on the others, beside simple models of scikit-learn on the same
    encoded table; then it is fitted again on all rows. The target tells the task: booleans, categories and strings are
    classes, and so are whole numbers of at most 10 different values, at most one for 10 rows; other numbers are
    predicted as numbers.

    Parameters
    ----------
    model : {"auto", "gp", "rfm", "discriminant"}, default="auto"
        "gp" and "rfm" (numbers or classes) or "discriminant" (classes). "auto" is gp for numbers; for classes
        rfm and discriminant are compared on a quarter of the rows that they may learn from, 5000 at most, and the
        better one is taken.
    task : {"auto", "regression", "classification"}, default="auto"
    ignore : sequence of str, default=()
        Columns to leave out, such as identifiers.
    split : str, default="auto"
        How rows to score on are chosen: "random"; "time" or "time:COLUMN", the last ones; "group:COLUMN", whole groups.
        "auto" finds it out: groups if a column names them, time if rows are in its order, else at random, with copies
        of a row on one side.
    test_size : float, default=0.2
        The share of rows to score on, below 1; 0 scores nothing and spares one fit of two.
    max_rows : int or None, default=None
        Learn from at most so many rows, drawn at random. None takes all: the estimators turn to landmarks where rows
        are many.
    time_limit : float or None, default=None
        Seconds for all of it: the search of each fit gets a part of what is left, and where too little is left for
        the fit on all rows, the model that was scored is kept. A step that has begun is finished. The search of a
        discriminant is short and not limited.
    repeats : int, default=1
        On how many splits the model is scored, each with a fit of its own; all else is of the first.
    learning_curve : bool, default=False
        Whether to find out if more rows would help, by fits on an eighth, a quarter and half of the rows.
    metric : str, default="auto"
        The score by which the model is judged: "rmse", "mae" or "r2"; "log_loss", "accuracy", "balanced_accuracy",
        "auc" or "average_precision". "auto" is rmse or log_loss. Models that "auto" compares are compared by it.
    options : dict or None, default=None
        Parameters of the estimator, such as `{"kernel": "laplace"}`; "auto" takes one that knows them.
    random_state : int, RandomState instance or None, default=None
        Draws the left-out rows, and what the estimators draw.

    Attributes
    ----------
    task_ : {"regression", "classification"}
    target_ : str
    columns_ : list of str
        The inputs.
    kinds_ : dict of str
        The kind of each input; "constant" and "missing" ones are not used, and not needed to predict.
    readings_, encoder_kinds_ : dict
        How each column was read (kind, formats of dates, unit, decimal mark), and the kinds that encoders are told: all
        fits of the model, and its predictions, take columns for the same.
    origin_ : dict
        `command`, `data` (hashes by name) and `versions` of the fit.
    split_ : dict
        `kind` ("random", "time" or "group"), `column` and `reason`.
    findings_ : list of dict
        `kind` ("identifier", "group", "copies", "time" or "leak"), `column` and `text`: what to know before a score is
        trusted. Columns that name rows, or the groups by which rows are split, are no inputs.
    n_rows_ : int
        Rows with a target that were learned from or scored on.
    n_train_, n_test_ : int
        Rows of the fit that was scored, and of its scores.
    n_learned_ : int
        Rows that `model_` has learned from: all, unless the fit was stopped.
    stopped_ : {"", "time limit", "Ctrl-C"}
        What kept the fit on all rows from being made; the best model so far was kept then.
    dropped_rows_ : int
        Rows without a target.
    metric_ : str
        The score that the model is judged by.
    compared_ : dict
        That score of the models that "auto" compared, the best first; None where there was one only, or too few
        rows (20 a class) to compare on.
    chosen_ : {"gp", "rfm", "discriminant"}
    scores_ : list of dict
        Of the model, then of the baselines: `name` and rmse, r2, mae, nll and coverage of 90 % intervals, or accuracy,
        balanced_accuracy and log_loss; None where a model has no such score. Empty if test_size=0.
    intervals_ : dict
        Of the model's scores on the rows left out, the ends of a 90 % interval; none where rows are too few.
    compared_with_ : dict
        The `baseline` with the best `score`, by how much the model is better (`better_by`), and the ends of a 90 %
        interval of that, `low` and `high`, from the same draws of rows for both.
    compared_with_guess_ : dict
        The same for the best of the baselines that look at no input: the mean, the most frequent class, the row before.
    repeats_ : list of dict
        Scores of the model on further splits, where they were asked for.
    curve_ : list of dict
        Where a learning curve was asked for: the `score` with so many `rows`, and how much better the model of all rows
        is, `better_by`, with the ends of a 90 % interval, `low` and `high`.
    recalls_ : list of dict
        Of each `class`: `rows` left out that have it, and the share of them that is predicted so, `recall`.
    needs_ : list of dict
        Of each `column` by how much the main score grows (`grows_by`) when it is permuted among the rows left out, with
        the ends of a 90 % interval, `low` and `high`; those beyond ten together.
    wrong_ : list of dict
        The three rows left out that were predicted worst, with reasons; see `explain_wrong`.
    typical_values_ : dict
        Of each input, in the table of the fit; see `typical_values`.
    held_out_ : dict
        `rows` (positions in the table), `true` and `predicted` of at most 5000 rows, and the `encoded` inputs of the
        first 50, by which the table is known again. Of numbers `std`, `lower` and `upper` (the 90 % interval) and
        `narrowest` (the level of the narrowest interval that holds the truth), None where the model has no spread of
        its own; of classes `probabilities` (a column a class) and `classes`. Empty if test_size=0.
    model_ : TabularModel
        Fitted on all rows.
    settings_ : dict
        What was chosen: kernel, bandwidth, ridge, ...
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
            The kind of each column is found once, in all rows, where a Table does not say it.
        target_name : str
            The column to predict. Rows in which it is missing are left out.
        watch : Watch, optional
            Whose time counts from before the fit, when the table was read, and which is told of every phase. By default
            one with `time_limit` that begins now.
        origin : dict, optional
            What is to be kept of where the model comes from: `command`, a text, and `data`, hashes of files by name.

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
        # Of the rows to learn from alone, so that the scores stay honest.
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
        """Return the scores of the models that come into question, the best first."""
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
        """Publish how good the model is."""
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
            if not is_last:  # that a search was cut short is told once, of the model that is kept
                warnings.simplefilter("ignore", ConvergenceWarning)
            return tabular(estimator, kinds=self.encoder_kinds_).fit(table, y)

    # ---- use ---------------------------------------------------------------------------------------------------

    def encoded_rows(self, frame: Any, rows: np.ndarray) -> np.ndarray:
        """Return some rows of a table as the model sees them: the first 50 of those that are asked for.

        Parameters
        ----------
        frame : data frame
        rows : ndarray of int
            Positions in the table.
        """
        some = read_like_fit(frame, self.readings_).iloc[rows[:MOST_ENCODED]].reindex(columns=self.columns_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # of the table, which is for others to judge
            return np.asarray(self.model_.encoder_.transform(some), dtype=np.float64)

    @finite_answers
    def predict_frame(self, frame: Any, level: float = 0.9) -> Any:
        """Predict for new rows.

        Parameters
        ----------
        frame : data frame
            With the inputs, found by name; other columns are ignored.
        level : float, default=0.9
            The probability that intervals are to have.

        Returns
        -------
        data frame with the index of `frame`
            Classes: `prediction` and `probability of ...` for each class. Numbers: `prediction`, and for a Gaussian
            process `std`, `lower` and `upper`, which are those of a new target: quantiles of its own distribution, or
            intervals with a guarantee where it was fitted with `interval_folds`. A recursive feature machine has no
            spread of its own: `lower` and `upper` are its prediction minus and plus the absolute error that the share
            `level` of left-out rows did not exceed (split conformal intervals, one width for all rows), and are left
            out where there are too few of these.
        """
        check_is_fitted(self)
        level = check_level(level)
        frame = read_like_fit(frame, self.readings_)
        check_columns(
            frame.columns, [name for name in self.columns_ if self.kinds_[name] not in ("constant", "missing")]
        )
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

    def _check_parameters(self) -> None:  # what is loaded is asked the same
        check_parameters(self)
