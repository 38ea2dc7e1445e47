"""Deadlines: what share of the time has passed, and whether it was asked in vain."""

from mercer.tabular_models.deadline import Deadline


def test_a_deadline_is_over_after_its_share_of_the_time(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("mercer.tabular_models.deadline.time.monotonic", lambda: now[0])
    free, short = Deadline(None), Deadline(10.0)
    assert not short.is_over(0.2)
    assert not short.was_asked_in_vain
    for passed, over in ((0.0, []), (2.0, [0.2]), (7.5, [0.2, 0.7]), (10.0, [0.2, 0.7, 1.0])):
        now[0] = 100.0 + passed
        assert [share for share in (0.2, 0.7, 1.0) if short.is_over(share)] == over
        assert short.is_over() is (1.0 in over)
        assert not free.is_over(0.0)
    assert short.was_asked_in_vain
    assert not free.was_asked_in_vain


def test_a_part_of_a_deadline_begins_with_it_and_remembers_for_itself(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("mercer.tabular_models.deadline.time.monotonic", lambda: now[0])
    whole = Deadline(10.0)
    now[0] = 103.0
    part = whole.part(0.4)
    assert not part.is_over()
    now[0] = 104.0
    assert part.is_over()
    assert part.was_asked_in_vain
    assert not whole.was_asked_in_vain
    assert not Deadline(None).part(0.4).is_over()
