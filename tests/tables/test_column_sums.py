"""What parts of the rows say of a column is what all rows say at once: medians to the last digit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mercer import TableEncoder
from mercer.rows import FileRows, open_rows
from mercer.tables.column_sums import (
    ERRORS,
    Asked,
    asked_of,
    median_of_parts,
    summary_of_parts,
    sums_of,
    with_sums_of_all_rows,
)
from mercer.tables.columns import ColumnSummary
from mercer.tables.elsewhere import TableElsewhere
from mercer.tables.level_means import LevelMeans
from mercer.tables.readers import Dates, Numbers
from tests.examples_of import QUICK

NUMBERS = st.one_of(st.sampled_from([0.0, 1.0, 2.0, np.nan]), st.floats(-1e6, 1e6))


@settings(QUICK, max_examples=50)
@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(1, 20), st.floats(-2.0, 2.0), st.floats(0.0, 3.0))
def test_parts_of_a_column_say_what_all_of_it_says(values, size, low, width):
    raw = np.array(values)[:, None]
    if np.isnan(raw).all():
        return
    ends = [(low, low + width), (-np.inf, low), (-np.inf, np.inf)]
    expected = ColumnSummary.of_raw(Numbers(), raw)
    for ends_of_kept in ends:
        asked = Asked("a", Numbers(), np.array([0.5]), *ends_of_kept)
        found = summary_of_parts(asked, [sums_of(asked, part) for part in np.split(raw, range(size, len(raw), size))])
        if found is None:  # the median, or one of the two middle numbers, is elsewhere
            middle = np.sort(raw[~np.isnan(raw)])
            middle = middle[[(len(middle) - 1) // 2, len(middle) // 2]]
            assert not (ends_of_kept[0] <= middle[0] and middle[1] <= ends_of_kept[1])
            continue
        assert (found.n_rows, found.n_missing) == (expected.n_rows, expected.n_missing)
        assert found.fill[0] == expected.fill[0]
        scale = np.abs(raw[~np.isnan(raw)]).max() + 1.0
        assert_allclose(found.center, expected.center, atol=1e-12 * scale)
        assert_allclose(found.spread, expected.spread, atol=1e-7 * scale)
        assert (found.least, found.most) == (expected.least, expected.most)


def test_dates_are_filled_in_by_their_means():
    reader = Dates(None, None)
    days = pd.Series(pd.to_datetime(["2024-01-01", None, "2024-03-05", "2023-07-01"]))
    raw = reader.read(days).raw
    asked = asked_of("day", reader, pd.DataFrame({"day": days[[0, 2]]}), ERRORS)
    found, expected = (
        summary_of_parts(asked, [sums_of(asked, raw[:1]), sums_of(asked, raw[1:])]),
        ColumnSummary.of_raw(reader, raw),
    )
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_numbers_around_the_median_of_the_draw_are_few_and_have_it():
    random = np.random.default_rng(0)
    everything = random.normal(size=200_000)
    drawn = pd.DataFrame({"a": everything[random.choice(200_000, 20_000, replace=False)]})
    asked = asked_of("a", Numbers(), drawn, ERRORS)
    sums = sums_of(asked, everything[:, None])
    assert len(sums.values) < 0.05 * len(everything)
    assert median_of_parts([sums], len(everything)) == np.median(everything)


@pytest.fixture
def table(tmp_path):
    """A table whose first 40 rows are unlike the others, in files."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.normal(size=300), "kind": random.choice(["x", "y"], size=300)})
    frame.loc[:39, "a"] -= 50.0
    frame.loc[100:102, "kind"] = "rare"
    frame.loc[200:, "a"] = np.where(random.random(100) < 0.2, np.nan, frame.loc[200:, "a"])
    frame["word"] = [f"{n}-word" for n in range(300)]
    frame["shop"] = [f"shop {n % 45}" for n in range(300)]
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
    return frame, open_rows(tmp_path)


def test_a_draw_that_misleads_costs_passes_and_nothing_else(table, monkeypatch):
    frame, rows = table
    read, blocks = [], FileRows.blocks
    monkeypatch.setattr(FileRows, "blocks", lambda self, bounds: (read.append(bounds), blocks(self, bounds))[1])
    table = TableElsewhere.of(rows.without("shop", "word", "kind"))
    drawn = frame[["a"]][:40]
    encoder = with_sums_of_all_rows(TableEncoder().fit(drawn), table.rows, (), drawn)
    assert len(read) > 1
    whole = TableEncoder().fit(frame[["a"]])
    assert encoder.columns_[0].fill == whole.columns_[0].fill == np.nanmedian(frame["a"])
    assert_allclose(encoder.transform(frame[["a"]]), whole.transform(frame[["a"]]), rtol=1e-12, atol=1e-12)
    assert encoder.columns_[0].marked


def test_levels_are_those_of_all_rows_and_what_depends_on_the_target_stays(table):
    frame, rows = table
    y = np.arange(300.0)
    drawn = frame[110:]
    fitted = TableEncoder(target_type="numbers").fit(drawn, y[110:])
    encoder = with_sums_of_all_rows(fitted, TableElsewhere.of(rows).rows, (), drawn)
    names = list(encoder.get_feature_names_out())
    assert "kind=rare" not in list(fitted.get_feature_names_out())
    assert "kind=rare" in names
    assert len(names) == len(encoder.variances_) == len(encoder.origins_) == encoder.transform(frame).shape[1]
    whole = TableEncoder(target_type="numbers").fit(frame, y)
    for one, old, other in zip(encoder.columns_, fitted.columns_, whole.columns_, strict=True):
        assert (one.name, type(one.reader)) == (other.name, type(other.reader))
        if isinstance(one.reader, LevelMeans):
            assert one is old
    # The frame that was encoded says the variances of what does not depend on the target.
    own = [place for place, name in enumerate(names) if name.startswith(("a", "kind"))]
    assert_allclose(encoder.variances_[own], encoder.transform(frame).var(axis=0)[own], rtol=1e-10)
