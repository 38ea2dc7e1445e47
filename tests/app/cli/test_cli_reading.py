"""How commands read the files of people: `inspect`, the overrides, and new rows that are read as those of the fit."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.app.cli.options import kinds_in
from mercer.app.projects import table_prediction
from mercer.app.projects.table_estimators import make
from mercer.app.report.words import score_texts
from mercer.exceptions import InvalidParameterError
from tests.app.cli.test_cli_tables import done, failed
from tests.app.projects.test_table_prediction import SIMPLE


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """One kernel in place of the search, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table_prediction, "make", lambda name, task, n, seed, *_: make(name, task, n, seed, SIMPLE))
    return tmp_path


def houses(n=60):
    """Sizes, cities, days and prices as numbers and words, before anybody writes them down."""
    random = np.random.default_rng(0)
    size = np.round(random.gamma(9.0, 8.0, n), 1)
    city = random.choice(["Oslo", "Rome", "Zürich"], n)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    year = random.integers(1950, 2020, n)
    price = np.round(10.0 * size + 200.0 * (city == "Oslo") + (year - 1980) + random.normal(size=n), 2)
    return pd.DataFrame({"size": size, "city": city, "day": day, "year": year, "price": price})


def lines_of(frame, delimiter=",", decimal=".", day="%Y-%m-%d", size="{}", price="{}", year="{}"):
    """Write a table cell by cell, in some way of writing; one line a row."""

    def number(value, form):
        text = form.format(str(value).replace(".", decimal))
        return f'"{text}"' if delimiter in text else text

    return [
        delimiter.join([number(s, size), c, d.strftime(day), number(y, year), number(p, price)])
        for s, c, d, y, p in frame.itertuples(index=False)
    ]


NAMES = "size,city,day,year,price"
WAYS = {
    "plain": {},
    "semicolons and decimal commas": {"delimiter": ";", "decimal": ","},
    "tabs and days as in Germany": {"delimiter": "\t", "day": "%d.%m.%Y"},
    "units, money and days as in America": {"size": "{} m²", "price": "${}", "day": "%m/%d/%Y"},
    "percent and months in words": {"size": "{}%", "day": "%d %B %Y"},
    "no names": {"header": False},
    "UTF-16": {"encoding": "utf-16"},
    "Latin-1 and Windows line ends": {"encoding": "latin-1", "line_end": "\r\n"},
    "a question mark among years": {"year": [(3, "?"), (17, "?")]},
    "a stray word among sizes": {"size": [(5, "large")]},
    "signs of nothing": {"size": [(2, "-"), (9, "n/a"), (30, ".")], "city": [(4, "NA")]},
}


def written(way, rows, path):
    """Write some rows of the table in one of the ways."""
    way = dict(way)
    encoding, line_end = way.pop("encoding", "utf-8"), way.pop("line_end", "\n")
    has_header = way.pop("header", True)
    strays = {name: way.pop(name) for name in ("year", "size", "city") if isinstance(way.get(name), list)}
    frame = houses().astype(dict.fromkeys(strays, object))
    for name, places in strays.items():
        for row, text in places:
            frame.loc[row, name] = text
    lines = [NAMES.replace(",", way.get("delimiter", ","))] if has_header else []
    lines += lines_of(frame.iloc[rows], **way)
    path.write_bytes((line_end.join(lines) + line_end).encode(encoding))


@pytest.mark.parametrize("title", WAYS)
def test_the_score_of_fit_is_that_of_predict_and_a_script(title, tmp_path):
    """What `fit` prints of its left-out rows, a model of the other rows has on a file with those rows alone."""
    target = "price" if WAYS[title].get("header", True) else "column_5"
    written(WAYS[title], np.arange(60), tmp_path / "all.csv")
    printed = done("fit", "all.csv", "--target", target, "--out", "all.mercer", "--model", "rfm").stdout
    left_out = np.sort(mercer.load("all.mercer").held_out_["rows"])
    learned = np.setdiff1d(np.arange(60), left_out)
    written(WAYS[title], learned, tmp_path / "learned.csv")
    written(WAYS[title], left_out, tmp_path / "left_out.csv")
    done("fit", "learned.csv", "--target", target, "--out", "m.mercer", "--model", "rfm", "--test-size", "0")
    done("predict", "m.mercer", "left_out.csv", "--out", "answer.csv")
    errors = houses()["price"].to_numpy()[left_out] - pd.read_csv("answer.csv")["prediction"].to_numpy()
    scores = mercer.load("all.mercer").scores_
    column = score_texts("rmse", [float(np.sqrt(np.mean(errors**2))), *(row["rmse"] for row in scores[1:])])
    assert column == score_texts("rmse", [row["rmse"] for row in scores])
    assert column[0] in printed
    kinds = mercer.load("all.mercer").kinds_
    assert list(kinds.values()) == ["number", "category", "date", "number"]
    assert mercer.load("m.mercer").kinds_ == kinds


