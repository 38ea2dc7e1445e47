"""Planted concepts are found and significant, random ones are not, and what is not there is refused."""

import json

import numpy as np
import pytest

import mercer
from mercer.exceptions import ModelFileError
from mercer.explain import (
    concept_influence,
    concept_profile,
    concept_scores,
    concept_vector,
    find_concept,
    read_concepts,
    write_concepts,
)
from mercer.kernels import Linear


def embedded(seed=0, n=300, d=6):
    """Rows with a linear embedding, whose directions are those of the data."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return mercer.Nystrom(Linear(), n_landmarks=60, random_state=0).fit(X), X


def planted(X, seed, n=60, size=3.0):
    random = np.random.default_rng(seed)
    others = random.normal(size=(n, X.shape[1]))
    return random.normal(size=(n, X.shape[1])) + size * np.eye(X.shape[1])[0], others


def test_a_planted_direction_is_found():
    model, X = embedded()
    examples, others = planted(X, 1, n=400)
    concept = find_concept(model, examples, others, "shift", random_state=0)
    # Of a linear kernel the representation is a rotation of the rows: that of the shift is the direction.
    shift = np.eye(X.shape[1])[:1]
    direction = (model.transform(shift) - model.transform(0 * shift))[0]
    assert concept.vector @ direction / np.linalg.norm(direction) > 0.95
    assert concept.accuracy > 0.9
    assert concept.stability > 0.9


def test_scores_are_alignment_times_influence():
    model, X = embedded()
    v = concept_vector(model, *planted(X, 1))
    K = X[:4] @ model.landmarks_.T
    Z_m = model.landmarks_ @ model.landmarks_.T @ model.coefficients_
    naive = np.array(
        [[Z_m[j] @ v * K[i, j] * np.linalg.norm(model.coefficients_[j]) for j in range(60)] for i in range(4)]
    )
    np.testing.assert_allclose(concept_scores(model, X[:4], v), naive, atol=1e-10)
    influence = K * np.linalg.norm(model.coefficients_, axis=1)
    top = np.argsort(-influence, axis=1)[:, :3]
    np.testing.assert_allclose(concept_influence(model, X[:4], v, 3), np.take_along_axis(naive, top, 1).sum(axis=1))


def significant_share(n_draws, size, n_random):
    hits = 0
    for seed in range(n_draws):
        model, X = embedded(seed)
        groups = np.where(X[:, 0] > 0.5, "carries", "does not")
        examples, others = planted(X, seed + 1000, size=size)
        found = concept_profile(model, X, groups, examples, others, n_random=n_random, random_state=seed)
        hits += ("carries" in found.significant()) if size else bool(found.significant())
    return hits / n_draws


def test_planted_concepts_are_significant():
    assert significant_share(5, 2.0, 39) == 1.0


@pytest.mark.slow
def test_a_hundred_planted_and_a_hundred_random_concepts():
    assert significant_share(100, 2.0, 99) >= 0.95
    assert significant_share(100, 0.0, 99) <= 0.10


def test_looking_at_more_concepts_asks_for_more():
    model, X = embedded()
    groups = X[:, 0] > 0.5
    one, ten = (
        concept_profile(model, X, groups, *planted(X, 7), n_random=39, n_concepts=n, random_state=0) for n in (1, 10)
    )
    np.testing.assert_allclose(ten.p_value, np.minimum(1.0, 10 * one.p_value))


def test_what_is_not_there_and_bad_input_are_refused():
    model, X = embedded()
    with pytest.raises(ValueError, match="'nothing' is not there"):
        find_concept(model, *planted(X, 3, size=0.0), "nothing", random_state=0)
    with pytest.raises(ValueError, match="examples='1 samples'"):
        find_concept(model, X[:1], X[1:])
    with pytest.raises(ValueError, match="embedding="):
        find_concept(mercer.ColumnWarp().fit(X), X[:9], X[9:])
    with pytest.raises(ValueError, match="concept="):
        concept_scores(model, X, np.ones(2))


def test_concepts_are_written_and_read_with_their_embedding(tmp_path):
    model, X = embedded()
    concept = find_concept(model, *planted(X, 1), "shift <b>", random_state=0)
    path = tmp_path / "concepts.json"
    write_concepts([concept], model, path)
    mercer.save(model, tmp_path / "model")
    (again,) = read_concepts(path, mercer.load(tmp_path / "model"))
    np.testing.assert_array_equal(again.vector, concept.vector)
    assert again._replace(vector=None) == concept._replace(vector=None)
    other, _ = embedded(1)
    with pytest.raises(ModelFileError, match="another embedding"):
        read_concepts(path, other)
    with pytest.raises(ValueError, match="embedding="):
        read_concepts(path, mercer.ColumnWarp().fit(X))
    with pytest.raises(ValueError, match="concepts="):
        write_concepts([concept.vector], model, path)


def test_damaged_files_of_concepts_are_refused(tmp_path):
    model, X = embedded()
    path = tmp_path / "concepts.json"
    write_concepts([find_concept(model, *planted(X, 1), random_state=0)], model, path)
    whole = path.read_text()
    for damaged in ("", "[]", "{", "{}", whole[: len(whole) // 2], whole.replace("vector", "other"), "x"):
        path.write_text(damaged)
        with pytest.raises(ModelFileError, match="concepts.json"):
            read_concepts(path, model)
    path.write_text(whole.replace('"vector": [', '"vector": [0.5,'))
    with pytest.raises(ModelFileError, match="length 1"):
        read_concepts(path, model)
    for field, wrong in (("accuracy", 2.0), ("stability", -7), ("n_examples", 0), ("n_others", 1e999), ("name", None)):
        document = json.loads(whole)
        document["concepts"][0][field] = wrong
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match="is damaged"):
            read_concepts(path, model)
    for before in ('"accuracy": ', '"n_examples": '):
        for number in ("NaN", "Infinity", "1e999", "9" * 400, "9" * 5000, "null", '"x"', "-1e999"):
            path.write_text(whole.replace(before, f'{before}{number}, "other": '))
            with pytest.raises(ModelFileError, match="concepts.json is damaged"):
                read_concepts(path, model)
    for longer in ("0.5,", "1e200,"):
        path.write_text(whole.replace('"vector": [', f'"vector": [{longer}'))
        with pytest.raises(ModelFileError, match="length 1"):
            read_concepts(path, model)
