"""Whatever the dialect in which a table is written, the same values and kinds are read."""

import csv
import io

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mercer.app.files.reading import read_described
from tests.examples_of import QUICK

WORDS = ["Oslo", "Rome", "São Paulo", "a, b", "c; d", "e | f", 'say "no"', "two\nlines", "Zürich", "x/y", "it's"]
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 4))


@st.composite
def tables(draw):
    """Draw a table with a column of each kind; some values are missing, and none is what another kind would be."""
    n = draw(st.integers(3, 12))
    numbers = draw(st.lists(NUMBERS, min_size=n, max_size=n))
    # One number tells what is the decimal mark: it is neither of three digits nor whole.
    numbers[0] = draw(st.sampled_from([0.5, -1.25, 12.0625]))
    days = draw(st.lists(st.integers(0, 20_000), min_size=n, max_size=n))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=n, max_size=n))
    frame = pd.DataFrame(
        {
            "value": numbers,
            "count": draw(st.lists(st.integers(-(10**6), 10**6), min_size=n, max_size=n)),
            "word": words,
            "day": pd.Timestamp("1970-01-01") + pd.to_timedelta(days, unit="D"),
            "flag": draw(st.lists(st.booleans(), min_size=n, max_size=n)),
        }
    )
    frame.loc[sorted(draw(st.sets(st.integers(1, n - 1), max_size=n // 3))), "value"] = np.nan
    frame.loc[sorted(draw(st.sets(st.integers(1, n - 1), max_size=n // 3))), "word"] = None
    return frame


@st.composite
def dialects(draw):
    """Draw how a table is written."""
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    # The writer leaves a line feed in a text without quotes if lines end otherwise.
    quotings = [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, *([] if line_end == "\r" else [csv.QUOTE_MINIMAL])]
    return {
        "delimiter": draw(st.sampled_from([",", ";", "\t", "|"])),
        "quoting": draw(st.sampled_from(quotings)),
        "encoding": draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])),
        "line_end": line_end,
        "decimal": draw(st.sampled_from([".", ","])),
        "header": draw(st.booleans()),
        "missing": draw(st.sampled_from(["", "NA", "n/a", "?"])),
        "day": draw(st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %B %Y"])),
    }


def written(frame, dialect):
    """Write cell by cell, so that nothing is taken from the library that reads."""

    def cell(value):
        if value is None or value != value:
            return dialect["missing"]
        if isinstance(value, pd.Timestamp):
            return value.strftime(dialect["day"])
        return repr(value).replace(".", dialect["decimal"]) if isinstance(value, float) else str(value)

    text = io.StringIO(newline="")
    writer = csv.writer(
        text, delimiter=dialect["delimiter"], quoting=dialect["quoting"], lineterminator=dialect["line_end"]
    )
    if dialect["header"]:
        writer.writerow(frame.columns)
    for row in frame.astype(object).itertuples(index=False):
        writer.writerow([cell(value) for value in row])
    return text.getvalue().encode(dialect["encoding"])


@QUICK
@given(frame=tables(), dialect=dialects())
def test_what_is_written_in_any_dialect_is_read(tmp_path_factory, frame, dialect):
    path = tmp_path_factory.mktemp("dialects") / "t.csv"
    path.write_bytes(written(frame, dialect))
    table = read_described(path)
    names = list(frame.columns) if dialect["header"] else [f"column_{i + 1}" for i in range(frame.shape[1])]
    assert list(table.frame.columns) == names
    assert [column.reading.kind for column in table.columns] == ["number", "number", "category", "date", "number"]
    read = table.frame.set_axis(frame.columns, axis=1)
    np.testing.assert_array_equal(read["value"].to_numpy(float), frame["value"].to_numpy(float))
    np.testing.assert_array_equal(read["count"], frame["count"])
    assert read["flag"].tolist() == frame["flag"].tolist()
    assert (read["day"] == frame["day"]).all()
    words = [None if word is None or word != word else word for word in read["word"]]
    # A line end within quotes is one character for some readers.
    assert words == [None if word is None or word != word else word for word in frame["word"]]
    assert sum(column.n_unreadable for column in table.columns) == 0
