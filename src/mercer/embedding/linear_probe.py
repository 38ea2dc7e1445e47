"""The linear probe of krepes, appendix B: it scores an embedding by a linear classifier trained on a few labels."""

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.stats import loguniform
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import recall_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import type_of_target

from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import ignored, invalid_parameter
from mercer.losses import barlow_twins, simclr, vicreg

# The ridges per labeled row, 1 / (C n), from which cross-validation chooses, in decreasing order, for features of mean
# variance 1; and the ridge that is used if there are too few rows to choose. They are relative to n because one grid of
# C does not suit both 50 and 6000 rows: on 50 rows of MNIST, C = 0.001 gives 17 % and the best C gives 39 %; on 6000
# rows, C = 10 loses 3 %.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
FALLBACK_RIDGE = 1e-3
FOLDS = 3
# Classes are unbalanced if the largest has more than this many times the rows of the smallest. MNIST is balanced (1.2),
# Adult is not (3.2).
UNBALANCED = 2.0


class LossDistribution:
    """A distribution over the parameters of a loss; `rvs` draws a loss as `KernelEmbedding` accepts it.

    Parameters
    ----------
    function : callable
        A function of `mercer.losses`.
    **parameters : distributions
        A distribution for each parameter, with `rvs` as in `scipy.stats`.
    """

    def __init__(self, function: Callable[..., Any], **parameters: Any) -> None:
        self.function, self.parameters = function, parameters

    def rvs(self, random_state: Any = None) -> Callable[..., Any]:
        """Return a partial of the function with parameters drawn by `random_state`."""
        random = check_random_state(random_state)
        drawn = {name: float(values.rvs(random_state=random)) for name, values in self.parameters.items()}
        return partial(self.function, **drawn)


# For each loss, the distributions of the estimator's parameters in krepes, appendix B.3.
_COEFFICIENT = loguniform(1e-5, 1e2)
SPACES: dict[str, dict[str, Any]] = {
    "kernel_pca": {"ridge": _COEFFICIENT},
    "simple_contrastive": {},
    "spectral_contrastive": {"ridge": _COEFFICIENT},
    "kernel_autoencoder": {"ridge": _COEFFICIENT},
    "simclr": {"loss": LossDistribution(simclr, temperature=loguniform(1e-3, 1e2))},
    "barlow_twins": {"loss": LossDistribution(barlow_twins, off_diagonal=_COEFFICIENT)},
    "vicreg": {
        "loss": LossDistribution(
            vicreg, invariance=_COEFFICIENT, variance=_COEFFICIENT, covariance=_COEFFICIENT, target=_COEFFICIENT
        )
    },
}


class ProbeResult(NamedTuple):
    """The scores of a linear classifier on an embedding.

    Attributes
    ----------
    accuracy : float
        The share of the test rows whose class is predicted correctly.
    balanced_accuracy : float
        The mean of the accuracies of the classes of the test rows.
    n_labeled : int
        The number of rows on which the classifier was trained.
    classifier : LogisticRegression or LogisticRegressionCV
        The fitted classifier; its inputs are embedded rows.
    """

    accuracy: float
    balanced_accuracy: float
    n_labeled: int
    classifier: LogisticRegression | LogisticRegressionCV


