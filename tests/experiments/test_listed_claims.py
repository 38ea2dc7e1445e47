"""The list of all claims of the five papers: none is without a verdict or a reason, and what it names is there."""

from collections import Counter
from pathlib import Path

import pytest

from experiments.listed import ListedClaim, decided, listed_claims, verdicts
from experiments.runner import discover, load

ROOT = Path(__file__).resolve().parent.parent.parent
CLAIMS = listed_claims()
# Experiments whose claims are all in this list's words.
OURS = ("kernel_discriminant", "krepes", "krepes_as_printed", "rfm_and_ard")


def test_the_papers_column_holds_what_is_printed():
    """The note on discriminants has no experiment: bounds of ours are no figures of it."""
    assert {claim.paper for claim in load("kernel_discriminant").claims} == {None}
    for claim in load("rfm_and_ard").claims:  # Figures without figures: words, with their place
        assert claim.paper is None or (
            isinstance(claim.paper, str) and ("Figure" in claim.paper or "section" in claim.paper)
        )


def test_there_are_some_eighty_and_every_paper_has_its_share():
    assert len(CLAIMS) >= 80
    counts = Counter(claim.paper for claim in CLAIMS)
    assert len(counts) == 5
    assert set(counts) <= set(discover())
    assert min(counts.values()) >= 8
    assert len({(claim.place, claim.says, claim.printed) for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("verdict", verdicts(), ids=lambda verdict: f"{verdict.claim.paper}, {verdict.claim.place}")
def test_every_claim_has_a_verdict_or_a_reason(verdict):
    assert verdict.status in ("held", "not held", "in part") or verdict.reason
    assert verdict.claim.by or verdict.claim.tests or verdict.claim.reason


@pytest.mark.parametrize("name", OURS)
def test_what_decides_a_claim_is_a_claim_of_the_experiment(name):
    texts = [claim.text for claim in load(name).claims]
    for claim in CLAIMS:
        for experiment, part in claim.parts():
            if experiment == name:
                assert any(part in text for text in texts), f"{claim.place}: {part!r} is in no claim of {name}"


def test_tests_that_are_named_are_there():
    for claim in CLAIMS:
        for test in claim.tests:
            path, _, function = test.partition("::")
            assert (ROOT / path).exists(), test
            assert not function or f"def {function}(" in (ROOT / path).read_text(), test


def report(*statuses):
    claims = [{"text": f"Table 1: {i}", "status": s, "mean": 0.5, "reason": "why"} for i, s in enumerate(statuses)]
    return {"a": {"claims": claims}}


@pytest.mark.parametrize(
    ("statuses", "status", "ours"),
    [
        (["held"], "held", "0.5"),
        (["not held"], "not held", "0.5"),
        (["held", "not held"], "in part", "1 of 2"),
        (["held", "not run"], "held", "0.5"),
        (["not run"], "not run", ""),
        ([], "not run", ""),
    ],
)
def test_verdicts_are_those_of_the_experiments(statuses, status, ours):
    claim = ListedClaim("a", "Table 1", "says", by=("Table 1",), reason="too long")
    found = decided(claim, report(*statuses))
    assert (found.status, found.ours) == (status, ours)
    assert found.reason == {"held": "", "not run": "too long"}.get(status, "why")


def test_a_test_decides_where_no_experiment_does_and_other_experiments_can():
    claim = ListedClaim("a", "Lemma", "says", tests=("tests/test_floors.py",))
    assert decided(claim, {}).ours == "by test"
    elsewhere = ListedClaim("b", "Table 1", "says", by=("a|Table 1",))
    assert decided(elsewhere, report("held")).status == "held"
