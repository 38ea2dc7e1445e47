"""Tables as matrices: every kind of column, missing values everywhere, names, arrays, what is not installed."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
import skrub
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from mercer import KernelDiscriminant, TableEncoder, tabular
from mercer.exceptions import DataWarning, InvalidParameterError
from mercer.tables import kinds, readers, text
from tests.example_tables import KINDS, houses, in_a_fresh_process
from tests.model_files import same, there_and_back


def encoded(table, **options):
    return TableEncoder(**options).set_output(transform="pandas").fit_transform(table)


def one(values, **options):
    """Encode a single column."""
    return encoded(pd.DataFrame({"x": values}), **options)


# ---- every kind of column --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
def test_every_kind_of_column(missing):
    table, _ = houses(missing=missing)
    before = table.copy()
    encoder = TableEncoder().set_output(transform="pandas")
    first = encoder.fit_transform(table)
    pd.testing.assert_frame_equal(table, before)
    assert encoder.kinds_ == KINDS
    assert first.shape == (150, len(encoder.get_feature_names_out()))
    assert np.isfinite(first.to_numpy()).all()
    assert first.dtypes.eq(np.float64).all()
    pd.testing.assert_frame_equal(encoder.transform(table), first, check_exact=True)
    marks = [name for name in first if name.endswith("is missing")]
    assert len(marks) == (12 if missing else 0)
    assert [KINDS[list(table)[i]] for i in encoder.origins_].count("text") == 30 + missing
    assert not encoder.transform(houses(seed=1)[0]).isna().any(axis=None)


def test_rows_do_not_depend_on_their_neighbors():
    table, _ = houses()
    encoder = TableEncoder().fit(table)
    whole = encoder.transform(table)
    for rows in ([3], [149, 0, 77], list(range(149, -1, -1))):
        assert same(encoder.transform(table.iloc[rows]), np.ascontiguousarray(whole[rows]))


def test_columns_weigh_alike_and_stay_in_their_units_if_not_scaled():
    table, _ = houses(missing=False)
    encoder = TableEncoder().fit(table)
    sums = dict(zip(table, np.bincount(encoder.origins_, weights=encoder.variances_, minlength=13), strict=True))
    for name, kind in KINDS.items():
        if kind in ("number", "date", "text"):
            assert sums[name] == pytest.approx(1.0), name
    assert 0.5 < sums["city"] < 2 / 3 + 1e-9
    np.testing.assert_allclose(encoder.transform(table)[:, encoder.origins_ != 6][:, :6].mean(axis=0), 0, atol=1e-12)
    plain = encoded(table, scale=False)
    words = encoder.variances_[encoder.origins_ == list(table).index("description")]
    unscaled = plain.filter(like="description").var(ddof=0)
    np.testing.assert_allclose(words, unscaled / unscaled.sum())  # one factor for all: text keeps its shape
    np.testing.assert_array_equal(plain["age"], table["age"])
    np.testing.assert_array_equal(plain["waited"], table["waited"].dt.total_seconds())
    np.testing.assert_array_equal(plain["built: year"], table["built"].dt.year)


# ---- numbers ---------------------------------------------------------------------------------------------------


def test_missing_numbers_are_the_median_and_marked():
    out = one([1.0, None, 2.0, 30.0, np.nan], scale=False)
    assert out["x"].tolist() == [1.0, 2.0, 2.0, 30.0, 2.0]
    assert out["x is missing"].tolist() == [0, 1, 0, 0, 1]


def test_a_few_missing_numbers_are_not_marked():
    """Of four rows nothing can be learned, unless the table has few rows besides."""
    for n, holes, marked in ((200, 4, False), (200, 5, True), (30, 2, False), (30, 3, True), (1000, 5, True)):
        values = pd.Series(np.arange(float(n))).mask(np.arange(n) < holes)
        out = one(values, scale=False)
        assert list(out) == (["x", "x is missing"] if marked else ["x"])
        assert out["x"][0] == values.median()


def test_a_first_missing_value_at_prediction_is_the_median_too():
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"x": [1.0, 2.0, 30.0]}))
    assert list(encoder.get_feature_names_out()) == ["x"]
    assert encoder.transform(pd.DataFrame({"x": [None, 5.0]})).ravel().tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, 4],
        [True, False, True],
        ["1.5", " 2 ", "1e3"],
        ["1.5", "N/A", "-3"],
        [decimal.Decimal("1.5"), None, decimal.Decimal(4)],
        [True, None, False],
        [1, "?", "2.5"],
        pd.array([1, None, 3], dtype="Int64"),
        pd.array([1.5, None, 3], dtype="Float32"),
        pd.array([True, None, False], dtype="boolean"),
        pd.to_timedelta([1, 2, None], unit="h"),
    ],
    ids=str,
)
def test_numbers_are_read_as_skrub_reads_them(values):
    column = pd.Series(values, name="x")
    expected = skrub.TableVectorizer().fit_transform(column.to_frame())["x"].to_numpy(dtype=float)
    raw, unreadable = readers.Numbers().read(column)
    assert not unreadable.any()
    np.testing.assert_array_equal(raw[:, 0].astype(np.float32), expected)
    encoder = TableEncoder().fit(column.to_frame())
    assert encoder.kinds_ == {"x": "number"}


def test_large_whole_numbers_keep_their_digits():
    """skrub would turn them into single precision."""
    assert one([2**40 + 1, 2**40, 2**40 + 2], scale=False)["x"].tolist() == [2**40 + 1, 2**40, 2**40 + 2]


def test_unreadable_values_count_as_missing_and_are_named():
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"x": [1.0, 2.0, 3.0], "d": pd.date_range("2024", periods=3)}))
    with pytest.warns(DataWarning, match=r"missing: 2 in 'x' \(such as 'abc'\), 1 in 'd' \(such as 'soon'\)"):
        out = encoder.transform(pd.DataFrame({"x": ["abc", "7", "xyz"], "d": ["2024-01-05", "soon", None]}))
    assert out[:, 0].tolist() == [2.0, 7.0, 2.0]
    for wrong in (pd.date_range("2024", periods=3), pd.Categorical(["a", "b", "c"])):
        with pytest.warns(DataWarning, match="3 in 'x'"):
            encoder.transform(pd.DataFrame({"x": wrong, "d": pd.NaT}))


def test_infinity_and_complex_numbers_are_refused():
    for values in ([1.0, np.inf], ["1", "-inf"], pd.array([1.0, np.inf], dtype="Float64")):
        with pytest.raises(ValueError, match="column 'x' of X contains infinity"):
            one(values)
    for values in ([1j, 2.0], pd.Series([1j, 2.0], dtype=object)):
        with pytest.raises(ValueError, match="Complex data not supported"):
            one(values, kinds={"x": "number"})


# ---- categories ------------------------------------------------------------------------------------------------


def test_categories_have_a_column_a_level_and_missing_is_one():
    table = pd.DataFrame({"x": ["b", "a", None, "b", "N/A"]})
    encoder = TableEncoder().set_output(transform="pandas").fit(table)
    out = encoder.transform(table)
    assert list(out) == ["x=a", "x=b", "x is missing"]
    assert out.to_numpy().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1]]
    new = encoder.transform(pd.DataFrame({"x": ["unknown", "a", "?"]}))
    assert new.to_numpy().tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_a_first_missing_category_at_prediction_is_no_level():
    encoder = TableEncoder().fit(pd.DataFrame({"x": ["b", "a"]}))
    assert encoder.transform(pd.DataFrame({"x": [None, "a"]})).tolist() == [[0, 0], [1, 0]]


def test_levels_are_known_by_their_text_whatever_the_dtype():
    encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Categorical([1, 2, 30])}))
    assert list(encoder.get_feature_names_out()) == ["x=1", "x=2", "x=30"]
    for values in ([2, 30], [2.0, 30.0], ["2", "30"], pd.Categorical([2, 30]), pd.array([2, 30], dtype="Int64")):
        assert encoder.transform(pd.DataFrame({"x": values})).tolist() == [[0, 1, 0], [0, 0, 1]]
    # One equals True and 1.0: none may be taken for another because it came first.
    mixed = pd.DataFrame({"x": pd.Series([True, 1, "a", 1.0], dtype=object)})
    encoder = TableEncoder(kinds={"x": "category"}).fit(mixed)
    assert list(encoder.get_feature_names_out()) == ["x=1", "x=True", "x=a"]
    assert same(encoder.transform(mixed)[::-1].copy(), encoder.transform(mixed[::-1]))


def test_few_values_are_categories_and_many_are_text():
    many = [f"value {i}" for i in range(40)]
    for values in (many, pd.Categorical(many)):
        assert TableEncoder().fit(pd.DataFrame({"x": values})).kinds_ == {"x": "text"}
        assert TableEncoder(cardinality_threshold=41).fit(pd.DataFrame({"x": values})).kinds_ == {"x": "category"}
    assert TableEncoder().fit(pd.DataFrame({"x": many[:39] * 2})).kinds_ == {"x": "category"}


# ---- dates -----------------------------------------------------------------------------------------------------


def test_date_parts_are_those_of_pandas():
    times = pd.Series(pd.date_range("1903-02-27 05:13:59.25", periods=400, freq="37D7h11min"))
    seconds = (times - pd.Timestamp(0)) / pd.Timedelta("1s")
    day = (times - times.dt.normalize()) / pd.Timedelta("1D")
    turns = [(times.dt.month - 1) / 12, times.dt.day_of_week / 7, day]
    circles = [[f(2 * np.pi * turn) for f in (np.sin, np.cos)] for turn in turns]
    expected = [seconds, times.dt.year, *circles[0], times.dt.day, *circles[1], *circles[2]]
    parts = readers.date_parts(times.to_numpy(dtype="datetime64[us]"))
    np.testing.assert_allclose(parts, np.stack(expected, axis=1), rtol=1e-12, atol=1e-9)


ISO = ["2024-01-30 10:00:00", "2024-02-29 22:30:00", "2023-12-31 00:00:00"]


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(ISO),
        pd.to_datetime(ISO).astype("datetime64[s]"),
        ISO,
        [*ISO[:2], "?"],
        ["01/30/2024", "02/29/2024", "12/31/2023"],
        ["30/01/2024", "29/02/2024", None],
        [datetime.date(2024, 1, 30), None, datetime.date(2023, 12, 31)],
        [datetime.datetime(2024, 1, 30, 10), None, datetime.datetime(2023, 12, 31)],
        ["2024-01-30T10:00:00+02:00", "2024-06-30T10:00:00+01:00", "2024-01-30T10:00:00+02:00"],
        pd.to_datetime(ISO).tz_localize("America/New_York"),
    ],
    ids=str,
)
def test_dates_are_read_as_skrub_reads_them(values):
    table = pd.DataFrame({"x": values})
    vectorizer = skrub.TableVectorizer(datetime=skrub.DatetimeEncoder(resolution=None))
    expected = vectorizer.fit_transform(table)["x_total_seconds"].to_numpy(dtype=float)
    encoder = TableEncoder().fit(table)
    assert encoder.kinds_ == {"x": "date"}
    reader = encoder.columns_[0].reader
    raw, unreadable = reader.read(table["x"])
    assert not unreadable.any()
    offset = 0.0
    if table["x"].dtype.kind == "M" and table["x"].dt.tz is not None:  # ours are by the clock on the wall
        offset = (table["x"].dt.tz_localize(None) - table["x"].dt.tz_convert(None)).dt.total_seconds()
    np.testing.assert_allclose(raw[:, 0] - offset, expected, rtol=1e-7)  # skrub has single precision


def test_dates_keep_the_clock_of_their_time_zone():
    paris = pd.Series(pd.to_datetime(ISO)).dt.tz_localize("Europe/Paris")
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"x": paris}))
    assert encoder.columns_[0].reader.zone == "Europe/Paris"
    expected = encoder.transform(pd.DataFrame({"x": paris}))
    names = list(encoder.get_feature_names_out())
    hours = np.arctan2(*(expected[:, names.index(f"x: time of day ({f})")] for f in ("sin", "cos"))) * 12 / np.pi % 24
    np.testing.assert_allclose(hours, [10.0, 22.5, 0.0], atol=1e-9)
    utc = paris.dt.tz_convert("UTC")
    for values in (utc, paris.dt.tz_convert("Asia/Tokyo"), utc.dt.tz_localize(None), paris.astype(str)):
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"x": values})), expected)


def test_a_zone_without_a_name_becomes_utc(tmp_path):
    class Own(datetime.tzinfo):
        def utcoffset(self, when):
            return datetime.timedelta(hours=3)

        def dst(self, when):
            return datetime.timedelta(0)

    table = pd.DataFrame({"x": pd.Series(pd.to_datetime(ISO)).dt.tz_localize(Own())})
    encoder = TableEncoder(scale=False).fit(table)
    assert encoder.columns_[0].reader.zone == "UTC"
    assert same(there_and_back(encoder, tmp_path).transform(table), encoder.transform(table))


def test_a_format_found_in_the_fit_holds_at_prediction():
    """One row alone does not tell day from month."""
    encoder = TableEncoder(scale=False).fit(pd.DataFrame({"x": ["30/01/2024", "28/02/2023", "02/03/2024"]}))
    out = encoder.transform(pd.DataFrame({"x": ["02/03/2024"]}))
    names = list(encoder.get_feature_names_out())
    assert out[0, names.index("x: day")] == 2
    assert out[0, 0] == pd.Timestamp("2024-03-02").timestamp()


def test_only_parts_that_vary_are_kept_and_a_missing_date_is_in_the_middle():
    dates = pd.to_datetime(["2024-01-03", None, "2024-07-03", "2024-01-03"])
    out = one(dates)
    # The sine of January and of July is 0 but for rounding, which must not be scaled up to be a column.
    assert list(out) == ["x: total seconds", "x: month (cos)", "x is missing"]
    assert out.iloc[1].tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)
    assert one(pd.period_range("2024-01", periods=5, freq="M"))["x: month (sin)"].var() > 0


# ---- text ------------------------------------------------------------------------------------------------------


def test_text_is_the_singular_directions_of_its_ngrams():
    """Against a decomposition of all rows, one by one; texts that come often count often."""
    texts = houses(400, missing=False)[0]["description"].tolist() + ["bright cellar 3"] * 50
    column = pd.Series(texts, name="x")
    reader = text.Texts.fit(column, n_components=5)
    vectorizer = text.TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4)).fit(sorted(set(texts)))
    A = vectorizer.transform(texts).toarray()
    _, _, V = np.linalg.svd(A, full_matrices=False)
    raw, _ = reader.read(column)
    np.testing.assert_allclose(np.abs(raw), np.abs(A @ V[:5].T), atol=1e-8)
    assert len(set(texts)) > 2 * text.SMALL - 50  # the iterative way
    few = pd.Series(texts[:60], name="x")
    assert text.Texts.fit(few, n_components=200).directions.shape[0] == 60


def test_like_texts_are_near_and_new_ones_are_placed():
    titles = ["police officer", "police sergeant", "fire fighter", "social worker", "bus operator", "librarian"]
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": [f"{titles[i]} {random.integers(0, 99)}" for i in random.integers(0, 6, 300)]})
    encoder = TableEncoder(n_components=6).fit(table)
    assert encoder.kinds_ == {"x": "text"}
    new = pd.DataFrame({"x": ["polise oficer", "police officer 7", "librarian 7", "", "ÿÿÿÿ"]})
    out = encoder.transform(new)
    distance = np.linalg.norm(out[:, None] - out[None], axis=2)
    assert distance[0, 1] < 0.5 * distance[0, 2]
    np.testing.assert_allclose(out[3], 0.0, atol=1e-12)  # missing, in the middle of the texts
    assert np.isfinite(out[4]).all()


def test_ngrams_are_limited_and_missing_text_is_marked(monkeypatch):
    monkeypatch.setattr(text, "MOST_NGRAMS", 50)
    table = houses()[0][["description"]]
    encoder = TableEncoder(n_components=4).fit(table)
    assert len(encoder.columns_[0].reader.ngrams) == 50
    assert encoder.columns_[0].reader.directions.shape == (4, 50)
    out = encoder.transform(table)
    np.testing.assert_array_equal(out[:, -1], table["description"].isna())


# ---- columns that say nothing, and names -----------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NaT, "", "N/A", pd.NA], ids=str)
def test_a_column_without_values_is_dropped_with_its_name(nothing):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "nothing at all": [nothing] * 3})
    encoder = TableEncoder()
    with pytest.warns(DataWarning, match="no value in 'nothing at all'"):
        encoder.fit(table)
    assert encoder.kinds_ == {"x": "number", "nothing at all": "missing"}
    assert encoder.transform(table.assign(**{"nothing at all": [1.0, None, "a"]})).shape == (3, 1)


def test_a_constant_column_is_dropped_and_may_vary_later():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": 5.0, "s": "a", "d": pd.Timestamp("2024-01-01")})
    encoder = TableEncoder().fit(table)
    assert encoder.kinds_ == {"x": "number", "c": "constant", "s": "constant", "d": "constant"}
    assert same(encoder.transform(table.assign(c=[1e9, 2.0, None], s="b")), encoder.transform(table))
    rounded = TableEncoder().fit(pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": [0.3, 0.1 + 0.2, 0.3]}))
    assert rounded.kinds_["c"] == "constant"
    half = one([5.0, None, 5.0])
    assert list(half) == ["x is missing"]
    assert half["x is missing"].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match=r"no column of X varies \(n_samples=3\)"):
        TableEncoder().fit(table[["c", "s"]])


def test_columns_are_found_by_name():
    table, _ = houses()
    encoder = TableEncoder().fit(table)
    expected = encoder.transform(table)
    assert list(encoder.feature_names_in_) == list(table.columns)
    assert encoder.n_features_in_ == table.shape[1]
    assert same(encoder.transform(table[table.columns[::-1]]), expected)
    assert same(encoder.transform(table.assign(target=1.0, age_2="x")), expected)


def test_missing_columns_are_named_with_the_nearest():
    table, _ = houses()
    encoder = TableEncoder().fit(table)
    with pytest.raises(
        ValueError, match=r"feature names should match .* X lacks 'age' \(nearest: 'Age'\), 'city'; it has"
    ):
        encoder.transform(table.rename(columns={"age": "Age"}).drop(columns="city"))
    with pytest.raises(ValueError, match="'rooms', .*'sold' and 3 more; it has 'other'"):
        encoder.transform(pd.DataFrame({"other": [1.0]}))


def test_a_fit_that_fails_leaves_the_old_one():
    table, _ = houses()
    encoder = TableEncoder().fit(table)
    before = encoder.transform(table)
    with pytest.raises(ValueError, match="no column of X varies"):
        encoder.fit(pd.DataFrame({"other": [1.0, 1.0]}))
    assert list(encoder.feature_names_in_) == list(table)
    assert same(encoder.transform(table), before)


def test_names_that_repeat_are_refused_and_others_are_made_unique():
    table = pd.DataFrame([[1.0, 2.0, 3.0], [2.0, 3.0, 1.0]], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="more than one column of the name 'a'"):
        TableEncoder().fit(table)
    with pytest.raises(ValueError, match="more than one column of the name '1'"):
        TableEncoder().fit(table.set_axis([1, "1", 2], axis=1))
    out = encoded(pd.DataFrame({"x": ["a", "b"], "x=a": [1.0, 2.0], "x=a (2)": [1.0, 2.0]}))
    assert list(out) == ["x=a", "x=b", "x=a (2)", "x=a (2) (2)"]


def test_labels_that_are_no_strings_are_known_by_their_text():
    table = pd.DataFrame({0: [1.0, 2.0, 4.0], 10: ["a", "b", "a"]})
    encoder = TableEncoder().fit(table)
    assert list(encoder.get_feature_names_out()) == ["0", "10=a", "10=b"]
    assert same(encoder.transform(table[[10, 0]]), encoder.transform(table))


def test_the_index_comes_along():
    table, y = houses()
    table.index = y.index = [f"house {i}" for i in range(150)]
    encoder = TableEncoder().set_output(transform="pandas").fit(table)
    assert list(encoder.transform(table).index) == list(table.index)
    shuffled = pd.Series(y.to_numpy(), index=y.index[::-1])  # rows go by place, as in scikit-learn
    model = tabular(KernelDiscriminant(random_state=0)).set_output(transform="pandas").fit(table, shuffled)
    out = model.transform(table)
    assert list(out.index) == list(table.index)
    assert list(out.columns) == ["kerneldiscriminant0"] == list(model.get_feature_names_out())


# ---- arrays, other libraries, what is not installed ------------------------------------------------------------


def test_arrays_have_names_by_place():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]], dtype=np.float32)
    encoder = TableEncoder().fit(X)
    assert list(encoder.get_feature_names_out()) == ["x0", "x1", "x1 is missing"]
    assert not hasattr(encoder, "feature_names_in_")
    assert same(encoder.transform(pd.DataFrame(X)), encoder.transform(X))
    with pytest.raises(ValueError, match="X has 1 features, but TableEncoder is expecting 2 features"):
        encoder.transform(pd.DataFrame(X[:, :1]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        TableEncoder().fit(pd.DataFrame(X, columns=["a", "b"])).transform(X)


def test_arrays_of_objects_and_kinds():
    X = np.array([["a", 1.0, "2024-01-05"], ["b", None, "2024-01-06"], ["a", 3.0, "2024-02-07"]], dtype=object)
    encoder = TableEncoder().fit(X)
    assert encoder.kinds_ == {"x0": "category", "x1": "number", "x2": "date"}
    assert same(encoder.transform(X.tolist()), encoder.transform(X))
    codes = np.array([[1, 20240105], [2, 20240106], [1, 20240207]])
    encoder = TableEncoder(kinds={"x0": "category", "x1": "date"}, scale=False).fit(codes)
    assert list(encoder.get_feature_names_out())[:4] == ["x0=1", "x0=2", "x1: total seconds", "x1: month (sin)"]
    assert encoder.transform(codes)[:, 2].tolist() == [pd.Timestamp(str(day)).timestamp() for day in codes[:, 1]]


def test_other_data_frames_hand_themselves_over():
    class Frame:
        def __init__(self, table):
            self.table = table

        def to_pandas(self):
            return self.table

    table, y = houses()
    model = tabular(KernelDiscriminant(random_state=0)).fit(Frame(table), y)
    assert same(model.predict_proba(Frame(table)), model.predict_proba(table))


def test_without_pandas_and_skrub_arrays_work_and_tables_say_what_is_needed():
    code = """