def linear_probe(
    embedding: Any,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    labeled: float = 0.1,
    C: float | None = None,
    random_state: Any = 0,
) -> ProbeResult:
    """Score an embedding by the accuracy of a linear classifier that is trained on a few labels (krepes, appendix B).

    The embedding has been fitted without labels. A logistic regression is trained on the embedded rows of a share of
    (X, y), drawn so that each class has its share and at least one row. It is scored on all of (X_test, y_test).
    The features are centered and divided by one number, so that their mean variance is 1. They are not scaled one by
    one: their variances tell which features are reliable, and this would be lost (Nyström features of MNIST with 200
    labels: 65 % instead of 75 %). Only the rows that are needed are embedded.

    Parameters
    ----------
    embedding : fitted transformer or None
        The embedding. None uses X and X_test as they are, for a comparison with the inputs or for embedded rows.
    X : array-like of shape (n, d)
        The training rows.
    y : array-like of shape (n,)
        Their classes. Only those of the labeled rows are used for training.
    X_test, y_test : array-likes of shapes (n_test, d) and (n_test,)
        The rows and classes on which the classifier is scored. They are not used otherwise.
    labeled : float or int, default=0.1
        The share of the training rows that have labels, above 0 and at most 1, or their number. A share that is too
        small for one row per class is increased to that.
    C : float or None, default=None
        The inverse of the ridge of the logistic regression as in scikit-learn, for the scaled features. None chooses
        the ridge per labeled row, 1 / (C n), from 0.1, 0.01, 0.001, 0.0001 and 0.00001 by the accuracy in three-fold
        cross-validation on the n labeled rows; the largest is taken if several are equally good. If most classes have
        only one labeled row, it is 0.001.
    random_state : int, RandomState instance or None, default=0
        Determines the labeled rows. It is a number by default, so that embeddings are compared on the same rows.

    Returns
    -------
    ProbeResult
        A named tuple with the fields `accuracy`, `balanced_accuracy`, `n_labeled` and `classifier`.

    Notes
    -----
    The solver is L-BFGS, the fastest of scikit-learn's for ten classes and 6000 rows with 150 features: newton-cg takes
    twice as long, and newton-cholesky fifty times. In this case the choice of C takes 15 fits on two thirds of the
    rows, each started from the previous one, and one or two seconds on one core. A fit with a given C takes a tenth.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Nystrom
    >>> from mercer.embedding.linear_probe import linear_probe
    >>> X, y = load_digits(return_X_y=True)
    >>> embedding = Nystrom(n_landmarks=200, n_components=40, random_state=0).fit(X[:1200])
    >>> result = linear_probe(embedding, X[:1200], y[:1200], X[1200:], y[1200:])
    >>> result.n_labeled, result.accuracy > 0.8
    (120, True)
    """
    _check_transformer("embedding", embedding, "a fitted transformer, or None for rows as they are")
    C = None if C is None else check_number("C", C, above=0)
    y, y_test = _check_labels("y", y, X), _check_labels("y_test", y_test, X_test)
    _check_labeled(labeled, all_rows=True)
    unknown = sorted(set(y_test.tolist()) - set(y.tolist()), key=str)
    if unknown:
        raise invalid_parameter("y_test", unknown, f"of the classes of y, {np.unique(y).tolist()}")
    rows = labeled_rows(y, labeled, random_state)
    features = _embed(embedding, "X", _take(X, rows))
    classifier = fit_classifier(features, y[rows], C)
    test_features = _embed(embedding, "X_test", X_test)
    if test_features.shape[1] != features.shape[1]:
        raise invalid_parameter("X_test", test_features.shape, f"rows with as many columns as X, {features.shape[1]}")
    predicted = classifier.predict(test_features)
    return ProbeResult(
        accuracy=float(np.mean(predicted == y_test)),
        balanced_accuracy=balanced_accuracy(y_test, predicted),
        n_labeled=len(rows),
        classifier=classifier,
    )


def probe_scorer(
    labeled: float = 0.1, balanced: bool | Literal["auto"] = False, random_state: Any = 0
) -> Callable[[Any, Any, Any], float]:
    """Return a scorer of embeddings by their linear probe, for the searches of scikit-learn (krepes, appendix B.3).

    A search fits the transformer on the training rows of a split and passes the left-out rows to the scorer. The scorer
    trains the classifier of `linear_probe` on a share of these, in which each class has its share, and scores it on
    the others. No row is used twice, and each class needs at least two left-out rows.

    Parameters
    ----------
    labeled : float or int, default=0.1
        The share of the left-out rows that have labels, above 0 and below 1, or their number. If there are few left-out
        rows, a large share such as 0.5 is better: a classifier from one row per class is unreliable.
    balanced : bool or "auto", default=False
        Whether the score is the mean of the accuracies of the classes. "auto" does so if the largest class of the
        left-out rows has more than twice the rows of the smallest.
    random_state : int, RandomState instance or None, default=0
        Determines the labeled rows. It is a number by default, so that all settings are scored on the same rows.

    Returns
    -------
    callable (estimator, X, y) -> float
        The scorer. It can be pickled, for searches in several processes.

    Notes
    -----
    By default, a search splits the rows of a transformer in their order. The paper uses
    `cv=StratifiedShuffleSplit(1, test_size=0.1)`, with 0.02 for images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
    >>> from mercer import Nystrom
    >>> from mercer.embedding.linear_probe import probe_scorer
    >>> X, y = load_digits(return_X_y=True)
    >>> search = GridSearchCV(
    ...     Nystrom(n_landmarks=200, random_state=0), {"n_components": [2, 40]}, scoring=probe_scorer(labeled=0.5),
    ...     cv=StratifiedShuffleSplit(1, test_size=0.2, random_state=0),
    ... )
    >>> search.fit(X, y).best_params_
    {'n_components': 40}
    """
    _check_labeled(labeled, all_rows=False)
    if not isinstance(balanced, bool) and balanced != "auto":
        raise invalid_parameter("balanced", balanced, "True, False or 'auto'")
    return partial(_held_out_score, labeled=labeled, balanced=balanced, random_state=random_state)


