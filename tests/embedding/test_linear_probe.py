"""The linear probe: few labels of every class, none of the test rows, and a scorer that uses no row twice."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import randint, uniform
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelEmbedding, Nystrom
from mercer.embedding import Alternate, Steps
from mercer.embedding import linear_probe as evaluate
from mercer.embedding.linear_probe import (
    RIDGES,
    SPACES,
    is_unbalanced,
    labeled_rows,
    linear_probe,
    probe_scorer,
    search_space,
)
from mercer.exceptions import InvalidParameterError
from mercer.losses import barlow_twins, simclr, vicreg
from tests.examples_of import QUICK, numbers


@pytest.fixture(autouse=True)
def no_warnings():
    """The probe gives none of scikit-learn's: rare classes are its daily bread."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16.0, y[:900], X[900:] / 16.0, y[900:]


@pytest.fixture(scope="module")
def embedding(digits):
    return Nystrom(n_landmarks=100, n_components=20, random_state=0).fit(digits[0])


def blobs(counts, seed=0, apart=1.5):
    """Classes of the given sizes about different corners, in mixed order."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(np.arange(len(counts)), counts))
    return random.normal(size=(len(y), 4)) + apart * np.eye(len(counts), 4)[y], y


class Recorder(TransformerMixin, BaseEstimator):
    """A fitted identity that remembers what it was shown."""

    def transform(self, X):
        self.shown = [*getattr(self, "shown", []), X]
        return X


def naive_fit(features, y, C):
    center, spread = features.mean(axis=0), np.mean(features.var(axis=0)) ** 0.5
    model = LogisticRegression(C=C, max_iter=1000).fit((features - center) / spread, y)
    return lambda rows: model.predict((rows - center) / spread)


def naive_choices(features, y):
    """The mean accuracy over three folds of each C."""
    scaled = (features - features.mean(axis=0)) / np.mean(features.var(axis=0)) ** 0.5
    found = {}
    for ridge in RIDGES:
        C = 1 / (ridge * len(y))
        models = [(LogisticRegression(C=C, max_iter=1000), *fold) for fold in StratifiedKFold(3).split(scaled, y)]
        found[C] = np.mean([m.fit(scaled[a], y[a]).score(scaled[b], y[b]) for m, a, b in models])
    return found


def naive_choice(features, y):
    """The C of the largest accuracy, the smallest C of equals."""
    found = naive_choices(features, y)
    return min(C for C, accuracy in found.items() if accuracy == max(found.values()))


# which rows have labels


@QUICK
@given(
    counts=st.lists(st.integers(2, 40), min_size=2, max_size=8),
    share=st.floats(0.001, 0.999),
    spare=st.integers(0, 1),
    seed=st.integers(0, 5),
)
def test_every_class_has_its_share_of_labels(counts, share, spare, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    rows = labeled_rows(y, share, seed, spare=spare)
    n = len(rows)
    assert len(set(rows.tolist())) == n
    assert n == np.clip(round(share * len(y)), len(counts), len(y) - spare * len(counts))
    given = np.bincount(y[rows], minlength=len(counts))
    assert given.min() >= 1
    assert np.all(given <= np.asarray(counts) - spare)
    quotas = n * np.asarray(counts) / len(y)
    if quotas.min() >= 1 and np.all(quotas <= np.asarray(counts) - spare):
        assert np.all(np.abs(given - quotas) < 1)
    np.testing.assert_array_equal(rows, labeled_rows(y, share, seed, spare=spare))


def test_largest_remainders_by_hand():
    """Quotas 6.5, 2.75, 0.75 of ten rows: 6, 2 and the one that a class must have; the last goes to 2.75."""
    y = np.repeat([0, 1, 2], [26, 11, 3])
    assert np.bincount(y[labeled_rows(y, 10)]).tolist() == [6, 3, 1]
    # Quotas 4.85, 0.1, 0.05: the rare classes have a row each, which the large one gives.
    y = np.repeat([0, 1, 2], [97, 2, 1])
    assert np.bincount(y[labeled_rows(y, 5)]).tolist() == [3, 1, 1]


def test_labeled_rows_are_drawn_at_random_among_their_class():
    y = np.repeat([0, 1], 50)
    times = np.zeros(100)
    for seed in range(400):
        times[labeled_rows(y, 10, seed)] += 1
    assert times.sum() == 4000
    # 400 draws with probability 0.1: a standard deviation is 6.
    assert np.abs(times - 40).max() < 24


def test_share_number_and_all_rows(digits):
    X, y, X_test, y_test = digits
    assert linear_probe(None, X, y, X_test, y_test, C=1.0).n_labeled == 90
    assert linear_probe(None, X, y, X_test, y_test, labeled=37, C=1.0).n_labeled == 37
    assert linear_probe(None, X, y, X_test, y_test, labeled=np.int64(900), C=1.0).n_labeled == 900
    assert linear_probe(None, X, y, X_test, y_test, labeled=1.0, C=1.0).n_labeled == 900
    assert linear_probe(None, X, y, X_test, y_test, labeled=1e-6).n_labeled == 10


# the probe


@pytest.mark.parametrize("C", [0.02, 3.0])
def test_naive_twin(digits, embedding, C):
    X, y, X_test, y_test = digits
    result = linear_probe(embedding, X, y, X_test, y_test, labeled=0.2, C=C, random_state=3)
    rows = labeled_rows(y, 0.2, 3)
    predicted = naive_fit(embedding.transform(X[rows]), y[rows], C)(embedding.transform(X_test))
    assert result.accuracy == accuracy_score(y_test, predicted)
    assert result.balanced_accuracy == pytest.approx(balanced_accuracy_score(y_test, predicted), rel=1e-12)
    assert (type(result.accuracy), type(result.balanced_accuracy), type(result.n_labeled)) == (float, float, int)
    np.testing.assert_array_equal(result.classifier.predict(embedding.transform(X_test)), predicted)


def test_the_ridge_is_chosen_by_cross_validation_on_the_labeled_rows(digits, embedding):
    X, y, X_test, y_test = digits
    ridges = set()
    for seed in (0, 1, 3, 4):
        result = linear_probe(embedding, X, y, X_test, y_test, labeled=0.2, random_state=seed)
        rows = labeled_rows(y, 0.2, seed)
        features, C = embedding.transform(X[rows]), result.classifier.C_
        accuracies = naive_choices(features, y[rows])
        # Where the ridge is small the solver stops a little earlier or later, depending on where it starts.
        assert accuracies[C] >= max(accuracies.values()) - 0.01
        assert min(accuracies.values()) < max(accuracies.values()) - 0.01
        predicted = naive_fit(features, y[rows], C)(embedding.transform(X_test))
        assert result.accuracy == pytest.approx(accuracy_score(y_test, predicted), abs=0.01)
        ridges.add(C)
    assert len(ridges) > 1


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_the_common_scale_and_offsets_of_features_do_not_matter(digits, scale):
    X, y, X_test, y_test = digits
    offsets = np.linspace(-50, 50, 64)
    plain, moved = (linear_probe(None, X * s + o, y, X_test * s + o, y_test) for s, o in ((1.0, 0.0), (scale, offsets)))
    assert plain.accuracy == pytest.approx(moved.accuracy, abs=0.01)


def test_relative_scales_of_features_matter(digits):
    """A feature that the embedding makes small is trusted less."""
    X, y, X_test, y_test = digits
    scales = np.geomspace(1e-3, 1e3, 64)
    plain, scaled = (linear_probe(None, X * s, y, X_test * s, y_test) for s in (1.0, scales))
    assert plain.accuracy > scaled.accuracy + 0.05


def test_embedded_before_or_within(digits, embedding):
    X, y, X_test, y_test = digits
    within = linear_probe(embedding, X, y, X_test, y_test)
    before = linear_probe(None, embedding.transform(X), y, embedding.transform(X_test), y_test)
    assert within[:3] == before[:3]
    assert within.accuracy > 0.75
    assert linear_probe(embedding, X, y, X_test, y_test, random_state=1)[:2] != within[:2]


def test_nothing_but_the_labeled_rows_is_learnt_from(digits):
    X, y, X_test, y_test = digits
    rows = labeled_rows(y, 0.1, 0)
    recorder = Recorder()
    result = linear_probe(recorder, X, y, X_test, y_test)
    assert [len(shown) for shown in recorder.shown] == [90, len(X_test)]
    np.testing.assert_array_equal(recorder.shown[0], X[rows])
    others = np.full_like(X, np.nan)
    others[rows] = X[rows]
    again = linear_probe(None, others, y, X_test[::-1], np.random.default_rng(0).permutation(y_test))
    np.testing.assert_array_equal(result.classifier.coef_, again.classifier.coef_)


def test_labels_of_noise_are_not_found():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(1200, 30)), random.integers(4, size=1200)
    result = linear_probe(None, X[:600], y[:600], X[600:], y[600:], labeled=0.5)
    assert result.accuracy == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("labeled", [10, 11, 14, 20, 25])
def test_one_or_two_rows_a_class_will_do(digits, labeled):
    X, y, X_test, y_test = digits
    result = linear_probe(None, X, y, X_test, y_test, labeled=labeled)
    assert result.n_labeled == labeled
    assert result.accuracy > 0.4


def test_a_rare_class_counts_once_in_ten():
    """The large class alone is 98 % right, and half right if classes count the same."""
    X, y = blobs([490, 10], apart=0.0)
    result = linear_probe(None, X, y, X, y, labeled=0.2)
    assert result.accuracy == pytest.approx(0.98)
    assert result.balanced_accuracy == pytest.approx(0.5)


def test_classes_without_test_rows_are_left_out_of_the_mean(digits):
    X, y, X_test, y_test = digits
    kept = y_test < 5
    result = linear_probe(None, X, y, X_test[kept], y_test[kept], labeled=40)
    predicted = result.classifier.predict(X_test[kept])
    assert set(predicted) - set(range(5))
    recalls = [np.mean(predicted[y_test[kept] == k] == k) for k in range(5)]
    assert result.balanced_accuracy == pytest.approx(np.mean(recalls))


def test_frames_lists_text_and_float32(digits):
    X, y, X_test, y_test = (part[:300] for part in digits)
    expected = linear_probe(None, X, y, X_test, y_test, labeled=0.3)
    names = np.array([f"digit {k}" for k in range(10)])
    columns = [f"pixel {i}" for i in range(64)]
    frames = [pd.DataFrame(part, columns=columns, index=np.arange(7, 307)) for part in (X, X_test)]
    named = linear_probe(Recorder(), frames[0], pd.Series(names[y]), frames[1], names[y_test], labeled=0.3)
    assert named[:3] == expected[:3]
    assert named.classifier.classes_[0] == "digit 0"
    listed = linear_probe(None, X.tolist(), y.tolist(), X_test.tolist(), y_test.tolist(), labeled=0.3)
    assert listed[:3] == expected[:3]
    single = linear_probe(None, X.astype(np.float32), y, X_test.astype(np.float32), y_test, labeled=0.3)
    assert single.accuracy == pytest.approx(expected.accuracy, abs=0.02)


def test_a_collapsed_embedding_scores_as_the_largest_class():
    X, y = blobs([60, 40])
    result = linear_probe(None, np.ones_like(X), y, np.ones_like(X), y, labeled=0.5)
    assert result.accuracy == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labeled": 0.0}, "labeled=0.0 .*share above 0 and at most 1, or a whole number"),
        ({"labeled": 1.1}, "labeled=1.1 .*share above 0 and at most 1"),
        ({"labeled": -3}, "labeled=-3 .*whole number of rows"),
        ({"labeled": 0}, "labeled=0 .*whole number of rows"),
        ({"labeled": True}, "labeled=True "),
        ({"labeled": "10%"}, "labeled='10%' "),
        ({"labeled": float("nan")}, "labeled=nan "),
        ({"labeled": 2}, "labeled=2 .*at least 3 and at most 60 .*one row a class"),
        ({"labeled": 61}, "labeled=61 .*at most 60"),
        ({"C": 0.0}, "C=0.0 .*above 0"),
        ({"C": "cv"}, "C='cv' "),
        ({"embedding": "nystrom"}, "embedding='nystrom' .*fitted transformer, or None"),
        ({"y": np.zeros(59)}, r"y=\(59,\) .*shape \(60,\)"),
        ({"y": np.zeros((60, 1))}, r"y=\(60, 1\) "),
        ({"y": np.zeros(60, dtype=int)}, r"y=\[0\] .*two classes"),
        ({"y": np.linspace(0, 1, 60)}, "y='continuous' .*classes: whole numbers"),
        ({"y_test": np.zeros(3)}, r"y_test=\(3,\) .*shape \(60,\)"),
        ({"y_test": np.arange(60) % 5}, r"y_test=\[3, 4\] .*classes of y, \[0, 1, 2\]"),
        ({"X_test": numbers(60, 3)}, r"X_test=\(60, 3\) .*as many columns as X, 4"),
    ],
)
def test_errors_name_what_is_wrong(changes, message):
    X, y = blobs([20, 20, 20])
    arguments = {"embedding": None, "X": X, "y": y, "X_test": X, "y_test": y, **changes}
    with pytest.raises(InvalidParameterError, match=message):
        linear_probe(**arguments)


def test_an_embedding_that_is_not_finite_is_named():
    class Broken(Recorder):
        def transform(self, X):
            return X * np.nan

    X, y = blobs([20, 20, 20])
    with pytest.raises(ValueError, match=r"Broken.transform\(X\) contains NaN"):
        linear_probe(Broken(), X, y, X, y)


# the scorer


@pytest.mark.parametrize("balanced", [False, True, "auto"])
@pytest.mark.parametrize("counts", [[150, 90, 25], [90, 80, 95]])
def test_scorer_naive_twin(balanced, counts):
    X, y = blobs(counts)
    score = probe_scorer(labeled=0.3, balanced=balanced, random_state=2)(Recorder(), X, y)
    rows = labeled_rows(y, 0.3, 2, spare=1)
    rest = [i for i in range(len(y)) if i not in set(rows.tolist())]
    predicted = naive_fit(X[rows], y[rows], naive_choice(X[rows], y[rows]))(X[rest])
    by_class = balanced is True or (balanced == "auto" and counts[0] == 150)
    assert is_unbalanced(y) == (counts[0] == 150)
    expected = (balanced_accuracy_score if by_class else accuracy_score)(y[rest], predicted)
    other = (accuracy_score if by_class else balanced_accuracy_score)(y[rest], predicted)
    assert score == pytest.approx(expected, rel=1e-12)
    assert score != pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize(("counts", "unbalanced"), [([20, 10], False), ([21, 10], True), ([5, 5, 5], False)])
def test_more_than_twice_is_unbalanced(counts, unbalanced):
    assert is_unbalanced(np.repeat(["a", "b", "c"][: len(counts)], counts)) is unbalanced


def test_random_search_finds_the_embedding_that_tells_classes_apart(digits):
    X, y = digits[:2]
    search = RandomizedSearchCV(
        Nystrom(n_landmarks=60, random_state=0),
        {"n_components": randint(1, 40), "bandwidth": uniform(1.0, 4.0)},
        n_iter=5,
        scoring=probe_scorer(labeled=0.5, balanced="auto"),
        cv=StratifiedShuffleSplit(2, test_size=0.3, random_state=0),
        random_state=0,
        error_score="raise",
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores.max() > 0.8
    components = np.asarray(search.cv_results_["param_n_components"])
    assert search.best_params_["n_components"] > np.median(components)
    direct = probe_scorer(labeled=0.5, balanced="auto")
    train, valid = next(StratifiedShuffleSplit(2, test_size=0.3, random_state=0).split(X, y))
    model = Nystrom(n_landmarks=60, random_state=0, **search.best_params_).fit(X[train])
    assert direct(model, X[valid], y[valid]) == search.cv_results_["split0_test_score"][search.best_index_]


def test_scorer_pickles_and_takes_pipelines_and_frames(digits):
    X, y = pd.DataFrame(digits[0][:200]), pd.Series(digits[1][:200])
    model = make_pipeline(StandardScaler(), Nystrom(n_landmarks=50, random_state=0)).fit(X)
    scorer = probe_scorer(labeled=0.4)
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y) > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labeled": 1.0}, "labeled=1.0 .*above 0 and below 1, or a whole number"),
        ({"labeled": 0.0}, "labeled=0.0 "),
        ({"labeled": 0}, "labeled=0 "),
        ({"labeled": None}, "labeled=None "),
        ({"balanced": "yes"}, "balanced='yes' .*True, False or 'auto'"),
        ({"balanced": 1}, "balanced=1 "),
    ],
)
def test_scorer_checks_its_parameters_when_it_is_made(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        probe_scorer(**arguments)


def test_scorer_names_what_is_wrong_with_the_rows():
    X, y = blobs([20, 20, 1])
    with pytest.raises(InvalidParameterError, match=r"y=\{2: 1\} .*2 rows or more"):
        probe_scorer()(Recorder(), X, y)
    X, y = blobs([20, 20, 2])
    assert 0 <= probe_scorer()(Recorder(), X, y) <= 1
    assert 0 <= probe_scorer(labeled=0.999)(Recorder(), X, y) <= 1
    with pytest.raises(InvalidParameterError, match="labeled=40 .*at least 3 and at most 39"):
        probe_scorer(labeled=40)(Recorder(), X, y)
    with pytest.raises(InvalidParameterError, match="estimator=LogisticRegression.* fitted transformer"):
        probe_scorer()(LogisticRegression(), X, y)
    with pytest.raises(InvalidParameterError, match="estimator=None"):
        probe_scorer()(None, X, y)


# the paper's ranges


@pytest.mark.parametrize("loss", ["kernel_pca", "kernel_autoencoder", "spectral_contrastive"])
def test_ridges_are_log_uniform_over_seven_decades(loss):
    space = search_space(loss)
    assert list(space) == ["ridge"]
    logs = np.log10(space["ridge"].rvs(size=4000, random_state=0))
    assert logs.min() >= -5
    assert logs.max() <= 2
    counts = np.histogram(logs, bins=7, range=(-5, 2))[0]
    assert np.abs(counts / 4000 - 1 / 7).max() < 0.03


@pytest.mark.parametrize(
    ("name", "loss", "parameters"),
    [
        ("simclr", simclr, {"temperature": (1e-3, 1e2)}),
        ("barlow_twins", barlow_twins, {"off_diagonal": (1e-5, 1e2)}),
        ("vicreg", vicreg, dict.fromkeys(("invariance", "variance", "covariance", "target"), (1e-5, 1e2))),
    ],
)
def test_losses_are_drawn_with_their_parameters(name, loss, parameters):
    distribution = search_space(name)["loss"]
    drawn = [distribution.rvs(random_state=seed) for seed in range(200)]
    assert all(one.func is loss for one in drawn)
    for parameter, (low, high) in parameters.items():
        logs = np.log10([one.keywords[parameter] for one in drawn])
        assert logs.min() >= np.log10(low)
        assert logs.max() <= np.log10(high)
        assert np.median(logs) == pytest.approx((np.log10(low) + np.log10(high)) / 2, abs=0.7)
    assert distribution.rvs(random_state=3).keywords == drawn[3].keywords
    assert len({tuple(one.keywords.values()) for one in drawn}) == 200


@pytest.mark.parametrize("loss", SPACES)
def test_a_space_names_only_what_its_loss_reads(loss):
    """Every parameter that is named changes the embedding, at two ends of its range."""
    X = load_digits().data[:80] / 16.0
    options = {"bandwidth": 1.0, "n_landmarks": 20, "n_components": 3, "random_state": 0}
    solver = Alternate(rounds=0) if loss == "kernel_autoencoder" else "auto"
    if loss in ("simclr", "barlow_twins", "vicreg"):
        solver = Steps(epochs=2, batch_size=40, validation_fraction=0.0)
    for name, distribution in search_space(loss).items():
        fits = []
        for seed in (0, 1):
            drawn = distribution.rvs(random_state=seed)
            model = KernelEmbedding(
                solver=solver, **{"loss": loss, **options, name: 10.0 ** -(3 + 2 * seed) if name == "ridge" else drawn}
            )
            fits.append(model.fit(X).transform(X))
        assert fits[0].shape != fits[1].shape or not np.allclose(*fits)


def test_losses_can_be_searched():
    options = {"n_landmarks": 20, "n_components": 3, "solver": Steps(epochs=1, batch_size=50), "random_state": 0}
    search = RandomizedSearchCV(
        KernelEmbedding(bandwidth=1.0, **options),
        search_space("simclr"),
        n_iter=2,
        cv=2,
        scoring=probe_scorer(),
        random_state=0,
    )
    X, y = load_digits(return_X_y=True)
    search.fit(X[:100] / 16, y[:100] % 2)
    assert search.best_params_["loss"].func is simclr


def test_spaces_are_the_callers_own_and_unknown_losses_are_named():
    search_space("kernel_pca")["n_components"] = [1, 2]
    assert list(search_space("kernel_pca")) == ["ridge"]
    with pytest.raises(InvalidParameterError, match="loss='byol' .*'kernel_pca', 'simple_contrastive'"):
        search_space("byol")


def test_public_name():
    import mercer

    assert mercer.embedding.linear_probe is evaluate
