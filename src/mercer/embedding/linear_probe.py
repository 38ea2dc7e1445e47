"""How good is an embedding? The linear probe of krepes, appendix B, as a score and as a scorer for searches."""

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

# The ridges a labeled row, 1 / (C n), that cross-validation chooses from, the largest first, for features of mean
# variance 1; and the one taken where the rows are too few to choose. Relative to n, as one grid of C does not serve
# both 50 and 6000 rows: C = 0.001 gives 17 % on 50 rows of MNIST where the best gives 39 %, and C = 10 costs 3 % on
# 6000.
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
FALLBACK_RIDGE = 1e-3
FOLDS = 3
# Classes are unbalanced where the largest has more than so many times the rows of the smallest: MNIST is not (1.2),
# Adult is (3.2).
UNBALANCED = 2.0


class LossDistribution:
    """Losses whose parameters are drawn: `rvs` gives partials of one function, as `KernelEmbedding` takes them.

    Parameters
    ----------
    function : callable
        Of `mercer.losses`.
    **parameters : distributions
        Each with `rvs`, as those of `scipy.stats`.
    """

    def __init__(self, function: Callable[..., Any], **parameters: Any) -> None:
        self.function, self.parameters = function, parameters

    def rvs(self, random_state: Any = None) -> Callable[..., Any]:
        """Return a loss with parameters drawn by `random_state`."""
        random = check_random_state(random_state)
        drawn = {name: float(values.rvs(random_state=random)) for name, values in self.parameters.items()}
        return partial(self.function, **drawn)


# krepes, appendix B.3, by loss: the distributions of the parameters of an estimator.
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
    """What a linear classifier makes of an embedding.

    Attributes
    ----------
    accuracy : float
        The share of the test rows whose class is predicted.
    balanced_accuracy : float
        The mean of that share over the classes of the test rows.
    n_labelled : int
        How many rows the classifier was trained on.
    classifier : LogisticRegression or LogisticRegressionCV
        The fitted classifier, of embedded rows.
    """

    accuracy: float
    balanced_accuracy: float
    n_labelled: int
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
    """How well do a few labels tell the classes apart by a line in the embedding? (krepes, appendix B).

    The embedding has been fitted without labels. A logistic regression is trained on the embedded rows of a share of
    (X, y), in which every class has its share and at least one row, and scored on all of (X_test, y_test).
    Features are centered and brought to one common scale, on which their mean variance is 1: an embedding says by their
    variances which of its features to trust, and with a scale for each that would be lost (MNIST's Nyström features
    with 200 labels: 65 % against 75 %). Only rows that are needed are embedded.

    Parameters
    ----------
    embedding : fitted transformer or None
        None takes X and X_test as they are: inputs, to compare with, or rows embedded before.
    X : array-like of shape (n, d)
        The training rows.
    y : array-like of shape (n,)
        Their classes, of which those of the labeled rows are used.
    X_test, y_test : array-likes of shapes (n_test, d) and (n_test,)
        What the classifier is scored on, and nothing else.
    labeled : float or int, default=0.1
        The share of the training rows that have labels, above 0 and at most 1, or their number. A share too small
        for one row a class is made as large.
    C : float or None, default=None
        The inverse of the ridge of the logistic regression, as scikit-learn has it, on the common scale. None chooses
        1 / (C n), the ridge a labeled row, from 0.1, 0.01, 0.001, 0.0001 and 0.00001 by the accuracy in three-fold
        cross-validation on the n labeled rows, the largest where several are as good; 0.001 where most classes have
        only one labeled row.
    random_state : int, RandomState instance or None, default=0
        Draws the labeled rows. A number by default, so that embeddings are compared on the same rows.

    Returns
    -------
    ProbeResult
        With the fields `accuracy`, `balanced_accuracy`, `n_labelled` and `classifier`.

    Notes
    -----
    The solver is L-BFGS, which for ten classes of 6000 rows with 150 features is the quickest of scikit-learn's:
    newton-cg takes twice as long, newton-cholesky fifty times. The choice of C there takes 15 fits on two thirds of
    the rows, each from the one before, and a second or two on one core; a fit with C given a tenth of that.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Nystrom
    >>> from mercer.embedding.linear_probe import linear_probe
    >>> X, y = load_digits(return_X_y=True)
    >>> embedding = Nystrom(n_landmarks=200, n_components=40, random_state=0).fit(X[:1200])
    >>> result = linear_probe(embedding, X[:1200], y[:1200], X[1200:], y[1200:])
    >>> result.n_labelled, result.accuracy > 0.8
    (120, True)
    """
    _check_transformer("embedding", embedding, "a fitted transformer, or None for rows as they are")
    C = None if C is None else check_number("C", C, above=0)
    y, y_test = _check_labels("y", y, X), _check_labels("y_test", y_test, X_test)
    _check_labelled(labeled, all_rows=True)
    unknown = sorted(set(y_test.tolist()) - set(y.tolist()), key=str)
    if unknown:
        raise invalid_parameter("y_test", unknown, f"of the classes of y, {np.unique(y).tolist()}")
    rows = labelled_rows(y, labeled, random_state)
    features = _embed(embedding, "X", _take(X, rows))
    classifier = fit_classifier(features, y[rows], C)
    test_features = _embed(embedding, "X_test", X_test)
    if test_features.shape[1] != features.shape[1]:
        raise invalid_parameter("X_test", test_features.shape, f"rows with as many columns as X, {features.shape[1]}")
    predicted = classifier.predict(test_features)
    return ProbeResult(
        accuracy=float(np.mean(predicted == y_test)),
        balanced_accuracy=balanced_accuracy(y_test, predicted),
        n_labelled=len(rows),
        classifier=classifier,
    )


