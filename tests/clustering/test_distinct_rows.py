"""More clusters than distinct rows: said, not hidden."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mercer import ManifoldClustering, SubspaceClustering
from mercer.clustering.distinct_rows import check_n_clusters, distinct_rows, first_of_copies
from mercer.exceptions import DataWarning
from mercer.training import Recipe

FEW = Recipe(n_epochs=2)
MODELS = [SubspaceClustering(random_state=0), ManifoldClustering(start_recipe=FEW, recipe=FEW, random_state=0)]


@pytest.mark.parametrize("enough", [1, 2, 3, 4, 10])
def test_distinct_rows_are_counted_as_far_as_it_matters(enough):
    X = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 2.0], [-0.0, 2.0], [3.0, 4.0]])
    assert distinct_rows(X, enough) == min(enough, 3)
    assert distinct_rows(X.reshape(5, 2, 1), enough) == min(enough, 3)


def test_no_more_rows_are_looked_at_than_needed():
    class Counted(np.ndarray):
        looked = 0

        def __iter__(self):
            for i in range(len(self)):
                Counted.looked += 1
                yield np.asarray(self)[i]

    assert distinct_rows(np.arange(1000.0)[:, None].view(Counted), 5) == 5
    assert Counted.looked == 5


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_fewer_distinct_rows_than_clusters_are_warned_of(model):
    X = np.repeat(np.eye(3), 20, axis=0)
    with pytest.warns(DataWarning, match="X has 3 distinct rows, fewer than n_clusters=5"):
        labels = model.set_params(n_clusters=5).fit(X).labels_
    assert labels.shape == (60,)


def test_as_many_distinct_rows_as_clusters_are_enough(recwarn):
    check_n_clusters(3, np.repeat(np.eye(3), 20, axis=0))
    assert not recwarn.list
    with pytest.raises(ValueError, match="n_clusters"):
        check_n_clusters(4, np.eye(3))


def test_each_row_is_led_to_the_first_of_its_copies():
    X = np.array([[1.0, 0.0], [2.0, 3.0], [1.0, -0.0], [2.0, 3.0], [4.0, 4.0]])
    first, which = first_of_copies(X)
    assert first.tolist() == [0, 1, 4]
    assert which.tolist() == [0, 1, 0, 1, 2]
    assert (X[first][which] == X).all()


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 40}, {"self_expression": "omp"}])
def test_copies_of_rows_change_nothing_about_subspaces(options):
    """Twelve copies of each row would express each other alone: each row a clique, and no subspace to be seen."""
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(15, 3)) @ random.normal(size=(3, 20)) for _ in range(4)])
    y = np.repeat(np.arange(4), 15)
    order = random.permutation(np.repeat(np.arange(60), 12))
    model = SubspaceClustering(4, random_state=0, **options).fit(X[order])
    assert adjusted_rand_score(y[order], model.labels_) == 1.0
    assert model.coef_.shape == (len(model.landmark_indices_), len(order))
    assert len(np.unique(order[model.landmark_indices_])) == len(model.landmark_indices_)
    for i in range(60):
        assert len(set(model.labels_[order == i])) == 1
    if "n_landmarks" not in options:
        assert model.affinity_matrix_.shape == (len(order), len(order))
    np.testing.assert_array_equal(model.predict(X[order]), model.labels_)


def test_more_clusters_than_different_rows_warn_as_before():
    X = np.repeat(np.eye(3), 4, axis=0)
    with pytest.warns(DataWarning, match="distinct rows"):
        SubspaceClustering(5, random_state=0).fit(X)