import sys
absent = {"pandas", "skrub"}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in absent:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import mercer
def complaint(X):
    try:
        mercer.TableEncoder().fit(X)
    except ImportError as error:
        return error
model = mercer.tabular(mercer.KernelDiscriminant()).fit([[1.0], [2.0], [3.0], [5.0]], [0, 0, 1, 1])
print(model.predict([[1.0], [5.0]]))
print(complaint([["a"], ["b"]]))
absent.remove("pandas")
import pandas
print(complaint(pandas.DataFrame({"x": ["a", "b"]})))
print(mercer.TableEncoder().fit_transform(pandas.DataFrame({"x": [1.0, 3.0]})).ravel())
"""
    assert in_a_fresh_process(code).splitlines() == [
        "[0 1]",
        'an array of strings or objects needs pandas: pip install "mercer[tables]"',
        'a table with columns of strings needs skrub: pip install "mercer[tables]"',
        "[-1.  1.]",
    ]


# ---- parameters ------------------------------------------------------------------------------------------------


def test_kinds_have_the_last_word():
    table = pd.DataFrame(
        {"code": ["0139", "0210", "0139"], "day": [20240131, 20240229, 20231231], "x": ["1", "2", "5"]}
    )
    encoder = TableEncoder().fit(table)
    assert encoder.kinds_ == {"code": "number", "day": "number", "x": "number"}
    encoder = TableEncoder(kinds={"code": "category", "day": "date", "x": "text"}).fit(table)
    assert encoder.kinds_ == {"code": "category", "day": "date", "x": "text"}
    assert list(encoder.get_feature_names_out())[:2] == ["code=0139", "code=0210"]
    with pytest.raises(InvalidParameterError, match=r"kinds\['code'\]='date' is not allowed: .* It holds no dates"):
        TableEncoder(kinds={"code": "date"}).fit(table)
    with pytest.warns(DataWarning, match="1 in 'x'"):
        one(["1", "2", "b"], kinds={"x": "number"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": {"y": "number"}}, "about columns of X: 'x'"),
        ({"kinds": {"x": "float"}}, r"kinds\['x'\]='float' is not allowed: .*'number', 'date', 'category', 'text'"),
        ({"kinds": ["number"]}, "None or a dictionary"),
        ({"cardinality_threshold": 0}, "cardinality_threshold=0 is not allowed"),
        ({"n_components": 2.5}, "n_components=2.5 is not allowed"),
        ({"scale": "yes"}, "scale='yes' is not allowed"),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        one([1.0, 2.0], **options)


@pytest.mark.parametrize("word", sorted(readers.NULL_STRINGS - {"NaT"}))
def test_skrub_takes_the_same_words_for_missing(word):
    values = skrub.TableVectorizer().fit_transform(pd.DataFrame({"x": [word, "1", "3"]}))["x"]
    assert values.isna().tolist() == [True, False, False]
    assert one([word, "1", f" {word} "])["x is missing"].tolist() == [1, 0, 1]


def test_readers_take_nothing_over_from_skrub_but_words():
    table, _ = houses()
    found = kinds.look_at({"x": table["sold"].replace(" ? ", None), "y": table["city"]}, 40)
    assert found == {"x": ("date", "%d/%m/%Y"), "y": ("category", None)}
    assert all(type(part) in (str, type(None)) for pair in found.values() for part in pair)


@pytest.mark.parametrize("n", [12, 250], ids=["dense", "iterative"])
def test_rounding_does_not_decide_which_directions_of_text_are_kept(n):
    # Texts without common n-grams have equal singular values: any rotation of their vectors would do.
    A = np.eye(n, n + 3) * np.where(np.arange(n) < 8, 1.0, 0.5)[:, None]
    found = text.leading_directions(csr_array(A), 5)
    random = np.random.default_rng(0)
    noisy = A[random.permutation(n)] * (1 + 1e-15 * random.normal(size=A.shape))
    assert found.shape == (5, n + 3)
    assert_allclose(np.abs(text.leading_directions(csr_array(noisy), 5)), np.abs(found), atol=1e-6)
    assert_allclose(found @ found.T, np.eye(5), atol=1e-10)
    assert_allclose(np.linalg.norm(A @ found.T, axis=0), 1.0)
