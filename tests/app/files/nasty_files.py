"""Files as people have them, a few lines each, with what must come out: kinds, rows and values, or a message."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

NUMBER, DATE, CATEGORY, TEXT, MISSING = "number", "date", "category", "text", "missing"


@dataclass(frozen=True)
class Nasty:
    """A file and what must come out.

    Attributes
    ----------
    title, name : str
        What is nasty, and what the file is called.
    content : str or bytes
        A text is written as UTF-8.
    kinds : dict of str
        The kind of each column, in their order.
    n_rows : int
    values : dict
        Of some columns, the first values; None is a missing one.
    note : str
        A regular expression for what is said; "" says nothing.
    error : str
        A regular expression for the message, where the file cannot be read.
    options : dict
        Of ReadOptions.
    """

    title: str
    name: str
    content: str | bytes
    kinds: dict[str, str] = field(default_factory=dict)
    n_rows: int = 0
    values: dict[str, list[Any]] = field(default_factory=dict)
    note: str = ""
    error: str = ""
    options: dict[str, Any] = field(default_factory=dict)


def excel(**sheets: list[list[Any]]) -> bytes:
    """Return an Excel file with sheets of cells."""
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine="openpyxl") as book:
        for name, rows in sheets.items():
            pd.DataFrame(rows).to_excel(book, sheet_name=name, header=False, index=False)
    return buffer.getvalue()


def zipped(**files: str) -> bytes:
    """Return a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as parts:
        for name, text in files.items():
            parts.writestr(f"{name}.csv", text)
    return buffer.getvalue()


def lines(*rows: str) -> str:
    """Return rows as a text."""
    return "\n".join(rows) + "\n"


AB = {"a": NUMBER, "b": CATEGORY}
PLAIN = lines("a,b", "1,x", "2,y", "3,x", "4,y")
YEARS = [str(1990 + i) for i in range(12)]
WHEN = "2024-0{}-15"