# ---- inspect -------------------------------------------------------------------------------------------------


def test_inspect_says_how_a_table_is_read(tmp_path):
    written(WAYS["a stray word among sizes"] | {"delimiter": ";"}, np.arange(60), tmp_path / "t.csv")
    result = done("inspect", "t.csv", width=140)
    assert result.stderr == ""
    out = result.stdout
    assert "t.csv: CSV, semicolons, UTF-8, names in the first row" in out
    assert "60 rows and 5 columns" in out
    assert "'large' in row 6 cannot be read as a number and counts as missing" in " ".join(out.split())
    for word in ("unreadable", "Zürich", "dates as %Y-%m-%d", f"{houses()['year'].min()} to {houses()['year'].max()}"):
        assert word in out, word
    described = json.loads(done("inspect", "t.csv", "--json").stdout)
    assert [column["kind"] for column in described["columns"]] == ["number", "category", "date", "number", "number"]
    assert described["columns"][0]["unreadable"] == 1
    assert described["columns"][0]["examples"] == [{"row": 6, "value": "large"}]
    assert described["files"][0]["delimiter"] == "semicolons"


def test_what_is_said_of_a_file_overrides_what_is_found(tmp_path):
    (tmp_path / "t.csv").write_bytes("1;1,234;ä\n2;2,500;x\n".encode("cp1252"))
    options = ("--header", "--decimal", ".", "--encoding", "latin-1", "--kinds", "1=category")
    described = json.loads(done("inspect", "t.csv", *options, "--json").stdout)
    assert [column["name"] for column in described["columns"]] == ["1", "1,234", "ä"]
    assert [column["kind"] for column in described["columns"]] == ["category", "number", "category"]
    assert described["columns"][1]["values"] == "2500 to 2500"
    assert "--kinds names the column 'zip'" in failed("inspect", "t.csv", "--kinds", "zip=text").stderr
    assert "decimal='x' is not allowed" in failed("inspect", "t.csv", "--decimal", "x").stderr


def test_kinds_as_they_are_written():
    assert kinds_in(("zip=category,age=number", "a, b=text")) == {"zip": "category", "age": "number", "a, b": "text"}
    assert kinds_in(("day=date:%d/%m/%Y,when=date",)) == {"day": "date:%d/%m/%Y", "when": "date"}
    assert kinds_in(("a=b=number",)) == {"a=b": "number"}
    for wrong in ("zip", "zip=integer", "=number,"):
        with pytest.raises(InvalidParameterError, match="kinds='.*' is not allowed"):
            kinds_in((wrong,))


# ---- several files, and none ---------------------------------------------------------------------------------


def test_several_files_are_one_table(tmp_path):
    written({}, np.arange(40), tmp_path / "a.csv")
    written({"delimiter": ";", "decimal": ","}, np.arange(40, 60), tmp_path / "b.csv")
    described = json.loads(done("inspect", "a.csv", "b.csv", "--json").stdout)
    assert (described["rows"], [facts["rows"] for facts in described["files"]]) == (60, [40, 20])
    assert [column["kind"] for column in described["columns"]] == ["number", "category", "date", "number", "number"]
    out = done("fit", "a.csv", "b.csv", "--target", "price", "--out", "m.mercer", "--model", "rfm").stdout
    assert "Read 60 rows and 4 inputs" in out
    assert "from a.csv, b.csv" in out
    document = json.loads(done("predict", "m.mercer", "b.csv", "a.csv", "--out", "o.csv", "--json").stdout)
    assert document["data"] == ["b.csv", "a.csv"]
    assert document["rows"] == 60
    (tmp_path / "c.csv").write_text("size,town\n1,x\n")
    message = failed("inspect", "a.csv", "c.csv").stderr
    assert "'c.csv' and 'a.csv' have different columns: the first lacks 'city', 'day', 'year', 'price'" in message