def search_space(loss: str) -> dict[str, Any]:
    """Return the distributions from which the parameters of a loss are drawn in a search (krepes, appendix B.3).

    Parameters
    ----------
    loss : {"kernel_pca", "simple_contrastive", "spectral_contrastive", "kernel_autoencoder", "simclr", \
"barlow_twins", "vicreg"}

    Returns
    -------
    dict from parameter to distribution
        Distributions for `RandomizedSearchCV`; others can be added. Only parameters that affect the loss are included.
        For the last three losses this is `loss` with random weights, for "simple_contrastive" nothing, since it has a
        constraint and no penalty, and for the others `ridge`. All are log-uniform from 1e-5 to 100, but the temperature
        from 1e-3 to 100.

    Examples
    --------
    >>> from mercer.embedding.linear_probe import search_space
    >>> distribution = search_space("kernel_pca")["ridge"]
    >>> bool(1e-5 <= distribution.rvs(random_state=0) <= 100)
    True
    """
    return dict(SPACES[check_choice("loss", loss, SPACES)])


def labeled_rows(y: np.ndarray, labeled: float, random_state: Any = 0, *, spare: int = 0) -> np.ndarray:
    """Draw rows so that each class has its share and at least one row, and at least `spare` of its rows are not drawn.

    The numbers per class follow from the method of largest remainders, within these bounds. The order is random.
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() < 1 + spare:
        rare = {label: int(count) for label, count in zip(classes.tolist(), counts, strict=True) if count < 1 + spare}
        raise invalid_parameter(
            "y",
            rare,
            f"classes with {1 + spare} rows or more, to have one with a label and {spare} without",
            "These are the rare classes, with their numbers of rows.",
        )
    least, most = len(counts), len(y) - spare * len(counts)
    if isinstance(labeled, Integral):
        n = check_count("labeled", labeled, at_least=least, at_most=most, why="one row a class, and the rows there are")
    else:
        n = int(np.clip(round(labeled * len(y)), least, most))
    wanted = _apportion(counts, n, counts - spare)
    order = check_random_state(random_state).permutation(len(y))
    places = np.zeros(len(y), dtype=np.int64)
    for k in range(len(classes)):
        inside = codes[order] == k
        places[inside] = np.arange(counts[k])
    return order[places < wanted[codes[order]]]


def _apportion(counts: np.ndarray, n: int, most: np.ndarray) -> np.ndarray:
    """Divide n in proportion to `counts` into whole numbers from 1 to `most`, by the method of largest remainders."""
    quotas = n * counts / counts.sum()
    given = np.clip(np.floor(quotas).astype(np.int64), 1, most)
    while given.sum() != n:
        step = 1 if given.sum() < n else -1
        free = given < most if step == 1 else given > 1
        given[np.argmax(np.where(free, step * (quotas - given), -np.inf))] += step
    return given


def fit_classifier(
    features: np.ndarray, y: np.ndarray, C: float | None = None
) -> LogisticRegression | LogisticRegressionCV:
    """Return a fitted logistic regression; its C is chosen by cross-validation if none is given.

    It is fitted on features scaled to mean 0 and mean variance 1. Its coefficients are then converted back, so that it
    accepts features as they are.
    """
    options = {"solver": "lbfgs", "max_iter": 1000}
    # At least half of the classes must be in every fold; otherwise the accuracy says little about the classifier.
    folds = min(FOLDS, int(np.median(np.unique(y, return_counts=True)[1])))
    if C is not None or folds < 2:
        model = LogisticRegression(C=1 / (FALLBACK_RIDGE * len(y)) if C is None else C, **options)
    else:
        model = LogisticRegressionCV(
            Cs=[1 / (ridge * len(y)) for ridge in RIDGES],
            cv=StratifiedKFold(folds),
            scoring="accuracy",
            l1_ratios=(0,),
            use_legacy_attributes=False,
            **options,
        )
    # A class with fewer rows than folds is missing in some of them, which does not prevent the choice of C.
    with ignored(UserWarning, "The least populated class"):
        center, scale = features.mean(axis=0), np.sqrt(features.var(axis=0).mean())
        scale = scale if scale > 0 else 1.0
        model.fit((features - center) / scale, y)
    model.coef_ = model.coef_ / scale
    model.intercept_ = model.intercept_ - model.coef_ @ center
    return model


def balanced_accuracy(y_true: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean accuracy over the classes of `y_true`.

    Unlike `sklearn.metrics.balanced_accuracy_score`, it does not warn about predicted classes that `y_true` lacks.
    """
    return float(recall_score(y_true, predicted, labels=np.unique(y_true), average="macro"))