def probe_scorer(
    labeled: float = 0.1, balanced: bool | Literal["auto"] = False, random_state: Any = 0
) -> Callable[[Any, Any, Any], float]:
    """Return a scorer of embeddings by their linear probe, for the searches of scikit-learn (krepes, appendix B.3).

    A search fits the transformer on the training rows of a split, and the scorer gets those left out: it trains the
    classifier of `linear_probe` on a labeled share of them, in which every class has its share, and scores it on
    the rest. So no row is used twice; each class needs two rows among those left out.

    Parameters
    ----------
    labeled : float or int, default=0.1
        The share of the left-out rows that have labels, above 0 and below 1, or their number. Few rows left out
        want a large share, such as 0.5: a classifier of a row a class says little.
    balanced : bool or "auto", default=False
        Whether the score is the mean of the accuracies of the classes. "auto": where the largest class of the rows
        left out has more than twice the rows of the smallest.
    random_state : int, RandomState instance or None, default=0
        Draws the labeled rows. A number, so that all settings are scored on the same ones.

    Returns
    -------
    callable (estimator, X, y) -> float
        It pickles, for searches in several processes.

    Notes
    -----
    A search splits the rows of a transformer in their order unless told otherwise: the paper's choice is
    `cv=StratifiedShuffleSplit(1, test_size=0.1)`, or 0.02 for images.

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
    _check_labelled(labeled, all_rows=False)
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
        For `RandomizedSearchCV`, beside what else is to be searched, log-uniform from 1e-5 to 100: `ridge`, or for the
        last three the `loss` with its weights drawn, the temperature from 1e-3 to 100. Nothing for
        "simple_contrastive", whose constraint takes the place of the penalty: only what a loss reads is named.

    Examples
    --------
    >>> from mercer.embedding.linear_probe import search_space
    >>> distribution = search_space("kernel_pca")["ridge"]
    >>> bool(1e-5 <= distribution.rvs(random_state=0) <= 100)
    True
    """
    return dict(SPACES[check_choice("loss", loss, SPACES)])


def labelled_rows(y: np.ndarray, labeled: float, random_state: Any = 0, *, spare: int = 0) -> np.ndarray:
    """Draw rows such that every class has its share of them, at least one row, and keeps `spare` rows that are not.

    The numbers are those of the largest remainders, within these bounds. Rows come in random order.
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
    """Divide n in proportion to `counts`, in whole numbers from 1 to `most`, by largest remainders."""
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
    """Return a logistic regression, its C chosen by cross-validation where none is given.

    It is fitted on features of mean 0 and mean variance 1; its coefficients are then those of the features as given.
    """
    options = {"solver": "lbfgs", "max_iter": 1000}
    # Half of the classes at least must be in every fold, else it is not the classifier that is being judged.
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
    # A class with fewer rows than folds is missing in some, which the choice of C survives.
    with ignored(UserWarning, "The least populated class"):
        center, scale = features.mean(axis=0), np.sqrt(features.var(axis=0).mean())
        scale = scale if scale > 0 else 1.0
        model.fit((features - center) / scale, y)
    model.coef_ = model.coef_ / scale
    model.intercept_ = model.intercept_ - model.coef_ @ center
    return model


def balanced_accuracy(y_true: np.ndarray, predicted: np.ndarray) -> float:
    """Return the mean accuracy over the classes of `y_true`.

    As `balanced_accuracy_score`, but for its warning where a class is predicted that `y_true` has not.
    """
    return float(recall_score(y_true, predicted, labels=np.unique(y_true), average="macro"))


def is_unbalanced(y: Any) -> bool:
    """Return whether the largest class has more than twice the rows of the smallest."""
    counts = np.unique(y, return_counts=True)[1]
    return bool(counts.max() > UNBALANCED * counts.min())


def _held_out_score(
    estimator: Any, X: Any, y: Any, *, labeled: float, balanced: bool | Literal["auto"], random_state: Any
) -> float:
    _check_transformer("estimator", estimator, "a fitted transformer")
    y = _check_labels("y", y, X)
    chosen = labelled_rows(y, labeled, random_state, spare=1)
    rest = np.setdiff1d(np.arange(len(y)), chosen)
    features = _embed(estimator, "X", X)
    predicted = fit_classifier(features[chosen], y[chosen]).predict(features[rest])
    if is_unbalanced(y) if balanced == "auto" else balanced:
        return balanced_accuracy(y[rest], predicted)
    return float(np.mean(predicted == y[rest]))


def _check_transformer(name: str, estimator: Any, allowed: str) -> None:
    if not (estimator is None and name == "embedding") and not hasattr(estimator, "transform"):
        raise invalid_parameter(name, estimator, allowed)


def _check_labelled(labeled: Any, *, all_rows: bool) -> None:
    """Raise unless `labeled` is a share, of all rows at most or of less, or a number of rows."""
    good = False
    if isinstance(labeled, Integral):
        good = not isinstance(labeled, bool) and int(labeled) >= 1
    elif isinstance(labeled, Real):
        good = 0 < float(labeled) < 1 or (all_rows and float(labeled) == 1)
    if not good:
        end = "at most 1" if all_rows else "below 1"
        raise invalid_parameter("labeled", labeled, f"a share above 0 and {end}, or a whole number of rows")


def _check_labels(name: str, y: Any, X: Any) -> np.ndarray:
    """Return the classes of the rows of X, of shape (n,), at least two of them if they are those of training."""
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
    """Return embedded rows as a finite matrix."""
    values = X if embedding is None else embedding.transform(X)
    source = name if embedding is None else f"{type(embedding).__name__}.transform({name})"
    return np.asarray(check_array(values, dtype=[np.float64, np.float32], input_name=source))