def test_standard_input(tmp_path, monkeypatch):
    written({}, np.arange(60), tmp_path / "t.csv")
    table = pd.read_csv("t.csv")
    done("fit", "t.csv", "--target", "price", "--out", "m.mercer", "--model", "rfm")
    done("predict", "m.mercer", "t.csv", "--out", "expected.csv")
    for content in (
        (tmp_path / "t.csv").read_bytes(),
        parquet(table),
        table.to_json(orient="records", lines=True).encode(),
    ):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        done_here("predict", "m.mercer", "-", "--out", "answer.csv")
        assert (tmp_path / "answer.csv").read_text() == (tmp_path / "expected.csv").read_text()


def parquet(frame):
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    return buffer.getvalue()


def done_here(*args):
    """Run a command with the standard input that was put in place: the runner of the tests has one of its own."""
    from mercer.app.cli.app import app

    app(list(args), standalone_mode=False)


# ---- new rows ------------------------------------------------------------------------------------------------


def test_new_rows_are_read_as_those_of_the_fit(tmp_path):
    """Codes stay codes and numbers stay numbers, whatever the new file alone would look like."""
    frame = houses()
    frame["code"] = np.where(np.arange(60) % 3 == 0, "007", "A12")
    frame.to_csv("t.csv", index=False)
    done("fit", "t.csv", "--target", "price", "--out", "m.mercer", "--model", "rfm", "--kinds", "year=category")
    model = mercer.load("m.mercer")
    assert (model.kinds_["year"], model.kinds_["code"]) == ("category", "category")
    new = (
        frame.head(6).astype({"size": object}).assign(code="007", city=["Oslo", "Lima", "Rome", "Lima", "Bonn", "Oslo"])
    )
    new.loc[2, "size"] = "big"
    new.to_csv("new.csv", index=False)
    result = done("predict", "m.mercer", "new.csv", "--out", "o.csv")
    assert "3 rows have a new value of 'city', such as 'Lima', not seen in the fit" in result.stdout
    assert "note: column 'size': 'big' in row 3 cannot be read as a number and counts as missing." in result.stderr
    document = json.loads(done("predict", "m.mercer", "new.csv", "--out", "o.csv", "--json").stdout)
    assert document["unseen"] == {"city": 3}
    assert document["unreadable"] == {"size": 1}
    with pytest.warns(mercer.exceptions.DataWarning, match="'big' in row 3"):
        answer = model.predict_frame(new)
    pd.testing.assert_frame_equal(answer, pd.read_csv("o.csv"))


def test_few_new_rows_are_read_as_the_fit_was(tmp_path):
    """Two rows alone would be words, and days that could be months: the fit has seen what they are."""
    written({"size": "{} m²", "day": "%d/%m/%Y"}, np.arange(60), tmp_path / "t.csv")
    done("fit", "t.csv", "--target", "price", "--out", "m.mercer", "--model", "rfm")
    model = mercer.load("m.mercer")
    new = pd.DataFrame({"size": ["60 m²", "big"], "city": "Oslo", "day": ["03/04/2021", "05/06/2021"], "year": 1990})
    plain = new.assign(size=[60.0, np.nan], day=[pd.Timestamp(2021, 4, 3), pd.Timestamp(2021, 6, 5)])
    expected = model.predict_frame(plain)
    with pytest.warns(mercer.exceptions.DataWarning, match="'big' in row 2"):
        pd.testing.assert_frame_equal(model.predict_frame(new), expected)
    new.to_csv("new.csv", index=False)
    result = done("predict", "m.mercer", "new.csv", "--out", "o.csv")
    pd.testing.assert_frame_equal(pd.read_csv("o.csv"), expected)
    assert result.stderr.count("note:") == 1


def test_a_model_of_a_file_without_names_reads_such_files(tmp_path):
    written({"header": False}, np.arange(60), tmp_path / "t.csv")
    done("fit", "t.csv", "--target", "column_5", "--out", "m.mercer", "--model", "rfm")
    written({"header": False}, np.arange(1), tmp_path / "one.csv")
    assert "Predicted 1 rows" in done("predict", "m.mercer", "one.csv", "--out", "o.csv").stdout