def is_unbalanced(y: Any) -> bool:
    """Whether the largest class has more than twice the rows of the smallest."""
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.max() > UNBALANCED * counts.min())


def _held_out_score(
    estimator: Any, X: Any, y: Any, *, labeled: float, balanced: bool | Literal["auto"], random_state: Any
) -> float:
    _check_transformer("estimator", estimator, "a fitted transformer")
    y = _check_labels("y", y, X)
    chosen = labeled_rows(y, labeled, random_state, spare=1)
    rest = np.setdiff1d(np.arange(len(y)), chosen)
    features = _embed(estimator, "X", X)
    predicted = fit_classifier(features[chosen], y[chosen]).predict(features[rest])
    if is_unbalanced(y) if balanced == "auto" else balanced:
        return balanced_accuracy(y[rest], predicted)
    return float(np.mean(predicted == y[rest]))


def _check_transformer(name: str, estimator: Any, allowed: str) -> None:
    if not (estimator is None and name == "embedding") and not hasattr(estimator, "transform"):
        raise invalid_parameter(name, estimator, allowed)


def _check_labeled(labeled: Any, *, all_rows: bool) -> None:
    """Raise unless `labeled` is a number of rows or a share of them; the share 1 is valid only with `all_rows`."""
    good = False
    if isinstance(labeled, Integral):
        good = not isinstance(labeled, bool) and int(labeled) >= 1
    elif isinstance(labeled, Real):
        good = 0 < float(labeled) < 1 or (all_rows and float(labeled) == 1)
    if not good:
        end = "at most 1" if all_rows else "below 1"
        raise invalid_parameter("labeled", labeled, f"a share above 0 and {end}, or a whole number of rows")


def _check_labels(name: str, y: Any, X: Any) -> np.ndarray:
    """Return the classes of the rows of X, of shape (n,); the classes `y` of training rows must be at least two."""
    labels = np.asarray(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if labels.shape != (n,):
        raise invalid_parameter(name, labels.shape, f"one class a row, of shape ({n},)")
    kind = type_of_target(labels, input_name=name)
    if kind not in ("binary", "multiclass"):
        raise invalid_parameter(name, kind, "classes: whole numbers, text or booleans")
    if name == "y" and len(np.unique(labels)) < 2:
        raise invalid_parameter(name, np.unique(labels).tolist(), "of two classes at least")
    return labels


def _take(X: Any, rows: np.ndarray) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def _embed(embedding: Any, name: str, X: Any) -> np.ndarray:
    """Return the embedded rows after checking that they are a finite matrix."""
    values = X if embedding is None else embedding.transform(X)
    source = name if embedding is None else f"{type(embedding).__name__}.transform({name})"
    return np.asarray(check_array(values, dtype=[np.float64, np.float32], input_name=source))