NASTY = [
    Nasty("plain", "t.csv", PLAIN, AB, 4, {"a": [1, 2], "b": ["x", "y"]}),
    # ---- names in the first row, or none
    Nasty(
        "no header, numbers and a class",
        "t.csv",
        lines("5.1,3.5,setosa", "4.9,3.0,setosa", "6.3,2.9,virginica"),
        {"column_1": NUMBER, "column_2": NUMBER, "column_3": CATEGORY},
        3,
        {"column_1": [5.1, 4.9]},
        note="no names in its first row, .*5.1.*--header",
    ),
    Nasty(
        "no header, letters alone",
        "t.csv",
        lines("p,x,s", "e,x,s", "p,b,y", "e,x,y"),
        dict.fromkeys(["column_1", "column_2", "column_3"], CATEGORY),
        4,
        {"column_1": ["p", "e"]},
        note="repeated below",
    ),
    Nasty(
        "no header, missing values in the first row",
        "t.csv",
        lines("?,3.5,a", "4.9,3.0,b", "6.3,2.9,a"),
        {"column_1": NUMBER, "column_2": NUMBER, "column_3": CATEGORY},
        3,
        {"column_1": [None, 4.9]},
        note="no names",
    ),
    Nasty(
        "no header, with units",
        "t.csv",
        lines("5 kg,Oslo", "7 kg,Rome", "9 kg,Oslo"),
        {"column_1": NUMBER, "column_2": CATEGORY},
        3,
        {"column_1": [5, 7, 9]},
        note="no names",
    ),
    Nasty(
        "no header, asked for",
        "t.csv",
        lines("x,1", "y,2"),
        {"column_1": CATEGORY, "column_2": NUMBER},
        2,
        options={"header": False},
    ),
    Nasty(
        "header, asked for",
        "t.csv",
        lines("7,1", "8,2"),
        {"7": NUMBER, "1": NUMBER},
        1,
        {"7": [8]},
        options={"header": True},
    ),
    Nasty(
        "names that count up",
        "t.csv",
        lines("0,1,2", "5.5,6.5,7.5", "1.5,2.5,3.5"),
        {"0": NUMBER, "1": NUMBER, "2": NUMBER},
        2,
    ),
    Nasty(
        "years as names",
        "t.csv",
        lines("city,2019,2020,2021", "Oslo,5,6,7", "Rome,8,9,1"),
        {"city": CATEGORY, "2019": NUMBER, "2020": NUMBER, "2021": NUMBER},
        2,
    ),
    Nasty(
        "months as names",
        "t.csv",
        lines("city,2020-01,2020-02", "Oslo,5,6", "Rome,8,9"),
        {"city": CATEGORY, "2020-01": NUMBER, "2020-02": NUMBER},
        2,
    ),
    Nasty(
        "names that begin with digits",
        "t.csv",
        lines("1stFloor,2ndFloor", "800,400", "900,0"),
        {"1stFloor": NUMBER, "2ndFloor": NUMBER},
        2,
    ),
    Nasty(
        "header above texts",
        "t.csv",
        lines("name,city", "Ann,Oslo", "Bob,Rome"),
        {"name": CATEGORY, "city": CATEGORY},
        2,
    ),
    Nasty("header alone", "t.csv", lines("a,b"), error="holds no data: it has 0 rows and 2 columns"),
    Nasty("two columns of one name", "t.csv", lines("a,b,a", "1,2,3"), error="two columns 'a'"),
    Nasty(
        "spaces around names and values",
        "t.csv",
        lines(" a , b ", " 1 , x", "2,y "),
        AB,
        2,
        {"a": [1, 2], "b": ["x", "y"]},
    ),
    Nasty(
        "a title above",
        "t.csv",
        lines("Sales of 2024", "", "a,b,c", "1,x,5", "2,y,6"),
        AB | {"c": NUMBER},
        2,
        note="left out 1 row above the table, such as 'Sales of 2024'",
    ),
    Nasty(
        "comments above",
        "t.csv",
        lines("# made by a program", "# version 3", "a,b,c", "1,x,5", "2,y,6"),
        AB | {"c": NUMBER},
        2,
        note="2 rows above",
    ),
    Nasty(
        "notes below",
        "t.csv",
        lines("a,b,c", "1,x,5", "2,y,6", "3,x,7", "4,x,8", "", "Source: the ministry"),
        AB | {"c": NUMBER},
        4,
        note="left out 1 row below the table, such as 'Source: the ministry'",
    ),
    Nasty(
        "a total below",
        "t.csv",
        lines("b,a", "x,1", "y,2", "x,3", "y,4", "Total,10"),
        {"b": CATEGORY, "a": NUMBER},
        4,
        note="1 row below .*'Total 10'",
    ),
    # ---- delimiters, quotes, line ends
    Nasty("semicolons, decimal commas", "t.csv", lines("a;b", "1,5;x", "2,25;y"), AB, 2, {"a": [1.5, 2.25]}),
    Nasty("semicolons, decimal points", "t.csv", lines("a;b", "1.5;x", "2.25;y"), AB, 2, {"a": [1.5, 2.25]}),
    Nasty(
        "semicolons, points between thousands",
        "t.csv",
        lines("a;b;c", "1.234;x;1,5", "2.500;y;2,5"),
        AB | {"c": NUMBER},
        2,
        {"a": [1234, 2500]},
    ),
    Nasty(
        "semicolons, nothing but three decimals",
        "t.csv",
        lines("a;b", "1,234;x", "2,500;y"),
        AB,
        2,
        {"a": [1.234, 2.5]},
        note=r"'1,234' is read as 1\.234; --decimal '\.' reads it as 1234",
    ),
    Nasty(
        "the decimal mark is asked for",
        "t.csv",
        lines("a;b", "1,234;x", "2,500;y"),
        AB,
        2,
        {"a": [1234, 2500]},
        options={"decimal": "."},
    ),
    Nasty("tabs in a CSV", "t.csv", lines("a\tb", "1\tx", "2\ty"), AB, 2),
    Nasty("vertical bars", "t.txt", lines("a|b", "1|x", "2|y"), AB, 2),
    Nasty(
        "columns of spaces",
        "t.dat",
        lines("  1.5   2  x", " 10.5  30  y", "  2.5   7  x"),
        {"column_1": NUMBER, "column_2": NUMBER, "column_3": CATEGORY},
        3,
        note="no names",
    ),
    Nasty("tabs, decimal commas", "t.tsv", lines("a\tb", "1,5\tx", "2,5\ty"), AB, 2, {"a": [1.5, 2.5]}),
    Nasty(
        "quotes with line breaks",
        "t.csv",
        'a,b\n1,"one\ntwo"\n2,"thr""ee, four"\n',
        AB,
        2,
        {"b": ["one\ntwo", 'thr"ee, four']},
    ),
    Nasty(
        "quotes behind backslashes",
        "t.csv",
        'a,b\n1,"say \\"no\\", then go"\n2,"yes"\n',
        AB,
        2,
        {"b": ['say "no", then go', "yes"]},
    ),
    Nasty("single quotes", "t.csv", lines("a,b", "1,'x, y'", "2,'z'"), AB, 2, {"b": ["x, y", "z"]}),
    Nasty("an apostrophe is no quote", "t.csv", lines("a,b", "1,d'Or", "2,l'Eau"), AB, 2, {"b": ["d'Or", "l'Eau"]}),
    Nasty("Windows line ends", "t.csv", PLAIN.replace("\n", "\r\n"), AB, 4),
    Nasty("old line ends", "t.csv", PLAIN.replace("\n", "\r"), AB, 4),
    Nasty("no line end at the end", "t.csv", PLAIN.rstrip(), AB, 4),
    Nasty("blank lines", "t.csv", PLAIN.replace("\n", "\n\n"), AB, 4),
    Nasty("rows of nothing but commas", "t.csv", PLAIN + ",\n,\n", AB, 4, note="left out 2 rows without any value"),
    Nasty("a comma too many at the end of all rows", "t.csv", lines("a,b,", "1,x,", "2,y,"), AB, 2),
    Nasty("rows that are too short", "t.csv", lines("a,b", "1,x", "2", "3,y"), AB, 3, {"b": ["x", None, "y"]}),
    Nasty(
        "one row that is too long",
        "t.csv",
        lines("a,b", "1,x", "2,y,z", "3,y", "4,x", "5,x"),
        error=r"more fields than its first line has names, such as \['2', 'y', 'z'\]",
    ),
    Nasty(
        "all rows longer than the names",
        "t.csv",
        lines("a,b", "r1,1,x", "r2,2,y"),
        error="more fields than its first line has names",
    ),
    Nasty("a quote that never ends", "t.csv", 'a,b\n1,"x\n2,y\n', error="cannot be read as CSV"),
    Nasty("nothing", "t.csv", "", error="it is empty"),
    Nasty("one column", "t.csv", lines("a", "1", "2"), {"a": NUMBER}, 2),
    Nasty(
        "one column of sentences",
        "t.csv",
        lines("said", "Well, yes", "No", "Maybe; or not"),
        {"said": CATEGORY},
        3,
        {"said": ["Well, yes", "No", "Maybe; or not"]},
    ),
    Nasty(
        "most rows too short",
        "t.csv",
        lines("a,b", "1", "2", "3,x"),
        {"a": NUMBER, "b": CATEGORY},
        3,
        {"b": [None, None, "x"]},
    ),
    # ---- encodings
    Nasty("UTF-8 with a mark", "t.csv", "\ufeffa,b\n1,ä\n2,ö\n", AB, 2, {"b": ["ä", "ö"]}),
    Nasty("UTF-16 with a mark", "t.csv", "a,b\n1,ä\n2,ö\n".encode("utf-16"), AB, 2, {"b": ["ä", "ö"]}),
    Nasty("UTF-16 without a mark", "t.csv", "a,b\n1,x\n2,ö\n".encode("utf-16-le"), AB, 2, {"b": ["x", "ö"]}),
    Nasty(
        "UTF-16, big end first, with tabs", "t.txt", "a\tb\n1\tx\n2\tö\n".encode("utf-16-be"), AB, 2, {"b": ["x", "ö"]}
    ),
    Nasty(
        "Latin-1",
        "t.csv",
        "a,b\n1,Zürich\n2,São\n".encode("latin-1"),
        AB,
        2,
        {"b": ["Zürich", "São"]},
        note=r"not UTF-8 and is read as Windows-1252 \(Latin-1\)",
    ),
    Nasty(
        "Windows' own signs",
        "t.csv",
        "a,b\n1,5–6\n2,€\n".encode("cp1252"),
        AB,
        2,
        {"b": ["5–6", "€"]},
        note="Windows-1252",
    ),
    Nasty(
        "another encoding is asked for",
        "t.csv",
        "a,b\n1,Łódź\n2,x\n".encode("cp1250"),
        AB,
        2,
        {"b": ["Łódź", "x"]},
        options={"encoding": "cp1250"},
    ),
    Nasty(
        "an encoding that there is not",
        "t.csv",
        PLAIN,
        error="encoding='utf-9' is not allowed",
        options={"encoding": "utf-9"},
    ),
    Nasty("NUL characters", "t.csv", b"a,b\n1,\x00x\n2,y\n3,z\n", error="NUL characters, near byte 6"),
    # ---- numbers
    Nasty(
        "four digits and a question mark",
        "t.csv",
        lines("y,b", *[f"{y},x" for y in YEARS], "?,y"),
        {"y": NUMBER, "b": CATEGORY},
        13,
        {"y": [1990, 1991]},
    ),
    Nasty(
        "one stray word",
        "t.csv",
        lines("a,b", "1.5,x", "2.5,y", "three,x", "4.5,y", "5.5,x"),
        AB,
        5,
        {"a": [1.5, 2.5, None]},
        note="'three' in row 3 cannot be read as a number and counts as missing",
    ),
    Nasty(
        "few numbers among words",
        "t.csv",
        lines("a,b", "1,x", "low,y", "high,x", "low,y"),
        {"a": CATEGORY, "b": CATEGORY},
        4,
    ),
    Nasty(
        "half of it numbers",
        "t.csv",
        lines("a,b", "1,x", "2,y", "low,x", "high,y"),
        {"a": CATEGORY, "b": CATEGORY},
        4,
        note="2 of 4 values are numbers, but others are not, such as 'low' in row 3",
    ),
    Nasty(
        "asked to be numbers",
        "t.csv",
        lines("a,b", "1,x", "2,y", "low,x", "high,y"),
        AB,
        4,
        {"a": [1, 2, None, None]},
        note="'low' in row 3, 'high' in row 4 cannot be read",
        options={"kinds": {"a": "number"}},
    ),
    Nasty(
        "commas between thousands",
        "t.csv",
        lines("a,b", '"1,234,567",x', '"12,000.5",y'),
        AB,
        2,
        {"a": [1234567, 12000.5]},
    ),
    Nasty(
        "commas between thousands, nothing tells",
        "t.csv",
        lines("a,b", '"1,234",x', '"12,000",y'),
        AB,
        2,
        {"a": [1234, 12000]},
        note=r"'1,234' is read as 1234; --decimal ',' reads it as 1\.234",
    ),
    Nasty(
        "spaces and apostrophes between thousands",
        "t.csv",
        lines("a,b", "1 234 567,x", "12'000,y", "7,x"),
        AB,
        3,
        {"a": [1234567, 12000, 7]},
    ),
    Nasty("percent signs", "t.csv", lines("a,b", "5%,x", "12.5 %,y"), AB, 2, {"a": [5, 12.5]}),
    Nasty("money", "t.csv", lines("a,b", '"$1,200.50",x', "$7,y", "-$3,x"), AB, 3, {"a": [1200.5, 7, -3]}),
    Nasty("euros behind", "t.csv", lines("a;b", "1.200,50 €;x", "7,00 €;y"), AB, 2, {"a": [1200.5, 7]}),
    Nasty(
        "amounts in brackets are negative", "t.csv", lines("a,b", "(12.50),x", "7.25,y"), AB, 2, {"a": [-12.5, 7.25]}
    ),
    Nasty("units", "t.csv", lines("a,b", "5 kg,x", "7.5kg,y", "8,x"), AB, 3, {"a": [5, 7.5, 8]}),
    Nasty(
        "two units",
        "t.csv",
        lines("a,b", "5 kg,x", "700 g,y", "8 kg,x"),
        {"a": CATEGORY, "b": CATEGORY},
        3,
        note="numbers with different units, 'g', 'kg'",
    ),
    Nasty("a minus that is none", "t.csv", lines("a,b", "−5,x", "7,y"), AB, 2, {"a": [-5, 7]}),
    Nasty("powers of ten", "t.csv", lines("a,b", "1e5,x", "2.5E-3,y"), AB, 2, {"a": [1e5, 2.5e-3]}),
    Nasty(
        "infinity",
        "t.csv",
        lines("a,b", "1,x", "2,y", "inf,x", "4,y", "5,x"),
        AB,
        5,
        {"a": [1, 2, None, 4]},
        note="'inf' in row 3",
    ),
    Nasty(
        "post codes",
        "t.csv",
        lines("zip,a", "01234,1", "98765,2"),
        {"zip": CATEGORY, "a": NUMBER},
        2,
        {"zip": ["01234", "98765"]},
    ),
    Nasty(
        "identifiers of many digits",
        "t.csv",
        lines("id,a", "12345678901234567890,1", "12345678901234567891,2"),
        {"id": CATEGORY, "a": NUMBER},
        2,
        {"id": ["12345678901234567890", "12345678901234567891"]},
    ),
    Nasty(
        "post codes by request",
        "t.csv",
        lines("zip,a", "1234,1", "9876,2"),
        {"zip": CATEGORY, "a": NUMBER},
        2,
        {"zip": ["1234", "9876"]},
        options={"kinds": {"zip": "category"}},
    ),
    Nasty(
        "a kind for a column that is not there",
        "t.csv",
        PLAIN,
        error=r"--kinds names the column 'A' \(nearest: 'a'\)",
        options={"kinds": {"A": "text"}},
    ),
    Nasty(
        "a kind that there is not",
        "t.csv",
        PLAIN,
        error="kinds\\['a'\\]='integer' is not allowed",
        options={"kinds": {"a": "integer"}},
    ),
    # ---- missing values
    Nasty(
        "signs of nothing",
        "t.csv",
        lines("a,b", "1,x", "NA,n/a", "-,NULL", ".,", "n.a.,None", "#N/A,?", "--,y", "2,x"),
        AB,
        8,
        {"a": [1, None, None, None, None, None, None, 2], "b": ["x", None, None, None, None, None, "y", "x"]},
    ),
    Nasty(
        "a minus among answers is an answer", "t.csv", lines("a,b", "1,+", "2,-", "3,+"), AB, 3, {"b": ["+", "-", "+"]}
    ),
    Nasty("a column of nothing", "t.csv", lines("a,b,c", "1,x,", "2,y,NA"), AB | {"c": MISSING}, 2),
    # ---- truths
    Nasty("true and false", "t.csv", lines("a,b", "TRUE,x", "false,y", "True,x"), AB, 3, {"a": [True, False, True]}),
    Nasty(
        "true, false and nothing", "t.csv", lines("a,b", "true,x", ",y", "false,x"), AB, 3, {"a": [True, None, False]}
    ),
    Nasty(
        "yes and no",
        "t.csv",
        lines("a,b", "yes,1", "no,2", "yes,3"),
        {"a": CATEGORY, "b": NUMBER},
        3,
        {"a": ["yes", "no", "yes"]},
    ),
    # ---- dates
    Nasty(
        "days",
        "t.csv",
        lines("d,a", "2024-01-31,1", "2023-12-01,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31)]},
    ),
    Nasty(
        "days as in Germany",
        "t.csv",
        lines("d;a", "31.01.2024;1", "01.02.2024;2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31), pd.Timestamp(2024, 2, 1)]},
    ),
    Nasty(
        "days as in America",
        "t.csv",
        lines("d,a", "01/31/2024,1", "02/01/2024,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31), pd.Timestamp(2024, 2, 1)]},
    ),
    Nasty(
        "days as in Britain",
        "t.csv",
        lines("d,a", "31/01/2024,1", "01/02/2024,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31), pd.Timestamp(2024, 2, 1)]},
    ),
    Nasty(
        "days that may be months",
        "t.csv",
        lines("d,a", "03/04/2024,1", "01/02/2024,2", "05/06/2024,2"),
        {"d": DATE, "a": NUMBER},
        3,
        {"d": [pd.Timestamp(2024, 3, 4)]},
        note="'03/04/2024' is read as 04 March 2024; --kinds 'd=date:%d/%m/%Y'",
    ),
    Nasty(
        "days that may be months, and one that is neither",
        "t.csv",
        lines("d,a", "soon,1", "03/04/2024,1", "01/02/2024,2", "05/06/2024,2", "07/08/2024,2"),
        {"d": DATE, "a": NUMBER},
        5,
        note="'03/04/2024' is read as 04 March 2024",
    ),
    Nasty(
        "days in the order of time",
        "t.csv",
        lines("d,a", "01/02/2024,1", "03/02/2024,2", "01/03/2024,2"),
        {"d": DATE, "a": NUMBER},
        3,
        {"d": [pd.Timestamp(2024, 2, 1)]},
    ),
    Nasty(
        "the format is asked for",
        "t.csv",
        lines("d,a", "03/04/2024,1", "01/02/2024,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 4, 3)]},
        options={"kinds": {"d": "date:%d/%m/%Y"}},
    ),
    Nasty(
        "both orders in one column",
        "t.csv",
        lines("d,a", "31/01/2024,1", "02/28/2024,2", "25/12/2023,3"),
        {"d": CATEGORY, "a": NUMBER},
        3,
        note="day and month in both orders",
    ),
    Nasty(
        "two formats in one column",
        "t.csv",
        lines("d,a", "2024-01-31,1", "01.02.2024,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31), pd.Timestamp(2024, 2, 1)]},
    ),
    Nasty(
        "months in words",
        "t.csv",
        lines("d,a", "5 March 2024,1", "17 May 2023,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 3, 5)]},
    ),
    Nasty(
        "times and zones",
        "t.csv",
        lines("d,a", "2024-01-31T12:00:00Z,1", "2024-01-31T13:00:00+02:00,2"),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp("2024-01-31 12:00", tz="UTC"), pd.Timestamp("2024-01-31 11:00", tz="UTC")]},
    ),
    Nasty(
        "days without marks",
        "t.csv",
        lines("d,a", *[f"2024010{i},{i}" for i in range(1, 8)]),
        {"d": DATE, "a": NUMBER},
        7,
        {"d": [pd.Timestamp(2024, 1, 1)]},
    ),
    Nasty(
        "a stray date",
        "t.csv",
        lines("d,a", *[f"{WHEN.format(i)},{i}" for i in range(1, 7)], "soon,7"),
        {"d": DATE, "a": NUMBER},
        7,
        note="'soon' in row 7 cannot be read as a date",
    ),
    # ---- other formats
    Nasty(
        "Excel with a title",
        "t.xlsx",
        excel(S=[["Sales of 2024", None, None], [None] * 3, ["a", "b", "c"], [1, "x", 5.5], [2, "y", 6.5]]),
        AB | {"c": NUMBER},
        2,
        {"c": [5.5, 6.5]},
        note="left out 1 row above the table",
    ),
    Nasty(
        "Excel with an empty column and row",
        "t.xlsx",
        excel(S=[[None] * 3, [None, "a", "b"], [None, 1, "x"], [None, 2, "y"]]),
        AB,
        2,
    ),
    Nasty(
        "Excel with several sheets",
        "t.xlsx",
        excel(First=[["a", "b"], [1, "x"], [2, "y"]], Other=[["c"], [1]]),
        AB,
        2,
        note="the sheet 'First' is read; choose another with --sheet: 'Other'",
    ),
    Nasty(
        "Excel whose first sheet is empty",
        "t.xlsx",
        excel(Cover=[[None]], Data=[["a", "b"], [1, "x"], [2, "y"]]),
        AB,
        2,
        note="the sheet 'Data' is read",
    ),
    Nasty(
        "a sheet by name",
        "t.xlsx",
        excel(First=[["c"], [1]], Other=[["a", "b"], [1, "x"], [2, "y"]]),
        AB,
        2,
        options={"sheet": "Other"},
    ),
    Nasty(
        "a sheet by number",
        "t.xlsx",
        excel(First=[["c"], [1]], Other=[["a", "b"], [1, "x"], [2, "y"]]),
        AB,
        2,
        options={"sheet": "2"},
    ),
    Nasty(
        "a sheet that is not there",
        "t.xlsx",
        excel(First=[["c"], [1]]),
        error="no sheet 'Third'.*it has 'First'",
        options={"sheet": "Third"},
    ),
    Nasty(
        "Excel without names",
        "t.xlsx",
        excel(S=[[1.5, "x"], [2.5, "y"], [3.5, "x"]]),
        {"column_1": NUMBER, "column_2": CATEGORY},
        3,
        note="no names",
    ),
    Nasty(
        "numbers and words in Excel",
        "t.xlsx",
        excel(S=[["a", "b"], [1.5, "x"], ["-", "y"], [2, "x"], [3, "y"], [4, "x"], ["five", "x"]]),
        AB,
        6,
        {"a": [1.5, None, 2]},
        note="'five' in row 6",
    ),
    Nasty(
        "dates in Excel",
        "t.xlsx",
        excel(S=[["d", "a"], [pd.Timestamp(2024, 1, 31), 1], [pd.Timestamp(2024, 2, 1), 2]]),
        {"d": DATE, "a": NUMBER},
        2,
        {"d": [pd.Timestamp(2024, 1, 31)]},
    ),
    Nasty(
        "JSON lines",
        "t.jsonl",
        lines('{"a": 1, "b": "x"}', "", '{"b": "y", "a": 2.5}', '{"a": null}'),
        AB,
        3,
        {"a": [1, 2.5, None], "b": ["x", "y", None]},
    ),
    Nasty(
        "JSON lines with numbers as texts",
        "t.ndjson",
        lines('{"a": "1,200 kg"}', '{"a": "900.5 kg"}'),
        {"a": NUMBER},
        2,
        {"a": [1200, 900.5]},
    ),
    Nasty("a list of JSON", "t.json", json.dumps([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]), AB, 2),
    Nasty("JSON that is cut", "t.jsonl", '{"a": 1}\n{"a": 2', error=r"line 2, '\{\"a\": 2'"),
    Nasty(
        "lists in cells",
        "t.jsonl",
        lines('{"a": [1, 2]}', '{"a": 3}'),
        error="column 'a' holds a list in some row, such as",
    ),
    Nasty("JSON that is no table", "t.json", "[1, 2]", error="each row must be an object"),
    Nasty("gzip", "t.csv.gz", gzip.compress(PLAIN.encode()), AB, 4),
    Nasty("bzip2 in UTF-16", "t.csv.bz2", bz2.compress(PLAIN.encode("utf-16")), AB, 4),
    Nasty("xz with tabs", "t.tsv.xz", lzma.compress(PLAIN.replace(",", "\t").encode()), AB, 4),
    Nasty("zip", "t.csv.zip", zipped(inside=PLAIN), AB, 4),
    Nasty("zip of two", "t.csv.zip", zipped(one=PLAIN, two=PLAIN), error="holds 2 files, but one table was expected"),
    Nasty("an ending that says nothing", "t.docx", PLAIN, error="no ending that says what table it is"),
]
