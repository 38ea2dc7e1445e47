"""Rank many models on one split of one table: Mercer's, simple ones, and those of other libraries if installed."""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder

from mercer.app.projects.baselines import Answers, baselines_of_split
from mercer.app.projects.further_scores import answers_of
from mercer.app.projects.metrics_of_draws import METRICS, check_metric, sign_of
from mercer.app.projects.metrics_of_draws import score as score_of
from mercer.app.projects.new_rows import kinds_for_encoder, table_of_fit
from mercer.app.projects.row_judgment import RowJudgment, judge_rows
from mercer.app.projects.table_estimators import ESTIMATORS, make
from mercer.app.projects.table_split import split_rows
from mercer.app.projects.table_target import as_classes, as_numbers, find_task, input_names, rows_with_target
from mercer.app.projects.watch import Watch
from mercer.tables import TableEncoder, tabular

# A Gaussian process of classes takes O(c n^3), and is left out if there are more rows than this.
MOST_ROWS_OF_PROCESS = 2000


def leaderboard(
    data: Any,
    target: str,
    *,
    task: str = "auto",
    ignore: tuple[str, ...] = (),
    split: str = "auto",
    test_size: float = 0.2,
    metric: str = "auto",
    random_state: int = 0,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Score models on the same rows left out, and return them with the best first.

    Peers (CatBoost, LightGBM, XGBoost) and simple models are fitted with their defaults to the encoded table.

    Parameters
    ----------
    data : data frame or Table
    target, task, ignore, split, test_size, metric, random_state
        As in TablePrediction.
    watch : Watch, optional
        It is told when a model begins. Each search of Mercer's models gets a tenth of the time that is left.

    Returns
    -------
    dict
        `task`, `metric`, `n_train`, `n_test`, `split`, `findings`, and `models`: for each its `name`, scores and
        `seconds` of the processor, or `error` if it could not be fitted.
    """
    watch = Watch() if watch is None else watch
    random = np.random.RandomState(random_state)
    read = table_of_fit(data)
    inputs = input_names(list(read.frame.columns), target, ignore)
    rows = rows_with_target(read.frame[target], None, random)
    column = read.frame[target].iloc[rows]
    task = find_task(column) if task == "auto" else task
    metric = check_metric(metric, task)
    y = as_numbers(column) if task == "regression" else as_classes(column)
    judged = _judged(split, read, rows, inputs, y, task)
    inputs = [name for name in inputs if name not in judged.left_out]
    table = read.frame[inputs].iloc[rows]
    kinds = kinds_for_encoder(read, inputs, has_target=True)
    train, test = split_rows(y, task, test_size, random, judged.plan)
    target_type = "numbers" if task == "regression" else "classes"
    encoder = TableEncoder(kinds=kinds, target_type=target_type).fit(table.iloc[train], y[train])
    X, X_test = (np.asarray(encoder.transform(table.iloc[part])) for part in (train, test))
    found: list[dict[str, Any]] = []

    def add(name: str, answer: Callable[[], Answers]) -> None:
        watch.begin(name)
        before = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = answer()
        except (ValueError, ArithmeticError, MemoryError) as error:
            found.append({"name": name, "error": " ".join(str(error).split()), "seconds": None})
            return
        scores = {each: score_of(each, y[test], own) for each in METRICS[task]}
        found.append({"name": name, **scores, "seconds": time.process_time() - before})

    for name in ESTIMATORS[task]:
        if task == "classification" and name == "gp" and len(train) > MOST_ROWS_OF_PROCESS:
            continue

        def ours(name: str = name) -> Answers:
            estimator = make(name, task, len(train), random_state, None, watch.share(0.1))
            fitted = tabular(estimator, kinds=kinds).fit(table.iloc[train], y[train])
            return answers_of(task, fitted, table.iloc[test])

        add(f"Mercer {ESTIMATORS[task][name].__name__}", ours)
    for name, model in peers(task, random_state):
        add(name, lambda model=model: peer_answers(task, model, X, y[train], X_test))  # type: ignore[misc]
    before = time.process_time()
    simple = baselines_of_split(task, X, X_test, y, train, test, judged.plan.times, random_state)
    each_seconds = (time.process_time() - before) / len(simple)
    for own in simple:
        scores = {each: score_of(each, y[test], own) for each in METRICS[task]}
        found.append({"name": own.name, **scores, "seconds": each_seconds})
    sign = sign_of(metric)
    found.sort(key=lambda entry: sign * entry[metric] if entry.get(metric) is not None else np.inf)
    return {
        "task": task,
        "metric": metric,
        "n_train": len(train),
        "n_test": len(test),
        "split": {"kind": judged.plan.kind, "column": judged.plan.column, "reason": judged.plan.reason},
        "findings": [finding._asdict() for finding in judged.findings],
        "models": found,
    }


def peers(task: str, random_state: int) -> Iterator[tuple[str, Any]]:
    """Yield the name and an estimator of each peer that is installed, with its defaults."""
    is_class = task == "classification"
    try:
        import catboost

        kind = catboost.CatBoostClassifier if is_class else catboost.CatBoostRegressor
        yield "CatBoost", kind(verbose=False, random_seed=random_state, allow_writing_files=False)
    except ImportError:
        pass
    try:
        import lightgbm

        kind = lightgbm.LGBMClassifier if is_class else lightgbm.LGBMRegressor
        yield "LightGBM", kind(verbose=-1, random_state=random_state)
    except ImportError:
        pass
    try:
        import xgboost

        kind = xgboost.XGBClassifier if is_class else xgboost.XGBRegressor
        yield "XGBoost", kind(random_state=random_state)
    except ImportError:
        pass


def peer_answers(task: str, model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> Answers:
    """Fit a peer on encoded rows, and return its predictions."""
    if task == "regression":
        return Answers("", np.asarray(model.fit(X, y).predict(X_test), dtype=np.float64))
    labels = LabelEncoder().fit(y)
    probabilities = np.asarray(model.fit(X, labels.transform(y)).predict_proba(X_test))
    return Answers("", labels.classes_[probabilities.argmax(axis=1)], None, probabilities, labels.classes_)


def _judged(split: str, read: Any, rows: np.ndarray, inputs: list[str], y: np.ndarray, task: str) -> RowJudgment:
    kinds = {name: read.readings[name].kind for name in inputs if read.readings[name].kind != "missing"}
    return judge_rows(split, read.frame.iloc[rows], kinds, y, is_class=task == "classification", asked=read.asked)
