"""The benchmark of representations: what it compares, and that each of its claims can fail."""

import pytest

from benchmarks import representations
from benchmarks.representations import AUTOENCODER, DEFAULT, NYSTROEM, START, gains, judge, score, summary
from mercer.embedding.parameters import LOSSES


def fits(data, gain):
    made = [{"data": data, "method": START, "seed": seed, "accuracy": 0.9} for seed in range(3)]
    made += [
        {"data": data, "method": loss, "seed": seed, "accuracy": 0.9 + gain + 1e-4 * seed}
        for loss in LOSSES
        for seed in range(3)
    ]
    return made


def photographs(ahead, seconds):
    return [
        {"data": "coil20", "method": DEFAULT, "seed": 0, "accuracy": 0.9 + ahead, "seconds": seconds, "products": 1.0},
        {"data": "coil20", "method": NYSTROEM, "seed": 0, "accuracy": 0.9, "seconds": 1.0},
    ]


def statuses(*arguments):
    return [claim["status"] for claim in judge(*arguments)]


def test_claims_hold_and_fail():
    had_back = [{"data": "digits", "ours": 0.96, "pca": 0.96}]
    good = fits("digits", 0.01) + fits("mnist", 0.01) + photographs(0.03, 2.0)
    assert set(statuses(good, had_back)) == {"held"}
    bad = fits("digits", -0.02) + fits("mnist", -0.02) + photographs(0.01, 4.0)
    assert set(statuses(bad, [{"data": "digits", "ours": 0.1, "pca": 0.96}])) == {"not held"}
    assert gains(fits("digits", 0.01), "digits")["simclr"] == pytest.approx([0.01, 0.0101, 0.0102])


@pytest.mark.parametrize("method", [START, DEFAULT, pytest.param(AUTOENCODER, marks=pytest.mark.slow), NYSTROEM])
def test_contestants_are_fitted_and_scored(method, monkeypatch):
    monkeypatch.setattr(representations, "TABLE_LABELS", 40)
    found = score("digits", method, 0, 300)
    assert 0.3 < found["accuracy"] <= 1.0
    assert ("products" in found) == (method == DEFAULT)


def test_the_table_of_the_pages_has_a_row_for_each_set():
    entries = [{**fit, "rows": 600} for fit in fits("digits", 0.01)]
    entries += [{**fit, "rows": None} for fit in photographs(0.03, 2.0)]
    entries.append({"data": "digits", "method": "had back", "seed": 0, "rows": 600, "ours": 0.9, "pca": 0.9})
    found = summary(entries)
    digits, coil = (dict(zip(["set", *found["columns"]], row, strict=True)) for row in found["rows"])
    assert digits["start"] == "90.0"
    assert digits["simclr"] == "91.0"
    assert (digits["set"], digits["rows at most"], digits["seeds"]) == ("digits", 600, 3)
    assert (coil["spectral contrastive"], coil["Nystroem"], coil["simclr"]) == ("93.0", "90.0", "")
    assert coil["rows at most"] == "all"
